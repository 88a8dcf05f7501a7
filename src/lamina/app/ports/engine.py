"""What the use cases need from Spark: the contract of an engine, and what it is asked and answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from lamina.timeline.interval import EMPTY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from lamina.app.ports.machine import Standing
    from lamina.app.ports.published import Contents, Head, PartitionKey, Publish, RowAction, TableShape, WriteThrough
    from lamina.errors import LaminaError, Location
    from lamina.graph.formats import TableFormat
    from lamina.graph.kinds import CsvSettings, FoldKind, SchemaChange, Setting, TimeColumn
    from lamina.graph.model import Column, FunctionCall, PythonBody, VariableValue
    from lamina.graph.names import NodeName
    from lamina.identity.naming import LogicalName, PhysicalName
    from lamina.sql.fragment import Fragment
    from lamina.timeline.grain import Grain
    from lamina.timeline.interval import Instant, Interval, Intervals


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement in Spark SQL with all names and values filled in, and where it was written."""

    sql: str
    location: Location
    written: Fragment | None = None
    """The text it was made of, to say where in it Spark found something wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlQuery:
    """A query in Spark SQL with all names and values filled in, and the statements around it."""

    sql: str
    pre_statements: tuple[Statement, ...] = ()
    post_statements: tuple[Statement, ...] = ()
    written: Fragment | None = None
    """The text it was made of, to say where in it Spark found something wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTime:
    """What code of the project is told about time: the interval, if there is one, and the moment of the command."""

    interval: Interval | None
    execution: Instant

    @property
    def first(self) -> datetime | None:
        """The first moment of the interval."""
        return self.interval.start.to_datetime() if self.interval else None

    @property
    def last(self) -> datetime | None:
        """The last microsecond of the interval."""
        return self.interval.end.minus(1).to_datetime() if self.interval else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonQuery:
    """A Python model to call; `tables` maps names the code may use to Spark SQL relations."""

    body: PythonBody
    tables: Mapping[str, str]
    time: BatchTime
    variables: Mapping[str, VariableValue] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRows:
    """CSV text to load."""

    text: str
    settings: CsvSettings
    file: str


