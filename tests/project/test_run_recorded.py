"""`run` goes on with what is recorded, whatever has become of the files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from lamina.bootstrap import open_store
from lamina.cli.main import cli
from lamina.errors import LaminaError
from tests.kit.app import Place, january
from tests.project.conftest import ProjectFolder

ORDERS = """MODEL (
  name shop.orders,
  kind INCREMENTAL_BY_TIME_RANGE (time_column ds),
  start '2024-01-01'
);
SELECT ds, @marked(x) AS x FROM raw.orders WHERE ds BETWEEN @start_ds AND @end_ds
"""
MACROS = """from lamina import macro

@macro()
def marked(evaluator, column):
    return f"upper({column.sql()})"
"""
TOTALS = "MODEL (name shop.totals, kind FULL);\nSELECT ds, x FROM shop.orders\n"
STATE = "sqlite:///.lamina/state.db"


@pytest.fixture
def folder(project) -> ProjectFolder:
    return project({"models/orders.sql": ORDERS, "models/totals.sql": TOTALS, "macros/marked.py": MACROS})


@pytest.fixture
def place(folder: ProjectFolder) -> Place:
    """The project built up to the third of January, with its state on disk and a warehouse in memory."""
    made = Place(sources={"raw.orders": january(31)})
    made.store = open_store(STATE, folder.root)  # type: ignore[assignment]
    made.project = folder.open()  # type: ignore[assignment]
    assert made.build("2024-01-04").status == "succeeded"
    return made


def edit(folder: ProjectFolder) -> None:
    folder.write({"models/orders.sql": ORDERS.replace("@marked(x)", "'another'")})


def spoil(folder: ProjectFolder) -> None:
    folder.write(
        {
            "models/orders.sql": "MODEL (name shop.orders, kind NOTHING_KNOWN (((\nSELEC",
            "models/totals.sql": "MODEL (name shop.totals); SELECT FROM WHERE",
            "models/new.py": "def (:",
            "macros/marked.py": "import nothing_that_exists\n@@",
        }
    )


def remove(folder: ProjectFolder) -> None:
    for name in ("models", "macros"):
        shutil.rmtree(folder.root / name)


@pytest.mark.parametrize("what_happened", [edit, spoil, remove])
def test_a_run_computes_the_next_day_with_the_recorded_query_and_macros(
    place: Place, folder: ProjectFolder, what_happened: Callable[[ProjectFolder], None]
):
    what_happened(folder)
    place.project = folder.open()  # type: ignore[assignment]
    process = place.process()
    report = process.run("2024-01-05T01:00:00Z")

    assert report.status == "succeeded"
    assert [(node, at and at.to_pair()[0]) for node, at in process.engine.writes] == [
        ("shop.orders", "2024-01-04T00:00:00Z"),
        ("shop.totals", None),
    ]
    assert place.rows("shop.orders") == tuple(
        (f"2024-01-{day:02}", f"orders:upper(x) AS x<a{day}>") for day in range(1, 5)
    )


def test_the_files_that_run_does_not_look_at_stop_a_build(place: Place, folder: ProjectFolder):
    spoil(folder)
    place.project = folder.open()  # type: ignore[assignment]
    with pytest.raises(LaminaError):
        place.build("2024-01-05")


def test_nothing_due_is_said_without_spark_and_without_readable_files(
    place: Place, folder: ProjectFolder, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    spoil(folder)

    def lamina(*words: str) -> Result:
        return CliRunner().invoke(cli, [*words, "-C", str(folder.root), "--execution-time", "2024-01-04T05:00:00Z"])

    told, document = lamina("run"), lamina("run", "--json")
    assert (told.exit_code, lamina("plan").exit_code) == (0, 2)
    assert "Nothing to do: no interval of prod is due" in told.stdout
    assert "The next interval is due at 2024-01-05 00:00:00 UTC" in told.stdout
    assert json.loads(document.stdout)["status"] == "nothing_to_do"
