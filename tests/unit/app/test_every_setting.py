"""Every property of every kind is set once in a small project, and something must come out different.

What counts is what a person or Spark would notice: what plans and reports say, warnings and errors included, and what
the engine is asked to do. Identity does not count: a property can be part of a version and be read by nobody.
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lamina.app.ports.engine import WriteRequest
from lamina.errors import LaminaError
from lamina.graph.kinds import (
    IncrementalByPartition,
    IncrementalByUniqueKey,
    IncrementalUnmanaged,
    ScdType2ByColumn,
    ScdType2ByTime,
)
from lamina.graph.names import Naming
from lamina.reading.effects import DOCUMENTATION, HEADER, IN_KIND
from lamina.reading.kinds import PROPERTIES
from lamina.reading.model_header import PROPERTIES as HEADER_PROPERTIES
from lamina.reading.resolve import resolve
from tests.kit.app import Place, january
from tests.kit.project import FakeProject
from tests.unit.reading.reading import read

if TYPE_CHECKING:
    from lamina.graph.dag import Graph
    from lamina.timeline.interval import Instant

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3] / "src" / "lamina"

NEEDED = {
    "SEED": {"path": "'a.csv'"},
    "INCREMENTAL_BY_TIME_RANGE": {"time_column": "ds"},
    "INCREMENTAL_BY_UNIQUE_KEY": {"unique_key": "x"},
    "SCD_TYPE_2_BY_TIME": {"unique_key": "x", "updated_at_name": "ds"},
    "SCD_TYPE_2_BY_COLUMN": {"unique_key": "x", "columns": "[x]"},
    "CUSTOM": {"materialization": "'mine'"},
}
"""What a kind cannot do without."""

PARTITIONED = ("INCREMENTAL_BY_PARTITION", "INCREMENTAL_UNMANAGED")
FOLDS = ("INCREMENTAL_BY_UNIQUE_KEY", "INCREMENTAL_UNMANAGED", "SCD_TYPE_2_BY_TIME", "SCD_TYPE_2_BY_COLUMN")
ALWAYS_FORWARD = ("INCREMENTAL_UNMANAGED", "SCD_TYPE_2_BY_TIME", "SCD_TYPE_2_BY_COLUMN")

HISTORY = (
    *("unique_key", "valid_from_name", "valid_to_name", "time_data_type"),
    *("invalidate_hard_deletes", "updated_at_name"),
)

VALUES = {
    "batch_size": "2",
    "batch_concurrency": "2",
    "lookback": "2",
    "partition_by_time_column": "false",
    "auto_restatement_cron": "'@monthly'",
    "auto_restatement_intervals": "2",
    "on_destructive_change": "warn",
    "on_additive_change": "warn",
    "materialized": "true",
    "csv_settings": "(delimiter = ';')",
    "when_matched": "(WHEN MATCHED THEN UPDATE SET target.x = source.x)",
    "merge_filter": "target.ds > '2024-01-01'",
    "order_by": "ds",
    "insert_overwrite": "true",
    "valid_from_name": "since",
    "valid_to_name": "until",
    "time_data_type": "date",
    "invalidate_hard_deletes": "true",
    "updated_at_as_valid_from": "true",
    "execution_time_as_valid_from": "true",
    "updated_at_name": "x",
    "materialization_properties": "(a = 1)",
    # Other than what the kind needs.
    "time_column": "(ds, '%Y-%m-%d')",
    "unique_key": "ds",
    "columns": "[ds]",
    "path": "'b.csv'",
    "materialization": "'other'",
}
"""A value that asks for something else than what happens without it."""

OF_HEADER = {
    "description": "'what it is'",
    "tags": "(nightly)",
    "start": "'2024-01-03'",
    "end": "'2024-01-04'",
    "cron": "'0 12 * * *'",
    "cron_tz": "'America/Los_Angeles'",
    "interval_unit": "hour",
    "allow_partials": "true",
    "columns": "(ds TIMESTAMP, x STRING)",
    "column_descriptions": "(x = 'the x')",
    "depends_on": "(shop.beside)",
    "audits": "(not_null(columns := (x)))",
    "partitioned_by": "(x)",
    "clustered_by": "(x)",
    "table_format": "delta",
    "storage_format": "orc",
    "table_properties": "(a = 1)",
    "physical_properties": "(a = 1)",
    "virtual_properties": "(a = 1)",
    "session_properties": "(spark.sql.ansi.enabled = false)",
    "enabled": "false",
    "forward_only": "true",
    "replay_on_change": "forward",
    "query_change_backfill": "forward",
    "run_despite_unchanged": "always",
    "wait_for_parents": "false",
    "follow_rewrites": "false",
    "gateway": "main",
    "grants": "('select' = ['a'])",
    "grants_target_layer": "all",
    "physical_version": "'1'",
    "optimize_query": "true",
    "formatting": "false",
    "ignored_rules": "ALL",
    "virtual_environment_mode": "dev_only",
    "retention": "7",
}
ELSEWHERE = {
    "name": "every model of every test has one",
    "kind": "this test goes over all of them",
    "materialized": "another spelling of two kinds",
    "dialect": "how texts are read; tests/unit/sql/test_render.py",
    "stamp": "only makes a new version; tests/unit/identity",
    "seed_copy": "how files are shared; tests/spark/test_storage.py and tests/conformance/test_lent.py",
    "signals": "needs functions; tests/project/test_signals.py",
    "pre_hooks": "needs functions; tests/project/test_hooks.py",
    "post_hooks": "needs functions; tests/project/test_hooks.py",
    "blueprints": "makes other models; tests/unit/reading/test_read_model.py",
    **dict.fromkeys(DOCUMENTATION, "tells people something, and a plan shows that it changed"),
}
"""Properties of a header that one small project does not show, and where they are looked at."""

OTHERWISE = {
    ("SEED", "path"): "files are read when the project is loaded; tests/project/test_files.py",
    ("SEED", "column_descriptions"): "columns are read when the project is loaded; tests/project/test_files.py",
    **dict.fromkeys(
        itertools.product(("VIEW", "SEED"), ("cron", "cron_tz")),
        "says when time begins below it where nothing else does; tests/unit/planning/test_plan.py",
    ),
    ("EMBEDDED", "description"): "tells people something: there is no table to show it",
    ("EMBEDDED", "column_descriptions"): "tells people something: there is no table to show it",
    ("EMBEDDED", "columns"): "what a star over it gives; tests/unit/reading/test_resolve.py",
}
"""Properties of some kinds that one small project does not show."""

UP = (
    "MODEL (name shop.up, kind INCREMENTAL_BY_TIME_RANGE (time_column ds), start '2024-01-01');"
    "SELECT ds, x FROM raw.orders WHERE ds BETWEEN @start_ts AND @end_ts"
)
DOWN = "MODEL (name shop.down, kind FULL); SELECT ds, x FROM shop.m"
# Begins where what it waits for begins.
AFTER = (
    "MODEL (name shop.after, kind INCREMENTAL_BY_TIME_RANGE (time_column ds), depends_on (shop.m));"
    "SELECT ds, x FROM raw.orders WHERE ds BETWEEN @start_ts AND @end_ts"
)
BESIDE = "MODEL (name shop.beside, kind FULL); SELECT ds, x FROM raw.beside"
TIMED = "WHERE ds BETWEEN @start_ts AND @end_ts"
SEED = "ds,x\n2024-01-01,a\n"


class TextProject(FakeProject):
    """A project whose models are texts."""

    texts: tuple[str, ...] = ()

    def graph(self, now: Instant) -> Graph:
        drafts = [draft for text in self.texts for draft in read(text, file=f"models/{abs(hash(text))}.sql")]
        return resolve(drafts, (), Naming(schema="shop"))


@dataclass
class Recorder:
    """An engine that remembers what it was asked to do."""

    engine: Any
    asked: list[str]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.engine, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            self.asked.append(_plain(f"{name} {tuple(_heeded(argument) for argument in arguments)} {options}"))
            return found(*(_foldable(argument) for argument in arguments), **options)

        return call


HEEDED = {
    IncrementalByUniqueKey: ("unique_key", "when_matched", "merge_filter", "order_by"),
    IncrementalByPartition: (),
    IncrementalUnmanaged: ("insert_overwrite",),
    ScdType2ByTime: (*HISTORY, "updated_at_as_valid_from"),
    ScdType2ByColumn: (*HISTORY, "columns", "execution_time_as_valid_from"),
}
"""What the engine heeds of the kinds that it is handed whole; that it is handed something else is no use of it."""

PUT_IN_BY = {
    IncrementalByUniqueKey: ("spark/kinds/upsert.py", "spark/kinds/merge.py"),
    IncrementalUnmanaged: ("graph/kinds.py",),
    ScdType2ByTime: ("spark/kinds/scd_type_2.py",),
    ScdType2ByColumn: ("spark/kinds/scd_type_2.py",),
}
"""Where it is heeded."""


def _heeded(argument: Any) -> Any:
    if not isinstance(argument, WriteRequest) or argument.fold is None:
        return argument
    kind = argument.fold.kind
    told: Any = (kind.name, {name: getattr(kind, name) for name in HEEDED[type(kind)]})
    # In units rows are compared with those of recorded time, and what is put in once is not.
    return replace(argument, fold=replace(argument.fold, kind=told), grain=None)


def _foldable(argument: Any) -> Any:
    """Histories are put together like upserts here; what the engine was asked is what counts."""
    if not isinstance(argument, WriteRequest) or argument.fold is None:
        return argument
    kind = argument.fold.kind
    if not isinstance(kind, ScdType2ByTime | ScdType2ByColumn):
        return argument
    return replace(argument, fold=replace(argument.fold, kind=IncrementalByUniqueKey(unique_key=kind.unique_key)))


# Kinds are handed to the engine whole; these properties of theirs are for planning.
_PLANNING = re.compile(r"(?:batch_size|batch_concurrency|lookback)=\w+(?:, )?|policy=IncrementalPolicy\([^)]*\)")
_NOISE = re.compile(r"[0-9a-f]{16,}|Location\([^)]*\)|run-\d+-\d+|models/\d+\.sql(?::\d+)*|function \S+ at \S+|0x\w+")
_LEFT_OUT = {"version", "previous_version", "diff", "seconds", "run_id", "file", "line", "column"}


def _plain(text: str) -> str:
    return _NOISE.sub("#", _PLANNING.sub("", text))


def _kept(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _kept(item) for key, item in value.items() if key not in _LEFT_OUT}
    return [_kept(item) for item in value] if isinstance(value, list) else value


@lru_cache(maxsize=512)
def life(header: str, body: str, *, is_seed: bool = False, replay: str = "full") -> tuple[str, ...]:
    """All that is said and asked while a project with this model is built, run, restated and changed."""
    place = Place(sources={"raw.orders": january(6), "raw.beside": january(1)})
    project = TextProject(())
    project.configure(replay_on_change=replay)
    place.project = project
    place.store.store_id = "one"
    own = f"MODEL (name shop.m, {header});"
    project.texts = (UP, DOWN, AFTER, BESIDE, own + ("" if is_seed else f"SELECT ds, x FROM shop.up {body}"))
    project.seeds = {"": SEED}
    seen: list[str] = []

    def step(command: str, now: str, environment: str | None = None, **options: Any) -> None:
        process = place.process()
        process.engine = Recorder(process.engine, seen)  # type: ignore[assignment]
        try:
            report = getattr(process, command)(now, environment, **options)
        except LaminaError as error:
            seen.append(_plain(f"{command} {[str(problem) for problem in error.problems]}"))
        else:
            seen.append(_plain(json.dumps(_kept(report.to_dict()), default=str)))

    step("build", "2024-01-05T06:00:00Z")
    place.catalog.sources["raw.orders"]["2024-01-02"] = "late"
    step("build", "2024-01-05T06:30:00Z", restate=("shop.up",), start="2024-01-02", end="2024-01-02")
    step("run", "2024-01-06T06:30:00Z")
    step("run", "2024-01-06T06:40:00Z")
    step("build", "2024-01-07T06:30:00Z", exclude=("shop.up",))
    step("build", "2024-01-07T06:40:00Z", restate=("shop.m",))
    step("plan", "2024-01-07T06:50:00Z", select=("tag:nightly",))
    step("run", "2024-02-01T06:30:00Z")
    if not is_seed:
        project.texts = (UP, DOWN, AFTER, BESIDE, f"{own} SELECT ds, x, 1 AS more FROM shop.up {body}")
        step("build", "2024-02-01T06:40:00Z")
        project.texts = (UP, DOWN, AFTER, BESIDE, f"{own} SELECT ds, x FROM shop.up {body}")
        step("build", "2024-02-01T06:50:00Z")
    return tuple(seen)


def _kind(name: str, properties: dict[str, str]) -> str:
    listed = ", ".join(f"{key} {value}" for key, value in properties.items())
    return f"kind {name} ({listed})" if listed else f"kind {name}"


def _life(name: str, properties: dict[str, str], further: str = "", body: str = TIMED) -> tuple[str, ...]:
    partitioned = ", partitioned_by (ds)" if name in PARTITIONED and "partitioned_by" not in further else ""
    start = ", start '2024-01-01'" if "start" not in further else ""
    header = f"{_kind(name, {**NEEDED.get(name, {}), **properties})}{partitioned}{start}{further}"
    return life(header, body, is_seed=name == "SEED")


def _value(name: str, key: str) -> str:
    if key in {"forward_only", "disable_restatement"}:
        return "false" if name in ALWAYS_FORWARD else "true"
    return VALUES[key]


def _bodies(name: str) -> tuple[str, ...]:
    if name in FOLDS:
        return (TIMED, "")
    return (TIMED,) if name == "INCREMENTAL_BY_TIME_RANGE" else ("",)


BUILT = [name for name in PROPERTIES if name not in {"CUSTOM", "MANAGED", "EXTERNAL"}]
IN_KINDS = [(name, key) for name in BUILT for key in PROPERTIES[name] if (name, key) not in OTHERWISE]
TIMELESS = ("INCREMENTAL_BY_PARTITION", "INCREMENTAL_UNMANAGED", "SCD_TYPE_2_BY_TIME", "SCD_TYPE_2_BY_COLUMN")
ABOUT_TIME = (
    *("end", "interval_unit", "allow_partials", "wait_for_parents", "follow_rewrites"),
    *("forward_only", "replay_on_change", "query_change_backfill"),
)
"""What kinds that fold heed in ways of their own."""
KEPT_UNLESS_SAID = ("forward_only", "replay_on_change", "query_change_backfill")
"""Of which these kinds have the other default."""
GENERAL = ("FULL", "VIEW", "EMBEDDED", "SEED", "INCREMENTAL_BY_TIME_RANGE", "INCREMENTAL_BY_UNIQUE_KEY")
OF_HEADERS = [
    (name, key)
    for name in GENERAL
    for key in HEADER_PROPERTIES
    if key not in ELSEWHERE and (name, key) not in OTHERWISE
]
OF_HEADERS += [(name, key) for name in TIMELESS for key in ABOUT_TIME]


def test_the_values_cover_every_property():
    in_kinds = {key for keys in PROPERTIES.values() for key in keys}
    assert in_kinds <= {*VALUES, "forward_only", "disable_restatement"}
    assert set(HEADER_PROPERTIES) == {*OF_HEADER, *ELSEWHERE}


@pytest.mark.parametrize("kind", PUT_IN_BY, ids=lambda kind: kind.__name__)
def test_what_counts_as_heeded_is_read_where_rows_are_put_in(kind: type):
    texts = [(ROOT / file).read_text() for file in PUT_IN_BY[kind]]
    assert [name for name in HEEDED[kind] if not any(re.search(rf"\bkind\.{name}\b", text) for text in texts)] == []


def test_what_is_said_to_have_no_effect_exists():
    assert {key for rule in HEADER for key in rule.keys} <= set(HEADER_PROPERTIES)
    assert {key for rule in IN_KIND for key in rule.keys} <= {key for keys in PROPERTIES.values() for key in keys}


@pytest.mark.parametrize("name", GENERAL)
def test_what_only_tells_people_something_changes_nothing_here(name: str):
    """Else everything would come out different, whatever it is."""
    body = _bodies(name)[0]
    assert _life(name, {}, ", owner ada", body) == _life(name, {}, "", body)


@pytest.mark.parametrize("name", ["CUSTOM", "MANAGED"])
def test_kinds_that_are_not_built_are_blocked_with_all_their_properties(name: str):
    said = " ".join(_life(name, {}, body=""))
    assert f"of kind {name}" in said
    assert "blocked" in said


@pytest.mark.parametrize(("name", "key"), IN_KINDS, ids=lambda value: value)
def test_a_property_of_a_kind_does_something_or_is_said_to_do_nothing(name: str, key: str):
    before = {"auto_restatement_cron": "'@weekly'"} if key == "auto_restatement_intervals" else {}
    for body in _bodies(name):
        after = {**before, key: _value(name, key)}
        assert _life(name, after, body=body) != _life(name, before, body=body), body


@pytest.mark.parametrize(("name", "key"), OF_HEADERS, ids=lambda value: value)
def test_a_property_of_a_header_does_something_or_is_said_to_do_nothing(name: str, key: str):
    for body in _bodies(name):
        value = OF_HEADER[key]
        if name in TIMELESS:
            value = {"true": "false", "forward": "full"}.get(value, value) if key in KEPT_UNLESS_SAID else value
        assert _life(name, {}, f", {key} {value}", body) != _life(name, {}, "", body), body


@pytest.mark.parametrize("name", ["INCREMENTAL_BY_TIME_RANGE", "INCREMENTAL_BY_UNIQUE_KEY"])
def test_the_project_decides_what_a_change_reprocesses_where_models_do_not_say(name: str):
    header = f"{_kind(name, NEEDED[name])}, start '2024-01-01'"
    assert life(header, TIMED, replay="forward") != life(header, TIMED)
