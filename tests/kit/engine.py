"""An engine without Spark: a catalog in memory, and one engine per process that works on it.

Rows are pairs of a unit (ISO text of its start) and a value. What a query gives is asked of a `Compute`; everything
else follows the contract of the port: folders are written once, statements are atomic, and a reader goes from a view
over its generation to the folders, or the test fails.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol

from lamina.app.ports.engine import (
    AnalysisOutcome,
    AnalysisRequest,
    Aside,
    AuditFinding,
    AuditRequest,
    Fold,
    GenerationRequest,
    HideView,
    NewTable,
    OnBranch,
    PythonQuery,
    QueryResult,
    SeedRows,
    Shown,
    ShownRows,
    ShowView,
    SqlQuery,
    StatementsRequest,
    WriteRequest,
    Written,
)
from lamina.app.ports.machine import Standing
from lamina.app.ports.published import (
    AddPartitions,
    Beneath,
    CommitRows,
    FastForward,
    InPlace,
    PartitionColumn,
    RowAction,
    SetView,
    SwitchGeneration,
    TableShape,
)
from lamina.errors import Cancelled, EngineError, NameTaken, StorageMissing
from lamina.graph.kinds import (
    IncrementalByPartition,
    IncrementalByUniqueKey,
    IncrementalUnmanaged,
    ScdType2ByColumn,
    ScdType2ByTime,
    appends,
    is_keyed,
)
from lamina.graph.model import Column
from lamina.timeline.interval import EMPTY, Instant, Interval, Intervals
from tests.kit.lakes import LakeTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lamina.app.ports.engine import ExternalTable, Landing, Place, StagedRows
    from lamina.app.ports.published import Head, PartitionKey, Publish
    from lamina.errors import LaminaError
    from lamina.graph.formats import TableFormat
    from lamina.graph.names import NodeName
    from lamina.identity.naming import LogicalName, PhysicalName

Row = tuple[str, str]
COLUMNS = (Column(name="ds", type="timestamp"), Column(name="x", type="string"))

_NAME = re.compile(r"`([^`]+)`\.`([^`]+)`")
_READ = re.compile(r"`([^`]+)`\.`([^`]+)`(?: VERSION AS OF (\d+))?")
_GENERATION = re.compile(r"__v_[0-9a-f]{16}(?:_\d+)?__g_\d+$")


class Compute(Protocol):
    """What a model gives: the rows of a query for an interval."""

    def __call__(self, node: str, interval: Interval | None, sql: str) -> Iterable[Row]: ...


def reads_in(sql: str) -> list[tuple[str, int | None]]:
    """The relations that a text reads, with the snapshot where it names one."""
    found = [(f"{schema}.{table}", moment) for schema, table, moment in _READ.findall(sql)]
    return list(dict.fromkeys((name, int(moment) if moment else None) for name, moment in found))


def names_in(sql: str) -> list[str]:
    """The quoted two-part names in a text, in order, once each."""
    return list(dict.fromkeys(f"{schema}.{table}" for schema, table in _NAME.findall(sql)))


def is_generation(name: str) -> bool:
    return _GENERATION.search(name) is not None


@dataclass(frozen=True, slots=True)
class VersionView:
    """The view of a version: its property, and the query it shows where the version stores no rows."""

    generation: str
    sql: str | None = None


@dataclass(slots=True)
class Fault:
    """Something that goes wrong: the next `times` calls of an operation whose subject contains `about` raise `error`.

    `lands` says what becomes of the statement: nothing, carried out before the error, or kept in flight until
    `FakeCatalog.land` is called.
    """

    operation: str
    error: LaminaError
    about: str = ""
    times: int = 1
    lands: str = "never"


class FakeCatalog:
    """What outlives every process: schemas, tables, views and files. One statement is atomic, nothing is fenced."""

    def __init__(self, sources: Mapping[str, dict[str, str]] | None = None) -> None:
        self.sources: dict[str, dict[str, str]] = {name: dict(rows) for name, rows in (sources or {}).items()}
        self.folders: dict[str, tuple[Row, ...]] = {}
        self._spans: dict[str, tuple[Instant, Instant] | None] = {}
        self.tables: dict[str, dict[PartitionKey, str]] = {}
        self.is_far_away = False
        self.is_kept_elsewhere = False
        """Whether only an engine can look for folders."""
        self.gone: set[str] = set()
        """Folders, each with a slash at its end, that are no longer there, with all in them."""
        self.robbed: dict[str, str] = {}
        """Tables of which files of others are gone; `lost` where their rows are nowhere else."""
        self.beneath: dict[str, Beneath] = {}
        self.lakes: dict[str, LakeTable] = {}
        self.versions: dict[str, VersionView] = {}
        self.environments: dict[str, str] = {}
        self.properties: dict[str, dict[str, Any]] = {}
        """What the views of environments were given beside their queries."""
        self.statements: list[tuple[str, str]] = []
        self.executed: list[str] = []
        """What users' own statements did, in order."""
        self.in_flight: list[Callable[[], object]] = []
        self.lock = threading.RLock()

    def absent(self, folders: Iterable[str]) -> tuple[str, ...]:
        """Which of these folders are gone."""
        return tuple(folder for folder in folders if f"{folder}/".startswith(tuple(self.gone)))

    def twin(self) -> FakeCatalog:
        """A copy that goes its own way from here."""
        other = FakeCatalog(self.sources)
        other.folders = dict(self.folders)
        other.tables = {name: dict(partitions) for name, partitions in self.tables.items()}
        other.beneath = dict(self.beneath)
        other.lakes = {name: lake.twin() for name, lake in self.lakes.items()}
        other.versions, other.environments = dict(self.versions), dict(self.environments)
        other.properties = dict(self.properties)
        return other

    def span_of(self, folder: str) -> tuple[Instant, Instant] | None:
        """The first and the last time of a folder's rows; folders are written once."""
        if folder not in self._spans:
            times = [_time_of(unit) for unit, _ in self.folders[folder] if unit != "all"]
            self._spans[folder] = (min(times), max(times)) if times else None
        return self._spans[folder]

    # --- what readers see ---
    def rows(self, logical: str) -> tuple[Row, ...]:
        """What a reader of an environment's view sees now."""
        with self.lock:
            assert logical in self.environments, f"there is no view `{logical}`"
            return self.rows_of_version(self.environments[logical])

    def rows_of_version(self, physical: str) -> tuple[Row, ...]:
        """What a reader of a version's view sees now."""
        with self.lock:
            assert physical in self.versions, f"there is no view `{physical}`"
            view = self.versions[physical]
            if view.sql is None:
                return self.rows_of_table(view.generation)
            return tuple(sorted(row for name in names_in(view.sql) for row in self.rows_of_relation(name)))

    def rows_of_table(self, generation: str, snapshot: int | None = None) -> tuple[Row, ...]:
        """The rows of a generation: what Lamina itself reads."""
        with self.lock:
            if generation in self.lakes:
                return tuple(sorted(self.lakes[generation].rows(snapshot)))
            assert generation in self.tables, f"there is no table `{generation}`"
            found: list[Row] = []
            for key, folder in self.partitions_of(generation).items():
                assert folder in self.folders, f"partition {key} of `{generation}` has no files in `{folder}`"
                found.extend(self.folders[folder])
            return tuple(sorted(found))

    def partitions_of(self, generation: str) -> dict[PartitionKey, str]:
        """The folders of a generation, and of what it is laid over."""
        own, beneath = self.tables[generation], self.beneath.get(generation)
        if beneath is None:
            return own
        rest = {key: place for key, place in self.tables[beneath.generation].items() if key not in beneath.hidden}
        assert not rest.keys() & own.keys(), f"`{generation}` shows a partition twice"
        return {**rest, **own}

    def rows_read(self, sql: str) -> list[Row]:
        """The rows of everything that a text reads; what lies beneath another relation is part of that one."""
        reads = reads_in(sql)
        lower = {self.beneath[name].generation for name, _ in reads if name in self.beneath}
        return [row for name, moment in reads if name not in lower for row in self.rows_of_relation(name, moment)]

    def rows_of_relation(self, name: str, snapshot: int | None = None) -> tuple[Row, ...]:
        """The rows of anything a query can name."""
        if is_generation(name):
            return self.rows_of_table(name, snapshot)
        if name in self.versions:
            return self.rows_of_version(name)
        return tuple(sorted(self.sources.get(name, {}).items()))

    def everything(self) -> dict[str, tuple[Row, ...]]:
        """What readers of every environment see now."""
        with self.lock:
            return {logical: self.rows(logical) for logical in sorted(self.environments)}

    # --- statements ---
    def land(self) -> None:
        """Statements that got no answer arrive now; one that can no longer be carried out fails unseen."""
        with self.lock:
            waiting, self.in_flight = self.in_flight, []
            for statement in waiting:
                try:
                    statement()
                except EngineError:
                    continue

    def carry_out(self, publish: Publish) -> int | None:
        with self.lock:
            match publish:
                case AddPartitions():
                    self._add(publish)
                case InPlace():
                    return self._change(publish)
                case SwitchGeneration():
                    if publish.generation not in self.tables and publish.generation not in self.lakes:
                        raise EngineError(f"table `{publish.generation}` does not exist")
                    self.versions[publish.physical] = VersionView(publish.generation)
                    if publish.beneath is not None:
                        self.beneath[publish.generation] = publish.beneath
                case SetView():
                    for name in names_in(publish.sql):
                        if name not in self.versions and name not in self.sources:
                            raise EngineError(f"table or view `{name}` does not exist")
                    self.versions[publish.physical] = VersionView(publish.generation, publish.sql)
            return None

    def _change(self, publish: InPlace) -> int:
        lake = self.lakes[publish.generation]
        if isinstance(publish, FastForward):
            return lake.move_forward(publish)
        assert isinstance(publish, CommitRows), f"{publish} is carried out by its own batch"
        return lake.commit(publish, self.folders[publish.folder], publish.action)

    def _add(self, publish: AddPartitions) -> None:
        if publish.generation not in self.tables:
            raise EngineError(f"table `{publish.generation}` does not exist")
        table = self.tables[publish.generation]
        there = {key for key in publish.partitions if key in table}
        if not there:
            table.update(publish.partitions)
        elif there != set(publish.partitions) or any(table[key] != publish.partitions[key] for key in there):
            raise EngineError(f"partitions {sorted(there)} of `{publish.generation}` exist with other folders")

    def set_view(self, view: ShowView | HideView) -> bool:
        """Whether the catalog changed."""
        with self.lock:
            if isinstance(view, HideView):
                self.properties.pop(view.logical, None)
                return self.environments.pop(view.logical, None) is not None
            if view.physical not in self.versions:
                raise EngineError(f"table or view `{view.physical}` does not exist")
            former = self.environments.get(view.logical), self.properties.get(view.logical, {})
            is_new = former != (view.physical, dict(view.properties))
            self.environments[view.logical] = view.physical
            self.properties[view.logical] = dict(view.properties)
            return is_new


