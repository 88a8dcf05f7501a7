"""Text that remembers where each part of it was written, and the tokens macros are found by.

Macros are expanded by cutting and joining text at token boundaries, so everything a user wrote outside a macro reaches
Spark unchanged. A `Rope` is such joined text: every chunk knows the fragment and offset it came from.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import Dialect, TokenError, TokenType

from lamina.errors import SyntaxProblem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeGuard

    from sqlglot import Token as SqlToken

    from lamina.errors import Location
    from lamina.sql.fragment import Fragment

_LONGEST_QUOTED = 300
_WORD = re.compile(r"[^\W\d]\w*")
_PLAIN_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_OPENERS = {"(": ")", "[": "]", "{": "}"}
_CLOSERS = frozenset(_OPENERS.values())

# After these the tokenizer swallows the rest of the statement as one string.
_SWALLOWING = frozenset({TokenType.COMMAND, TokenType.SHOW})
_LITERALS = frozenset(
    {
        TokenType.STRING,
        TokenType.RAW_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.BYTE_STRING,
        TokenType.HEX_STRING,
        TokenType.BIT_STRING,
        TokenType.HEREDOC_STRING,
        TokenType.UNICODE_STRING,
    }
)
_OPAQUE = _LITERALS | {TokenType.IDENTIFIER, TokenType.HINT}

# A comma inside a statement belongs to the statement unless another statement starts behind it.
_STATEMENT_WORDS = frozenset(
    {"ALTER", "ANALYZE", "CREATE", "DELETE", "DROP", "INSERT", "MERGE", "REFRESH", "SELECT", "UPDATE", "WITH"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token of a text; `end` is exclusive and `raw` is what stands in the text."""

    type: TokenType
    raw: str
    value: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        """The raw text in upper case with single spaces, for comparing keywords."""
        return " ".join(self.raw.upper().split())

    @property
    def is_word(self) -> bool:
        """True for names and keywords, false for quoted names, literals and signs."""
        return self.type not in _OPAQUE and _WORD.fullmatch(self.raw) is not None

    @property
    def is_quoted_name(self) -> bool:
        """True for an identifier in quotes."""
        return self.type is TokenType.IDENTIFIER

    @property
    def is_string(self) -> bool:
        """True for a string literal."""
        return self.type in _LITERALS


def tokenize(text: str, dialect: str) -> list[Token]:
    """The tokens of a text, with commands such as OPTIMIZE or SHOW tokenised to their end.

    Raises sqlglot's `TokenError` when the text cannot be cut, for example at an unterminated string.
    """
    tokenizer = Dialect.get_or_raise(dialect)
    readable = text
    while True:
        tokens = tokenizer.tokenize(readable)
        command = next((token for before, token in pairwise([None, *tokens[:-1]]) if _swallows(before, token)), None)
        if command is None:
            break
        # A name of the same length in its place lets the rest be read, and offsets stay.
        readable = readable[: command.start] + "x" * (command.end + 1 - command.start) + readable[command.end + 1 :]
    found: list[Token] = []
    reached = 0
    for token in tokens:
        start, end = token.start, token.end + 1
        # Spark's typed numbers (`1L`) come as three tokens over the same characters.
        if start < reached:
            continue
        reached = end
        for piece_start, piece_end in _pieces(text, start, end, token.token_type):
            raw = text[piece_start:piece_end]
            is_sign = raw == "@" and end - start > 1
            type_ = TokenType.PARAMETER if is_sign else token.token_type
            found.append(
                Token(
                    type=type_,
                    raw=raw,
                    value=token.text if raw == text[start:end] else raw,
                    start=piece_start,
                    end=piece_end,
                )
            )
    return found


def _swallows(before: SqlToken | None, token: SqlToken | None) -> TypeGuard[SqlToken]:
    """True when the tokenizer gave everything behind a token as one string."""
    is_first = before is None or before.token_type in {TokenType.SEMICOLON, TokenType.BEGIN}
    return token is not None and is_first and token.token_type in _SWALLOWING


