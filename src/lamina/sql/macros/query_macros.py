"""The macros that write SQL: column lists, keys, deduplication, date spines, unions and arithmetic.

Each is written as Spark SQL; for a model in another dialect the result is translated into that dialect.
"""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import SqlglotError

from lamina.sql.macros.call import Items, Signature, nearest
from lamina.sql.macros.parse import parse, restore_symbols
from lamina.sql.macros.text import as_name, first_line, quote, shortened, text_of
from lamina.sql.macros.times import SPARK_DIALECTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lamina.errors import MacroError
    from lamina.sql.macros.call import Argument, Call, Result

_SEPARATOR = "|"
_NULL_MARK = "_null_"
_ROW_COLUMN = "_lamina_row"
_HASHES = {
    "MD5": "md5({0})",
    "SHA": "sha1({0})",
    "SHA1": "sha1({0})",
    "SHA224": "sha2({0}, 224)",
    "SHA256": "sha2({0}, 256)",
    "SHA384": "sha2({0}, 384)",
    "SHA512": "sha2({0}, 512)",
}
_SPINE_STEPS = {
    "day": "INTERVAL 1 DAY",
    "week": "INTERVAL 7 DAY",
    "month": "INTERVAL 1 MONTH",
    "quarter": "INTERVAL 3 MONTH",
    "year": "INTERVAL 1 YEAR",
}
_EARTH_DIAMETERS = {"mi": 7917.5117, "km": 12742.0176}


# --- from arguments to Spark SQL and back ----------------------------------------------------------------------------
def _to_spark(call: Call, text: str) -> str:
    """An expression of the model's dialect in Spark SQL."""
    if call.engine.dialect in SPARK_DIALECTS:
        return text
    return restore_symbols(_parsed(call, text).sql("spark"))


def _parsed(call: Call, text: str) -> exp.Expr:
    try:
        return parse(text, call.engine.dialect)
    except SqlglotError as error:
        raise call.fail(f"cannot read `{shortened(text)}`: {first_line(error)}") from error


def _from_spark(call: Call, text: str) -> str:
    """Spark SQL in the model's dialect."""
    dialect = call.engine.dialect
    if dialect in SPARK_DIALECTS:
        return text
    try:
        return restore_symbols(parse(text, "spark").sql(dialect))
    except SqlglotError as error:
        raise call.fail(f"cannot be written with these arguments: {first_line(error)}") from error


def _survives(call: Call, text: str) -> bool:
    """Whether Spark SQL comes back the same after a translation into the dialect, which some row generators do not."""
    if call.engine.dialect in SPARK_DIALECTS:
        return True
    back = _parsed(call, _from_spark(call, text)).sql("spark")
    return _normal(back) == _normal(parse(text, "spark").sql("spark"))


def _normal(text: str) -> str:
    """Spark SQL without the differences that any translation there and back may leave."""
    return text.replace("TRY_CAST", "CAST").upper()


def _operand(call: Call, argument: Argument) -> str:
    """An argument in Spark SQL that can stand inside any expression."""
    text = _to_spark(call, call.text(argument))
    return text if re.fullmatch(r"[\w.]+|'[^'\\]*'|\w+\([^()]*\)", text) else f"({text})"


def _list_of(call: Call, argument: Argument | None) -> list[str]:
    """The items of a list; text items without their quotes, as expressions."""
    if argument is None:
        return []
    return [_unquoted(call, text_of(rope).strip()) for rope in call.engine.items(argument)]


def _unquoted(call: Call, text: str) -> str:
    try:
        found = parse(text, call.engine.dialect)
    except SqlglotError:
        return text
    return found.name if isinstance(found, exp.Literal) and found.is_string else text


def _option(call: Call, argument: Argument | None, default: str) -> str:
    """A text option: a string, a bare word, or anything that evaluates to text."""
    if argument is None:
        return default
    text = call.text(argument)
    if re.fullmatch(r"\w+", text):
        return text
    value = call.engine.evaluate(argument)
    return "" if value is None else str(value)


def _flag(call: Call, argument: Argument | None, *, default: bool) -> bool:
    return default if argument is None else call.engine.holds(argument)


def _relation(call: Call, argument: Argument) -> tuple[str, str]:
    """A relation as SQL text, and its name without quotes for looking up columns."""
    text = _unquoted(call, call.text(argument))
    if text.startswith("("):
        return text, text
    try:
        table = exp.to_table(text, dialect=call.engine.dialect)
    except SqlglotError as error:
        raise call.fail(f"needs the name of a relation, got `{shortened(text)}`", location=argument.location) from error
    return text, ".".join(part.name for part in table.parts)


