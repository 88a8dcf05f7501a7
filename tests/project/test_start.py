"""What commands import: a plan of an unchanged project leaves most of Lamina and of its libraries alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.generate import generate
from benchmarks.recorded import record_as_built
from tests.project.conftest import NOW

ROOT = Path(__file__).parents[2]
MOMENT = "2024-02-01"
AUDITED = """
MODEL (name staging.audited, kind FULL, audits (not_null(columns := (x)), plausible));
SET spark.sql.shuffle.partitions = 2;
SELECT 1 AS x;
ON_VIRTUAL_UPDATE_BEGIN;
GRANT SELECT ON TABLE @this_model TO readers;
ON_VIRTUAL_UPDATE_END;
"""
MODEL = "MODEL (name m, kind FULL);\nSELECT 1 AS x\n"
# A little above what there is; with a new Python or SQLAlchemy it may have to grow.
MOST_MODULES = 530
MOST_OF_OURS = 146

LIST_MODULES = """
import atexit, json, sys
atexit.register(lambda: sys.stderr.write(json.dumps(sorted(sys.modules))))
from lamina.cli.main import main
sys.argv[0] = "lamina"
main()
"""

COUNT_GARBAGE = """
import atexit, gc, json, sys
from lamina.cli.main import main
before = sum(each["collections"] for each in gc.get_stats())
def tell():
    collections = sum(each["collections"] for each in gc.get_stats()) - before
    sys.stderr.write(json.dumps([collections, len(gc.get_objects()), gc.get_freeze_count()]))
atexit.register(tell)
main()
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with its state in SQLite that counts as built, loaded once since."""
    folder = tmp_path_factory.mktemp("built") / "project"
    generate(folder, 12, concurrency=1)
    (folder / "audits").mkdir()
    (folder / "audits" / "plausible.sql").write_text("AUDIT (name plausible);\nSELECT * FROM @this_model WHERE x > 9\n")
    (folder / "models" / "audited.sql").write_text(AUDITED)
    record_as_built(folder, MOMENT)
    loaded_by(folder, "plan", "--json", "--execution-time", MOMENT)
    return folder


def loaded_by(folder: Path, *words: str) -> tuple[str, list[str]]:
    """What a command answers, and every module that is loaded in its end."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAMINA")}
    environment["PYTHONPATH"] = str(ROOT / "src")
    command = [sys.executable, "-c", LIST_MODULES, *words, "-C", str(folder)]
    answer = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout, json.loads(answer.stderr.rpartition("\n")[2])


def test_a_plan_of_an_unchanged_project_imports_what_it_uses(built: Path):
    printed, modules = loaded_by(built, "plan", "--json", "--execution-time", MOMENT)

    assert json.loads(printed)["status"] == "nothing_to_do"
    packages = {name.partition(".")[0] for name in modules}
    assert packages & {"pyspark", "py4j", "pandas", "psycopg", "sqlglot", "pydantic", "yaml"} == set()
    unused = {
        "rich.progress",
        "lamina.app.application",
        "lamina.app.building.executor",
        "lamina.app.ports.engine",
        "lamina.app.ports.events",
        "lamina.state.postgres",
    }
    unused |= {"lamina.project.load", "lamina.project.python.macros", "sqlalchemy.orm"}
    assert unused & set(modules) == set()


def test_a_plan_of_an_unchanged_project_loads_few_modules(built: Path):
    _, modules = loaded_by(built, "plan", "--json", "--execution-time", MOMENT)

    assert len([name for name in modules if name.partition(".")[0] == "lamina"]) <= MOST_OF_OURS
    assert len(modules) <= MOST_MODULES


def test_a_plan_of_an_unchanged_project_does_not_look_for_garbage(built: Path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    words = ["plan", "--json", "-C", str(built), "--execution-time", MOMENT]
    answer = subprocess.run(
        [sys.executable, "-c", COUNT_GARBAGE, *words], capture_output=True, text=True, env=environment
    )
    collections, left_to_look_through, frozen = json.loads(answer.stderr.rpartition("\n")[2])

    assert collections == 0
    assert left_to_look_through < 1_000 < frozen


@pytest.mark.parametrize("words", [("env", "list"), ("history",), ("intervals", "staging.stg_0")])
def test_commands_that_look_do_not_load_what_writes(built: Path, words: tuple[str, ...]):
    _, modules = loaded_by(built, *words, "--execution-time", MOMENT)

    assert {"lamina.app.application", "lamina.app.building.executor", "sqlglot"} & set(modules) == set()


def test_a_model_is_rendered_without_what_writes(built: Path):
    printed, modules = loaded_by(built, "render", "staging.stg_0", "--execution-time", MOMENT)

    assert "SELECT" in printed
    assert {"lamina.app.application", "lamina.app.building.executor", "lamina.app.leases.recover"} & set(
        modules
    ) == set()


@pytest.mark.parametrize(
    ("lines", "environment"),
    [
        ("variables:\n  region: ${ENV:SHOP_REGION}\n", {"SHOP_REGION": "sesame-street"}),
        ('variables:\n  region: "\\x24{ENV:SHOP_REGION}"\n', {"SHOP_REGION": "sesame-street"}),
        ("spark:\n  config:\n    spark.hadoop.fs.s3a.secret.key: sesame-street\n", {}),
        ("state: postgresql://ada:sesame-street@db/books\n", {}),
        ("spark:\n  remote: sc://host:15002/;token=sesame-street\n", {}),
        ("", {"LAMINA__SPARK__REMOTE": "sc://sesame-street:15002"}),
    ],
)
def test_a_configuration_with_secrets_is_not_kept(project, lines: str, environment: dict[str, str]):
    folder = project({"lamina.yaml": f"name: shop\n{lines}", "models/m.sql": MODEL})
    opened = folder.open(environ=environment)
    opened.graph(NOW)

    assert opened._remembered.config == b""
    assert folder.open(environ=environment).settings() == opened.settings()


def test_a_configuration_is_read_again_when_its_file_changes(project):
    folder = project({"lamina.yaml": "name: shop\n", "models/m.sql": MODEL})
    folder.open().graph(NOW)
    assert folder.open()._remembered.config != b""
    assert folder.open().settings().name == "shop"

    folder.write({"lamina.yaml": "name: store\n"})

    assert folder.open().settings().name == "store"


def test_a_kept_configuration_counts_for_its_target(project):
    text = "name: shop\ntargets:\n  prod: {}\n  dev:\n    schema: other\n"
    folder = project({"lamina.yaml": text, "models/m.sql": MODEL})
    folder.open().graph(NOW)

    assert folder.open(target="dev").settings().schema == "other"
    assert folder.open().settings().schema == "shop"