RowSource: TypeAlias = SqlQuery | PythonQuery | SeedRows


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Functions to call around a batch, in its own session, and what they are told.

    Those before come ahead of the statements before the query, those after follow the statements after it.
    """

    before: tuple[FunctionCall, ...]
    after: tuple[FunctionCall, ...]
    time: BatchTime


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What is published now and will be replaced in part: the head and its manifest."""

    head: Head
    manifest: Mapping[PartitionKey, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """How new rows are put into what the table holds; the texts of the kind are Spark SQL with all values filled in.

    With `begins_anew` it is as if the table held nothing, and nothing that it holds survives.
    """

    kind: FoldKind
    execution_time: Instant
    begins_anew: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """One batch to write aside.

    `columns` are declared columns (cast and checked) or `None`; `comments` go to the table. `partitioned_by` holds
    Spark SQL expressions. With an `interval`, only rows whose time column lies in it are written, rows of the base
    that lie outside it survive, and rows of the base inside it do not. With a `fold` the new rows are put into the
    base's by the rules of a kind, and keys that these forbid are refused (`BadModelResult`).
    """

    node: NodeName
    location: Location
    attempt: int
    physical: PhysicalName
    folder: str
    rows: RowSource
    columns: tuple[Column, ...] | None
    comments: Mapping[str, str]
    partitioned_by: tuple[str, ...]
    interval: Interval | None = None
    time_column: TimeColumn | None = None
    base: Base | None = None
    fold: Fold | None = None
    recorded: Intervals = EMPTY
    """Parts of the interval that the base holds rows for because they were computed before: what is compared."""
    grain: Grain | None = None
    """The units in which differences are told."""
    measured: tuple[Interval, ...] = ()
    """Stretches of the interval whose contents are wanted, few and apart; a later batch is compared with them."""
    settings: Mapping[str, Setting] = field(default_factory=lambda: MappingProxyType({}))
    hooks: Hooks | None = None
    table: TableOptions
    former: FormerColumns | None = None
    """What the table has besides, where rows stay in it."""
    write_through: Callable[[TableShape], WriteThrough] | None = None
    """Decides that the batch is its own publish. Called at most once, right before the statement that does it, where
    the format has transactions; the rows are shown when `write` returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerColumns:
    """The columns that a table's rows have, and what is to be done where new rows have others.

    `ignore` leaves the table's columns as they are, `error` refuses the rows, everything else takes the new columns.
    """

    columns: tuple[Column, ...]
    on_missing: SchemaChange
    on_added: SchemaChange


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """How a version's table is made: its format, and what the model says about its storage."""

    generation: str
    table_format: TableFormat
    description: str | None = None
    clustered_by: tuple[str, ...] = ()
    properties: Mapping[str, Setting] = field(default_factory=lambda: MappingProxyType({}))
    storage_format: str | None = None
    changes_by_key: bool = False
    """Whether batches change single rows all over the table, rather than parts of it."""
    owns_files: bool = False
    """Whether a table that begins with the rows of another one must not share files with it."""


# --- where a written batch lies, when it is not a matter of folders ---
@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """In the generation of its attempt, which holds everything that readers shall see."""

    snapshot: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """In its folder; what `action` does with it makes the shown table what it shall be."""

    action: RowAction


@dataclass(frozen=True, slots=True, kw_only=True)
class OnBranch:
    """On a branch of the shown table; `former` is the branch that keeps what is shown now."""

    branch: str
    snapshot: int
    former: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """In the shown table: the batch was its own publish."""

    publish: WriteThrough
    snapshot: int | None


Place: TypeAlias = NewTable | Aside | OnBranch | Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What lies aside: partitions to set, partitions of the base that are gone, and figures.

    `folders` are relative like the request's folder. `removed` never overlaps `folders`. A format that keeps a history
    names a `place` instead.
    """

    rows: int
    shape: TableShape
    folders: Mapping[PartitionKey, str] = field(default_factory=lambda: MappingProxyType({}))
    removed: tuple[PartitionKey, ...] = ()
    statements: int = 1
    null_times: int = 0
    changed: Intervals = EMPTY
    """Units of the request's recorded time whose rows are not those of the base; when in doubt, too many."""
    contents: Contents = field(default_factory=lambda: MappingProxyType({}))
    """Of a table that was written whole, or of the request's measured units, as far as they could be measured."""
    place: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """A generation table over the whole manifest, made before it is decided.

    With a `source` it holds the rows of that head: the same files where the format can, else a copy. One that
    `is_mended` is put together from what is left of the source, of which files are gone.
    """

    physical: PhysicalName
    shape: TableShape
    manifest: Mapping[PartitionKey, str]
    folder: str
    table: TableOptions
    partitioned_by: tuple[str, ...] = ()
    source: Head | None = None
    is_mended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedRows:
    """The rows of a batch that nobody sees yet; with an `interval`, those of its rows that lie in it.

    They lie in the batch's folder or in the `place` that the write named. What a MERGE will make of the table is worked
    out from its `base` and the `fold`. Partitions of the base that are `removed` have their rows among these, or none.
    """

    shape: TableShape
    interval: Interval | None = None
    time_column: TimeColumn | None = None
    generation: str = ""
    place: Place | None = None
    base: Base | None = None
    fold: Fold | None = None
    removed: tuple[PartitionKey, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRows:
    """Published rows of a version that lie in the `interval`; `relation` gives all of them, with these columns."""

    relation: str
    columns: tuple[Column, ...]
    interval: Interval
    time_column: TimeColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest:
    """Audits to ask; their queries read the rows that are `staged` in `folder`, or shown, under the name `view`.

    Queries that read what they audit by themselves need neither. Rows that a blocking audit finds are kept below
    `folder`, beside the batch they belong to.
    """

    node: NodeName
    location: Location
    queries: tuple[AuditQuery, ...]
    view: str
    staged: StagedRows | ShownRows | None
    physical: PhysicalName
    folder: str
    settings: Mapping[str, Setting] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFinding:
    """How many rows an audit found, and the relation in which those of a blocking one can be looked at."""

    query: AuditQuery
    rows: int
    kept_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisRequest:
    """Rows to analyse without reading data: a query, or a seed whose columns are wanted."""

    node: NodeName
    location: Location
    rows: SqlQuery | SeedRows
    columns: tuple[Column, ...] | None = None
    """Declared columns: what the rows must fit, and what the outcome shows."""
    settings: Mapping[str, Setting] = field(default_factory=lambda: MappingProxyType({}))
    hooks: Hooks | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisOutcome:
    """The columns a query would give, or why it cannot run."""

    node: NodeName
    columns: tuple[Column, ...] | None = None
    error: LaminaError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowView:
    """An environment's view over a version, with the version's comment unless it has one of its own."""

    logical: LogicalName
    physical: PhysicalName
    comment: str | None = None
    properties: Mapping[str, Setting] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class HideView:
    """An environment's view that goes away."""

    logical: LogicalName


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementsRequest:
    """Statements that follow a model's view in an environment."""

    node: NodeName
    environment: str
    statements: tuple[Statement, ...]
    settings: Mapping[str, Setting] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """A publish was found carried out; `snapshot` is the table's own version that holds it, `rows` what it wrote."""

    snapshot: int | None = None
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalTable:
    """Files that somebody else writes, under a name that queries use."""

    name: str
    path: str
    format: str
    options: tuple[tuple[str, str], ...] = ()
    """What Spark needs to know to read them, such as `header`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """Rows as plain values: timestamps ISO text in UTC, decimals text, nested values as lists and mappings."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    is_truncated: bool


class Engine(Protocol):
    """Spark, as far as Lamina needs it.

    Nothing starts before the first call that needs it. Calls may come from several threads; each works in a session of
    its own in UTC. Errors are `EngineError`s: retryable or final, and `StatementUnanswered` when a catalog statement
    may still land. Names of tables and folders come from the caller and are made exactly so.
    """

    def prepare(
        self, owner_command: str, formats: frozenset[str], catalogs: Mapping[str, frozenset[str]] | None = None
    ) -> Standing:
        """Start what is needed to work, and answer by what others can tell when it has ended.

        `formats` names the table formats of what the command may touch; one that Spark cannot have is an error.
        `catalogs` are those beside Spark's own that models name, with the formats of their tables there; `CatalogUnfit`
        says which of them cannot hold these and the views over them.
        """
        ...

    def placed(self, generation: str, table_format: TableFormat) -> str:
        """The full name of a generation: with the catalog in which tables of this format are kept."""
        ...

    def analyse(self, requests: Sequence[AnalysisRequest]) -> tuple[AnalysisOutcome, ...]:
        """Have Spark resolve the queries and read the seeds' types; no data is read. One outcome per request, in order;
        a refused query is an outcome with an error, not an exception.
        """
        ...

    def write(self, request: WriteRequest) -> Written:
        """Write one batch into its folder. Nothing that readers see changes. A retry must use a new folder."""
        ...

    def audit(self, request: AuditRequest) -> tuple[AuditFinding, ...]:
        """Ask audits, in order. Nothing that readers see changes."""
        ...

    def create_generation(self, request: GenerationRequest) -> int | None:
        """Create the table over exactly the manifest's folders; made again under one name it is the same.

        Answers the version of a table that keeps a history. `StorageMissing` when what is to be mended is lost.
        """
        ...

    def absent(self, schema: str, folders: Sequence[str]) -> str | None:
        """The path of one of these folders, named as in a manifest, that is not there; None when all of them are."""
        ...

    def left_behind(self, names: Sequence[PhysicalName]) -> tuple[PhysicalName, ...]:
        """Those of these versions that the catalog shows already; nothing is logged where there are none."""
        ...

    def missing_files(self, table_format: TableFormat, heads: Sequence[Head]) -> Mapping[PhysicalName, tuple[str, ...]]:
        """The files that are gone of those that the tables of these heads name, for every one that lacks some.

        All are of one format, in which a table may name files of another one.
        """
        ...

    def publish(self, publish: Publish) -> int | None:
        """Carry out a decided publish: one atomic statement, the same when done twice.

        Answers which version of a table that keeps a history holds it, where that was not known before. Raises
        `PublishRefused` when it can never be carried out.
        """
        ...

    def retract(self, publish: Publish) -> Landing | None:
        """Keep a publish from landing any more, then say whether it had landed before; the same when done twice."""
        ...

    def published(self, names: Sequence[PhysicalName]) -> Mapping[PhysicalName, str | None]:
        """For every version's view the generation it shows; `None` when the view does not exist."""
        ...

    def show(self, views: Sequence[ShowView | HideView]) -> int:
        """Make environment views as asked, in order; identical ones are left alone. Answers how many changed."""
        ...

    def execute(self, request: StatementsRequest) -> None:
        """Run statements in order, in one session with these settings that nothing else uses.

        The first that fails ends it, with an error that tells the statement and its place. Queries among them are
        computed, and their rows dropped.
        """
        ...

    def describe(self, tables: Sequence[NodeName]) -> tuple[AnalysisOutcome, ...]:
        """The columns of tables as the catalog has them, with types and comments; no data is read.

        One outcome per table, in order; one that does not exist or cannot be read is an outcome with an error.
        """
        ...

    def register(self, table: ExternalTable) -> tuple[Column, ...]:
        """Make files known to the catalog as a table, and its schema if there is none; answers its columns.

        Raises `NameTaken` where the catalog has something of that name. No file is written, moved or removed.
        """
        ...

    def query(self, sql: str, *, limit: int | None) -> QueryResult:
        """Run a query with all names resolved and fetch its rows."""
        ...

    def frame(self, sql: str) -> Any:
        """A lazy DataFrame of a query with all names resolved, on the root session."""
        ...

    def cancel(self) -> None:
        """Stop the Spark jobs of `write`, `audit`, `analyse`, `execute`, `describe` and `query`, and let none begin.

        Those calls raise `Cancelled`, the ones in progress and all others, until `prepare` is called again: a call that
        is on its way to its first job when this arrives would otherwise go on for as long as its query takes. Catalog
        statements of `publish` and `show` are never interrupted: what was decided is carried out.
        """
        ...

    def close(self) -> None:
        """End what `prepare` started; a session handed in is left alone. Safe to call twice."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """One audit over given rows; `arguments` is how the model calls it, such as `columns := (id)`, for people.

    The same rows give the same outcome for the same `key`, unless the query reads other tables too.
    """

    name: str
    arguments: str
    is_blocking: bool
    sql: str
    key: str
    location: Location | None = None
    """Where the model calls the audit, or where the audit stands in the model's file."""
    written: Fragment | None = None
    """The query as a person wrote it; None for built-in audits."""

    @property
    def call(self) -> str:
        """The audit as the model calls it."""
        return audit_call(self.name, self.arguments)


def audit_call(name: str, arguments: str) -> str:
    return f"{name}({arguments})" if arguments else name
