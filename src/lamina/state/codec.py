"""Values as versioned JSON text, and back.

Every stored document is `{"v": 1, "is": <what>, "d": <the value>}`. Classes and fields are listed here by hand: what is
written never follows from a class by itself. All fields are written, so that a later change of a default does not
change what was recorded; a field that is missing when read takes its default, so that old rows stay readable. A field
that is added to a class raises `FORMAT_VERSION`, because an older Lamina would drop it in silence.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lamina.app.ports.loaded import Owner
from lamina.app.ports.published import (
    AddPartitions,
    Attempt,
    Beneath,
    CommitRows,
    Contents,
    FastForward,
    Head,
    PartitionColumn,
    PartitionKey,
    Publish,
    RowAction,
    SetView,
    SwitchGeneration,
    TableShape,
    WriteThrough,
)
from lamina.environments.pointers import Pointer
from lamina.errors import LaminaError, Location, StateError, StateTooNew
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
    EnvironmentValue,
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
from lamina.planning.inputs import AuditOutcomes, Read
from lamina.sql.fragment import Fragment
from lamina.sql.lineage.input_windows import InputWindow, Offset
from lamina.state.shapes import NO_SHAPE
from lamina.timeline.grain import Grain
from lamina.timeline.interval import Instant, Interval, Intervals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lamina.graph.names import NodeName

FORMAT_VERSION = 1
_TAG = "is"

V = TypeVar("V")


# --- building blocks --------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """How one sort of value becomes JSON data and back; `None` where the value is its own JSON."""

    encode: Callable[[Any], Any] | None = None
    decode: Callable[[Any], Any] | None = None


PLAIN = Codec()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Codec):
    """A class with its fields by name."""

    cls: type
    fields: Mapping[str, Codec]


@dataclass(frozen=True, slots=True, kw_only=True)
class Union(Codec):
    """One of several classes, told apart by a tag."""

    records: Mapping[str, Record]


def _same(value: Any) -> Any:
    return value


def _record(cls: type, **fields: Codec) -> Record:
    names = tuple(fields)
    known = frozenset(fields)
    encoders = tuple((name, codec.encode) for name, codec in fields.items() if codec.encode)
    decoders = tuple((name, codec.decode) for name, codec in fields.items() if codec.decode)

    def encode(value: Any) -> dict[str, Any]:
        data = {name: getattr(value, name) for name in names}
        for name, encode_field in encoders:
            data[name] = encode_field(data[name])
        return data

    def decode(data: dict[str, Any]) -> Any:
        if not data.keys() <= known:
            unknown = ", ".join(f"`{name}`" for name in sorted(data.keys() - known))
            raise ValueError(f"unknown fields {unknown}")
        for name, decode_field in decoders:
            if name in data:
                data[name] = decode_field(data[name])
        return cls(**data)

    return Record(cls=cls, fields=fields, encode=encode, decode=decode)


def _union(**records: Record) -> Union:
    by_class = {record.cls: (tag, record.encode or _same) for tag, record in records.items()}
    by_tag = {tag: record.decode or _same for tag, record in records.items()}

    def encode(value: Any) -> dict[str, Any]:
        tag, encode_record = by_class[type(value)]
        return {_TAG: tag, **encode_record(value)}

    def decode(data: dict[str, Any]) -> Any:
        return by_tag[data.pop(_TAG)](data)

    return Union(records=records, encode=encode, decode=decode)


def _optional(codec: Codec) -> Codec:
    encode, decode = codec.encode or _same, codec.decode or _same
    return Codec(
        encode=lambda value: None if value is None else encode(value),
        decode=lambda data: None if data is None else decode(data),
    )


def _many(codec: Codec) -> Codec:
    encode, decode = codec.encode, codec.decode
    return Codec(
        encode=(lambda values: [encode(value) for value in values]) if encode else list,
        decode=(lambda data: tuple(decode(item) for item in data)) if decode else tuple,
    )


def _mapping(codec: Codec) -> Codec:
    encode, decode = codec.encode, codec.decode
    return Codec(
        encode=(lambda values: {key: encode(value) for key, value in values.items()}) if encode else dict,
        decode=(lambda data: MappingProxyType({key: decode(item) for key, item in data.items()}))
        if decode
        else MappingProxyType,
    )


# --- time -------------------------------------------------------------------------------------------------------------
_INSTANT = Codec(encode=lambda instant: instant.micros, decode=Instant)
_INTERVAL = Codec(
    encode=lambda interval: [interval.start.micros, interval.end.micros],
    decode=lambda pair: Interval(Instant(pair[0]), Instant(pair[1])),
)
# Written from a set, so the ranges are sorted and apart already.
_INTERVALS = Codec(
    encode=lambda intervals: [[item.start.micros, item.end.micros] for item in intervals.ranges],
    decode=lambda pairs: Intervals(tuple(Interval(Instant(start), Instant(end)) for start, end in pairs)),
)
_GRAIN = Codec(encode=lambda grain: grain.value, decode=Grain)

# --- definitions ------------------------------------------------------------------------------------------------------
_TEXTS = _many(PLAIN)
_SETTINGS = _mapping(PLAIN)
_LOCATION = _record(Location, file=PLAIN, line=PLAIN, column=PLAIN)
_FRAGMENT = _record(Fragment, text=PLAIN, location=_LOCATION, dialect=PLAIN)
_COLUMN = _record(Column, name=PLAIN, type=PLAIN, comment=PLAIN)
_MODULES = _many(_record(PythonModule, name=PLAIN, path=PLAIN, source=PLAIN))
_SQL_TEXT = _record(SqlText, source=_FRAGMENT, expanded=PLAIN, is_time_dependent=PLAIN)
_MACROS = _record(
    MacroEnvironment, variables=_SETTINGS, blueprint=_SETTINGS, definitions=_many(_FRAGMENT), modules=_MODULES
)

BODY = _union(
    sql=_record(
        SqlBody,
        query=_SQL_TEXT,
        canonical=PLAIN,
        pre_statements=_many(_SQL_TEXT),
        post_statements=_many(_SQL_TEXT),
        on_virtual_update=_many(_SQL_TEXT),
        macros=_MACROS,
        has_star=PLAIN,
    ),
    python=_record(
        PythonBody,
        module=PLAIN,
        function=PLAIN,
        modules=_MODULES,
        variables=_SETTINGS,
        on_virtual_update=_many(_SQL_TEXT),
        macros=_MACROS,
    ),
    seed=_record(SeedBody, path=PLAIN, content_hash=PLAIN, on_virtual_update=_many(_SQL_TEXT), macros=_MACROS),
)

_TIME_COLUMN = _record(TimeColumn, name=PLAIN, format=PLAIN)
_POLICY = _record(
    IncrementalPolicy,
    forward_only=PLAIN,
    disable_restatement=PLAIN,
    on_destructive_change=PLAIN,
    on_additive_change=PLAIN,
    auto_restatement_cron=PLAIN,
    auto_restatement_intervals=PLAIN,
)
_CSV = _record(
    CsvSettings,
    delimiter=PLAIN,
    quotechar=PLAIN,
    doublequote=PLAIN,
    escapechar=PLAIN,
    skipinitialspace=PLAIN,
    lineterminator=PLAIN,
    encoding=PLAIN,
    na_values=_TEXTS,
    na_values_by_column=_mapping(_TEXTS),
    keep_default_na=PLAIN,
)

KIND = _union(
    full=_record(Full),
    view=_record(View, materialized=PLAIN),
    embedded=_record(Embedded),
    seed=_record(Seed, path=PLAIN, batch_size=PLAIN, csv_settings=_CSV),
    external=_record(External),
    incremental_by_time_range=_record(
        IncrementalByTimeRange,
        time_column=_TIME_COLUMN,
        batch_size=PLAIN,
        batch_concurrency=PLAIN,
        lookback=PLAIN,
        partition_by_time_column=PLAIN,
        policy=_POLICY,
    ),
    incremental_by_unique_key=_record(
        IncrementalByUniqueKey,
        unique_key=_TEXTS,
        when_matched=_TEXTS,
        merge_filter=PLAIN,
        order_by=_TEXTS,
        batch_size=PLAIN,
        lookback=PLAIN,
        policy=_POLICY,
    ),
    incremental_by_partition=_record(IncrementalByPartition, policy=_POLICY),
    incremental_unmanaged=_record(IncrementalUnmanaged, insert_overwrite=PLAIN, policy=_POLICY),
    scd_type_2_by_time=_record(
        ScdType2ByTime,
        unique_key=_TEXTS,
        valid_from_name=PLAIN,
        valid_to_name=PLAIN,
        time_data_type=PLAIN,
        invalidate_hard_deletes=PLAIN,
        updated_at_name=PLAIN,
        updated_at_as_valid_from=PLAIN,
        batch_size=PLAIN,
        policy=_POLICY,
    ),
    scd_type_2_by_column=_record(
        ScdType2ByColumn,
        unique_key=_TEXTS,
        columns=_TEXTS,
        valid_from_name=PLAIN,
        valid_to_name=PLAIN,
        time_data_type=PLAIN,
        invalidate_hard_deletes=PLAIN,
        execution_time_as_valid_from=PLAIN,
        updated_at_name=PLAIN,
        batch_size=PLAIN,
        policy=_POLICY,
    ),
    custom=_record(
        Custom,
        materialization=PLAIN,
        materialization_properties=_SETTINGS,
        batch_size=PLAIN,
        batch_concurrency=PLAIN,
        lookback=PLAIN,
        policy=_POLICY,
    ),
    managed=_record(Managed),
)

_OFFSET = _optional(_record(Offset, base=PLAIN, months=PLAIN, micros=PLAIN, is_day=PLAIN))
_WINDOW = _record(InputWindow, lower=_OFFSET, upper=_OFFSET)

_AUDIT_CODE = _record(
    AuditCode,
    query=_SQL_TEXT,
    parameters=_SETTINGS,
    references=_SETTINGS,
    macros=_MACROS,
    is_blocking=PLAIN,
    is_skipped=PLAIN,
)
_AUDIT = _record(
    AuditCall,
    name=PLAIN,
    arguments=_SETTINGS,
    blocking=PLAIN,
    skip=PLAIN,
    location=_optional(_LOCATION),
    code=_optional(_AUDIT_CODE),
)

_FUNCTION = _record(
    FunctionCall,
    name=PLAIN,
    arguments=_SETTINGS,
    values=_SETTINGS,
    location=_optional(_LOCATION),
    code=_optional(_record(FunctionCode, module=PLAIN, function=PLAIN, modules=_MODULES, variables=_SETTINGS)),
)

# Never with a value: what is recorded is sealed.
_ENVIRONMENT = _many(_record(EnvironmentValue, name=PLAIN, digest=PLAIN))

MODEL = _record(
    Model,
    name=PLAIN,
    kind=KIND,
    body=BODY,
    reads=_TEXTS,
    location=_LOCATION,
    references=_SETTINGS,
    columns=_optional(_many(_COLUMN)),
    columns_are_declared=PLAIN,
    dialect=PLAIN,
    description=PLAIN,
    owner=PLAIN,
    tags=_TEXTS,
    start=PLAIN,
    end=PLAIN,
    cron=PLAIN,
    cron_tz=PLAIN,
    grain=_GRAIN,
    allow_partials=PLAIN,
    stamp=PLAIN,
    audits=_many(_AUDIT),
    standalone_audits=_many(_AUDIT),
    source_audits=_mapping(_many(_AUDIT)),
    signals=_many(_FUNCTION),
    pre_hooks=_many(_FUNCTION),
    post_hooks=_many(_FUNCTION),
    grains=_TEXTS,
    partitioned_by=_TEXTS,
    clustered_by=_TEXTS,
    table_format=PLAIN,
    storage_format=PLAIN,
    physical_properties=_SETTINGS,
    virtual_properties=_SETTINGS,
    session_properties=_SETTINGS,
    replay_on_change=PLAIN,
    run_despite_unchanged=PLAIN,
    wait_for_parents=PLAIN,
    follow_rewrites=PLAIN,
    seed_copy=PLAIN,
    windows=_mapping(_WINDOW),
    further=_SETTINGS,
    environment=_ENVIRONMENT,
    read_with=PLAIN,
)

# --- publishing -------------------------------------------------------------------------------------------------------
_PARTITIONS = Codec(
    encode=lambda partitions: [[list(key), folder] for key, folder in partitions.items()],
    decode=lambda pairs: MappingProxyType({tuple(key): folder for key, folder in pairs}),
)
SHAPE = _record(
    TableShape,
    columns=_many(_COLUMN),
    partition_columns=_many(_record(PartitionColumn, name=PLAIN, type=PLAIN, expression=PLAIN)),
)
# A publish is stored with the name of its shape beside it; whoever reads it puts the shape in.
_SHAPE_BESIDE = Codec(encode=lambda _shape: None, decode=lambda _data: NO_SHAPE)
_CONTENTS = Codec(
    encode=lambda contents: [
        [[time.start.micros, time.end.micros] if time else None, text] for time, text in contents.items()
    ],
    decode=lambda pairs: MappingProxyType(
        {Interval(Instant(time[0]), Instant(time[1])) if time else None: text for time, text in pairs}
    ),
)
_FEW_KEYS = 8


def _pack_keys(keys: tuple[PartitionKey, ...]) -> list[Any] | str:
    """Many keys are much alike, and are written with every batch."""
    plain = [list(key) for key in keys]
    if len(plain) <= _FEW_KEYS:
        return plain
    return base64.b85encode(zlib.compress(json.dumps(plain).encode(), 9)).decode()


def _unpack_keys(data: list[Any] | str) -> tuple[PartitionKey, ...]:
    plain = data if isinstance(data, list) else json.loads(zlib.decompress(base64.b85decode(data)))
    return tuple(map(tuple, plain))


_KEYS = Codec(encode=_pack_keys, decode=_unpack_keys)
_BENEATH = _record(Beneath, generation=PLAIN, hidden=_KEYS, above=_optional(_KEYS))
_HEAD = _record(
    Head,
    physical=PLAIN,
    sequence=PLAIN,
    generation=PLAIN,
    attempt=PLAIN,
    shape=_SHAPE_BESIDE,
    view_sql=PLAIN,
    contents=_CONTENTS,
    snapshot=PLAIN,
    beneath=_optional(_BENEATH),
)
_IN_PLACE = {"head": _HEAD, "rewritten": _INTERVALS, "is_asked": PLAIN}
PUBLISH = _union(
    add_partitions=_record(
        AddPartitions, physical=PLAIN, generation=PLAIN, shape=_SHAPE_BESIDE, partitions=_PARTITIONS
    ),
    switch_generation=_record(
        SwitchGeneration,
        physical=PLAIN,
        generation=PLAIN,
        shape=_SHAPE_BESIDE,
        description=PLAIN,
        beneath=_optional(_BENEATH),
    ),
    set_view=_record(SetView, physical=PLAIN, generation=PLAIN, sql=PLAIN, shape=_SHAPE_BESIDE, description=PLAIN),
    commit_rows=_record(
        CommitRows,
        **_IN_PLACE,
        folder=PLAIN,
        action=_record(RowAction, name=PLAIN, text=PLAIN),
        transaction=PLAIN,
        writer=PLAIN,
    ),
    write_through=_record(WriteThrough, **_IN_PLACE, transaction=PLAIN, writer=PLAIN),
    fast_forward=_record(FastForward, **_IN_PLACE, branch=PLAIN, former=PLAIN),
)
_OUTCOMES = _mapping(_record(AuditOutcomes, passed=_INTERVALS, failed=_INTERVALS, skipped=_INTERVALS))
_READS = _many(_record(Read, physical=PLAIN, sequence=PLAIN))
ATTEMPT = _record(
    Attempt,
    number=PLAIN,
    physical=PLAIN,
    token=PLAIN,
    status=PLAIN,
    interval=_optional(_INTERVAL),
    folder=PLAIN,
    generation=PLAIN,
    base_sequence=PLAIN,
    reads=_READS,
    seeded=_INTERVALS,
    publish=_optional(PUBLISH),
    execution_time=_optional(_INSTANT),
    rows=PLAIN,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDetail:
    """What an attempt's change of status brought with it."""

    publish: Publish | None = None
    rows: int | None = None
    reason: str | None = None


