"""Reading SQL text with sqlglot: tokens, trees, and errors that point at what the user wrote."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlglot import Dialect, ErrorLevel, TokenType, exp
from sqlglot.dialects.dialect import Dialects
from sqlglot.errors import ParseError, TokenError, UnsupportedError

from lamina.errors import BadPropertyValue, Location, SyntaxProblem
from lamina.near_names import near_names
from lamina.sql.depth import DEEPEST, DEEPEST_TREE, depth_of, too_deep
from lamina.sql.fragment import Fragment
from lamina.sql.names import is_plain_identifier, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlglot import Token

SPARK = "spark"

_SPARK_DIALECTS = frozenset({"", "spark", "spark2", "spark3"})
_KNOWN_DIALECTS = frozenset(dialect.value for dialect in Dialects if dialect.value)
_HOW_TO_FLATTEN = "take parts out into WITH queries, or into models of their own"
_SYMBOL = re.compile(r"@[A-Za-z_]\w*")
_STAND_IN = re.compile(r"`?__lamina_symbol_(\w+?)__`?", re.IGNORECASE)
_QUERY_STARTS = frozenset(
    {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.VALUES, TokenType.TABLE, TokenType.L_PAREN}
)
_BEFORE_TABLE_STATEMENT = frozenset(
    {
        TokenType.L_PAREN,
        TokenType.R_PAREN,
        TokenType.UNION,
        TokenType.EXCEPT,
        TokenType.INTERSECT,
        TokenType.ALL,
        TokenType.DISTINCT,
    }
)
_AFTER_SUPERFLUOUS_COMMA = frozenset(
    {TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN, TokenType.WHERE, TokenType.SEMICOLON}
)
_AFTER_NO_COLUMN = _AFTER_SUPERFLUOUS_COMMA | {TokenType.UNION, TokenType.GROUP_BY, TokenType.ORDER_BY}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedQuery:
    """A query in Spark's SQL: its text, and the tokens and syntax tree whose offsets point into that text."""

    text: str
    tokens: tuple[Token, ...]
    tree: exp.Expr


def is_spark(dialect: str) -> bool:
    """Whether text of this dialect is given to Spark as it was written."""
    return dialect.lower() in _SPARK_DIALECTS


def check_dialect(dialect: str, location: Location | None = None) -> str:
    """The dialect in lower case as sqlglot knows it."""
    lowered = dialect.lower()
    if is_spark(lowered):
        return SPARK
    if lowered not in _KNOWN_DIALECTS:
        known = sorted(_KNOWN_DIALECTS)
        nearest = near_names(lowered, known)
        hint = f"did you mean `{nearest[0]}`?" if nearest else f"known dialects: {', '.join(known)}"
        raise BadPropertyValue(f"`{dialect}` is not a known SQL dialect", hint=hint, location=location)
    return lowered


def place(text: str, offset: int, location: Location | None) -> Location:
    """Where the character at `offset` stands, when the first one stands at `location`."""
    return Fragment(text=text, location=location or Location(line=1, column=1)).at(offset)


def tokenise(text: str, dialect: str = SPARK, location: Location | None = None) -> tuple[Token, ...]:
    """The tokens of the text; comments hang on tokens and are not tokens themselves."""
    try:
        tokens = tuple(Dialect.get_or_raise(check_dialect(dialect, location)).tokenize(text))
    except TokenError as error:
        opened = _find_unclosed(text)
        if opened is None:
            raise SyntaxProblem("the SQL text cannot be read", location=location) from error
        offset, what, closing = opened
        raise SyntaxProblem(
            f"{what} is opened here and never closed",
            hint=f"add the closing `{closing}`" if closing != "`" else "add the closing backtick",
            location=place(text, offset, location),
        ) from error
    deep = too_deep(tokens)
    if deep is not None:
        where = place(text, tokens[deep].start, location)
        raise SyntaxProblem(f"the SQL is nested more than {DEEPEST} deep", hint=_HOW_TO_FLATTEN, location=where)
    return tokens


@lru_cache(maxsize=64)
def comment_pattern(dialect: str) -> re.Pattern[str]:
    """The comments of a dialect, what they say in a group; hints are none."""
    marks = Dialect.get_or_raise(check_dialect(dialect)).tokenizer_class.COMMENTS
    each = (
        rf"{re.escape(mark)}([^\n]*)"
        if isinstance(mark, str)
        else rf"{re.escape(mark[0])}(?!\+)(.*?){re.escape(mark[1])}"
        for mark in marks
    )
    return re.compile("|".join(each), re.DOTALL)


