"""Audits read the rows that were written: the model's query is computed once, in every format."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.audited import KINDS
from tests.conformance.project import FORMATS
from tests.kit.told import told

pytestmark = pytest.mark.timeout(600)
PASSED = [["same_rows", "passed"], ["not_null", "passed"]]


@pytest.fixture(scope="module")
def seen(server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("audited") / "project"
    found: dict[str, Any] = told("-m", "tests.conformance.audited", str(folder), server)
    return found


@pytest.mark.parametrize("table_format", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", ["build", "run"])
def test_audits_see_the_rows_that_were_written(
    seen: dict[str, Any], command: str, kind: str, table_format: str
) -> None:
    assert seen[command][f"{kind}_{table_format}"] == PASSED


def test_rows_that_are_computed_again_would_be_seen(seen: dict[str, Any]) -> None:
    assert seen["computed anew"] == 20
