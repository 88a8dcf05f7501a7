"""What a module may import and call, beyond what import-linter checks in `make check`."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "lamina"
MODULES = sorted(PACKAGE.rglob("*.py"))

PURE_ROOMS = (
    "errors.py",
    "near_names.py",
    "timeline",
    "sql",
    "graph",
    "reading",
    "identity",
    "environments",
    "planning",
)
PURE_MODULES = [module for module in MODULES if module.relative_to(PACKAGE).parts[0] in PURE_ROOMS]

IMPURE_IMPORTS = frozenset(
    {
        "asyncio",
        "concurrent",
        "getpass",
        "glob",
        "http",
        "io",
        "locale",
        "logging",
        "multiprocessing",
        "os",
        "platform",
        "queue",
        "random",
        "secrets",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "urllib",
        "uuid",
        "warnings",
    }
)
IMPURE_CALLS = frozenset({"open", "print", "input", "breakpoint"})
# Of `pathlib` only the names of files are of use to a pure room.
IMPURE_METHODS = frozenset(
    {
        "now",
        "utcnow",
        "today",
        "read_text",
        "read_bytes",
        "write_text",
        "write_bytes",
        "mkdir",
        "unlink",
        "iterdir",
        "rglob",
        "touch",
    }
)

# Those that import when asked: the composition root picks adapters and use cases, the package itself picks exported
# names, progress is drawn by few commands, and files are read, and texts of SQL looked into, when something changed.
MAY_IMPORT_LATE = frozenset(
    {"bootstrap.py", "__init__.py", "cli/present/progress.py", "project/files.py", "sql/on_demand.py"}
)
# The same by name: the exported name, the command that was typed, the modules of a user's project.
MAY_IMPORT_BY_NAME = frozenset({"__init__.py", "cli/groups.py", "project/python/modules.py"})


def name_of(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


def tree_of(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"), filename=str(module))


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every import below a node, as line and the first part of the imported name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module.split(".")[0]


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_no_import_stands_inside_a_function(module: Path):
    if name_of(module) in MAY_IMPORT_LATE:
        return
    functions = [node for node in ast.walk(tree_of(module)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    late = sorted({line for function in functions for line, _ in imported(function)})

    assert late == [], f"{name_of(module)} imports inside a function on lines {late}"


def test_few_modules_import_by_name():
    named = re.compile(r"(?<!import )\bimport_module\b")
    by_name = {name_of(module) for module in MODULES if named.search(module.read_text(encoding="utf-8"))}

    assert by_name == MAY_IMPORT_BY_NAME


@pytest.mark.parametrize("module", PURE_MODULES, ids=name_of)
def test_a_pure_room_imports_nothing_that_touches_the_world(module: Path):
    impure = sorted({(line, name) for line, name in imported(tree_of(module)) if name in IMPURE_IMPORTS})

    assert impure == []


@pytest.mark.parametrize("module", PURE_MODULES, ids=name_of)
def test_a_pure_room_reads_no_clock_and_no_file(module: Path):
    impure = []
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=name) if name in IMPURE_CALLS:
                    impure.append((node.lineno, name))
                case ast.Attribute(attr=name) if name in IMPURE_METHODS:
                    impure.append((node.lineno, name))

    assert impure == []


def exporting() -> list[str]:
    """Modules that say what they export; that the list is sorted is the linter's matter."""
    names = [".".join(module.relative_to(PACKAGE.parent).with_suffix("").parts) for module in MODULES]
    modules = dict(zip(names, MODULES, strict=True))
    return [
        name.removesuffix(".__init__") for name, module in modules.items() if "__all__ = " in module.read_text("utf-8")
    ]


@pytest.mark.parametrize("name", exporting())
def test_every_exported_name_exists(name: str):
    module = import_module(name)

    assert [exported for exported in module.__all__ if not hasattr(module, exported)] == []


def loaded_by(statement: str) -> set[str]:
    """The top-level packages a fresh interpreter has loaded after a statement."""
    script = f"{statement}\nimport sys\nsys.stdout.write(' '.join({{name.split('.')[0] for name in sys.modules}}))"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    return set(answer.stdout.split())


def test_importing_lamina_loads_no_heavy_library():
    heavy = {"pyspark", "pandas", "sqlalchemy", "click", "rich", "yaml", "pydantic"}

    assert loaded_by("import lamina") & heavy == set()


def test_the_command_line_starts_without_spark_and_without_a_database():
    assert loaded_by("import lamina.cli.main") & {"pyspark", "pandas", "py4j", "sqlalchemy"} == set()


def rooms() -> set[str]:
    found = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    return found | {path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")}


@pytest.mark.parametrize(
    ("contract", "owner"),
    [("pyspark", "spark"), ("sqlalchemy", "state"), ("sqlglot", "sql"), ("console", "cli"), ("yaml", "project")],
)
def test_every_room_but_its_owner_is_kept_from_a_library(contract: str, owner: str):
    contracts = ConfigParser()
    contracts.read(ROOT / ".importlinter")
    kept_out = contracts[f"importlinter:contract:{contract}"]["source_modules"].split()

    assert set(kept_out) == {f"lamina.{room}" for room in rooms() - {owner}}
