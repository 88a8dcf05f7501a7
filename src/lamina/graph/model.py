"""A model: one table or view that a user declares."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from lamina.timeline.grain import Grain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.errors import Location
    from lamina.graph.kinds import Kind, Setting
    from lamina.graph.names import NodeName
    from lamina.sql.fragment import Fragment
    from lamina.sql.lineage.input_windows import InputWindow

VariableValue: TypeAlias = "str | int | float | bool | list[VariableValue] | dict[str, VariableValue] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """An output column; type text in Spark's lower-case spelling, `None` when only the name is known."""

    name: str
    type: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonModule:
    """A project module captured as text so that recorded code can run without the files."""

    name: str
    path: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlText:
    """One statement with its macros expanded as far as possible.

    `expanded` still holds time variables by name; when `is_time_dependent`, `source` must be expanded anew for every
    interval because a time value decides more than a literal.
    """

    source: Fragment
    expanded: str
    is_time_dependent: bool = False
    canonical: str | None = field(default=None, compare=False, repr=False)
    """The canonical text of what is expanded, where it was read from files just now; it is not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MacroEnvironment:
    """What the macros of a model need to be expanded again later."""

    variables: Mapping[str, VariableValue] = field(default_factory=lambda: MappingProxyType({}))
    blueprint: Mapping[str, VariableValue] = field(default_factory=lambda: MappingProxyType({}))
    definitions: tuple[Fragment, ...] = ()
    modules: tuple[PythonModule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlBody:
    """A query and the statements around it."""

    query: SqlText
    canonical: str
    pre_statements: tuple[SqlText, ...] = ()
    post_statements: tuple[SqlText, ...] = ()
    on_virtual_update: tuple[SqlText, ...] = ()
    macros: MacroEnvironment = field(default_factory=MacroEnvironment)
    has_star: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonBody:
    """A function that returns DataFrames, with every project module it needs."""

    module: str
    function: str
    modules: tuple[PythonModule, ...]
    variables: Mapping[str, VariableValue] = field(default_factory=lambda: MappingProxyType({}))
    on_virtual_update: tuple[SqlText, ...] = ()
    macros: MacroEnvironment = field(default_factory=MacroEnvironment)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedBody:
    """The content of a CSV file: `content_hash` is its identity, `path` where to read it (project-relative)."""

    path: str
    content_hash: str
    on_virtual_update: tuple[SqlText, ...] = ()
    macros: MacroEnvironment = field(default_factory=MacroEnvironment)


Body: TypeAlias = SqlBody | PythonBody | SeedBody


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCode:
    """The query that finds the rows an audit refuses, with all that it takes to run it without the project's files.

    The query has the arguments of the call in it and reads the audited rows as `THIS_MODEL`. `parameters` are these
    arguments and the defaults in the query's dialect, for a query that must be expanded anew for every interval.
    """

    query: SqlText
    parameters: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    references: Mapping[str, NodeName] = field(default_factory=lambda: MappingProxyType({}))
    """Table names as written in the query (lower case, dotted) and the node each one means."""
    macros: MacroEnvironment = field(default_factory=MacroEnvironment)
    is_blocking: bool = True
    is_skipped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCall:
    """An audit attached to a model: arguments as SQL text of the model's dialect, and the query they are put into.

    `blocking` and `skip` are what the model says about it; None leaves it to the audit. A file of a model does not know
    the queries in `audits/`; they are there once the project is loaded.
    """

    name: str
    arguments: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    blocking: bool | None = None
    skip: bool | None = None
    location: Location | None = None
    code: AuditCode | None = None
    shown: Mapping[str, str] | None = field(default=None, compare=False, repr=False)
    """The arguments for people, where some are values of the environment; it is not recorded."""

    @property
    def is_blocking(self) -> bool:
        """Whether a failure keeps the model's rows from being published."""
        own = self.code.is_blocking if self.code is not None else True
        return own if self.blocking is None else self.blocking

    @property
    def is_skipped(self) -> bool:
        """Whether the audit is not to be run."""
        own = self.code.is_skipped if self.code is not None else False
        return own if self.skip is None else self.skip