def from_inputs(catalog: FakeCatalog) -> Compute:
    """Rows that follow from the text of the query and from what it reads, so that a wrong read shows in the result.

    With an interval: one row per unit and input row. Without: one row that holds everything that was read.
    """

    def compute(node: str, interval: Interval | None, sql: str) -> Iterable[Row]:
        label = re.search(r"SELECT ds, (.+?) FROM", sql)
        mark = f"{node.rpartition('.')[2]}:{label.group(1) if label else '?'}"
        read = catalog.rows_read(sql)
        if interval is None:
            return [("all", f"{mark}<{' '.join(f'{unit}={value}' for unit, value in sorted(read))}>")]
        return [(unit, f"{mark}<{value}>") for unit, value in read]

    return compute


@dataclass(slots=True)
class FakeEngine:
    """The `Engine` port on a catalog in memory.

    `reach` is called in the middle of writing and right before every statement, `watch` after each of them.
    """

    catalog: FakeCatalog
    compute: Compute
    is_alone: bool = False
    looked_for: set[str] = field(default_factory=set)
    """The folders that it was asked about."""
    is_carried: bool = True
    """Whether statements may land after the process is gone."""
    reach: Callable[[str], None] = lambda _: None
    watch: Callable[[], None] = lambda: None
    faults: list[Fault] = field(default_factory=list)
    refusals: dict[str, LaminaError] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    writes: list[tuple[str, Interval | None]] = field(default_factory=list)
    failing: Callable[[str, str, list[Row]], int] = lambda _audit, _node, _rows: 0
    """How many of the rows an audit of a model finds."""
    audited: list[str] = field(default_factory=list)
    cancelled: threading.Event = field(default_factory=threading.Event)

    def prepare(
        self,
        owner_command: str,
        formats: frozenset[str] = frozenset(),
        catalogs: Mapping[str, frozenset[str]] | None = None,
    ) -> Standing:
        self._call("prepare", owner_command)
        self.cancelled.clear()
        return Standing(catalog="the only one" if self.is_alone else None, is_carried=self.is_carried)

    def placed(self, generation: str, table_format: TableFormat) -> str:
        return generation

    def analyse(self, requests: Sequence[AnalysisRequest]) -> tuple[AnalysisOutcome, ...]:
        self._call("analyse", ", ".join(request.node for request in requests))
        return tuple(self._analysed(request) for request in requests)

    def _analysed(self, request: AnalysisRequest) -> AnalysisOutcome:
        if request.node in self.refusals:
            return AnalysisOutcome(node=request.node, error=self.refusals[request.node])
        gone = () if self.catalog.is_kept_elsewhere else [folder.rstrip("/") for folder in self.catalog.gone]
        if isinstance(request.rows, SqlQuery) and any(f".`{table}`" in request.rows.sql for table in gone):
            return AnalysisOutcome(node=request.node, error=EngineError("its metadata is not there"))
        return AnalysisOutcome(node=request.node, columns=COLUMNS)

    # --- writing aside ---
    def write(self, request: WriteRequest) -> Written:
        self._call("write", request.node)
        rows = [row for row in self._rows_of(request) if _is_inside(row, request.interval)]
        if self.cancelled.is_set():
            raise Cancelled("the write was cancelled")
        self.writes.append((request.node, request.interval))
        if request.table.table_format.keeps_history:
            return self._write_lake(request, rows)
        if request.fold is not None:
            return self._write_fold(request, request.fold, rows)
        before = self._base(request)
        partitions: dict[PartitionKey, list[Row]] = {} if request.partitioned_by else {(): []}
        for row in rows:
            partitions.setdefault(_key(row, request), []).append(row)
        touched = {key for key in before if self._holds_some_of(request, key)}
        _check_remembered(request, [row for key in touched for row in before[key]])
        for key in touched | (partitions.keys() & before.keys()):
            self._check_shown(request, key)
            kept = [row for row in before[key] if not _is_inside(row, request.interval)]
            if kept or key in partitions:
                partitions.setdefault(key, []).extend(kept)
        folders = self._write_folders(request, partitions)
        return Written(
            rows=len(rows),
            shape=_shape(request),
            folders=folders,
            removed=tuple(sorted(touched - partitions.keys())),
            changed=_changed(request, rows, [row for key in touched for row in before[key]]),
            contents=_contents(request, rows),
        )

    # --- tables that keep a history ---
    def _write_lake(self, request: WriteRequest, rows: list[Row]) -> Written:
        fold, base = request.fold, request.base
        if base is None or (fold is None and request.interval is None) or (fold is not None and fold.begins_anew):
            self.reach("write.half_folder")
            with self.catalog.lock:
                assert request.table.generation not in self.catalog.lakes, f"{request.table.generation} is made twice"
                self.catalog.lakes[request.table.generation] = LakeTable.of(tuple(rows))
            return Written(
                rows=len(rows),
                shape=_shape(request),
                place=NewTable(snapshot=0),
                contents=_contents(request, rows) if fold is None else {},
            )
        lake, action = self.catalog.lakes[base.head.generation], _action(request)
        assert base.head.snapshot is not None, "nobody knows which snapshot the head is"
        old = [row for row in lake.rows(base.head.snapshot) if _is_inside(row, request.interval)]
        _check_remembered(request, old)
        place = self._place(request, rows, action, lake, lake.where_it_is_now(base.head.snapshot))
        return Written(
            rows=len(rows),
            shape=_shape(request),
            changed=_changed(request, rows, old) if request.interval else EMPTY,
            contents=_contents(request, rows) if request.interval else {},
            place=place,
        )

    def _place(self, request: WriteRequest, rows: list[Row], action: RowAction, lake: LakeTable, begin: int) -> Place:
        new = tuple(rows)
        if request.table.table_format.has_branches:
            self.reach("write.half_folder")
            branch = f"b{request.attempt}"
            with self.catalog.lock:
                return OnBranch(branch=branch, snapshot=lake.branch(branch, begin, new, action))
        if request.write_through is None or action.name == "merge" or not request.recorded.is_empty:
            self._write_folders(request, {(): new})
            return Aside(action=action)
        publish = request.write_through(_shape(request))
        self.reach("write.half_folder")
        about = f"WriteThrough {publish.physical} {publish.generation}"
        self._call("publish", about, partial(lake.commit, publish, new, action))
        with self.catalog.lock:
            snapshot = lake.commit(publish, new, action)
        self._state("publish", about)
        return Shown(publish=publish, snapshot=snapshot)

    def retract(self, publish: Publish) -> Landing | None:
        assert isinstance(publish, InPlace)
        self._call("retract", publish.physical)
        with self.catalog.lock:
            return self.catalog.lakes[publish.generation].retract(publish)

    def audit(self, request: AuditRequest) -> tuple[AuditFinding, ...]:
        self._call("audit", request.node)
        self.audited.extend(query.sql for query in request.queries)
        rows: list[Row] = []
        if isinstance(request.staged, ShownRows):
            shown = self._read_by(request.staged.relation)
            rows = [row for row in shown if _is_inside(row, request.staged.interval)]
        elif request.staged is None:
            rows = self._read_by(request.queries[0].sql)
        else:
            below = f"{request.folder}/"
            with self.catalog.lock:
                folders = [name for name in self.catalog.folders if f"{name}/".startswith(below)]
                rows = [row for name in folders for row in self.catalog.folders[name]]
                rows += self._in_place_rows(request.staged)
                rows += self._kept_rows(request.staged, {name.removeprefix(below) for name in folders})
            rows = [row for row in rows if _is_inside(row, request.staged.interval)]
        found = [(query, self.failing(query.name, request.node, rows)) for query in request.queries]
        return tuple(
            AuditFinding(query=query, rows=count, kept_at=f"kept.{query.name}" if count else None)
            for query, count in found
        )

    def _read_by(self, sql: str) -> list[Row]:
        return self.catalog.rows_read(sql)

    def _in_place_rows(self, staged: StagedRows) -> tuple[Row, ...]:
        """The rows that an audit sees of a table that keeps a history."""
        match staged.place:
            case NewTable():
                return self.catalog.lakes[staged.generation].rows()
            case OnBranch(snapshot=snapshot) | Shown(snapshot=snapshot) if staged.base is not None:
                return self.catalog.lakes[staged.base.head.generation].rows(snapshot)
            case _:
                return ()

    def _kept_rows(self, staged: StagedRows, replaced: set[str]) -> Sequence[Row]:
        """The rows that stay beside those of a run that lie in their folder."""
        fold, base = staged.fold, staged.base
        if fold is None or base is None or is_keyed(fold.kind) or fold.begins_anew:
            return ()
        if isinstance(staged.place, Aside) and appends(fold.kind):
            return self.catalog.lakes[base.head.generation].rows(base.head.snapshot)
        kept = [
            folder
            for key, folder in base.manifest.items()
            if appends(fold.kind) or "/".join(str(part) for part in key) not in replaced
        ]
        return [row for folder in kept for row in self.catalog.folders[folder]]

    def _write_folders(
        self, request: WriteRequest, partitions: Mapping[PartitionKey, Sequence[Row]]
    ) -> dict[PartitionKey, str]:
        self.reach("write.half_folder")
        folders = {key: "/".join((request.folder, *(str(part) for part in key))) for key in partitions}
        with self.catalog.lock:
            for key, folder in folders.items():
                assert folder not in self.catalog.folders, f"folder `{folder}` is written twice"
                self.catalog.folders[folder] = tuple(partitions[key])
        return folders

    def _write_fold(self, request: WriteRequest, fold: Fold, rows: list[Row]) -> Written:
        """The unit of a row is its key. Of a history only the newest row of each is there: closed ones are Spark's."""
        before, shape = self._base(request), _shape(request)
        for key in before:
            self._check_shown(request, key)
        gone = set(before) if fold.begins_anew else set()
        contents: dict[Interval | None, str] = {}
        match fold.kind:
            case IncrementalByUniqueKey() | ScdType2ByTime() | ScdType2ByColumn():
                kept = [] if fold.begins_anew else [row for part in before.values() for row in part]
                rows, gone = list({**dict(kept), **dict(rows)}.items()), set(before)
                contents = {None: _content(rows, None)}
                keys = [_key(row, request) for row in rows]
            case IncrementalUnmanaged(insert_overwrite=False):
                hidden = PartitionColumn(name="attempt", type="string", expression="attempt")
                shape = replace(shape, partition_columns=(*shape.partition_columns, hidden))
                keys = [(*_key(row, request), str(request.attempt)) for row in rows]
            case IncrementalUnmanaged() | IncrementalByPartition():
                keys = [_key(row, request) for row in rows]
        partitions: dict[PartitionKey, list[Row]] = {} if shape.partition_columns else {(): []}
        for key, row in zip(keys, rows, strict=True):
            partitions.setdefault(key, []).append(row)
        folders = self._write_folders(request, partitions)
        removed = tuple(sorted(gone - folders.keys()))
        return Written(rows=len(rows), shape=shape, folders=folders, removed=removed, contents=contents)

    def _rows_of(self, request: WriteRequest) -> Iterable[Row]:
        match request.rows:
            case SqlQuery(sql=sql) if sql.endswith("WHERE false"):
                return []
            case SqlQuery(sql=sql):
                return self.compute(request.node, request.interval, sql)
            case PythonQuery(tables=tables):
                return self.compute(request.node, request.interval, " ".join(sorted(tables.values())))
            case SeedRows(text=text):
                return [("all", line) for line in text.splitlines()]

    def _base(self, request: WriteRequest) -> dict[PartitionKey, tuple[Row, ...]]:
        if request.base is None:
            return {}
        with self.catalog.lock:
            return {key: self.catalog.folders[folder] for key, folder in request.base.manifest.items()}

    def _holds_some_of(self, request: WriteRequest, key: PartitionKey) -> bool:
        """Whether a partition of the base has rows inside the interval; most are told by their first and last row."""
        assert request.base is not None
        folder = request.base.manifest[key]
        rows, span = self.catalog.folders[folder], self.catalog.span_of(folder)
        if request.interval is None or not rows:
            return bool(rows)
        is_apart = span is not None and (span[1] < request.interval.start or request.interval.end <= span[0])
        return not is_apart and any(_is_inside(row, request.interval) for row in rows)

    def _check_shown(self, request: WriteRequest, key: PartitionKey) -> None:
        """Rows that are kept come from the base's table, so it must hold what the manifest says."""
        assert request.base is not None
        shown = self.catalog.partitions_of(request.base.head.generation).get(key)
        assert shown == request.base.manifest[key], f"partition {key} of the base is not what the manifest says"

    # --- statements ---
    def create_generation(self, request: GenerationRequest) -> int | None:
        generation = request.table.generation
        self._call("create_generation", generation)
        if request.source is not None and request.table.table_format.keeps_history:
            with self.catalog.lock:
                if self.catalog.robbed.get(request.source.generation) == "lost":
                    raise StorageMissing("files are gone")
                source = self.catalog.lakes[request.source.generation]
                self.catalog.lakes[generation] = LakeTable.of(source.rows(request.source.snapshot))
            self._state("create_generation", generation)
            return 0
        with self.catalog.lock:
            for folder in request.manifest.values():
                if folder not in self.catalog.folders:
                    raise EngineError(f"folder `{folder}` does not exist")
            there = self.catalog.tables.setdefault(generation, dict(request.manifest))
            assert there == dict(request.manifest), f"`{generation}` is made twice, differently"
        self._state("create_generation", generation)
        return None

    def absent(self, schema: str, folders: Sequence[str]) -> str | None:
        self.looked_for |= set(folders)
        return next(iter(self.catalog.absent(folders)), None)

    def left_behind(self, names: Sequence[PhysicalName]) -> tuple[PhysicalName, ...]:
        with self.catalog.lock:
            return tuple(name for name in names if name in self.catalog.versions)

    def missing_files(self, table_format: TableFormat, heads: Sequence[Head]) -> Mapping[PhysicalName, tuple[str, ...]]:
        with self.catalog.lock:
            return {head.physical: ("lent",) for head in heads if head.generation in self.catalog.robbed}

    def publish(self, publish: Publish) -> int | None:
        about = f"{type(publish).__name__} {publish.physical} {publish.generation}"
        self._call("publish", about, lambda: self.catalog.carry_out(publish))
        snapshot = self.catalog.carry_out(publish)
        self._state("publish", about)
        return snapshot

    def published(self, names: Sequence[PhysicalName]) -> Mapping[PhysicalName, str | None]:
        self._call("published", ", ".join(names))
        with self.catalog.lock:
            views = self.catalog.versions
            return {name: views[name].generation if name in views else None for name in names}

    def show(self, views: Sequence[ShowView | HideView]) -> int:
        changed = 0
        for view in views:
            about = f"{type(view).__name__} {view.logical}"
            self._call("show", about, partial(self.catalog.set_view, view))
            if self.catalog.set_view(view):
                changed += 1
                self._state("show", about)
        return changed

    def execute(self, request: StatementsRequest) -> None:
        for statement in request.statements:
            self._call("execute", statement.sql)
            if self.cancelled.is_set():
                raise Cancelled("the statement was cancelled")
            self.catalog.executed.append(statement.sql)
            self._state("execute", statement.sql)

    def describe(self, tables: Sequence[NodeName]) -> tuple[AnalysisOutcome, ...]:
        self._call("describe", ", ".join(tables))
        return tuple(
            AnalysisOutcome(node=table, columns=COLUMNS)
            if table in self.catalog.sources
            else AnalysisOutcome(node=table, error=EngineError(f"there is no table `{table}`"))
            for table in tables
        )

    def register(self, table: ExternalTable) -> tuple[Column, ...]:
        self._call("register", table.name)
        if table.name in self.catalog.sources:
            raise NameTaken(f"there is a table `{table.name}`")
        self.catalog.sources[table.name] = {}
        return COLUMNS

    # --- looking ---
    def query(self, sql: str, *, limit: int | None) -> QueryResult:
        self._call("query", sql)
        rows = sorted(self.catalog.rows_read(sql))
        kept = rows if limit is None else rows[:limit]
        return QueryResult(columns=COLUMNS, rows=tuple(kept), is_truncated=len(kept) < len(rows))

    def frame(self, sql: str) -> Any:
        return self.query(sql, limit=None).rows

    def cancel(self) -> None:
        self._call("cancel", "")
        self.cancelled.set()

    def close(self) -> None:
        self._call("close", "")

    def _call(self, operation: str, about: str, statement: Callable[[], object] | None = None) -> None:
        """Count the call, stop where a test says so, and fail where a test says so."""
        self.reach(f"engine.{operation}")
        self.calls[operation] += 1
        fault = next((f for f in self.faults if f.times and f.operation == operation and f.about in about), None)
        if fault is None:
            return
        fault.times -= 1
        if statement is not None and fault.lands == "before the error":
            statement()
        if statement is not None and fault.lands == "later":
            self.catalog.in_flight.append(statement)
        raise fault.error

    def _state(self, operation: str, about: str) -> None:
        self.catalog.statements.append((operation, about))
        self.watch()


