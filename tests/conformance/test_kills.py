"""`kill -9` of clients of a Connect server, every kind at every step: the next command finishes, exactly once."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from tests.conformance.kills import CUSTOMERS, DAYS, NAMES, events, kills_of
from tests.conformance.project import FORMATS
from tests.kit.told import told

pytestmark = pytest.mark.timeout(1500)


@pytest.fixture(scope="module", params=FORMATS)
def kills(request: pytest.FixtureRequest, server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("kills") / "shop"
    return {"format": request.param, "days": told("-m", "tests.conformance.kills", str(folder), server, request.param)}


def at(day: int) -> str:
    return f"2024-01-{day:02d}T00:00:00.000Z"


def expected(days: int) -> dict[str, list[dict[str, Any]]]:
    """What the models hold once so many days are processed."""
    rows = events(days)
    last = f"2024-01-{days:02d}"
    return {
        "adds": [
            {"customer": name, **({"kind": "x"} if name == "a" else {}), "total": sum(range(days + 1)), "last": last}
            for name in CUSTOMERS
        ],
        "appends": [{"id": number, "customer": customer} for number, customer, _, _ in rows],
        "by_time": [
            {
                "id": 1,
                "name": "tea",
                "price": day,
                "updated_at": at(day),
                "valid_from": at(day) if day > 1 else "1970-01-01T00:00:00.000Z",
                **({"valid_to": at(day + 1)} if day < days else {}),
            }
            for day in range(1, days + 1)
        ],
        "by_column": [
            {
                "id": 1,
                "name": "tea",
                "price": day,
                "valid_from": at(day + 1) if day > 1 else "1970-01-01T00:00:00.000Z",
                **({"valid_to": at(day + 2)} if day < days else {}),
            }
            for day in range(1, days + 1)
        ],
        "months": [{"day": f"2024-01-{day:02d}", "events": len(CUSTOMERS)} for day in range(1, days + 1)],
        "daily": [
            {"id": number, "customer": customer, "amount": amount, "day": day} for number, customer, day, amount in rows
        ],
        "plain": [
            {"id": number, "ts": f"{day}T05:00:00.000Z", "customer": customer} for number, customer, day, _ in rows
        ],
        "whole": [{"customer": name, "total": sum(range(days + 1))} for name in CUSTOMERS],
    }


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


@pytest.mark.parametrize("name", NAMES)
def test_every_command_was_killed_where_it_was_meant_to_be(kills: dict[str, Any], name: str) -> None:
    for day, steps in zip(kills["days"], kills_of(kills["format"], name), strict=True):
        assert dict(zip(steps, day["models"][name]["ends"], strict=True)) == dict.fromkeys(steps, -signal.SIGKILL)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", range(DAYS))
def test_the_next_command_finishes_what_was_killed(kills: dict[str, Any], number: int, name: str) -> None:
    seen = kills["days"][number]["models"][name]
    assert seen["last"] in {"succeeded", "nothing_to_do"}
    assert seen["after"] == in_order(expected(number + 2)[name])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", range(DAYS))
def test_readers_see_a_day_as_a_whole_or_not_at_all(kills: dict[str, Any], number: int, name: str) -> None:
    allowed = [in_order(expected(days)[name]) for days in (number + 1, number + 2)]
    steps = kills_of(kills["format"], name)[number]
    for step, shown in zip(steps, kills["days"][number]["models"][name]["during"], strict=True):
        assert shown in allowed, step


@pytest.mark.parametrize("number", range(DAYS))
def test_in_the_end_there_is_nothing_left_to_do(kills: dict[str, Any], number: int) -> None:
    assert kills["days"][number]["again"] == "nothing_to_do"
