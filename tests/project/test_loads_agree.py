"""Whatever was loaded before: the same files give the same graph and the same problems."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.errors import LaminaError
from lamina.project.cache.file import ProjectCache, Remembered
from tests.project.conftest import NOW, ProjectFolder

SQL = "MODEL (name {0}, kind FULL{1});\nSELECT {2} AS x FROM raw.t\n"
PYTHON = """{0}
from lamina import model

@model("{1}", kind="FULL", columns={{"x": "int"}})
def execute(context, start, end, execution_time, **kwargs):
    return None
"""
MACRO = "from lamina import macro\n{0}\n@macro()\ndef one(evaluator):\n    return '{1}'\n"
IMPORTS = (
    "",
    "from macros.y import z",
    "from rare_helper import value",
    "import rare_package.part",
    "from rare_package import part",
    "from models.h import value",
    "from . import h",
    "try:\n    from macros.y import z\nexcept ImportError:\n    pass",
)
CONTENTS: dict[str, tuple[str | bytes, ...]] = {
    "lamina.yaml": ("name: shop\n", "name: shop\nvariables: {v: 2}\n", "name: shop\nstrict_sources: true\n"),
    "models/a.sql": (
        SQL.format("a", "", 1),
        SQL.format("a", "", "@one()"),
        SQL.format("a", ", audits (gap)", 1),
        SQL.format("a", ", signals (ready())", "@v"),
        SQL.format("a", ", enabled false", 1),
        SQL.format("a", ", pre_hooks (grant())", 1),
        "",
        "-- nothing",
        b"\xff\xfe",
    ),
    "models/b.SQL": (SQL.format("b", "", 2), SQL.format("a", "", 2)),
    "models/p.py": (*(PYTHON.format(line, "p") for line in IMPORTS), "", "value = 1\n", "nonsense(", b"\xff"),
    "models/q.py": (PYTHON.format("from models.p import execute as other", "q"), *(f"{each}\n" for each in IMPORTS)),
    "models/h.py": (
        "value = 1\n",
        "from rare_helper import value\n",
        PYTHON.format("value = 3", "h"),
        "raise ValueError",
    ),
    "models/__init__.py": ("", "from rare_helper import value\n", PYTHON.format("", "packaged")),
    "models/schema.yml": ("x", "y"),
    "rare_helper.py": ("value = 1\n", "value = 2\n", "import rare_package.part\nvalue = 3\n", b"\xff"),
    "python/rare_helper.py": ("value = 11\n", "from macros.y import z\nvalue = 12\n"),
    "python/hooks.py": (
        "from lamina import hook\n\n@hook()\ndef grant(context):\n    pass\n",
        "from macros.y import z\nfrom lamina import hook\n\n@hook()\ndef grant(context):\n    pass\n",
    ),
    "rare_package/part.py": ("value = 1\n", "value = 2\n"),
    "rare_package/__init__.py": ("", "from rare_helper import value\n"),
    "rare_package/notes.txt": ("",),
    "macros/notes.txt": ("",),
    "macros/y.py": ("z = 1\n", "z = 2\n", MACRO.format("z = 1", 5), MACRO.format("from rare_helper import value", 6)),
    "macros/m.py": (MACRO.format("", 7), "raise ValueError('no')\n", "nonsense(", "from macros.y import z\n", b"\xff"),
    "signals/s.py": (
        "from lamina import signal\n\n@signal()\ndef ready(batch):\n    return True\n",
        "from macros.y import z\nfrom lamina import signal\n\n@signal()\ndef ready(batch):\n    return True\n",
    ),
    "audits/gap.sql": (
        "AUDIT (name gap);\nSELECT * FROM @this_model WHERE x < @one()\n",
        "AUDIT (name gap);\nSELECT 1",
    ),
    "seeds/s.csv": ("a\n1\n", "a\n2\n", "b\n1\n", b"\xff"),
    "sources/raw.yml": ("- name: raw.t\n  columns: {t: int}\n", "nonsense: ["),
}
FIRST = ("lamina.yaml", "models/a.sql", "models/p.py")


def steps():
    write = st.sampled_from(sorted(CONTENTS)).flatmap(
        lambda path: st.tuples(st.just("write"), st.just(path), st.sampled_from(CONTENTS[path]))
    )
    others = sorted(set(CONTENTS) - {"lamina.yaml"})
    other = st.tuples(
        st.sampled_from(("remove", "remove", "folder", "lost link")), st.sampled_from(others), st.just("")
    )
    return st.lists(st.tuples(st.one_of(write, write, other), st.booleans()), max_size=12)


def carry_out(folder: ProjectFolder, action: str, path: str, content: str | bytes) -> None:
    place = folder.root / path
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    match action:
        case "write":
            folder.write({path: content})
        case "folder":
            place.mkdir()
        case "lost link":
            place.symlink_to("nowhere")


def plain(value: object) -> object:
    """A value with all of its fields, also those that do not count when values are compared."""
    if is_dataclass(value):
        return type(value).__name__, [plain(getattr(value, each.name)) for each in fields(value)]
    if isinstance(value, Mapping):
        return "mapping", [(key, plain(item)) for key, item in value.items()]
    return [plain(item) for item in value] if isinstance(value, tuple) else repr(value)


def outcome(project) -> object:
    """Everything a load says."""
    importlib.invalidate_caches()
    try:
        graph = project.graph(NOW)
    except LaminaError as error:
        return [(each.code, each.message, each.hint, each.location, each.node) for each in error.problems]
    return graph, list(graph.models), list(graph.sources), plain(graph)


def cold(folder: ProjectFolder, elsewhere: Path) -> object:
    """What a load says that has never seen the project."""
    project = folder.open()
    project._cache, project._remembered = ProjectCache(elsewhere), Remembered()
    try:
        return outcome(project)
    finally:
        shutil.rmtree(elsewhere, ignore_errors=True)


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """Packages that are installed, of the same names as modules that the project may have."""
    place = tmp_path / "installed"
    (place / "rare_package").mkdir(parents=True)
    (place / "rare_package/part.py").write_text("value = 0\n")
    monkeypatch.syspath_prepend(str(place))
    yield place
    for name in [name for name in sys.modules if name.startswith("rare_")]:
        del sys.modules[name]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.tuples(*(st.sampled_from(CONTENTS[path]) for path in FIRST)), moves=steps())
def test_a_cache_changes_nothing(tmp_path, outside, first, moves):
    shutil.rmtree(tmp_path / "shop", ignore_errors=True)
    folder = ProjectFolder(tmp_path / "shop")
    folder.write(dict(zip(FIRST, first, strict=True)))
    assert outcome(folder.open()) == cold(folder, tmp_path / "cold")
    for (action, path, content), is_loaded in moves:
        carry_out(folder, action, path, content)
        if is_loaded:
            expected = cold(folder, tmp_path / "cold")
            assert outcome(folder.open()) == expected
            assert outcome(folder.open()) == expected
