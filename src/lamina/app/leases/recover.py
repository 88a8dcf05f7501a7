"""Bringing to an end what a command that died or lost its lease left behind.

The rules are those of `docs/concepts/write-protocol.md`, section 4: open attempts published nothing and are aborted;
a decided publish is carried out by whoever comes next; a lost lease means the view may have gone back.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from lamina.app.leases.uninterrupted import uninterrupted
from lamina.app.ports.engine import ShowView
from lamina.app.ports.events import Recovering
from lamina.app.ports.facts import AttemptAborted, AttemptDone, AttemptRetracting, LeaseClosed
from lamina.app.ports.loaded import LoadRequest, version_resource
from lamina.app.ports.published import AddPartitions, CommitRows, FastForward, InPlace, SetView, WriteThrough, switch_to
from lamina.app.ports.requirements import AttemptIs, LeaseIsCurrent, NothingPending, read_whole
from lamina.errors import (
    Cancelled,
    CommitRefused,
    LaminaError,
    LeaseHeld,
    LeaseLost,
    PlanOutdated,
    PublishRefused,
    StateError,
    raise_all,
)
from lamina.graph.formats import DELTA, ICEBERG
from lamina.graph.sealing import unsealed_text
from lamina.identity.naming import PhysicalName, logical_name
from lamina.timeline.interval import MICROS_PER_HOUR, MICROS_PER_MINUTE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from lamina.app.leases.command_ports import CommandPorts
    from lamina.app.leases.keeper import LeaseKeeper
    from lamina.app.ports.engine import Landing
    from lamina.app.ports.facts import Fact
    from lamina.app.ports.loaded import Lease, LeaseGrant, Unsettled
    from lamina.app.ports.machine import Processes
    from lamina.app.ports.published import Attempt, Head, Publish
    from lamina.app.ports.state import StateStore
    from lamina.timeline.interval import Instant

T = TypeVar("T")

SETTLE_MICROS = 24 * MICROS_PER_HOUR
"""After this long a statement of a process that lost its lease can no longer land."""

QUIET_MICROS = 15 * MICROS_PER_MINUTE
"""After this long a statement that a server still carries out for a process that is gone hardly lands any more."""


def recover_version(ports: CommandPorts, grant: LeaseGrant, own: Lease | None = None) -> bool:
    """Finish or abort what the grant lists; the lease stays with the caller. Answers whether its view had gone back.

    `own` is a lease that this process itself lost; nothing of it is under way any more, so it is closed at once.
    """
    token = LeaseIsCurrent(resource=grant.lease.resource, token=grant.lease.token)
    aborted: list[Fact] = [
        AttemptAborted(number=attempt.number, physical=attempt.physical, reason="its command ended before it decided")
        for attempt in grant.unfinished
        if attempt.status == "open"
    ]
    if aborted:
        ports.store.commit(aborted, [token])
        ports.reach("recover.aborted")
    for attempt in grant.unfinished:
        if attempt.status in {"decided", "retracting"} and attempt.publish is not None:
            _settle(ports, grant.lease, attempt, attempt.publish, token)
    if not grant.lost:
        return False
    had_gone_back = _set_view_to_head(ports, grant.lease)
    close_lost(ports, grant, own)
    return had_gone_back


def _settle(ports: CommandPorts, lease: Lease, attempt: Attempt, publish: Publish, token: LeaseIsCurrent) -> None:
    """Carry out what was decided; what nobody else can carry out, or its table refuses for good, is taken back."""
    is_retracting = attempt.status == "retracting"
    if is_retracting or isinstance(publish, WriteThrough):
        reason = "its command ended while it wrote"
        retract(ports, token, attempt.number, publish, reason, is_begun=is_retracting)
        return
    try:
        snapshot = publish_under(ports, lease, publish)
    except PublishRefused as error:
        retract(ports, token, attempt.number, publish, error.message)
        return
    ports.reach("recover.published")
    ports.store.commit(
        [done_by(attempt.number, publish, snapshot)], [token, AttemptIs(number=attempt.number, status="decided")]
    )


def done_by(number: int, publish: Publish, snapshot: int | None) -> AttemptDone:
    """What is recorded once a publish is carried out; a change in place moves the head now."""
    if not isinstance(publish, InPlace):
        return AttemptDone(number=number, physical=publish.physical)
    return AttemptDone(
        number=number,
        physical=publish.physical,
        landed=replace(publish.head, snapshot=publish.head.snapshot if snapshot is None else snapshot),
        rewritten=publish.rewritten,
        is_asked=publish.is_asked,
    )


def retract(
    ports: CommandPorts,
    token: LeaseIsCurrent,
    number: int,
    publish: Publish,
    reason: str,
    *,
    is_begun: bool = False,
    also_landed: Callable[[Landing], tuple[Fact, ...]] = lambda _landing: (),
) -> Landing | None:
    """Take back a decided publish: keep it from landing any more, then record whether it had landed before.

    That it is being taken back is recorded first. Else the next one to look would take what keeps it out for itself.
    Answers where it landed if it had; `also_landed` is recorded with it then.
    """
    if not is_begun:
        ports.store.commit(
            [AttemptRetracting(number=number, physical=publish.physical)],
            [token, AttemptIs(number=number, status="decided")],
        )
    ports.reach("recover.retracting")
    landing = ports.engine.retract(publish)
    ports.reach("recover.fenced")
    if landing is not None and isinstance(publish, InPlace):
        _show_if_changed(ports, publish)
    facts: list[Fact] = (
        [AttemptAborted(number=number, physical=publish.physical, reason=reason)]
        if landing is None
        else [done_by(number, publish, landing.snapshot), *also_landed(landing)]
    )
    ports.store.commit(facts, [token, AttemptIs(number=number, status="retracting")])
    return landing


def publish_under(ports: CommandPorts, lease: Lease, publish: Publish, *, has_new_columns: bool = True) -> int | None:
    """Carry out a publish, unless by this process's own clock the lease has run out: then lose instead.

    A view's columns are fixed when it is made, so a publish with other columns than before is carried out only once
    the version's view and the environments' views above it have followed.
    """
    require_live(ports.keeper, lease)
    snapshot = ports.engine.publish(_with_values(ports, publish))
    if not has_new_columns or isinstance(publish, AddPartitions):
        return snapshot
    if isinstance(publish, InPlace):
        _show_if_changed(ports, publish)
    else:
        _refresh_views(ports, publish.physical)
    return snapshot


def _with_values(ports: CommandPorts, publish: Publish) -> Publish:
    """The publish with values of the environment in the query of a view."""
    if not isinstance(publish, SetView):
        return publish
    environ, key = ports.project.environment(), ports.store.seal_key or b""
    return replace(publish, sql=unsealed_text(publish.sql, environ, key, publish.physical))


def _show_if_changed(ports: CommandPorts, publish: InPlace) -> None:
    """Have the views show the columns of a change in place, where they are others than before."""
    physical = publish.physical
    before = ports.store.load(LoadRequest(heads=(physical,), facts_of_pointers=False)).heads.get(physical)
    if before is None or before.shape.columns != publish.head.shape.columns:
        _show_head(ports, publish.head)


def show_columns(ports: CommandPorts, lease: Lease, head: Head) -> None:
    """Have the version's view and all above it show the columns of a head."""
    require_live(ports.keeper, lease)
    _show_head(ports, head)


