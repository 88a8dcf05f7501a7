"""The time variables of a text: their names, the literals that stand for them, and filling them in."""

from __future__ import annotations

import re
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

from lamina.errors import MacroError
from lamina.sql.macros.text import code_mask, is_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PREFIXES = ("start", "end", "execution", "latest")
SPARK_DIALECTS = frozenset({"spark", "spark2", "databricks"})

# sqlglot writes a parameter in different ways, depending on the dialect: `@a`, `@{a}`, `$a`, `${a}` and `:a`.
_PLACEHOLDER = re.compile(r"(?<![\w@$:])[@$:](?:\{([^\W\d]\w*)\}|([^\W\d]\w*))")


class TimeLike(Protocol):
    """The value of a time variable: `kind` says its SQL type, `value` is its text or number."""

    @property
    def kind(self) -> str:
        """One of timestamp, timestamp_ntz, date, string, float and int."""
        ...

    @property
    def value(self) -> object:
        """Text in UTC, or a number."""
        ...


def placeholder(name: str) -> str:
    """How a value that is not known yet stands in the text."""
    return f"@{name}"


def time_literals(values: Mapping[str, TimeLike], dialect: str = "spark") -> Mapping[str, str]:
    """The values of time variables as SQL text: typed literals for Spark, casts for dialects that are transpiled."""
    return MappingProxyType({name: _literal(value.kind, value.value, dialect) for name, value in values.items()})


_SPARK_TYPES = {"timestamp": "TIMESTAMP", "timestamp_ntz": "TIMESTAMP_NTZ", "date": "DATE"}
_CAST_TYPES = {"timestamp": "TIMESTAMPTZ", "timestamp_ntz": "TIMESTAMPNTZ", "date": "DATE"}


def _literal(kind: str, value: object, dialect: str) -> str:
    text = exp.Literal.string(str(value))
    if kind == "string":
        return text.sql(dialect)
    if kind not in _SPARK_TYPES:
        # Parentheses keep a minus sign in front of the variable from starting a comment.
        return f"({value})" if str(value).startswith("-") else str(value)
    if dialect in SPARK_DIALECTS:
        return f"{_SPARK_TYPES[kind]} {text.sql(dialect)}"
    return exp.cast(text, _CAST_TYPES[kind]).sql(dialect)


_EPOCH = {
    "dt": ("timestamp", "1970-01-01 00:00:00+00:00"),
    "dtntz": ("timestamp_ntz", "1970-01-01 00:00:00"),
    "date": ("date", "1970-01-01"),
    "ds": ("string", "1970-01-01"),
    "ts": ("string", "1970-01-01 00:00:00"),
    "tstz": ("string", "1970-01-01 00:00:00+00:00"),
    "epoch": ("float", "0.0"),
    "millis": ("int", "0"),
    "hour": ("int", "0"),
}
TIME_NAMES = frozenset(f"{prefix}_{suffix}" for prefix in _PREFIXES for suffix in _EPOCH)

_STAND_INS = TIME_NAMES | {"this_model"}


@cache
def default_times(dialect: str) -> Mapping[str, str]:
    """Every time variable at 1970-01-01, for macros that need a value before there is an interval."""
    return MappingProxyType(
        {
            f"{prefix}_{suffix}": _literal(kind, value, dialect)
            for prefix in _PREFIXES
            for suffix, (kind, value) in _EPOCH.items()
        }
    )


def find_placeholders(text: str, dialect: str, names: frozenset[str]) -> Iterator[tuple[int, int, str]]:
    """Start, end and name of every placeholder of the given names outside strings, quoted names and comments."""
    if "@" not in text and "$" not in text and ":" not in text:
        return
    found = [match for match in _PLACEHOLDER.finditer(text) if (match[1] or match[2]).lower() in names]
    if not found:
        return
    mask = code_mask(text, dialect)
    for match in found:
        if is_code(mask, match.start()):
            yield match.start(), match.end(), (match[1] or match[2]).lower()


def stray_signs(text: str, dialect: str) -> Iterator[int]:
    """Where one `@` or several stand in an expanded text, outside of placeholders, strings, names and comments."""
    known = {match.start() for match in _PLACEHOLDER.finditer(text) if (match[1] or match[2]).lower() in _STAND_INS}
    signs = [match.start() for match in re.finditer("@+", text) if match.start() not in known]
    if not signs:
        return
    mask = code_mask(text, dialect)
    yield from (sign for sign in signs if is_code(mask, sign))


def time_value(name: str, times: Mapping[str, str]) -> str:
    """The SQL text of a time variable; raises `MacroError` when it has no value here."""
    other = name.replace("latest_", "execution_", 1)
    found = times.get(name) or times.get(other)
    if found is None:
        raise MacroError(
            f"`@{name}` has no value here",
            hint="`@start_*` and `@end_*` exist for models that are built by interval; `@execution_*` exists for all",
        )
    return found


def substitute_times(text: str, dialect: str, times: Mapping[str, str]) -> str:
    """Fill in the placeholders that symbolic expansion left: time variables, and `this_model` when it is given.

    Raises `MacroError` when a time variable of the text is not among `times`.
    """
    pieces: list[str] = []
    position = 0
    for start, end, name in find_placeholders(text, dialect, TIME_NAMES | frozenset(times)):
        pieces += text[position:start], time_value(name, times)
        position = end
    return "".join([*pieces, text[position:]]) if pieces else text
