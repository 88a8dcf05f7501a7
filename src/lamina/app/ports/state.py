"""What the use cases need from a state store; one can be written from the docstrings alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamina.app.ports.facts import Fact
    from lamina.app.ports.loaded import HistoryEntry, Lease, LeaseGrant, Loaded, LoadRequest, Owner, Unsettled
    from lamina.app.ports.machine import FateOf
    from lamina.app.ports.requirements import Requirement


class StateStore(Protocol):
    """A log of facts with atomic, conditional commits.

    Every method may raise `StateError`; one that lost the connection while committing raises `NoAnswer`. Instances may
    be used from several threads at once. Leases run by the store's own clock, which all who share the store agree on.
    """

    @property
    def store_id(self) -> str:
        """Eight hex digits made when the store was created; names of folders carry it. Asking may create the store."""
        ...

    @property
    def seal_key(self) -> bytes | None:
        """What digests of values from the environment are keyed with, made with the store; None where there is none."""
        ...

    def unsettled(self) -> Unsettled:
        """Leases lost or expired and not closed, unfinished attempts, revisions not followed: one cheap read."""
        ...

    def load(self, request: LoadRequest) -> Loaded:
        """Read facts in one consistent snapshot. Cost follows what is asked for, not the length of history."""
        ...

    def allocate(self, count: int) -> int:
        """Reserve `count` attempt numbers and return the first; no number is ever given twice."""
        ...

    def take(self, resource: str, owner: Owner, *, seconds: float, fate_of: FateOf) -> LeaseGrant:
        """Take a lease: token is one above the last. A lease held and not expired raises `LeaseHeld` naming its owner.

        An expired one becomes `lost`. `fate_of` is asked about a held one: where its owner is gone it is taken at once
        and becomes `lost`; where moreover nothing can still come of it, it becomes `closed`.
        """
        ...

    def renew(self, leases: Sequence[Lease], *, seconds: float) -> None:
        """Have held leases run out that long from now; `LeaseLost` when one is no longer held under its token."""
        ...

    def commit(self, facts: Sequence[Fact], requires: Sequence[Requirement] = ()) -> None:
        """Write all facts if everything required is true, else nothing (`CommitRefused`, `LeaseLost` for a token).

        `DefinitionRecorded`, `VersionRecorded` and `IdentityStands` of something known are no change. `AttemptOpened`
        also removes its interval from the covered ones (what was covered is then reopened), and follows parents it
        reads for the first time from there on. `AttemptDone` and `AttemptUnchanged` add it (or mark the whole build,
        with the attempt's reads and execution time). `AttemptDecided` moves the head and the manifest, and adds a
        rewrite where some time was rewritten. Each of them, and `CoverageRemoved`, moves the version's mark by one, but
        opening and aborting an attempt without an interval do not.

        `AuditsRecorded` of rows that are shown adds to what is remembered of the version's audits, the later outcome
        for the same time winning; `AttemptDecided` first forgets what was remembered of its interval, or of everything.
        Neither `AuditsRecorded` nor `OutcomesTaken` moves the mark.
        """
        ...

    def history(self, *, run_id: str | None = None, limit: int = 20) -> tuple[HistoryEntry, ...]:
        """Runs, newest first, batches and audits in the order they finished."""
        ...

    def close(self) -> None:
        """Let go of connections; safe to call twice."""
        ...
