"""The cache holds data and nothing else; whatever else is found in its place only means that more is read."""

from __future__ import annotations

import json
import os
import pickle
import stat
import sys
import zlib
from dataclasses import dataclass, fields
from enum import Enum
from types import MappingProxyType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.generate import generate
from lamina.graph.kinds import KINDS, CsvSettings, IncrementalByTimeRange, Seed, TimeColumn
from lamina.project.cache.entries import ENTRIES
from lamina.project.cache.file import pack, unpack
from lamina.project.cache.packed import CannotBePacked, Shapes
from lamina.project.cache.shapes import CONFIG, GRAPH
from lamina.project.configuration.secrets import Secret
from lamina.project.configuration.values import SparkSettings
from tests.project.conftest import NOW, ProjectFolder
from tests.project.test_loads_agree import plain

CACHE = ".lamina/cache/project.jsonl"
FILES = {
    "lamina.yaml": "name: shop\nvariables: {v: [1, {a: 2.5}]}\ntargets: {dev: {schema: d}, prod: {}}\n",
    "macros/m.py": "from lamina import macro\n\n@macro()\ndef one(evaluator):\n    return '1'\n",
    "models/a.sql": "MODEL (name a, audits (not_null(columns := (x)), gap));\nSELECT @one() AS x, t AS ds FROM raw.t\n",
    "models/b.sql": "MODEL (name b, kind INCREMENTAL_BY_TIME_RANGE (time_column ds), signals (ready(n := 1)));\n"
    "SELECT x, ds FROM a WHERE ds BETWEEN @start_ds AND @end_ds\n",
    "models/c.py": "from lamina import model\n\n@model('c', kind='FULL', columns={'x': 'int'})\n"
    "def execute(context, start, end, execution_time, **kwargs):\n    return context.table('a')\n",
    "audits/gap.sql": "AUDIT (name gap);\nSELECT * FROM @this_model WHERE x > 1\n",
    "signals/s.py": "from lamina import signal\n\n@signal()\ndef ready(batch, n):\n    return True\n",
    "seeds/s.csv": "a\n1\n",
    "sources/raw.yml": '- name: raw.t\n  columns: {t: string}\n  audits: ["not_null(columns := (t))"]\n',
}


