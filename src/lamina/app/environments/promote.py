"""Promote: check that what one environment shows can be shown by another, then move the pointers."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lamina.app.planning.gather import recorded_graph
from lamina.app.ports.loaded import LoadRequest
from lamina.app.ports.requirements import MarkIs, RevisionIs
from lamina.environments.promotion import promotion
from lamina.errors import (
    EnvironmentDetached,
    LaminaError,
    PlanOutdated,
    PromotionRefused,
    UnknownEnvironment,
    UsageError,
    raise_all,
)
from lamina.graph.kinds import folds, has_intervals
from lamina.planning.missing import starts_of
from lamina.planning.selection import select
from lamina.timeline.interval import EMPTY, Interval, Intervals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lamina.app.ports.engine import Engine
    from lamina.app.ports.loaded import Loaded
    from lamina.app.ports.project import ProjectSettings
    from lamina.app.ports.requirements import Requirement
    from lamina.app.ports.state import StateStore
    from lamina.app.requests import PromoteRequest
    from lamina.environments.pointers import Pointer, Revision
    from lamina.environments.promotion import Promotion
    from lamina.graph.dag import Graph
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.planning.inputs import VersionFacts
    from lamina.timeline.interval import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class PromoteReport:
    """What was promoted."""

    promotion: Promotion
    order: tuple[NodeName, ...]
    gaps: Mapping[NodeName, Intervals]
    """Time that was shown before, or that the model begins with, and is not covered now."""
    marks: Mapping[PhysicalName, int] = field(default_factory=lambda: MappingProxyType({}))
    """Of what moves: another one means that something was computed since."""
    views: int = 0
    statements: Mapping[NodeName, int] = field(default_factory=lambda: MappingProxyType({}))
    """Statements that ran after the view of a model was set."""

    @property
    def status(self) -> str:
        """In the contract's words."""
        return "succeeded" if self.promotion.changes_anything else "nothing_to_do"

    def to_dict(self) -> dict[str, Any]:
        """The document that `--json` prints."""
        found = self.promotion
        return {
            "schema_version": 1,
            "command": "promote",
            "from": found.source.environment,
            "to": found.destination.environment,
            "status": self.status,
            "environment": {"name": found.destination.environment, "status": found.status},
            "promoted": [
                {
                    "name": move.node,
                    "version": move.pointer.version,
                    "previous_version": move.previous.version if move.previous else None,
                    "physical_table": move.pointer.physical,
                    "virtual_statements": self.statements.get(move.node, 0),
                    "gaps": [list(pair) for pair in self.gaps.get(move.node, EMPTY).to_pairs()],
                }
                for move in found.moves
            ],
            "removed": list(found.removed),
            "views": self.views,
        }


def decide_promotion(store: StateStore, settings: ProjectSettings, request: PromoteRequest) -> PromoteReport:
    """What a promotion would do; raises everything that stands in its way at once."""
    if request.source == request.destination:
        raise UsageError(
            f"`{request.source}` cannot be promoted to itself", hint="name two environments: `--from dev --to prod`"
        )
    loaded = store.load(LoadRequest(environments=(request.source, request.destination), definitions_of_pointers=True))
    source, destination = loaded.revisions[request.source], loaded.revisions[request.destination]
    _check_environments(source, destination)
    graph = recorded_graph(source, loaded.definitions)
    chosen = select(graph, request.select, (), frozenset()) if request.select else None
    found = promotion(source, destination, graph, chosen, includes_stale_upstreams=request.include_stale_upstreams)
    gaps = _gaps(found, graph, loaded, settings, request.now)
    problems: list[LaminaError] = []
    if source.status != "finalized" and not request.allow_partial:
        problems.append(
            PromotionRefused(
                f"environment `{source.environment}` is {source.status}: not everything in it is built",
                hint=f"`lamina build {source.environment}` completes it; `--allow-partial` promotes it as it is",
            )
        )
    if not request.allow_gaps:
        problems.extend(_refusals(gaps, request))
    raise_all(problems)
    names = {move.pointer.physical for move in found.moves}
    marks = {name: facts.mark for name, facts in loaded.facts.items() if name in names}
    return PromoteReport(promotion=found, order=tuple(graph.models), gaps=gaps, marks=marks)


