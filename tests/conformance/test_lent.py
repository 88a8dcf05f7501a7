"""Maintenance of every table that Lamina has made, former ones too: readers of all environments keep their rows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.lent import MODELS

pytestmark = pytest.mark.timeout(1200)


def test_versions_begin_with_the_rows_of_former_ones(seen: dict[str, Any]) -> None:
    assert (seen["changed"], seen["again"], seen["changed again"]) == ("succeeded",) * 3
    assert seen["first"] == ["succeeded"] * 6
    assert seen["maintained"] >= 12
    # Iceberg itself refuses to look for files that somebody may be writing right now.
    assert seen["refused"]
    assert {each.partition(":")[0] for each in seen["refused"]} == {"remove_orphan_files"}


@pytest.mark.parametrize("name", MODELS)
def test_no_reader_loses_a_row_to_maintenance(seen: dict[str, Any], name: str) -> None:
    assert seen["before"][f"prod.{name}"] == [1, 2, 3, 4]
    assert seen["before"][f"dev.{name}"] == [1, 2]
    assert seen["after"] == seen["before"]


@pytest.mark.parametrize("name", MODELS)
def test_the_next_batch_goes_on_from_there(seen: dict[str, Any], name: str) -> None:
    assert seen["next"] == "succeeded"
    assert seen["later"][f"prod.{name}"] == [1, 2, 3, 4, 5]


def test_versions_whose_files_were_rewritten_are_still_read(seen: dict[str, Any]) -> None:
    assert seen["by versions"] == {"restated": "succeeded", "rows": {name: [1, 2, 3, 4, 5] for name in MODELS}}


def test_files_that_were_deleted_all_the_same_are_found_and_named(seen: dict[str, Any]) -> None:
    robbed = {name for name, rows in seen["robbed"].items() if isinstance(rows, str)}
    assert robbed == {"prod.borrows", "dev.days"}
    assert len(seen["faults"]) == 2
    for name in robbed:
        environment, _, model = name.partition(".")
        (fault,) = (each for each in seen["faults"] if f"`lent.{model}`" in each)
        assert f"`lamina state repair {environment}`" in fault


def test_a_repair_brings_every_row_back_and_nothing_is_computed_or_borrowed_again(seen: dict[str, Any]) -> None:
    assert seen["repaired"] == {"prod": {"lent.borrows": "repaired"}, "dev": {"lent.days": "repaired"}}
    assert seen["mended"] == seen["whole"]
    assert (seen["healthy"], seen["repaired again"], seen["unchanged"]) == ([], {}, "nothing_to_do")
    assert seen["last"] == "succeeded"
    assert seen["in the end"] == {
        name: [*rows, 7] if name.startswith("prod.") else rows for name, rows in seen["mended"].items()
    }
