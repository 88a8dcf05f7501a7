"""Sessions that users hand in, with the settings that Delta and Iceberg document and default caches."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.suites import run_suites
from tests.kit.told import told

pytestmark = pytest.mark.timeout(900)


def expected(day: int) -> dict[str, list[int]]:
    """What every model holds once the days before this one are built, day by day."""
    ids = list(range(1, day))
    keyed = sorted({number % 2: number for number in ids}.values())
    return {
        "daily": ids,
        "keyed": keyed,
        "log": ids,
        "total": [len(ids)],
        "plain": [max(ids)],
        "seen": ids,
    }


@pytest.fixture(scope="module", params=["delta", "iceberg"])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return told("-m", "tests.spark.handed_in", str(tmp_path_factory.mktemp(request.param)), request.param)


def test_every_command_succeeds(seen: Any) -> None:
    assert set(seen["statuses"]) <= {"succeeded", "nothing_to_do"}


def test_the_users_session_reads_what_was_just_built(seen: Any) -> None:
    assert seen["rows"] == [expected(day) for day in (2, 3, 3, 4)]
    assert seen["views"] == seen["rows"]


def test_the_users_session_stays_as_it_is(seen: Any) -> None:
    assert seen["changed"] == []


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_the_engine_behaves_the_same_in_it(table_format: str) -> None:
    run_suites(table_format, "tests/ports/test_engine.py")
