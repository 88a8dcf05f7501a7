from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import BadPropertyValue, Location, SyntaxProblem
from lamina.sql.canonical import canonical_text
from lamina.sql.render import resolve_tables, strftime_to_spark, time_condition, wrap_time_filter
from lamina.sql.syntax import to_spark

GOLDEN = Path(__file__).parents[2] / "golden" / "sql"
TABLES = {
    "shop.orders": "`lake`.`orders__v1`",
    "shop.customers": "(SELECT * FROM `lake`.`customers__v2` WHERE `day` < 3)",
    "crm.orders": "`lake`.`crm_orders__v3`",
    "shop.`my orders`": "`lake`.`mine`",
}


# --- golden files: "input; expected;" pairs with "# key: value" lines above ------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    settings: dict[str, str]
    given: str
    expected: str


def read_cases(topic: str) -> list[Case]:
    cases: list[Case] = []
    for block in re.split(r"\n{2,}", (GOLDEN / f"{topic}.sql").read_text().strip()):
        lines = block.splitlines()
        settings = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))
        body = "\n".join(line for line in lines if not line.startswith("# "))
        given_text, expected, *_ = [*re.split(r";\n|;$", body), "", ""]
        cases.append(Case(settings=settings, given=given_text.strip(), expected=expected.strip()))
    return cases


def write_cases(topic: str, cases: list[Case]) -> None:
    blocks = []
    for case in cases:
        settings = [f"# {key}: {value}" for key, value in case.settings.items()]
        blocks.append("\n".join([*settings, f"{case.given};", f"{case.expected};"]))
    (GOLDEN / f"{topic}.sql").write_text("\n\n".join(blocks) + "\n")


def compute(topic: str, case: Case) -> str:
    dialect = case.settings.get("dialect", "spark")
    if topic == "resolve_tables":
        return resolve_tables(case.given, dialect, TABLES, default_schema=case.settings.get("default_schema"))
    return to_spark(case.given, dialect)


@pytest.mark.golden
@pytest.mark.parametrize("topic", ["resolve_tables", "to_spark"])
def test_the_text_for_spark_is_as_written_down(topic: str) -> None:
    cases = read_cases(topic)
    found = [Case(settings=case.settings, given=case.given, expected=compute(topic, case)) for case in cases]
    if os.environ.get("LAMINA_UPDATE_GOLDEN"):
        write_cases(topic, found)
    else:
        assert found == cases


# --- tables ----------------------------------------------------------------------------------------------------------
def test_text_that_names_no_known_table_stays_as_it_is() -> None:
    text = "SELECT date_sub(ds , 1)  AS d -- why\nFROM elsewhere"
    assert resolve_tables(text, "spark", TABLES) == text


def test_qualifiers_that_fit_two_tables_are_refused() -> None:
    with pytest.raises(SyntaxProblem) as caught:
        resolve_tables(
            "SELECT *\nFROM shop.orders JOIN crm.orders ON orders.id = crm.orders.id",
            "spark",
            TABLES,
            location=Location(file="m.sql", line=5, column=1),
        )
    assert caught.value.location == Location(file="m.sql", line=6, column=37)


@pytest.mark.parametrize("table", ["shop.orders", "shop.customers AS c"])
def test_an_older_version_of_a_model_is_refused(table: str) -> None:
    name, _, alias = table.partition(" ")
    with pytest.raises(SyntaxProblem):
        resolve_tables(f"SELECT * FROM {name} VERSION AS OF 3 {alias}", "spark", TABLES)


def test_a_default_catalog_may_be_written_out() -> None:
    assert "orders__v1" in resolve_tables("SELECT * FROM spark_catalog.shop.orders", "spark", TABLES)
    assert "orders__v1" in resolve_tables("SELECT * FROM lake.shop.orders", "spark", TABLES, default_catalog="lake")
    assert "orders__v1" not in resolve_tables("SELECT * FROM other.shop.orders", "spark", TABLES)


