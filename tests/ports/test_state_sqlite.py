"""The state store on a file: where it lies, what can be wrong with it, and what reading it costs."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import event

from lamina.app.ports.facts import LeaseReleased, RevisionFollowed, RevisionWritten
from lamina.app.ports.loaded import LoadRequest, RevisionsSince
from lamina.errors import NoAnswer, StateError, StateTooNew, StateUnwritable
from lamina.state import sqlite, tables
from lamina.state.migrations.upgrade import MIGRATIONS, upgrade
from lamina.state.sqlite import SqliteBackend
from lamina.state.store import SqlStateStore
from tests.kit.state import (
    ORDERS,
    PHYSICAL,
    days,
    decided,
    done,
    finish,
    later,
    opened,
    owner,
    revision,
    unknown,
    version,
    version_id,
)

ROOT = Path(__file__).parents[2]
EVERYTHING = LoadRequest(
    environments=("prod",),
    versions=((ORDERS, version_id()),),
    definitions_of_pointers=True,
    heads=(PHYSICAL,),
    manifests=(PHYSICAL,),
)


@pytest.fixture
def file(sqlite_place) -> Path:
    return sqlite_place.base / ".lamina" / "state.db"


@pytest.fixture
def filled(sqlite_place, file) -> Path:
    """A closed store that holds a version."""
    store = sqlite_place.open()
    store.commit([version()])
    store.close()
    return file


def changed(file: Path, statement: str) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute(statement)
    connection.close()


# --- the file ---------------------------------------------------------------------------------------------------------
def test_the_first_write_makes_the_file_and_its_folder(sqlite_place, file):
    store = sqlite_place.open()
    assert not file.exists()
    store.commit([version()])
    assert file.exists()
    store.close()
    assert [path.name for path in file.parent.iterdir()] == ["state.db"]


def test_every_commit_is_forced_to_disk(filled):
    backend = SqliteBackend(filled)
    with backend.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
    backend.dispose()


def test_opening_a_store_that_is_up_to_date_makes_no_table(filled):
    backend = SqliteBackend(filled)
    statements: list[str] = []
    event.listen(backend._engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    store = SqlStateStore(backend)
    store.load(EVERYTHING)
    store.commit([version(number=2)])
    store.close()
    assert statements
    assert not [statement for statement in statements if statement.split()[0] in {"CREATE", "ALTER", "DROP"}]


def test_a_file_without_tables_is_an_empty_state(sqlite_place, file):
    file.parent.mkdir()
    file.touch()
    store = sqlite_place.open()
    assert store.unsettled().is_empty
    store.commit([version()])
    assert store.load(EVERYTHING).facts
    store.close()


@pytest.mark.parametrize("content", [b"this is no database at all " * 50, b"SQLite format 3\0" + b"\7" * 8000])
def test_a_file_that_is_no_database_is_told_with_its_name(sqlite_place, file, content):
    file.parent.mkdir()
    file.write_bytes(content)
    store = sqlite_place.open()
    for use in (store.unsettled, lambda: store.commit([version()]), lambda: store.store_id):
        with pytest.raises(StateError, match=r"state\.db") as error:
            use()
        assert error.value.hint
    store.close()
    assert file.read_bytes() == content


def test_a_damaged_page_is_a_state_error(filled, sqlite_place):
    content = bytearray(filled.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    filled.write_bytes(content)
    store = sqlite_place.open()
    with pytest.raises(StateError, match="damaged"):
        store.load(EVERYTHING)
    store.close()


def test_a_folder_in_place_of_the_file_is_a_state_error(sqlite_place, file):
    file.mkdir(parents=True)
    store = sqlite_place.open()
    with pytest.raises(StateError):
        store.load(EVERYTHING)
    with pytest.raises(StateUnwritable):
        store.commit([version()])
    store.close()


def test_a_file_in_place_of_the_folder_is_unwritable(sqlite_place, file):
    file.parent.write_text("not a folder")
    store = sqlite_place.open()
    assert store.unsettled().is_empty
    with pytest.raises(StateUnwritable, match="cannot be made") as error:
        store.commit([version()])
    assert "lamina.yaml" in error.value.hint
    store.close()


def test_a_store_of_a_newer_lamina_is_neither_read_nor_written(filled, sqlite_place):
    changed(filled, "UPDATE lamina_store SET schema_version = 42")
    content = filled.read_bytes()
    store = sqlite_place.open()
    for use in (store.unsettled, lambda: store.commit([version()]), lambda: store.store_id):
        with pytest.raises(StateTooNew, match="42") as error:
            use()
        assert "upgrade" in error.value.hint
    store.close()
    assert filled.read_bytes() == content


def test_a_store_upgraded_while_this_process_runs_is_not_written_any_more(filled, sqlite_place):
    store = sqlite_place.open()
    store.commit([version(number=2)])
    changed(filled, "UPDATE lamina_store SET schema_version = 42")
    with pytest.raises(StateTooNew):
        store.commit([version(number=3)])
    store.close()


def test_a_full_disk_is_told_and_writes_nothing(filled):
    backend = SqliteBackend(filled)
    event.listen(backend._engine, "connect", lambda connection, _: connection.execute("PRAGMA max_page_count = 1"))
    store = SqlStateStore(backend)
    with pytest.raises(StateUnwritable, match="disk is full"):
        store.commit([RevisionWritten(revision=revision(str(number))) for number in range(500)])
    assert not store.load(LoadRequest(all_environments=True)).revisions
    store.close()


def test_a_file_locked_for_too_long_is_told(filled, sqlite_place, monkeypatch):
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.2)
    other = sqlite3.connect(filled, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store = sqlite_place.open()
    assert store.load(EVERYTHING).facts
    with pytest.raises(StateError, match="locked by another process"):
        store.commit([version(number=2)])
    other.execute("ROLLBACK")
    store.commit([version(number=2)])
    store.close()
    other.close()


def run_as_is(place, body: str) -> str:
    """The answer of a process that has the store open as `store` and everything it needs imported."""
    code = f"""
