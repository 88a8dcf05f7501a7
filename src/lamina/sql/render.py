"""The text that Spark gets: tables in place of model names, and rows outside of an interval filtered away."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Literal

from sqlglot import TokenType
from typing_extensions import assert_never

from lamina.errors import BadPropertyValue, SyntaxProblem
from lamina.sql.lineage.scopes import bind
from lamina.sql.names import quote, text_literal
from lamina.sql.session_statements import statement_parts
from lamina.sql.syntax import end_of_query, parse_query, place, to_spark, tokenise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlglot import Token

    from lamina.errors import Location
    from lamina.sql.lineage.scopes import Bindings, QualifiedColumn, Relation, TableReference
    from lamina.sql.names import TableName
    from lamina.sql.syntax import ParsedQuery

__all__ = [
    "resolve_statement_tables",
    "resolve_tables",
    "strftime_to_spark",
    "time_condition",
    "to_spark",
    "wrap_time_filter",
]

FILTERED = "_lamina"
"""The name of the query inside of a time filter."""

DEFAULT_TIME_FORMAT = "%Y-%m-%d"

TimeKind = Literal["date", "timestamp", "timestamp_ntz", "string", "integer"]

_SPARK_PATTERNS = {
    "Y": "yyyy",
    "y": "yy",
    "m": "MM",
    "-m": "M",
    "d": "dd",
    "-d": "d",
    "H": "HH",
    "-H": "H",
    "I": "hh",
    "-I": "h",
    "M": "mm",
    "-M": "m",
    "S": "ss",
    "-S": "s",
    "f": "SSSSSS",
    "j": "DDD",
    "b": "MMM",
    "B": "MMMM",
    "p": "a",
    "z": "xx",
    "F": "yyyy-MM-dd",
    "T": "HH:mm:ss",
    "R": "HH:mm",
}
_DIGITS = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2, "f": 6}
_DIRECTIVE = re.compile(r"%(-?.)|([^%]+)|%$", re.DOTALL)
_SPARK_CATALOG = "spark_catalog"
_HINT_NAME = re.compile(r"(?:`[^`]+`|\w+)(?:\.(?:`[^`]+`|\w+))*")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class _Edit:
    start: int
    end: int
    text: str


def resolve_tables(
    text: str,
    dialect: str,
    tables: Mapping[str, str],
    default_schema: str | None = None,
    default_catalog: str | None = None,
    location: Location | None = None,
) -> str:
    """The query in Spark's SQL with its table names replaced; all other text stays as it was written.

    `tables` gives, by the text of a table's name in lower case, the SQL that stands for it: a table name, or a subquery
    in parentheses. Names that it does not hold stay. A table written without a schema is also looked up in
    `default_schema`. A replaced table keeps answering to its old name in `orders.id`, `shop.orders.id` and
    `shop.orders.*`.
    """
    return _with_tables(parse_query(text, dialect, location), tables, default_schema, default_catalog, location)


def resolve_statement_tables(text: str, tables: Mapping[str, str]) -> str:
    """A statement of Spark's SQL whose queries read other tables, as `resolve_tables` does it for a query.

    Tables that the statement makes or changes stay, and so does all of a statement that cannot be read.
    """
    parts = statement_parts(text)
    return text if parts is None else parts.before + _with_tables(parts.reading, tables)


def _with_tables(
    query: ParsedQuery,
    tables: Mapping[str, str],
    default_schema: str | None = None,
    default_catalog: str | None = None,
    location: Location | None = None,
) -> str:
    bindings = bind(query.tree, location, default_schema)
    replaced: dict[TableReference, str] = {}
    for reference in bindings.references:
        found = None if reference.is_path else _look_up(reference.name, tables, default_schema, default_catalog)
        if found is not None:
            replaced[reference] = found
    if not replaced:
        return query.text
    aliases = _choose_aliases(bindings, replaced)
    edits = [edit for reference in replaced for edit in _replace(query, reference, replaced, aliases, location)]
    for column in bindings.columns:
        edits += _requalify(query, column, aliases, location)
    edits += _requalify_hints(query.tokens, aliases)
    return _apply(query.text, edits)


def wrap_time_filter(query_text: str, condition: str, columns: Sequence[str] | None = None) -> str:
    """The rows of a Spark query for which the condition holds, with these columns or all of them."""
    tokens = tokenise(query_text)
    inner = query_text[: end_of_query(query_text, tokens)].rstrip()
    selected = ", ".join(quote(column) for column in columns) if columns else "*"
    # The closing parenthesis stands on a line of its own, because the query may end with a comment.
    return f"SELECT {selected} FROM (\n{inner}\n) AS {FILTERED}\nWHERE {condition}"


def time_condition(column: str, kind: TimeKind, start: str, end: str, time_format: str | None = None) -> str:
    """A Spark condition that holds for exactly the rows whose time lies in `[start, end)`.

    `start` and `end` are UTC, written as `2024-01-31 00:00:00` with or without microseconds. Rows without a time, and
    strings and integers that do not follow the format, lie in no interval. The session's time zone plays no part,
    unless a session outside of UTC makes timestamps without zone its default type.
    """
    name = quote(column)
    first, after = datetime.fromisoformat(start), datetime.fromisoformat(end)
    match kind:
        case "date":
            # A date stands for its midnight: it is at or after an instant when it is not before the next midnight.
            return f"{name} >= DATE '{_next_midnight(first)}' AND {name} < DATE '{_next_midnight(after)}'"
        case "timestamp":
            return f"{name} >= TIMESTAMP '{_clock(first)}+00:00' AND {name} < TIMESTAMP '{_clock(after)}+00:00'"
        case "timestamp_ntz":
            return f"{name} >= TIMESTAMP_NTZ '{_clock(first)}' AND {name} < TIMESTAMP_NTZ '{_clock(after)}'"
        case "string" | "integer":
            return _text_condition(name, kind, first, after, time_format or DEFAULT_TIME_FORMAT)
        case _:
            assert_never(kind)


def strftime_to_spark(time_format: str) -> str:
    """Spark's datetime pattern for a format such as `%Y-%m-%d`.

    Two-digit years mean 2000 to 2099. Raises BadPropertyValue for directives that Spark cannot parse.
    """
    pattern = ""
    for directive, literal in _directives(time_format):
        if literal:
            pattern += _quote_literal(literal)
        elif directive == "%":
            pattern += "%"
        elif directive in _SPARK_PATTERNS:
            pattern += _SPARK_PATTERNS[directive]
        else:
            raise BadPropertyValue(
                f"`%{directive}` in the time format `{time_format}` has no equivalent in Spark",
                hint="use %Y, %m, %d, %H, %M, %S, %f, %j, %b, %B, %y, %I, %p or %z",
            )
    return pattern


def _text_condition(
    name: str, kind: Literal["string", "integer"], first: datetime, after: datetime, time_format: str
) -> str:
    pattern = strftime_to_spark(time_format)
    directives = _directives(time_format)
    if kind == "integer" and any(directive not in _DIGITS for directive, _ in directives):
        raise BadPropertyValue(
            f"an integer cannot hold a time in the format `{time_format}`",
            hint="give the time column a format of digits alone, such as `%Y%m%d`",
        )
    text = name if kind == "string" else f"CAST({name} AS STRING)"
    if "%z" not in time_format:
        # With the offset in the text, Spark does not fall back on the session's time zone.
        text, pattern = f"concat({text}, 'Z')", f"{pattern}XXX"
    parsed = f"try_to_timestamp({text}, {text_literal(pattern)})"
    exact = f"{parsed} >= TIMESTAMP '{_clock(first)}+00:00' AND {parsed} < TIMESTAMP '{_clock(after)}+00:00'"
    if not _is_sortable(directives):
        return exact
    # Comparing the values as they are decides nothing more, but lets Spark skip partitions and row groups.
    low, high = _write(first, directives), _write(after, directives)
    if kind == "string":
        low, high = text_literal(low), text_literal(high)
    return f"{name} >= {low} AND {name} <= {high} AND {exact}"


def _directives(time_format: str) -> list[tuple[str, str]]:
    """Pairs of a directive without its percent sign and a literal, one of which is empty."""
    return [(match.group(1) or "", match.group(2) or "") for match in _DIRECTIVE.finditer(time_format)]


def _is_sortable(directives: Sequence[tuple[str, str]]) -> bool:
    """Whether texts of the format sort like the times they stand for: fixed widths, greatest unit first."""
    units = [directive for directive, literal in directives if not literal]
    return units == list(_DIGITS)[: len(units)] and bool(units)


def _write(moment: datetime, directives: Sequence[tuple[str, str]]) -> str:
    values = {
        "Y": moment.year,
        "m": moment.month,
        "d": moment.day,
        "H": moment.hour,
        "M": moment.minute,
        "S": moment.second,
        "f": moment.microsecond,
    }
    return "".join(literal or f"{values[directive]:0{_DIGITS[directive]}d}" for directive, literal in directives)


def _quote_literal(literal: str) -> str:
    quoted = literal.replace("'", "''")
    return f"'{quoted}'" if re.search(r"[A-Za-z\[\]{}#']", literal) else quoted


def _clock(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(sep=" ")


def _next_midnight(moment: datetime) -> str:
    is_midnight = moment.replace(tzinfo=None).time() == time.min
    return (moment.date() if is_midnight else moment.date() + timedelta(days=1)).isoformat()


def _look_up(
    name: TableName, tables: Mapping[str, str], default_schema: str | None, default_catalog: str | None
) -> str | None:
    filled = name.in_schema(default_schema, default_catalog)
    candidates = [name.to_text(), filled.to_text(), name.in_schema(default_schema).to_text()]
    catalogs = {_SPARK_CATALOG} if default_catalog is None else {default_catalog.lower()}
    if name.catalog in catalogs:
        candidates.append(".".join(name.to_text().split(".")[1:]))
    elif name.catalog is None and name.schema is not None and default_catalog is not None:
        candidates.append(f"{default_catalog.lower()}.{name.to_text()}")
    return next((tables[candidate] for candidate in candidates if candidate in tables), None)


def _choose_aliases(bindings: Bindings, replaced: Mapping[TableReference, str]) -> dict[Relation, str]:
    """The alias of every replaced table that has none: its own name, or a longer one where that would be ambiguous."""
    unnamed = {
        relation: relation.reference.name
        for relation in bindings.relations
        if relation.reference is not None and relation.reference in replaced and not relation.reference.has_alias
    }
    fully_qualified: set[Relation] = set()
    for column in bindings.columns:
        relations, length = column.find()
        if length > 1:
            fully_qualified.update(relations)
    aliases: dict[Relation, str] = {}
    for relation, name in unnamed.items():
        rivals = [
            other
            for other in bindings.relations
            if other is not relation and other.words[-1] == name.table and other.words != relation.words
        ]
        is_mixed_up = rivals and (relation in fully_qualified or any(rival in fully_qualified for rival in rivals))
        aliases[relation] = "__".join(relation.words) if is_mixed_up else name.table
    return aliases


def _replace(
    query: ParsedQuery,
    reference: TableReference,
    replaced: Mapping[TableReference, str],
    aliases: Mapping[Relation, str],
    location: Location | None,
) -> list[_Edit]:
    replacement = replaced[reference]
    if reference.has_version and replacement.lstrip().startswith("("):
        raise SyntaxProblem(
            f"`{reference.name}` is asked for in an older version, which a model does not keep",
            hint="remove the VERSION or TIMESTAMP clause",
            location=place(query.text, reference.start, location),
        )
    edits = [_Edit(start=reference.start, end=reference.end, text=replacement)]
    alias = next((alias for relation, alias in aliases.items() if relation.reference is reference), None)
    if alias is None:
        return edits
    if reference.has_version:
        raise SyntaxProblem(
            f"`{reference.name}` is asked for in an older version and has no alias",
            hint=f"write `AS {alias}` after the VERSION or TIMESTAMP clause",
            location=place(query.text, reference.start, location),
        )
    end = _end_of_sample(query.tokens, reference.end)
    if end == reference.end:
        return [_Edit(start=reference.start, end=reference.end, text=f"{replacement} AS {quote(alias)}")]
    return [*edits, _Edit(start=end, end=end, text=f" AS {quote(alias)}")]


def _end_of_sample(tokens: Sequence[Token], offset: int) -> int:
    """Where an alias may stand: after `TABLESAMPLE (…)` and `REPEATABLE (…)`, when they follow."""
    end = offset
    depth = 0
    waits = False
    for token in tokens:
        if token.start < offset:
            continue
        if depth == 0 and not waits:
            if token.token_type is not TokenType.TABLE_SAMPLE and token.text.upper() != "REPEATABLE":
                break
            waits = True
        elif token.token_type is TokenType.L_PAREN:
            depth, waits = depth + 1, False
        elif token.token_type is TokenType.R_PAREN:
            depth -= 1
            if depth == 0:
                end = token.end + 1
    return end


def _requalify(
    query: ParsedQuery, column: QualifiedColumn, aliases: Mapping[Relation, str], location: Location | None
) -> list[_Edit]:
    relations, length = column.find()
    chosen = {aliases[relation] for relation in relations if relation in aliases}
    written = ".".join(part.word for part in column.parts[:length])
    if not chosen or chosen == {written}:
        return []
    start, end = column.parts[0].start, column.parts[length - 1].end
    if len(chosen) > 1 or any(relation not in aliases for relation in relations):
        raise SyntaxProblem(
            f"`{written}` may mean several tables here",
            hint="give the tables aliases with AS and qualify the column with one of them",
            location=place(query.text, start, location),
        )
    return [_Edit(start=start, end=end, text=quote(next(iter(chosen))))]


def _requalify_hints(tokens: Sequence[Token], aliases: Mapping[Relation, str]) -> list[_Edit]:
    """Hints name tables too: `/*+ BROADCAST(shop.orders) */`."""
    edits: list[_Edit] = []
    for token in tokens:
        if token.token_type is not TokenType.HINT:
            continue
        for match in _HINT_NAME.finditer(token.text):
            words = tuple(word.strip("`").lower() for word in match.group().split("."))
            chosen = {alias for relation, alias in aliases.items() if relation.answers_to(words)}
            if len(chosen) == 1 and chosen != {".".join(words)}:
                offset = token.start
                edits.append(_Edit(start=offset + match.start(), end=offset + match.end(), text=quote(*chosen)))
    return edits


def _apply(text: str, edits: Sequence[_Edit]) -> str:
    pieces: list[str] = []
    copied = 0
    for edit in sorted(edits):
        pieces += [text[copied : edit.start], edit.text]
        copied = edit.end
    return "".join([*pieces, text[copied:]])