def _pieces(text: str, start: int, end: int, type_: TokenType) -> Iterable[tuple[int, int]]:
    """Cut names that hold an `@` (some dialects allow it) around the sign."""
    if type_ in _OPAQUE or end - start == 1 or "@" not in text[start:end] or not text[start].isidentifier():
        yield start, end
        return
    position = start
    for match in re.finditer("@", text[start:end]):
        sign = start + match.start()
        if sign > position:
            yield position, sign
        yield sign, sign + 1
        position = sign + 1
    if position < end:
        yield position, end


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A stretch of text and its origin; exact chunks were copied, others were made for what stands at the origin."""

    text: str
    origin: Fragment
    offset: int
    is_exact: bool

    def location_at(self, offset: int) -> Location:
        """Where the character at `offset` of this chunk comes from."""
        return self.origin.at(self.offset + offset if self.is_exact else self.offset)


Rope = tuple[Chunk, ...]


def text_of(rope: Rope) -> str:
    """The joined text."""
    return "".join(chunk.text for chunk in rope)


def cut(rope: Rope, start: int, end: int) -> Rope:
    """The part of a rope between two offsets of its text."""
    found: list[Chunk] = []
    position = 0
    for chunk in rope:
        first, last = max(start - position, 0), min(end - position, len(chunk.text))
        if first < last:
            found.append(
                Chunk(
                    text=chunk.text[first:last],
                    origin=chunk.origin,
                    offset=chunk.offset + first if chunk.is_exact else chunk.offset,
                    is_exact=chunk.is_exact,
                )
            )
        position += len(chunk.text)
    return tuple(found)


def join(ropes: Iterable[Rope], separator: str) -> Rope:
    """Ropes one after the other with a separator between them."""
    found: list[Chunk] = []
    for rope in ropes:
        if found and rope:
            before = found[-1]
            found.append(Chunk(text=separator, origin=before.origin, offset=before.offset, is_exact=False))
        found.extend(rope)
    return tuple(found)


def wrap(rope: Rope, before: str, after: str) -> Rope:
    """A rope between two signs."""
    first, last = rope[0], rope[-1]
    head = Chunk(text=before, origin=first.origin, offset=first.offset, is_exact=False)
    tail = Chunk(text=after, origin=last.origin, offset=last.offset, is_exact=False)
    return (head, *rope, tail)


def is_blank(rope: Rope) -> bool:
    """True when the rope holds nothing but white space."""
    return all(not chunk.text.strip() for chunk in rope)


class Source:
    """A text with its tokens and matching brackets; what macros are found in.

    `anchor` is set for text that a macro made: everything in it then counts as written where that macro was called.
    """

    __slots__ = ("_anchor", "closes", "dialect", "fragment", "marked", "tokens")

    def __init__(self, fragment: Fragment, anchor: tuple[Fragment, int] | None = None) -> None:
        self.fragment = fragment
        self.dialect = fragment.dialect
        self._anchor = anchor
        try:
            self.tokens = tokenize(fragment.text, fragment.dialect)
        except TokenError as error:
            raise SyntaxProblem(
                f"the text cannot be read as SQL: {first_line(error)}",
                hint="look for a quote, comment or bracket that is opened but not closed",
                location=anchor[0].at(anchor[1]) if anchor else fragment.location,
            ) from error
        self.closes = self._match_brackets()
        self.marked = self._find_signs()

    def _match_brackets(self) -> dict[int, int]:
        closes: dict[int, int] = {}
        opened: list[int] = []
        for index, token in enumerate(self.tokens):
            if token.type in _OPAQUE:
                continue
            if token.raw in _OPENERS:
                opened.append(index)
            elif token.raw in _CLOSERS:
                while opened and _OPENERS[self.tokens[opened[-1]].raw] != token.raw:
                    opened.pop()
                if opened:
                    closes[opened.pop()] = index
        return closes

    def _find_signs(self) -> frozenset[int]:
        """The tokens a macro may start at: signs, words in front of them, and names, texts and hints that hold one."""
        signs = [index for index, token in enumerate(self.tokens) if token.raw == "@"]
        quoted = [
            index
            for index, token in enumerate(self.tokens)
            if "@" in token.raw and (token.is_quoted_name or token.is_string or token.type is TokenType.HINT)
        ]
        return frozenset([*signs, *quoted, *(index - 1 for index in signs)])

    def origin(self, offset: int) -> tuple[Fragment, int]:
        """The fragment and offset that stand for an offset of this text."""
        return self._anchor or (self.fragment, offset)

    def location(self, index: int) -> Location:
        """Where the token at `index` was written; the end of the text for an index past the last token."""
        offset = self.tokens[index].start if index < len(self.tokens) else len(self.fragment.text)
        fragment, position = self.origin(offset)
        return fragment.at(position)

    def copy(self, start: int, end: int) -> Rope:
        """The text between two offsets as it stands."""
        if start >= end:
            return ()
        origin, offset = self.origin(start)
        return (Chunk(text=self.fragment.text[start:end], origin=origin, offset=offset, is_exact=self._anchor is None),)

    def make(self, text: str, index: int) -> Rope:
        """New text that stands for the token at `index`."""
        if not text:
            return ()
        # A made text must not turn what follows it into a comment.
        closed = f"{text}\n" if "--" in text.rsplit("\n", 1)[-1] else text
        origin, offset = self.origin(self.tokens[index].start)
        return (Chunk(text=closed, origin=origin, offset=offset, is_exact=False),)

    def text(self, start: int, end: int) -> str:
        """What stands between two tokens, the second one excluded."""
        if start >= end:
            return ""
        return self.fragment.text[self.tokens[start].start : self.tokens[end - 1].end]

    def touches(self, index: int) -> bool:
        """True when nothing stands between the token at `index` and the one before it."""
        return 0 < index < len(self.tokens) and self.tokens[index - 1].end == self.tokens[index].start

    def raw(self, index: int) -> str:
        """The raw text of a token, or nothing outside the text."""
        return self.tokens[index].raw if 0 <= index < len(self.tokens) else ""

    def split(self, start: int, end: int) -> list[tuple[int, int]]:
        """Token ranges between the commas of a range; an empty range has none."""
        if start >= end:
            return []
        found: list[tuple[int, int]] = []
        first = index = start
        while index < end:
            if self.tokens[index].type is TokenType.COMMA and self._separates(first, index):
                found.append((first, index))
                first = index + 1
            index = self.closes.get(index, index) + 1
        found.append((first, end))
        return found

    def _separates(self, first: int, comma: int) -> bool:
        head = first
        while self.raw(head + 1) == ":=" or self.raw(head + 1) == "->":
            head += 2
        if self.raw(head).upper() not in _STATEMENT_WORDS:
            return True
        return self.raw(comma + 1).upper() in _STATEMENT_WORDS


def code_mask(text: str, dialect: str) -> tuple[list[int], list[int]]:
    """Starts and ends of the stretches of a text that are neither strings, quoted names nor comments."""
    starts: list[int] = []
    ends: list[int] = []
    for token in tokenize(text, dialect):
        if token.type not in _OPAQUE:
            starts.append(token.start)
            ends.append(token.end)
    return starts, ends


def is_code(mask: tuple[list[int], list[int]], offset: int) -> bool:
    """True when the character at `offset` belongs to a stretch of `code_mask`."""
    index = bisect_right(mask[0], offset) - 1
    return index >= 0 and offset < mask[1][index]


def quote(name: str, dialect: str) -> str:
    """A name with the quotes of a dialect."""
    rules = Dialect.get_or_raise(dialect)
    start, end = rules.IDENTIFIER_START, rules.IDENTIFIER_END
    return f"{start}{name.replace(end, end * 2)}{end}"


def as_name(value: str, dialect: str, *, is_path: bool) -> str:
    """A value written as an identifier: bare where a parser takes it, quoted otherwise.

    With `is_path`, plain parts joined by dots stay a qualified name.
    """
    if _PLAIN_PATH.fullmatch(value) and (is_path or "." not in value):
        return ".".join(part if _is_bare(part, dialect) else quote(part, dialect) for part in value.split("."))
    return quote(value, dialect)


def _is_bare(word: str, dialect: str) -> bool:
    rules = Dialect.get_or_raise(dialect)
    tokens = rules.tokenize(f"a.{word}")[2:]
    type_ = rules.tokenize(f", {word}")[1].token_type
    return len(tokens) == 1 and (type_ is TokenType.VAR or type_ in rules.parser_class.ID_VAR_TOKENS)


def first_line(error: BaseException) -> str:
    """The first line of an error's text, without its trailing period."""
    return shortened(str(error).strip().split("\n", 1)[0].rstrip("."))


def shortened(text: str) -> str:
    """A text as messages quote it."""
    return text if len(text) <= _LONGEST_QUOTED else f"{text[: _LONGEST_QUOTED - 1]}…"
