"""The state store in PostgreSQL: connections that break, rights that lack, transactions that are undone."""

from __future__ import annotations

from itertools import pairwise
from urllib.parse import quote

import psycopg
import pytest
from sqlalchemy import event, text

from lamina.app.ports.loaded import LoadRequest
from lamina.errors import LeaseHeld, NoAnswer, StateError, StateTooNew, StateUnwritable
from lamina.planning.inputs import Read
from lamina.state.leases import machine_time
from lamina.state.postgres import PostgresBackend
from lamina.state.store import SqlStateStore
from tests.kit.state import ORDERS, PHYSICAL, finish, owner, unknown, version, version_id

pytestmark = pytest.mark.slow

REQUEST = LoadRequest(versions=((ORDERS, version_id()),))


@pytest.fixture
def engine_and_store(postgresql_place):
    backend = PostgresBackend(postgresql_place.url)
    store = SqlStateStore(backend)
    store.commit([version(number=2)])
    yield backend._engine, store
    store.close()


def execute(place, statement: str) -> None:
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute(statement)


def end_sessions(place) -> None:
    """What a server does that is shut down, or a network that breaks."""
    execute(
        place,
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE application_name = 'lamina' AND pid <> pg_backend_pid()",
    )


def test_a_connection_that_breaks_during_a_commit_gives_no_answer(engine_and_store, postgresql_place):
    engine, store = engine_and_store
    event.listen(engine, "commit", lambda _: end_sessions(postgresql_place), once=True)
    with pytest.raises(NoAnswer):
        store.commit([version()])
    store.commit([version()])
    assert PHYSICAL in store.load(REQUEST).facts


def test_who_stops_in_the_middle_of_a_commit_is_put_out_before_others_give_up(engine_and_store):
    engine, _ = engine_and_store
    names = ("idle_in_transaction_session_timeout", "lock_timeout")
    with engine.connect() as connection:
        found = [
            int(connection.execute(text(f"SELECT setting FROM pg_settings WHERE name = '{name}'")).scalar_one())
            for name in names
        ]
    assert 0 < found[0] < found[1]


def test_a_connection_that_breaks_before_the_commit_is_an_answer(engine_and_store, postgresql_place):
    engine, store = engine_and_store

    def break_before_insert(connection, cursor, statement, *rest) -> None:
        if statement.startswith("INSERT"):
            end_sessions(postgresql_place)

    event.listen(engine, "before_cursor_execute", break_before_insert)
    with pytest.raises(StateError, match="cannot be reached") as error:
        store.commit([version()])
    assert not isinstance(error.value, NoAnswer)
    event.remove(engine, "before_cursor_execute", break_before_insert)
    assert not store.load(REQUEST).facts


def test_a_connection_that_broke_while_nobody_used_it_is_not_noticed(engine_and_store, postgresql_place):
    _, store = engine_and_store
    end_sessions(postgresql_place)
    store.commit([version()])
    end_sessions(postgresql_place)
    assert PHYSICAL in store.load(REQUEST).facts


@pytest.mark.parametrize(("failures", "is_written"), [(2, True), (99, False)])
def test_a_transaction_that_the_server_undid_is_tried_again_a_few_times(
    engine_and_store, postgresql_place, failures, is_written
):
    _, store = engine_and_store
    # A sequence is not taken back with a transaction, so it counts the tries.
    execute(postgresql_place, "CREATE SEQUENCE tries")
    execute(
        postgresql_place,
        f"""CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF nextval('tries') <= {failures} THEN RAISE EXCEPTION 'undone' USING ERRCODE = '40001'; END IF;
            RETURN NEW;
        END $$""",
    )
    execute(
        postgresql_place, "CREATE TRIGGER undo BEFORE INSERT ON lamina_versions FOR EACH ROW EXECUTE FUNCTION undo()"
    )
    if is_written:
        store.commit([version()])
    else:
        with pytest.raises(StateError, match="5 times"):
            store.commit([version()])
    assert bool(store.load(REQUEST).facts) == is_written


