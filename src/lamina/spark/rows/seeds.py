"""CSV text as typed rows, with every bad line reported."""

from __future__ import annotations

import math
import re
from collections import Counter
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from lamina.errors import BadSeed, BadTime, Location, raise_all
from lamina.graph.model import Column
from lamina.reading.csv_text import CsvFault, csv_rows, ragged_row, unreadable_line
from lamina.spark.rows.in_query import rows_in_query
from lamina.spark.rows.types import stored_type
from lamina.timeline.interval import Instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from lamina.app.ports.engine import SeedRows
    from lamina.graph.kinds import CsvSettings

MOST_PROBLEMS = 20

DEFAULT_NA = frozenset(
    {
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A"),
        *("NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    }
)

_INTEGER_LIMITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
_INTEGER = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:inf|infinity|nan)", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:\s?(?:Z|[+-]\d{2}:?\d{2}))?")
_BOOLEANS = {"true": True, "t": True, "yes": True, "y": True, "1": True} | {
    "false": False,
    "f": False,
    "no": False,
    "n": False,
    "0": False,
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_INFERRED: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("boolean", lambda text: text.lower() in {"true", "false"}),
    ("int", lambda text: _fits(text, "int") and not _has_leading_zero(text)),
    ("bigint", lambda text: _fits(text, "bigint") and not _has_leading_zero(text)),
    ("double", lambda text: _NUMBER.fullmatch(text) is not None and not _has_leading_zero(text)),
    ("date", lambda text: _DATE.fullmatch(text) is not None and _is_readable(text, "date")),
    ("timestamp", lambda text: _TIMESTAMP.fullmatch(text) is not None and _is_readable(text, "timestamp")),
)


def load_seed(session: SparkSession, seed: SeedRows, declared: Sequence[Column] | None) -> DataFrame:
    """The rows of a CSV file as a DataFrame."""
    columns, rows = read_seed(seed, declared)
    return rows_in_query(session, rows, columns)


def read_seed(seed: SeedRows, declared: Sequence[Column] | None) -> tuple[list[Column], list[list[Any]]]:
    """The columns of a CSV file, with declared or inferred types, and its rows.

    Raises `BadSeed` errors, all at once up to a limit.
    """
    header, rows = _read(seed)
    columns = _columns(header, rows, seed, declared)
    return columns, _typed(rows, columns, seed)


