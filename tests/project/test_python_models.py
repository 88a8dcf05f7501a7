"""Models in Python: what is captured, what they read, and what is refused."""

from __future__ import annotations

import sys
import textwrap

import pytest

from lamina.errors import BadPythonModel, DefinitionError, UnknownProperty
from lamina.project.python.macros import load_recorded_macros
from lamina.project.python.modules import run_modules

HEAD = "from lamina import model\n\n"


def python(body: str) -> str:
    return HEAD + textwrap.dedent(body)


def execute(body: str = "return None", **arguments: object) -> str:
    given = {"kind": "FULL", "columns": {"x": "int"}, **arguments}
    listed = ", ".join(f"{key}={value!r}" for key, value in given.items())
    inner = textwrap.indent(textwrap.dedent(body), "    ")
    return f"@model('shop.p', {listed})\ndef execute(context, start, end, execution_time, **kwargs):\n{inner}\n"


def test_a_decorated_function_is_a_model(project):
    folder = project(
        {
            "models/p.py": HEAD
            + execute(
                kind={
                    "name": "INCREMENTAL_BY_TIME_RANGE",
                    "time_column": "ds",
                    "batch_size": 7,
                    "lookback": 1,
                },
                columns={"ds": "TIMESTAMP", "x": "INT64"},
                start="2024-01-01",
                cron="@hourly",
                audits=["not_constant(column := x)", ("not_null", {"columns": ["x"]})],
                grain="x",
                tags=["a"],
                partitioned_by=["x"],
                physical_properties={"a": 1},
                column_descriptions={"x": "why"},
                description="Words",
            )
        }
    )
    model = folder.graph().models["shop.p"]
    assert model.kind.name == "INCREMENTAL_BY_TIME_RANGE"
    assert (model.kind.batch_size, model.kind.lookback) == (7, 1)
    assert [(column.name, column.type, column.comment) for column in model.columns] == [
        ("ds", "timestamp", None),
        ("x", "bigint", "why"),
    ]
    assert [(audit.name, dict(audit.arguments)) for audit in model.audits] == [
        ("not_constant", {"column": "x"}),
        ("not_null", {"columns": "(x)"}),
    ]
    assert (model.body.module, model.body.function) == ("models.p", "execute")
    assert (model.grains, model.tags, model.partitioned_by) == (("x",), ("a",), ("ds", "x"))
    assert model.description == "Words"
    assert (model.location.file, model.location.line) == ("models/p.py", 3)


def test_tables_named_in_the_code_are_dependencies(project):
    body = """
    a = context.table("shop.a")
    b = context.resolve_table(NAME)
    c = helper(context)
    d = context.spark.table("not_a_model")
    return a
    """
    folder = project(
        {
            "models/p.py": HEAD
            + "NAME = 'shop.b'\n\ndef helper(context):\n    return context.table('shop.c')\n\n"
            + "def unused(context):\n    return context.table('shop.z')\n\n"
            + execute(body),
            "models/a.sql": "MODEL (name a); SELECT 1 AS x",
        }
    )
    model = folder.graph().models["shop.p"]
    assert model.reads == ("shop.a", "shop.b", "shop.c")
    assert model.references["shop.a"] == "shop.a"


def test_listed_dependencies_replace_those_in_the_code(project):
    folder = project(
        {"models/p.py": HEAD + execute("return context.table(kwargs['t'])", depends_on=["shop.q", "raw.r"])}
    )
    model = folder.graph().models["shop.p"]
    assert model.reads == ("raw.r", "shop.q")
    assert dict(model.references) == {"shop.q": "shop.q", "raw.r": "raw.r"}


def test_a_computed_table_name_must_be_listed(project):
    error = project({"models/p.py": HEAD + execute("return context.table('a' + 'b')")}).problem()
    assert isinstance(error, BadPythonModel)
    assert (error.location.file, error.location.line) == ("models/p.py", 5)


