"""Matching text with patterns in a number of steps that is known beforehand.

Python's own matcher may try an exponential number of ways. Here all places that a part of a pattern can end at are
followed together, so that every way is taken once, and the steps are counted.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lamina.sql.macros.scalars import NotConstant
from lamina.sql.macros.text import first_line

# What makes the tree that Python's own matcher works by.
if sys.version_info >= (3, 11):
    from re import _parser as trees  # type: ignore[attr-defined]  # the stubs leave it out
else:
    import sre_parse as trees

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_STEPS = 200_000
_MOST_COMPARISONS = 100_000_000

_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT"})
_ONE_CHARACTER = frozenset({"LITERAL", "NOT_LITERAL", "ANY", "IN"})
_EVERYWHERE = frozenset({"AT_BEGINNING", "AT_BEGINNING_STRING", "AT_BEGINNING_LINE"})
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}


def contains(text: str, pattern: str) -> bool:
    """Whether a regular expression matches anywhere in a text.

    Raises `NotConstant` for one that cannot be read, looks around or back, or takes too many steps.
    """
    try:
        tree: Any = trees.parse(pattern)
        matcher = _Matcher(text, tree.state.flags)
        return bool(matcher.ends(tree, frozenset(range(len(text) + 1)), tree.state.flags))
    except (re.error, OverflowError) as error:
        raise NotConstant(f"`{pattern}` is not a regular expression: {first_line(error)}") from error
    except RecursionError:
        raise NotConstant("the regular expression is nested too deeply") from None


def is_like(text: str, pattern: str, *, is_caseless: bool) -> bool:
    """Whether a text is like a pattern of SQL, where `%` stands for any text and `_` for one character."""
    if len(text) * len(pattern) > _MOST_COMPARISONS:
        raise NotConstant(f"comparing may take more than {_MOST_COMPARISONS} steps")
    first, *others = (_Part.of(part, is_caseless=is_caseless) for part in pattern.split("%"))
    if not others:
        return first.length == len(text) and first.begins_at(text, 0)
    *inner, last = others
    end = len(text) - last.length
    if first.length > end or not first.begins_at(text, 0) or not last.begins_at(text, end):
        return False
    position = first.length
    for part in inner:
        found = part.find(text, position, end)
        if found is None:
            return False
        position = found
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What stands between two `%`."""

    length: int
    regex: re.Pattern[str]

    @classmethod
    def of(cls, part: str, *, is_caseless: bool) -> _Part:
        flags = re.DOTALL | (re.IGNORECASE if is_caseless else 0)
        pattern = "".join("." if sign == "_" else re.escape(sign) for sign in part)
        return cls(length=len(part), regex=re.compile(pattern, flags))

    def begins_at(self, text: str, position: int) -> bool:
        return self.regex.match(text, position) is not None

    def find(self, text: str, start: int, end: int) -> int | None:
        """Where the first place ends that this part stands at."""
        found = self.regex.search(text, start, end)
        return None if found is None else found.end()


class _Matcher:
    """One text; counts the steps."""

    def __init__(self, text: str, flags: int) -> None:
        self._text = text
        self._steps = 0
        self._flags = flags

    def ends(self, items: Iterable[Any], starts: frozenset[int], flags: int) -> frozenset[int]:
        """Every place that a sequence can end at, when it begins at one of `starts`."""
        for operation, argument in items:
            if not starts:
                break
            starts = self._item(operation.name, argument, starts, flags)
        return starts

    def _item(self, name: str, argument: Any, starts: frozenset[int], flags: int) -> frozenset[int]:
        self._count(len(starts))
        text = self._text
        if name in _ONE_CHARACTER:
            return frozenset(at + 1 for at in starts if at < len(text) and _fits(name, argument, text[at], flags))
        if name == "BRANCH":
            return frozenset[int]().union(*(self.ends(branch, starts, flags) for branch in argument[1]))
        if name == "SUBPATTERN":
            _, added, removed, items = argument
            return self.ends(items, starts, (flags | added) & ~removed)
        if name in _REPEATS:
            return self._repeated(argument, starts, flags)
        if name == "AT":
            return frozenset(at for at in starts if self._is_at(argument.name, at, flags))
        raise NotConstant("regular expressions that look around or back are matched while the query runs")

    def _repeated(self, argument: Any, starts: frozenset[int], flags: int) -> frozenset[int]:
        least, most, items = argument
        found = starts if least == 0 else frozenset[int]()
        reached, number = starts, 0
        while reached and number < most:
            after = self.ends(items, reached, flags)
            number += 1
            if number < least:
                # Once nothing changes any more, it does not up to the least number either.
                number = least - 1 if after == reached else number
                reached = after
                continue
            reached = after - found
            found |= after
        return found

    def _is_at(self, name: str, at: int, flags: int) -> bool:
        text = self._text
        if name in _EVERYWHERE:
            is_line = bool(flags & re.MULTILINE) and name == "AT_BEGINNING"
            return at == 0 or (is_line and text[at - 1] == "\n")
        if name == "AT_END_STRING":
            return at == len(text)
        if name == "AT_END":
            return at >= len(text) - text.endswith("\n") or (bool(flags & re.MULTILINE) and text[at] == "\n")
        is_word = [0 <= place < len(text) and re.match(r"\w", text[place]) is not None for place in (at - 1, at)]
        return (is_word[0] != is_word[1]) == (name == "AT_BOUNDARY")

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MOST_STEPS:
            raise NotConstant(f"matching the regular expression takes more than {MOST_STEPS} steps")


def _fits(name: str, argument: Any, sign: str, flags: int) -> bool:
    if name == "ANY":
        return sign != "\n" or bool(flags & re.DOTALL)
    spellings = {sign, sign.lower(), sign.upper()} if flags & re.IGNORECASE else {sign}
    codes = [ord(spelling) for spelling in spellings if len(spelling) == 1]
    if name != "IN":
        return (argument in codes) == (name == "LITERAL")
    items = list(argument)
    is_negated: bool = items[0][0].name == "NEGATE"
    return any(_is_in(item, code) for item in items[is_negated:] for code in codes) != is_negated


def _is_in(item: Any, code: int) -> bool:
    operation, argument = item
    if operation.name == "LITERAL":
        return bool(code == argument)
    if operation.name == "RANGE":
        return bool(argument[0] <= code <= argument[1])
    return re.match(_CATEGORIES[argument.name], chr(code)) is not None
