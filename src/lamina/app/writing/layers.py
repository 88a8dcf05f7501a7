"""Generations that hold only what was replaced, laid over the one that holds the rest.

Making a generation anew for one replaced partition would cost as much as the table has partitions. Laid over a former
one it costs what was replaced or added since; once that is many, a generation over everything is made again. With n
partitions at most about the square root of 2n are laid out again each time, which makes both costs meet.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lamina.app.ports.published import Beneath
from lamina.app.rendering.partitions import is_plain, outside

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from lamina.app.ports.engine import Base, Written
    from lamina.app.ports.published import PartitionKey

FEW = 32
"""Tables with fewer partitions are made anew."""
_LONGEST = 16_000
"""Characters of the condition that leaves partitions out: catalogs hold no longer texts of views than twice that."""


def lay_over(base: Base, written: Written) -> Beneath | None:
    """What a generation of replaced partitions is to be laid over; None where one over everything is better."""
    shown, head = base.manifest, base.head
    if len(shown) < FEW or written.shape != head.shape or not written.shape.partition_columns:
        return None
    before = head.beneath or Beneath(generation=head.generation, hidden=(), above=())
    if before.above is None:
        return None
    replaced = {*written.removed, *written.folders}
    above = ({*before.above} - {*written.removed}) | written.folders.keys()
    hidden = {*before.hidden} | {key for key in replaced if key in shown and key not in before.above}
    if len(above) + len(hidden) > 2 * _most(len(shown)) or not all(is_plain(value) for key in hidden for value in key):
        return None
    if len(outside(written.shape.partition_columns, hidden)) > _LONGEST:
        return None
    return Beneath(generation=before.generation, hidden=_in_order(hidden), above=_in_order(above))


def after_adding(base: Base, added: Mapping[PartitionKey, str]) -> Beneath | None:
    """What lies beneath once partitions have joined the generation that is shown."""
    beneath = base.head.beneath
    if beneath is None or beneath.above is None:
        return beneath
    above = (*beneath.above, *added)
    fits = len(above) <= _most(len(base.manifest))
    return Beneath(generation=beneath.generation, hidden=beneath.hidden, above=_in_order(above) if fits else None)


def _most(partitions: int) -> int:
    return math.isqrt(2 * partitions) + 1


def _in_order(keys: Collection[PartitionKey]) -> tuple[PartitionKey, ...]:
    return tuple(sorted(keys, key=lambda key: tuple((value is not None, value or "") for value in key)))