def _show_head(ports: CommandPorts, head: Head) -> None:
    ports.engine.publish(switch_to(head))
    _refresh_views(ports, head.physical)


def _refresh_views(ports: CommandPorts, physical: PhysicalName) -> None:
    loaded = ports.store.load(LoadRequest(all_environments=True, facts_of_pointers=False))
    shown = [
        (logical_name(name, revision.environment, ports.unsuffixed), pointer.definition_id)
        for revision in loaded.revisions.values()
        for name, pointer in revision.pointers.items()
        if pointer.physical == physical
    ]
    if not shown:
        return
    request = LoadRequest(definitions=tuple(sorted({found for _, found in shown})), facts_of_pointers=False)
    definitions = ports.store.load(request).definitions
    ports.engine.show(
        [
            ShowView(
                logical=logical,
                physical=physical,
                properties=definitions[found].virtual_properties if found in definitions else {},
            )
            for logical, found in shown
        ]
    )


def require_live(keeper: LeaseKeeper, lease: Lease) -> None:
    """Raise `LeaseLost` when the lease may have run out by this process's own clock."""
    if not keeper.is_live(lease):
        raise LeaseLost(
            f"the claim to change `{lease.resource.partition(':')[2]}` ran out before what was decided was carried out",
            hint="run the command again; it carries out what was decided",
        )


