"""`kill -9` of a client of a Connect server, on tables that keep a history: the next command finishes, exactly once."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from tests.conformance.kills import CUSTOMERS, KILLS, events
from tests.kit.told import told

pytestmark = pytest.mark.timeout(1500)
NOT_REACHED = {
    # Only a change that nobody else can repeat, or that a table refuses, is taken back.
    "iceberg": {"recover.retracting", "recover.fenced"},
    "delta": set(),
}


@pytest.fixture(scope="module", params=["delta", "iceberg"])
def kills(request: pytest.FixtureRequest, server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("kills") / "shop"
    return {"format": request.param, "seen": told("-m", "tests.conformance.kills", str(folder), server, request.param)}


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
        "months": [{"day": f"2024-01-{day:02d}", "events": len(CUSTOMERS)} for day in range(1, days + 1)],
        "daily": [
            {"id": number, "customer": customer, "amount": amount, "day": day} for number, customer, day, amount in rows
        ],
        "plain": [
            {"id": number, "ts": f"{day}T05:00:00.000Z", "customer": customer} for number, customer, day, _ in rows
        ],
    }


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def test_every_command_was_killed_where_it_was_meant_to_be(kills: dict[str, Any]) -> None:
    for seen in kills["seen"]:
        for point, end in zip(seen["points"], seen["ends"], strict=True):
            if point not in NOT_REACHED[kills["format"]]:
                assert end == -signal.SIGKILL, (point, seen["points"])


@pytest.mark.parametrize("number", range(len(KILLS)), ids=lambda number: " then ".join(KILLS[number]))
def test_the_next_command_finishes_what_was_killed(kills: dict[str, Any], number: int) -> None:
    seen = kills["seen"][number]
    assert (seen["last"], seen["again"]) in {("succeeded", "nothing_to_do"), ("nothing_to_do", "nothing_to_do")}
    for name, rows in expected(number + 2).items():
        assert seen["after"][f"{name}_{kills['format']}"] == in_order(rows), name


@pytest.mark.parametrize("number", range(len(KILLS)), ids=lambda number: " then ".join(KILLS[number]))
def test_readers_see_a_day_as_a_whole_or_not_at_all(kills: dict[str, Any], number: int) -> None:
    seen = kills["seen"][number]
    for name in expected(1):
        shown = seen["during"][f"{name}_{kills['format']}"]
        allowed = [in_order(expected(days)[name]) for days in (number + 1, number + 2)]
        assert shown in allowed, name
