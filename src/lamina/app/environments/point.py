"""Moving an environment's pointers: decided in state first, views follow, anyone may finish it.

The steps are those of `docs/concepts/write-protocol.md`, section 5.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from lamina.app.environments.virtual_update import (
    Definitions,
    Followed,
    VirtualNames,
    failed,
    models_to_update,
    statements_request,
)
from lamina.app.leases.recover import close_lost, require_live
from lamina.app.leases.uninterrupted import uninterrupted
from lamina.app.planning.recorded_code import check_definitions, put_together
from lamina.app.ports.engine import HideView, ShowView
from lamina.app.ports.events import Recovering, StatementsNotRun, StatementsRun, ViewsChanged
from lamina.app.ports.facts import RevisionFollowed, RevisionWritten
from lamina.app.ports.loaded import LoadRequest, RevisionsSince, environment_resource
from lamina.app.ports.requirements import LeaseIsCurrent, RevisionIs
from lamina.environments.pointers import Revision
from lamina.errors import (
    Cancelled,
    CommitRefused,
    DefinitionAltered,
    EngineError,
    InvalidProject,
    LeaseHeld,
    LeaseLost,
    PlanOutdated,
)
from lamina.graph.dag import Graph
from lamina.identity.naming import logical_name
from lamina.timeline.interval import MICROS_PER_HOUR, Instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lamina.app.leases.command_ports import CommandPorts
    from lamina.app.ports.facts import Fact
    from lamina.app.ports.loaded import Lease, LeaseGrant
    from lamina.app.ports.machine import Clock
    from lamina.app.ports.requirements import Requirement
    from lamina.environments.pointers import Pointer
    from lamina.errors import LaminaError
    from lamina.graph.kinds import Setting
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName

# By how much the clocks of two machines that change one environment may differ: when a command began and when revisions
# were made is told by theirs. Two machines that take local time for UTC are up to 26 hours apart.
_CLOCK_SKEW_MICROS = 48 * MICROS_PER_HOUR


def view_changes(
    environment: str,
    unsuffixed: str,
    before: Mapping[NodeName, Pointer],
    after: Mapping[NodeName, Pointer],
    order: Iterable[NodeName],
    properties_of: Callable[[Pointer], Mapping[str, Setting]],
) -> tuple[ShowView | HideView, ...]:
    """The views that differ between two sets of pointers: in the given order, then by name, vanished ones last.

    `properties_of` answers what a node's definition says about its view; it is asked only where pointers differ.
    """

    def differs(name: NodeName, pointer: Pointer) -> bool:
        former = before.get(name)
        if former is None or former.physical != pointer.physical:
            return True
        is_redefined = former.definition_id != pointer.definition_id
        return is_redefined and properties_of(former) != properties_of(pointer)

    shown = [
        ShowView(
            logical=logical_name(name, environment, unsuffixed),
            physical=physical,
            properties=properties_of(after[name]),
        )
        for name in dict.fromkeys((*order, *sorted(after)))
        if name in after and (physical := after[name].physical) is not None and differs(name, after[name])
    ]
    hidden = [
        HideView(logical=logical_name(name, environment, unsuffixed))
        for name in sorted(before)
        if before[name].physical is not None and (name not in after or after[name].physical is None)
    ]
    return (*shown, *hidden)


def environments_of(leases: Iterable[Lease]) -> set[str]:
    """The environments that leases are about."""
    parts = (lease.resource.partition(":") for lease in leases)
    return {name for sort, _, name in parts if sort == "environment"}


class EnvironmentPointer:
    """Moves pointers of one environment under its lease; `execution` is the time that users' statements see."""

    def __init__(self, ports: CommandPorts, execution: Instant) -> None:
        self._ports, self._emit, self._execution = ports, ports.emit, execution
        self._definitions = Definitions(ports.store)
        self._is_stopping = threading.Event()
        self._is_running_statements = threading.Event()

    def move(
        self,
        before: Revision,
        after: Revision,
        order: Iterable[NodeName],
        recorded: tuple[Fact, ...] = (),
        look: Callable[[], tuple[Requirement, ...]] = tuple,
    ) -> Followed:
        """Write the next revision and let the views follow, and after them the statements that users gave them.

        `before` must still be the newest revision, else `PlanOutdated`; so must be true what `look` requires, which is
        asked once the lease is held and may refuse by raising. Where views may
        differ from `before`, because it was not followed or a lease was lost, all of them are compared with what the
        catalog shows. A statement that fails is part of the answer: views and pointers are moved, the revision is not
        followed, and the next command runs the statements again. An interrupt lets the views finish, not statements.
        """
        return uninterrupted(lambda: self._move(before, after, order, recorded, look), self._stop)

    def _stop(self) -> None:
        """Decide nothing more, wait for nobody, and leave users' statements to the next command."""
        self._is_stopping.set()
        if self._is_running_statements.is_set():
            self._ports.engine.cancel()
        self._ports.keeper.give_up_waiting()

    def _move(
        self,
        before: Revision,
        after: Revision,
        order: Iterable[NodeName],
        recorded: tuple[Fact, ...],
        look: Callable[[], tuple[Requirement, ...]],
    ) -> Followed:
        ports = self._ports
        grant = ports.keeper.take(environment_resource(after.environment))
        ports.reach("promote.taken")
        try:
            with ports.keeper.holding(grant) as token:
                if self._is_stopping.is_set():
                    raise Cancelled(f"pointing environment `{after.environment}` was cancelled")
                self._decide(before, after, recorded, (token, *look()))
                is_certain = before.is_followed and not grant.lost
                changes = self._between(before.pointers, after, order) if is_certain else self._all(grant, after, order)
                series = (before, after) if before.is_followed else self._unfollowed(after.environment)
                followed = self._follow(grant, series, changes)
                if grant.lost:
                    close_lost(ports, grant, None)
        except LeaseLost:
            self._lose(after.environment, grant.lease)
            raise
        if followed.views:
            self._emit(ViewsChanged(environment=after.environment, views=followed.views))
        return followed

    def _decide(
        self,
        before: Revision,
        after: Revision,
        recorded: tuple[Fact, ...],
        requires: tuple[Requirement, ...],
    ) -> None:
        try:
            self._ports.store.commit(
                [*recorded, RevisionWritten(revision=after)],
                [RevisionIs(environment=after.environment, number=before.number), *requires],
            )
        except LeaseLost:
            raise
        except CommitRefused as error:
            raise PlanOutdated(
                f"environment `{after.environment}` was changed by another command after this plan was made",
                hint="run the command again; it plans anew from what is recorded now",
            ) from error
        self._ports.reach("promote.pointer")

    def follow_up(self, environment: str, *, waits: bool = False, compares: bool = False) -> Followed:
        """Finish a revision whose views or statements were not all set, or were set late, when its command ended.

        One that another command may still be at work on is left to it, or waited for. With `compares`, views are
        compared with the pointers although nothing says that they differ.
        """
        return uninterrupted(lambda: self._follow_up(environment, waits, compares), self._stop)

    def _follow_up(self, environment: str, waits: bool, compares: bool) -> Followed:
        keeper, resource = self._ports.keeper, environment_resource(environment)
        try:
            grant = keeper.take(resource) if waits else keeper.take_now(resource)
        except LeaseHeld as error:
            if waits:
                raise
            return Followed(left_to=error)
        try:
            with self._ports.keeper.holding(grant):
                return self._set_right(environment, grant, None, compares=compares)
        except LeaseLost:
            self._lose(environment, grant.lease)
            return Followed()

    def _set_right(self, environment: str, grant: LeaseGrant, own: Lease | None, *, compares: bool = False) -> Followed:
        followed = Followed()
        request = LoadRequest(environments=(environment,), facts_of_pointers=False)
        newest = self._ports.store.load(request).revisions[environment]
        if not newest.is_followed or ((grant.lost or compares) and newest.number):
            series = (newest,) if newest.is_followed else self._unfollowed(environment)
            if own is not None:
                # Statements of this process's own may have run after those of the command that took the lease over.
                series = self._since(environment, own.owner.started_at)
            followed = self._follow(grant, series, self._all(grant, newest, ()))
            if not newest.is_followed or followed.views:
                self._emit(Recovering(resource=environment, detail="its views were set to the recorded pointers"))
        if grant.lost:
            close_lost(self._ports, grant, own)
        return followed

    def _lose(self, environment: str, lost: Lease) -> None:
        """Take the lost lease like anyone would and set right what late statements under it may have changed."""
        self._ports.reach("lose.refused")
        try:
            grant = self._ports.keeper.take_now(lost.resource)
        except LeaseHeld:
            return
        with self._ports.keeper.holding(grant):
            self._ports.reach("lose.taken")
            self._set_right(environment, grant, lost)
            self._ports.reach("lose.view_set")

    def _between(
        self, before: Mapping[NodeName, Pointer], after: Revision, order: Iterable[NodeName]
    ) -> tuple[ShowView | HideView, ...]:
        changed = [
            each
            for name, pointer in after.pointers.items()
            if pointer.physical is not None and pointer != before.get(name)
            for each in (pointer, before.get(name))
        ]
        definitions = self._definitions.of(each.definition_id for each in changed if each is not None)

        def properties_of(pointer: Pointer) -> Mapping[str, Setting]:
            found = definitions.get(pointer.definition_id)
            return found.virtual_properties if found is not None else {}

        return view_changes(after.environment, self._ports.unsuffixed, before, after.pointers, order, properties_of)

    def _all(self, grant: LeaseGrant, revision: Revision, order: Iterable[NodeName]) -> tuple[ShowView | HideView, ...]:
        """Every view of the environment as it must be, those of nodes it has no more included.

        A view can still be there from any revision since the last one that was followed, and, where leases were lost,
        from any that a late statement under them may be about.
        """
        oldest = min((lease.owner.started_at for lease in grant.lost), default=None)
        since = RevisionsSince(
            environment=revision.environment,
            moment=Instant(oldest.micros - _CLOCK_SKEW_MICROS) if oldest is not None else None,
        )
        earlier: dict[NodeName, Pointer] = {}
        for one in self._series(since):
            earlier |= {name: pointer for name, pointer in one.pointers.items() if name not in revision.pointers}
        return self._between(earlier, revision, order)

    def _unfollowed(self, environment: str) -> tuple[Revision, ...]:
        """The last revision that was followed, or one without pointers, and all after it."""
        series = self._series(RevisionsSince(environment=environment))
        return series if series[0].is_followed else (Revision(environment=environment), *series)

    def _since(self, environment: str, moment: Instant) -> tuple[Revision, ...]:
        """What was shown at a moment, or one without pointers where that is not certain, and all after it."""
        before = Instant(moment.micros - _CLOCK_SKEW_MICROS)
        series = self._series(RevisionsSince(environment=environment, moment=before))
        is_certain = series[0].is_followed and series[0].number > 1
        return series if is_certain else (Revision(environment=environment), *series)

    def _series(self, since: RevisionsSince) -> tuple[Revision, ...]:
        request = LoadRequest(revisions_since=(since,), facts_of_pointers=False)
        return self._ports.store.load(request).series[since.environment]

    def _follow(
        self, grant: LeaseGrant, series: Sequence[Revision], changes: tuple[ShowView | HideView, ...]
    ) -> Followed:
        """Set the views of the last revision of the series, run what follows them, and say that it is followed."""
        ports, revision = self._ports, series[-1]
        half = (len(changes) + 1) // 2
        changed = 0
        for part in (changes[:half], changes[half:]):
            if part:
                require_live(ports.keeper, grant.lease)
                changed += ports.engine.show(part)
                ports.reach("promote.between_views")
        ports.reach("promote.views")
        statements, failures = self._run_statements(grant, revision, models_to_update(self._definitions, series))
        ports.reach("promote.statements")
        if not failures:
            ports.store.commit(
                [RevisionFollowed(environment=revision.environment, number=revision.number)],
                [LeaseIsCurrent(resource=grant.lease.resource, token=grant.lease.token)],
            )
            ports.reach("promote.followed")
        return Followed(views=changed, statements=statements, failures=failures)

    def _run_statements(
        self, grant: LeaseGrant, revision: Revision, models: Mapping[NodeName, Model]
    ) -> tuple[dict[NodeName, int], dict[NodeName, LaminaError]]:
        """Run the statements of every model; one that fails does not keep the others' from running."""
        ports, environment = self._ports, revision.environment
        names = VirtualNames(revision=revision, unsuffixed=ports.unsuffixed, naming=ports.naming)
        run: dict[NodeName, int] = {}
        failures: dict[NodeName, LaminaError] = {}
        self._is_running_statements.set()
        for name, model in models.items():
            require_live(ports.keeper, grant.lease)
            if self._is_stopping.is_set():
                raise Cancelled(f"the statements that follow the views of `{environment}` were cancelled")
            try:
                whole = put_together(ports.store, ports.project, {name: model})[name]
                check_definitions(ports.store, Graph(models={name: whole}), [name], revision.pointers)
                request = statements_request(whole, names, self._execution, ports.load_macros)
                ports.engine.execute(request)
            except Cancelled:
                raise
            except (EngineError, InvalidProject, DefinitionAltered) as error:
                failures[name] = failed(model, environment, error)
                self._emit(StatementsNotRun(environment=environment, node=name, error=failures[name]))
            else:
                run[name] = len(request.statements)
        self._is_running_statements.clear()
        if run:
            self._emit(StatementsRun(environment=environment, models=len(run)))
        return run, failures


def next_revision(before: Revision, pointers: Mapping[NodeName, Pointer], status: str, clock: Clock) -> Revision:
    """The revision after `before` with other pointers."""
    return Revision(
        environment=before.environment,
        number=before.number + 1,
        status=status,  # type: ignore[arg-type]  # statuses come from planning
        pointers=pointers,
        created_at=clock.now(),
        is_followed=False,
    )
