"""What goes wrong in the hands of a user: one clear message, the right exit code, nothing half-done."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import resource
import signal
from pathlib import Path

import pytest

from tests.e2e.conftest import PATIENCE, Project, lamina

FINE = "MODEL (name shop.fine, kind FULL);\nSELECT 1 AS id\n"


def codes(project: Project, *words: str, code: int = 2) -> list[str]:
    return [error["code"] for error in project.document(*words, code=code)["errors"]]


# --- projects that cannot be loaded ---------------------------------------------------------------------------
def test_a_folder_without_a_project_says_how_to_get_one(tmp_path: Path):
    answer = lamina("plan", cwd=tmp_path)

    assert answer.returncode == 2
    assert "LAM-USE-004" in answer.stderr
    assert "lamina init" in answer.stderr


def test_an_empty_project_is_refused(project: Project):
    assert codes(project, "plan") == ["LAM-PROJ-003"]


def test_two_models_with_one_name_are_refused(project: Project):
    project.write(models__a_sql=FINE, models__b_sql=FINE)

    document = project.document("plan", code=2)

    assert {error["code"] for error in document["errors"]} == {"LAM-GRAPH-002"}
    assert document["errors"][0]["file"].startswith("models/")


def test_a_circle_is_refused_by_name(project: Project):
    project.write(
        models__a_sql="MODEL (name shop.a, kind FULL);\nSELECT id FROM shop.b\n",
        models__b_sql="MODEL (name shop.b, kind FULL);\nSELECT id FROM shop.a\n",
    )

    answer = project.lamina("plan")

    assert answer.returncode == 2
    assert "LAM-GRAPH-003" in answer.stderr
    assert "shop.a" in answer.stderr
    assert "shop.b" in answer.stderr


def test_every_problem_of_a_project_is_reported_at_once(project: Project):
    project.write(
        models__kind_sql="MODEL (name shop.kind, kind FUL);\nSELECT 1 AS id\n",
        models__property_sql="MODEL (name shop.property, kind FULL, ownr me);\nSELECT 1 AS id\n",
        models__macro_sql="MODEL (name shop.macro, kind FULL);\nSELECT @start_dat AS id\n",
        models__syntax_sql="MODEL (name shop.syntax, kind FULL);\nSELECT FROM WHERE\n",
        models__python_py="def broken(:\n",
    )

    answer = project.lamina("plan")
    errors = project.document("plan", code=2)["errors"]

    assert {error["file"] for error in errors} == {
        f"models/{name}" for name in ("kind.sql", "property.sql", "macro.sql", "syntax.sql", "python.py")
    }
    assert {"LAM-SQL-002", "LAM-SQL-003", "LAM-SQL-006"} <= {error["code"] for error in errors}
    assert all(error["line"] for error in errors)
    assert "did you mean `FULL`" in answer.stderr or "`FULL`" in answer.stderr
    assert "`owner`" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_what_planning_knows_of_columns_variables_and_seeds_is_told_without_spark(project: Project):
    project.write(
        models__fine_sql=FINE,
        models__column_sql="MODEL (name shop.column, kind FULL);\nSELECT\n  idd\nFROM shop.fine\n",
        models__variable_sql="MODEL (name shop.variable, kind FULL);\nSELECT id\nFROM `@shop`.fine\n",
        seeds__cities_csv="id,name\n1,Rome\n2,Oslo,too many\n",
    )

    errors = project.document("plan", code=2)["errors"]

    assert [(error["code"], error["file"], error["line"], error["column"]) for error in errors] == [
        ("LAM-GRAPH-006", "models/column.sql", 3, 3),
        ("LAM-SQL-006", "models/variable.sql", 3, 6),
        ("LAM-DEF-003", "seeds/cities.csv", 3, None),
    ]
    assert errors[0]["hint"] == "did you mean `id`?"


def test_an_unknown_config_key_comes_with_the_nearest(project: Project):
    project.write(lamina_yaml="name: shop\ndefualts: {}\n", models__a_sql=FINE)

    answer = project.lamina("plan")

    assert answer.returncode == 2
    assert "LAM-CFG-002" in answer.stderr
    assert "`defaults`" in answer.stderr


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ("name: shop\nstate: duckdb:///state.duckdb\n", 2),
        ("name: shop\nstate: 'sqlite://'\n", 2),
        ("name: shop\nstate: sqlite:///x.db\ntargets:\n  prod:\n    state: warehouse\n", 5),
        ("name: shop\nmode: direct\n", None),
    ],
)
def test_what_this_release_cannot_do_is_told_where_it_is_asked_for(project: Project, config: str, line: int | None):
    project.write(lamina_yaml=config, models__a_sql=FINE)

    (error,) = json.loads(project.lamina("plan", "--json").stdout)["errors"]

    assert (error["file"], error["line"]) == ("lamina.yaml", line)


@pytest.mark.parametrize(
    "name", ["shop.`with space`", 'shop."it\'s"', "shop.größe", "shop.`a; DROP TABLE b`", "shop.`../up`"]
)
def test_names_that_the_catalog_cannot_hold_are_refused(project: Project, name: str):
    project.write(models__a_sql=f"MODEL (name {name}, kind FULL);\nSELECT 1 AS id\n")

    answer = project.lamina("plan")

    assert answer.returncode == 2
    assert "models/a.sql" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_time_column_that_the_query_does_not_give_is_refused(project: Project):
    project.write(
        models__a_sql="MODEL (name shop.a, kind INCREMENTAL_BY_TIME_RANGE (time_column ds));\nSELECT 1 AS id\n"
    )

    answer = project.lamina("plan")

    assert answer.returncode == 2
    assert "`ds`" in answer.stderr


def test_a_start_in_the_future_waits(project: Project):
    project.write(
        models__a_sql="MODEL (name shop.a, kind INCREMENTAL_BY_TIME_RANGE (time_column ds), start '2999-01-01');\n"
        "SELECT @start_date AS ds, 1 AS id\n"
    )

    answer = project.lamina("plan", "--execution-time", "2024-01-08")

    assert answer.returncode == 0
    assert "waiting" in answer.stdout
    assert "2999-01-01" in answer.stdout


# --- machines that cannot run it ------------------------------------------------------------------------------
@pytest.mark.parametrize("variables", [{"JAVA_HOME": "/nowhere"}, {"JAVA_HOME": None, "PATH": "/nowhere"}])
def test_a_missing_java_is_one_sentence_with_the_fix(project: Project, variables: dict[str, str | None]):
    project.write(models__a_sql=FINE)

    answer = project.lamina("build", **variables)

    assert answer.returncode == 1
    assert "LAM-SPARK-003" in answer.stderr
    assert "hint:" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_java_that_is_too_old_is_one_sentence_with_the_fix_and_planning_needs_none(project: Project):
    java = project.folder / "old" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    project.write(models__a_sql=FINE)

    planned = project.lamina("plan", JAVA_HOME=str(project.folder / "old"))
    built = project.lamina("build", JAVA_HOME=str(project.folder / "old"))

    assert planned.returncode == 0
    assert built.returncode == 1
    assert "is Java 11, and Spark needs Java 17 or newer" in built.stderr
    assert "hint:" in built.stderr


def test_a_project_that_reaches_spark_over_connect_needs_no_java(project: Project):
    project.write(lamina_yaml="name: shop\nspark: {remote: 'sc://127.0.0.1:9'}\n", models__a_sql=FINE)

    answer = project.lamina("doctor", JAVA_HOME="/nowhere")

    assert answer.returncode == 1
    assert "JAVA_HOME" not in answer.stdout
    assert "no Spark Connect server answers at `sc://127.0.0.1:9`" in answer.stdout


def test_a_cluster_that_does_not_answer_is_told_at_once(project: Project):
    project.write(lamina_yaml="name: shop\nspark: {master: 'spark://127.0.0.1:9'}\n", models__a_sql=FINE)

    answer = project.lamina("build")

    assert answer.returncode == 1
    assert "LAM-SPARK-004" in answer.stderr
    assert "`spark://127.0.0.1:9`" in answer.stderr


def obey_file_modes() -> None:
    """Takes from root what lets it write where nobody may."""
    if os.geteuid() == 0:
        capability_drop, override, read_search = 24, 1, 2
        for capability in (override, read_search):
            ctypes.CDLL(None).prctl(capability_drop, capability, 0, 0, 0)


def test_a_read_only_project_can_be_planned_and_not_built(project: Project):
    project.write(models__a_sql=FINE)
    project.folder.chmod(0o555)

    planned = project.lamina("plan", limit=obey_file_modes)
    built = project.lamina("build", limit=obey_file_modes)
    asked = project.lamina("query", "SELECT 1", limit=obey_file_modes)

    assert planned.returncode == 0
    for answer in (built, asked):
        assert answer.returncode == 1
        assert "LAM-SPARK-007" in answer.stderr
        assert f"`{project.folder / '.lamina'}` cannot be written" in answer.stderr
    assert not (project.folder / ".lamina").exists()


@pytest.mark.parametrize("is_configured", [False, True])
def test_an_unwritable_warehouse_is_named_before_spark_starts(project: Project, is_configured: bool):
    project.write(models__a_sql=FINE)
    warehouse = project.folder / ".lamina" / "warehouse"
    if is_configured:
        warehouse = project.folder / "elsewhere"
        project.write(lamina_yaml=f"name: shop\nspark: {{config: {{spark.sql.warehouse.dir: '{warehouse}'}}}}\n")
    warehouse.mkdir(parents=True)
    warehouse.chmod(0o555)

    answer = project.lamina("build", limit=obey_file_modes)

    assert answer.returncode == 1
    assert "LAM-SPARK-007" in answer.stderr
    assert f"`{warehouse}` cannot be written" in answer.stderr
    assert "starting Spark" not in answer.stderr


def take_small_files_only() -> None:
    """A disk that has room for Spark's catalog, and not for a large table."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000_000, 4_000_000))


