"""Tables that queries of audits read beside the rows they audit.

An audit adds no edge to the graph: what it reads must be built by then, so a model has to be upstream already, by its
query or by `depends_on`. Otherwise an audit would decide when models run, and could close a cycle.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.errors import BadAudit, LaminaError, UndeclaredSource, raise_all
from lamina.graph.dag import Notice
from lamina.graph.kinds import folds, has_intervals
from lamina.graph.names import NodeName
from lamina.graph.spans import uses_span
from lamina.near_names import near_names
from lamina.sql.names import parse_table_name
from lamina.sql.time_filters import names_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lamina.graph.dag import Graph
    from lamina.graph.model import AuditCall, AuditCode, Model, Source
    from lamina.graph.names import Naming


def resolve_audits(
    graph: Graph, naming: Naming, declared: Iterable[Source] = (), *, strict_sources: bool = False
) -> Graph:
    """The graph with the tables of all audits resolved; raises every one that cannot be read at once.

    Also raises audits that use the time of a batch which has none.
    """
    raise_all(problem for model in graph.models.values() for problem in _without_time(graph, model))
    if not any(_reads_tables(model) for model in graph.models.values()):
        return graph
    resolver = _Resolver(graph, naming, {*(source.name for source in declared), *graph.sources}, strict=strict_sources)
    models = {name: resolver.resolve(model) if _reads_tables(model) else model for name, model in graph.models.items()}
    raise_all(resolver.problems)
    return replace(graph, models=MappingProxyType(models), warnings=(*graph.warnings, *resolver.warnings.values()))


def _without_time(graph: Graph, model: Model) -> Iterator[LaminaError]:
    """Audits that use `@start_ds` and the like although nothing says what these stand for."""
    timed = [call for call in model.audits if call.code is not None and _uses_time(call.code)]
    if not timed or has_intervals(model.kind) or (folds(model.kind) and uses_span(graph.models, model)):
        return
    for call in timed:
        yield BadAudit(
            f"audit `{call.name}` uses the interval that is processed, and `{model.name}` of kind `{model.kind.name}` "
            "is computed without one",
            hint="`@execution_ds` and the like exist for all models; runs of other kinds are about a stretch of time "
            "when their query uses `@start_ds` or `@end_ds`",
            location=call.location or model.location,
            node=model.name,
        )


def _uses_time(code: AuditCode) -> bool:
    query = code.query
    dialect = query.source.dialect
    if "@" in query.expanded and names_interval(query.expanded, dialect):
        return True
    return query.is_time_dependent and names_interval(query.source.text, dialect)


def _reads_tables(model: Model) -> bool:
    return any(call.code is not None and call.code.references for call in model.audits)


class _Resolver:
    def __init__(self, graph: Graph, naming: Naming, known: set[NodeName], *, strict: bool) -> None:
        self._graph = graph
        self._naming = naming
        self._known = known
        self._strict = strict
        self.problems: list[LaminaError] = []
        self.warnings: dict[NodeName, Notice] = {}

    def resolve(self, model: Model) -> Model:
        return replace(model, audits=tuple(self._call(call, model) for call in model.audits))

    def _call(self, call: AuditCall, model: Model) -> AuditCall:
        code = call.code
        if code is None or not code.references:
            return call
        found = {written: self._find(written) for written in code.references}
        for node in dict.fromkeys(found.values()):
            if node in self._graph.models:
                self._check_upstream(node, call, model)
            elif node not in self._known:
                self._report_source(node, call, model)
        return replace(call, code=replace(code, references=MappingProxyType(found)))

    def _find(self, written: str) -> NodeName:
        name = parse_table_name(written)
        full = self._naming.full_name(name)
        plain = NodeName(".".join(name.parts).removeprefix("spark_catalog."))
        return next((node for node in (full, plain) if node in self._graph.models), plain)

    def _check_upstream(self, node: NodeName, call: AuditCall, model: Model) -> None:
        if node == model.name or node in self._graph.ancestors([model.name]):
            return
        is_below = node in self._graph.descendants([model.name])
        hint = f"add `depends_on ({node})` to the model, so that it is built first"
        self.problems.append(
            BadAudit(
                f"audit `{call.name}` of `{model.name}` reads `{node}`, which `{model.name}` does not depend on",
                hint=f"attach the audit to `{node}`, which is built later" if is_below else hint,
                location=call.location,
                node=model.name,
            )
        )

    def _report_source(self, node: NodeName, call: AuditCall, model: Model) -> None:
        # An audit that reads the model or what is built after it would be refused.
        too_late = {model.name, *self._graph.descendants([model.name])}
        near = near_names(node, [name for name in self._graph.models if name not in too_late])
        hint = f"did you mean `{near[0]}`?" if near else None
        ways = "declare it in `sources/`, or set `strict_sources: false`"
        if self._strict:
            self.problems.append(
                UndeclaredSource(
                    f"nothing defines the table `{node}`, read by audit `{call.name}` of `{model.name}`",
                    hint=f"{hint} Otherwise {ways}" if hint else ways,
                    location=call.location,
                    node=model.name,
                )
            )
            return
        ending = f"; {hint}" if hint else ""
        message = (
            f"nothing defines `{node}`, read by audit `{call.name}` of `{model.name}`: "
            f"it is taken as an external table{ending}"
        )
        self.warnings.setdefault(node, Notice(code="LAM-WARN-001", message=message, node=node))