EVENT = _record(EventDetail, publish=_optional(PUBLISH), rows=PLAIN, reason=PLAIN)
OWNER = _record(
    Owner,
    host=PLAIN,
    boot=PLAIN,
    process=PLAIN,
    command=PLAIN,
    started_at=_INSTANT,
    processes=_TEXTS,
    catalog=PLAIN,
    is_carried=PLAIN,
)

# Three texts per node instead of three named fields: an environment has thousands of them.
_POINTERS = Codec(
    encode=lambda pointers: {
        node: [pointer.version, pointer.definition_id, pointer.physical] for node, pointer in pointers.items()
    },
    decode=lambda data: MappingProxyType(
        {
            node: Pointer(version=version, definition_id=definition_id, physical=physical)
            for node, (version, definition_id, physical) in data.items()
        }
    ),
)


# --- documents --------------------------------------------------------------------------------------------------------
class Document(Generic[V]):
    """A codec with its envelope: the text of one stored value."""

    def __init__(self, name: str, codec: Codec) -> None:
        self.name = name
        self._encode = codec.encode or _same
        self._decode = codec.decode or _same

    def write(self, value: V) -> str:
        """The text to store; plain ASCII, whatever the value contains."""
        return _dumps({"v": FORMAT_VERSION, _TAG: self.name, "d": self._encode(value)})

    def read(self, text: str) -> V:
        """The stored value; `StateTooNew` when a newer Lamina wrote it, `StateError` when it makes no sense."""
        try:
            data = _loads(text)
            if data["v"] > FORMAT_VERSION:
                raise StateTooNew(
                    f"the state holds a {self.name} of format {data['v']}, this Lamina reads up to {FORMAT_VERSION}",
                    hint="upgrade Lamina to the version that last worked on this state",
                )
            if data[_TAG] != self.name:
                raise ValueError(f"is `{data[_TAG]}`")
            value: V = self._decode(data["d"])
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as problem:
            raise self._unreadable(problem) from problem
        except LaminaError as problem:
            if isinstance(problem, StateError):
                raise
            raise self._unreadable(problem) from problem
        return value

    def _unreadable(self, problem: Exception) -> StateError:
        return StateError(
            f"the state holds a {self.name} that cannot be read: {problem}",
            hint="restore the state from a backup",
        )


