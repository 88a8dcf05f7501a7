"""A process that takes leases when it is told to: a word and a resource per line, answered by one line of JSON.

Its clock is off by so many seconds, and its leases are shorter than everybody else's, so that tests see them run out.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lamina.app.leases import keeper as leases
from lamina.app.ports.loaded import Owner
from lamina.app.ports.machine import Standing
from lamina.app.ports.requirements import LeaseIsCurrent
from lamina.bootstrap import SystemClock, SystemProcesses, open_store
from lamina.errors import LeaseHeld, LeaseLost
from lamina.timeline.interval import MICROS_PER_SECOND, Instant

if TYPE_CHECKING:
    from collections.abc import Callable


class ShiftedClock(SystemClock):
    """The clock of a machine that is ahead of the others, or behind."""

    def __init__(self, seconds: float) -> None:
        self._micros = round(seconds * MICROS_PER_SECOND)

    def now(self) -> Instant:
        return super().now().plus(self._micros)


def one_by_one(lock: threading.Lock, work: Callable[..., Any]) -> Callable[..., Any]:
    def locked(*arguments: Any, **options: Any) -> Any:
        with lock:
            return work(*arguments, **options)

    return locked


def main(url: str, skew: float, lease_seconds: float) -> None:
    leases.LEASE_SECONDS = lease_seconds
    store, clock, processes = open_store(url, Path.cwd()), ShiftedClock(skew), SystemProcesses()
    renewing = threading.Lock()
    store.renew = one_by_one(renewing, store.renew)  # type: ignore[method-assign]
    identity = processes.identify(os.getpid())
    owner = Owner(
        host="desk",
        boot="b00t",
        process=os.getpid(),
        command="build",
        started_at=clock.now(),
        processes=(identity,) if identity else (),
    )
    keeper = leases.LeaseKeeper(store, clock, owner, lambda _: None, processes, Standing(is_carried=False))
    held = {}
    for line in sys.stdin:
        word, resource = line.split()
        if word == "take":
            try:
                held[resource] = grant = keeper.take_now(resource)
                answer = {"token": grant.lease.token, "lost": [lost.token for lost in grant.lost]}
            except LeaseHeld as error:
                answer = {"held_for": error.seconds_left}
        elif word == "stop":
            # Not in the middle of a transaction, for which all others would have to wait.
            with renewing:
                os.kill(os.getpid(), signal.SIGSTOP)
            answer = {}
        else:
            try:
                store.commit([], [LeaseIsCurrent(resource=resource, token=held[resource].lease.token)])
                answer = {"is_held": True, "is_live": keeper.is_live(held[resource].lease)}
            except LeaseLost:
                answer = {"is_held": False, "is_live": keeper.is_live(held[resource].lease)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