def test_only_variables_in_use_belong_to_the_model(project):
    config = "name: shop\nvariables: {a: 1, b: 2}\n"
    one = project({"lamina.yaml": config, "models/p.py": HEAD + execute("return context.var('A')")})
    assert dict(one.graph().models["shop.p"].body.variables) == {"a": 1}
    one.write({"models/p.py": HEAD + execute("return kwargs['b']")})
    assert dict(one.graph().models["shop.p"].body.variables) == {"a": 1, "b": 2}
    one.write({"models/p.py": HEAD + execute("return context.var(str(start))")})
    assert dict(one.graph().models["shop.p"].body.variables) == {"a": 1, "b": 2}
    one.write({"models/p.py": HEAD + execute("return 1")})
    assert dict(one.graph().models["shop.p"].body.variables) == {}


def test_project_modules_are_captured_through_any_number_of_imports(project):
    folder = project(
        {
            "models/deep/p.py": "from lib.one import f\nfrom .beside import g\nimport json\n" + HEAD + execute(),
            "models/deep/beside.py": "g = 1\n",
            "lib/__init__.py": "",
            "lib/one.py": "from lib import two\nfrom python_side import h\nf = two.f\n",
            "lib/two.py": "f = 1\n",
            "lib/unused.py": "f = 1\n",
            "python/python_side.py": "h = 1\n",
        }
    )
    body = folder.graph().models["shop.p"].body
    assert [(module.name, module.path) for module in body.modules] == [
        ("lib", "lib/__init__.py"),
        ("lib.one", "lib/one.py"),
        ("lib.two", "lib/two.py"),
        ("models.deep.beside", "models/deep/beside.py"),
        ("models.deep.p", "models/deep/p.py"),
        ("python_side", "python/python_side.py"),
    ]


def test_modules_of_the_repository_around_the_project_are_captured(project, tmp_path):
    folder = project({"models/p.py": "import common.words\n" + HEAD + execute()})
    (tmp_path / ".git").mkdir()
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "words.py").write_text("x = 1\n")
    modules = folder.graph().models["shop.p"].body.modules
    assert [(module.name, module.path) for module in modules] == [
        ("common.words", "../common/words.py"),
        ("models.p", "models/p.py"),
    ]


def test_captured_code_runs_without_the_files(project):
    folder = project(
        {
            "models/p.py": "from lib.one import f\n" + HEAD + execute("return f(2)"),
            "lib/one.py": "def f(x):\n    return x * 21\n",
        }
    )
    body = folder.graph().models["shop.p"].body
    (folder.root / "lib/one.py").unlink()
    (module,) = run_modules(body.modules, [body.module])
    assert getattr(module, body.function)(None, None, None, None) == 42


def test_nothing_stays_behind_in_the_process(project):
    folder = project({"models/p.py": "import lib\n" + HEAD + execute(), "lib.py": "x = 1\n"})
    path, names, finders = list(sys.path), set(sys.modules), list(sys.meta_path)
    folder.graph()
    assert list(sys.path) == path
    assert list(sys.meta_path) == finders
    assert not {name for name in set(sys.modules) - names if name.split(".")[0] in {"lib", "models"}}


def test_a_module_of_the_project_hides_one_of_the_same_name_only_while_loading(project, monkeypatch):
    elsewhere = object()
    monkeypatch.setitem(sys.modules, "lib", elsewhere)
    folder = project({"models/p.py": "import lib\nassert lib.x == 1\n" + HEAD + execute(), "lib.py": "x = 1\n"})
    folder.graph()
    assert sys.modules["lib"] is elsewhere


def test_what_imports_print_does_not_reach_stdout(project, capsys):
    project({"models/p.py": "print('hello')\n" + HEAD + execute()}).graph()
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "hello\n")


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("x = 1\nraise ValueError('no such luck')\n", 2),
        ("x = 1\n\nx +\n", 3),
        ("import nothing_of_this_name\n", 1),
        ("import sys\nsys.exit(3)\n", 2),
        ("x = 1\0\n", 1),
    ],
)
def test_code_that_cannot_be_imported_is_refused_with_its_line(project, code, line):
    error = project({"models/p.py": code}).problem()
    assert type(error) is BadPythonModel
    assert (error.location.file, error.location.line) == ("models/p.py", line)
    assert error.exit_code == 2


