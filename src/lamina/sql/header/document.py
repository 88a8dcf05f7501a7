"""Cuts a model or audit file into its header, statements, query and audits.

What a statement is for follows from the order: statements before the query prepare it, those after it follow up. Texts
are slices of the file, so everything a user wrote inside a statement is still there, and its place is known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from lamina.errors import BadPropertyValue, LaminaError, Location, SyntaxProblem, raise_all
from lamina.sql.fragment import Fragment
from lamina.sql.header.read import Header, header_at
from lamina.sql.header.values import text_of
from lamina.sql.lexed import check_dialect, lex

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamina.sql.lexed import Lexed, Span

_QUERY_STARTS = (TokenType.SELECT, TokenType.FROM, TokenType.VALUES, TokenType.TABLE, TokenType.L_PAREN, TokenType.WITH)
_WRITES = (TokenType.INSERT, TokenType.MERGE, TokenType.UPDATE, TokenType.DELETE)

_SPACE = r"(?:\s|;|--[^\n]*|\#[^\n]*|/\*.*?\*/)*"
_HEADER_START = re.compile(rf"{_SPACE}(?:MODEL|AUDIT)\b{_SPACE}\(", re.IGNORECASE | re.DOTALL)
_HEADER_PIECE = re.compile(
    r"""(?P<comment>--[^\n]*|\#[^\n]*|/\*.*?\*/|\s+)
      | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`)
      | (?P<word>\w+)
      | (?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
_JINJA_WORD = re.compile(r"\bJINJA_(?:QUERY_BEGIN|STATEMENT_BEGIN|END)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditBlock:
    """An `AUDIT (…)` header with the query that finds bad rows; `dialect` is the one the header is written in."""

    header: Header
    query: Fragment
    dialect: str = "spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A model file, cut up; a part that the file does not have is None or empty."""

    header: Header | None = None
    definitions: tuple[Fragment, ...] = ()
    pre_statements: tuple[Fragment, ...] = ()
    query: Fragment | None = None
    post_statements: tuple[Fragment, ...] = ()
    on_virtual_update: tuple[Fragment, ...] = ()
    audits: tuple[AuditBlock, ...] = ()
    dialect: str = "spark"


class _Role(Enum):
    MODEL = auto()
    AUDIT = auto()
    VIRTUAL_BEGIN = auto()
    VIRTUAL_END = auto()
    DEFINITION = auto()
    QUERY = auto()
    MACRO = auto()
    STATEMENT = auto()


@dataclass(slots=True, kw_only=True)
class _Parts:
    """What has been found so far; `body` is everything whose role depends on where the query is."""

    header: Header | None = None
    body: list[tuple[_Role, Span]] = field(default_factory=list)
    virtual: list[Span] = field(default_factory=list)
    audits: list[AuditBlock] = field(default_factory=list)
    problems: list[LaminaError] = field(default_factory=list)


def read_document(text: str, file: str, default_dialect: str = "spark") -> Document:
    """Reads a model file; raises everything that is wrong with its form at once."""
    lexed = _open(text, file, default_dialect)
    parts = _sort(lexed)
    query = _find_query(lexed, parts)
    definitions, before, after = _around(lexed, parts, query)
    raise_all(parts.problems)
    return Document(
        header=parts.header,
        definitions=_fragments(lexed, definitions),
        pre_statements=_fragments(lexed, before),
        query=_fragment(lexed, query) if query else None,
        post_statements=_fragments(lexed, after),
        on_virtual_update=_fragments(lexed, parts.virtual),
        audits=tuple(parts.audits),
        dialect=lexed.fragment.dialect,
    )


def read_audits(text: str, file: str, default_dialect: str = "spark") -> tuple[AuditBlock, ...]:
    """Reads a file that holds nothing but audits."""
    lexed = _open(text, file, default_dialect)
    parts = _sort(lexed)
    if parts.header is not None:
        parts.problems.append(
            SyntaxProblem("A MODEL header stands in a file of audits", location=parts.header.location)
        )
    parts.problems.extend(
        SyntaxProblem(
            "Expected an AUDIT header before this statement",
            hint="Write `AUDIT (name …);` and then one query",
            location=lexed.place(span[0]),
        )
        for span in sorted([span for _, span in parts.body] + parts.virtual)
    )
    raise_all(parts.problems)
    return tuple(parts.audits)


# --- opening a file ---------------------------------------------------------------------------------------------------
def _open(text: str, file: str, default_dialect: str) -> Lexed:
    """Finds the dialect and cuts the text; the same file with other line ends reads the same."""
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    whole = Fragment(text=text, location=Location(file=file, line=1, column=1), dialect=default_dialect)
    fragment = Fragment(text=text, location=whole.location, dialect=_find_dialect(whole) or default_dialect)
    try:
        lexed = lex(fragment)
    except LaminaError as error:
        jinja = _JINJA_WORD.search(text)
        raise (_jinja_problem(fragment.at(jinja.start())) if jinja else error) from error
    if "{{" in text or "{%" in text or _JINJA_WORD.search(text):
        raise_all(_jinja(lexed))
    return lexed


def _find_dialect(fragment: Fragment) -> str | None:
    """The dialect that the first header names; it decides how the header is cut, so it is looked for before that."""
    start = _HEADER_START.match(fragment.text) if "dialect" in fragment.text.lower() else None
    if start is None:
        return None
    depth, is_key, is_wanted = 1, True, False
    for piece in _HEADER_PIECE.finditer(fragment.text, start.end()):
        written = piece[0]
        if piece["comment"]:
            continue
        if is_wanted:
            return _dialect_name(written, fragment.at(piece.start()))
        is_wanted = is_key and depth == 1 and written.lower() == "dialect"
        is_key = depth == 1 and written == ","
        if piece["other"]:
            depth += (written in "([{") - (written in ")]}")
        if not depth:
            break
    return None


def _dialect_name(written: str, location: Location) -> str:
    if written == "@":
        raise BadPropertyValue(
            "`dialect` is given by a macro",
            hint="Write the name of the dialect; it must be known before macros are read",
            location=location,
        )
    return check_dialect(written.strip("'\"`"), location)


def _jinja(lexed: Lexed) -> Iterator[SyntaxProblem]:
    """The first trace of Jinja outside strings and comments."""
    previous = -1
    for index, token in enumerate(lexed.tokens):
        is_word = token.token_type == TokenType.VAR and _JINJA_WORD.fullmatch(lexed.lexeme(index))
        is_brace = token.token_type == TokenType.L_BRACE
        if is_word or token.token_type == TokenType.BLOCK_START or (is_brace and previous == token.start - 1):
            yield _jinja_problem(lexed.place(index))
            return
        previous = token.start if is_brace else -1


def _jinja_problem(location: Location) -> SyntaxProblem:
    return SyntaxProblem(
        "Jinja is not supported", hint="Use macros, such as `@IF(…)`, `@EACH(…)` or `@variable`", location=location
    )


# --- statements -------------------------------------------------------------------------------------------------------
def _statements(lexed: Lexed) -> Iterator[Span]:
    start = 0
    for end in (*lexed.separators, len(lexed.tokens)):
        if start < end:
            yield start, end
        start = end + 1


def _sort(lexed: Lexed) -> _Parts:
    """Takes out headers, audits and virtual updates, and tells the role of what is left."""
    parts = _Parts()
    opened: int | None = None
    audit: tuple[Header | None, Location] | None = None
    for number, span in enumerate(_statements(lexed)):
        role = _role(lexed, span)
        if audit is not None:
            is_query = role in {_Role.QUERY, _Role.MACRO}
            _close_audit(lexed, parts, audit, span if is_query else None)
            audit = None
            if is_query:
                continue
        match role:
            case _Role.MODEL:
                parts.problems.extend(_misplaced(lexed, span, number, parts.header))
                parts.header = _read_header(lexed, span, parts) or parts.header
            case _Role.AUDIT:
                audit = (_read_header(lexed, span, parts), lexed.place(span[0]))
            case _Role.VIRTUAL_BEGIN | _Role.VIRTUAL_END if (opened is None) == (role == _Role.VIRTUAL_BEGIN):
                opened = span[0] if role == _Role.VIRTUAL_BEGIN else None
                parts.problems.extend(_not_alone(lexed, span))
            case _Role.VIRTUAL_BEGIN | _Role.VIRTUAL_END:
                message = f"Unexpected `{lexed.lexeme(span[0])}`"
                parts.problems.append(SyntaxProblem(message, location=lexed.place(span[0])))
            case _ if opened is not None:
                parts.virtual.append(span)
            case _:
                parts.body.append((role, span))
    if audit is not None:
        _close_audit(lexed, parts, audit, None)
    if opened is not None:
        parts.problems.append(
            SyntaxProblem(
                "`ON_VIRTUAL_UPDATE_BEGIN` is never closed",
                hint="Write `ON_VIRTUAL_UPDATE_END;` after the last of its statements and their `;`",
                location=lexed.place(opened),
            )
        )
    return parts


def _role(lexed: Lexed, span: Span) -> _Role:
    start, end = span
    kind = lexed.tokens[start].token_type
    if kind in _QUERY_STARTS:
        is_write = kind in (TokenType.WITH, TokenType.FROM) and _has(lexed, span, _WRITES)
        return _Role.STATEMENT if is_write else _Role.QUERY
    word = lexed.lexeme(start).upper()
    if word in {"MODEL", "AUDIT"}:
        return _Role[word]
    if word.startswith("ON_VIRTUAL_UPDATE_"):
        return _Role.VIRTUAL_END if word.endswith("END") else _Role.VIRTUAL_BEGIN
    if word != "@" or end == start + 1:
        return _Role.STATEMENT
    if lexed.lexeme(start + 1).upper() == "DEF":
        return _Role.DEFINITION
    if _macro_end(lexed, span) == end:
        return _Role.MACRO
    return _Role.QUERY if _has(lexed, span, (TokenType.SELECT,)) else _Role.STATEMENT


def _has(lexed: Lexed, span: Span, kinds: tuple[TokenType, ...]) -> bool:
    return any(lexed.tokens[index].token_type in kinds for index in lexed.walk(span))


def _macro_end(lexed: Lexed, span: Span) -> int:
    """Where the macro that a span begins with ends: `@name`, `@{name}`, both with or without arguments."""
    start, end = span
    after = lexed.closings.get(start + 1, start + 1) + 1
    if after < end and lexed.lexeme(after) == "(":
        return lexed.closings[after] + 1
    return after


def _read_header(lexed: Lexed, span: Span, parts: _Parts) -> Header | None:
    try:
        return header_at(lexed, span)
    except LaminaError as error:
        parts.problems.extend(error.problems)
        return None


def _misplaced(lexed: Lexed, span: Span, number: int, header: Header | None) -> Iterator[SyntaxProblem]:
    if header is not None:
        hint = "Put every model into a file of its own"
        yield SyntaxProblem("The file has more than one MODEL header", hint=hint, location=lexed.place(span[0]))
    elif number:
        hint = "Move the statements before it between the header and the query"
        yield SyntaxProblem("The MODEL header is not first in the file", hint=hint, location=lexed.place(span[0]))


def _not_alone(lexed: Lexed, span: Span) -> Iterator[SyntaxProblem]:
    if span[1] > span[0] + 1:
        message = f"Expected `;` after `{lexed.lexeme(span[0])}`"
        yield SyntaxProblem(message, location=lexed.place(span[0] + 1))


def _close_audit(lexed: Lexed, parts: _Parts, audit: tuple[Header | None, Location], query: Span | None) -> None:
    header, location = audit
    if query is None:
        hint = "Write the query that finds bad rows straight after `AUDIT (…);`"
        parts.problems.append(SyntaxProblem("An AUDIT header has no query", hint=hint, location=location))
    elif header is not None:
        dialect = lexed.fragment.dialect
        given = header.find("dialect")
        try:
            if given is not None:
                dialect = check_dialect(text_of(given.value) or "", given.value.location)
        except LaminaError as error:
            parts.problems.extend(error.problems)
        fragment = _fragment(lexed, query, dialect)
        parts.audits.append(AuditBlock(header=header, query=fragment, dialect=lexed.fragment.dialect))


# --- the query and what is around it ----------------------------------------------------------------------------------
def _find_query(lexed: Lexed, parts: _Parts) -> Span | None:
    """The only query; without one, the only macro, which must then give the query."""
    queries = [span for role, span in parts.body if role == _Role.QUERY]
    macros = [span for role, span in parts.body if role == _Role.MACRO]
    parts.problems.extend(
        SyntaxProblem(
            f"The file has more than one query, the first on line {lexed.place(queries[0][0]).line}",
            hint="Join them with UNION ALL, or put each into a model of its own",
            location=lexed.place(span[0]),
        )
        for span in queries[1:]
    )
    if queries:
        return queries[0]
    return macros[0] if len(macros) == 1 else None


def _around(lexed: Lexed, parts: _Parts, query: Span | None) -> tuple[list[Span], list[Span], list[Span]]:
    """The definitions, the statements before the query, and those after it; without a query all are before it."""
    definitions: list[Span] = []
    before: list[Span] = []
    after: list[Span] = []
    for role, span in parts.body:
        is_late = query is not None and span > query
        if role != _Role.DEFINITION:
            if role != _Role.QUERY and span != query:
                (after if is_late else before).append(span)
            continue
        definitions.append(span)
        end = _macro_end(lexed, span)
        if is_late:
            hint = "Move it between the MODEL header and the query"
            parts.problems.append(SyntaxProblem("`@DEF` after the query", hint=hint, location=lexed.place(span[0])))
        elif end < span[1]:
            message = f"Expected `;` after `@DEF(…)`, found `{lexed.lexeme(end)}`"
            parts.problems.append(SyntaxProblem(message, location=lexed.place(end)))
    return definitions, before, after


def _fragments(lexed: Lexed, spans: list[Span]) -> tuple[Fragment, ...]:
    return tuple(_fragment(lexed, span) for span in spans)


def _fragment(lexed: Lexed, span: Span, dialect: str | None = None) -> Fragment:
    # The tokenizer takes the spaces behind commands such as SHOW for a part of them.
    text = lexed.raw(span).rstrip()
    return Fragment(text=text, location=lexed.place(span[0]), dialect=dialect or lexed.fragment.dialect)
