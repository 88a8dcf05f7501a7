"""What a project may say and nothing acts on: said in every plan, each kind of thing under a code of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.graph.dag import Notice

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lamina.errors import Location

RUN_DESPITE_UNCHANGED = "LAM-WARN-040"
FRESHNESS = "LAM-WARN-041"
REUSE = "LAM-WARN-042"
PYTHON_NODES = "LAM-WARN-043"
FUNCTIONS = "LAM-WARN-044"
UNIT_TESTS = "LAM-WARN-045"
SETTINGS = "LAM-WARN-046"


def no_effect_yet(code: str, what: str, why: str, location: Location | None, node: str | None = None) -> Notice:
    """The warning about something that a later release will carry out; `why` says what happens until then."""
    return _notice(code, f"{what}{_place(location)} has no effect yet: {why}", location, node)


def no_effect(what: str, why: str, location: Location | None, node: str | None = None) -> Notice:
    """The warning about a setting that means nothing where it stands."""
    return _notice(SETTINGS, f"{what}{_place(location)} has no effect: {why}", location, node)


def each_place_once(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    """Each kind of thing once for every place: the blueprints of a file all come from the same lines."""
    found: dict[object, Notice] = {}
    for notice in notices:
        place = notice.location
        is_placed = place is not None and place.line is not None
        # What it is about stands in front of whose it is.
        about = notice.message.partition(" of `")[0]
        found.setdefault(
            (notice.code, place, about) if is_placed else (notice.code, notice.message, notice.node), notice
        )
    return tuple(found.values())


def _notice(code: str, message: str, location: Location | None, node: str | None) -> Notice:
    return Notice(code=code, message=message, node=node, location=location)


def _place(location: Location | None) -> str:
    if location is None or location.file is None:
        return ""
    return f" ({location.file}:{location.line})" if location.line is not None else f" ({location.file})"
