"""What a single model must not say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.errors import BadSchedule, DefinitionError, LaminaError
from lamina.graph.kinds import (
    Embedded,
    External,
    Full,
    IncrementalByTimeRange,
    IncrementalByUniqueKey,
    IncrementalUnmanaged,
    Managed,
    ScdType2ByColumn,
    ScdType2ByTime,
    Seed,
    View,
    needs_partitions,
)
from lamina.graph.merge_columns import unclear_names
from lamina.graph.model import SqlBody
from lamina.graph.time_columns import INTEGER_TYPES, why_inexact
from lamina.graph.validity import shown_columns
from lamina.near_names import near_names
from lamina.reading.check_times import check_times
from lamina.sql.builtin_audits import builtin_arguments, find_builtin
from lamina.sql.header.values import KindValue
from lamina.sql.render import strftime_to_spark
from lamina.sql.types import columns_in, split_direction
from lamina.timeline.interval import Instant
from lamina.timeline.parse import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lamina.errors import Location
    from lamina.graph.model import Column, Model
    from lamina.reading.properties import Block
    from lamina.timeline.grain import Grain

_TIME_TYPES = ("date", "timestamp", "timestamp_ntz", "string")
_SUBSTITUTION = "spark.sql.variable.substitute"
_ABOUT_TABLES = ("partitioned_by", "clustered_by")
"""Properties that name columns of the table; others name those of the query."""
_KEPT_PROPERTIES = ("comment", "owner", "location", "provider", "external", "is_managed_location")
_KEPT_BEGINNINGS = ("lamina.", "view.", "spark.sql.")


def check_model(model: Model, block: Block, columns: Sequence[Column] | None) -> Iterator[LaminaError]:
    """Everything wrong with a model that its own file can tell; `columns` are None when not known for sure."""
    yield from _check_partitions(model, block)
    yield from _check_policies(model, block)
    yield from _check_times(model, block)
    yield from _check_virtual_properties(model, block)
    yield from _check_substitution(model, block)
    if isinstance(model.kind, IncrementalByUniqueKey):
        yield from _check_merge(model.kind, block)
    if columns is not None:
        yield from _check_duplicates(model, columns)
        yield from _check_validity(model, columns)
        yield from _check_columns(model, block, columns)
        yield from _check_audits(model, columns)
    if isinstance(model.kind, IncrementalByTimeRange):
        yield from _check_time_column(model.kind, model.grain, _inside_kind(block, "time_column"), columns)


def check_known_columns(model: Model, columns: Sequence[Column]) -> Iterator[LaminaError]:
    """The same for columns that became known after the file was read, at the place of the model."""
    wanted = {name.lower(): ("partitioned_by", name) for text in model.partitioned_by for name in columns_in(text)}
    if isinstance(model.kind, IncrementalByTimeRange):
        name = model.kind.time_column.name
        wanted[name.lower()] = ("time_column", name)
    names = [column.name for column in shown_columns(model.kind, tuple(columns))]
    for key, name in wanted.values():
        if name.lower() not in {known.lower() for known in names}:
            yield _missing(key, name, names, model.location)


def _check_partitions(model: Model, block: Block) -> Iterator[LaminaError]:
    kind = model.kind
    if isinstance(kind, View | Embedded | External):
        for key in ("partitioned_by", "clustered_by"):
            if block.has(key):
                yield DefinitionError(
                    f"`{key}` has no meaning for kind `{kind.name}`, which stores no rows",
                    hint=f"remove `{key}`, or choose another kind",
                    location=block.place(key),
                )
    if needs_partitions(kind) and not model.partitioned_by and not block.has("partitioned_by"):
        what = f"kind `{kind.name}`" + (" with `insert_overwrite`" if isinstance(kind, IncrementalUnmanaged) else "")
        yield DefinitionError(
            f"{what} needs `partitioned_by`", hint="add `partitioned_by column_name`", location=block.place("kind")
        )


def _check_policies(model: Model, block: Block) -> Iterator[LaminaError]:
    kind = model.kind
    if isinstance(kind, Embedded) and model.audits:
        yield DefinitionError(
            "an EMBEDDED model has no rows of its own to audit",
            hint="attach the audits to the models that read it",
            location=block.place("audits") if block.has("audits") else model.audits[0].location,
        )
    policy = None if isinstance(kind, Full | View | Embedded | Seed | External | Managed) else kind.policy
    if block.has("physical_version") and (policy is None or not policy.forward_only):
        yield DefinitionError(
            "`physical_version` is for forward-only models",
            hint="remove it, or set `forward_only true`",
            location=block.place("physical_version"),
        )


def _check_substitution(model: Model, block: Block) -> Iterator[LaminaError]:
    """A stored or inlined text is read in sessions that know nothing of the model's settings."""
    said = str(model.session_properties.get(_SUBSTITUTION, "false")).lower()
    if said != "true" or not isinstance(model.kind, View | Embedded):
        return
    if isinstance(model.body, SqlBody) and "${" in model.body.query.expanded:
        yield DefinitionError(
            f"`{_SUBSTITUTION}` has no effect on the query of kind `{model.kind.name}`, which others read as it stands",
            hint="choose kind FULL, write the value as a variable of the project (`@name`), or remove the setting",
            location=block.place("session_properties" if block.has("session_properties") else "kind"),
        )


