"""What a query reads and gives: tables, columns, functions, canonical text."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from sqlglot import TokenType, exp

from lamina.sql.canonical import canonical_query, canonical_tree
from lamina.sql.lineage.outputs import is_star, leftmost_select, outputs_of
from lamina.sql.lineage.scopes import bind
from lamina.sql.syntax import SPARK, comment_pattern, is_spark, parse_query, show, source_name, tokenise
from lamina.sql.types import spark_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlglot import Token

    from lamina.errors import Location
    from lamina.sql.lineage.outputs import Output
    from lamina.sql.lineage.scopes import TableReference
    from lamina.sql.syntax import ParsedQuery

_CHANGING_FUNCTIONS = frozenset(
    {"rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle", "monotonically_increasing_id"}
    | {"current_timestamp", "current_date", "curdate", "now", "localtimestamp", "current_time"}
    | {"spark_partition_id", "input_file_name", "current_user", "session_user", "user"}
)
_CHANGING_NODES = (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime, exp.Localtimestamp, exp.CurrentUser)
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})
_AFTER_PROJECTIONS = frozenset(
    {
        TokenType.FROM,
        TokenType.LATERAL,
        TokenType.WHERE,
        TokenType.GROUP_BY,
        TokenType.HAVING,
        TokenType.ORDER_BY,
        TokenType.SORT_BY,
        TokenType.CLUSTER_BY,
        TokenType.DISTRIBUTE_BY,
        TokenType.WINDOW,
        TokenType.LIMIT,
        TokenType.UNION,
        TokenType.INTERSECT,
        TokenType.EXCEPT,
        TokenType.SEMICOLON,
    }
)


class _Place(IntEnum):
    """How a comment stands to a projection; the first of these that there are comments in counts."""

    BESIDE = 0
    ABOVE = 1
    INSIDE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputColumn:
    """A column of the result: the name Spark gives it, the comment beside it and what it is computed from."""

    name: str
    comment: str | None
    expression_sql: str
    canonical: str
    """The canonical text of the expression, alias left out."""
    is_name_certain: bool
    """False for an expression without alias whose name only Spark knows for sure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryShape:
    """Everything about a query that can be known without running it."""

    text: str
    """The query in Spark's SQL; offsets of references point into it."""
    references: tuple[TableReference, ...]
    output_columns: tuple[OutputColumn, ...] | None
    """None when a star over unknown columns, a pivot or a generator keeps them unknown."""
    select_star: bool
    function_names: frozenset[str]
    """Every function that is called, in lower case, with its schema where it was written; built-in ones too."""
    canonical: str
    declared_types: Mapping[str, str]
    """Spark types of columns that are cast at the top, by name in lower case."""
    is_deterministic: bool
    """False when the query calls something whose value differs from run to run."""


def analyse_query(
    text: str,
    dialect: str = SPARK,
    location: Location | None = None,
    schemas: Mapping[str, tuple[str, ...]] | None = None,
) -> QueryShape:
    """Read a query whose macros are expanded; time variables may still stand in it as `@start_ds`.

    `location` is the place of the first character, for errors. `schemas` gives columns of tables by the text of their
    names in lower case, so that stars over them can be expanded. Raises SyntaxProblem.
    """
    query = parse_query(text, dialect, location)
    outputs = outputs_of(query.tree, query.text, schemas)
    functions = _function_names(query)
    return QueryShape(
        text=query.text,
        references=tuple(bind(query.tree, location).references),
        output_columns=None
        if outputs is None
        else _describe(query, outputs, _projection_comments(text, dialect, query)),
        select_star=_selects_star(query.tree),
        function_names=functions,
        canonical=canonical_query(query),
        declared_types=_declared_types(outputs or ()),
        is_deterministic=_is_deterministic(query.tree, functions),
    )


def column_comments(text: str, dialect: str = SPARK) -> Mapping[str, str | None]:
    """What a query says about its columns, by their names in lower case; nothing where the columns are not known."""
    columns = analyse_query(text, dialect).output_columns or ()
    return {column.name.lower(): column.comment for column in columns}


def _describe(query: ParsedQuery, outputs: Sequence[Output], comments: Mapping[int, str]) -> tuple[OutputColumn, ...]:
    described: list[OutputColumn] = []
    for output in outputs:
        star = is_star(output.expression)
        expression = exp.column(output.name) if star else output.expression.unalias()
        described.append(
            OutputColumn(
                name=output.name,
                comment=None if star else comments.get(output.position),
                expression_sql=show(expression),
                canonical=canonical_tree(output.expression if star else expression, query.text),
                is_name_certain=output.is_name_certain,
            )
        )
    return tuple(described)


def _declared_types(outputs: Sequence[Output]) -> Mapping[str, str]:
    types: dict[str, str] = {}
    for output in outputs:
        expression = output.expression.unalias()
        while isinstance(expression, exp.Paren):
            expression = expression.this
        if isinstance(expression, exp.Cast):
            declared = spark_type(expression.to)
            if declared is not None:
                types[output.name.lower()] = declared
    return MappingProxyType(types)


def _selects_star(tree: exp.Expr) -> bool:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.SetOperation):
            waiting += [node.this, node.expression]
        elif isinstance(node, exp.Subquery):
            waiting.append(node.this)
        elif isinstance(node, exp.Select) and any(is_star(projection) for projection in node.expressions):
            return True
    return False


