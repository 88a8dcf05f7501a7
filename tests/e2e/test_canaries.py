"""Values of the environment and secrets are planted wherever they can be written, and looked for everywhere."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Project

CANARIES = {
    "SHOP_MARK": "canary-in-a-variable",
    "SHOP_SPARK": "canary-in-a-setting",
    "SHOP_TOKEN": "canary-of-a-hook",
}
"""By the variable that holds it."""
WORD = "canary-"
FILES = {
    "lamina.yaml": """name: shop
variables: {mark: "${ENV:SHOP_MARK}", token: "${SECRET:SHOP_TOKEN}"}
spark: {config: {spark.sql.shuffle.partitions: 1, spark.hadoop.fs.s3a.secret.key: "${SECRET:SHOP_SPARK}"}}
defaults: {start: 2024-01-01}
""",
    "models/orders.sql": """MODEL (
  name shop.orders,
  kind INCREMENTAL_BY_TIME_RANGE (time_column day),
  audits (accepted_range(column := length(@mark), min_v := 1), marked),
  signals (is_there(mark := @mark)),
  session_properties ('spark.some.mark' = @mark),
  pre_hooks (greet(mark := @mark)),
  tags (nightly)
);
SET spark.other.mark = @mark;
SELECT id, DATE'2024-01-01' AS day, @doubled(@mark) AS n FROM range(3) WHERE @mark <> '' AND @start_ds <> @mark;
ON_VIRTUAL_UPDATE_BEGIN;
SELECT length(@mark);
ON_VIRTUAL_UPDATE_END;
""",
    "models/people.py": """from lamina import model

@model("shop.people", kind="FULL", columns={"n": "int"})
def execute(context, **kwargs):
    return context.spark.sql(f"SELECT {len(context.var('mark'))} AS n")
""",
    "models/seen.sql": """MODEL (
  name shop.seen, kind VIEW, description 'seen by @{mark}', column_descriptions (is_marked = @mark)
);
SELECT id, @mark <> '' AS is_marked FROM shop.orders
""",
    "audits/marked.sql": "AUDIT (name marked);\nSELECT * FROM @this_model WHERE @mark = ''\n",
    "macros/m.py": "from lamina import macro\n\n@macro()\ndef doubled(evaluator, text):\n"
    "    return f'2 * length({text})'\n",
    "signals/s.py": "from lamina import signal\n\n@signal()\ndef is_there(batch, mark):\n    return bool(mark)\n",
    "python/h.py": "from lamina import hook\n\n@hook()\ndef greet(context, mark):\n"
    "    assert mark.startswith('canary') and context.var('token').startswith('canary')\n",
}
COMMANDS = (
    ("plan", "--explain"),
    ("build", "--json"),
    ("run", "--json", "--execution-time", "2024-01-04"),
    ("query", "SELECT sum(n) AS n FROM shop.orders", "--json"),
    ("audit", "--json"),
    ("render", "orders"),
    ("intervals", "orders", "--json"),
    ("history", "--json"),
    ("plan", "--json", "-v"),
)


class Watch(threading.Thread):
    """Looks at the command lines of all processes until it is told that enough was seen."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._is_over = threading.Event()
        self.seen: set[str] = set()
        self.has_seen_java = False

    def run(self) -> None:
        while not self._is_over.wait(0.02):
            for place in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    line = place.read_bytes().decode(errors="replace")
                except OSError:
                    continue
                self.has_seen_java = self.has_seen_java or "org.apache.spark" in line
                self.seen.update(word for word in line.split("\0") if WORD in word)

    def finish(self) -> None:
        self._is_over.set()
        self.join()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    project = Project(tmp_path_factory.mktemp("shop"))
    for name, text in FILES.items():
        place = project.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    watch = Watch()
    watch.start()
    answers = {}
    for command in COMMANDS:
        at = () if "--execution-time" in command or command[0] == "query" else ("--execution-time", "2024-01-03")
        answers[command] = project.lamina(*command, *at, **CANARIES)
    watch.finish()
    # What the query of a view says, the catalog says too.
    held = [
        str(file.relative_to(project.folder))
        for file in sorted((project.folder / ".lamina").rglob("*"))
        if file.is_file() and "metastore" not in file.parts and WORD.encode() in file.read_bytes()
    ]
    (project.folder / "models" / "bad.sql").write_text(
        "MODEL (name shop.bad, kind FULL);\nSELECT CAST(@mark AS INT) AS x FROM shop.orders\n"
    )
    bad = project.lamina("build", "--execution-time", "2024-01-04", **CANARIES)
    after = project.lamina("history", "--json", **CANARIES)
    return {"answers": answers, "watch": watch, "held": held, "bad": bad, "after": after, "folder": project.folder}


def test_every_command_succeeds_with_the_values(told: dict[str, Any]) -> None:
    ended = {command: answer.returncode for command, answer in told["answers"].items()}
    assert set(ended.values()) == {0}, {
        command: answer.stderr for command, answer in told["answers"].items() if answer.returncode
    }


def test_no_answer_shows_a_value(told: dict[str, Any]) -> None:
    shown = [command for command, each in told["answers"].items() if WORD in each.stdout + each.stderr]
    assert shown == []


def test_no_file_beside_the_project_holds_a_value(told: dict[str, Any]) -> None:
    assert told["held"] == []


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="command lines are read from /proc")
def test_no_command_line_shows_a_value(told: dict[str, Any]) -> None:
    assert told["watch"].has_seen_java
    assert told["watch"].seen == set()


def test_what_spark_says_of_a_value_is_told_without_it(told: dict[str, Any]) -> None:
    bad = told["bad"]
    assert bad.returncode == 1
    assert "cannot be cast" in bad.stderr
    assert "${ENV:SHOP_MARK}" in bad.stderr
    assert WORD not in bad.stdout + bad.stderr + told["after"].stdout + told["after"].stderr
