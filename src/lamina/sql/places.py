"""Where in a file the words of a text come from that was made of a part of it."""

from __future__ import annotations

import re
from bisect import bisect_right
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lamina.errors import Location
    from lamina.sql.fragment import Fragment

_WORD = re.compile(r"`[^`\n]*`|\"[^\"\n]*\"|'[^'\n]*'|\w+|[^\w\s]")
# So many words are compared without looking for those that stand everywhere.
_MANY = 2000


def place_of(written: Fragment, made: str, offset: int) -> Location:
    """Where the character at `offset` of a text stands in what it was made of.

    Macros may have replaced words: what they made counts as written where the first of these was. Words that were
    only added count as written where the last one in front of them was.
    """
    if made == written.text:
        return written.at(offset)
    old = list(_WORD.finditer(written.text))
    new = list(_WORD.finditer(made))
    index = bisect_right(new, offset, key=lambda word: word.start()) - 1
    if index < 0 or not old:
        return written.location
    matcher = SequenceMatcher(None, _spoken(old), _spoken(new), autojunk=len(new) > _MANY)
    blocks = matcher.get_matching_blocks()
    number = bisect_right(blocks, index, key=lambda block: block.b) - 1
    block = blocks[number] if blocks[0].b <= index else None
    if block is None or not block.size:
        return written.location
    inside = index - block.b
    if inside >= block.size:
        behind = block.a + block.size
        # The last block is an empty one behind all words.
        is_replaced = behind < blocks[number + 1].a
        return written.at(old[behind if is_replaced else behind - 1].start())
    return written.at(old[block.a + inside].start() + (offset - new[index].start()))


def _spoken(words: list[re.Match[str]]) -> list[str]:
    """What words mean, however they are written."""
    return [word[0].strip('`"').lower() for word in words]
