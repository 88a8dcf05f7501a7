"""Code of models, hooks and signals that would end the process when it runs: its node fails, others do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lamina import Project
from lamina.spark.engine import SparkEngine

pytest_plugins = ["tests.ports.conftest_engine"]

MODEL = (
    "from lamina import model\n\n@model(kind='FULL', columns={{'x': 'int'}})\ndef {0}(context, **kwargs):\n    {1}\n"
)
TIMES = "kind INCREMENTAL_BY_TIME_RANGE (time_column ds), start '2024-01-01'"
FILES = {
    "lamina.yaml": "name: ends\nconcurrency: 2\n",
    "python/h.py": "from lamina import hook\n\n@hook\ndef leave(context):\n    exit(0)\n",
    "signals/s.py": """from lamina import signal


@signal
def leave(batch):
    yield from ()
    raise SystemExit(0)
""",
    "models/fine.sql": "MODEL (kind FULL);\nSELECT 1 AS x\n",
    "models/hooked.sql": "MODEL (kind FULL, pre_hooks [leave]);\nSELECT 1 AS x\n",
    "models/asked.sql": f"MODEL ({TIMES}, signals (leave));\nSELECT 1 AS x, @start_date AS ds\n",
    "models/called.py": MODEL.format("called", "raise SystemExit"),
    "models/yielding.py": MODEL.format("yielding", "yield context.spark.sql('SELECT 1 AS x'); exit()"),
    # It is fine while the project is loaded.
    "models/imported.py": "import sys\nif __name__.startswith('_lamina'):\n    sys.exit(0)\n"
    + MODEL.format("imported", "return context.spark.sql('SELECT 1 AS x')"),
}
PLACES = {
    "hooked": "python/h.py:5",
    "asked": "signals/s.py:7",
    "called": "models/called.py:5",
    "yielding": "models/yielding.py:5",
    "imported": "models/imported.py:3",
}


@pytest.fixture(scope="module")
def nodes(engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    spark: SparkSession = engine.frame("SELECT 1 AS x").sparkSession
    folder: Path = tmp_path_factory.mktemp("ends")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    with Project.open(folder, spark=spark) as project:
        report = project.build(execution_time="2024-01-03")
    return {node["name"].removeprefix("ends."): node for node in report.to_dict()["nodes"]}


def test_others_are_built(nodes) -> None:
    assert nodes["fine"]["status"] == "succeeded"


@pytest.mark.parametrize("name", PLACES)
def test_the_node_fails_at_the_line_that_would_have_ended_the_process(nodes, name: str) -> None:
    assert nodes[name]["status"] == "failed"
    error = nodes[name]["error"]
    told = f"{error['file']}:{error['line']} {error['hint']}"
    assert "SystemExit" in error["message"] or "KeyboardInterrupt" in error["message"]
    assert PLACES[name] in told