class Planted:
    """Runs code wherever it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("planted",)


@pytest.fixture
def loaded(project, monkeypatch):
    folder = project(FILES)
    graph = folder.graph()
    monkeypatch.chdir(folder.root)
    return folder, graph


def test_everything_of_a_project_is_kept(loaded):
    folder, graph = loaded
    opened = folder.open()
    assert plain(opened.graph(NOW)) == plain(graph)
    assert opened.figures.is_whole_graph_cached
    assert plain(opened.config()) == plain(folder.open(overrides={"concurrency": 4}).config())
    folder.write({"models/d.sql": "MODEL (name d);\nSELECT 1 AS x\n"})
    opened = folder.open()
    opened.graph(NOW)
    assert opened.figures.read == ("models/d.sql",)


@pytest.mark.parametrize("name", ["project.pickle", "project.jsonl"])
def test_a_planted_pickle_is_never_run(loaded, name):
    folder, graph = loaded
    place = folder.root / ".lamina/cache" / name
    for content in (pickle.dumps(Planted()), pickle.dumps((2, Planted())), pickle.dumps(Planted(), protocol=0)):
        place.write_bytes(content)
        assert folder.graph() == graph
        assert not (folder.root / "planted").exists()
    assert not (folder.root / ".lamina/cache/project.pickle").exists()


def test_a_cache_that_is_not_ours_is_not_tidied(loaded, tmp_path):
    folder, graph = loaded
    elsewhere = tmp_path / "elsewhere"
    (folder.root / ".lamina/cache").rename(elsewhere)
    (elsewhere / "project.pickle").write_bytes(b"of others")
    (folder.root / ".lamina/cache").symlink_to(elsewhere)
    assert folder.graph() == graph
    assert (elsewhere / "project.pickle").exists()


def test_what_is_planted_for_a_file_of_ours_is_not_followed(loaded):
    folder, graph = loaded
    kept = folder.root / "kept"
    kept.write_text("mine")
    cache = folder.root / ".lamina/cache"
    (folder.root / CACHE).unlink()
    for name in (".project.jsonl", ".clock"):
        (cache / f"{name}.{os.getpid()}").symlink_to(kept)
    assert folder.graph() == graph
    assert kept.read_text() == "mine"
    assert (folder.root / CACHE).is_file()


def test_a_cache_that_is_no_file_is_not_waited_for(loaded):
    folder, graph = loaded
    (folder.root / CACHE).unlink()
    os.mkfifo(folder.root / CACHE)
    assert folder.graph() == graph


def test_a_new_cache_is_for_its_owner_alone(loaded):
    folder, _ = loaded
    modes = [stat.S_IMODE((folder.root / path).stat().st_mode) for path in (".lamina", ".lamina/cache", CACHE)]
    assert modes == [0o700, 0o700, 0o600]


def deep(text: bytes) -> bytes:
    return b"%08x %b" % (zlib.crc32(text), text)


HOSTILE = st.one_of(
    st.binary(max_size=200),
    st.sampled_from(
        [
            b"[" * 200_000,
            deep(b"[" * 200_000),
            deep(b'{"a":' * 100_000),
            deep(b"1" * 100_000),
            deep(b"null"),
            deep(b"[[1],[]]"),
            deep(b"[[0],[]]"),
            deep(b'[[1],[["Graph",[[0],{"same":0},{"same":0},{"same":0}]]]]'),
            deep(b'[[1],[["Graph",[[0],[],[],[]]]]]'),
            deep(b'[[1],[["os.system",["true"]]]]'),
            deep(b'[[2],[["Graph",[[0],[2],[2],[3]]],["Mapping[NodeName, Model]",[[1000000000000],[],[]]]]]'),
            deep(b'[[1],[["Mapping[str, Entry]",[[-1,1],[],[]]]]]'),
        ]
    ),
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_broken_or_hostile_cache_only_means_that_more_is_read(loaded, data):
    folder, graph = loaded
    place = folder.root / CACHE
    folder.graph()
    good = place.read_bytes()
    lines = good.split(b"\n")
    # The cache is not of the same length each time, and what is drawn may not depend on it.
    at, bit = data.draw(st.integers(0, 10**6)), data.draw(st.integers(0, 7))
    hostile, order = data.draw(HOSTILE), data.draw(st.permutations(range(len(lines))))
    match data.draw(st.sampled_from(["cut", "flip", "replace", "line", "shuffle"])):
        case "cut":
            bad = good[: at % len(good)]
        case "flip":
            at %= len(good)
            bad = good[:at] + bytes([good[at] ^ (1 << bit)]) + good[at + 1 :]
        case "replace":
            bad = hostile
        case "line":
            at %= len(lines)
            bad = b"\n".join([*lines[:at], hostile, *lines[at + 1 :]])
        case _:
            bad = b"\n".join(lines[each] for each in order)
    place.write_bytes(bad)
    assert plain(folder.graph()) == plain(graph)


def replaced(value, at: list[int], other):
    """JSON data with its n-th leaf replaced."""
    if isinstance(value, list):
        return [replaced(item, at, other) for item in value]
    if isinstance(value, dict):
        return {key: replaced(item, at, other) for key, item in value.items()}
    at[0] -= 1
    return other if at[0] == -1 else value


def well_formed(value) -> None:
    """Every field holds what its annotation says, as far as what it is made of goes."""
    if hasattr(value, "__dataclass_fields__"):
        for each in fields(value):
            item = getattr(value, each.name)
            if each.type in {"str", "NodeName"}:
                assert type(item) is str, each.name
            elif "|" in each.type:
                pass
            elif each.type.startswith("tuple["):
                assert type(item) is tuple, each.name
            elif each.type.startswith("Mapping["):
                assert type(item) is MappingProxyType, each.name
            elif each.type == "bool":
                assert type(item) is bool, each.name
            well_formed(item)
    elif isinstance(value, tuple):
        for item in value:
            well_formed(item)
    elif isinstance(value, MappingProxyType):
        for key, item in value.items():
            assert isinstance(key, str)
            well_formed(item)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_lies_have_the_right_types_or_are_refused(loaded, data):
    text = json.loads(GRAPH.pack(loaded[1], "Graph"))
    other = data.draw(st.sampled_from([None, True, -1, 0, 1, 7, 40, 10**30, 1.5, "x", [], [0], {}, {"same": 1}]))
    found = GRAPH.unpack(json.dumps(replaced(text, [data.draw(st.integers(0, 1500))], other)), "Graph")
    if found is not None:
        well_formed(found)


def test_wide_projects_are_packed_whole(tmp_path):
    generate(tmp_path / "shop", 30)
    folder = ProjectFolder(tmp_path / "shop")
    graph = folder.graph()
    again = GRAPH.unpack(GRAPH.pack(graph, "Graph"), "Graph")
    assert plain(again) == plain(graph)


def test_every_class_is_known_with_all_that_its_fields_hold():
    for shapes in (GRAPH, CONFIG, ENTRIES):
        waiting = [*shapes._classes]
        seen = set()
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            table = shapes.table(name)
            waiting.extend(inner for spec in table.specs() for inner in spec.tables)
    assert {kind.__name__ for kind in KINDS} <= set(GRAPH._classes)


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Thing:
    name: str
    further: Thing | None
    colours: tuple[Colour, ...]
    names: frozenset[str]
    pair: tuple[str, int | None]
    paths: Mapping[tuple[str | int, ...], Thing | str | int]  # noqa: F821  # never evaluated
    data: object


THINGS = Shapes((Colour, Thing), {})


def thing(name: str = "a", **changes: object) -> Thing:
    values = {"further": None, "colours": (), "names": frozenset(), "pair": ("x", None)}
    return Thing(name=name, **{**values, "paths": MappingProxyType({}), "data": None, **changes})


VALUES = [
    thing(),
    thing("\ud800\x00é\n"),
    thing(further=thing("b", further=thing("c"))),
    thing(colours=(Colour.RED, Colour.RED), names=frozenset("abc"), pair=("", 10**40)),
    thing(paths=MappingProxyType({("a", 1): 1, (): "x", ("b",): thing("d")})),
    thing(data={"a": [1, 2.5, True, None, {"": "x"}]}),
]


@pytest.mark.parametrize("value", VALUES)
def test_packed_values_come_back_equal(value):
    again = THINGS.unpack(THINGS.pack(value, "Thing"), "Thing")
    assert plain(again) == plain(value)
    assert again == value


@pytest.mark.parametrize(
    "value",
    [
        thing(name=1),
        thing(name=True),
        thing(colours=["red"]),
        thing(further="b"),
        thing(pair=("x",)),
        thing(data={1: 2}),
        thing(data=(1, 2)),
        thing(data=os),
    ],
)
def test_what_would_not_come_back_is_not_packed(value):
    with pytest.raises(CannotBePacked):
        THINGS.pack(value, "Thing")
    assert pack(value, THINGS, "Thing") == b""


def test_what_was_not_packed_is_nothing():
    assert unpack(b"", GRAPH, "Graph") is None
    assert unpack(pack(thing(), THINGS, "Thing")[:-1], THINGS, "Thing") is None
    assert THINGS.unpack(THINGS.pack((thing(),), "tuple[Thing, ...]"), "Thing") is None


def test_a_long_chain_is_no_reason_to_fail():
    value = thing()
    for _ in range(sys.getrecursionlimit()):
        value = thing(further=value)
    assert pack(value, THINGS, "Thing") == b""


def test_settings_may_be_secret_and_kinds_may_hold_mappings():
    spark = SparkSettings(master="local[2]", config=MappingProxyType({"a": 1, "b": Secret("x"), "c": None}))
    assert plain(CONFIG.unpack(CONFIG.pack(spark, "SparkSettings"), "SparkSettings")) == plain(spark)
    seed = Seed(path="x", csv_settings=CsvSettings(na_values_by_column=MappingProxyType({"a": ("", "-")})))
    kinds = (seed, IncrementalByTimeRange(time_column=TimeColumn(name="ds"), batch_size=3))
    assert GRAPH.unpack(GRAPH.pack(kinds, "tuple[Kind, ...]"), "tuple[Kind, ...]") == kinds
