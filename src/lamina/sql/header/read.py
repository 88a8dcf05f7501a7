"""Reads headers: `MODEL (key value, …)` and the like.

A header is cut with sqlglot's tokenizer, so that every value keeps its exact text and place. sqlglot's parser is only
asked whether an expression, a type or a MERGE clause is one. Which properties exist and what they mean is decided by
those who use the header.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlglot import ErrorLevel, exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from lamina.errors import BadPropertyValue, LaminaError, Location, SyntaxProblem, raise_all
from lamina.sql.header.values import (
    Boolean,
    Call,
    ColumnDefinitions,
    Expression,
    Items,
    KindValue,
    MacroValue,
    MergeClauses,
    Null,
    Number,
    Pair,
    Property,
    Text,
    Word,
)
from lamina.sql.lexed import TEXTS, Lexed, Span, language_of, lex

if TYPE_CHECKING:
    from lamina.sql.fragment import Fragment
    from lamina.sql.header.values import Value

_JUNCTIONS = (TokenType.AND, TokenType.OR)

_KEY = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_RUN = re.compile(r"[\w$]+")
_COMMENT = re.compile(r"--(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/", re.DOTALL)

# Rendered when the model is evaluated, not when it is loaded: their structure must be known before macros are.
LATE_PROPERTIES = frozenset(
    {
        "audits",
        "defaults",
        "signals",
        "pre_hooks",
        "post_hooks",
        "physical_properties",
        "table_properties",
        "virtual_properties",
        "session_properties",
    }
)


# --- headers ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A block such as `MODEL (…)`: its properties in the order they were written, keys in lower case."""

    block: str
    properties: tuple[Property, ...]
    comment: str | None = None
    location: Location = field(compare=False)

    def find(self, key: str) -> Property | None:
        """The property with this key."""
        return next((each for each in self.properties if each.key == key), None)


def read_header(fragment: Fragment) -> Header:
    """Reads text that is one header, with or without its `;`."""
    lexed = lex(fragment)
    end = lexed.separators[0] if lexed.separators else len(lexed.tokens)
    if end + 1 < len(lexed.tokens):
        raise SyntaxProblem("Expected nothing after the header", location=lexed.place(end + 1))
    if not end:
        raise SyntaxProblem("Expected a header, found nothing", location=fragment.location)
    return header_at(lexed, (0, end))


def header_at(lexed: Lexed, span: Span) -> Header:
    """Reads the header that a statement consists of."""
    start, end = span
    block = lexed.lexeme(start).upper()
    closing = lexed.closings.get(start + 1)
    if closing is None or closing >= end or lexed.lexeme(start + 1) != "(":
        raise SyntaxProblem(
            f"Expected `(` after `{block}`", hint=f"Write `{block} (name …);`", location=lexed.place(start + 1)
        )
    problems: list[LaminaError] = []
    if closing + 1 < end:
        found = lexed.lexeme(closing + 1)
        problems.append(
            SyntaxProblem(
                f"Expected `;` after the {block} header, found `{found}`",
                hint="End the header with `);`",
                location=lexed.place(closing + 1),
            )
        )
    properties: tuple[Property, ...] = ()
    try:
        properties = _read_properties(lexed, (start + 2, closing), is_kind=False)
    except LaminaError as error:
        problems.extend(error.problems)
    raise_all(problems)
    comment = _comment_above(lexed, start)
    return Header(block=block, properties=properties, comment=comment, location=lexed.place(start))


def read_properties(fragment: Fragment, *, is_kind: bool = False) -> tuple[Property, ...]:
    """Reads `key value` pairs that a macro gave in place of a pair."""
    lexed = lex(fragment, is_expanded=True)
    return _read_properties(lexed, (0, len(lexed.tokens)), is_kind=is_kind)


def read_value(key: str, fragment: Fragment, *, is_kind: bool = False, is_expanded: bool = False) -> Value:
    """Reads the value of one property, such as a `MacroValue` after its expansion."""
    lexed = lex(fragment, is_expanded=is_expanded)
    return _read_property_value(lexed, (0, len(lexed.tokens)), key.lower(), is_kind)


