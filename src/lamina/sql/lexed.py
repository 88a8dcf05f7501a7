"""Text cut into tokens by sqlglot's tokenizer, with matching brackets and the place of everything."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from sqlglot.dialects.dialect import Dialect, Dialects
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from lamina.errors import BadPropertyValue, Location, SyntaxProblem, raise_all
from lamina.near_names import near_names
from lamina.sql.depth import DEEPEST, too_deep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamina.sql.fragment import Fragment

Span: TypeAlias = tuple[int, int]

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_OPENING = frozenset({"(", "["})
_NO_SPACE_BEFORE = frozenset({")", "]", ","})
_BRACKETS = {
    "(": TokenType.L_PAREN,
    ")": TokenType.R_PAREN,
    "[": TokenType.L_BRACKET,
    "]": TokenType.R_BRACKET,
    "{": TokenType.L_BRACE,
    "}": TokenType.R_BRACE,
    ";": TokenType.SEMICOLON,
}
TEXTS = (TokenType.STRING, TokenType.RAW_STRING, TokenType.NATIONAL_STRING, TokenType.HEREDOC_STRING)

_MACRO = re.compile(r"@[@{\w'\"]")
# An `@` behind a letter or digit belongs to the name.
_QUOTED_MACRO = re.compile(r"(?<![^\W_])@@?[^\W\d]")
# Some dialects quote names the way that headers quote texts, which have other signs in them.
_DOUBLE_QUOTED_NAME = re.compile(r'"[\w@{}-]+"')
_TOKEN_FAULT = re.compile(r"(?:Missing (?P<quote>.+) )?from \d+:(?P<offset>\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexed:
    """A fragment cut into tokens whose brackets match; spans are pairs of token numbers, the second exclusive."""

    fragment: Fragment
    language: Dialect
    tokens: list[Token]
    closings: dict[int, int]
    separators: list[int]
    newlines: list[int] = field(repr=False)
    is_expanded: bool = False
    """Macros were expanded before: a quoted name that still holds an `@` is written with it."""

    def locate(self, offset: int) -> Location:
        """The place of the character at `offset`; the same as `Fragment.at`, for many calls."""
        start = self.fragment.location
        line = bisect_right(self.newlines, offset - 1)
        column = offset - self.newlines[line - 1] if line else offset + (start.column or 1)
        return Location(file=start.file, line=(start.line or 1) + line, column=column)

    def place(self, index: int) -> Location:
        """Where a token begins; past the last one, where the text ends."""
        return self.locate(self.tokens[index].start if index < len(self.tokens) else len(self.fragment.text))

    def lexeme(self, index: int) -> str:
        """A token as written."""
        token = self.tokens[index]
        return self.fragment.text[token.start : token.end + 1]

    def raw(self, span: Span) -> str:
        """The text of a span as written, with its comments."""
        return self.fragment.text[self.tokens[span[0]].start : self.tokens[span[1] - 1].end + 1]

    def sql(self, span: Span) -> str:
        """The text of a span on one line, without comments, double-quoted words being identifiers."""
        pieces: list[str] = []
        end = -1
        for index in range(*span):
            token = self.tokens[index]
            if token.start <= end:
                continue
            piece = self._piece(index)
            if token.start > end + 1 and pieces and pieces[-1] not in _OPENING and piece not in _NO_SPACE_BEFORE:
                pieces.append(" ")
            pieces.append(piece)
            end = token.end
        return "".join(pieces)

    def _piece(self, index: int) -> str:
        token, lexeme = self.tokens[index], self.lexeme(index)
        if token.token_type in TEXTS:
            return self.quoted(token.text) if lexeme.startswith('"') else lexeme
        return lexeme if token.token_type == TokenType.IDENTIFIER else " ".join(lexeme.split())

    def quoted(self, name: str) -> str:
        """A name quoted as an identifier of the dialect."""
        closing = self.language.IDENTIFIER_END
        return f"{self.language.IDENTIFIER_START}{name.replace(closing, closing * 2)}{closing}"

    def touches(self, index: int) -> bool:
        """Whether nothing separates a token from the one before it."""
        return self.tokens[index].start <= self.tokens[index - 1].end + 1

    def has_macro(self, span: Span) -> bool:
        """Whether a macro is used anywhere in a span."""
        return any(self.is_macro(index) for index in range(*span))

    def is_macro(self, index: int) -> bool:
        """Whether a macro begins at, or is written inside, a token."""
        token = self.tokens[index]
        if token.token_type == TokenType.IDENTIFIER:
            written = self.lexeme(index)
            if written.startswith('"') and _DOUBLE_QUOTED_NAME.fullmatch(written) is None:
                return False
            return "@{" in written or (not self.is_expanded and _QUOTED_MACRO.search(written) is not None)
        if token.token_type in TEXTS or self.fragment.text[token.start] == '"':
            return False
        return _MACRO.search(self.fragment.text, token.start, token.end + 2) is not None

    def walk(self, span: Span) -> Iterator[int]:
        """The tokens of a span that are in no bracket, opening brackets included."""
        index, end = span
        while index < end:
            yield index
            index = self.closings.get(index, index) + 1

    def split(self, span: Span) -> list[Span]:
        """The parts of a span between commas that are in no bracket; a trailing comma adds no part."""
        parts: list[Span] = []
        start, end = span
        for index in self.walk(span):
            if self.tokens[index].token_type == TokenType.COMMA:
                parts.append((start, index))
                start = index + 1
        return [*parts, (start, end)] if start < end else parts

    def encloses(self, span: Span) -> bool:
        """Whether a span is one pair of parentheses or brackets with its content."""
        start, end = span
        return self.lexeme(start) in _OPENING and self.closings.get(start) == end - 1


@lru_cache(maxsize=64)
def language_of(name: str) -> Dialect:
    if not name:
        raise ValueError(name)
    return Dialect.get_or_raise(name)


def check_dialect(name: str, location: Location) -> str:
    """The dialect's name as sqlglot spells it, or an error with the nearest name."""
    spelled = name.strip().lower()
    try:
        language_of(spelled)
    except ValueError as error:
        known = [dialect.value for dialect in Dialects if dialect.value]
        near = near_names(spelled.split(",")[0], known)
        names = ", ".join(f"`{each}`" for each in sorted(known))
        hint = f"Did you mean `{near[0]}`?" if near else f"Use one of {names}"
        raise BadPropertyValue(f"Unknown dialect `{name}`", hint=hint, location=location) from error
    return spelled


