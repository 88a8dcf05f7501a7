"""How far a query reads into its parents, as values; `window_times.py` and `windows.py` find it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Base: TypeAlias = Literal["start", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """A moment relative to an interval: months are added first, as Spark's `add_months` does, then micros."""

    base: Base
    """The interval's start, or its exclusive end."""
    months: int = 0
    micros: int = 0
    is_day: bool = False
    """Whether the moment is rounded down to the beginning of its day in the end; only lower bounds are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputWindow:
    """A half-open stretch of a parent's time; None is no bound.

    For some or all intervals `upper` may not lie after `lower`: then nothing is read.
    """

    lower: Offset | None
    upper: Offset | None


EVERYTHING = InputWindow(lower=None, upper=None)