def parse_statement(
    text: str, tokens: Sequence[Token], dialect: str, location: Location | None = None
) -> exp.Expr | None:
    """The tree of the only statement of the text; None when the text holds none."""
    parser = Dialect.get_or_raise(check_dialect(dialect, location)).parser(error_level=ErrorLevel.IMMEDIATE)
    try:
        trees = parser.parse(list(tokens), text)
    except ParseError as error:
        raise _explain(error, text, location) from error
    except RecursionError as error:
        raise SyntaxProblem("the SQL is nested too deep", hint=_HOW_TO_FLATTEN, location=location) from error
    except (TypeError, AttributeError, ValueError, IndexError) as error:
        # The compiled parser meets some broken texts with these.
        raise SyntaxProblem("the SQL cannot be parsed", location=location) from error
    if any(tree is not None and depth_of(tree) > DEEPEST_TREE for tree in trees):
        message = f"the SQL has a chain of more than {DEEPEST_TREE} operators"
        raise SyntaxProblem(message, hint=_HOW_TO_FLATTEN, location=location)
    statements = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    if len(statements) > 1:
        raise SyntaxProblem("one statement was expected, the SQL text holds several", location=location)
    return statements[0] if statements else None


def parse_query(text: str, dialect: str = SPARK, location: Location | None = None) -> ParsedQuery:
    """Read one query; text of another dialect is first translated to Spark's.

    Macros are expanded already, except that time variables may stand in the text as `@start_ds`.
    """
    tokens = tokenise(text, dialect, location)
    spark_text = _to_spark(text, tokens, dialect, location)
    if spark_text != text:
        tokens = tokenise(spark_text, SPARK, location)
    _check_tokens(spark_text, tokens, location)
    return ParsedQuery(text=spark_text, tokens=tokens, tree=_parse_query(spark_text, tokens, SPARK, location))


def parse_expression(text: str, dialect: str = SPARK, location: Location | None = None) -> exp.Expr:
    """Read one expression, such as `month(ts)` or `COALESCE(name, '')`."""
    select = f"SELECT {text}"
    shifted = None
    if location is not None and location.column is not None:
        shifted = Location(file=location.file, line=location.line, column=location.column - len("SELECT "))
    tree = parse_statement(select, tokenise(select, dialect, shifted), dialect, shifted or location)
    if (
        not isinstance(tree, exp.Select)
        or len(tree.expressions) != 1
        or any(tree.args.get(clause) for clause in ("from_", "where", "group", "order", "limit", "joins", "laterals"))
    ):
        raise SyntaxProblem(f"`{text.strip()}` is not one expression", location=location)
    expression: exp.Expr = tree.expressions[0]
    if isinstance(expression, (exp.Alias, exp.Aliases)):
        raise SyntaxProblem(f"`{text.strip()}` has an alias, a bare expression was expected", location=location)
    return expression


def to_spark(text: str, dialect: str, location: Location | None = None) -> str:
    """The query in Spark's SQL.

    Spark's own text comes back as it was written, only `TABLE x` is spelled out as `SELECT * FROM x` and a comma
    in front of FROM is dropped. Text of another
    dialect is translated; what has no equivalent in Spark is an error. Symbols such as `@start_ds` are kept.
    """
    return _to_spark(text, tokenise(text, dialect, location), dialect, location)


def generate(tree: exp.Expr, location: Location | None = None, dialect: str = SPARK) -> str:
    """SQL text of a tree that was read from another dialect, for Spark unless another one is asked for."""
    for identifier in tree.find_all(exp.Identifier):
        if not is_plain_identifier(identifier.name):
            identifier.set("quoted", True)
    try:
        translated = tree.sql(dialect=dialect, unsupported_level=ErrorLevel.RAISE)
    except (UnsupportedError, ValueError) as error:
        # The parser has no errors of its own for values it cannot write, such as numbers of thousands of digits.
        target = "Spark" if is_spark(dialect) else f"`{dialect}`"
        said = str(error).splitlines() or ["it cannot be written"]
        raise SyntaxProblem(
            f"the SQL cannot be translated to {target}: {said[0]}",
            hint="write this part in Spark's SQL, with `dialect spark`",
            location=location,
        ) from error
    return _STAND_IN.sub(r"@\1", translated)


