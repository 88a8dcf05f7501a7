"""The leases of one command: taken, renewed in the background, given back."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakSet

from lamina.app.ports.events import Waiting
from lamina.app.ports.facts import LeaseReleased
from lamina.app.ports.requirements import LeaseIsCurrent
from lamina.errors import LaminaError, LeaseHeld, LeaseLost, NoAnswer, StatementUnanswered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamina.app.ports.events import Emit
    from lamina.app.ports.loaded import Lease, LeaseGrant, Owner
    from lamina.app.ports.machine import Clock, Fate, Processes, Standing
    from lamina.app.ports.state import StateStore

LEASE_SECONDS = 120.0
_PAUSE_SECONDS = 0.5


class LeaseKeeper:
    """Owns the leases a command holds; safe to use from several threads.

    `standing` is what the engine answered when it was made ready; without one nothing of an engine is used.
    """

    _working: ClassVar[WeakSet[LeaseKeeper]] = WeakSet()
    """All of this process."""
    _working_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(
        self,
        store: StateStore,
        clock: Clock,
        owner: Owner,
        emit: Emit,
        processes: Processes,
        standing: Standing | None = None,
        *,
        patience: float = 3600.0,
    ) -> None:
        self._store, self._clock, self._emit, self._processes = store, clock, emit, processes
        self._owner = _standing_owner(owner, processes, standing) if standing is not None else owner
        self._patience = patience
        self._held: dict[str, tuple[Lease, float]] = {}
        self._being_taken: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._is_impatient = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        with LeaseKeeper._working_lock:
            LeaseKeeper._working.add(self)

    def take(self, resource: str) -> LeaseGrant:
        """Take a lease, waiting for whoever holds it; `LeaseHeld` when patience runs out."""
        begun = self._clock.elapsed()
        is_announced = False
        while True:
            try:
                return self.take_now(resource)
            except LeaseHeld as error:
                if self._is_impatient.is_set() or self._age(begun) > self._patience:
                    raise
                if not is_announced:
                    self._emit(Waiting(what=resource, holder=error.message, seconds=error.seconds_left))
                    is_announced = True
                self._is_impatient.wait(_PAUSE_SECONDS)

    def take_now(self, resource: str) -> LeaseGrant:
        """Take a lease or raise `LeaseHeld` at once."""
        asked = self._clock.elapsed()
        with self._lock:
            self._being_taken[resource] += 1
        try:
            grant = self._store.take(resource, self._owner, seconds=LEASE_SECONDS, fate_of=self._fate_of)
            with self._lock:
                self._held[resource] = (grant.lease, asked)
                self._start_renewing()
        finally:
            with self._lock:
                self._being_taken[resource] -= 1
        return grant

    def is_settled(self, lost: Lease) -> bool:
        """Whether nothing can come any more of what was begun under a lost lease, by what is known of its owner."""
        owner = lost.owner
        if self._has_lock_of(owner):
            return True
        return not owner.is_carried and bool(owner.processes) and all(map(self._processes.is_gone, owner.processes))

    def _fate_of(self, former: Lease) -> Fate:
        """What is certain about whoever holds a lease."""
        owner = former.owner
        if _is_same_process(owner, self._owner):
            return "unknown" if self._is_worked_under(former) else "gone"
        if self._has_lock_of(owner):
            return "settled"
        return "gone" if owner.processes and self._processes.is_gone(owner.processes[0]) else "unknown"

    def _has_lock_of(self, owner: Owner) -> bool:
        """Whether this process has the lock that the owner had while any of its processes lived."""
        is_lock = owner.catalog is not None and owner.catalog == self._owner.catalog
        return is_lock and not _is_same_process(owner, self._owner)

    def _is_worked_under(self, lease: Lease) -> bool:
        """Whether a command of this process has the lease, or may just have got it."""
        with LeaseKeeper._working_lock:
            others = [keeper for keeper in LeaseKeeper._working if keeper is not self]
        return self.has(lease) or any(keeper.has(lease) or keeper.is_taking(lease) for keeper in others)

    def has(self, lease: Lease) -> bool:
        """Whether this keeper took the lease and has not let go of it."""
        with self._lock:
            entry = self._held.get(lease.resource)
        return entry is not None and (entry[0].token, entry[0].owner) == (lease.token, lease.owner)

    def is_taking(self, lease: Lease) -> bool:
        """Whether this keeper asks the store for the same resource right now."""
        with self._lock:
            return self._being_taken[lease.resource] > 0

    @contextmanager
    def holding(self, grant: LeaseGrant) -> Iterator[LeaseIsCurrent]:
        """Give a lease back at the end, also when what was done under it failed.

        Where a statement or a commit got no answer it may still land, so the lease is left to run out: that tells the
        next command to look. A lost lease is only forgotten.
        """
        lease = grant.lease
        token = LeaseIsCurrent(resource=lease.resource, token=lease.token)
        released = LeaseReleased(resource=lease.resource, token=lease.token)
        try:
            yield token
            self._store.commit([released], [token])
        except (LeaseLost, NoAnswer, StatementUnanswered):
            raise
        except LaminaError:
            with suppress(LaminaError):
                self._store.commit([released], [token])
            raise
        finally:
            self.forget(lease)

    def is_live(self, lease: Lease) -> bool:
        """Whether the lease cannot have expired yet, by this process's own clock."""
        with self._lock:
            entry = self._held.get(lease.resource)
        return entry is not None and entry[0].token == lease.token and self._age(entry[1]) < LEASE_SECONDS

    def forget(self, lease: Lease) -> None:
        """Stop renewing a lease that was released or lost."""
        with self._lock:
            entry = self._held.get(lease.resource)
            if entry is not None and entry[0].token == lease.token:
                del self._held[lease.resource]

    def is_stopped_within(self, seconds: float) -> bool:
        """Wait, unless nothing is to be waited for any more; answers whether that is so."""
        return self._is_impatient.wait(seconds)

    def give_up_waiting(self) -> None:
        """Whoever waits for a lease, now or later, gets `LeaseHeld`; leases that are held stay so."""
        self._is_impatient.set()

    def close(self) -> None:
        """Stop renewing everything."""
        self._is_impatient.set()
        self._stopped.set()
        with LeaseKeeper._working_lock:
            LeaseKeeper._working.discard(self)
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _age(self, since: float) -> float:
        return self._clock.elapsed() - since

    def _start_renewing(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._renew_forever, name="lamina-leases", daemon=True)
            self._thread.start()

    def _renew_forever(self) -> None:
        while not self._stopped.wait(LEASE_SECONDS / 4):
            with self._lock:
                held = [lease for lease, _ in self._held.values()]
            for lease in held:
                asked = self._clock.elapsed()
                try:
                    self._store.renew([lease], seconds=LEASE_SECONDS)
                except LaminaError:
                    # Lost or unreachable: the lease ages out, and the next commit under its token tells.
                    continue
                with self._lock:
                    entry = self._held.get(lease.resource)
                    if entry is not None and entry[0].token == lease.token:
                        self._held[lease.resource] = (lease, asked)


def _standing_owner(owner: Owner, processes: Processes, standing: Standing) -> Owner:
    """The owner as it is once its engine runs: what others need to tell that it is gone."""
    helpers = [processes.identify(process) for process in standing.processes]
    return replace(
        owner,
        processes=(*owner.processes, *(identity for identity in helpers if identity is not None)),
        catalog=standing.catalog,
        is_carried=standing.is_carried or None in helpers,
    )


def _is_same_process(one: Owner, other: Owner) -> bool:
    return bool(one.processes) and one.processes[:1] == other.processes[:1]
