"""Builders of state facts, and strategies that make any value the state can hold."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from lamina.app.ports.facts import (
    AttemptDecided,
    AttemptDone,
    AttemptOpened,
    AuditResult,
    AuditsRecorded,
    VersionRecorded,
)
from lamina.app.ports.loaded import Owner
from lamina.app.ports.published import (
    AddPartitions,
    Attempt,
    Beneath,
    CommitRows,
    FastForward,
    Head,
    PartitionColumn,
    RowAction,
    SetView,
    SwitchGeneration,
    TableShape,
    WriteThrough,
)
from lamina.environments.pointers import Pointer, Revision
from lamina.errors import Location
from lamina.graph.kinds import (
    CsvSettings,
    Custom,
    Embedded,
    External,
    Full,
    IncrementalByPartition,
    IncrementalByTimeRange,
    IncrementalByUniqueKey,
    IncrementalPolicy,
    IncrementalUnmanaged,
    Managed,
    ScdType2ByColumn,
    ScdType2ByTime,
    Seed,
    TimeColumn,
    View,
)
from lamina.graph.model import (
    AuditCall,
    AuditCode,
    Column,
    FunctionCall,
    FunctionCode,
    MacroEnvironment,
    Model,
    PythonBody,
    PythonModule,
    SeedBody,
    SqlBody,
    SqlText,
)
from lamina.graph.names import NodeName
from lamina.identity.naming import PhysicalName, VersionId, batch_folder, generation_name, physical_name
from lamina.identity.version import Fingerprint
from lamina.planning.inputs import Read
from lamina.sql.fragment import Fragment
from lamina.state.memory import MemoryStateStore
from lamina.timeline.grain import Grain
from lamina.timeline.interval import MICROS_PER_DAY, MICROS_PER_SECOND, Instant, Interval, Intervals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.app.ports.loaded import Lease
    from lamina.app.ports.machine import Fate
    from lamina.app.ports.published import PartitionKey
    from lamina.app.ports.state import StateStore

NOW = Instant.parse_iso("2024-03-01T00:00:00Z")
FIRST_DAY = Instant.parse_iso("2024-01-01T00:00:00Z")
ORDERS = NodeName("shop.orders")
SHAPE = TableShape(
    columns=(Column(name="id", type="bigint"), Column(name="day", type="date", comment="when it was placed")),
    partition_columns=(PartitionColumn(name="day", type="date"),),
)


# --- builders ---------------------------------------------------------------------------------------------------------
def at(store: Any, seconds: float) -> Any:
    """The store, with its clock set to so many seconds after `NOW`."""
    if isinstance(store, MemoryStateStore):
        store.clock = lambda: later(seconds)
    else:
        store._backend.now = lambda _connection: later(seconds)
    return store


def unknown(_lease: Lease) -> Fate:
    """The fate of whoever holds a lease, where nobody knows it."""
    return "unknown"


def settled(_lease: Lease) -> Fate:
    """The fate of one of which nothing can come any more."""
    return "settled"


def later(seconds: float) -> Instant:
    """So many seconds after `NOW`."""
    return NOW.plus(round(seconds * MICROS_PER_SECOND))


def days(first: int, last: int | None = None) -> Interval:
    """Days of January 2024, the last one included."""
    start = FIRST_DAY.plus((first - 1) * MICROS_PER_DAY)
    return Interval(start, FIRST_DAY.plus((last or first) * MICROS_PER_DAY))


def covering(*intervals: Interval) -> Intervals:
    return Intervals.of(intervals)


def owner(process: int = 4711, command: str = "build") -> Owner:
    return Owner(host="desk", boot="b00t", process=process, command=command, started_at=NOW)


def version_id(number: int = 1) -> VersionId:
    return VersionId(f"{number:016x}")


def fingerprint(text: str = "a") -> Fingerprint:
    return Fingerprint(
        query=f"query {text}",
        config=f"config {text}",
        functions=f"functions {text}",
        metadata=f"metadata {text}",
        row_set=f"rows {text}",
        whole=f"whole {text}",
        columns=MappingProxyType({"id": f"id {text}", "day": f"day {text}"}),
    )


def version(node: NodeName = ORDERS, number: int = 1, incarnation: int = 1) -> VersionRecorded:
    id_ = version_id(number)
    return VersionRecorded(
        physical=physical_name(node, id_, incarnation),
        node=node,
        version=id_,
        incarnation=incarnation,
        definition_id=f"definition of {node} {number}",
        kind="FULL",
        fingerprint=fingerprint(str(number)),
        recorded_at=NOW,
    )


PHYSICAL = version().physical
OTHER = version(NodeName("shop.customers")).physical


def model(name: NodeName = ORDERS, query: str = "SELECT 1 AS id") -> Model:
    location = Location(file=f"models/{name}.sql", line=5, column=1)
    text = SqlText(source=Fragment(text=query, location=location), expanded=query)
    return Model(
        name=name, kind=Full(), body=SqlBody(query=text, canonical=query), reads=(), location=Location(file="m.sql")
    )


def attempt(
    number: int, physical: PhysicalName = PHYSICAL, interval: Interval | None = None, *, token: int = 1
) -> Attempt:
    return Attempt(
        number=number,
        physical=physical,
        token=token,
        status="open",
        interval=interval,
        folder=batch_folder(physical, number, "0123abcd"),
        generation=generation_name(physical, number),
        base_sequence=0,
        reads=(Read(physical=OTHER, sequence=number),),
        execution_time=later(number),
    )


def opened(
    number: int, physical: PhysicalName = PHYSICAL, interval: Interval | None = None, *, token: int = 1
) -> AttemptOpened:
    return AttemptOpened(attempt=attempt(number, physical, interval, token=token), run_id="run-1")


def head(sequence: int, number: int, physical: PhysicalName = PHYSICAL) -> Head:
    return Head(
        physical=physical,
        sequence=sequence,
        generation=generation_name(physical, number),
        attempt=number,
        shape=SHAPE,
    )


def decided(
    number: int,
    sequence: int,
    physical: PhysicalName = PHYSICAL,
    *,
    folders: Mapping[PartitionKey, str] | None = None,
    removed: tuple[PartitionKey, ...] = (),
) -> AttemptDecided:
    generation = generation_name(physical, number)
    return AttemptDecided(
        number=number,
        physical=physical,
        publish=SwitchGeneration(physical=physical, generation=generation, shape=SHAPE, description="orders"),
        head=head(sequence, number, physical),
        folders_set=folders if folders is not None else {(): f"folder {number}"},
        folders_removed=removed,
        rows=10 * number,
    )


def done(number: int, physical: PhysicalName = PHYSICAL) -> AttemptDone:
    return AttemptDone(number=number, physical=physical)


def finish(
    store: StateStore,
    number: int,
    sequence: int,
    physical: PhysicalName = PHYSICAL,
    interval: Interval | None = None,
) -> None:
    """One batch from its intent to its end."""
    store.commit([opened(number, physical, interval)])
    store.commit([decided(number, sequence, physical)])
    store.commit([done(number, physical)])


def audited(
    number: int,
    interval: Interval | None,
    *,
    physical: PhysicalName = PHYSICAL,
    is_shown: bool = True,
    run_id: str = "run-1",
    **outcomes: str,
) -> AuditsRecorded:
    """How audits came out, by their keys; a failure found two rows."""
    return AuditsRecorded(
        run_id=run_id,
        node=ORDERS,
        physical=physical,
        number=number,
        interval=interval,
        results=tuple(
            AuditResult(
                name=key,
                call=f"{key}(columns := id)",
                status=status,
                is_blocking=True,
                failing_rows=2 if status == "failed" else 0,
                key=key,
                kept_at="kept.rows" if status == "failed" else None,
            )
            for key, status in outcomes.items()
        ),
        recorded_at=later(number),
        is_shown=is_shown,
    )


def pointer(node: NodeName = ORDERS, number: int = 1) -> Pointer:
    recorded = version(node, number)
    return Pointer(version=recorded.version, definition_id=recorded.definition_id, physical=recorded.physical)


def revision(
    environment: str = "prod",
    number: int = 1,
    *,
    status: str = "active",
    pointers: Mapping[NodeName, Pointer] | None = None,
    is_followed: bool = False,
) -> Revision:
    return Revision(
        environment=environment,
        number=number,
        status=status,
        pointers=pointers if pointers is not None else {ORDERS: pointer()},
        created_at=later(number),
        is_followed=is_followed,
    )


# --- strategies -------------------------------------------------------------------------------------------------------
# Anything Python calls text, lone surrogates and the zero character included: users' files hold all of it.
texts = st.text(alphabet=st.characters(), max_size=12)
names = st.text(alphabet="abcdefgh_.", min_size=1, max_size=12)
maybe_texts = st.none() | texts
numbers = st.integers(min_value=0, max_value=10**12)
maybe_numbers = st.none() | numbers
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)


def _many(strategy: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(strategy, max_size=3).map(tuple)


def _mapping(strategy: st.SearchStrategy) -> st.SearchStrategy:
    return st.dictionaries(texts, strategy, max_size=3).map(MappingProxyType)


instants = st.datetimes().map(Instant.of)
intervals = (
    st.tuples(instants, instants)
    .filter(lambda pair: pair[0] != pair[1])
    .map(lambda pair: Interval(min(pair), max(pair)))
)
locations = st.builds(Location, file=maybe_texts, line=maybe_numbers, column=maybe_numbers)
fragments = st.builds(Fragment, text=texts, location=locations, dialect=texts)
columns = st.builds(Column, name=texts, type=maybe_texts, comment=maybe_texts)
modules = st.builds(PythonModule, name=texts, path=texts, source=texts)
sql_texts = st.builds(SqlText, source=fragments, expanded=texts, is_time_dependent=st.booleans())
macros = st.builds(
    MacroEnvironment,
    variables=_mapping(values),
    blueprint=_mapping(values),
    definitions=_many(fragments),
    modules=_many(modules),
)
bodies = st.one_of(
    st.builds(
        SqlBody,
        query=sql_texts,
        canonical=texts,
        pre_statements=_many(sql_texts),
        post_statements=_many(sql_texts),
        on_virtual_update=_many(sql_texts),
        macros=macros,
        has_star=st.booleans(),
    ),
    st.builds(
        PythonBody,
        module=texts,
        function=texts,
        modules=_many(modules),
        variables=_mapping(values),
        on_virtual_update=_many(sql_texts),
        macros=macros,
    ),
    st.builds(SeedBody, path=texts, content_hash=texts, on_virtual_update=_many(sql_texts), macros=macros),
)
changes = st.sampled_from(["error", "warn", "allow", "ignore"])
policies = st.builds(
    IncrementalPolicy,
    forward_only=st.booleans(),
    disable_restatement=st.booleans(),
    on_destructive_change=changes,
    on_additive_change=changes,
    auto_restatement_cron=maybe_texts,
    auto_restatement_intervals=maybe_numbers,
)
csv_settings = st.builds(
    CsvSettings,
    delimiter=texts,
    quotechar=texts,
    doublequote=st.booleans(),
    escapechar=maybe_texts,
    skipinitialspace=st.booleans(),
    lineterminator=maybe_texts,
    encoding=texts,
    na_values=_many(texts),
    na_values_by_column=_mapping(_many(texts)),
    keep_default_na=st.booleans(),
)
kinds = st.one_of(
    st.builds(Full),
    st.builds(View, materialized=st.booleans()),
    st.builds(Embedded),
    st.builds(Seed, path=texts, batch_size=numbers, csv_settings=csv_settings),
    st.builds(External),
    st.builds(
        IncrementalByTimeRange,
        time_column=st.builds(TimeColumn, name=texts, format=maybe_texts),
        batch_size=maybe_numbers,
        batch_concurrency=maybe_numbers,
        lookback=numbers,
        partition_by_time_column=st.booleans(),
        policy=policies,
    ),
    st.builds(
        IncrementalByUniqueKey,
        unique_key=_many(texts),
        when_matched=_many(texts),
        merge_filter=maybe_texts,
        order_by=_many(texts),
        batch_size=maybe_numbers,
        lookback=numbers,
        policy=policies,
    ),
    st.builds(IncrementalByPartition, policy=policies),
    st.builds(IncrementalUnmanaged, insert_overwrite=st.booleans(), policy=policies),
    st.builds(
        ScdType2ByTime,
        unique_key=_many(texts),
        valid_from_name=texts,
        valid_to_name=texts,
        time_data_type=texts,
        invalidate_hard_deletes=st.booleans(),
        updated_at_name=texts,
        updated_at_as_valid_from=st.booleans(),
        batch_size=maybe_numbers,
        policy=policies,
    ),
    st.builds(
        ScdType2ByColumn,
        unique_key=_many(texts),
        columns=_many(texts),
        valid_from_name=texts,
        valid_to_name=texts,
        time_data_type=texts,
        invalidate_hard_deletes=st.booleans(),
        execution_time_as_valid_from=st.booleans(),
        updated_at_name=maybe_texts,
        batch_size=maybe_numbers,
        policy=policies,
    ),
    st.builds(
        Custom,
        materialization=texts,
        materialization_properties=_mapping(scalars),
        batch_size=maybe_numbers,
        batch_concurrency=maybe_numbers,
        lookback=numbers,
        policy=policies,
    ),
    st.builds(Managed),
)
audit_calls = st.builds(
    AuditCall,
    name=texts,
    arguments=_mapping(texts),
    blocking=st.none() | st.booleans(),
    skip=st.none() | st.booleans(),
    location=st.none() | locations,
    code=st.none()
    | st.builds(
        AuditCode,
        query=sql_texts,
        parameters=_mapping(texts),
        references=_mapping(names),
        macros=macros,
        is_blocking=st.booleans(),
        is_skipped=st.booleans(),
    ),
)
functions = st.builds(FunctionCode, module=texts, function=texts, modules=_many(modules), variables=_mapping(scalars))
function_calls = st.builds(
    FunctionCall,
    name=texts,
    arguments=_mapping(texts),
    values=_mapping(scalars),
    location=st.none() | locations,
    code=st.none() | functions,
)
models = st.builds(
    Model,
    name=names,
    kind=kinds,
    body=bodies,
    reads=_many(names),
    location=locations,
    references=_mapping(names),
    columns=st.none() | _many(columns),
    columns_are_declared=st.booleans(),
    dialect=texts,
    description=maybe_texts,
    owner=maybe_texts,
    tags=_many(texts),
    start=maybe_texts,
    end=maybe_texts,
    cron=texts,
    cron_tz=texts,
    grain=st.sampled_from(Grain),
    allow_partials=st.booleans(),
    stamp=maybe_texts,
    audits=_many(audit_calls),
    standalone_audits=_many(audit_calls),
    source_audits=_mapping(_many(audit_calls)),
    signals=_many(function_calls),
    pre_hooks=_many(function_calls),
    post_hooks=_many(function_calls),
    grains=_many(texts),
    partitioned_by=_many(texts),
    clustered_by=_many(texts),
    table_format=texts,
    storage_format=maybe_texts,
    physical_properties=_mapping(scalars),
    virtual_properties=_mapping(scalars),
    session_properties=_mapping(scalars),
    replay_on_change=maybe_texts,
    run_despite_unchanged=maybe_texts,
    wait_for_parents=st.booleans(),
    follow_rewrites=st.booleans(),
    further=_mapping(texts),
)
shapes = st.builds(
    TableShape,
    columns=_many(columns),
    partition_columns=_many(st.builds(PartitionColumn, name=texts, type=texts, expression=maybe_texts)),
)
partition_keys = _many(maybe_texts)
partitions = st.dictionaries(partition_keys, texts, max_size=4).map(MappingProxyType)
interval_sets = st.lists(intervals, max_size=3).map(Intervals.of)
beneaths = st.none() | st.builds(
    Beneath,
    generation=names,
    hidden=_many(partition_keys),
    above=st.none() | _many(partition_keys),
)
heads = st.builds(
    Head,
    physical=names,
    sequence=numbers,
    generation=names,
    attempt=numbers,
    shape=shapes,
    view_sql=maybe_texts,
    contents=st.dictionaries(st.none() | intervals, texts, max_size=3).map(MappingProxyType),
    snapshot=maybe_numbers,
    beneath=beneaths,
)
publishes = st.one_of(
    st.builds(AddPartitions, physical=names, generation=names, shape=shapes, partitions=partitions),
    st.builds(
        SwitchGeneration, physical=names, generation=names, shape=shapes, description=maybe_texts, beneath=beneaths
    ),
    st.builds(SetView, physical=names, generation=names, sql=texts, shape=shapes, description=maybe_texts),
    st.builds(
        CommitRows,
        head=heads,
        rewritten=interval_sets,
        is_asked=st.booleans(),
        folder=texts,
        action=st.builds(RowAction, name=st.sampled_from(["append", "replace_where", "merge"]), text=texts),
        transaction=numbers,
        writer=texts,
    ),
    st.builds(WriteThrough, head=heads, rewritten=interval_sets, transaction=numbers, writer=texts),
    st.builds(FastForward, head=heads, rewritten=interval_sets, branch=names),
)
attempts = st.builds(
    Attempt,
    number=numbers,
    physical=names,
    token=numbers,
    status=st.sampled_from(["open", "decided", "retracting", "done", "aborted"]),
    interval=st.none() | intervals,
    folder=texts,
    generation=names,
    base_sequence=numbers,
    reads=_many(st.builds(Read, physical=names, sequence=numbers)),
    publish=st.none() | publishes,
    execution_time=st.none() | instants,
    rows=maybe_numbers,
)
owners = st.builds(
    Owner,
    host=texts,
    boot=texts,
    process=numbers,
    command=texts,
    started_at=instants,
    processes=_many(texts),
    catalog=maybe_texts,
    is_carried=st.booleans(),
)
pointers = st.dictionaries(
    names, st.builds(Pointer, version=names, definition_id=names, physical=st.none() | names), max_size=4
).map(MappingProxyType)