def show(tree: exp.Expr) -> str:
    """Readable text of a part of a query, without its comments; for people, not for Spark."""
    if isinstance(tree, exp.Parameter):
        return f"@{tree.name}"
    if isinstance(tree, exp.Column) and not isinstance(tree.this, exp.Star):
        return ".".join(quote(part.name) if part.args.get("quoted") else part.name for part in tree.parts)
    if tree.find(exp.Parameter) is not None:
        tree = tree.copy()
        for parameter in list(tree.find_all(exp.Parameter)):
            parameter.replace(exp.Var(this=f"@{parameter.name}"))
    return tree.sql(dialect=SPARK, comments=False)


def hide_symbols(text: str, dialect: str) -> str:
    """The text with `@name` written as an identifier that every dialect can read and `generate` turns back."""
    return _hide_symbols(text, tokenise(text, dialect))


def starts_like_a_query(tokens: Sequence[Token]) -> bool:
    """Whether the first word is one that begins a query, unlike `SET` or `INSERT`."""
    return bool(tokens) and tokens[0].token_type in _QUERY_STARTS


def end_of_query(text: str, tokens: Iterable[Token]) -> int:
    """Offset at which the first semicolon stands, or the length of the text."""
    return next((token.start for token in tokens if token.token_type is TokenType.SEMICOLON), len(text))


def without_ending(text: str, dialect: str = SPARK) -> str:
    """The query without a semicolon or comment behind it, so that it can stand in parentheses."""
    tokens = tokenise(text, dialect)
    end = end_of_query(text, tokens)
    return text[: max((token.end + 1 for token in tokens if token.start < end), default=0)]


def source_name(node: exp.Expr, text: str) -> str | None:
    """The name of a function as it was written, in lower case; None when the tree does not remember it.

    sqlglot reads several functions as the same node although Spark tells them apart: `size` and `array_size`.
    """
    meta = node.meta
    if "start" not in meta:
        return None
    written = text[meta["start"] : meta["end"] + 1]
    return written.strip("`").lower()


def _to_spark(text: str, tokens: Sequence[Token], dialect: str, location: Location | None) -> str:
    if is_spark(dialect):
        return _spell_out_table_statements(_without_trailing_commas(text, tokens), tokens)
    _check_single(text, tokens, location)
    hidden = _hide_symbols(text, tokens)
    return generate(_parse_query(hidden, tokenise(hidden, dialect, location), dialect, location), location)


def _without_trailing_commas(text: str, tokens: Sequence[Token]) -> str:
    """The text without a comma after the last column, which people leave there; every other offset stays as it is."""
    for comma, following in itertools.pairwise(tokens):
        if comma.token_type is TokenType.COMMA and following.token_type is TokenType.FROM:
            text = f"{text[: comma.start]} {text[comma.end + 1 :]}"
    return text


def _parse_query(text: str, tokens: Sequence[Token], dialect: str, location: Location | None) -> exp.Expr:
    if not tokens:
        raise SyntaxProblem("a query was expected, the text is empty", location=location)
    tree = parse_statement(text, tokens, dialect, location) if starts_like_a_query(tokens) else None
    if not isinstance(tree, (exp.Query, exp.Values)):
        raise SyntaxProblem(
            f"a query was expected, the text begins with `{tokens[0].text}`",
            hint="a query begins with SELECT, WITH, FROM, VALUES or TABLE",
            location=place(text, tokens[0].start, location),
        )
    if any(token.token_type is TokenType.ARROW for token in tokens):
        _bind_lambda_variables(tree)
    return tree


def _bind_lambda_variables(tree: exp.Expr) -> None:
    """Variables of a lambda are compared without regard to case; sqlglot takes `X` in `x -> X + 1` for a column."""
    for function in tree.find_all(exp.Lambda):
        variables = {variable.name.lower() for variable in function.expressions}
        for column in list(function.this.find_all(exp.Column)):
            if column.parts[0].name.lower() in variables:
                column.replace(column.to_dot(include_dots=False) if column.table else column.this)


def _check_tokens(text: str, tokens: Sequence[Token], location: Location | None) -> None:
    _check_single(text, tokens, location)
    for token, following in zip(tokens, [*tokens[1:], None], strict=False):
        if token.token_type is TokenType.PIPE_GT:
            raise SyntaxProblem(
                "pipe syntax `|>` is not supported in models",
                hint="write the query with SELECT, FROM and WHERE; common table expressions keep the steps apart",
                location=place(text, token.start, location),
            )
        if token.token_type is TokenType.COMMA and (
            following is None or following.token_type in _AFTER_SUPERFLUOUS_COMMA
        ):
            raise SyntaxProblem(
                "nothing follows this comma", hint="remove the comma", location=place(text, token.start, location)
            )
        if token.token_type is TokenType.SELECT and (following is None or following.token_type in _AFTER_NO_COLUMN):
            raise SyntaxProblem("SELECT is followed by no column", location=place(text, token.start, location))