def test_a_disk_without_room_fails_the_model_that_needs_it_and_nothing_else(project: Project):
    rows = "SELECT id, sha2(CAST(id AS STRING), 256) AS text FROM RANGE(400000)\n"
    project.write(models__a_sql=FINE, models__big_sql=f"MODEL (name shop.big, kind FULL);\n{rows}")

    full = project.lamina("build", limit=take_small_files_only)
    again = project.document("build")

    assert full.returncode == 1
    assert "LAM-SPARK-007" in full.stderr
    assert "file too large" in full.stderr
    assert "Traceback" not in full.stderr
    assert {node["name"]: node["rows"] for node in again["nodes"]} == {"shop.big": 400_000, "shop.fine": None}


def test_two_builds_at_once_both_end_well(project: Project):
    project.write(models__a_sql=FINE)
    first = project.start("build")
    told = first.stderr.readline()
    while "starting Spark" not in told:
        told = first.stderr.readline()
        assert told, "the first build ended"
    second = project.start("build")
    one, two = first.communicate(timeout=PATIENCE), second.communicate(timeout=PATIENCE)

    assert (first.returncode, second.returncode) == (0, 0), one[1] + two[1]
    assert f"waiting for the embedded catalog: `lamina build` (process {first.pid}" in two[1]
    assert "succeeded: 1 built" in one[0]
    assert "Nothing to do" in two[0] + two[1]
    assert "failed" not in two[1]


