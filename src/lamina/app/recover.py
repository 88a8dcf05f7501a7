"""Bringing to an end what a command that died or lost its lease left behind.

The rules are those of `docs/concepts/write-protocol.md`, section 4: open attempts published nothing and are aborted;
a decided publish is carried out by whoever comes next; a lost lease means the view may have gone back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from lamina.app.events import Recovering
from lamina.app.ports import ShowView
from lamina.app.records import (
    AddPartitions,
    AttemptAborted,
    AttemptDone,
    AttemptIs,
    AttemptRetracting,
    CommitRows,
    FastForward,
    InPlace,
    LeaseClosed,
    LeaseIsCurrent,
    LoadRequest,
    SetView,
    SwitchGeneration,
    WriteThrough,
    version_resource,
)
from lamina.app.shelter import sheltered
from lamina.errors import LeaseHeld, LeaseLost, PublishRefused
from lamina.graph.formats import DELTA, ICEBERG
from lamina.identity.naming import PhysicalName, logical_name
from lamina.timeline.interval import MICROS_PER_HOUR

if TYPE_CHECKING:
    from lamina.app.leases import LeaseKeeper
    from lamina.app.ports import Clock, Emit, Engine, Reach, StateStore
    from lamina.app.records import Attempt, Fact, Head, Lease, LeaseGrant, Publish, Unsettled

SETTLE_MICROS = 24 * MICROS_PER_HOUR
"""After this long a statement of a process that lost its lease can no longer land."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryPorts:
    """What recovering needs from the world."""

    store: StateStore
    engine: Engine
    clock: Clock
    reach: Reach
    keeper: LeaseKeeper
    unsuffixed: str
    """The environment whose views carry no suffix."""


def recover_version(ports: RecoveryPorts, grant: LeaseGrant, own: Lease | None = None) -> None:
    """Finish or abort what the grant lists; the lease stays with the caller.

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
    if grant.lost:
        _set_view_to_head(ports, grant.lease)
        close_lost(ports, grant, own)


def _settle(ports: RecoveryPorts, lease: Lease, attempt: Attempt, publish: Publish, token: LeaseIsCurrent) -> None:
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
    ports: RecoveryPorts,
    token: LeaseIsCurrent,
    number: int,
    publish: Publish,
    reason: str,
    *,
    is_begun: bool = False,
) -> None:
    """Take back a decided publish: keep it from landing any more, then record whether it had landed before.

    That it is being taken back is recorded first. Else the next one to look would take what keeps it out for itself.
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
    done: Fact = (
        AttemptAborted(number=number, physical=publish.physical, reason=reason)
        if landing is None
        else done_by(number, publish, landing.snapshot)
    )
    ports.store.commit([done], [token, AttemptIs(number=number, status="retracting")])


def publish_under(ports: RecoveryPorts, lease: Lease, publish: Publish, *, has_new_columns: bool = True) -> int | None:
    """Carry out a publish, unless by this process's own clock the lease has run out: then lose instead.

    A view's columns are fixed when it is made, so a publish with other columns than before is carried out only once
    the version's view and the environments' views above it have followed.
    """
    require_live(ports.keeper, lease)
    snapshot = ports.engine.publish(publish)
    if not has_new_columns or isinstance(publish, AddPartitions):
        return snapshot
    if isinstance(publish, InPlace):
        _show_if_changed(ports, publish)
    else:
        _refresh_views(ports, publish.physical)
    return snapshot


def _show_if_changed(ports: RecoveryPorts, publish: InPlace) -> None:
    """Have the views show the columns of a change in place, where they are others than before."""
    physical = publish.physical
    before = ports.store.load(LoadRequest(heads=(physical,), facts_of_pointers=False)).heads.get(physical)
    if before is None or before.shape.columns != publish.head.shape.columns:
        _show_head(ports, publish.head)


def show_columns(ports: RecoveryPorts, lease: Lease, head: Head) -> None:
    """Have the version's view and all above it show the columns of a head."""
    require_live(ports.keeper, lease)
    _show_head(ports, head)