@st.composite
def queries(draw: st.DrawFn, depth: int = 2, hidden: tuple[str, ...] = ()) -> tuple[str, str]:
    """A query over shop.a, shop.b and shop.c, and the same query over lake.a_1, lake.b_1 and lake.c_1."""
    sources: list[tuple[str, str]] = []
    qualifiers: list[tuple[str, str]] = []
    cte = ("", "")
    if depth and draw(st.booleans()):
        name = draw(st.sampled_from("abc"))
        inner = draw(queries(depth=depth - 1, hidden=hidden))
        cte = (f"WITH {name} AS ({inner[0]}) ", f"WITH {name} AS ({inner[1]}) ")
        hidden = (*hidden, name)
    for index in range(draw(st.integers(1, 3))):
        table = draw(st.sampled_from("abc"))
        shape = draw(st.sampled_from(["aliased", "bare", "hidden", "subquery"]))
        if shape == "aliased":
            sources.append((f"shop.{table} AS t{index}", f"lake.{table}_1 AS t{index}"))
            qualifiers.append((f"t{index}", f"t{index}"))
        elif shape == "hidden" and hidden:
            sources.append((f"{hidden[-1]} AS t{index}", f"{hidden[-1]} AS t{index}"))
        elif shape == "subquery" and depth:
            inner = draw(queries(depth=depth - 1, hidden=hidden))
            sources.append((f"({inner[0]}) s{index}", f"({inner[1]}) s{index}"))
        elif all(f"shop.{table}" != source for source, _ in sources):
            sources.append((f"shop.{table}", f"lake.{table}_1 AS {table}"))
            qualifiers += [(table, table), (f"shop.{table}", table)]
    sources = sources or [("shop.a", "lake.a_1 AS a")]
    columns = [("'shop.a'", "'shop.a'"), ("x.y", "x.y")] + [(f"{old}.id", f"{new}.id") for old, new in qualifiers]
    columns += [(f"{old}.*", f"{new}.*") for old, new in qualifiers]
    chosen = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=3))
    condition = ("", "")
    if depth and draw(st.booleans()):
        inner = draw(queries(depth=depth - 1, hidden=hidden))
        condition = (f" WHERE EXISTS ({inner[0]})", f" WHERE EXISTS ({inner[1]})")
    return (
        f"{cte[0]}SELECT {', '.join(c[0] for c in chosen)} FROM {', '.join(s[0] for s in sources)}{condition[0]}",
        f"{cte[1]}SELECT {', '.join(c[1] for c in chosen)} FROM {', '.join(s[1] for s in sources)}{condition[1]}",
    )


@given(queries())
def test_only_the_names_of_tables_change(pair: tuple[str, str]) -> None:
    given_text, expected = pair
    tables = {f"shop.{name}": f"lake.{name}_1" for name in "abc"}
    assert canonical_text(resolve_tables(given_text, "spark", tables)) == canonical_text(expected)


# --- other dialects --------------------------------------------------------------------------------------------------
def test_sparks_own_text_is_not_touched() -> None:
    text = "SELECT  date_sub(a, 1), nvl(b, 2) FROM t -- as it is\n"
    assert to_spark(text, "spark") == text


def test_a_query_without_equivalent_in_spark_is_an_error() -> None:
    with pytest.raises(SyntaxProblem):
        to_spark("SELECT a FROM t WHERE a = 1 SELECT", "postgres")


def test_a_number_that_cannot_be_written_is_refused_with_its_place():
    with pytest.raises(SyntaxProblem) as caught:
        to_spark(f"SELECT 0x{'f' * 6000} AS x", "bigquery", Location(file="models/a.sql", line=2))
    assert caught.value.location == Location(file="models/a.sql", line=2)
    assert "cannot be translated to Spark" in caught.value.message


# --- time ------------------------------------------------------------------------------------------------------------
def test_the_filter_encloses_the_query_whatever_it_ends_with() -> None:
    wrapped = wrap_time_filter("WITH a AS (SELECT 1 AS x)\nSELECT * FROM a -- the end\n; -- really", "x > 0")
    assert wrapped == (
        "SELECT * FROM (\nWITH a AS (SELECT 1 AS x)\nSELECT * FROM a -- the end\n) AS _lamina\nWHERE x > 0"
    )
    assert canonical_text(wrapped) == canonical_text(
        "SELECT * FROM (WITH a AS (SELECT 1 AS x) SELECT * FROM a) AS _lamina WHERE x > 0"
    )


