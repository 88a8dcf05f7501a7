"""Which known names somebody may have meant: those that are a slip of the keyboard away, or abbreviated."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORDS = re.compile(r"[-_ :]+")
# One slip in so many letters.
_LETTERS_PER_SLIP = 3
_MOST_SLIPS = 4
_SHORTEST_ABBREVIATION = 3


def near_names(wanted: str, known: Iterable[str], limit: int = 1) -> tuple[str, ...]:
    """The known names that a person may have meant by another one, nearest first; none when none is near.

    Case does not count. Names in several parts are compared part by part, so that a long schema does not make tables in
    it alike; a name without a schema is compared with tables of any.

    >>> near_names("pln", ["init", "plan", "build"])
    ('plan',)
    >>> near_names("lint", ["init", "plan", "build"])
    ()
    >>> near_names("exec-time", ["execution-time", "target"])
    ('execution-time',)
    """
    text = wanted.lower()
    found = [
        (distance, place, name)
        for place, name in enumerate(dict.fromkeys(known))
        if (distance := _distance_of_names(text, name.lower())) is not None
    ]
    return tuple(name for _, _, name in sorted(found)[:limit])


def did_you_mean(wanted: str, known: Iterable[str], limit: int = 1, prefix: str = "") -> str | None:
    """A hint with the nearest known names, each with a prefix in front; `None` when none is near.

    >>> did_you_mean("shop.ordrs", ["shop.orders", "shop.other"])
    'did you mean `shop.orders`?'
    """
    near = near_names(wanted, known, limit)
    return f"did you mean {' or '.join(f'`{prefix}{name}`' for name in near)}?" if near else None


def _distance_of_names(wanted: str, known: str) -> int | None:
    """How far apart two names are; `None` where nobody would mean one by the other."""
    parts, others = wanted.split("."), known.split(".")
    if len(parts) != len(others):
        if len(parts) != 1:
            return None
        others = others[-1:]
    distances = [_distance_of_words(part, other) for part, other in zip(parts, others, strict=True)]
    known_distances = [distance for distance in distances if distance is not None]
    return sum(known_distances) if len(known_distances) == len(distances) else None


def _distance_of_words(wanted: str, known: str) -> int | None:
    most = min(max(len(wanted), len(known)) // _LETTERS_PER_SLIP, _MOST_SLIPS)
    slips = _slips(wanted, known, most)
    if slips is not None:
        return slips
    return most + 1 if _abbreviates(wanted, known) else None


def _abbreviates(wanted: str, known: str) -> bool:
    """Whether each word of one begins a word of the other, in order: `exec-time` for `execution-time`."""
    if len(wanted) < _SHORTEST_ABBREVIATION:
        return False
    words, others = _WORDS.split(wanted), _WORDS.split(known)
    return len(words) <= len(others) and all(other.startswith(word) for word, other in zip(words, others, strict=False))


def _slips(first: str, second: str, most: int) -> int | None:
    """How many letters are missing, too many, wrong or swapped with their neighbour; `None` for more than `most`."""
    if abs(len(first) - len(second)) > most:
        return None
    before: list[int] = []
    last = list(range(len(second) + 1))
    for row, letter in enumerate(first, start=1):
        current = [row]
        for column, other in enumerate(second, start=1):
            best = min(last[column] + 1, current[-1] + 1, last[column - 1] + (letter != other))
            is_swapped = row > 1 and column > 1 and letter == second[column - 2] and first[row - 2] == other
            current.append(min(best, before[column - 2] + 1) if is_swapped else best)
        before, last = last, current
    return last[-1] if last[-1] <= most else None
