"""Every file in `models/` is a node, an error, or something that nobody takes for a model."""

from __future__ import annotations

import os

import pytest

SQL = "MODEL (name {0}, kind FULL);\nSELECT 1 AS x\n"
PYTHON = """{1}
from lamina import model

@model("{0}", kind="FULL", columns={{"x": "int"}})
def execute(context, start, end, execution_time, **kwargs):
    return None
"""
NO_MODEL = "LAM-WARN-030"


def warned(folder) -> list[str]:
    return [notice.message for notice in folder.graph().warnings if notice.code == NO_MODEL]


@pytest.mark.parametrize("beside", ["macros/notes.txt", "macros/y/z.txt", "macros/other.py"])
@pytest.mark.parametrize("has_cache", [False, True])
def test_an_import_that_cannot_be_resolved_beside_a_folder_of_that_name_is_an_error(project, beside, has_cache):
    folder = project({beside: "", "models/a.sql": SQL.format("a")})
    if has_cache:
        folder.graph()
    folder.write({"models/x.py": PYTHON.format("x", "from macros.y import z")})
    for _ in range(2):
        problem = folder.problem()
        assert (problem.code, problem.location.file) == ("LAM-DEF-004", "models/x.py")


def test_a_folder_that_appears_does_not_take_a_model_away(project):
    folder = project({"models/a.sql": SQL.format("a"), "models/x.py": PYTHON.format("x", "import yaml.nodes")})
    assert sorted(folder.graph().models) == ["shop.a", "shop.x"]
    folder.write({"yaml/notes.txt": ""})
    assert sorted(folder.graph().models) == ["shop.a", "shop.x"]


def test_an_unresolved_import_that_is_never_carried_out_is_no_error(project):
    late = "try:\n    from macros.y import z\nexcept ImportError:\n    z = None"
    folder = project({"macros/notes.txt": "", "models/x.py": PYTHON.format("x", late)})
    assert list(folder.graph().models) == ["shop.x"]
    folder.write({"macros/y.py": "z = 1\n"})
    assert [module.name for module in folder.graph().models["shop.x"].body.modules] == ["macros.y", "models.x"]


def test_a_module_found_in_an_earlier_folder_is_seen(project):
    folder = project({"python/helper.py": "value = 1\n", "models/x.py": PYTHON.format("x", "from helper import value")})
    assert [module.path for module in folder.graph().models["shop.x"].body.modules] == [
        "python/helper.py",
        "models/x.py",
    ]
    folder.write({"helper.py": "value = 2\n"})
    assert [module.path for module in folder.graph().models["shop.x"].body.modules] == ["helper.py", "models/x.py"]


def test_a_macro_that_cannot_be_imported_stays_an_error(project):
    folder = project({"macros/m.py": "raise ValueError('no')\n", "models/a.sql": SQL.format("a")})
    assert [problem.code for problem in folder.problems()] == ["LAM-DEF-004"]
    assert [problem.code for problem in folder.problems()] == ["LAM-DEF-004"]


def test_a_package_file_may_declare_models(project):
    folder = project(
        {
            "models/__init__.py": PYTHON.format("x", ""),
            "models/marts/__init__.py": PYTHON.format("y", "from . import helper"),
            "models/marts/helper.py": "value = 1\n",
            "models/z.py": PYTHON.format("z", "from models.marts.helper import value"),
        }
    )
    graph = folder.graph()
    assert sorted(graph.models) == ["shop.x", "shop.y", "shop.z"]
    assert graph.models["shop.x"].body.module == "models"
    assert graph.models["shop.y"].body.module == "models.marts"
    assert graph.warnings == ()


@pytest.mark.parametrize("ending", ["SQL", "Sql"])
def test_endings_may_be_written_in_capitals(project, ending):
    folder = project({f"models/a.{ending}": "MODEL (kind FULL); SELECT 1 AS x", "models/B.PY": PYTHON.format("b", "")})
    assert sorted(folder.graph().models) == ["shop.a", "shop.b"]


@pytest.mark.parametrize("content", ["", "  \n", "-- MODEL (name b);\n", "/* nothing yet */"])
def test_sql_without_a_model_is_an_error(project, content):
    problem = project({"models/a.sql": SQL.format("a"), "models/b.sql": content}).problem()
    assert (problem.code, problem.location.file, bool(problem.hint)) == ("LAM-SQL-001", "models/b.sql", True)