def _comment_above(lexed: Lexed, index: int) -> str | None:
    """The comments that end on the line above a token, or on its own; a blank line cuts them off."""
    text, end = lexed.fragment.text, lexed.tokens[index].start
    start = text.find("\n", lexed.tokens[index - 1].end, end) if index else 0
    if start < 0:
        return None
    comments: list[str] = []
    for comment in reversed(list(_COMMENT.finditer(text, start, end))):
        if text.count("\n", comment.end(), end) > 1:
            break
        content = comment["line"] if comment["block"] is None else comment["block"]
        comments.append("\n".join(line.strip() for line in content.strip().splitlines()))
        end = comment.start()
    return "\n".join(reversed(comments)) or None


# --- properties -------------------------------------------------------------------------------------------------------
def _read_properties(lexed: Lexed, span: Span, *, is_kind: bool) -> tuple[Property, ...]:
    found: dict[str, Property] = {}
    properties: list[Property] = []
    problems: list[LaminaError] = []
    for part in _join_assignments(lexed, lexed.split(span)):
        try:
            each = _read_property(lexed, part, is_kind)
        except LaminaError as error:
            problems.extend(error.problems)
            continue
        if each.key in found:
            first = found[each.key].location.line
            message = f"`{each.key}` is given twice, first on line {first}"
            problems.append(SyntaxProblem(message, hint="Remove one of them", location=each.location))
        elif each.key:
            found[each.key] = each
        properties.append(each)
    raise_all(problems)
    return tuple(properties)


def _join_assignments(lexed: Lexed, parts: list[Span]) -> list[Span]:
    """Gives `, b = c` back to the `when_matched` without parentheses that it was cut from."""
    joined: list[Span] = []
    for start, end in parts:
        if joined and start < end and lexed.lexeme(joined[-1][0]).lower() == "when_matched":
            sign = next((index for index in lexed.walk((start, end)) if lexed.lexeme(index) == "="), start)
            if isinstance(_read_run(lexed, (start, sign)), Word):
                joined[-1] = (joined[-1][0], end)
                continue
        joined.append((start, end))
    return joined


def _read_property(lexed: Lexed, span: Span, is_kind: bool) -> Property:
    start, end = span
    location = lexed.place(start)
    if start == end:
        raise SyntaxProblem("Expected a property before `,`", hint="Remove the extra comma", location=location)
    if lexed.is_macro(start) or (end > start + 1 and lexed.touches(start + 1) and lexed.is_macro(start + 1)):
        _refuse_second_value(lexed, span, lexed.lexeme(start))
        return Property(key="", value=MacroValue(text=lexed.raw(span), location=location), location=location)
    written = lexed.lexeme(start)
    if not _KEY.fullmatch(written):
        raise SyntaxProblem(f"Expected the name of a property, found `{written}`", location=location)
    if end == start + 1:
        raise SyntaxProblem(f"`{written}` has no value", hint=f"Write `{written} value`", location=location)
    sign = lexed.lexeme(start + 1)
    if sign in {"=", ":", ":="}:
        raise SyntaxProblem(
            f"Unexpected `{sign}` after `{written}`",
            hint=f"Write `{written} value`, without `{sign}`",
            location=lexed.place(start + 1),
        )
    key = written.lower()
    return Property(key=key, value=_read_property_value(lexed, (start + 1, end), key, is_kind), location=location)


def _read_property_value(lexed: Lexed, span: Span, key: str, is_kind: bool) -> Value:
    if span[0] == span[1]:
        raise SyntaxProblem(f"`{key}` has no value", location=lexed.fragment.location)
    if key == "kind" and not is_kind:
        return _read_kind(lexed, span)
    if lexed.has_macro(span) and key not in LATE_PROPERTIES:
        if key not in {"merge_filter", "when_matched"}:
            _refuse_second_value(lexed, span, key)
        return MacroValue(text=lexed.raw(span), location=lexed.place(span[0]))
    match key:
        case "columns" if not is_kind:
            return _read_columns(lexed, span)
        case "when_matched":
            return _read_merge_clauses(lexed, span)
        case "merge_filter":
            return _read_expression(lexed, span, key)
        case "time_data_type":
            return _read_type(lexed, span, key)
        case "name" if not is_kind:
            return _read_name(lexed, span)
        case _:
            return _read_value(lexed, span, key)


