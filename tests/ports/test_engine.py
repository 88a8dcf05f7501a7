"""What every engine must do around rows, on a classic and on a Connect session alike."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from lamina.app.ports.engine import (
    AnalysisRequest,
    GenerationRequest,
    HideView,
    SeedRows,
    ShowView,
    SqlQuery,
    StatementsRequest,
)
from lamina.app.ports.published import AddPartitions, SetView, SwitchGeneration, TableShape
from lamina.errors import (
    AnalysisFailed,
    BadModelResult,
    BadSeed,
    Cancelled,
    EngineError,
    LaminaError,
    Location,
    NameTaken,
    Problems,
    QueryFailed,
)
from lamina.graph.kinds import CsvSettings, TimeColumn
from lamina.graph.model import Column
from lamina.graph.names import NodeName
from lamina.identity.naming import LogicalName, PhysicalName
from lamina.spark.engine import SparkEngine
from tests.spark.driver import DAY, THREE_DAYS, THREE_ROWS, Table, by_day, on_lines

pytest_plugins = ["tests.ports.conftest_engine"]
pytestmark = pytest.mark.spark


# --- statements around the query --------------------------------------------------------------------------------------
def test_statements_before_and_after_run_in_the_session_of_the_query(table: Table) -> None:
    outcome = table.write(
        SqlQuery(
            sql="SELECT * FROM helper",
            pre_statements=on_lines(
                "CREATE TEMPORARY VIEW helper AS SELECT 7 AS id", "SET spark.sql.shuffle.partitions=3"
            ),
            post_statements=on_lines("DROP VIEW helper"),
        )
    )
    assert outcome.statements >= 4
    assert table.rows() == [(7,)]
    with pytest.raises(AnalysisFailed):
        table.write("SELECT * FROM helper")


def test_a_failing_statement_before_the_query_says_so(table: Table) -> None:
    before = on_lines("SET a = 1", "DROP TABLE nowhere.nothing")
    with pytest.raises(AnalysisFailed, match=r"`DROP TABLE nowhere.nothing` before the query of") as caught:
        table.write(SqlQuery(sql="SELECT 1 AS id", pre_statements=before))
    assert caught.value.location == before[1].location


def test_settings_of_one_model_do_not_reach_another(table: Table) -> None:
    table.settings = {"spark.sql.ansi.enabled": "false"}
    table.write("SELECT CAST('x' AS int) AS id")
    assert table.rows() == [(None,)]
    table.settings = {}
    with pytest.raises(QueryFailed, match="CAST_INVALID_INPUT"):
        table.write("SELECT CAST('x' AS int) AS id")


def test_a_setting_that_cannot_be_changed_is_refused(table: Table) -> None:
    table.settings = {"spark.sql.warehouse.dir": "/elsewhere"}
    with pytest.raises(EngineError, match=r"`spark.sql.warehouse.dir` cannot be changed"):
        table.write("SELECT 1 AS id")


STATEMENTS = {
    "setting": ("SET spark.sql.ansi.enabled = false", "SELECT int('x') AS x"),
    "temporary view": ("CREATE TEMPORARY VIEW mine AS SELECT 1 AS x", "SELECT x FROM mine"),
    "temporary function": ("CREATE TEMPORARY FUNCTION one() RETURNS int RETURN 1", "SELECT one() AS x"),
    "variable": ("DECLARE VARIABLE one int DEFAULT 1", "SELECT one AS x"),
    "current schema": ("USE suite_other", "SELECT x FROM only_here"),
}


@pytest.fixture(scope="module")
def other_schema(engine: SparkEngine) -> str:
    engine.execute(
        statements("CREATE SCHEMA IF NOT EXISTS suite_other", "CREATE VIEW suite_other.only_here AS SELECT 1 AS x")
    )
    return "suite_other"


def statements(*texts: str, **settings: str) -> StatementsRequest:
    return StatementsRequest(
        node=NodeName("suite.t"),
        environment="dev",
        statements=on_lines(*texts),
        settings=settings,
    )


@pytest.mark.parametrize("what", STATEMENTS)
@pytest.mark.parametrize("place", ["before", "after", "behind the view"])
def test_what_statements_of_one_model_leave_behind_does_not_reach_another(
    table: Table, other_schema: str, what: str, place: str
) -> None:
    statement, query = STATEMENTS[what]
    one = "SELECT 1 AS x"
    if place == "before":
        table.write(SqlQuery(sql=query, pre_statements=on_lines(statement)))
    elif place == "after":
        table.write(SqlQuery(sql=one, post_statements=on_lines(statement, query)))
    else:
        table.engine.execute(statements(statement, query))
    with pytest.raises(LaminaError):
        table.write(query)
    with pytest.raises(LaminaError):
        table.engine.execute(statements(query))
    (outcome,) = table.engine.analyse([request("suite.t", f"SELECT * FROM ({query})")])
    assert outcome.error is not None or what == "setting"
    assert table.engine.query("SELECT current_schema()", limit=1).rows == (("default",),)


def test_settings_of_one_model_do_not_reach_its_neighbours_at_the_same_time(table: Table) -> None:
    other = replace(table, name=f"{table.name}_b", settings={"spark.sql.ansi.enabled": "false"})
    before, after = threading.Barrier(2, timeout=60), {}

    def write(one: Table, name: str, sql: str) -> None:
        before.wait()
        try:
            one.write(
                SqlQuery(sql=sql, pre_statements=on_lines(f"CREATE TEMPORARY VIEW own AS SELECT '{name}' AS who"))
            )
            after[name] = one.rows()
        except LaminaError as error:
            after[name] = error

    sql = "SELECT who, int('x') AS x FROM own"
    threads = [
        threading.Thread(target=write, args=(one, name, sql)) for one, name in ((table, "strict"), (other, "lax"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert isinstance(after["strict"], QueryFailed)
    assert after["lax"] == [("lax", None)]


# --- statements behind a view -----------------------------------------------------------------------------------------
def test_statements_behind_a_view_run_in_order_with_the_models_settings(
    engine: SparkEngine, table: Table, other_schema: str
) -> None:
    log = f"{other_schema}.{table.name}_log"
    engine.execute(
        statements(
            f"CREATE TABLE {log} (said string) USING parquet",
            "CREATE TEMPORARY VIEW mine AS SELECT int('x') IS NULL AS is_lax",
            f"INSERT INTO {log} SELECT concat(is_lax, ' ', current_timezone()) FROM mine",
            **{"spark.sql.ansi.enabled": "false"},
        )
    )
    assert engine.query(f"SELECT * FROM {log}", limit=None).rows == (("true UTC",),)


def test_the_first_statement_that_fails_is_told_with_its_place_and_ends_it(
    engine: SparkEngine, table: Table, other_schema: str
) -> None:
    made = f"{other_schema}.{table.name}_made"
    with pytest.raises(QueryFailed, match=r"`SELECT raise_error\('no role'\) AS x` failed: .*no role") as caught:
        engine.execute(
            statements("SELECT 1", "SELECT raise_error('no role') AS x", f"CREATE TABLE {made} (x int) USING parquet")
        )
    assert str(caught.value.location) == "models/t.sql:6"
    assert caught.value.node == "suite.t"
    (outcome,) = engine.describe([NodeName(made)])
    assert outcome.error is not None


# --- columns of external tables ---------------------------------------------------------------------------------------
def test_tables_are_described_with_types_and_comments_and_missing_ones_are_named(
    engine: SparkEngine, table: Table, other_schema: str
) -> None:
    name = NodeName(f"{other_schema}.{table.name}_raw")
    engine.execute(
        statements(
            f"CREATE TABLE {name} (id bigint COMMENT 'the key', price decimal(10,2),"
            " tags array<struct<a:int,`b c`:string>>, ds date) USING parquet PARTITIONED BY (ds)"
        )
    )
    found, missing = engine.describe([name, NodeName("suite.nowhere")])
    assert found.columns == (
        Column(name="id", type="bigint", comment="the key"),
        Column(name="price", type="decimal(10,2)"),
        Column(name="tags", type="array<struct<a:int,`b c`:string>>"),
        Column(name="ds", type="date"),
    )
    assert isinstance(missing.error, AnalysisFailed)
    assert "suite.nowhere" in missing.error.message


# --- seeds ------------------------------------------------------------------------------------------------------------
def test_a_seed_gets_the_types_its_values_show(table: Table) -> None:
    text = (
        "id,big,price,ok,day,at,zip,name\n"
        "1,5000000000,1.5,true,2024-01-31,2024-03-10 02:30:00,007,é\n"
        '2,NA,,false,,2024-01-01T12:00:00+02:00,"10","a,b"\n'
    )
    written = table.write(SeedRows(text=text, settings=CsvSettings(), file="seeds/s.csv"))
    assert [column.type for column in written.shape.columns] == [
        *("int", "bigint", "double", "boolean", "date", "timestamp", "string", "string")
    ]
    assert table.rows() == [
        (1, 5000000000, 1.5, True, "2024-01-31", "2024-03-10T02:30:00Z", "007", "é"),
        (2, None, None, False, None, "2024-01-01T10:00:00Z", "10", "a,b"),
    ]


def test_a_seed_gets_its_declared_types(table: Table, kind: str) -> None:
    table.columns = (
        Column(name="amount", type="decimal(38,10)"),
        Column(name="id", type="string"),
        Column(name="at", type="timestamp_ntz"),
    )
    text = "id,amount,at\n01,1234567890123456789012345678.0123456789,2024-03-10 02:30:00\n"
    table.write(SeedRows(text=text, settings=CsvSettings(), file="seeds/s.csv"))
    # Views in Iceberg's session catalog have no times without a zone; in UTC these read alike.
    zone = "Z" if kind == "iceberg" else ""
    assert table.rows() == [("1234567890123456789012345678.0123456789", "01", f"2024-03-10T02:30:00{zone}")]


def test_the_values_of_a_seed_arrive_as_they_were_written(table: Table) -> None:
    table.columns = tuple(
        Column(name=name, type=text)
        for name, text in [("t", "string"), ("b", "binary"), ("f", "float"), ("d", "double"), ("day", "date")]
    )
    text = (
        "t,b,f,d,day\n"
        '"a ""quoted"" \\ line\nand {:p0} \'one\' \U0001f600 ",é,0.1,-0.0,0001-01-01\n'
        "[],x,NaN,1e308,9999-12-31\n"
        ",,inf,-inf,1582-10-10\n"
    )
    table.write(SeedRows(text=text, settings=CsvSettings(na_values=("",), keep_default_na=False), file="seeds/s.csv"))
    shown = table.rows("t, hex(b), f = float('0.1') OR isnan(f) OR f = float('inf'), CAST(d AS STRING), day")
    assert shown == [
        ("[]", "78", True, "1.0E308", "9999-12-31"),
        ("a \"quoted\" \\ line\nand {:p0} 'one' \U0001f600 ", "C3A9", True, "-0.0", "0001-01-01"),
        (None, None, True, "-Infinity", "1582-10-10"),
    ]


def test_a_seed_without_rows_is_an_empty_table(table: Table) -> None:
    written = table.write(SeedRows(text="id,name\n", settings=CsvSettings(), file="seeds/s.csv"))
    assert (written.rows, table.rows()) == (0, [])


def test_a_large_seed_arrives_whole(table: Table) -> None:
    lines = "\n".join(f"{number},{'x' * 200}" for number in range(12_000))
    written = table.write(SeedRows(text=f"id,name\n{lines}\n", settings=CsvSettings(), file="seeds/s.csv"))
    assert written.rows == 12_000
    assert table.rows("count(DISTINCT id), sum(id), max(length(name))") == [(12_000, 71_994_000, 200)]


def test_a_bad_row_of_a_seed_is_named(table: Table) -> None:
    table.columns = (Column(name="id", type="int"), Column(name="day", type="date"))
    with pytest.raises(Problems) as caught:
        table.write(SeedRows(text="id,day\nx,2024-01-01\n2,soon\n", settings=CsvSettings(), file="seeds/s.csv"))
    assert [type(problem) for problem in caught.value.problems] == [BadSeed, BadSeed]
    assert [str(problem.location) for problem in caught.value.problems] == ["seeds/s.csv:2", "seeds/s.csv:3"]


# --- analysis ---------------------------------------------------------------------------------------------------------
def request(node: str, sql: str, **changes: object) -> AnalysisRequest:
    return replace(
        AnalysisRequest(node=NodeName(node), location=Location(file=f"{node}.sql"), rows=SqlQuery(sql=sql)), **changes
    )


def test_every_query_is_analysed_and_each_failure_is_told(engine: SparkEngine) -> None:
    good, bad, unparsable, seed = engine.analyse(
        [
            request("a", "SELECT 1 AS id, current_timestamp() AS at"),
            request("b", "SELECT nope FROM range(3)"),
            request("c", "SELEC 1"),
            AnalysisRequest(
                node=NodeName("d"),
                location=Location(file="d"),
                rows=SeedRows(text="id\n1\n", settings=CsvSettings(), file="seeds/d.csv"),
            ),
        ]
    )
    assert good.columns == (Column(name="id", type="int"), Column(name="at", type="timestamp"))
    assert isinstance(bad.error, AnalysisFailed)
    assert "UNRESOLVED_COLUMN" in bad.error.message
    assert str(bad.error.location) == "b.sql"
    assert isinstance(unparsable.error, AnalysisFailed)
    assert seed.columns == (Column(name="id", type="int"),)


def test_analysis_shows_declared_columns(engine: SparkEngine) -> None:
    declared = (Column(name="id", type="bigint"),)
    fits, lacks = engine.analyse(
        [request("a", "SELECT 1 AS id", columns=declared), request("b", "SELECT 1 AS x", columns=declared)]
    )
    assert fits.columns == declared
    assert isinstance(lacks.error, BadModelResult)


# --- publishing -------------------------------------------------------------------------------------------------------
def test_a_publish_done_twice_is_the_same(table: Table) -> None:
    table = by_day(table)
    table.write(THREE_ROWS, ("2024-01-01", "2024-01-03"))
    assert table.head is not None
    request = table.request(THREE_ROWS, ("2024-01-03", "2024-01-04"))
    written = table.engine.write(request)
    adding = AddPartitions(
        physical=table.physical, generation=table.head.generation, shape=written.shape, partitions=written.folders
    )
    switching = SwitchGeneration(physical=table.physical, generation=table.head.generation, shape=written.shape)
    for publish in (adding, adding, switching, switching):
        table.engine.publish(publish)
    assert table.rows("id") == [(1,), (2,), (3,)]


def test_a_partition_that_lies_elsewhere_is_told_and_left(table: Table) -> None:
    table = by_day(table)
    table.write(THREE_ROWS, THREE_DAYS)
    assert table.head is not None
    written = table.engine.write(replace(table.request(THREE_ROWS, DAY), base=None))
    with pytest.raises(EngineError, match="by what is recorded"):
        table.engine.publish(
            AddPartitions(
                physical=table.physical,
                generation=table.head.generation,
                shape=written.shape,
                partitions=written.folders,
            )
        )
    assert table.rows("id") == [(1,), (2,), (3,)]


def test_a_generation_made_again_is_what_was_asked_for_last(table: Table) -> None:
    table = by_day(table)
    request = table.request(THREE_ROWS, THREE_DAYS)
    written = table.engine.write(request)
    generation = GenerationRequest(
        physical=table.physical,
        shape=written.shape,
        manifest=dict(list(written.folders.items())[:2]),
        folder=request.folder,
        table=replace(request.table, properties={"team": "it's ours"}),
    )
    for manifest in (generation.manifest, generation.manifest, written.folders):
        table.engine.create_generation(replace(generation, manifest=manifest))
    count = f"SELECT count(*) FROM {request.table.generation}"
    assert table.engine.query(count, limit=1).rows == ((3,),)
    properties = dict(table.engine.query(f"SHOW TBLPROPERTIES {request.table.generation}", limit=None).rows)
    assert properties["team"] == "it's ours"
    assert properties["lamina.attempt"] == str(request.attempt)


def test_hundreds_of_partitions_are_added_at_once(table: Table) -> None:
    table = replace(table, partitioned_by=("g",), time_column=TimeColumn(name="ds"))
    table.write("SELECT 1 AS id, -1 AS g, DATE'2024-01-01' AS ds", ("2024-01-01", "2024-01-02"))
    assert table.head is not None
    request = table.request("SELECT id, CAST(id AS int) AS g, DATE'2024-01-02' AS ds FROM range(105)", DAY)
    written = table.engine.write(replace(request, columns=None))
    blocked = dict(list(written.folders.items())[100:101])
    adding = AddPartitions(
        physical=table.physical, generation=table.head.generation, shape=written.shape, partitions=blocked
    )
    table.engine.publish(adding)
    # All or none: the one that is there already, beyond the hundredth, keeps out all the others at first.
    elsewhere = {key: folder + "x" if key in blocked else folder for key, folder in written.folders.items()}
    with pytest.raises(EngineError, match="by what is recorded"):
        table.engine.publish(replace(adding, partitions=elsewhere))
    partitions = f"SHOW PARTITIONS {table.head.generation}"
    assert len(table.engine.query(partitions, limit=None).rows) == 2
    table.engine.publish(replace(adding, partitions=written.folders))
    assert len(table.engine.query(partitions, limit=None).rows) == 106


def test_versions_without_a_view_show_nothing(engine: SparkEngine, table: Table) -> None:
    missing = PhysicalName("no_such_schema__lamina.missing__v_0")
    assert engine.published([missing]) == {missing: None}
    assert engine.left_behind([missing]) == ()
    table.write("SELECT 1 AS id")
    assert table.head is not None
    assert engine.published([table.physical, missing]) == {table.physical: table.head.generation, missing: None}
    assert engine.left_behind([table.physical, missing]) == (table.physical,)


def test_a_view_shows_its_query_with_comments(engine: SparkEngine, table: Table) -> None:
    name = table.physical
    view = SetView(
        physical=name,
        generation=f"{name}__g_1",
        sql="SELECT id FROM range(3) -- a comment",
        shape=TableShape(columns=(Column(name="id", type="bigint", comment="the key"),)),
        description="what's in it",
    )
    for publish in (view, replace(view, generation=f"{name}__g_2"), replace(view, generation=f"{name}__g_2")):
        engine.publish(publish)
    assert engine.published([name]) == {name: f"{name}__g_2"}
    assert engine.query(f"DESCRIBE {name}", limit=None).rows == (("id", "bigint", "the key"),)
    engine.publish(replace(view, generation=f"{name}__g_3", sql="SELECT id FROM range(2)"))
    assert engine.query(f"SELECT * FROM {name}", limit=None).rows == ((0,), (1,))
    assert engine.published([name]) == {name: f"{name}__g_3"}
    # A statement of a process that slept since the first publish is noticed.
    engine.publish(view)
    assert engine.published([name])[name] in {f"{name}__g_1", f"{name}__g_2"}


def test_readers_never_fail_while_others_publish(table: Table) -> None:
    table = by_day(table)
    table.write(THREE_ROWS, THREE_DAYS)
    seen: list[int] = []
    failures: list[Exception] = []
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            try:
                found = table.engine.query(f"SELECT sum(id), count(*) FROM {table.physical}", limit=1).rows
            except LaminaError as error:
                failures.append(error)
                return
            seen.append(found[0][0])
            assert found[0][1] == 3

    reader = threading.Thread(target=read)
    reader.start()
    for number in (20, 200):
        table.write(f"SELECT {number} AS id, DATE'2024-01-02' AS ds", DAY)
    time.sleep(1)
    is_over.set()
    reader.join()
    assert failures == []
    assert seen[-1] == 204
    assert set(seen) <= {6, 24, 204}


# --- environments -----------------------------------------------------------------------------------------------------
def test_environment_views_follow_and_identical_ones_are_left_alone(table: Table) -> None:
    engine = table.engine
    table.comments = {"id": "the key"}
    table.write("SELECT 1 AS id")
    logical = LogicalName(f"{table.schema}__dev.{table.name}")
    view = ShowView(logical=logical, physical=table.physical, comment="it's mine", properties={"a": 1, "b": "x, y"})
    assert engine.show([view]) == 1
    assert engine.show([view]) == 0
    assert engine.query(f"SELECT * FROM {logical}", limit=1).rows == ((1,),)
    assert engine.query(f"DESCRIBE {logical}", limit=1).rows == (("id", "int", "the key"),)
    table.write("SELECT 2 AS id")
    assert engine.query(f"SELECT * FROM {logical}", limit=1).rows == ((2,),)
    assert engine.show([view]) == 0
    assert engine.show([replace(view, comment="another")]) == 1


def test_an_environment_view_has_the_properties_it_is_given_and_no_others(table: Table) -> None:
    engine = table.engine
    table.write("SELECT 1 AS id")
    logical = LogicalName(f"{table.schema}__dev.{table.name}")
    view = ShowView(logical=logical, physical=table.physical, properties={"team": "sales, EU", "a;b %": 1})

    def properties() -> dict[str, str]:
        rows = engine.query(f"SHOW TBLPROPERTIES {logical}", limit=None).rows
        return {str(key): str(value) for key, value in rows if not str(key).startswith(("lamina.", "view."))}

    assert engine.show([view]) == 1
    assert {"team": "sales, EU", "a;b %": "1"}.items() <= properties().items()
    assert engine.show([replace(view, properties={"team": "none"})]) == 1
    found = properties()
    assert found["team"] == "none"
    assert "a;b %" not in found
    assert engine.show([replace(view, properties={})]) == 1
    assert "team" not in properties()
    assert engine.show([replace(view, properties={})]) == 0


def test_an_environment_view_has_the_comment_of_its_version(engine: SparkEngine, table: Table) -> None:
    comment = "it's\nView Text: of ours: äöü"
    version = SetView(
        physical=table.physical,
        generation=f"{table.physical}__g_1",
        sql="SELECT 1 AS id",
        shape=TableShape(columns=(Column(name="id", type="int"),)),
        description=comment,
    )
    engine.publish(version)
    view = ShowView(logical=LogicalName(f"{table.schema}__dev.{table.name}"), physical=table.physical)
    assert engine.show([view]) == 1
    said = {row[0]: row[1] for row in engine.query(f"DESCRIBE TABLE EXTENDED {view.logical}", limit=None).rows}
    assert said["Comment"] == comment
    assert engine.show([view]) == 0


def test_an_environment_view_is_made_again_when_columns_change(table: Table) -> None:
    table.write("SELECT 1 AS id, 2 AS old")
    view = ShowView(logical=LogicalName(f"{table.schema}.{table.name}"), physical=table.physical)
    table.engine.show([view])
    table.write("SELECT 1 AS id, 'x' AS new")
    assert table.engine.show([view]) == 1
    assert table.engine.query(f"SELECT * FROM {view.logical}", limit=1).rows == ((1, "x"),)


def test_a_view_of_an_environment_goes_away(table: Table) -> None:
    table.write("SELECT 1 AS id")
    logical = LogicalName(f"{table.schema}__dev.{table.name}")
    table.engine.show([ShowView(logical=logical, physical=table.physical)])
    assert table.engine.show([HideView(logical=logical)]) == 1
    assert table.engine.show([HideView(logical=logical)]) == 0
    assert table.engine.show([HideView(logical=LogicalName("no_such_schema.t"))]) == 0


def test_what_strangers_made_is_never_touched(table: Table) -> None:
    engine = table.engine
    table.write(
        SqlQuery(
            sql="SELECT 1 AS id",
            pre_statements=on_lines(
                f"CREATE SCHEMA IF NOT EXISTS {table.schema}",
                f"CREATE TABLE {table.schema}.theirs USING parquet AS SELECT 5 AS id",
                f"CREATE VIEW {table.schema}.their_view AS SELECT 6 AS id",
            ),
        )
    )
    names = [LogicalName(f"{table.schema}.{name}") for name in ("theirs", "their_view", "mine")]
    with pytest.raises(Problems) as caught:
        engine.show([ShowView(logical=name, physical=table.physical) for name in reversed(names)])
    assert [type(problem) for problem in caught.value.problems] == [NameTaken, NameTaken]
    assert engine.show([HideView(logical=name) for name in names]) == 0
    both = f"SELECT (SELECT id FROM {names[0]}), (SELECT id FROM {names[1]})"
    assert engine.query(both, limit=1).rows == ((5, 6),)
    assert engine.query(f"SHOW VIEWS IN {table.schema} LIKE 'mine'", limit=None).rows == ()


# --- queries ----------------------------------------------------------------------------------------------------------
def test_rows_are_plain_values_that_mean_the_same_everywhere(engine: SparkEngine) -> None:
    result = engine.query(
        "SELECT TIMESTAMP'2024-07-01 12:00:00.25Z' AS at, TIMESTAMP_NTZ'2024-03-10 02:30:00' AS wall, "
        "DATE'2024-01-31' AS day, CAST(1.50 AS decimal(38,18)) AS price, X'00FF' AS raw, "
        "array(TIMESTAMP'2024-01-01 00:00:00Z') AS many, map('k', DATE'2024-01-01') AS by_name, "
        "named_struct('a', TIMESTAMP'2024-01-01 00:00:00Z', 'b', NULL) AS pair, "
        "double('NaN') AS nan, double('-Infinity') AS low, INTERVAL '1 02' DAY TO HOUR AS span, NULL AS nothing, "
        "1 AS twice, 2 AS twice",
        limit=10,
    )
    assert result.columns[0] == Column(name="at", type="timestamp")
    assert result.rows == (
        (
            *("2024-07-01T12:00:00.25Z", "2024-03-10T02:30:00", "2024-01-31", "1.500000000000000000", "00ff"),
            *(["2024-01-01T00:00:00Z"], {"k": "2024-01-01"}, {"a": "2024-01-01T00:00:00Z", "b": None}),
            *("NaN", "-Infinity", "INTERVAL '1 02' DAY TO HOUR", None, 1, 2),
        ),
    )
    assert not result.is_truncated


def test_a_limit_is_kept_and_told(engine: SparkEngine) -> None:
    result = engine.query("SELECT id FROM range(5) ORDER BY id", limit=2)
    assert (result.rows, result.is_truncated) == (((0,), (1,)), True)
    assert not engine.query("SELECT id FROM range(5)", limit=5).is_truncated
    assert len(engine.query("SELECT id FROM range(5)", limit=None).rows) == 5
    assert engine.query("SELECT id FROM range(5)", limit=0).rows == ()


def test_a_lazy_frame_can_be_had(engine: SparkEngine) -> None:
    assert engine.frame("SELECT 1 AS id").count() == 1


# --- cancelling -------------------------------------------------------------------------------------------------------
# On a Connect server a job may outlive an interrupt that comes before it has begun. So it runs for minutes rather than
# for ever, and keeps one core from the tests that follow, not all of them.
LONG = "SELECT id FROM range(0, 10000000000, 1, 1) WHERE hash(id) = 3 AND hash(id, id) = 4"


@pytest.mark.parametrize("seconds", [0, 0.1, 2], ids=["just called", "on their way", "running"])
def test_jobs_are_cancelled_wherever_they_are_and_work_goes_on_after(table: Table, seconds: float) -> None:
    caught: list[LaminaError] = []

    def work(do: object) -> None:
        try:
            do()  # type: ignore[operator]
        except LaminaError as error:
            caught.append(error)

    tasks = [
        threading.Thread(target=work, args=(lambda: table.engine.write(table.request(LONG)),), daemon=True),
        threading.Thread(target=work, args=(lambda: table.engine.query(LONG, limit=1),), daemon=True),
    ]
    for task in tasks:
        task.start()
    time.sleep(seconds)
    table.engine.cancel()
    for task in tasks:
        task.join(60)
        assert not task.is_alive()
    assert [type(error) for error in caught] == [Cancelled, Cancelled]
    for begin in (lambda: table.engine.query("SELECT 1", limit=1), lambda: table.write("SELECT 1 AS id")):
        with pytest.raises(Cancelled):
            begin()
    table.engine.prepare("test")
    table.write("SELECT 1 AS id")
    assert table.rows() == [(1,)]