def _show_head(ports: RecoveryPorts, head: Head) -> None:
    ports.engine.publish(SwitchGeneration(physical=head.physical, generation=head.generation, shape=head.shape))
    _refresh_views(ports, head.physical)


def _refresh_views(ports: RecoveryPorts, physical: PhysicalName) -> None:
    loaded = ports.store.load(LoadRequest(all_environments=True, facts_of_pointers=False))
    views = [
        ShowView(logical=logical_name(name, revision.environment, ports.unsuffixed), physical=physical)
        for revision in loaded.revisions.values()
        for name, pointer in revision.pointers.items()
        if pointer.physical == physical
    ]
    if views:
        ports.engine.show(views)


def require_live(keeper: LeaseKeeper, lease: Lease) -> None:
    """Raise `LeaseLost` when the lease may have run out by this process's own clock."""
    if not keeper.is_live(lease):
        raise LeaseLost(
            f"the claim to change `{lease.resource.partition(':')[2]}` ran out before what was decided was carried out",
            hint="run the command again; it carries out what was decided",
        )


def close_lost(ports: RecoveryPorts, grant: LeaseGrant, own: Lease | None) -> None:
    """Close lost leases that can do no more harm: this process's own, and those whose time to settle is over."""
    now = ports.clock.now()
    settled: list[Fact] = [
        LeaseClosed(resource=lost.resource, token=lost.token)
        for lost in grant.lost
        if (own is not None and lost.token == own.token) or lost.expires_at.plus(SETTLE_MICROS) <= now
    ]
    ports.reach("recover.closing")
    if settled:
        ports.store.commit(settled, [LeaseIsCurrent(resource=grant.lease.resource, token=grant.lease.token)])


def _set_view_to_head(ports: RecoveryPorts, lease: Lease) -> None:
    """A process that slept may have shown an older publish: show the recorded one again."""
    physical = PhysicalName(lease.resource.partition(":")[2])
    head = ports.store.load(LoadRequest(heads=(physical,), facts_of_pointers=False)).heads.get(physical)
    if head is None:
        return
    shown = ports.engine.published([physical])[physical]
    ports.reach("recover.view_read")
    if shown == head.generation:
        return
    if head.view_sql is not None:
        publish: Publish = SetView(physical=physical, generation=head.generation, sql=head.view_sql, shape=head.shape)
    else:
        publish = SwitchGeneration(physical=physical, generation=head.generation, shape=head.shape)
    publish_under(ports, lease, publish)
    ports.reach("recover.view_set")


def lose_version(ports: RecoveryPorts, lost: Lease) -> None:
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


def formats_left_behind(unsettled: Unsettled) -> frozenset[str]:
    """The table formats that are needed to bring unfinished changes to an end."""
    publishes = [attempt.publish for attempt in unsettled.attempts]
    needed = {DELTA.name for publish in publishes if isinstance(publish, CommitRows | WriteThrough)}
    return frozenset(needed | {ICEBERG.name for publish in publishes if isinstance(publish, FastForward)})


def recover_everything(ports: RecoveryPorts, emit: Emit, unsettled: Unsettled) -> None:
    """Recover every version the start check found; versions that a living command holds are left to it."""
    resources = {version_resource(attempt.physical) for attempt in unsettled.attempts}
    resources |= {lease.resource for lease in unsettled.leases if lease.resource.startswith("version:")}
    for resource in sorted(resources):
        sheltered(partial(_recover_resource, ports, emit, resource), ports.keeper.give_up_waiting)


def _recover_resource(ports: RecoveryPorts, emit: Emit, resource: str) -> None:
    try:
        grant = ports.keeper.take_now(resource)
    except LeaseHeld:
        return
    emit(Recovering(resource=resource.partition(":")[2], detail=_detail(grant)))
    try:
        with ports.keeper.holding(grant):
            recover_version(ports, grant)
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
    return ", ".join(parts) or "left by a command that ended early"