import os, resource
from pathlib import Path
from lamina.app.ports.facts import *
from lamina.app.ports.loaded import *
from lamina.app.ports.published import *
from lamina.app.ports.requirements import *
from lamina.errors import *
from lamina.bootstrap import open_store
from tests.kit.state import *
store = open_store({place.url!r}, Path({str(place.base)!r}))
request = LoadRequest(versions=((ORDERS, version_id()),))
def drop_privileges():
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
def attempt_to(use):
    try:
        return use()
    except LaminaError as error:
        return type(error).__name__
{body}
store.close()
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    ).stdout


@pytest.fixture
def read_only(sqlite_place):
    """The project's folder, which nobody but the owner of the machine may write to."""

    def lock() -> None:
        for path in (sqlite_place.base, *sqlite_place.base.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        for parent in sqlite_place.base.parents:
            if parent.stat().st_uid == os.geteuid() and parent != parent.parent:
                parent.chmod(parent.stat().st_mode | stat.S_IXGRP | stat.S_IXOTH)

    yield lock
    for path in (sqlite_place.base, *sqlite_place.base.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


REPORT = """
drop_privileges()
print(len(attempt_to(lambda: store.load(request).facts)))
print(attempt_to(lambda: store.unsettled().is_empty))
print(attempt_to(lambda: store.commit([version(number=3)])))
print(attempt_to(lambda: store.take("version:x", owner(), seconds=1, fate_of=unknown)))
print(len(attempt_to(lambda: store.load(request).facts)))
"""


def test_a_read_only_project_without_state_can_be_planned_but_not_built(sqlite_place, read_only):
    read_only()
    assert run_as_is(sqlite_place, REPORT).split() == ["0", "True", "StateUnwritable", "StateUnwritable", "0"]
    assert list(sqlite_place.base.iterdir()) == []


def test_a_read_only_project_with_state_can_be_planned_but_not_built(sqlite_place, filled, read_only):
    read_only()
    assert run_as_is(sqlite_place, REPORT).split() == ["1", "True", "StateUnwritable", "StateUnwritable", "1"]


def test_a_read_only_project_can_be_read_while_its_owner_writes(sqlite_place, filled, read_only):
    store = sqlite_place.open()
    store.commit([version(number=2)])
    read_only()
    assert run_as_is(sqlite_place, REPORT).split() == ["1", "True", "StateUnwritable", "StateUnwritable", "1"]
    store.close()


def test_a_commit_that_the_disk_did_not_confirm_has_no_answer(sqlite_place, filled):
    answers = run_as_is(
        sqlite_place,
        """
store.commit([version(number=2)])
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
print(attempt_to(lambda: store.commit([version(number=3)])))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.commit([version(number=4)])
found = store.load(LoadRequest(versions=tuple((ORDERS, version_id(number)) for number in range(5)))).facts
print(max(facts.version for facts in found.values()))
""",
    ).split()
    assert answers == [NoAnswer.__name__, version_id(4)]


def test_state_in_a_file_imports_nothing_of_postgresql(sqlite_place, filled):
    found = "[name for name in sys.modules if 'postgresql' in name or 'psycopg' in name]"
    code = f"import sys; store.load(request); print({found})"
    assert run_as_is(sqlite_place, code).strip() == "[]"


# --- migrations -------------------------------------------------------------------------------------------------------
def test_missing_migrations_are_carried_out_in_order(filled):
    changed(filled, "CREATE TABLE notes (text TEXT)")
    steps = {
        3: lambda connection: connection.exec_driver_sql("INSERT INTO notes SELECT text || ', three' FROM notes"),
        2: lambda connection: connection.exec_driver_sql("INSERT INTO notes VALUES ('two')"),
    }
    backend = SqliteBackend(filled)
    with backend.writing() as connection:
        assert upgrade(connection, 1, steps) == 3
        assert upgrade(connection, 3, steps) == 3
    with backend.reading() as connection:
        notes = connection.exec_driver_sql("SELECT text FROM notes").scalars().all()
    backend.dispose()
    assert notes == ["two", "two, three"]


def test_a_store_too_old_for_any_migration_is_told(filled):
    backend = SqliteBackend(filled)
    with pytest.raises(StateError, match="schema version 1"), backend.writing() as connection:
        upgrade(connection, 1, {3: lambda _: None})
    backend.dispose()


def test_migrations_lead_to_the_tables_as_they_stand():
    assert max(MIGRATIONS, default=1) == tables.SCHEMA_VERSION


# --- cost -------------------------------------------------------------------------------------------------------------
class Meter:
    """Counts the steps of SQLite's virtual machine: how much work a statement is, whatever the machine does beside."""

    def __init__(self, place) -> None:
        backend = SqliteBackend(place.base / ".lamina" / "state.db")
        self.steps = 0
        event.listen(backend._engine, "connect", self._watch)
        self.store = SqlStateStore(backend)

    def _watch(self, connection: sqlite3.Connection, _record: object) -> None:
        connection.set_progress_handler(self._count, 1)

    def _count(self) -> int:
        self.steps += 1
        return 0

    def cost(self, use) -> int:
        use(self.store)
        before = self.steps
        use(self.store)
        return self.steps - before


def live_through(store, first: int, last: int) -> None:
    """One build a day: lease, attempt, publish, revision."""
    for number in range(first, last + 1):
        token = store.take("version:x", owner(), seconds=9, fate_of=unknown).lease.token
        partition = ("2024-01-01",)
        store.commit([opened(number, interval=days(1))])
        store.commit([decided(number, number, folders={partition: f"folder {number}"})])
        store.commit([done(number), LeaseReleased(resource="version:x", token=token)])
        store.commit([RevisionWritten(revision=revision(number=number))])
        store.commit([RevisionFollowed(environment="prod", number=number)])


def test_what_is_read_or_written_does_not_cost_more_with_a_longer_history(sqlite_place):
    days_so_far = 5
    store = sqlite_place.open()
    store.commit([version()])
    live_through(store, 1, days_so_far)
    meter = Meter(sqlite_place)

    def live_one_day(store) -> None:
        nonlocal days_so_far
        days_so_far += 1
        live_through(store, days_so_far, days_so_far)

    uses = {
        "start check": lambda store: store.unsettled(),
        "load": lambda store: store.load(EVERYTHING),
        "all environments": lambda store: store.load(LoadRequest(all_environments=True)),
        "one day": live_one_day,
    }
    early = {name: meter.cost(use) for name, use in uses.items()}
    live_through(store, days_so_far + 1, 80)
    days_so_far = 80
    late = {name: meter.cost(use) for name, use in uses.items()}
    meter.store.close()
    store.close()
    assert min(early.values()) > 0
    # A number grows by a digit, a tree by a level; neither makes a difference of a tenth.
    assert {name: cost for name, cost in late.items() if cost > early[name] * 1.1} == {}


def test_no_statement_reads_a_table_of_facts_from_end_to_end(sqlite_place):
    store = sqlite_place.open()
    live_through(store, 1, 3)
    store.close()
    backend = SqliteBackend(sqlite_place.base / ".lamina" / "state.db")
    statements: dict[str, object] = {}
    event.listen(backend._engine, "before_cursor_execute", lambda *call: statements.setdefault(call[2], call[3]))
    store = SqlStateStore(backend)
    store.commit([opened(9), RevisionWritten(revision=revision(number=4))])
    store.unsettled()
    store.load(EVERYTHING)
    since = (RevisionsSince(environment="prod", moment=later(1)),)
    store.load(LoadRequest(checkpoints_of=("prod",), revisions_since=since, definitions=("d",)))
    finish(store, 10, 4, interval=days(1))
    store.history(run_id="run-1")
    queries = {text: parameters for text, parameters in statements.items() if text.startswith(("SELECT", "WITH"))}
    plans = []
    with backend.reading() as connection:
        for text, parameters in queries.items():
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", parameters)
            plans += [(row.detail, text) for row in rows]
    store.close()
    small = (
        "listed",
        "keys",
        "CONSTANT",
        "sqlite_master",
        "lamina_unfinished",
        "lamina_environments",
        "lamina_store",
        "lamina_numbers",
    )
    scans = [(plan, text) for plan, text in plans if plan.startswith("SCAN") and plan.split()[1] not in small]
    partial = ("lamina_leases_open", "lamina_environments_behind")
    assert [scan for scan in scans if scan[0].split()[-1] not in partial] == []
    assert len(queries) > 15