class KnowsVariables:
    """What code of a project is called with: it may ask for the project's variables."""

    def __init__(self, variables: Mapping[str, VariableValue]) -> None:
        self._variables = variables

    def var(self, name: str, default: VariableValue = None) -> VariableValue:
        """A variable of the project as it was when the model was recorded, or the default."""
        return self._variables.get(name.lower(), self._variables.get(name, default))


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCode:
    """A signal or hook as code: a function, every project module it needs, the variables that its code asks for."""

    module: str
    function: str
    modules: tuple[PythonModule, ...]
    variables: Mapping[str, VariableValue] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """A signal or hook of a model: arguments as SQL text, their values, and the function they are handed to.

    A file of a model does not know the function; it is there once the project is loaded.
    """

    name: str
    arguments: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    values: Mapping[str, VariableValue] = field(default_factory=lambda: MappingProxyType({}))
    location: Location | None = None
    code: FunctionCode | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentValue:
    """A variable of the environment whose value stands in a model; once recorded, only a digest of it is known."""

    name: str
    value: str | None = field(default=None, repr=False)
    digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Everything a user said about one model, with defaults filled in and names resolved.

    `reads` lists the nodes and sources whose tables the body reads, by full name, in sorted order.
    """

    name: NodeName
    kind: Kind
    body: Body
    reads: tuple[NodeName, ...]
    location: Location
    references: Mapping[str, NodeName] = field(default_factory=lambda: MappingProxyType({}))
    """Table names as written in the query (lower case, dotted) and the node each one means."""
    columns: tuple[Column, ...] | None = None
    columns_are_declared: bool = False
    dialect: str = "spark"
    description: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()
    start: str | None = None
    end: str | None = None
    cron: str = "@daily"
    cron_tz: str = "UTC"
    grain: Grain = Grain.DAY
    allow_partials: bool = False
    stamp: str | None = None
    audits: tuple[AuditCall, ...] = ()
    standalone_audits: tuple[AuditCall, ...] = ()
    """Audits of the project that read this model's table, on their own; asked once all that they read is built."""
    source_audits: Mapping[NodeName, tuple[AuditCall, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Audits of the external tables that it reads, views looked through; asked before it is built."""
    signals: tuple[FunctionCall, ...] = ()
    pre_hooks: tuple[FunctionCall, ...] = ()
    post_hooks: tuple[FunctionCall, ...] = ()
    grains: tuple[str, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    """Partition expressions as Spark SQL, the time column included where the kind adds it."""
    clustered_by: tuple[str, ...] = ()
    table_format: str = "parquet"
    storage_format: str | None = None
    physical_properties: Mapping[str, Setting] = field(default_factory=lambda: MappingProxyType({}))
    virtual_properties: Mapping[str, Setting] = field(default_factory=lambda: MappingProxyType({}))
    session_properties: Mapping[str, Setting] = field(default_factory=lambda: MappingProxyType({}))
    replay_on_change: str | None = None
    run_despite_unchanged: str | None = None
    wait_for_parents: bool = True
    follow_rewrites: bool = True
    seed_copy: str | None = None
    """`always`: a version that begins with the rows of another one copies them, whatever files could be shared."""
    windows: Mapping[NodeName, InputWindow] = field(default_factory=lambda: MappingProxyType({}))
    """How far the query reads into models with a time column, views looked through; absent where nothing is known."""
    further: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Properties that are understood but have no effect on data here (owner lists, grants, linter rules), as text."""
    environment: tuple[EnvironmentValue, ...] = ()
    """What of the model comes from the environment; `graph/sealing.py` keeps it out of what is recorded."""
    read_with: str | None = None
    """Once recorded: by which Python and SQL parser its canonical texts were made. Others may write them otherwise."""

    @property
    def type(self) -> Literal["model", "seed"]:
        """The node type in the contract's words."""
        return "seed" if isinstance(self.body, SeedBody) else "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An external table read at its own name.

    `given_audits` are its audits as its file gives them, `audits` what they are once the project is loaded.
    """

    name: NodeName
    columns: tuple[Column, ...] | None = None
    is_declared: bool = False
    description: str | None = None
    location: Location | None = None
    given_audits: object = None
    audits_location: Location | None = None
    audits: tuple[AuditCall, ...] = ()