def close_lost(ports: CommandPorts, grant: LeaseGrant, own: Lease | None) -> None:
    """Close lost leases that can do no more harm.

    These are this process's own, those whose owner is proven gone with all that acts for it once they would have run
    out, and those whose time to settle is over.
    """

    def is_over(lost: Lease) -> bool:
        if own is not None and lost.token == own.token:
            return True
        is_gone = lost.expires_at <= grant.taken_at and ports.keeper.is_settled(lost)
        return is_gone or lost.expires_at.plus(SETTLE_MICROS) <= grant.taken_at

    settled: list[Fact] = [
        LeaseClosed(resource=lost.resource, token=lost.token) for lost in grant.lost if is_over(lost)
    ]
    ports.reach("recover.closing")
    if settled:
        ports.store.commit(settled, [LeaseIsCurrent(resource=grant.lease.resource, token=grant.lease.token)])


def _set_view_to_head(ports: CommandPorts, lease: Lease) -> bool:
    """A process that slept may have shown an older publish: show the recorded one again, and say whether it had."""
    physical = PhysicalName(lease.resource.partition(":")[2])
    head = ports.store.load(LoadRequest(heads=(physical,), facts_of_pointers=False)).heads.get(physical)
    if head is None:
        return False
    shown = ports.engine.published([physical])[physical]
    ports.reach("recover.view_read")
    if shown == head.generation:
        return False
    if head.view_sql is not None:
        publish: Publish = SetView(physical=physical, generation=head.generation, sql=head.view_sql, shape=head.shape)
    else:
        publish = switch_to(head)
    publish_under(ports, lease, publish)
    ports.reach("recover.view_set")
    return True


def set_views_to_heads(ports: CommandPorts, names: Sequence[PhysicalName]) -> tuple[PhysicalName, ...]:
    """Have the views of these versions show what is recorded; answers those that did not."""
    heads = ports.store.load(LoadRequest(heads=tuple(names), facts_of_pointers=False)).heads
    shown = ports.engine.published(names)
    changed = []
    for physical in (name for name in names if name in heads and shown[name] != heads[name].generation):
        grant = ports.keeper.take(version_resource(physical))
        with ports.keeper.holding(grant):
            recover_version(ports, grant)
            if _set_view_to_head(ports, grant.lease):
                changed.append(physical)
    return tuple(changed)


def once_carried_out(
    ports: CommandPorts,
    work: Callable[[], T],
    *,
    read: Collection[PhysicalName] = (),
    kept: Collection[PhysicalName] = (),
) -> T:
    """Do what is refused (`PlanOutdated`) while publishes of some versions are decided and not carried out.

    For as long as that is why, their writers are waited for. Versions that are `read` may go on where a head is read at
    its snapshot; what is `kept` must not change at all.
    """
    while True:
        try:
            return work()
        except PlanOutdated:
            pending = _pending_among(ports.store, read, kept)
            if pending is None:
                raise
        wait_until_carried_out(ports, pending)