_loads = json.JSONDecoder().decode
_dumps = json.JSONEncoder(separators=(",", ":")).encode


model_document: Document[Model] = Document("model", MODEL)
attempt_document: Document[Attempt] = Document("attempt", ATTEMPT)
event_document: Document[EventDetail] = Document("event", EVENT)
publish_document: Document[Publish] = Document("publish", PUBLISH)
shape_document: Document[TableShape] = Document("shape", SHAPE)
owner_document: Document[Owner] = Document("owner", OWNER)
reads_document: Document[tuple[Read, ...]] = Document("reads", _READS)
intervals_document: Document[Intervals] = Document("intervals", _INTERVALS)
outcomes_document: Document[Mapping[str, AuditOutcomes]] = Document("audit outcomes", _OUTCOMES)
contents_document: Document[Contents] = Document("contents", _CONTENTS)
beneath_document: Document[Beneath] = Document("generation beneath", _BENEATH)
pointers_document: Document[Mapping[NodeName, Pointer]] = Document("pointers", _POINTERS)
columns_document: Document[Mapping[str, str]] = Document("column fingerprints", _SETTINGS)
error_document: Document[Mapping[str, Any]] = Document("error", _SETTINGS)


def write_partition(key: PartitionKey) -> str:
    """A partition's key as text: equal keys give equal text, so it can be looked up."""
    return _dumps(list(key))


def read_partition(text: str) -> PartitionKey:
    """The key that `write_partition` wrote."""
    return tuple(json.loads(text))