def _read(seed: SeedRows) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header and the numbered lines."""
    lines = _lines(seed)
    try:
        _, header = next(lines)
    except StopIteration:
        raise BadSeed(f"seed `{seed.file}` is empty", hint="write a line with the names of its columns") from None
    header = [name.strip() for name in header]
    repeated = [name for name, count in Counter(name.casefold() for name in header).items() if count > 1 and name]
    if repeated or not all(header):
        what = f"names column `{repeated[0]}` twice" if repeated else "has a column without a name"
        raise BadSeed(f"seed `{seed.file}` {what}", location=Location(file=seed.file, line=1))
    problems: list[BadSeed] = []
    rows: list[tuple[int, list[str]]] = []
    for line, fields in lines:
        if len(fields) != len(header):
            problems.append(ragged_row(seed.file, line, len(fields), len(header)))
            if len(problems) == MOST_PROBLEMS:
                break
        rows.append((line, fields))
    raise_all(problems)
    return header, rows


def _lines(seed: SeedRows) -> Iterator[tuple[int, list[str]]]:
    try:
        yield from csv_rows(seed.text, seed.settings)
    except CsvFault as error:
        raise unreadable_line(seed.file, error) from error


def _columns(
    header: list[str], rows: list[tuple[int, list[str]]], seed: SeedRows, declared: Sequence[Column] | None
) -> list[Column]:
    by_name = {column.name.casefold(): column for column in declared or ()}
    if declared:
        names = {name.casefold() for name in header}
        missing = [f"`{column.name}`" for column in declared if column.name.casefold() not in names]
        extra = [f"`{name}`" for name in header if name.casefold() not in by_name]
        if missing or extra:
            said = [f"{', '.join(missing)} declared but not in the file"] if missing else []
            said += [f"{', '.join(extra)} in the file but not declared"] if extra else []
            raise BadSeed(
                f"seed `{seed.file}` does not have the declared columns: {'; '.join(said)}",
                hint="make the file's header and `columns` agree",
                location=Location(file=seed.file, line=1),
            )
    columns = []
    for index, name in enumerate(header):
        known = by_name.get(name.casefold())
        if known is not None and known.type is not None:
            columns.append(Column(name=known.name, type=stored_type(known.type)))
        else:
            missing_values = _missing_values(seed.settings, name)
            values = [fields[index] for _, fields in rows if fields[index] not in missing_values]
            columns.append(Column(name=known.name if known else name, type=_infer(values)))
    return columns


def _infer(values: list[str]) -> str:
    """The narrowest type that all values have; text when there are none."""
    if not values:
        return "string"
    return next((name for name, fits in _INFERRED if all(fits(value) for value in values)), "string")


def _typed(rows: list[tuple[int, list[str]]], columns: list[Column], seed: SeedRows) -> list[list[Any]]:
    missing = [_missing_values(seed.settings, column.name) for column in columns]
    problems: list[BadSeed] = []
    typed: list[list[Any]] = []
    for line, fields in rows:
        values: list[Any] = []
        for column, text, nothing in zip(columns, fields, missing, strict=True):
            if text in nothing:
                values.append(None)
                continue
            try:
                values.append(_value(text, column.type or "string"))
            except (ValueError, InvalidOperation, OverflowError):
                values.append(None)
                if len(problems) < MOST_PROBLEMS:
                    problems.append(_bad_value(seed, line, column, text))
        typed.append(values)
    raise_all(problems)
    return typed


def _bad_value(seed: SeedRows, line: int, column: Column, text: str) -> BadSeed:
    shown = text if len(text) <= 80 else text[:80] + "…"
    return BadSeed(
        f"line {line} of seed `{seed.file}`, column `{column.name}`: `{shown}` is not a `{column.type}`",
        hint="correct the value, or declare another type in `columns`",
        location=Location(file=seed.file, line=line),
    )


def _missing_values(settings: CsvSettings, name: str) -> frozenset[str]:
    by_column = {column.casefold(): values for column, values in settings.na_values_by_column.items()}
    own = {*settings.na_values, *by_column.get(name.casefold(), ())}
    return frozenset(own | DEFAULT_NA) if settings.keep_default_na else frozenset(own)


def _value(text: str, wanted: str) -> Any:
    """The value of a text; `ValueError` and its like when it is not of that type."""
    stripped = text.strip()
    match wanted:
        case "string":
            return text
        case "boolean":
            return _boolean(stripped)
        case "tinyint" | "smallint" | "int" | "bigint":
            if not _fits(stripped, wanted):
                raise ValueError(text)
            return int(stripped)
        case "float" | "double":
            return _number(stripped)
        case "date":
            if _DATE.fullmatch(stripped) is None:
                raise ValueError(text)
            return date.fromisoformat(stripped)
        case "timestamp" | "timestamp_ntz":
            return _moment(stripped, wanted)
        case "binary":
            return text.encode()
        case _:
            return _decimal(stripped, wanted)


def _boolean(text: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[text.lower()]


def _number(text: str) -> float:
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(text)
    value = float(text)
    if math.isinf(value) and "inf" not in text.lower():
        raise ValueError(text)
    return value


def _moment(text: str, wanted: str) -> datetime:
    if _DATE.fullmatch(text) is None and _TIMESTAMP.fullmatch(text) is None:
        raise ValueError(text)
    moment = _parse_iso(text)
    if wanted == "timestamp_ntz" and (text[-1] in "Zz" or re.search(r"[+-]\d{2}:?\d{2}$", text[10:])):
        raise ValueError(text)
    return moment


def _decimal(text: str, wanted: str) -> Decimal:
    found = _DECIMAL.fullmatch(wanted)
    if found is None:
        raise ValueError(text)
    value = Decimal(text)
    if not value.is_finite():
        raise ValueError(text)
    # By hand, because arithmetic with decimals rounds to 28 digits.
    _, digits, exponent = value.as_tuple()
    significant = "".join(str(digit) for digit in digits).rstrip("0")
    exponent = int(exponent) + len(digits) - len(significant) if significant else 0
    precision, scale = int(found[1]), int(found[2])
    if -exponent > scale or len(significant.lstrip("0")) + exponent > precision - scale:
        raise ValueError(text)
    return value


def _parse_iso(text: str) -> datetime:
    try:
        return Instant.parse_iso(text).to_datetime()
    except BadTime as error:
        raise ValueError(text) from error


def _fits(text: str, wanted: str) -> bool:
    if _INTEGER.fullmatch(text) is None:
        return False
    limit: int = 2 ** _INTEGER_LIMITS[wanted]
    return -limit <= int(text) < limit


def _has_leading_zero(text: str) -> bool:
    """`007` is an identifier, not a number."""
    digits = text.lstrip("+-")
    return len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()


def _is_readable(text: str, wanted: str) -> bool:
    try:
        _value(text, wanted)
    except ValueError:
        return False
    return True
