"""Spark replaces `${…}` in whatever it parses; of what reaches it through Lamina nothing is, unless a model says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lamina.app.ports.engine import ShowView, SqlQuery, StatementsRequest
from lamina.errors import EngineError
from lamina.graph.names import NodeName
from lamina.spark.engine import SparkEngine
from lamina.spark.sessions.embedded import SparkSettings
from lamina.spark.sessions.session import Sessions, is_connect
from lamina.spark.sessions.substitution import SUBSTITUTION
from tests.kit.told import told
from tests.spark.driver import Table, next_number, on_lines

pytest_plugins = ["tests.ports.conftest_engine"]

# Every process has a PATH; the second is known to nobody and would become an empty text.
TEXTS = ("${env:PATH}", "${system:java.home}", "${spark.app.name}", "${nobody.knows}")
TEXT = " ".join(TEXTS)
LITERALS = ", ".join(f"'{text}' AS t{index}" for index, text in enumerate(TEXTS))
SUBSTITUTES = {SUBSTITUTION: "true"}


@pytest.fixture(autouse=True)
def schema(engine: SparkEngine) -> None:
    """Where these tests make views by themselves."""
    another(engine).sql("CREATE SCHEMA IF NOT EXISTS suite")


@pytest.fixture(params=["own", "handed in"])
def any_engine(request: pytest.FixtureRequest, engine: SparkEngine, tmp_path: Path) -> Iterator[SparkEngine]:
    """Lamina's own session, and one that replaces, as Spark's do by default."""
    if request.param == "own":
        yield engine
        return
    mine = another(engine)
    handed = SparkEngine(SparkSettings(home=tmp_path), lambda _event: None, lambda _name: None, session=mine)
    handed.prepare("test")
    yield handed
    assert mine.conf.get(SUBSTITUTION) == "true"
    handed.close()


def another(engine: SparkEngine) -> SparkSession:
    """A session with Spark's default, in the same JVM."""
    root = engine.frame("SELECT 1").sparkSession
    mine = root.cloneSession() if is_connect(root) else root.newSession()  # type: ignore[attr-defined]
    mine.conf.set(SUBSTITUTION, "true")
    return mine


@pytest.fixture
def own_table(any_engine: SparkEngine) -> Table:
    return Table(engine=any_engine, schema="suite", name=f"s{next_number()}")


def test_the_users_own_session_would_replace_them(engine: SparkEngine) -> None:
    (row,) = another(engine).sql(f"SELECT {LITERALS}").collect()
    assert not set(row) & set(TEXTS)


def test_literals_of_queries_stay(own_table: Table) -> None:
    own_table.write(f"SELECT {LITERALS}")
    assert own_table.rows() == [TEXTS]


def test_ad_hoc_queries_stay(any_engine: SparkEngine) -> None:
    assert any_engine.query(f"SELECT {LITERALS}", limit=None).rows == (TEXTS,)


def test_values_of_partitions_stay(own_table: Table) -> None:
    own_table.partitioned_by = ("p",)
    listed = ", ".join(f"('{text}')" for text in TEXTS)
    own_table.write(f"SELECT 1 AS id, p FROM VALUES {listed} v(p)")
    assert own_table.rows("p") == sorted((text,) for text in TEXTS)
    assert len(own_table.manifest) == len(TEXTS)
    for text in TEXTS:
        assert own_table.rows(f"'{text}' AS p") == [(text,)] * len(TEXTS)


def test_comments_and_properties_stay(own_table: Table) -> None:
    own_table.comments = {"id": TEXT}
    own_table.write("SELECT 1 AS id")
    engine = own_table.engine
    logical = f"{own_table.schema}.view_{own_table.name}"
    engine.show(
        [
            ShowView(
                logical=logical,
                physical=own_table.physical,
                comment=TEXT,
                properties={"of": TEXT},
            )
        ]
    )
    told = repr(engine.query(f"DESCRIBE EXTENDED {logical}", limit=None).rows)
    properties = repr(engine.query(f"SHOW TBLPROPERTIES {logical}", limit=None).rows)
    columns = repr(engine.query(f"DESCRIBE {own_table.physical}", limit=None).rows)
    assert TEXT in told
    assert TEXT in properties
    assert TEXT in columns
    (found,) = engine.describe([NodeName(str(own_table.physical))])
    assert found.columns is not None
    assert found.columns[0].comment == TEXT