def _check_times(model: Model, block: Block) -> Iterator[LaminaError]:
    if model.end is None:
        return
    if model.start is None:
        if not block.has("start"):
            yield BadSchedule("`end` needs a `start`", hint="add `start '2024-01-01'`", location=block.place("end"))
        return
    if _is_absolute(model.start) and _is_absolute(model.end):
        yield from check_times(model, Instant(0), block.place("end"))


def _check_virtual_properties(model: Model, block: Block) -> Iterator[LaminaError]:
    for key, value in model.virtual_properties.items():
        if key.lower() in _KEPT_PROPERTIES or key.lower().startswith(_KEPT_BEGINNINGS):
            why = "which Spark or Lamina keeps for itself"
        elif "\n" in str(value) or "\n" in key:
            why = "which is more than one line"
        else:
            continue
        yield DefinitionError(
            f"`virtual_properties` sets `{key.strip()}`, {why}",
            hint="a comment comes from `description`; give other properties names of your own",
            location=block.place("virtual_properties"),
        )


def _is_absolute(text: str) -> bool:
    there = parse_time(text, relative_to=Instant(0))
    # Two moments no word such as `yesterday` or `in 3 years` can bring together.
    return there == parse_time(text, relative_to=Instant(400 * 366 * 86_400_000_000))


def _check_merge(kind: IncrementalByUniqueKey, block: Block) -> Iterator[LaminaError]:
    for key, name in dict.fromkeys(unclear_names(kind)):
        yield DefinitionError(
            f"`{key}` names `{name}` and does not say whether the new row's or that of the table is meant",
            hint="write `source.` or `target.` in front of the column's name",
            location=_inside_kind(block, key),
        )


def _check_duplicates(model: Model, columns: Sequence[Column]) -> Iterator[LaminaError]:
    seen: set[str] = set()
    for column in columns:
        if column.name.lower() in seen:
            yield DefinitionError(
                f"two columns of the query are called `{column.name}`",
                hint="give one of them another name with AS",
                location=model.location,
            )
        seen.add(column.name.lower())


def _check_validity(model: Model, columns: Sequence[Column]) -> Iterator[LaminaError]:
    """Columns of the query that have the name of a column of validity; in the header these may be declared."""
    kind = model.kind
    if not isinstance(kind, ScdType2ByTime | ScdType2ByColumn) or model.columns_are_declared:
        return
    names = {column.name.lower() for column in columns}
    for key, name in (("valid_from_name", kind.valid_from_name), ("valid_to_name", kind.valid_to_name)):
        if name.lower() in names:
            yield DefinitionError(
                f"the query gives a column `{name}`, which is the name of a column of validity",
                hint=f"give it another name with AS, or name the column of validity differently with `{key}`",
                location=model.location,
            )


def _check_columns(model: Model, block: Block, columns: Sequence[Column]) -> Iterator[LaminaError]:
    given = [column.name for column in columns]
    shown = [column.name for column in shown_columns(model.kind, tuple(columns))]
    for key, location, wanted in _wanted_columns(model, block):
        names = shown if key in _ABOUT_TABLES else given
        if wanted.lower() not in {name.lower() for name in names}:
            yield _missing(key, wanted, names, location)


