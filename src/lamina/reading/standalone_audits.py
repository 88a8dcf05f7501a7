"""Audits that belong to no model: standalone ones, and those of external tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.errors import BadAudit, LaminaError, raise_all
from lamina.graph.kinds import Embedded, External, View
from lamina.graph.model import AuditCall
from lamina.graph.names import NodeName
from lamina.reading.audits import CallReader, audit_code
from lamina.reading.body import macro_scope
from lamina.reading.plain_values import read_plain_properties
from lamina.reading.properties import Block
from lamina.sql.macros.names import macro_names
from lamina.sql.names import parse_table_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from lamina.graph.dag import Graph
    from lamina.graph.model import Source
    from lamina.graph.names import Naming
    from lamina.reading.audits import AuditDefinition
    from lamina.reading.drafts import Surroundings, WrittenReference


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneAudit:
    """An audit on its own; its failures never block."""

    call: AuditCall
    depends_on: tuple[WrittenReference, ...] = ()


def standalone_audits(
    definitions: Iterable[AuditDefinition], surroundings: Callable[[], Surroundings]
) -> tuple[StandaloneAudit, ...]:
    """The standalone ones with their queries; raises everything wrong with them at once."""
    problems: list[LaminaError] = []
    found: list[StandaloneAudit] = []
    for definition in definitions:
        if not definition.is_standalone or definition.is_skipped:
            continue
        call = AuditCall(name=definition.name, blocking=False, location=definition.location)
        try:
            _check_alone(definition)
            code = audit_code(definition, call, definition.query.dialect, External(), surroundings())
        except LaminaError as error:
            problems.extend(error.problems)
            continue
        found.append(StandaloneAudit(call=replace(call, code=code), depends_on=definition.depends_on))
    raise_all(problems)
    return tuple(found)


def _check_alone(definition: AuditDefinition) -> None:
    if "this_model" in macro_names(definition.query).mentioned:
        raise BadAudit(
            f"audit `{definition.name}` is standalone and reads `@this_model`, which it does not have",
            hint="name the models that it reads, or remove `standalone true`",
            location=definition.location,
        )


def audited_sources(
    sources: Iterable[Source], definitions: Iterable[AuditDefinition], surroundings: Callable[[], Surroundings]
) -> list[Source]:
    """The sources with the queries of their audits; raises everything wrong with them at once."""
    by_name = {definition.name: definition for definition in definitions if not definition.is_standalone}
    problems: list[LaminaError] = []
    found = [
        source if source.given_audits is None else _audited(source, by_name, surroundings(), problems)
        for source in sources
    ]
    raise_all(problems)
    return found


def _audited(
    source: Source,
    definitions: Mapping[str, AuditDefinition],
    surroundings: Surroundings,
    problems: list[LaminaError],
) -> Source:
    place = source.audits_location or source.location
    if place is None:
        return source
    kind = External()
    dialect = surroundings.dialect
    given = read_plain_properties({"audits": source.given_audits}, place, dialect, problems)
    scope = macro_scope(surroundings, MappingProxyType({}), kind=kind.name)
    reader = CallReader(kind=kind, dialect=dialect, surroundings=surroundings, scope=scope, inline={})
    calls: list[AuditCall] = []
    for call in reader.read(Block.of("the source", given, place, dialect, problems), {}):
        try:
            calls.append(_bound(call, source, definitions, surroundings))
        except LaminaError as error:
            for problem in error.problems:
                problem.node = problem.node or source.name
            problems.extend(error.problems)
    return replace(source, audits=tuple(calls))


def _bound(
    call: AuditCall, source: Source, definitions: Mapping[str, AuditDefinition], surroundings: Surroundings
) -> AuditCall:
    if call.code is not None:
        return call
    definition = definitions.get(call.name)
    if definition is None:
        raise BadAudit(
            f"there is no audit `{call.name}`, which `{source.name}` names",
            hint=f"define it in a file in `audits/`: `AUDIT (name {call.name});`",
            location=call.location,
        )
    return replace(call, code=audit_code(definition, call, surroundings.dialect, External(), surroundings))


# --- where they are asked ---------------------------------------------------------------------------------------------
def attach_audits(graph: Graph, naming: Naming, alone: Sequence[StandaloneAudit], sources: Iterable[Source]) -> Graph:
    """The graph in which every model knows the audits that its building leads to; raises everything wrong at once.

    Definitions of models are what state records, so that runs know these audits too.
    """
    audited = {source.name: source.audits for source in sources if source.audits}
    if not alone and not audited:
        return graph
    problems: list[LaminaError] = []
    after: dict[NodeName, list[AuditCall]] = {}
    for audit in alone:
        call, read = _resolved(graph, naming, audit)
        stored = {each for name in read for each in _stored(graph, name)}
        if not stored:
            problems.append(_reads_nothing(call))
        for name in stored:
            after.setdefault(name, []).append(call)
    for name, calls in audited.items():
        problems.extend(_reading_models(graph, naming, name, calls))
    raise_all(problems)
    models = {
        name: replace(
            model,
            standalone_audits=tuple(after.get(name, ())),
            source_audits=MappingProxyType(
                {read: audited[read] for read in sorted(_read_sources(graph, name)) if read in audited}
            ),
        )
        for name, model in graph.models.items()
    }
    return replace(graph, models=MappingProxyType(models))


def _resolved(graph: Graph, naming: Naming, audit: StandaloneAudit) -> tuple[AuditCall, set[NodeName]]:
    code = audit.call.code
    written = tuple(code.references) if code is not None else ()
    found = {each: _find(graph, naming, each) for each in written}
    waited = {_find(graph, naming, reference.name.to_text()) for reference in audit.depends_on}
    call = audit.call
    if code is not None:
        call = replace(call, code=replace(code, references=MappingProxyType(found)))
    return call, {name for name in (*found.values(), *waited) if name in graph.models}


def _find(graph: Graph, naming: Naming, written: str) -> NodeName:
    name = parse_table_name(written)
    plain = NodeName(".".join(name.parts).removeprefix("spark_catalog."))
    return next((node for node in (naming.full_name(name), plain) if node in graph.models), plain)


def _stored(graph: Graph, name: NodeName) -> Iterator[NodeName]:
    """The models whose tables a name stands for."""
    if not isinstance(graph.models[name].kind, View | Embedded):
        yield name
        return
    for parent in graph.parents(name):
        yield from _stored(graph, parent)


def _read_sources(graph: Graph, name: NodeName) -> set[NodeName]:
    found: set[NodeName] = set()
    for read in graph.models[name].reads:
        if read not in graph.models:
            found.add(read)
        elif read != name and isinstance(graph.models[read].kind, View | Embedded):
            found |= _read_sources(graph, read)
    return found


def _reads_nothing(call: AuditCall) -> BadAudit:
    return BadAudit(
        f"audit `{call.name}` is standalone and reads no model of the project that has a table",
        hint="name a model in its query or in `depends_on`; audits of external tables stand in `sources/`",
        location=call.location,
    )


def _reading_models(
    graph: Graph, naming: Naming, source: NodeName, calls: Iterable[AuditCall]
) -> Iterator[LaminaError]:
    for call in calls:
        for written in call.code.references if call.code is not None else ():
            node = _find(graph, naming, written)
            if node in graph.models:
                yield BadAudit(
                    f"audit `{call.name}` of the source `{source}` reads `{node}`, which is built after the source "
                    "was audited",
                    hint="write a standalone audit that reads both",
                    location=call.location,
                    node=source,
                )