def _refuse_second_value(lexed: Lexed, span: Span, key: str) -> None:
    """A macro hides the form of a value, but not a word that stands behind its first piece."""
    gap = next((index for index in lexed.walk(span) if index > span[0] and not lexed.touches(index)), None)
    if gap is not None and lexed.tokens[gap].token_type in (
        TokenType.VAR,
        TokenType.NUMBER,
        TokenType.IDENTIFIER,
        *TEXTS,
    ):
        raise _missing_comma(lexed, gap, key)


def _missing_comma(lexed: Lexed, index: int, key: str) -> SyntaxProblem:
    return SyntaxProblem(
        f"Expected `,` before `{lexed.lexeme(index)}`, after the value of `{key}`",
        hint="Separate properties with commas, and quote text that has spaces",
        location=lexed.place(index),
    )


def _read_name(lexed: Lexed, span: Span) -> Word:
    value = _read_value(lexed, span, "name")
    if isinstance(value, Text) and lexed.tokens[span[0]].token_type == TokenType.IDENTIFIER:
        return Word(parts=(value.value,), is_quoted=True, sql=value.sql, location=value.location)
    if isinstance(value, Word):
        return value
    if isinstance(value, Text):
        raise BadPropertyValue(
            f"`name` is a string literal: `{lexed.raw(span)}`",
            hint=f"Write `name {value.value}`, without quotes",
            location=value.location,
        )
    raise BadPropertyValue(
        f"`{lexed.sql(span)}` is not a name", hint="Write `name schema.table`", location=value.location
    )


def _read_kind(lexed: Lexed, span: Span) -> KindValue | MacroValue:
    start, end = span
    location = lexed.place(start)
    written = lexed.lexeme(start)
    if lexed.is_macro(start) or (end > start + 1 and lexed.touches(start + 1) and lexed.is_macro(start + 1)):
        _refuse_second_value(lexed, span, "kind")
        return MacroValue(text=lexed.raw(span), location=location)
    if not _KEY.fullmatch(written):
        raise BadPropertyValue(
            f"`{written}` is not a kind", hint="Write `kind NAME` or `kind NAME (…)`, without quotes", location=location
        )
    properties: tuple[Property, ...] = ()
    last = start
    if end > start + 1 and lexed.lexeme(start + 1) == "(":
        last = lexed.closings[start + 1]
        properties = _read_properties(lexed, (start + 2, last), is_kind=True)
    if last + 1 < end:
        raise _missing_comma(lexed, last + 1, "kind")
    return KindValue(name=written.upper(), properties=properties, location=location)


def _read_columns(lexed: Lexed, span: Span) -> ColumnDefinitions:
    start, end = span
    location = lexed.place(start)
    if lexed.lexeme(start) != "(":
        raise BadPropertyValue(
            "`columns` must be a list of names with types", hint="Write `columns (id INT, …)`", location=location
        )
    if lexed.closings[start] != end - 1:
        raise _missing_comma(lexed, lexed.closings[start] + 1, "columns")
    columns: dict[str, tuple[str, str]] = {}
    problems: list[LaminaError] = []
    for part in _split_columns(lexed, (start + 1, end - 1)):
        try:
            name, type_text = _read_column(lexed, part)
        except LaminaError as error:
            problems.extend(error.problems)
            continue
        if name.lower() in columns:
            problems.append(SyntaxProblem(f"Column `{name}` is given twice", location=lexed.place(part[0])))
        columns[name.lower()] = (name, type_text)
    raise_all(problems)
    return ColumnDefinitions(columns=tuple(columns.values()), location=location)