_time_of = lru_cache(maxsize=100_000)(Instant.parse_iso)
"""Long histories ask for the times of the same units again and again."""


def _is_inside(row: Row, interval: Interval | None) -> bool:
    return interval is None or interval.contains(_time_of(row[0]))


def _changed(request: WriteRequest, rows: Iterable[Row], old: Iterable[Row]) -> Intervals:
    """Units of the recorded time with other rows than before."""
    if request.grain is None:
        return EMPTY
    grain, found = request.grain, []
    after, before = Counter(rows), Counter(old)
    for row in {row for row in after.keys() | before.keys() if after[row] != before[row]}:
        if any(_is_inside(row, part) for part in request.recorded):
            unit = grain.floor(_time_of(row[0]))
            found.append(Interval(unit, grain.next(unit)))
    return Intervals.of(found).intersect(request.recorded)


def _contents(request: WriteRequest, rows: Iterable[Row]) -> dict[Interval | None, str]:
    stretches = (None,) if request.interval is None else request.measured
    return {time: _content(rows, time) for time in stretches}


def _content(rows: Iterable[Row], time: Interval | None) -> str:
    return repr(sorted(row for row in rows if _is_inside(row, time)))


def _check_remembered(request: WriteRequest, old: Iterable[Row]) -> None:
    """What the head says of recorded time is what its rows are: a wrong memory would hide a rewrite."""
    for time, text in request.base.head.contents.items() if request.base and request.interval else ():
        if time is not None and request.interval.contains(time):
            assert text == _content(old, time), f"{request.node}: the rows of {time} are not what the head remembers"