def test_the_line_may_be_in_another_module(project):
    error = project({"models/p.py": "import lib\n", "lib.py": "\n\n1 / 0\n"}).problem()
    assert (error.location.file, error.location.line) == ("lib.py", 3)
    assert "ZeroDivisionError" in error.message


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"kind": "VIEW"}, BadPythonModel),
        ({"kind": "EMBEDDED"}, BadPythonModel),
        ({"kind": {"name": "SEED", "path": "x"}}, BadPythonModel),
        ({"kind": "MANAGED"}, BadPythonModel),
        ({"columns": None}, BadPythonModel),
        ({"is_sql": True}, BadPythonModel),
        ({"owneri": "x"}, UnknownProperty),
        ({"pre_statements": ["SET x = 1"]}, UnknownProperty),
        ({"kind": {"name": "INCREMENTAL_BY_TIME_RANGE", "time_column": "ds"}}, DefinitionError),
    ],
)
def test_a_wrong_decorator_is_refused(project, arguments, expected):
    error = project({"models/p.py": HEAD + execute(**arguments)}).problem()
    assert type(error) is expected
    assert (error.location.file, error.location.line) == ("models/p.py", 3)


@pytest.mark.parametrize("parameters", ["", "context, begin", "context, start, end, execution_time, more"])
def test_a_function_that_cannot_be_called_is_refused(project, parameters):
    code = HEAD + execute().replace("context, start, end, execution_time, **kwargs", parameters)
    assert f"({parameters})" in code
    error = project({"models/p.py": code}).problem()
    assert type(error) is BadPythonModel
    assert (error.location.file, error.location.line) == ("models/p.py", 3)


def test_a_parameter_behind_the_others_is_a_variable(project):
    code = HEAD + execute().replace("execution_time, **kwargs", "execution_time, region, other=1")
    folder = project({"models/p.py": code, "lamina.yaml": "name: shop\nvariables: {region: eu, unused: 1}\n"})
    assert dict(folder.graph().models["shop.p"].body.variables) == {"region": "eu"}


def test_two_functions_of_one_name_are_refused(project):
    code = HEAD + execute() + "\n" + execute().replace("shop.p", "shop.q")
    error = project({"models/p.py": code}).problem()
    assert isinstance(error, BadPythonModel)
    assert error.location.line == 3


def test_a_file_may_declare_several_models_and_others_may_import_it(project):
    several = HEAD + execute() + "\n" + execute().replace("shop.p", "shop.q").replace("def execute", "def other")
    folder = project({"models/p.py": several, "models/r.py": "from models.p import execute\n"})
    assert list(folder.graph().models) == ["shop.p", "shop.q"]


def test_a_model_without_a_name_takes_the_stem(project):
    folder = project({"models/sizes.py": HEAD + execute().replace("'shop.p', ", "")})
    assert list(folder.graph().models) == ["shop.sizes"]


def test_blueprints_give_one_model_each(project):
    blueprints = [{"customer": "alpha"}, {"customer": "beta"}]
    code = HEAD + execute(blueprints=blueprints).replace("'shop.p'", "'@{customer}.p'")
    models = project({"models/p.py": code}).graph().models
    assert list(models) == ["alpha.p", "beta.p"]
    assert dict(models["beta.p"].body.variables) == {"customer": "beta"}


def test_recorded_macros_can_be_called_again(project):
    folder = project(
        {
            "macros/m.py": "from lamina import macro\nfrom helpers import twice\n\n@macro('Dbl')\n"
            "def double(evaluator, x):\n    return twice(x)\n",
            "helpers.py": "def twice(x):\n    return f'{x} * 2'\n",
            "models/a.sql": "MODEL (name a); SELECT @dbl(3) AS x",
        }
    )
    body = folder.graph().models["shop.a"].body
    functions = load_recorded_macros(body.macros.modules)
    assert functions["dbl"](None, 4) == "4 * 2"