def _columns_missing(call: Call, name: str) -> MacroError:
    return call.fail(
        f"needs the columns of `{name}`, which are not known",
        "declare its columns: in the MODEL header, or in a file under `sources/`",
    )


# --- columns ---------------------------------------------------------------------------------------------------------
def _star(call: Call) -> Result:
    options = ("exclude", "prefix", "suffix", "quote_identifiers", "except_")
    bound = call.bind(Signature(names=("relation", "alias", *options), required=1))
    _, name = _relation(call, bound["relation"])
    alias = _unquoted(call, call.text(bound["alias"])) if "alias" in bound else ""
    excluded = _list_of(call, bound.get("exclude") or bound.get("except_"))
    prefix, suffix = _option(call, bound.get("prefix"), ""), _option(call, bound.get("suffix"), "")
    is_quoted = _flag(call, bound.get("quote_identifiers"), default=True)
    owner = f"{alias}." if alias else ""
    is_renamed = bool(prefix or suffix)
    columns = call.engine.columns(name)
    if columns is None and (call.engine.scope.columns_of is None or not is_renamed):
        return call.make(_unknown_star(call, owner, excluded))
    if columns is None:
        raise _columns_missing(call, name)
    hidden = {_bare_name(text) for text in excluded}
    dialect = call.engine.dialect
    write = quote if is_quoted else _plain
    found = []
    for column in columns:
        if column.lower() in hidden:
            continue
        source = f"{owner}{write(column, dialect)}"
        renamed = f" AS {write(f'{prefix}{column}{suffix}', dialect)}" if is_renamed else ""
        found.append(call.make(source + renamed))
    if not found:
        raise call.fail(f"leaves no column of `{name}`", "exclude fewer columns")
    return Items(ropes=tuple(found))


def _plain(name: str, dialect: str) -> str:
    return as_name(name, dialect, is_path=False)


def _bare_name(text: str) -> str:
    return text.strip('`"').lower()


def _unknown_star(call: Call, owner: str, excluded: Sequence[str]) -> str:
    """A star for a relation whose columns are not known; Spark leaves out the excluded ones itself."""
    if not excluded:
        return f"{owner}*"
    return _from_spark_star(call, owner, ", ".join(_plain(_bare_name(text), "spark") for text in excluded))


def _from_spark_star(call: Call, owner: str, excluded: str) -> str:
    star = f"{owner}* EXCEPT ({excluded})"
    if call.engine.dialect in SPARK_DIALECTS:
        return star
    select = parse(f"SELECT {star}", "spark")
    return str(select.expressions[0].sql(call.engine.dialect))


def _union(call: Call) -> Result:
    call.bind(Signature(takes_rest=True))
    arguments = list(call.positional)
    kind, is_whole = "ALL", True
    if arguments and _is_condition(call, arguments):
        is_whole = call.engine.holds(arguments.pop(0))
    if arguments and _is_string(arguments[0]):
        kind = _option(call, arguments.pop(0), "ALL").upper()
    if kind not in {"ALL", "DISTINCT"}:
        raise call.fail(f"joins with 'all' or 'distinct', got `{kind.lower()}`", nearest(kind, ["all", "distinct"]))
    if not arguments:
        raise call.fail("needs at least one relation", f"write `{call.shown}('all', first, second)`")
    relations = [_relation(call, argument) for argument in (arguments if is_whole else arguments[:1])]
    columns = _union_columns(call, [name for _, name in relations])
    queries = [f"SELECT {columns} FROM {text}" for text, _ in relations]
    return call.make(f" UNION {kind} ".join(queries))


def _is_string(argument: Argument) -> bool:
    return argument.end == argument.start + 1 and argument.source.tokens[argument.start].is_string


def _is_condition(call: Call, arguments: Sequence[Argument]) -> bool:
    """Whether the first argument of `@UNION` is a condition and not the kind of union or a relation."""
    if _is_string(arguments[0]):
        return False
    if len(arguments) > 1 and _is_string(arguments[1]):
        return True
    try:
        found = parse(call.text(arguments[0]), call.engine.dialect)
    except SqlglotError:
        return False
    return not isinstance(found, (exp.Column, exp.Dot, exp.Table, exp.Query))