@pytest.mark.parametrize("blueprints", ["()", "[]", "@EVAL([])", "@EACH([], x -> (n := @x))"])
def test_a_file_whose_blueprints_are_none_is_an_error(project, blueprints):
    empty = f"MODEL (name @{{n}}, kind FULL, blueprints {blueprints});\nSELECT 1 AS x\n"
    problem = project({"models/a.sql": SQL.format("a"), "models/b.sql": empty}).problem()
    assert (problem.code, problem.location.file, problem.location.line) == ("LAM-DEF-001", "models/b.sql", 1)


def test_a_python_file_whose_blueprints_are_none_is_an_error(project):
    code = PYTHON.format("@{n}", "").replace("kind=", "blueprints=[], kind=")
    problem = project({"models/a.sql": SQL.format("a"), "models/b.py": code}).problem()
    assert (problem.code, problem.location.file) == ("LAM-DEF-001", "models/b.py")


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("models/b.py", ""),
        ("models/b.py", "\n  \n"),
        ("models/__init__.py", "VERSION = 1\n"),
        ("models/b/__init__.py", ""),
        ("models/.b.sql", "nonsense"),
        ("models/.b/c.sql", "nonsense"),
        ("models/__pycache__/b.py", "nonsense("),
        ("models/README.md", "# Models"),
        ("models/a.sql~", "nonsense"),
        ("models/a.sql.bak", "nonsense"),
        ("models/LICENSE", "free"),
    ],
)
def test_what_nobody_takes_for_a_model_is_passed_over(project, path, content):
    folder = project({"models/a.sql": SQL.format("a"), path: content})
    graph = folder.graph()
    assert (list(graph.models), graph.warnings) == (["shop.a"], ())
    assert folder.graph() == graph


def test_a_helper_that_others_import_needs_no_model(project):
    folder = project(
        {
            "models/x.py": PYTHON.format("x", "from models.helper import value"),
            "models/helper.py": "from models import deeper\nvalue = 1\n",
            "models/deeper.py": "value = 1\n",
            "models/for_macros.py": "value = 1\n",
            "macros/m.py": "from models.for_macros import value\n",
        }
    )
    assert folder.graph().warnings == ()
    assert folder.graph().warnings == ()


@pytest.mark.parametrize(
    "content", ["# commented out\n", "value = 1\n", "def execute(context, **kwargs):\n    return 1\n"]
)
def test_python_without_a_model_that_nothing_imports_is_named(project, content):
    folder = project({"models/a.sql": SQL.format("a"), "models/b.py": content})
    for _ in range(2):
        (message,) = warned(folder)
        assert "`models/b.py` declares no model" in message
    folder.write({"models/x.py": PYTHON.format("x", "from models import b")})
    assert warned(folder) == []
    (folder.root / "models/x.py").unlink()
    assert len(warned(folder)) == 1


def test_a_disabled_python_model_is_a_model(project):
    text = PYTHON.format("b", "").replace('kind="FULL"', 'kind="FULL", enabled=False')
    folder = project({"models/a.sql": SQL.format("a"), "models/b.py": text})
    assert warned(folder) == warned(folder) == []


@pytest.mark.parametrize("name", ["schema.yml", "schema.YAML", "b.sql.jinja", "b.hql", "b.csv", "b.json"])
def test_endings_that_look_like_parts_of_a_model_are_named(project, name):
    folder = project({"models/a.sql": SQL.format("a")})
    assert warned(folder) == []
    folder.write({f"models/deep/{name}": "x\n1\n"})
    for _ in range(2):
        (message,) = warned(folder)
        assert f"`models/deep/{name}` is not read" in message
    (folder.root / "models/deep" / name).unlink()
    assert warned(folder) == []


def test_rows_of_a_seed_may_lie_beside_its_model(project):
    folder = project({"models/b.csv": "x\n1\n", "models/b.sql": "MODEL (kind SEED (path 'b.csv'))"})
    assert (list(folder.graph().models), warned(folder)) == (["shop.b"], [])