def test_a_folder_that_cannot_be_written_is_named(project: Project):
    project.write(models__a_sql=FINE)
    (project.folder / ".lamina").write_text("in the way", encoding="utf-8")

    answer = project.lamina("build")

    assert answer.returncode == 1
    assert ".lamina" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert "defect" not in answer.stderr


def test_a_second_command_waits_for_the_catalog_names_its_holder_and_can_be_interrupted(project: Project):
    project.write(models__a_sql=FINE)
    home = project.folder / ".lamina"
    home.mkdir()
    with (home / "spark.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = project.start("build")
        seen = []
        for line in second.stderr:
            seen.append(line)
            if "waiting for the embedded catalog" in line:
                second.send_signal(signal.SIGINT)
                break
        rest = second.communicate(timeout=PATIENCE)[1]

    assert "waiting for the embedded catalog" in seen[-1]
    assert second.returncode == 130
    assert "interrupted" in rest or "cancelled" in rest
    assert "Traceback" not in rest


# --- models that fail on Spark --------------------------------------------------------------------------------
PYTHON_MODEL = """\
from lamina import model


@model("shop.{name}", kind="FULL", columns={{"id": "int"}})
def execute(context, start, end, execution_time, **kwargs):
    {body}
"""


class Trouble:
    """A project in which several things fail, and what every step of mending it answered."""

    def __init__(self, folder: Path) -> None:
        self.project = Project(folder)
        self.project.write(
            lamina_yaml="name: shop\ndefaults: {start: 2024-01-01}\n",
            models__fine_sql=FINE,
            models__column_sql="MODEL (name shop.column, kind FULL);\nSELECT\n  idd(id) AS id\nFROM shop.fine\n",
            models__gone_sql="MODEL (name shop.gone, kind VIEW);\nSELECT *\nFROM raw.gone\n",
            models__gone_too_sql="MODEL (name shop.gone_too, kind FULL);\nSELECT *\nFROM raw.gone\n",
            models__cities_sql="MODEL (name shop.cities, kind SEED (path '../seeds/cities.csv'), "
            "columns (id int, name text))",
            seeds__cities_csv="id,name\n1,Rome\ntwo,Oslo\n",
        )
        self.refused = self.project.lamina("build", "--execution-time", "2024-01-08")
        self.refused_environments = self.project.document("env", "list")
        for name in ("gone.sql", "gone_too.sql"):
            (self.project.folder / "models" / name).unlink()

        self.project.write(
            models__column_sql="MODEL (name shop.column, kind FULL);\nSELECT id FROM shop.fine\n",
            seeds__cities_csv="id,name\n1,Rome\n2,Oslo\n",
            models__divide_sql="MODEL (name shop.divide, kind FULL);\n"
            "SELECT CAST(raise_error('no such luck') AS INT) AS id FROM shop.fine\n",
            models__below_sql="MODEL (name shop.below, kind FULL);\nSELECT id FROM shop.divide\n",
            models__nothing_py=PYTHON_MODEL.format(name="nothing", body="return None"),
            models__wrong_py=PYTHON_MODEL.format(name="wrong", body="return 5"),
            models__raises_py=PYTHON_MODEL.format(name="raises", body="raise KeyError('lost')"),
        )
        self.failed = self.project.lamina("build", "--execution-time", "2024-01-08")
        for name in ("divide.sql", "below.sql", "nothing.py", "wrong.py", "raises.py"):
            (self.project.folder / "models" / name).unlink()
        self.mended = self.project.document("build", "--execution-time", "2024-01-08")


@pytest.fixture(scope="module")
def trouble(tmp_path_factory: pytest.TempPathFactory) -> Trouble:
    return Trouble(tmp_path_factory.mktemp("trouble"))


def test_queries_that_spark_refuses_are_reported_together_before_anything_is_written(trouble: Trouble):
    answer = trouble.refused

    assert answer.returncode == 1
    assert "LAM-SPARK-005" in answer.stderr
    assert "at models/column.sql:3:3" in answer.stderr
    assert "seeds/cities.csv:3" in answer.stderr
    assert answer.stderr.count("`raw.gone`, read by `shop.gone` and `shop.gone_too`, does not exist") == 1
    assert "at models/gone.sql:3:6" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert trouble.refused_environments["environments"] == []


def test_a_failure_is_kept_to_its_descendants(trouble: Trouble):
    status = {
        cells[0]: cells[1]
        for cells in (line.split() for line in trouble.failed.stdout.splitlines())
        if cells and cells[0].startswith("shop.")
    }

    assert trouble.failed.returncode == 1
    assert status == {
        "shop.fine": "succeeded",
        "shop.cities": "succeeded",
        "shop.column": "succeeded",
        "shop.divide": "failed",
        "shop.below": "skipped",
        "shop.nothing": "failed",
        "shop.wrong": "failed",
        "shop.raises": "failed",
    }


@pytest.mark.parametrize(
    ("name", "file", "words"),
    [
        ("divide", "models/divide.sql", "no such luck"),
        ("nothing", "models/nothing.py", "returned nothing"),
        ("wrong", "models/wrong.py", "int"),
        ("raises", "models/raises.py", "KeyError"),
    ],
)
def test_each_failed_model_is_explained(trouble: Trouble, name: str, file: str, words: str):
    told = [part for part in trouble.failed.stderr.split("\nerror ") if f"at {file}" in part]

    assert len(told) == 1
    assert words in told[0]
    assert name in told[0]


def test_after_mending_the_same_command_works(trouble: Trouble):
    assert trouble.mended["status"] in {"succeeded", "nothing_to_do"}
    assert {node["name"] for node in trouble.mended["nodes"]} == {"shop.fine", "shop.cities", "shop.column"}


def test_json_of_a_failed_command_is_one_document(project: Project):
    answer = project.lamina("plan", "--json")

    assert json.loads(answer.stdout)["status"] == "failed"
    assert answer.stderr == ""