def _union_columns(call: Call, names: Sequence[str]) -> str:
    """The columns all relations share, in the order and with the types of the first."""
    found = {name: call.engine.columns(name) for name in names}
    if call.engine.scope.columns_of is None:
        return "*"
    unknown = [name for name, columns in found.items() if columns is None]
    if unknown:
        raise _columns_missing(call, unknown[0])
    known = [columns for columns in found.values() if columns is not None]
    shared = set.intersection(*({column.lower() for column in columns} for columns in known))
    dialect = call.engine.dialect
    parts = [
        f"CAST({quote(column, dialect)} AS {type_}) AS {quote(column, dialect)}" if type_ else quote(column, dialect)
        for column, type_ in known[0].items()
        if column.lower() in shared
    ]
    if not parts:
        raise call.fail(f"finds no column that {' and '.join(f'`{name}`' for name in names)} share")
    return ", ".join(parts)


def _pivot(call: Call) -> Result:
    options = ("alias", "agg", "cmp", "prefix", "suffix", "then_value", "else_value", "quote", "distinct")
    bound = call.bind(Signature(names=("column", "values", *options), required=2))
    column = _operand(call, bound["column"])
    prefix, suffix = _option(call, bound.get("prefix"), ""), _option(call, bound.get("suffix"), "")
    aggregate = _option(call, bound.get("agg"), "SUM")
    compare = _option(call, bound.get("cmp"), "=")
    then = _operand(call, bound["then_value"]) if "then_value" in bound else "1"
    otherwise = _operand(call, bound["else_value"]) if "else_value" in bound else "0"
    distinct = "DISTINCT " if _flag(call, bound.get("distinct"), default=False) else ""
    is_named = _flag(call, bound.get("alias"), default=True)
    write = quote if _flag(call, bound.get("quote"), default=True) else _plain
    found = []
    for rope in call.engine.items(bound["values"]):
        text = text_of(rope).strip()
        test = f"{column} {compare} {_to_spark(call, text)}"
        value = _from_spark(call, f"{aggregate}({distinct}CASE WHEN {test} THEN {then} ELSE {otherwise} END)")
        name = write(f"{prefix}{_unquoted(call, text)}{suffix}", call.engine.dialect)
        found.append(call.make(f"{value} AS {name}" if is_named else value))
    return Items(ropes=tuple(found))


# --- rows ------------------------------------------------------------------------------------------------------------
def _deduplicate(call: Call) -> Result:
    bound = call.bind(Signature(names=("relation", "partition_by", "order_by"), required=3))
    relation, _ = _relation(call, bound["relation"])
    keys = [_to_spark(call, text) for text in _list_of(call, bound["partition_by"])]
    order = [_order_to_spark(call, text) for text in _list_of(call, bound["order_by"])]
    if not keys or not order:
        raise call.fail(
            "needs at least one partition column and one ordering",
            f"write `{call.shown}(relation, [key], ['time DESC'])`",
        )
    numbered = f"ROW_NUMBER() OVER (PARTITION BY {', '.join(keys)} ORDER BY {', '.join(order)}) AS {_ROW_COLUMN}"
    query = (
        f"SELECT * EXCEPT ({_ROW_COLUMN}) FROM (SELECT *, {numbered} FROM {_table_to_spark(call, relation)})"
        f" AS _lamina_numbered WHERE {_ROW_COLUMN} = 1"
    )
    return call.make(_from_spark(call, query))


def _order_to_spark(call: Call, text: str) -> str:
    select = _parsed(call, f"SELECT 1 ORDER BY {text}")
    if call.engine.dialect in SPARK_DIALECTS:
        return text
    return ", ".join(item.sql("spark") for item in select.args["order"].expressions)


def _table_to_spark(call: Call, relation: str) -> str:
    if call.engine.dialect in SPARK_DIALECTS:
        return relation
    return restore_symbols(_parsed(call, f"SELECT * FROM {relation}").sql("spark").removeprefix("SELECT * FROM "))


