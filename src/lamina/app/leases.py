"""The leases of one command: taken, renewed in the background, given back."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from lamina.app.events import Waiting
from lamina.app.records import LeaseIsCurrent, LeaseReleased
from lamina.errors import LaminaError, LeaseHeld, LeaseLost, NoAnswer, StatementUnanswered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamina.app.ports import Clock, Emit, StateStore
    from lamina.app.records import Lease, LeaseGrant, Owner

LEASE_SECONDS = 120.0
_PAUSE_SECONDS = 0.5


class LeaseKeeper:
    """Owns the leases a command holds; safe to use from several threads.

    `is_alone` says that no other process can be alive on this catalog, so a lease found held belongs to a dead one.
    """

    def __init__(
        self, store: StateStore, clock: Clock, owner: Owner, emit: Emit, *, is_alone: bool, patience: float = 3600.0
    ) -> None:
        self._store, self._clock, self._owner, self._emit = store, clock, owner, emit
        self._is_alone, self._patience = is_alone, patience
        self._held: dict[str, tuple[Lease, float]] = {}
        self._lock = threading.Lock()
        self._is_impatient = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

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
                    self._emit(Waiting(what=resource, holder=error.message))
                    is_announced = True
                self._is_impatient.wait(_PAUSE_SECONDS)

    def take_now(self, resource: str) -> LeaseGrant:
        """Take a lease or raise `LeaseHeld` at once."""
        asked = self._clock.elapsed()
        grant = self._store.take(
            resource, self._owner, now=self._clock.now(), seconds=LEASE_SECONDS, is_alone=self._is_alone
        )
        with self._lock:
            self._held[resource] = (grant.lease, asked)
            self._start_renewing()
        return grant

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

    def give_up_waiting(self) -> None:
        """Whoever waits for a lease, now or later, gets `LeaseHeld`; leases that are held stay so."""
        self._is_impatient.set()

    def close(self) -> None:
        """Stop renewing everything."""
        self._is_impatient.set()
        self._stopped.set()
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
                    self._store.renew([lease], now=self._clock.now(), seconds=LEASE_SECONDS)
                except LaminaError:
                    # Lost or unreachable: the lease ages out, and the next commit under its token tells.
                    continue
                with self._lock:
                    entry = self._held.get(lease.resource)
                    if entry is not None and entry[0].token == lease.token:
                        self._held[lease.resource] = (lease, asked)
