"""Unchanged files are neither read nor parsed again; changed ones always are."""

from __future__ import annotations

import os

import pytest

from lamina.project import load as load_module
from tests.project.conftest import NOW

MODEL = "MODEL (name m{0}, kind FULL);\nSELECT id, {0} AS n FROM {1}\n"


def chain(count: int) -> dict[str, str]:
    return {
        f"models/m{number:04}.sql": MODEL.format(number, f"m{number - 1}" if number else "raw.t")
        for number in range(count)
    }


@pytest.fixture
def parsed(monkeypatch) -> list[str]:
    """The files that were parsed, in order."""
    seen: list[str] = []
    read = load_module.read_sql_file

    def counting(text, path, stem, surroundings):
        seen.append(path)
        return read(text, path, stem, surroundings)

    monkeypatch.setattr(load_module, "read_sql_file", counting)
    return seen


def test_a_thousand_unchanged_models_are_not_parsed_again(project, parsed):
    folder = project(chain(1000))
    cold = folder.graph()
    assert len(parsed) == 1000
    parsed.clear()
    opened = folder.open()
    warm = opened.graph(NOW)
    assert parsed == []
    assert opened.figures.is_whole_graph_cached
    assert opened.figures.read == ()
    assert warm == cold
    assert list(warm.models) == list(cold.models)


def test_an_edit_costs_its_own_size(project, parsed):
    folder = project(chain(20))
    folder.graph()
    parsed.clear()
    folder.write({"models/m0007.sql": MODEL.format(7, "m6 WHERE 'changed' <> ''")})
    graph = folder.graph()
    assert parsed == ["models/m0007.sql"]
    assert "changed" in graph.models["shop.m7"].body.query.expanded


def test_an_edit_of_equal_size_within_one_tick_is_seen(project):
    folder = project({"models/a.sql": "MODEL (name a); SELECT 1 AS x"})
    assert folder.graph().models["shop.a"].columns[0].name == "x"
    before = (folder.root / "models/a.sql").stat()
    folder.write({"models/a.sql": "MODEL (name a); SELECT 1 AS y"})
    os.utime(folder.root / "models/a.sql", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert folder.graph().models["shop.a"].columns[0].name == "y"


def test_an_old_file_is_not_even_read(project, monkeypatch):
    # As if a while had passed since the files were written.
    monkeypatch.setattr("lamina.project.cache.file._YOUNG_NANOSECONDS", -60_000_000_000)
    folder = project(chain(3))
    folder.graph()

    def refuse(path, name):
        raise AssertionError(f"{name} was read")

    opened = folder.open()
    opened.config()
    monkeypatch.setattr("lamina.project.cache.file.read_bytes", refuse)
    monkeypatch.setattr("lamina.project.load.read_bytes", refuse)
    assert len(opened.graph(NOW).models) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"lamina.yaml": "name: shop\nvariables: {v: 2}\n"},
        {"lamina.yaml": "name: shop\nvariables: {v: 1}\ndefaults: {owner: ann}\n"},
        {"macros/m.py": "from lamina import macro\n\n@macro()\ndef one(evaluator):\n    return '11'\n"},
        {"macros/new.py": "from lamina import macro\n\n@macro()\ndef two(evaluator):\n    return '2'\n"},
        {"helpers.py": "ONE = '111'\n"},
    ],
)
def test_changed_surroundings_are_seen(project, parsed, change):
    folder = project(
        {
            "lamina.yaml": "name: shop\nvariables: {v: 1}\n",
            "helpers.py": "ONE = '1'\n",
            "macros/m.py": "from lamina import macro\nfrom helpers import ONE\n\n"
            "@macro()\ndef one(evaluator):\n    return ONE\n",
            "models/a.sql": "MODEL (name a); SELECT @v AS x, @one() AS y",
        }
    )
    folder.graph()
    folder.graph()
    assert parsed == ["models/a.sql"]
    folder.write(change)
    folder.graph()
    assert parsed == ["models/a.sql", "models/a.sql"]


def test_another_target_reads_no_file_again(project, parsed):
    folder = project(
        {
            "lamina.yaml": "name: shop\ntargets: {dev: {schema: d}, prod: {schema: p}}\n",
            "models/a.sql": MODEL.format(1, "raw.t"),
        }
    )
    assert list(folder.graph(target="dev").models) == ["d.m1"]
    assert list(folder.graph(target="prod").models) == ["p.m1"]
    assert parsed == ["models/a.sql"]


def test_files_that_come_and_go_are_seen(project):
    folder = project(chain(3))
    folder.graph()
    (folder.root / "models/m0002.sql").unlink()
    assert list(folder.graph().models) == ["shop.m0", "shop.m1"]
    folder.write({"seeds/s.csv": "a\n1\n"})
    assert "shop.s" in folder.graph().models


def test_a_problem_stays_a_problem(project):
    folder = project({**chain(2), "models/bad.sql": "MODEL (name bad, kind NONE); SELECT 1 AS x"})
    assert [error.code for error in folder.problems()] == ["LAM-SQL-003"]
    assert [error.code for error in folder.problems()] == ["LAM-SQL-003"]
    (folder.root / "models/bad.sql").unlink()
    assert list(folder.graph().models) == ["shop.m0", "shop.m1"]


def test_a_warning_stays_a_warning(project):
    folder = project(chain(1))
    assert folder.graph().warnings == folder.graph().warnings != ()


def test_a_seed_named_by_a_model_is_watched(project):
    folder = project({"data/x.csv": "a\n1\n", "models/x.sql": "MODEL (kind SEED (path '$root/data/x.csv'))"})
    before = folder.graph().models["shop.x"].body.content_hash
    folder.write({"data/x.csv": "a\n2\n"})
    assert folder.graph().models["shop.x"].body.content_hash != before
    (folder.root / "data/x.csv").unlink()
    assert folder.problem().code == "LAM-DEF-003"


PYTHON_MODEL = """
import {imported}
from lamina import model

@model("shop.p", kind="FULL", columns={{"x": "int"}})
def execute(context, start, end, execution_time, **kwargs):
    return {imported}.value
"""


def test_an_unchanged_python_model_is_not_imported(project, capsys):
    helper = "value = {}\nprint('imported')\n"
    folder = project({"models/p.py": PYTHON_MODEL.format(imported="helper"), "helper.py": helper.format(1)})

    def printed() -> str:
        folder.graph()
        return capsys.readouterr().err

    assert printed() == "imported\n"
    assert printed() == ""
    folder.write({"helper.py": helper.format(2)})
    assert printed() == "imported\n"


def test_a_module_that_appears_is_seen(project):
    folder = project({"models/p.py": PYTHON_MODEL.format(imported="colorsys_of_ours")})
    assert folder.problem().code == "LAM-DEF-004"
    folder.write({"colorsys_of_ours.py": "value = 1\n"})
    assert [module.name for module in folder.graph().models["shop.p"].body.modules] == ["colorsys_of_ours", "models.p"]


def test_a_module_that_takes_the_place_of_a_package_is_seen(project):
    folder = project({"models/p.py": PYTHON_MODEL.format(imported="yaml").replace("yaml.value", "yaml.__name__")})
    assert len(folder.graph().models["shop.p"].body.modules) == 1
    folder.write({"yaml.py": "value = 1\n"})
    assert len(folder.graph().models["shop.p"].body.modules) == 2