def test_what_is_no_file_is_an_error(project):
    folder = project({"models/a.sql": SQL.format("a")})
    os.mkfifo(folder.root / "models/b.sql")
    assert (folder.problem().code, folder.problem().location.file) == ("LAM-PROJ-002", "models/b.sql")


@pytest.mark.parametrize("target", ["nowhere", "../lamina.yaml"])
def test_models_that_cannot_be_listed_are_an_error(project, target):
    folder = project({"seeds/s.csv": "a\n1\n"})
    (folder.root / "models").symlink_to(target)
    assert (folder.problem().code, folder.problem().location.file) == ("LAM-PROJ-002", "models")


def test_a_link_that_leads_to_itself_is_an_error(project):
    folder = project({"models/a.sql": SQL.format("a")})
    (folder.root / "models/b.sql").symlink_to("b.sql")
    assert folder.problem().location.file == "models/b.sql"


def test_of_a_folder_and_a_link_to_it_the_folder_counts(project):
    folder = project({"models/m/a.sql": SQL.format("a")})
    for name in ("b", "z"):
        (folder.root / "models" / name).symlink_to("m")
    assert folder.graph().models["shop.a"].location.file == "models/m/a.sql"


@pytest.mark.parametrize("has_helper", [False, True])
def test_macros_signals_and_hooks_may_stand_in_the_files_of_packages(project, has_helper):
    one = "from lamina import {0}\n\n@{0}()\ndef {1}({2}):\n    return {3}\n"
    header = "MODEL (name a, kind INCREMENTAL_BY_TIME_RANGE (time_column ds), signals (s()), pre_hooks (h));\n"
    files = {
        "macros/__init__.py": one.format("macro", "m", "evaluator", "'7'"),
        "signals/__init__.py": one.format("signal", "s", "batch", "True"),
        "python/__init__.py": one.format("hook", "h", "context", "None"),
        "models/a.sql": f"{header}SELECT @m() AS x, ds FROM raw.t WHERE ds = @start_ds\n",
    }
    if has_helper:
        files["macros/other.py"] = "from macros import m\n"
    folder = project(files)
    for _ in range(2):
        model = folder.graph().models["shop.a"]
        assert "SELECT 7 AS x" in model.body.query.expanded
        assert [call.name for call in (*model.signals, *model.pre_hooks)] == ["s", "h"]


def test_a_function_in_the_file_of_a_package_is_named_as_well(project):
    udf = (
        'from lamina import udf\n\n@udf("shop.clean", arguments={"t": "string"}, returns="string")\ndef clean(t): ...\n'
    )
    folder = project({"functions/__init__.py": udf, "models/a.sql": SQL.format("a")})
    assert [notice.node for notice in folder.graph().warnings if notice.code == "LAM-WARN-044"] == ["shop.clean"]


@pytest.mark.parametrize(
    "path",
    [
        "seeds/a.tsv",
        "seeds/deep/a.csv.gz",
        "seeds/_seeds.yml",
        "sources/raw.json",
        "external_models/raw.sql",
        "audits/a.yml",
        "audits/a.py",
        "macros/a.sql",
        "signals/a.yaml",
        "functions/a.yml",
        "tests/a.sql",
    ],
)
def test_what_somebody_takes_for_a_part_of_the_project_is_told(project, path):
    folder = project({"models/a.sql": SQL.format("a")})
    assert warned(folder) == []
    folder.write({path: "nonsense"})
    for _ in range(2):
        (message,) = warned(folder)
        assert message.startswith(f"`{path}` is not read: ")


@pytest.mark.parametrize("path", ["seeds/README.md", "sources/notes.txt", "tests/data.csv", "python/notes.md"])
def test_what_nobody_takes_for_a_part_of_the_project_is_passed_over(project, path):
    assert warned(project({"models/a.sql": SQL.format("a"), path: "nonsense"})) == []


def test_a_file_that_a_seed_names_is_read_whatever_its_ending(project):
    model = "MODEL (name s, kind SEED (path '../seeds/s.tsv', csv_settings (delimiter = '\t')));\n"
    folder = project({"models/s.sql": model, "seeds/s.tsv": "a\tb\n1\t2\n"})
    assert warned(folder) == []
