"""A model that keeps its history goes on with it when what it reads changes, in every table format."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from tests.conformance.replay import KINDS
from tests.conformance.sessions import FORMATS_IN, PAIRS, SeenIn

pytestmark = pytest.mark.timeout(900)
EPOCH, NEVER = "1970-01-01T00:00:00.000Z", None


def at(day: int, hour: int = 0) -> str:
    return f"2020-01-{day:02d}T{hour:02d}:00:00.000Z"


def item(number: int, name: str, price: float, day: int, begins: str, ends: str | None) -> dict[str, Any]:
    row = {"id": number, "name": name, "price": price, "updated_at": at(day), "valid_from": begins}
    return row if ends is None else {**row, "valid_to": ends}


SANDWICH, BURGER, FRIES, SHAKE = "Chicken Sandwich", "Cheeseburger", "French Fries", "Milkshake"
CLOSED = [
    item(1, SANDWICH, 10.99, 1, EPOCH, at(2)),
    item(2, BURGER, 8.99, 1, EPOCH, at(2, 11)),
]
STAYS = [item(3, FRIES, 4.99, 1, EPOCH, NEVER), item(1, SANDWICH, 12.99, 2, at(2), NEVER)]
BY_TIME = {
    "first": [
        item(1, SANDWICH, 10.99, 1, EPOCH, NEVER),
        item(2, BURGER, 8.99, 1, EPOCH, NEVER),
        item(3, FRIES, 4.99, 1, EPOCH, NEVER),
    ],
    "second": [*CLOSED, *STAYS, item(4, SHAKE, 3.99, 2, at(2), NEVER)],
    # Older times say nothing new; the burger is back from its end on, and the shake is gone.
    "back": [*CLOSED, *STAYS, item(2, BURGER, 8.99, 1, at(2, 11), NEVER), item(4, SHAKE, 3.99, 2, at(2), at(3, 11))],
}
MENU = {"first": ((1, SANDWICH), (2, BURGER), (3, FRIES)), "second": ((1, SANDWICH), (3, FRIES), (4, SHAKE))}
APPENDED = {
    "first": MENU["first"],
    "second": (*MENU["first"], *MENU["second"]),
    "back": (*MENU["first"], *MENU["second"], *MENU["first"]),
}


def expected(name: str, step: str) -> list[dict[str, Any]]:
    rows = BY_TIME[step] if name == "by_time" else [{"id": key, "name": name} for key, name in APPENDED[step]]
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


@pytest.mark.parametrize(("sort", "table_format"), PAIRS)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("step", ["first", "second", "back"])
def test_every_change_is_put_into_what_was_there(
    seen_in: SeenIn, step: str, name: str, table_format: str, sort: str
) -> None:
    seen = seen_in(sort)
    assert seen[step]["status"] == "succeeded"
    assert seen[step]["rows"][f"{name}_{table_format}"] == expected(name, step)


@pytest.mark.parametrize(("sort", "table_format"), PAIRS)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("step", ["second", "back"])
def test_the_plan_says_that_the_history_is_kept(
    seen_in: SeenIn, step: str, name: str, table_format: str, sort: str
) -> None:
    assert seen_in(sort)[step]["actions"][f"{name}_{table_format}"] == ["seed_and_build", "forward"]


def test_a_command_that_is_killed_while_it_copies_changes_nothing_that_readers_see(seen_in: SeenIn) -> None:
    seen = seen_in("over Connect")
    assert seen["killed"]["end"] == -signal.SIGKILL
    assert seen["killed"]["rows"] == seen["first"]["rows"]


@pytest.mark.parametrize("sort", FORMATS_IN)
def test_building_again_does_nothing(seen_in: SeenIn, sort: str) -> None:
    seen = seen_in(sort)
    assert seen["again"]["status"] == "nothing_to_do"
    assert seen["again"]["rows"] == seen["second"]["rows"]
