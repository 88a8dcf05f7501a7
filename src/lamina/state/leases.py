"""The life of a lease: taken, renewed, released; or lost and closed."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from lamina.app.ports.loaded import Lease
from lamina.errors import CommitRefused, LeaseHeld, LeaseLost
from lamina.timeline.interval import MICROS_PER_SECOND, Instant

if TYPE_CHECKING:
    from lamina.app.ports.loaded import Owner
    from lamina.app.ports.machine import FateOf


def machine_time() -> Instant:
    """The moment by this machine's clock, for stores that have none of their own."""
    return Instant.of(datetime.now(timezone.utc))  # noqa: TID251  # here the store is what has a clock


def is_expired(lease: Lease, now: Instant) -> bool:
    """Whether the holder has not renewed the lease in time."""
    return lease.expires_at <= now


def is_unsettled(lease: Lease, now: Instant) -> bool:
    """Whether somebody may still act under this lease without being entitled to."""
    return lease.status == "lost" or (lease.status == "held" and is_expired(lease, now))


def expiry(now: Instant, seconds: float) -> Instant:
    """When a lease taken or renewed now runs out."""
    return now.plus(round(seconds * MICROS_PER_SECOND))


def succeed(
    former: Lease | None, resource: str, owner: Owner, *, now: Instant, seconds: float, fate_of: FateOf
) -> tuple[Lease, Lease | None]:
    """The new lease, and the former one where it changes; `LeaseHeld` when it may not be taken.

    `former` is the lease with the highest token.
    """
    token = former.token + 1 if former else 1
    lease = Lease(resource=resource, token=token, owner=owner, status="held", expires_at=expiry(now, seconds))
    if former is None or former.status != "held":
        return lease, None
    fate = fate_of(former)
    if fate == "settled":
        return lease, replace(former, status="closed")
    if fate == "gone" or is_expired(former, now):
        return lease, replace(former, status="lost")
    left = (former.expires_at.micros - now.micros) / MICROS_PER_SECOND
    error = LeaseHeld(
        f"{describe(resource)} is being changed by {former.owner.describe()}",
        hint=f"wait until it has finished; if it no longer runs, its claim ends in {math.ceil(left)} seconds",
    )
    error.seconds_left = left
    raise error


def require_held(newest: Lease | None, resource: str, token: int) -> Lease:
    """The lease, if it is still held under this token; time plays no part. Else `LeaseLost`."""
    if newest is not None and newest.token == token and newest.status == "held":
        return newest
    taken_by = f", {newest.owner.describe()} has taken over" if newest is not None and newest.token > token else ""
    raise LeaseLost(
        f"the claim to change {describe(resource)} is no longer valid{taken_by}",
        hint="run the command again; what was finished is kept",
    )


def close_lost(lease: Lease | None, resource: str, token: int) -> Lease:
    """The lost lease as closed; closing it twice changes nothing."""
    if lease is not None and lease.status in {"lost", "closed"}:
        return replace(lease, status="closed")
    found = f"is `{lease.status}`" if lease else "does not exist"
    raise CommitRefused(f"claim {token} to change {describe(resource)} {found}, expected a lost one")


def describe(resource: str) -> str:
    """A resource in words: environment `dev`."""
    sort, _, name = resource.partition(":")
    return f"{sort} `{name}`"
