"""From the audits of a model to the SQL that Spark gets: one query each, whose rows are the failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.app.ports.engine import AuditQuery, audit_call
from lamina.app.rendering.models import Relations, time_texts
from lamina.errors import BadAudit, LaminaError
from lamina.graph.sealing import hide_in, values_in
from lamina.identity.fingerprint import audit_key
from lamina.sql.builtin_audits import THIS_MODEL, find_builtin
from lamina.sql.macros.expand import expand
from lamina.sql.macros.scope import MacroScope
from lamina.sql.macros.times import substitute_times
from lamina.sql.render import resolve_tables
from lamina.sql.syntax import to_spark, without_ending

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lamina.graph.model import AuditCall, AuditCode, Model
    from lamina.timeline.interval import Instant, Interval


def arguments_of(call: AuditCall) -> str:
    """The arguments as the model writes them, without values of the environment."""
    arguments = call.arguments if call.shown is None else call.shown
    return ", ".join(f"{key} := {text}" for key, text in arguments.items())


def call_of(call: AuditCall) -> str:
    """The audit as the model calls it, whether it is asked or not."""
    return audit_call(call.name, arguments_of(call))


def audit_queries(
    model: Model,
    audits: Iterable[AuditCall],
    relation: str,
    relations: Relations,
    interval: Interval | None,
    execution: Instant,
) -> tuple[AuditQuery, ...]:
    """The queries of those audits that are not skipped, in their order.

    `relation` is what is audited: the text of a table's name, or a subquery in parentheses, already narrowed to the
    interval. Other tables are read as `relations` says. Each query can stand in parentheses.
    """
    return tuple(
        AuditQuery(
            name=call.name,
            arguments=arguments_of(call),
            is_blocking=call.is_blocking,
            sql=_query(model, call, relation, relations, interval, execution),
            key=audit_key(call),
            location=call.location,
            written=call.code.query.source if call.code is not None and find_builtin(call.name) is None else None,
        )
        for call in audits
        if not call.is_skipped
    )


def _query(
    model: Model,
    call: AuditCall,
    relation: str,
    relations: Relations,
    interval: Interval | None,
    execution: Instant,
) -> str:
    code = call.code
    if code is None:
        raise BadAudit(
            f"audit `{call.name}` of `{model.name}` was recorded without its query",
            hint="run `lamina build`, which records it",
            location=call.location or model.location,
            node=model.name,
        )
    dialect = code.query.source.dialect
    try:
        text = _expanded(model, code, time_texts(interval, execution, dialect), relations)
        tables = {
            written: relation if node == model.name else relations.relation(node, interval, execution)
            for written, node in code.references.items()
        }
        # Translated before tables are put in: those are Spark's already.
        query = without_ending(to_spark(text, dialect))
        return resolve_tables(query, "spark", {**tables, THIS_MODEL: relation})
    except LaminaError as error:
        hide_in(error, values_in(relations.models.values()))
        for problem in error.problems:
            problem.location = problem.location or call.location or model.location
            problem.node = problem.node or model.name
        raise


def _expanded(model: Model, code: AuditCode, times: Mapping[str, str], relations: Relations) -> str:
    query = code.query
    if not query.is_time_dependent:
        return substitute_times(query.expanded, query.source.dialect, times)
    macros = code.macros
    scope = MacroScope(
        variables=macros.variables,
        blueprint=macros.blueprint,
        functions=relations.load_macros(macros.modules),
        times=times,
        locals=code.parameters,
        this_model=THIS_MODEL,
        definitions=macros.definitions,
        stage="auditing",
        model_kind=model.kind.name,
    )
    return expand(query.source, scope).text
