"""Bringing an environment back to what is recorded: rows that are gone, and views that show something else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lamina.app.building.apply_plan import lease_keeper
from lamina.app.documents import SCHEMA_VERSION
from lamina.app.environments.point import EnvironmentPointer
from lamina.app.leases.command_ports import command_ports
from lamina.app.leases.recover import set_views_to_heads
from lamina.app.planning.gather import load_recorded
from lamina.app.ports.facts import RunFinished, RunStarted
from lamina.app.ports.loaded import LoadRequest
from lamina.app.requests import PlanRequest
from lamina.app.writing.batch_request import WriteTarget
from lamina.app.writing.write_version import VersionWriter
from lamina.errors import StorageMissing, raise_all
from lamina.graph.formats import formats_of
from lamina.graph.kinds import View
from lamina.planning.inputs import Flags
from lamina.planning.replay import keeps_history

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from lamina.app.leases.command_ports import CommandPorts
    from lamina.app.planning.storage import Storage
    from lamina.app.ports.bundle import Ports
    from lamina.app.ports.project import ProjectSettings
    from lamina.app.report import Report
    from lamina.environments.pointers import Revision
    from lamina.graph.dag import Graph
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.timeline.interval import Instant

Outcome: TypeAlias = Literal["repaired", "failed", "lost"]
Missing: TypeAlias = "Mapping[NodeName, tuple[str, ...]]"
"""Models whose rows are gone, with the places where something is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """One thing that was not as recorded, and what became of it."""

    name: str
    type: Literal["rows", "view"]
    status: Outcome
    message: str
    missing: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """A row of the document that `--json` prints."""
        return {
            "name": self.name,
            "type": self.type,
            "status": self.status,
            "message": self.message,
            "missing": list(self.missing),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """Everything that was found."""

    project: str
    environment: str
    rows: tuple[Repaired, ...]

    @property
    def status(self) -> str:
        """In the contract's words."""
        if not self.rows:
            return "nothing_to_do"
        return "succeeded" if all(row.status == "repaired" for row in self.rows) else "failed"

    @property
    def exit_code(self) -> int:
        """What the command should answer."""
        return 1 if self.status == "failed" else 0

    def to_dict(self) -> dict[str, Any]:
        """The document that `--json` prints."""
        return {
            "schema_version": SCHEMA_VERSION,
            "command": "state repair",
            "project": self.project,
            "environment": self.environment,
            "status": self.status,
            "repair": [row.to_dict() for row in self.rows],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One environment, and what bringing it back takes."""

    ports: Ports
    settings: ProjectSettings
    storage: Storage
    environment: str
    now: Instant
    compute: Callable[[PlanRequest], Report]
    """Plans and carries out."""
    run_id: str

    def carry_out(self) -> RepairReport:
        """Put together what can be, compute the rest by the recorded code, and set views right."""
        before, _, _, graph = load_recorded(self.ports.store, self.settings, self.environment)
        gone = self._gone(graph, before.places)
        there = {name: place for name, place in before.places.items() if name not in gone}
        mended = self._mend(before, graph, there)
        lost = {name: row.missing for name, row in mended.items() if row.status != "repaired"}
        again = to_compute_again(graph, {**gone, **lost})
        built = self.compute(self._request(again, frozenset({*gone, *lost}))) if again else None
        after, views = self._set_views(graph)
        left = {*self._gone(graph, after.places)}
        left |= {name for name in lost if after.places.get(name) == before.places[name]}
        rows = [row for name, row in mended.items() if name not in lost]
        rows += repaired_rows(graph, {**gone, **lost}, left, built)
        return RepairReport(project=self.settings.name, environment=self.environment, rows=(*rows, *views))

    def _gone(self, graph: Graph, places: Mapping[NodeName, PhysicalName]) -> dict[NodeName, tuple[str, ...]]:
        found = self.storage.missing(graph.models, places, looks_deeper=True)
        return found | self.storage.tables_missing_far(graph.models, places)

    def _request(self, again: tuple[NodeName, ...], repairs: frozenset[NodeName]) -> PlanRequest:
        flags = Flags(select=again, ignore_cron=True)
        return PlanRequest(command="run", now=self.now, environment=self.environment, flags=flags, repairs=repairs)

    def _mend(
        self, revision: Revision, graph: Graph, places: Mapping[NodeName, PhysicalName]
    ) -> dict[NodeName, Repaired]:
        """Give tables that lack files of others the same rows in files of their own, where these can be found."""
        lending = self.storage.lending(graph.models, places)
        if not lending:
            return {}
        ports = self.ports
        keeper = lease_keeper(ports, ports.engine.prepare("repair", formats_of(graph.models.values())))
        try:
            files = self.storage.missing_files(ports.engine, lending, places)
            if not files:
                return {}
            begun = RunStarted(
                run_id=self.run_id,
                command="repair",
                environment=revision.environment,
                started_at=ports.clock.now(),
                execution_time=self.now,
            )
            ports.store.commit([begun])
            status, writing = "failed", command_ports(ports, keeper, self.settings)
            try:
                rows = {name: self._mend_one(writing, graph, places, name, files[name]) for name in sorted(files)}
                status = "succeeded"
            finally:
                ended = RunFinished(run_id=self.run_id, status=status, finished_at=ports.clock.now())
                ports.store.commit([ended])
        finally:
            keeper.close()
        return rows

    def _mend_one(
        self,
        ports: CommandPorts,
        graph: Graph,
        places: Mapping[NodeName, PhysicalName],
        name: NodeName,
        files: tuple[str, ...],
    ) -> Repaired:
        # Read anew for each: mending one moves on what its readers, which may be mended next, have followed.
        facts = ports.store.load(LoadRequest(all_environments=True)).facts
        own = facts[places[name]]
        target = WriteTarget(
            graph=graph,
            model=graph.models[name],
            version=own.version,
            physical=own.physical,
            physical_of=places,
            execution=self.now,
            run_id=self.run_id,
            mark=own.mark,
            recorded=(),
        )
        writer = VersionWriter(ports, target)
        try:
            writer.mend(own, facts.values())
        except StorageMissing as error:
            return Repaired(name=name, type="rows", status="lost", message=error.message, missing=files)
        finally:
            writer.release()
        message = "put together from what is left of its files and those that were written in their place"
        return Repaired(name=name, type="rows", status="repaired", message=message, missing=files)

    def _set_views(self, graph: Graph) -> tuple[Revision, tuple[Repaired, ...]]:
        ports, name = self.ports, self.environment
        keeper = lease_keeper(ports, ports.engine.prepare("repair", formats_of(graph.models.values())))
        try:
            writing = command_ports(ports, keeper, self.settings)
            revision = ports.store.load(LoadRequest(environments=(name,), facts_of_pointers=False)).revisions[name]
            views = repair_views(writing, revision)
            followed = EnvironmentPointer(writing, self.now).follow_up(name, waits=True, compares=True)
            raise_all(followed.failures.values())
        finally:
            keeper.close()
        if followed.views:
            said = f"{followed.views} of its views showed something else"
            views += (Repaired(name=name, type="view", status="repaired", message=said),)
        return revision, views


def to_compute_again(graph: Graph, missing: Iterable[NodeName]) -> tuple[NodeName, ...]:
    """Models whose rows can be computed again, and the views over them, which name what they read."""
    again = {name for name in missing if not keeps_history(graph.models[name])}
    for name, model in graph.models.items():
        if isinstance(model.kind, View) and not again.isdisjoint(graph.parents(name)):
            again.add(name)
    return tuple(sorted(again))


def repaired_rows(
    graph: Graph, before: Missing, after: Container[NodeName], built: Report | None
) -> tuple[Repaired, ...]:
    """What became of rows that were gone `before`, and of which some may be gone `after` what was built."""
    results = {} if built is None else {node["name"]: node for node in built.to_dict()["nodes"]}

    def one(name: NodeName, places: tuple[str, ...]) -> Repaired:
        node = results.get(name, {})
        status: Outcome = "repaired"
        if name not in after:
            is_computed = node.get("status") == "succeeded"
            message = f"computed again, {node['rows'] or 0:,} rows" if is_computed else "shown as the baseline has them"
        elif keeps_history(graph.models[name]):
            status = "lost"
            message = (
                "it keeps its history, which cannot be computed again: put back from a backup what is gone, or "
                f"`--reset {name}` begins from scratch"
            )
        else:
            status, error = "failed", node.get("error") or {}
            message = error.get("message") or "it was not computed: what it reads is not there"
        return Repaired(name=name, type="rows", status=status, message=message, missing=places)

    return tuple(one(name, places) for name, places in before.items())


def repair_views(ports: CommandPorts, revision: Revision) -> tuple[Repaired, ...]:
    """Have the views of versions show what their heads say."""
    places = {place: name for name, place in revision.places.items()}
    heads = ports.store.load(LoadRequest(heads=tuple(places), facts_of_pointers=False)).heads
    changed = set_views_to_heads(ports, tuple(heads))
    return tuple(
        Repaired(name=places[place], type="view", status="repaired", message=f"`{place}` showed something else")
        for place in changed
    )