def test_the_filter_can_choose_columns() -> None:
    assert wrap_time_filter("SELECT 1", "true", ["a", "b c"]).startswith("SELECT `a`, `b c` FROM (")


DAY = ("2024-01-31 00:00:00.000000", "2024-02-01 00:00:00.000000")
PART = ("2024-01-31 06:30:00.000000", "2024-01-31 18:00:00.500000")


@pytest.mark.parametrize(
    ("kind", "bounds", "expected"),
    [
        ("date", DAY, "`t` >= DATE '2024-01-31' AND `t` < DATE '2024-02-01'"),
        ("date", PART, "`t` >= DATE '2024-02-01' AND `t` < DATE '2024-02-01'"),
        (
            "timestamp",
            DAY,
            "`t` >= TIMESTAMP '2024-01-31 00:00:00+00:00' AND `t` < TIMESTAMP '2024-02-01 00:00:00+00:00'",
        ),
        (
            "timestamp_ntz",
            PART,
            "`t` >= TIMESTAMP_NTZ '2024-01-31 06:30:00' AND `t` < TIMESTAMP_NTZ '2024-01-31 18:00:00.500000'",
        ),
    ],
)
def test_times_are_compared_in_utc(kind: str, bounds: tuple[str, str], expected: str) -> None:
    assert time_condition("t", kind, *bounds) == expected  # type: ignore[arg-type]  # a kind, as text


def test_texts_are_parsed_with_their_format_and_compared_as_they_are() -> None:
    assert time_condition("ds", "string", *DAY) == (
        "`ds` >= '2024-01-31' AND `ds` <= '2024-02-01' "
        "AND try_to_timestamp(concat(`ds`, 'Z'), 'yyyy-MM-ddXXX') >= TIMESTAMP '2024-01-31 00:00:00+00:00' "
        "AND try_to_timestamp(concat(`ds`, 'Z'), 'yyyy-MM-ddXXX') < TIMESTAMP '2024-02-01 00:00:00+00:00'"
    )


def test_integers_are_parsed_with_their_format() -> None:
    condition = time_condition("hour", "integer", *PART, "%Y%m%d%H")
    assert condition.startswith("`hour` >= 2024013106 AND `hour` <= 2024013118 AND try_to_timestamp(concat(CAST(")


def test_a_format_that_does_not_sort_is_only_parsed() -> None:
    assert time_condition("ds", "string", *DAY, "%d.%m.%Y").startswith("try_to_timestamp(")


def test_a_format_with_an_offset_needs_no_other() -> None:
    assert "concat" not in time_condition("ds", "string", *DAY, "%Y-%m-%d %H:%M:%S%z")


def test_an_integer_cannot_hold_dashes() -> None:
    with pytest.raises(BadPropertyValue):
        time_condition("ds", "integer", *DAY)


@pytest.mark.parametrize(
    ("time_format", "expected"),
    [
        ("%Y-%m-%d", "yyyy-MM-dd"),
        ("%Y%m%d%H%M%S%f", "yyyyMMddHHmmssSSSSSS"),
        ("%Y-%m-%dT%H:%M", "yyyy-MM-dd'T'HH:mm"),
        ("%-d. %B %y", "d. MMMM yy"),
        ("%I o'clock %p%%", "hh' o''clock 'a%"),
        ("%F %T", "yyyy-MM-dd HH:mm:ss"),
    ],
)
def test_formats_become_sparks_patterns(time_format: str, expected: str) -> None:
    assert strftime_to_spark(time_format) == expected


@pytest.mark.parametrize("time_format", ["%U", "%s", "%Z", "%a", "%Y-%", "%Q"])
def test_formats_without_equivalent_are_refused(time_format: str) -> None:
    with pytest.raises(BadPropertyValue):
        strftime_to_spark(time_format)
