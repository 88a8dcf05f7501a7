"""What the engine is asked to write for one batch: rows, columns, and what is compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lamina.app.ports.engine import (
    BatchTime,
    Fold,
    FormerColumns,
    Hooks,
    PythonQuery,
    SeedRows,
    SqlQuery,
    Statement,
    WriteRequest,
)
from lamina.app.rendering.models import Relations, empty_relation, time_texts
from lamina.app.writing.contents import units_to_measure
from lamina.graph.kinds import IncrementalByTimeRange, IncrementalByUniqueKey, Seed, folds
from lamina.graph.model import PythonBody, SeedBody, SqlBody
from lamina.graph.sealing import told
from lamina.graph.validity import given_columns
from lamina.sql.macros.times import substitute_times
from lamina.sql.render import wrap_time_filter
from lamina.sql.session_statements import prepares_session
from lamina.timeline.interval import EMPTY, Interval, Intervals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lamina.app.ports.engine import Base, TableOptions
    from lamina.app.ports.facts import Fact
    from lamina.app.ports.published import Attempt, TableShape, WriteThrough
    from lamina.graph.dag import Graph
    from lamina.graph.kinds import Kind
    from lamina.graph.model import Column, Model
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName, VersionId
    from lamina.planning.steps import Batch
    from lamina.timeline.interval import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTarget:
    """The version to write: its model, where it lives, and what it is made from."""

    graph: Graph
    model: Model
    version: VersionId
    physical: PhysicalName
    physical_of: Mapping[NodeName, PhysicalName]
    execution: Instant
    run_id: str
    mark: int
    recorded: tuple[Fact, ...]
    """Definition and version facts, committed with the first intent."""
    recorded_time: Intervals = EMPTY
    """Time whose rows were computed before: what comes out is compared with them."""
    is_asked: bool = False
    """Whether a person asked for recorded rows to be computed again, here or further up."""
    seed_text: str | None = None
    skips_audits: bool = False


def write_request(
    target: WriteTarget,
    attempt: Attempt,
    batch: Batch,
    base: Base | None,
    relations: Relations,
    table: TableOptions,
    write_through: Callable[[TableShape], WriteThrough] | None,
) -> WriteRequest:
    """One batch of the target, to be written aside; or, where no audit may hold it back, to be its own publish."""
    model = target.model
    kind = model.kind
    asked = () if target.skips_audits or batch.is_empty else model.audits
    rows = _no_rows(target, relations) if batch.is_empty else _rows(target, batch, relations)
    is_held_back = any(call.is_blocking and not call.is_skipped for call in asked)
    # What follows the query may fail, and then nothing is shown.
    is_held_back |= bool(model.post_hooks) or (isinstance(rows, SqlQuery) and bool(rows.post_statements))
    return WriteRequest(
        node=model.name,
        location=model.location,
        attempt=attempt.number,
        physical=attempt.physical,
        folder=attempt.folder,
        rows=rows,
        columns=declared_columns(model),
        comments=comments_of(model),
        partitioned_by=model.partitioned_by,
        interval=attempt.interval,
        time_column=kind.time_column if isinstance(kind, IncrementalByTimeRange) and not batch.is_empty else None,
        base=base,
        fold=_fold(target, batch),
        recorded=within(attempt.interval, target.recorded_time),
        grain=model.grain,
        measured=units_to_measure(model, attempt.interval, target.recorded_time),
        settings=model.session_properties,
        hooks=None if batch.is_empty else hooks_of(model, batch.time, target.execution),
        table=table,
        former=_former(kind, base, batch),
        write_through=None if is_held_back else write_through,
    )


def _former(kind: Kind, base: Base | None, batch: Batch) -> FormerColumns | None:
    """The columns of rows that stay; a table that is made anew has none to lose."""
    if (
        base is None
        or batch.begins_anew
        or batch.is_empty
        or not (folds(kind) or isinstance(kind, IncrementalByTimeRange))
    ):
        return None
    return FormerColumns(
        columns=given_columns(kind, base.head.shape.columns),
        on_missing=kind.policy.on_destructive_change,
        on_added=kind.policy.on_additive_change,
    )


def column_remarks(kind: Kind, before: TableShape, after: TableShape) -> tuple[str, ...]:
    """What a person asked to be told about columns that came or went."""
    policy = getattr(kind, "policy", None)
    if policy is None:
        return ()
    was, is_now = ({column.name.casefold(): column.name for column in shape.columns} for shape in (before, after))
    lost = [was[name] for name in was if name not in is_now]
    added = [is_now[name] for name in is_now if name not in was]
    said = []
    if lost and policy.on_destructive_change == "warn":
        said.append(f"{_names(lost)} went away, with all values, because the output does not have it any more")
    if added and policy.on_additive_change == "warn":
        said.append(f"{_names(added)} came with the output; rows that were there have NULL in it")
    return tuple(said)


def _names(names: Sequence[str]) -> str:
    return f"column{'s' if len(names) > 1 else ''} {', '.join(f'`{name}`' for name in names)}"


def hooks_of(model: Model, time: Interval | None, execution: Instant) -> Hooks | None:
    """The functions around a batch, or nothing."""
    if not model.pre_hooks and not model.post_hooks:
        return None
    return Hooks(
        before=model.pre_hooks,
        after=model.post_hooks,
        time=BatchTime(interval=time, execution=execution),
    )


def sql_rows(model: Model, relations: Relations, time: Interval | None, execution: Instant) -> SqlQuery:
    """A model's query with the statements around it."""
    before, after = (
        tuple(Statement(sql=text, location=source.location, written=source) for text, source in written)
        for written in relations.around(model, time, execution)
    )
    return SqlQuery(
        sql=relations.query(model, time, execution),
        pre_statements=before,
        post_statements=after,
        written=model.body.query.source if isinstance(model.body, SqlBody) else None,
    )