def _action(request: WriteRequest) -> RowAction:
    if request.interval is not None:
        return RowAction(name="replace_where", text="|".join(request.interval.to_pair()))
    assert request.fold is not None
    match request.fold.kind:
        case IncrementalByUniqueKey():
            return RowAction(name="merge")
        case IncrementalUnmanaged(insert_overwrite=False):
            return RowAction(name="append")
        case _:
            return RowAction(name="replace_partitions")


# The last promises finer partitions than it makes, as no expression does that Lamina knows.
_PREFIXES = {"month": 7, "day": 10, "days(ds)": 7}


def _key(row: Row, request: WriteRequest) -> PartitionKey:
    """One partition per unit of `ds`; `month` and `day` stand for coarser partition expressions."""
    return tuple(row[0][: _PREFIXES.get(expression)] for expression in request.partitioned_by)


def _shape(request: WriteRequest) -> TableShape:
    return TableShape(
        columns=COLUMNS,
        partition_columns=tuple(
            PartitionColumn(name=expression, type="string") for expression in request.partitioned_by
        ),
    )


def logical(name: str, environment: str = "prod") -> LogicalName:
    """The name readers use."""
    schema, _, table = name.rpartition(".")
    return f"{schema}.{table}" if environment == "prod" else f"{schema}__{environment}.{table}"  # type: ignore[return-value]