def lex(fragment: Fragment, *, is_expanded: bool = False) -> Lexed:
    """Cuts a fragment into tokens; unclosed quotes, comments and brackets are errors with their place."""
    language = language_of(check_dialect(fragment.dialect, fragment.location))
    text = fragment.text
    try:
        tokens = language.tokenize(text)
    except TokenError as error:
        raise _token_problem(fragment, language, error) from error
    newlines = [match.start() for match in re.finditer("\n", text)]
    lexed = Lexed(
        fragment=fragment,
        language=language,
        tokens=tokens,
        closings={},
        separators=[],
        newlines=newlines,
        is_expanded=is_expanded,
    )
    raise_all(_match_brackets(lexed))
    deep = too_deep(tokens)
    if deep is not None:
        raise SyntaxProblem(f"The SQL is nested more than {DEEPEST} deep", location=lexed.place(deep))
    return lexed


def _token_problem(fragment: Fragment, language: Dialect, error: TokenError) -> SyntaxProblem:
    # Compiled sqlglot keeps the reason as the context of its error, not as the cause.
    fault = _TOKEN_FAULT.search(str(error.__cause__ or error.__context__))
    if fault is None:
        opening = _unclosed_comment(fragment.text, language)
        message = (
            "The text cannot be read as SQL" if opening is None else "A comment is opened with `/*` and never closed"
        )
        return SyntaxProblem(message, location=fragment.at(opening or 0))
    location = fragment.at(int(fault["offset"]))
    if not fault["quote"]:
        return SyntaxProblem("A literal has characters that it cannot have", location=location)
    return SyntaxProblem(
        f"A quote is opened with `{fault['quote']}` and never closed",
        hint=f"Close it with `{fault['quote']}`; a quote inside text is doubled or escaped",
        location=location,
    )


def _unclosed_comment(text: str, language: Dialect) -> int | None:
    """Where the comment begins that takes the rest of the text."""
    position = text.find("/*")
    while position >= 0:
        end = _comment_end(text, position + 2, is_nested=language.tokenizer_class.NESTED_COMMENTS)
        if end is None:
            try:
                language.tokenize(text[:position])
            except TokenError:
                # These two characters are part of a quoted text.
                end = position + 2
            else:
                return position
        position = text.find("/*", end)
    return None


def _comment_end(text: str, position: int, *, is_nested: bool) -> int | None:
    depth = 1
    for mark in re.compile(r"/\*|\*/").finditer(text, position):
        depth += (1 if is_nested else 0) if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    return None


def _match_brackets(lexed: Lexed) -> Iterator[SyntaxProblem]:
    """Fills in closings and separators; after a `;` everything counts as closed, so that one fault is told once."""
    opened: list[tuple[int, str]] = []
    for index, token in enumerate(lexed.tokens):
        text = token.text
        if text not in _BRACKETS or token.token_type != _BRACKETS[text]:
            continue
        if text in _CLOSING:
            opened.append((index, text))
            if len(opened) > DEEPEST:
                yield SyntaxProblem(f"Brackets are nested more than {DEEPEST} deep", location=lexed.place(index))
                return
        elif text == ";":
            lexed.separators.append(index)
            yield from (_never_closed(lexed, *bracket) for bracket in opened)
            opened = []
        elif opened and _CLOSING[opened[-1][1]] == text:
            lexed.closings[opened.pop()[0]] = index
        else:
            wanted = f"expected `{_CLOSING[opened[-1][1]]}`" if opened else "nothing is open here"
            yield SyntaxProblem(f"Unexpected `{text}`: {wanted}", location=lexed.place(index))
            opened = opened[:-1]
    yield from (_never_closed(lexed, *bracket) for bracket in opened)


def _never_closed(lexed: Lexed, index: int, text: str) -> SyntaxProblem:
    return SyntaxProblem(
        f"`{text}` is never closed",
        hint=f"Add the missing `{_CLOSING[text]}` before the `;` or the end of the file",
        location=lexed.place(index),
    )
