"""Publishing a model that is a view: what is shown is a query, no rows are written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lamina.app.planning.recorded_code import run_with
from lamina.app.ports.engine import AnalysisRequest
from lamina.app.ports.facts import AttemptDecided
from lamina.app.ports.published import Head, SetView, TableShape
from lamina.app.rendering.models import with_declared
from lamina.app.writing.audit import audit_view
from lamina.app.writing.batch_request import comments_of, description_of, hooks_of, sql_rows, with_comments
from lamina.graph.kinds import Embedded
from lamina.graph.sealing import sealed_text

if TYPE_CHECKING:
    from lamina.app.ports.published import Attempt
    from lamina.app.rendering.models import Relations
    from lamina.app.writing.publisher import Publisher

STATEMENTS = 2
"""How many statements publishing a view costs: reading its columns and setting it."""


def publish_view(publisher: Publisher, attempt: Attempt, relations: Relations, begun: float) -> None:
    """Show the model's query under its version's name."""
    ports, target = publisher.ports, publisher.target
    model, execution = target.model, target.execution
    sql = with_declared(model, relations.reader_query(model, target.physical_of, execution))
    # As Lamina itself reads: from what state names, never through other views.
    own = sql_rows(model, relations, None, execution)
    (outcome,) = ports.engine.analyse(
        [
            AnalysisRequest(
                node=model.name,
                location=model.location,
                rows=replace(own, sql=sql),
                settings=model.session_properties,
                hooks=hooks_of(model, None, execution),
            )
        ]
    )
    if outcome.error is not None:
        raise outcome.error
    shape = TableShape(columns=with_comments(outcome.columns or (), comments_of(model)))
    rows = with_declared(model, own.sql)
    publisher.log.note_audits(attempt, audit_view(ports.engine, target, attempt, relations, rows))
    inlined = (target.graph.models[name] for name in run_with(target.graph, [model.name]))
    made_of = [each for each in inlined if each.name == model.name or isinstance(each.kind, Embedded)]
    with publisher.lock:
        publish = SetView(
            physical=target.physical,
            generation=attempt.generation,
            sql=sealed_text(sql, made_of, ports.store.seal_key or b""),
            shape=shape,
            description=description_of(model),
        )
        head = Head(
            physical=target.physical,
            sequence=attempt.base_sequence + 1,
            generation=attempt.generation,
            attempt=attempt.number,
            shape=shape,
            view_sql=publish.sql,
        )
        decided = AttemptDecided(number=attempt.number, physical=target.physical, publish=publish, head=head)
        publisher.decide_and_carry_out(attempt, decided, attempt.base_sequence, STATEMENTS, begun)