def _function_names(query: ParsedQuery) -> frozenset[str]:
    names: set[str] = set()
    for function in query.tree.find_all(exp.Func):
        if function.find_ancestor(exp.Hint) is not None:
            continue
        name = function.name.lower() if isinstance(function, exp.Anonymous) else source_name(function, query.text)
        if not name:
            continue
        parent = function.parent
        if isinstance(parent, exp.Dot) and parent.expression is function:
            qualifier = [part.name.lower() for part in parent.this.find_all(exp.Identifier, bfs=False)]
            name = ".".join([*qualifier, name])
        names.add(name)
    return frozenset(names)


def _is_deterministic(tree: exp.Expr, functions: frozenset[str]) -> bool:
    if functions & _CHANGING_FUNCTIONS or any(tree.find_all(*_CHANGING_NODES)):
        return False
    return all(sample.args.get("seed") for sample in tree.find_all(exp.TableSample))


def _projection_comments(written: str, dialect: str, query: ParsedQuery) -> Mapping[int, str]:
    """Comments about the projections of the outermost SELECT, by position, from the text as it was written.

    A projection's comment is what stands beside it on its lines; else the lines right above it, which a blank line cuts
    off; else what stands inside of it.
    """
    tokens = query.tokens if is_spark(dialect) else tokenise(written, dialect)
    select = leftmost_select(query.tree)
    spans = _projection_spans(tokens)
    if select is None or len(spans) != len(select.expressions):
        return {}
    begin = max((token.end + 1 for token in tokens if token.end < spans[0][0]), default=0)
    # Some dialects allow a comma behind the last projection; its comment may stand behind that.
    behind_last = (token for token in tokens if token.start >= spans[-1][1])
    end = next((token.start for token in behind_last if token.token_type is not TokenType.COMMA), len(written))
    pattern = comment_pattern(dialect)
    found: dict[int, dict[_Place, list[str]]] = {}
    for comment in _comments(written, tokens, pattern):
        if not begin <= comment.start() < end:
            continue
        index = bisect_right(spans, comment.start(), key=lambda span: span[0]) - 1
        behind = spans[index][1] if index >= 0 else begin
        owner: tuple[int, _Place] | None = (index, _Place.INSIDE)
        if behind <= comment.start():
            before = pattern.sub("", written[behind : comment.start()])
            after = written[comment.end() : spans[index + 1][0]] if index + 1 < len(spans) else None
            owner = _owner(index, before, after)
        words = " ".join(next((text for text in comment.groups() if text), "").split())
        if owner is not None and words:
            position, place = owner
            found.setdefault(position, {}).setdefault(place, []).append(words)
    return {position: " ".join(by_place[min(by_place)]) for position, by_place in found.items()}


def _comments(text: str, tokens: Sequence[Token], pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """The comments of a text: they stand between the tokens."""
    end = 0
    for token in tokens:
        if token.start - end > 1:
            yield from pattern.finditer(text, end, token.start)
        end = token.end + 1
    yield from pattern.finditer(text, end)


def _owner(index: int, before: str, after: str | None) -> tuple[int, _Place] | None:
    """Which projection a comment is about that stands behind one of them, by what is between it and its neighbours."""
    if after is not None and "\n" not in after and (index < 0 or "," in before):
        return index + 1, _Place.BESIDE
    if "\n" not in before:
        return (index, _Place.BESIDE) if index >= 0 else None
    return None if after is None or _BLANK_LINE.search(after) else (index + 1, _Place.ABOVE)


def _projection_spans(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Start and end of each projection of the first SELECT outside of parentheses but those that all begins with."""
    spans: list[tuple[int, int]] = []
    around = next((index for index, token in enumerate(tokens) if token.token_type is not TokenType.L_PAREN), 0)
    depth = 0
    inside = False
    first: Token | None = None
    last: Token | None = None
    for token in tokens[around:]:
        kind = token.token_type
        if kind in _CLOSING:
            depth -= 1
        if inside and depth < 0:
            break
        if not inside:
            inside = kind is TokenType.SELECT and depth == 0
        elif depth == 0 and kind in _AFTER_PROJECTIONS and not _is_part(kind, last):
            break
        elif depth == 0 and kind is TokenType.COMMA and first is not None and last is not None:
            spans.append((first.start, last.end + 1))
            first = last = None
        elif first is not None or kind not in {TokenType.HINT, TokenType.DISTINCT, TokenType.ALL}:
            first, last = first or token, token
        if kind in _OPENING:
            depth += 1
    if first is not None and last is not None:
        spans.append((first.start, last.end + 1))
    return spans


def _is_part(kind: TokenType, before: Token | None) -> bool:
    """Whether a word that may end the projections is part of one: `* EXCEPT (…)`, `a IS DISTINCT FROM b`, `t.limit`."""
    if before is None:
        return False
    if before.token_type in {TokenType.DOT, TokenType.ALIAS}:
        return True
    is_option = kind is TokenType.EXCEPT and before.token_type is TokenType.STAR
    return is_option or (kind is TokenType.FROM and before.token_type is TokenType.DISTINCT)
