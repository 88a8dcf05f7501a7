"""Builders of graphs and plan inputs for tests of the pure rooms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamina.environments.pointers import Pointer, Revision
from lamina.errors import Location
from lamina.graph.dag import Graph, in_dependency_order
from lamina.graph.kinds import Full, IncrementalByTimeRange, TimeColumn
from lamina.graph.model import Column, Model, Source, SqlBody, SqlText
from lamina.graph.names import NodeName
from lamina.identity.fingerprint import has_object, versions_of
from lamina.identity.naming import PhysicalName, physical_name
from lamina.planning.inputs import Flags, PlanInputs, VersionFacts
from lamina.sql.fragment import Fragment
from lamina.timeline.interval import EMPTY, Instant, Intervals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lamina.graph.kinds import Kind


def instant(text: str) -> Instant:
    """An instant from ISO text; a date means its midnight."""
    return Instant.parse_iso(text)


def ranges(*pairs: tuple[str, str]) -> Intervals:
    """A set of time from pairs of ISO text."""
    return Intervals.from_pairs(pairs)


def daily(**settings: Any) -> IncrementalByTimeRange:
    """An incremental kind on the column `ds`."""
    return IncrementalByTimeRange(time_column=TimeColumn(name="ds"), **settings)


def model(
    name: str,
    reads: Iterable[str] = (),
    *,
    kind: Kind | None = None,
    query: str | None = None,
    columns: tuple[str, ...] = ("ds", "x"),
    **settings: Any,
) -> Model:
    """A SQL model that reads others; the query only matters for identity."""
    text = query or f"SELECT ds, x FROM {', '.join(reads) or 'nothing'}"
    location = Location(file=f"models/{name}.sql", line=1, column=1)
    return Model(
        name=NodeName(name),
        kind=kind or Full(),
        body=SqlBody(query=SqlText(source=Fragment(text=text, location=location), expanded=text), canonical=text),
        reads=tuple(sorted(NodeName(read) for read in reads)),
        references={read: NodeName(read) for read in reads},
        location=location,
        columns=tuple(Column(name=column) for column in columns),
        **settings,
    )


def graph(*models: Model) -> Graph:
    """A graph in dependency order; what no model defines is a source."""
    by_name = {entry.name: entry for entry in models}
    sources = {read: Source(name=read) for entry in models for read in entry.reads if read not in by_name}
    return Graph(models=in_dependency_order(by_name), sources=sources)


class World:
    """What state knows, for planning tests: environments and facts that grow as plans are carried out."""

    def __init__(self, *models: Model, environment: str = "prod") -> None:
        self.graph = graph(*models)
        self.environment = environment
        self.revisions: dict[str, Revision] = {}
        self.facts: dict[PhysicalName, VersionFacts] = {}
        self.definitions: dict[str, Model] = {}

    def change(self, *models: Model) -> None:
        """The project's files now define these models."""
        self.graph = graph(*models)

    def inputs(
        self, now: str, *, command: str = "build", environment: str = "prod", flags: Flags | None = None
    ) -> PlanInputs:
        """Everything a plan is made from."""
        versions = versions_of(self.graph)
        revision = self.revisions.get(environment, Revision(environment=environment))
        baseline = self.revisions.get("prod", Revision(environment="prod"))
        before = baseline.pointers if revision.number == 0 else revision.pointers
        previous = {
            name: self.definitions[pointer.definition_id]
            for name, pointer in before.items()
            if pointer.definition_id in self.definitions
        }
        old = versions_of(Graph(models=in_dependency_order(previous)))
        return PlanInputs(
            command=command,
            graph=self.graph,
            versions=versions,
            environment=revision,
            baseline=baseline,
            baseline_name="prod",
            facts=self.facts,
            physical={
                name: physical_name(name, versions[name].version)
                for name, entry in self.graph.models.items()
                if has_object(entry)
            },
            now=instant(now),
            flags=flags or Flags(),
            previous=previous,
            previous_fingerprints={name: version.fingerprint for name, version in old.items()},
        )

    def carry_out(self, plan: Any, failing: Iterable[str] = ()) -> None:
        """Record what the plan's steps would do when they succeed, and only what was asked for comes out different."""
        for step in plan.steps:
            is_idle = step.action not in {"build", "seed_and_build"}
            if step.physical is None or is_idle or step.node in failing:
                continue
            version = plan.versions[step.node]
            former = step.continues.facts if step.continues else self.facts.get(step.physical)
            self.facts[step.physical] = VersionFacts(
                physical=step.physical,
                node=step.node,
                version=version.version,
                definition_id=version.definition_id,
                fingerprint=version.fingerprint,
                mark=(former.mark if former else 0) + 1,
                head_sequence=(former.head_sequence if former else 0) + 1,
                covered=(former.covered if former else EMPTY).union(step.intervals),
                built_at=plan.now,
                reads=self._reads(plan, step.node),
            )
        for name, entry in plan.models.items():
            self.definitions[plan.versions[name].definition_id] = entry
        former_revision = self.revisions.get(plan.environment, Revision(environment=plan.environment))
        self.revisions[plan.environment] = Revision(
            environment=plan.environment,
            number=former_revision.number + 1,
            status=plan.final_status,
            pointers=plan.pointers,
            created_at=plan.now,
        )

    def _reads(self, plan: Any, name: NodeName) -> Any:
        from lamina.planning.inputs import Read
        from lamina.planning.readiness import stored_parents

        places: Mapping[NodeName, PhysicalName] = {
            step.node: step.physical for step in plan.steps if step.physical is not None
        }
        return tuple(
            Read(physical=places[parent], sequence=self.facts[places[parent]].head_sequence)
            for parent in stored_parents(Graph(models=plan.models), name)
            if places[parent] in self.facts
        )

    def covered(self, name: str) -> Intervals:
        """What is recorded for the version that the project defines."""
        version = versions_of(self.graph)[NodeName(name)]
        facts = self.facts.get(physical_name(NodeName(name), version.version))
        return facts.covered if facts else EMPTY


def pointer(version: str = "v") -> Pointer:
    """Some pointer."""
    return Pointer(version=version, definition_id=version, physical=PhysicalName(f"s__lamina.t__v_{version}"))  # type: ignore[arg-type]