def look_again(
    store: StateStore, settings: ProjectSettings, request: PromoteRequest, decided: PromoteReport
) -> tuple[Requirement, ...]:
    """What must still be true when the pointers move; raises where the promotion would now be refused or another one.

    Waiting for the lease may have taken long, and what is promoted may have been computed anew meanwhile.
    """
    now = decide_promotion(store, settings, request)
    if (now.promotion.decision, now.gaps) != (decided.promotion.decision, decided.gaps):
        raise PlanOutdated(
            f"`{request.source}` or `{request.destination}` was changed by another command after this was looked at",
            hint="run the command again; it looks at what is recorded now",
        )
    source = now.promotion.source
    marks = (MarkIs(physical=physical, mark=mark) for physical, mark in now.marks.items())
    return (RevisionIs(environment=source.environment, number=source.number), *marks)


def check_tables(engine: Engine, found: Promotion) -> None:
    """Refuse to point to a version that is not there."""
    names = [move.pointer.physical for move in found.moves if move.pointer.physical is not None]
    shown = engine.published(names) if names else {}
    raise_all(
        PromotionRefused(
            f"`{name}` is recorded and not in the catalog; something other than Lamina removed it",
            hint=f"`lamina build {found.source.environment} --force` makes it again",
        )
        for name, generation in shown.items()
        if generation is None
    )


def _check_environments(source: Revision, destination: Revision) -> None:
    if source.number == 0 or not source.pointers:
        raise UnknownEnvironment(
            f"environment `{source.environment}` does not exist",
            hint=f"`lamina build {source.environment}` creates it; `lamina env list` shows what there is",
        )
    for revision in (source, destination):
        if revision.status == "detached":
            raise EnvironmentDetached(
                f"environment `{revision.environment}` is detached",
                hint=f"`lamina state attach {revision.environment}` lets commands change it again",
            )


def _gaps(
    found: Promotion, graph: Graph, loaded: Loaded, settings: ProjectSettings, now: Instant
) -> dict[NodeName, Intervals]:
    """For every node that moves, time that should be there and is not: from its start to as far as anyone reaches."""
    starts = starts_of(graph, now, settings.default_start)
    gaps: dict[NodeName, Intervals] = {}
    for move in found.moves:
        kind = graph.models[move.node].kind
        if not has_intervals(kind) and not folds(kind):
            continue
        new, former = _facts(loaded, move.pointer), _facts(loaded, move.previous)
        covered = new.covered if new else EMPTY
        before = former.recorded if former else EMPTY
        ends = [span.end for time in (covered, before) if (span := time.span()) is not None]
        start = starts[move.node]
        # A table that is made run by run may begin later than its start, and stays so.
        is_expected = has_intervals(kind) and ends and start < max(ends)
        expected = Intervals.of([Interval(start, max(ends))]) if is_expected else EMPTY
        lacking = expected.union(before).minus(covered)
        if not lacking.is_empty:
            gaps[move.node] = lacking
    return gaps


def _facts(loaded: Loaded, pointer: Pointer | None) -> VersionFacts | None:
    return loaded.facts.get(pointer.physical) if pointer is not None and pointer.physical is not None else None


def _refusals(gaps: Mapping[NodeName, Intervals], request: PromoteRequest) -> Iterator[PromotionRefused]:
    for name, lacking in gaps.items():
        ranges = ", ".join(str(interval) for interval in list(lacking)[:3])
        more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
        yield PromotionRefused(
            f"`{name}` lacks {ranges}{more} in `{request.source}`",
            hint=f"`lamina build {request.source}` fills the gaps; `--allow-gaps` promotes it as it is",
            node=name,
        )