def _no_rows(target: WriteTarget, relations: Relations) -> SqlQuery:
    """A query with the same columns and no rows; nothing that the model's own would do is done."""
    model = target.model
    if isinstance(model.body, SqlBody):
        rows = sql_rows(model, relations, _some_unit(target), target.execution)
        return SqlQuery(
            sql=wrap_time_filter(rows.sql, "false"),
            pre_statements=tuple(each for each in rows.pre_statements if prepares_session(each.sql)),
            written=rows.written,
        )
    return SqlQuery(sql=f"SELECT * FROM {empty_relation(given_columns(model.kind, model.columns or ()))}")


def _some_unit(target: WriteTarget) -> Interval:
    return Interval(target.execution, target.model.grain.next(target.execution))


def declared_columns(model: Model) -> tuple[Column, ...] | None:
    """The columns that the model's query or function is held to."""
    return given_columns(model.kind, model.columns) if model.columns_are_declared and model.columns else None


def _fold(target: WriteTarget, batch: Batch) -> Fold | None:
    kind = target.model.kind
    if not folds(kind):
        return None
    if isinstance(kind, IncrementalByUniqueKey):
        span = _some_unit(target) if batch.is_empty else batch.span
        times = time_texts(span, target.execution, "spark")
        merge_filter = kind.merge_filter and substitute_times(kind.merge_filter, "spark", times)
        clauses = tuple(substitute_times(text, "spark", times) for text in kind.when_matched)
        kind = replace(kind, when_matched=clauses, merge_filter=merge_filter)
    return Fold(kind=kind, execution_time=target.execution, begins_anew=batch.begins_anew)


def _rows(target: WriteTarget, batch: Batch, relations: Relations) -> SqlQuery | PythonQuery | SeedRows:
    model, execution, time = target.model, target.execution, batch.time
    match model.body:
        case SqlBody():
            return sql_rows(model, relations, time, execution)
        case PythonBody() as body:
            return PythonQuery(
                body=body,
                tables={
                    written: relations.relation(node, time, execution)
                    for written, node in _names_for_python(model).items()
                },
                time=BatchTime(interval=time, execution=execution),
                variables=body.variables,
            )
        case SeedBody() as body:
            return seed_rows(model, body, target.seed_text or "")


def within(interval: Interval | None, recorded: Intervals) -> Intervals:
    """The recorded part of an interval."""
    return EMPTY if interval is None else recorded.intersect(Intervals.of([interval]))


def seed_rows(model: Model, body: SeedBody, text: str) -> SeedRows:
    """The seed's content with its reading settings."""
    if not isinstance(model.kind, Seed):
        raise TypeError(model.kind)
    return SeedRows(text=text, settings=model.kind.csv_settings, file=body.path)


def comments_of(model: Model) -> dict[str, str]:
    """Comments by column; they are recorded, and shown to whoever sees the catalog."""
    return {column.name: told(model, column.comment) for column in model.columns or () if column.comment}


def description_of(model: Model) -> str | None:
    """The comment of the table or view."""
    return told(model, model.description) if model.description else model.description


def with_comments(columns: tuple[Column, ...], comments: Mapping[str, str]) -> tuple[Column, ...]:
    """The columns with these comments and no others."""
    lowered = {name.lower(): comment for name, comment in comments.items()}
    return tuple(replace(column, comment=lowered.get(column.name.lower())) for column in columns)


def _names_for_python(model: Model) -> dict[str, NodeName]:
    """Every spelling a Python model may use for the nodes it reads."""
    names: dict[str, NodeName] = {**{str(read): read for read in model.reads}, **model.references}
    return names