def _wanted_columns(model: Model, block: Block) -> Iterator[tuple[str, Location, str]]:
    """Every column that a property names, with the property and its place."""
    kind = model.kind
    if isinstance(kind, IncrementalByTimeRange):
        yield "time_column", _inside_kind(block, "time_column"), kind.time_column.name
    for key, texts in zip(_ABOUT_TABLES, (model.partitioned_by, model.clustered_by), strict=True):
        for name in (name for text in texts for name in columns_in(text)):
            if not isinstance(kind, IncrementalByTimeRange) or name != kind.time_column.name:
                yield key, block.place(key), name
    if isinstance(kind, IncrementalByUniqueKey | ScdType2ByTime | ScdType2ByColumn):
        for text in kind.unique_key:
            for name in columns_in(text):
                yield "unique_key", _inside_kind(block, "unique_key"), name
    if isinstance(kind, IncrementalByUniqueKey):
        for text in kind.order_by:
            for name in columns_in(split_direction(text)[0]):
                yield "order_by", _inside_kind(block, "order_by"), name
    if isinstance(kind, ScdType2ByTime | ScdType2ByColumn) and kind.updated_at_name is not None:
        yield "updated_at_name", _inside_kind(block, "updated_at_name"), kind.updated_at_name
    if isinstance(kind, ScdType2ByColumn):
        for name in kind.columns:
            yield "columns", _inside_kind(block, "columns"), name


def _check_audits(model: Model, columns: Sequence[Column]) -> Iterator[LaminaError]:
    """Columns that built-in audits name and the model does not have."""
    names = [column.name for column in columns]
    if isinstance(model.kind, ScdType2ByTime | ScdType2ByColumn):
        names += [model.kind.valid_from_name, model.kind.valid_to_name]
    known = {name.lower() for name in names}
    for call in model.audits:
        builtin = find_builtin(call.name)
        if builtin is None:
            continue
        arguments = builtin_arguments(call.name, call.arguments, model.dialect, call.location)
        # An audit of the whole project is not wrong for all models: the error belongs to the one it does not fit.
        own = call.location if call.location is not None and call.location.file == model.location.file else None
        for name in builtin[0].named_columns(arguments):
            if name.lower() not in known:
                yield _missing(call.name, name, names, own or model.location)


def _check_time_column(
    kind: IncrementalByTimeRange, grain: Grain, location: Location, columns: Sequence[Column] | None
) -> Iterator[LaminaError]:
    column = kind.time_column
    if column.format is not None:
        try:
            strftime_to_spark(column.format)
        except LaminaError as error:
            yield DefinitionError(error.message, hint=error.hint, location=location)
            return
    found = next((each for each in columns or () if each.name.lower() == column.name.lower()), None)
    if found is None or found.type is None:
        return
    if found.type in INTEGER_TYPES and column.format is None:
        yield DefinitionError(
            f"time column `{column.name}` is a number and needs a format",
            hint=f"write `time_column ({column.name}, '%Y%m%d')`",
            location=location,
        )
    elif not found.type.startswith((*_TIME_TYPES, *INTEGER_TYPES, "varchar", "char")):
        yield DefinitionError(
            f"time column `{column.name}` has the type `{found.type}`, which is no time",
            hint="cast it to DATE or TIMESTAMP in the query",
            location=location,
        )
    elif (problem := why_inexact(column, found.type, grain)) is not None:
        yield DefinitionError(problem[0], hint=problem[1], location=location)


def _missing(key: str, name: str, names: Sequence[str], location: Location) -> DefinitionError:
    near = near_names(name, names)
    listed = ", ".join(f"`{known}`" for known in names)
    return DefinitionError(
        f"`{key}` names `{name}`, which is not among the columns of the query",
        hint=f"did you mean `{near[0]}`?" if near else f"the columns are {listed}",
        location=location,
    )


def _inside_kind(block: Block, key: str) -> Location:
    kind = block.value("kind")
    properties = kind.properties if isinstance(kind, KindValue) else ()
    found = next((each for each in properties if each.key == key), None)
    return found.value.location if found is not None else block.place("kind")