def _check_single(text: str, tokens: Sequence[Token], location: Location | None) -> None:
    ended = False
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            ended = True
        elif ended:
            raise SyntaxProblem(
                f"one query was expected, a second statement begins with `{token.text}`",
                hint="put statements that run before or after into pre- and post-statements",
                location=place(text, token.start, location),
            )


def _spell_out_table_statements(text: str, tokens: Sequence[Token]) -> str:
    """`TABLE x` as `SELECT * FROM x`, and `f(TABLE x)` as `f(TABLE(x))`: spellings that sqlglot can read."""
    pieces: list[str] = []
    copied = 0
    for index, token in enumerate(tokens[:-1]):
        if token.token_type is not TokenType.TABLE or tokens[index + 1].token_type is TokenType.L_PAREN:
            continue
        before = tokens[index - 1] if index else None
        if before is not None and before.token_type not in _BEFORE_TABLE_STATEMENT:
            continue
        pieces.append(text[copied : token.start])
        if _opens_function_call(tokens, index - 1):
            end = _end_of_name(tokens, index + 1)
            pieces.append(f"TABLE({text[tokens[index + 1].start : end]})")
            copied = end
        else:
            pieces.append("SELECT * FROM")
            copied = token.end + 1
    return "".join([*pieces, text[copied:]])


def _opens_function_call(tokens: Sequence[Token], index: int) -> bool:
    if index < 1 or tokens[index].token_type is not TokenType.L_PAREN:
        return False
    return tokens[index - 1].token_type is TokenType.VAR


def _end_of_name(tokens: Sequence[Token], index: int) -> int:
    end = tokens[index].end + 1
    while index + 2 < len(tokens) and tokens[index + 1].token_type is TokenType.DOT:
        index += 2
        end = tokens[index].end + 1
    return end


def _hide_symbols(text: str, tokens: Sequence[Token]) -> str:
    pieces: list[str] = []
    copied = 0
    for token in tokens:
        match = _SYMBOL.match(text, token.start)
        if match is None or token.start < copied:
            continue
        pieces += [text[copied : match.start()], f"__lamina_symbol_{match.group()[1:]}__"]
        copied = match.end()
    return "".join([*pieces, text[copied:]])


def _explain(error: ParseError, text: str, location: Location | None) -> SyntaxProblem:
    if not error.errors:
        return SyntaxProblem("the SQL text cannot be parsed", location=location)
    found = error.errors[0]
    word = str(found.get("highlight") or "")
    description = str(found.get("description") or "")
    expected = re.match(r"(?:Expecting|Expected) (.+)", description)
    if description.startswith("Invalid expression"):
        message = f"the SQL cannot be parsed: `{word}` is unexpected here"
    elif expected and "<Token" not in description:
        what = expected.group(1)
        what = f"`{what}`" if re.fullmatch(r"\W", what) else what
        message = f"the SQL cannot be parsed: expected {what} near `{word}`"
    else:
        message = f"the SQL cannot be parsed: something is missing near `{word}`"
    return SyntaxProblem(message, location=place(text, _offset_of(found, text, word), location))


def _offset_of(found: dict[str, object], text: str, word: str) -> int:
    line, column = found.get("line"), found.get("col")
    if not isinstance(line, int) or not isinstance(column, int):
        return 0
    line_start = 0
    for _ in range(line - 1):
        line_start = text.find("\n", line_start) + 1
    return max(line_start + column - max(len(word), 1), 0)


def _find_unclosed(text: str) -> tuple[int, str, str] | None:
    """Offset, description and closing mark of the string, quoted name or comment that never ends."""
    kinds = {"'": "a string", '"': "a double-quoted word", "`": "a name in backticks"}
    position = 0
    while position < len(text):
        start = position
        character = text[position]
        if text.startswith("--", position):
            newline = text.find("\n", position)
            position = len(text) if newline < 0 else newline + 1
        elif text.startswith("/*", position):
            closed = text.find("*/", position + 2)
            if closed < 0:
                return start, "a comment", "*/"
            position = closed + 2
        elif character in kinds:
            position = _skip_quoted(text, position)
            if position < 0:
                return start, kinds[character], character
        else:
            position += 1
    return None


def _skip_quoted(text: str, position: int) -> int:
    mark = text[position]
    position += 1
    while position < len(text):
        if text[position] == "\\" and mark != "`":
            position += 2
        elif text[position] == mark:
            return position + 1
        else:
            position += 1
    return -1
