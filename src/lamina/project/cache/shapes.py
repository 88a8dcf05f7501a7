"""The classes that a graph and a configuration are made of, for the cache."""

from __future__ import annotations

from typing import get_args

from lamina.errors import Location
from lamina.graph.dag import Graph, Notice
from lamina.graph.kinds import CsvSettings, IncrementalPolicy, Kind, TimeColumn
from lamina.graph.model import (
    AuditCall,
    AuditCode,
    Column,
    EnvironmentValue,
    FunctionCall,
    FunctionCode,
    MacroEnvironment,
    Model,
    PythonBody,
    PythonModule,
    SeedBody,
    Source,
    SqlBody,
    SqlText,
)
from lamina.project.cache.packed import Shapes
from lamina.project.configuration.secrets import Secret
from lamina.project.configuration.values import Config, EnvironmentUse, SparkSettings, Target
from lamina.project.yaml.places import YamlText
from lamina.sql.fragment import Fragment
from lamina.sql.lineage.input_windows import InputWindow, Offset
from lamina.timeline.grain import Grain

_KINDS = get_args(Kind)

GRAPH = Shapes(
    (
        *_KINDS,
        AuditCall,
        AuditCode,
        Column,
        CsvSettings,
        EnvironmentValue,
        Fragment,
        FunctionCall,
        FunctionCode,
        Grain,
        Graph,
        IncrementalPolicy,
        InputWindow,
        Location,
        MacroEnvironment,
        Model,
        Notice,
        Offset,
        PythonBody,
        PythonModule,
        SeedBody,
        Source,
        SqlBody,
        SqlText,
        TimeColumn,
    ),
    {
        "Base": "str",
        "Body": "SqlBody | PythonBody | SeedBody",
        "Kind": " | ".join(kind.__name__ for kind in _KINDS),
        "NodeName": "str",
        "SchemaChange": "str",
        "Setting": "str | int | float | bool | None",
        "VariableValue": "object",
    },
)

CONFIG = GRAPH.extended(
    (Config, EnvironmentUse, Secret, SparkSettings, Target, YamlText),
    {"YamlPath": "tuple[str | int, ...]"},
)