def _split_columns(lexed: Lexed, span: Span) -> list[Span]:
    """As `split`, but commas between `<` and `>` separate the parts of a type."""
    parts: list[Span] = []
    depth, begin = 0, span[0]
    for start, end in lexed.split(span):
        lexemes = [lexed.lexeme(index) for index in lexed.walk((start, end))]
        depth += sum(each.count("<") - each.count(">") for each in lexemes if not each.strip("<>"))
        if depth <= 0:
            parts.append((begin, end))
            begin = end + 1
    return [*parts, (begin, span[1])] if depth > 0 else parts


def _read_column(lexed: Lexed, span: Span) -> tuple[str, str]:
    start, end = span
    if start == end:
        raise SyntaxProblem("Expected a column before `,`", location=lexed.place(start))
    token, written = lexed.tokens[start], lexed.lexeme(start)
    if not (_RUN.fullmatch(written) or written.startswith('"') or token.token_type == TokenType.IDENTIFIER):
        raise SyntaxProblem(f"Expected the name of a column, found `{written}`", location=lexed.place(start))
    if end == start + 1:
        raise SyntaxProblem(f"Column `{written}` has no type", hint="Write `name TYPE`", location=lexed.place(start))
    _read_type(lexed, (start + 1, end), f"column {written}")
    return token.text if token.token_type in (*TEXTS, TokenType.IDENTIFIER) else written, lexed.sql((start + 1, end))


def _read_type(lexed: Lexed, span: Span, owner: str) -> Word | Expression:
    text, location = lexed.sql(span), lexed.place(span[0])
    if not _is_type(lexed.fragment.dialect, text):
        raise BadPropertyValue(
            f"`{text}` is not a type, for `{owner}`",
            hint=f"Write a type of dialect `{lexed.fragment.dialect}`, and commas between definitions",
            location=location,
        )
    if _KEY.fullmatch(text):
        return Word(parts=(text,), sql=text, location=location)
    return Expression(sql=text, location=location)


@lru_cache(maxsize=4096)
def _is_type(dialect: str, text: str) -> bool:
    language = language_of(dialect.strip().lower())
    try:
        parsed = language.parser(error_level=ErrorLevel.IMMEDIATE).parse_into(
            exp.DataType, language.tokenize(text), text
        )
    except (ParseError, TokenError):
        return False
    return bool(parsed) and isinstance(parsed[0], exp.DataType)


def read_when_matched(fragment: Fragment) -> MergeClauses:
    """The clauses of `when_matched`, cut apart; time variables may still stand in them by name."""
    lexed = lex(fragment)
    return _read_merge_clauses(lexed, (0, len(lexed.tokens)))


def _read_merge_clauses(lexed: Lexed, span: Span) -> MergeClauses:
    location = lexed.place(span[0])
    start, end = (span[0] + 1, span[1] - 1) if lexed.encloses(span) else span
    if start == end or lexed.tokens[start].token_type != TokenType.WHEN:
        raise BadPropertyValue(
            "`when_matched` must begin with `WHEN`",
            hint="Write `when_matched (WHEN MATCHED THEN UPDATE SET target.a = source.a)`",
            location=lexed.place(start),
        )
    if not lexed.has_macro(span):
        _check(lexed, (start, end), exp.Whens, "when_matched")
    starts: list[int] = []
    cases = 0
    for index in lexed.walk((start, end)):
        kind = lexed.tokens[index].token_type
        cases += (kind == TokenType.CASE) - (kind == TokenType.END)
        if kind == TokenType.WHEN and not cases:
            starts.append(index)
    clauses = tuple(lexed.sql(clause) for clause in zip(starts, [*starts[1:], end], strict=True))
    return MergeClauses(clauses=clauses, location=location)


# --- values -----------------------------------------------------------------------------------------------------------
def _read_value(lexed: Lexed, span: Span, key: str) -> Value:
    start, _ = span
    location = lexed.place(start)
    if lexed.is_macro(start):
        return MacroValue(text=lexed.raw(span), location=location)
    if lexed.encloses(span) and not _holds_query(lexed, start):
        parts = _parts(lexed, (start + 1, span[1] - 1))
        return Items(values=tuple(_read_item(lexed, part, key) for part in parts), location=location)
    value = _read_text(lexed, span) or _read_run(lexed, span) or _read_call(lexed, span)
    if value is not None:
        return value
    if lexed.has_macro(span):
        return MacroValue(text=lexed.raw(span), location=location)
    return _read_expression(lexed, span, key)