def _pending_among(
    store: StateStore, read: Collection[PhysicalName], kept: Iterable[PhysicalName]
) -> PhysicalName | None:
    heads = store.load(LoadRequest(heads=tuple(read), facts_of_pointers=False)).heads
    for requirement in (*(NothingPending(physical=physical) for physical in kept), *read_whole(read, heads)):
        try:
            store.commit([], [requirement])
        except CommitRefused:
            return requirement.physical
    return None


def wait_until_carried_out(ports: CommandPorts, physical: PhysicalName) -> None:
    """Wait until nothing that was decided for a version is left to be shown: its writer shows it, or we do."""
    grant = ports.keeper.take(version_resource(physical))
    with ports.keeper.holding(grant):
        recover_version(ports, grant)


def lose_version(ports: CommandPorts, lost: Lease) -> None:
    """Take a lease that was lost like anyone would, and set right what a late statement under it may have changed.

    Nothing is done while another command holds it: the lost lease stays, and the next command looks.
    """
    ports.reach("lose.refused")
    ports.keeper.forget(lost)
    try:
        grant = ports.keeper.take_now(lost.resource)
    except LeaseHeld:
        return
    with ports.keeper.holding(grant):
        ports.reach("lose.taken")
        recover_version(ports, grant, own=lost)
        ports.reach("lose.view_set")


def is_quiet(unsettled: Unsettled, processes: Processes, now: Instant) -> bool:
    """Whether all that was found is lost leases that were looked at, of processes that are gone, since a while.

    What a server may still carry out for them is worth no start of Spark of its own: a command that starts it anyway
    looks, and so does one that may close them.
    """

    def is_left(lease: Lease) -> bool:
        owner, age = lease.owner, now.micros - lease.expires_at.micros
        is_gone = bool(owner.processes) and processes.is_gone(owner.processes[0])
        return lease.status == "lost" and owner.is_carried and is_gone and QUIET_MICROS < age < SETTLE_MICROS

    return not unsettled.attempts and not unsettled.revisions and all(map(is_left, unsettled.leases))


def formats_left_behind(unsettled: Unsettled) -> frozenset[str]:
    """The table formats that are needed to bring unfinished changes to an end."""
    publishes = [attempt.publish for attempt in unsettled.attempts]
    needed = {DELTA.name for publish in publishes if isinstance(publish, CommitRows | WriteThrough)}
    return frozenset(needed | {ICEBERG.name for publish in publishes if isinstance(publish, FastForward)})


def recover_everything(ports: CommandPorts, unsettled: Unsettled) -> None:
    """Recover every version the start check found; versions that a living command holds are left to it.

    One that cannot be recovered now keeps no other from it.
    """
    resources = {version_resource(attempt.physical) for attempt in unsettled.attempts}
    resources |= {lease.resource for lease in unsettled.leases if lease.resource.startswith("version:")}
    problems: list[LaminaError] = []
    for resource in sorted(resources):
        try:
            uninterrupted(partial(_recover_resource, ports, resource), ports.keeper.give_up_waiting)
        except (Cancelled, StateError):
            raise
        except LaminaError as error:
            problems.append(error)
    raise_all(problems)


def _recover_resource(ports: CommandPorts, resource: str) -> None:
    try:
        grant = ports.keeper.take_now(resource)
    except LeaseHeld:
        return
    name = resource.partition(":")[2]
    if grant.unfinished:
        ports.emit(Recovering(resource=name, detail=_detail(grant)))
    try:
        with ports.keeper.holding(grant):
            if recover_version(ports, grant):
                ports.emit(Recovering(resource=name, detail="its view showed an older publish and was set right"))
    except LeaseLost:
        lose_version(ports, grant.lease)


def _detail(grant: LeaseGrant) -> str:
    decided = sum(attempt.status in {"decided", "retracting"} for attempt in grant.unfinished)
    opened = sum(attempt.status == "open" for attempt in grant.unfinished)
    parts = []
    if decided:
        parts.append(f"{decided} decided publish{'es' if decided > 1 else ''} brought to an end")
    if opened:
        parts.append(f"{opened} unfinished batch{'es' if opened > 1 else ''} given up")
    return ", ".join(parts)