def test_a_user_without_rights_is_told_that_the_state_is_unwritable(postgresql, postgresql_place, tmp_path):
    owner = SqlStateStore(PostgresBackend(postgresql_place.url))
    owner.commit([version()])
    owner.close()
    role = f"reader_{tmp_path.name.translate({ord('-'): '_'})}".lower()
    with psycopg.connect(postgresql_place.url, autocommit=True) as connection:
        schema = connection.execute("SELECT current_schema()").fetchone()[0]
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")
    reader = SqlStateStore(PostgresBackend(postgresql_place.url.replace("lamina@", f"{role}@")))
    assert PHYSICAL in reader.load(REQUEST).facts
    with pytest.raises(StateUnwritable):
        reader.commit([version(number=3)])
    reader.close()
    with psycopg.connect(postgresql_place.url, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {role}")
        connection.execute(f"DROP ROLE {role}")


def test_a_store_of_a_newer_lamina_is_neither_read_nor_written(engine_and_store, postgresql_place):
    _, store = engine_and_store
    execute(postgresql_place, "UPDATE lamina_store SET schema_version = 42")
    with pytest.raises(StateTooNew, match="42"):
        store.commit([version()])
    fresh = SqlStateStore(PostgresBackend(postgresql_place.url))
    with pytest.raises(StateTooNew, match="42"):
        fresh.unsettled()
    fresh.close()


def test_a_server_that_cannot_be_reached_is_told_without_the_password():
    store = SqlStateStore(PostgresBackend("postgresql://ada:sesame@127.0.0.1:1/books"))
    with pytest.raises(StateError, match="books") as error:
        store.unsettled()
    assert "sesame" not in str(error.value)
    store.close()


def test_leases_run_out_by_the_clock_of_the_server(postgresql_place):
    """The server is an hour ahead of this machine."""
    execute(
        postgresql_place,
        "CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql"
        " AS $$ SELECT pg_catalog.clock_timestamp() + interval '1 hour' $$",
    )
    ahead = SqlStateStore(PostgresBackend(postgresql_place.url + quote(",pg_catalog", safe="")))
    grant = ahead.take("version:x", owner(), seconds=60, fate_of=unknown)
    assert 3590 < (grant.taken_at.micros - machine_time().micros) / 1_000_000 < 3610
    assert ahead.unsettled().is_empty
    with pytest.raises(LeaseHeld):
        ahead.take("version:x", owner(2), seconds=60, fate_of=unknown)
    execute(postgresql_place, "UPDATE lamina_leases SET expires_at = expires_at - 61000000")
    assert [lease.token for lease in ahead.unsettled().leases] == [1]
    assert ahead.take("version:x", owner(2), seconds=60, fate_of=unknown).lease.token == 2
    ahead.close()


def test_every_look_up_uses_an_index(engine_and_store, postgresql_place):
    engine, store = engine_and_store
    for number in range(1, 30):
        finish(store, number, number)
    store.commit([version()])
    for table, row in {
        "work": "'p' || n % 1000, n, 1, NULL, NULL, '', '', NULL, NULL, ''",
        "heads": "'p' || n % 1000, n, 'g', 1, '', NULL, ''",
        "rewrites": "'p' || n % 1000, n, '', 0",
        "audited": "'p' || n % 1000, n, ''",
        "versions": "'p' || n, 'n', 'v' || n, 1, 'd', 'FULL', '', '', '', '', '', '', '', 0",
        "leases": "'r' || n, 1, '', 'released', 0",
        "manifest": "'p' || n % 1000, 'k', n, ''",
    }.items():
        rows = f"SELECT {row} FROM generate_series(1, 3000) AS n"
        execute(postgresql_place, f"INSERT INTO lamina_{table} {rows}")
    execute(postgresql_place, "ANALYZE")
    statements: dict[str, object] = {}
    event.listen(engine, "before_cursor_execute", lambda *call: statements.setdefault(call[2], call[3]))
    store.unsettled()
    store.load(LoadRequest(versions=((ORDERS, version_id()),), heads=(PHYSICAL,), manifests=(PHYSICAL,)))
    store.load(LoadRequest(rewrites=(Read(physical=PHYSICAL, sequence=1),)))
    finish(store, 30, 30)
    queries = {text: given for text, given in statements.items() if text.startswith(("SELECT", "WITH"))}
    with psycopg.connect(postgresql_place.url) as connection:
        # So few rows are read quickest from end to end; what matters is how many rows are looked up.
        connection.execute("SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off")
        for text, given in queries.items():
            plan = [line for (line,) in connection.execute(f"EXPLAIN {text}", given)]
            for line, following in pairwise([*plan, ""]):
                if " on lamina_" in line and "Bitmap Heap Scan" not in line and not is_small(line):
                    assert "Index Cond" in following, f"{text}\n" + "\n".join(plan)
    assert len(queries) > 8


def test_indexes_of_what_is_open_leave_out_what_is_not(engine_and_store, postgresql_place):
    with psycopg.connect(postgresql_place.url) as connection:
        found = connection.execute(
            "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND indexdef LIKE '% WHERE %'"
        ).fetchall()
    assert {name for (name,) in found} == {
        "lamina_leases_open",
        "lamina_environments_behind",
        "lamina_revisions_checkpoints",
    }


def is_small(line: str) -> bool:
    """Whether a step of a plan reads what is true now instead of history."""
    return any(name in line for name in ("unfinished", "environments", "store", "numbers", "leases_open"))
