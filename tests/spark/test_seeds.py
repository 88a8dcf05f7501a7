"""CSV text as typed rows."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal

import pytest

from lamina.app.ports.engine import SeedRows
from lamina.errors import BadSeed, LaminaError
from lamina.graph.kinds import CsvSettings
from lamina.graph.model import Column
from lamina.spark.rows.seeds import read_seed


def seed(text: str, **settings: object) -> SeedRows:
    return SeedRows(text=text, settings=CsvSettings(**settings), file="seeds/s.csv")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "-5"], "int"),
        (["1", "2147483648"], "bigint"),
        (["1", "99999999999999999999"], "double"),
        (["1.5", "2", "1e3"], "double"),
        (["true", "FALSE"], "boolean"),
        (["2024-02-29", "NULL"], "date"),
        (["2024-02-30"], "string"),
        (["2024-01-01 10:00", "2024-01-01T10:00:00.5Z"], "timestamp"),
        (["007", "10"], "string"),
        (["1", "x"], "string"),
        (["NA", "null"], "string"),
    ],
)
def test_types_are_inferred(values: list[str], expected: str) -> None:
    columns, rows = read_seed(seed("\n".join(["c", *values])), None)
    assert columns == [Column(name="c", type=expected)]
    assert len(rows) == len(values)


def test_missing_values_are_null() -> None:
    _, rows = read_seed(seed("a,b\nN/A,x\n,-\n", na_values=("-",)), None)
    assert rows == [[None, "x"], [None, None]]
    _, rows = read_seed(seed("a,b\nNA,-\n", keep_default_na=False, na_values_by_column={"B": ("-",)}), None)
    assert rows == [["NA", None]]


def test_settings_say_how_the_file_is_written() -> None:
    text = "a;b\n'x;''y'; z\n"
    _, rows = read_seed(seed(text, delimiter=";", quotechar="'", skipinitialspace=True), None)
    assert rows == [["x;'y", "z"]]


def test_lines_may_end_in_a_character_of_their_own() -> None:
    columns, rows = read_seed(seed('a,b|1,"x|y"|2,two\nlines|', lineterminator="|"), None)
    assert [column.name for column in columns] == ["a", "b"]
    assert rows == [[1, "x|y"], [2, "two\nlines"]]


def test_declared_types_are_exact() -> None:
    declared = [
        Column(name="d", type="decimal(38,18)"),
        Column(name="t", type="timestamp"),
        Column(name="day", type="date"),
        Column(name="s", type="char(3)"),
        Column(name="n"),
    ]
    text = "d,t,day,s,n\n12345678901234567890.123456789012345678,2024-03-10 02:30:00+01:00,2024-01-01,007,5\n"
    columns, rows = read_seed(seed(text), declared)
    assert [column.type for column in columns] == ["decimal(38,18)", "timestamp", "date", "string", "int"]
    assert rows == [
        [
            Decimal("12345678901234567890.123456789012345678"),
            datetime(2024, 3, 10, 1, 30, tzinfo=timezone.utc),
            date(2024, 1, 1),
            "007",
            5,
        ]
    ]


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("int", "1.0"),
        ("tinyint", "128"),
        ("double", "1,5"),
        ("double", "1e999"),
        ("boolean", "maybe"),
        ("date", "2024-02-30"),
        ("date", "2024-01-01 10:00:00"),
        ("timestamp", "noon"),
        ("timestamp_ntz", "2024-01-01T00:00:00Z"),
        ("decimal(4,2)", "100"),
        ("decimal(4,2)", "1.234"),
        ("decimal(4,2)", "NaN!"),
    ],
)
def test_a_value_that_is_not_of_its_type_is_named(declared: str, value: str) -> None:
    with pytest.raises(BadSeed) as caught:
        read_seed(seed(f'id,v\n1,"{value}"\n'), [Column(name="id", type="int"), Column(name="v", type=declared)])
    assert caught.value.location is not None
    assert str(caught.value.location) == "seeds/s.csv:2"
    assert f"column `v`: `{value}` is not a `{declared}`" in caught.value.message


def test_every_bad_line_is_told_up_to_twenty() -> None:
    text = "a,b\n" + "1,2\n1\n1,2,3\n" * 15
    with pytest.raises(LaminaError) as caught:
        read_seed(seed(text), None)
    assert len(caught.value.problems) == 20
    assert caught.value.problems[0].message == "line 3 of seed `seeds/s.csv` has 1 field, the header has 2"
    with pytest.raises(LaminaError) as caught:
        read_seed(seed("a\n" + "x\n" * 30), [Column(name="a", type="int")])
    assert len(caught.value.problems) == 20


def test_lines_are_counted_through_quoted_line_breaks() -> None:
    with pytest.raises(BadSeed) as caught:
        read_seed(seed('a,b\n"x\ny",1\n\n1\n'), None)
    assert str(caught.value.location) == "seeds/s.csv:5"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("a,A\n1,2\n", "twice"),
        ("a,\n1,2\n", "without a name"),
        ('a\n"x\n', "line 2 of seed"),
        ('a\n"x"y\n', "line 2 of seed"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadSeed, match=said):
        read_seed(seed(text), None)


def test_settings_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(BadSeed, match="csv_settings"):
        read_seed(seed("a;;b\n", delimiter=";;"), None)


def test_declared_columns_must_be_those_of_the_file() -> None:
    with pytest.raises(BadSeed, match=r"`b` declared but not in the file; `c` in the file but not declared"):
        read_seed(seed("a,c\n1,2\n"), [Column(name="a", type="int"), Column(name="b", type="int")])


def test_a_file_with_only_a_header_has_no_rows() -> None:
    assert read_seed(seed("\ufeffa,b\n"), None) == (
        [Column(name="a", type="string"), Column(name="b", type="string")],
        [],
    )