def _holds_query(lexed: Lexed, opening: int) -> bool:
    """Whether a query stands in the parentheses, and not a column that is called like the start of one."""
    is_query = lexed.tokens[opening + 1].token_type in (TokenType.SELECT, TokenType.WITH)
    return is_query and lexed.lexeme(opening + 2) not in {",", ")", "]"}


def _parts(lexed: Lexed, span: Span) -> list[Span]:
    parts = lexed.split(span)
    for start, end in parts:
        if start == end:
            raise SyntaxProblem("Expected a value before `,`", location=lexed.place(start))
    return parts


def _read_item(lexed: Lexed, span: Span, key: str) -> Value:
    """An element of a list, which may be renamed: `customer_id AS id`."""
    start, end = span
    if end > start + 2 and lexed.tokens[end - 2].token_type == TokenType.ALIAS and not lexed.has_macro(span):
        _check(lexed, (start, end - 2), exp.Condition, key)
        return Expression(sql=lexed.sql(span), location=lexed.place(start))
    return _read_element(lexed, span, key)


def _read_element(lexed: Lexed, span: Span, key: str) -> Value:
    """An element of a list or call: `name = value`, `name := value` or a value."""
    start, end = span
    index = next((each for each in lexed.walk(span) if lexed.lexeme(each) in {"=", ":="}), None)
    if index is None or index == start or _is_condition(lexed, index, end):
        return _read_value(lexed, span, key)
    name = _read_text(lexed, (start, index)) or _read_run(lexed, (start, index))
    if not isinstance(name, Word | Text | Number):
        return _read_value(lexed, span, key)
    text = name.value if isinstance(name, Text) else name.text
    if index + 1 == end:
        raise SyntaxProblem(f"`{text}` has no value", location=name.location)
    value = _read_value(lexed, (index + 1, end), text)
    return Pair(key=text, value=value, sql=lexed.sql(span), location=name.location)


def _is_condition(lexed: Lexed, sign: int, end: int) -> bool:
    """Whether `a = b` goes on as `AND c = d`, which no value of a pair does."""
    is_equality = lexed.lexeme(sign) == "="
    return is_equality and any(lexed.tokens[each].token_type in _JUNCTIONS for each in lexed.walk((sign + 1, end)))


def _read_text(lexed: Lexed, span: Span) -> Text | None:
    start, end = span
    tokens = lexed.tokens
    lexemes = [lexed.lexeme(index) for index in range(start, end)]
    for index, lexeme in enumerate(lexemes, start):
        if tokens[index].token_type not in TEXTS and not lexeme.startswith('"'):
            return None
    quote = '"' if lexemes[0].startswith('"') else "'"
    value = tokens[start].text
    for index in range(start + 1, end):
        # Spark's tokenizer gives the two halves of 'it''s' apart.
        is_doubled = lexed.touches(index) and lexemes[index - start - 1][-1] == lexemes[index - start][0]
        value += (quote if is_doubled else "") + tokens[index].text
    raw = lexed.raw(span)
    if quote == '"':
        sql = lexed.quoted(value)
    else:
        sql = raw if end == start + 1 else exp.Literal.string(value).sql(lexed.language)
    inner = raw[1:-1] if raw[0] in {"'", '"'} else value
    return Text(value=value, quote=quote, raw=inner, sql=sql, location=lexed.place(start))


