"""Everything that a user can set becomes a field of some value, and something beyond those that pass it on reads it."""

from __future__ import annotations

import ast
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from lamina.app.ports.project import ProjectSettings
from lamina.app.requests import AuditsRequest, PlanRequest, PromoteRequest, SourceColumnsRequest
from lamina.graph import kinds
from lamina.graph.model import Model, Source
from lamina.planning.inputs import Flags
from lamina.project.configuration.shape import ConfigFile, DefaultsSection, SparkSection, TargetSection
from lamina.project.configuration.values import Config, SparkSettings, Target

ROOT = Path(__file__).parents[2] / "src" / "lamina"
PASSING_ON = (
    "graph/model.py",
    "graph/sealing.py",
    "reading/model_properties.py",
    "reading/model_header.py",
    "reading/kinds.py",
    "identity/fingerprint.py",
    "identity/forms/first.py",
    "planning/inputs.py",
    "project/configuration/read.py",
    "project/configuration/shape.py",
    "project/configuration/values.py",
    "state/codec.py",
)
"""Files that read, record or compare settings; that alone is no use of them."""

SAID = {
    "run_despite_unchanged": "a warning says that it has no effect yet",
    "further": "warnings say which of these have no effect",
    "reuse_from": "a warning says that it has no effect yet",
    "reuse_hard_copy": "a warning says that it has no effect yet",
    "materialization": "the kind is refused",
    "materialization_properties": "the kind is refused",
    "partition_by_time_column": "becomes one of `partitioned_by`",
    "owner": "tells people something",
    "grains": "tells people something",
    "stamp": "makes a new version, and nothing else",
}


@cache
def read_in_code() -> frozenset[str]:
    found: set[str] = set()
    for file in ROOT.rglob("*.py"):
        if file.relative_to(ROOT).as_posix() in PASSING_ON:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.add(node.attr)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
                found.update(each.value for each in node.args if isinstance(each, ast.Constant))
    return frozenset(found)


ASKED = (ProjectSettings, Flags, PlanRequest, PromoteRequest, AuditsRequest, SourceColumnsRequest)
CLASSES = (*kinds.KINDS, kinds.IncrementalPolicy, kinds.CsvSettings, kinds.TimeColumn, Model, Source)


@pytest.mark.parametrize("cls", [*CLASSES, *ASKED], ids=lambda c: c.__name__)
def test_every_field_is_read_by_something_that_acts_on_it(cls: type):
    names = {field.name for field in fields(cls)} - {name for name in SAID if cls in CLASSES}
    assert sorted(names - read_in_code()) == []


def test_nothing_is_listed_that_is_read():
    read = {name for name in SAID if name in read_in_code()}
    assert read <= {"owner", "stamp"}, "take these from the list"


@pytest.mark.parametrize(
    ("section", "value"),
    [(ConfigFile, Config), (TargetSection, Target), (SparkSection, SparkSettings)],
    ids=lambda cls: cls.__name__,
)
def test_every_key_of_the_configuration_becomes_part_of_a_value(section, value):
    elsewhere = {
        "base_schema": "schema",
        "default_target": "target",
        "spark": "target",
        "state": "target",
        "variables": "variables",
        "defer_sources_to": "a warning says that it has no effect yet",
    }
    named = {field.name for field in fields(value)}
    assert [name for name in section.model_fields if name not in named and name not in elsewhere] == []


def test_every_default_is_a_property_of_models_or_kinds():
    from lamina.reading.model_header import _KIND_DEFAULTS, _STATEMENTS, PROPERTIES

    assert set(DefaultsSection.model_fields) <= {*PROPERTIES, *_KIND_DEFAULTS, *_STATEMENTS}