def _date_spine(call: Call) -> Result:
    bound = call.bind(Signature(names=("unit", "start", "end"), required=3))
    unit = _option(call, bound["unit"], "").lower()
    if unit not in _SPINE_STEPS:
        known = ", ".join(f"'{name}'" for name in _SPINE_STEPS)
        raise call.fail(f"knows the units {known}, got `{unit}`", nearest(unit, _SPINE_STEPS), bound["unit"].location)
    days = [_literal_day(call, bound[name]) for name in ("start", "end")]
    if days[0] is not None and days[1] is not None and days[1] < days[0]:
        raise call.fail(f"ends on {days[1]}, before its start {days[0]}", location=bound["end"].location)
    start, end = (_to_spark(call, call.text(bound[name])) for name in ("start", "end"))
    sequence = f"SEQUENCE(CAST({start} AS DATE), CAST({end} AS DATE), {_SPINE_STEPS[unit]})"
    query = f"SELECT EXPLODE({sequence}) AS date_{unit}"
    if not _survives(call, query):
        raise call.fail(
            f"cannot be written in the dialect {call.engine.dialect}", "write the model with `dialect spark`"
        )
    return call.make(_from_spark(call, query))


def _literal_day(call: Call, argument: Argument) -> date | None:
    """The day a string argument names; `None` for anything that is not a string."""
    if not _is_string(argument):
        return None
    text = argument.source.tokens[argument.start].value
    try:
        return date(*map(int, text[:10].split("-")))
    except (ValueError, TypeError, OverflowError) as error:
        raise call.fail(
            f"needs a date like '2024-01-31', got '{shortened(text)}'", location=argument.location
        ) from error


# --- expressions -----------------------------------------------------------------------------------------------------
def _surrogate_key(call: Call) -> Result:
    bound = call.bind(Signature(takes_rest=True, options=("hash_function",)))
    if not call.positional:
        raise call.fail("needs at least one column")
    name = _option(call, bound.get("hash_function"), "MD5").upper().replace("-", "")
    if name not in _HASHES:
        raise call.fail(f"knows the hash functions {', '.join(_HASHES)}, got `{name}`", nearest(name, _HASHES))
    parts: list[str] = []
    for argument in call.positional:
        result = call.engine.result(argument)
        ropes = result.ropes if isinstance(result, Items) else (result,)
        parts += [
            f"COALESCE(CAST({_to_spark(call, text_of(rope).strip())} AS STRING), '{_NULL_MARK}')" for rope in ropes
        ]
    joined = parts[0] if len(parts) == 1 else f"CONCAT({f', {_SEPARATOR!r}, '.join(parts)})"
    return call.make(_from_spark(call, _HASHES[name].format(joined)))


def _safe_fold(sign: str) -> Callable[[Call], Result]:
    def fold(call: Call) -> Result:
        call.bind(Signature(takes_rest=True))
        if len(call.positional) < 2:
            raise call.fail("needs at least two expressions")
        terms = [_operand(call, argument) for argument in call.positional]
        empty = " AND ".join(f"{term} IS NULL" for term in terms)
        total = f" {sign} ".join(f"COALESCE({term}, 0)" for term in terms)
        return call.make(_from_spark(call, f"CASE WHEN {empty} THEN NULL ELSE {total} END"))

    return fold


def _safe_div(call: Call) -> Result:
    bound = call.bind(Signature(names=("numerator", "denominator"), required=2))
    numerator, denominator = (_operand(call, bound[name]) for name in ("numerator", "denominator"))
    return call.make(_from_spark(call, f"{numerator} / NULLIF({denominator}, 0)"))


def _haversine(call: Call) -> Result:
    bound = call.bind(Signature(names=("lat1", "lon1", "lat2", "lon2", "unit"), required=4))
    lat1, lon1, lat2, lon2 = (_operand(call, bound[name]) for name in ("lat1", "lon1", "lat2", "lon2"))
    unit = _option(call, bound.get("unit"), "mi").lower()
    if unit not in _EARTH_DIAMETERS:
        raise call.fail(f"knows the units 'mi' and 'km', got `{unit}`")
    text = (
        f"{_EARTH_DIAMETERS[unit]} * ASIN(SQRT(POWER(SIN(RADIANS({lat2} - {lat1}) / 2), 2)"
        f" + COS(RADIANS({lat1})) * COS(RADIANS({lat2})) * POWER(SIN(RADIANS({lon2} - {lon1}) / 2), 2)))"
    )
    return call.make(_from_spark(call, text))


SQL_MACROS: Mapping[str, Callable[[Call], Result]] = {
    "star": _star,
    "union": _union,
    "pivot": _pivot,
    "deduplicate": _deduplicate,
    "date_spine": _date_spine,
    "generate_surrogate_key": _surrogate_key,
    "safe_add": _safe_fold("+"),
    "safe_sub": _safe_fold("-"),
    "safe_div": _safe_div,
    "haversine_distance": _haversine,
}
