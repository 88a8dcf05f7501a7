"""The shapes macros have among the tokens of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamina.sql.macros.text import Source, Token

_CASTS = frozenset({"CAST", "TRY_CAST", "SAFE_CAST"})


def is_sign(source: Source, index: int) -> bool:
    """True for an `@` that starts a macro: one sign with a name, a brace or a string right behind it."""
    if source.raw(index) != "@" or not source.touches(index + 1):
        return False
    if source.touches(index) and source.raw(index - 1) in {"@", "@@"}:
        return False
    behind = source.tokens[index + 1]
    if behind.raw == "{":
        return source.raw(index + 3) == "}" and source.tokens[index + 2].is_word
    return behind.is_word or behind.is_string


def glued_end(source: Source, index: int, end: int) -> int:
    """The end of a name made of adjacent words and variables, or `index` when none starts here."""
    if source.raw(index) != "@" and not (source.raw(index + 1) == "@" and source.touches(index + 1)):
        return index
    position = index
    has_variable = False
    while position < end and (position == index or source.touches(position)):
        token = source.tokens[position]
        if is_sign(source, position):
            if source.raw(position + 1) == "{":
                position += 4
            elif position > index and source.tokens[position + 1].is_word and source.raw(position + 2) != "(":
                position += 2
            else:
                break
            has_variable = True
        elif token.is_word or (position > index and token.raw.replace("_", "").isalnum()):
            position += 1
        else:
            break
    return position if has_variable else index


def macro_end(source: Source, index: int, end: int) -> int:
    """The end of what stands at `index`, for going on behind a macro that failed."""
    glued = glued_end(source, index, end)
    if glued > index or not is_sign(source, index):
        return max(glued, index + 1)
    if source.raw(index + 2) == "(" and source.tokens[index + 1].is_word:
        return source.closes.get(index + 2, index + 2) + 1
    return index + 2


def is_plain_name(source: Source, index: int) -> bool:
    """True for a word that stands for itself: not a part behind a dot, a function or the name of an argument."""
    if not source.tokens[index].is_word or (source.raw(index - 1) == "." and source.touches(index)):
        return False
    return not (source.raw(index + 1) == ":=" or (source.raw(index + 1) == "(" and source.touches(index + 1)))


def is_in_cast(source: Source, index: int) -> bool:
    for opener, closer in source.closes.items():
        if opener < index < closer and source.raw(opener - 1).upper() in _CASTS:
            return not any(opener < other < index < source.closes[other] for other in source.closes)
    return False


def lambda_parameters(source: Source, start: int, end: int) -> Iterator[Token]:
    for index in range(start, end):
        if source.raw(index) != "->":
            continue
        if source.raw(index - 1) != ")":
            yield source.tokens[index - 1]
            continue
        opener = next((first for first, last in source.closes.items() if last == index - 1), index - 1)
        yield from (token for token in source.tokens[opener:index] if token.is_word)


def argument_end(source: Source, index: int, end: int) -> int:
    """The comma, closing bracket or border behind the argument that `index` stands in."""
    while index < end and source.raw(index) not in {",", ")", "]", "}"}:
        index = source.closes.get(index, index) + 1
    return min(index, end)