def _read_run(lexed: Lexed, span: Span) -> Word | Number | Boolean | Null | None:
    """A value written without spaces: a name of one or more parts, a number, `true`, `false`, `null` or `*`."""
    start, end = span
    parts, is_quoted, last = [""], False, -1
    for index in range(start, end):
        token, lexeme = lexed.tokens[index], lexed.lexeme(index)
        if token.start <= last:
            # `30d` is one word to us and three tokens, a cast, to Spark's tokenizer.
            continue
        if index > start and not lexed.touches(index):
            return None
        last = token.end
        if lexeme == ".":
            parts.append("")
        elif token.token_type == TokenType.IDENTIFIER or lexeme.startswith('"'):
            # Spark's tokenizer cuts `"a""b"` in two; the doubled quote is part of the name.
            is_glued = index > start and lexeme.startswith('"') and lexed.lexeme(index - 1).endswith('"')
            parts[-1] += f'"{token.text}' if is_glued else token.text
            is_quoted = True
        elif (
            _RUN.fullmatch(lexeme)
            or token.token_type == TokenType.NUMBER
            or lexeme == "-"
            or (lexeme in {"+", "*"} and index == start)
        ):
            parts[-1] += lexeme
        else:
            return None
    location = lexed.place(start)
    raw = lexed.raw(span) if start < end else ""
    if _NUMBER.fullmatch(raw):
        return Number(text=raw, location=location)
    if raw.lower() in {"true", "false"}:
        return Boolean(value=raw.lower() == "true", location=location)
    if raw.lower() == "null":
        return Null(location=location)
    is_macro = is_quoted and lexed.has_macro(span)
    if is_macro or raw[:1] == "+" or (raw[:1] == "*" and raw != "*"):
        return None
    if not is_quoted and any(not part or part.startswith("-") or part.endswith("-") for part in parts):
        return None
    return Word(parts=tuple(parts), is_quoted=is_quoted, sql=lexed.sql(span), location=location)


def _read_call(lexed: Lexed, span: Span) -> Call | None:
    start, end = span
    opening = next((index for index in lexed.walk(span) if index in lexed.closings), start)
    if opening == start or lexed.lexeme(opening) != "(" or lexed.closings[opening] != end - 1:
        return None
    name = _read_run(lexed, (start, opening))
    if not isinstance(name, Word):
        return None
    inside = (opening + 1, end - 1)
    try:
        arguments = tuple(_read_element(lexed, part, name.text) for part in _parts(lexed, inside))
    except LaminaError:
        # SQL has calls that are no list of values, such as `CAST(a AS INT)`; with a named argument it is ours.
        if any(lexed.lexeme(index) == ":=" for index in range(*inside)):
            raise
        return None
    return Call(name=name.text, arguments=arguments, sql=lexed.sql(span), location=name.location)


def _read_expression(lexed: Lexed, span: Span, key: str) -> Expression:
    _check(lexed, span, exp.Ordered if key == "order_by" else exp.Condition, key)
    return Expression(sql=lexed.sql(span), location=lexed.place(span[0]))


def _check(lexed: Lexed, span: Span, into: type[exp.Expr], key: str) -> None:
    """Asks sqlglot's parser whether the span is what it should be, double-quoted words being identifiers."""
    tokens = [
        Token(TokenType.IDENTIFIER, token.text, token.line, token.col, token.start, token.end)
        if token.token_type in TEXTS and lexed.fragment.text[token.start] == '"'
        else token
        for token in lexed.tokens[span[0] : span[1]]
    ]
    try:
        lexed.language.parser(error_level=ErrorLevel.IMMEDIATE).parse_into(into, tokens, lexed.fragment.text)
    except ParseError as error:
        fault = error.errors[0] if error.errors else {}
        place = (fault.get("line", 0), fault.get("col", 0))
        ends = {(lexed.tokens[each].line, lexed.tokens[each].col): each for each in reversed(range(*span))}
        index = ends.get(place)
        if index is not None and index > span[0] and index in lexed.walk(span) and _begins_word(lexed, index):
            raise _missing_comma(lexed, index, key) from error
        near = lexed.lexeme(span[0] if index is None else index)
        raise SyntaxProblem(
            f"The value of `{key}` is not valid SQL, near `{near}`",
            location=lexed.place(span[0] if index is None else index),
        ) from error


def _begins_word(lexed: Lexed, index: int) -> bool:
    lexeme = lexed.lexeme(index)
    return bool(_RUN.fullmatch(lexeme)) or lexeme[0] in "'\"`"