def test_statements_around_a_query_and_behind_a_view_stay(own_table: Table) -> None:
    prepare, follow = (f"{own_table.schema}.{own_table.name}_{when}" for when in ("prepared", "followed"))
    own_table.write(
        SqlQuery(
            sql="SELECT * FROM prepared",
            pre_statements=on_lines(f"CREATE TEMPORARY VIEW prepared AS SELECT {LITERALS}"),
            post_statements=on_lines(f"CREATE VIEW {prepare} AS SELECT {LITERALS}"),
        )
    )
    own_table.engine.execute(
        StatementsRequest(
            node=NodeName("suite.t"),
            environment="dev",
            statements=on_lines(f"CREATE VIEW {follow} AS SELECT {LITERALS}"),
        )
    )
    assert own_table.rows() == [TEXTS]
    for name in (prepare, follow):
        assert own_table.engine.query(f"SELECT * FROM {name}", limit=None).rows == (TEXTS,)


def test_a_stored_view_shows_its_text_to_sessions_that_replace(own_table: Table, engine: SparkEngine) -> None:
    name = f"{own_table.schema}.{own_table.name}_stored"
    own_table.engine.execute(
        StatementsRequest(
            node=NodeName("suite.t"),
            environment="dev",
            statements=on_lines(f"CREATE VIEW {name} AS SELECT {LITERALS}"),
        )
    )
    assert tuple(another(engine).table(name).collect()[0]) == TEXTS


def test_lazy_frames_stay(any_engine: SparkEngine) -> None:
    if (
        is_connect(any_engine.frame("SELECT 1").sparkSession)
        and any_engine.frame("SELECT 1").sparkSession.conf.get(SUBSTITUTION) == "true"
    ):
        with pytest.raises(EngineError, match="would replace"):
            any_engine.frame(f"SELECT {LITERALS}")
        return
    frame = any_engine.frame(f"SELECT {LITERALS}")
    assert tuple(frame.collect()[0]) == TEXTS
    frame.createOrReplaceTempView("lazily")
    assert tuple(any_engine.frame("SELECT * FROM lazily").collect()[0]) == TEXTS
    any_engine.frame("DROP VIEW lazily")
    with pytest.raises(EngineError):
        any_engine.frame("SELEC '${x}'")


def test_no_session_is_left_out(any_engine: SparkEngine) -> None:
    sessions: Sessions = any_engine._sessions
    with (
        sessions.apart() as apart,
        sessions.task("a", {}) as task,
        sessions.task("b", SUBSTITUTES) as said,
        sessions.task("c", {}, may_change=False) as reading,
    ):
        for session in (apart, task, said, reading, sessions.catalog()):
            assert session.sql("SELECT '${env:PATH}' AS t").collect()[0].t == "${env:PATH}"


# --- models that need it ----------------------------------------------------------------------------------------------
def test_a_model_that_says_so_has_its_own_texts_substituted_and_nothing_else(own_table: Table) -> None:
    own_table.settings = {**SUBSTITUTES, "my.own.setting": "here"}
    own_table.partitioned_by = ("p",)
    own_table.comments = {"set": TEXT}
    own_table.write(
        SqlQuery(
            sql="SELECT '${my.own.setting}' AS set, v.said, concat('$', '{env:PATH}') AS p FROM v",
            pre_statements=on_lines("CREATE TEMPORARY VIEW v AS SELECT '${my.own.setting}' AS said"),
            post_statements=on_lines("SELECT assert_true('${my.own.setting}' = 'here')"),
        )
    )
    assert own_table.rows("set, said, p") == [("here", "here", "${env:PATH}")]
    assert TEXT in repr(own_table.engine.query(f"DESCRIBE {own_table.physical}", limit=None).rows)
    other = Table(engine=own_table.engine, schema="suite", name=f"s{next_number()}")
    other.write("SELECT '${my.own.setting}' AS set")
    assert other.rows() == [("${my.own.setting}",)]


@pytest.mark.parametrize("said", [True, "true", "TRUE"])
def test_the_setting_may_be_written_in_any_way(engine: SparkEngine, said: object) -> None:
    table = Table(engine=engine, schema="suite", name=f"s{next_number()}", settings={SUBSTITUTION: said})  # type: ignore[dict-item]
    table.write("SELECT '${env:HOME}' AS home")
    assert table.rows() != [("${env:HOME}",)]


# --- whole projects, in sessions that are handed in and replace -------------------------------------------------------
@pytest.fixture(scope="module", params=["delta", "iceberg"])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return told("-m", "tests.spark.substitution_project", str(tmp_path_factory.mktemp("texts")), request.param)


@pytest.mark.timeout(900)
def test_every_text_of_a_project_stays_in_every_kind_and_format(seen: Any) -> None:
    assert set(seen["statuses"]) == {"succeeded"}, seen["problems"]
    both = [[1, TEXTS[0], TEXTS[0]], [2, TEXTS[3], TEXTS[0]]]
    for model, rows in seen["rows"].items():
        match model.partition(".")[2]:
            case "around" | "seen":
                assert rows == both[:1], model
            case _:
                assert rows == both, model
        assert seen["told"][model] >= 1, model
    assert seen["still"] == "true"
