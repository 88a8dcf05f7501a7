"""Having Spark look at the queries of new versions before anything is written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lamina.app.ports.engine import AnalysisRequest
from lamina.app.ports.loaded import LoadRequest
from lamina.app.rendering.models import Relations
from lamina.app.writing.batch_request import declared_columns, seed_rows, sql_rows
from lamina.errors import AnalysisFailed, BadModelResult, LaminaError
from lamina.graph.kinds import Embedded, IncrementalByTimeRange, IncrementalByUniqueKey, folds
from lamina.graph.merge_columns import columns_named
from lamina.graph.model import PythonBody, SeedBody, SqlBody
from lamina.graph.names import NodeName, shown_names
from lamina.graph.time_columns import why_inexact
from lamina.graph.validity import shown_columns
from lamina.near_names import near_names
from lamina.sql.session_statements import prepares_session
from lamina.timeline.interval import MICROS_PER_DAY, Instant, Interval

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.app.ports.engine import Engine
    from lamina.app.ports.project import MacroLoader, ProjectSource
    from lamina.app.ports.state import StateStore
    from lamina.graph.model import Column, Model
    from lamina.planning.steps import Plan

_SOME_DAY = Interval(Instant(0), Instant(MICROS_PER_DAY))
_TIME_TYPES = ("date", "timestamp", "timestamp_ntz", "string", "tinyint", "smallint", "int", "bigint")


def analyse_new_versions(
    plan: Plan, project: ProjectSource, store: StateStore, engine: Engine, load_macros: MacroLoader
) -> dict[NodeName, LaminaError]:
    """Every query of a version that was never built and that Spark refuses, by node.

    Models without rows stand in by their columns, so a whole new project is analysed without computing anything. A
    model whose parents' columns are unknown is left for later, and so is one that something is done for beforehand.
    """
    physical = {step.node: step.physical for step in plan.steps if step.physical is not None}
    heads = store.load(LoadRequest(heads=tuple(physical.values()), facts_of_pointers=False)).heads
    head_of = {name: heads[place] for name, place in physical.items() if place in heads}
    new = [step.node for step in plan.steps if step.computes and step.node not in head_of]
    assumed: dict[NodeName, tuple[Column, ...]] = {}
    problems: dict[NodeName, LaminaError] = {}
    for level in _levels(plan, new):
        requests = []
        for name in level:
            model = plan.models[name]
            relations = Relations(models=plan.models, heads=head_of, assumed=assumed, load_macros=load_macros)
            try:
                request = _request(model, relations, plan.now, project)
            except LaminaError as error:
                if not _has_unknown_parent(plan, name, assumed, head_of):
                    for each in error.problems:
                        each.location, each.node = each.location or model.location, each.node or name
                    problems[name] = error
                continue
            if request is not None:
                requests.append(request)
            elif model.columns_are_declared and model.columns:
                assumed[name] = shown_columns(model.kind, model.columns)
        for outcome in engine.analyse(requests) if requests else ():
            model, columns = plan.models[outcome.node], outcome.columns or ()
            problem = outcome.error or _time_column_problem(model, columns) or _merge_problem(model, columns)
            if problem is not None:
                problems[outcome.node] = problem
            elif outcome.columns:
                assumed[outcome.node] = shown_columns(model.kind, outcome.columns)
    return _once_per_table(plan, problems)


def _once_per_table(plan: Plan, problems: Mapping[NodeName, LaminaError]) -> dict[NodeName, LaminaError]:
    """A table that is not there is one problem, of the first model that reads it, and names the others.

    What only reads such a model through views is refused by Spark too, and has nothing wrong of its own.
    """
    found: dict[NodeName, LaminaError] = {}
    told: set[str] = set()
    for name, problem in problems.items():
        named = problem.missing_table if isinstance(problem, AnalysisFailed) else None
        table = NodeName(named or "")
        readers = [each for each in problems if table in plan.models[each].reads]
        if named is None or not readers:
            found[name] = problem
        elif table not in told:
            told.add(table)
            first = problem if name in readers else problems[readers[0]]
            found[readers[0]] = _missing_table(plan, table, readers, first)
    return found


def _missing_table(plan: Plan, table: NodeName, readers: list[NodeName], problem: LaminaError) -> AnalysisFailed:
    below = set(readers)
    for name, model in plan.models.items():
        if below & set(model.reads):
            below.add(name)
    near = near_names(table, [name for name in plan.models if name not in below])
    suggestion = f"did you mean `{near[0]}`? Otherwise " if near else ""
    missing = AnalysisFailed(
        f"the table `{table}`, read by {shown_names(readers)}, does not exist",
        hint=f"{suggestion}have Spark's catalog know it, for files with `lamina source register`, or let the project "
        f"make it: with a model of this name, or a CSV file in `seeds/`; tables of others are declared in `sources/`, "
        f"where `lamina source columns` checks them",
        location=problem.location,
        node=readers[0],
    )
    missing.missing_table = table
    return missing


def _levels(plan: Plan, names: list[NodeName]) -> list[list[NodeName]]:
    """The nodes in portions that do not read each other; looked-through models are placed with their readers."""
    depth: dict[NodeName, int] = {}
    wanted = set(names)
    for name, model in plan.models.items():
        above = [depth[read] for read in model.reads if read in depth and read != name]
        depth[name] = max(above, default=-1) + 1
    levels: dict[int, list[NodeName]] = {}
    for name in plan.models:
        if name in wanted:
            levels.setdefault(depth[name], []).append(name)
    return [levels[number] for number in sorted(levels)]


def _has_unknown_parent(
    plan: Plan, name: NodeName, assumed: Mapping[NodeName, object], heads: Mapping[NodeName, object]
) -> bool:
    seen: set[NodeName] = set()
    waiting = list(plan.models[name].reads)
    while waiting:
        read = waiting.pop()
        if read in seen or read not in plan.models:
            continue
        seen.add(read)
        waiting.extend(plan.models[read].reads)
        if read not in assumed and read not in heads and not isinstance(plan.models[read].kind, Embedded):
            return True
    return False


def _request(model: Model, relations: Relations, now: Instant, project: ProjectSource) -> AnalysisRequest | None:
    interval = _SOME_DAY if isinstance(model.kind, IncrementalByTimeRange) or folds(model.kind) else None
    match model.body:
        case SqlBody():
            rows = sql_rows(model, relations, interval, now)
            if model.pre_hooks or not all(prepares_session(each.sql) for each in rows.pre_statements):
                return None
            return AnalysisRequest(
                node=model.name,
                location=model.location,
                rows=replace(rows, post_statements=()),
                columns=declared_columns(model),
                settings=model.session_properties,
            )
        case SeedBody() as body:
            return AnalysisRequest(
                node=model.name,
                location=model.location,
                rows=seed_rows(model, body, project.seed_text(body.path)),
                columns=model.columns if model.columns_are_declared else None,
            )
        case PythonBody():
            return None


def _merge_problem(model: Model, columns: tuple[Column, ...]) -> LaminaError | None:
    """Whether clauses name a column that neither side has; the first run does without them and would not notice."""
    if not isinstance(model.kind, IncrementalByUniqueKey):
        return None
    known = {column.name.lower() for column in columns}
    missing = next(((key, name) for key, name in columns_named(model.kind) if name.lower() not in known), None)
    if missing is None:
        return None
    listed = ", ".join(f"`{column.name}`" for column in columns)
    return BadModelResult(
        f"`{missing[0]}` names `{missing[1]}`, which is not among the columns of the query",
        hint=f"the columns are {listed}",
        location=model.location,
        node=model.name,
    )


def _time_column_problem(model: Model, columns: tuple[Column, ...]) -> LaminaError | None:
    if not isinstance(model.kind, IncrementalByTimeRange):
        return None
    wanted = model.kind.time_column.name
    found = next((column for column in columns if column.name.lower() == wanted.lower()), None)
    if found is None:
        names = ", ".join(f"`{column.name}`" for column in columns)
        return AnalysisFailed(
            f"the time column `{wanted}` of `{model.name}` is not among its output columns: {names}",
            hint="select it in the query, or name another column in `time_column`",
            location=model.location,
            node=model.name,
        )
    if found.type is not None and not found.type.startswith(_TIME_TYPES):
        return BadModelResult(
            f"the time column `{wanted}` of `{model.name}` is of type `{found.type}`, which cannot be read as time",
            hint="make it a date, timestamp, string or integer",
            location=model.location,
            node=model.name,
        )
    problem = why_inexact(model.kind.time_column, found.type, model.grain) if found.type else None
    if problem is not None:
        return BadModelResult(problem[0], hint=problem[1], location=model.location, node=model.name)
    return None
