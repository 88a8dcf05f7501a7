"""What state is told of the attempts at one version, under one lease.

Every commit requires that the lease is still held and that the attempt is where it was left.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lamina.app.auditing.outcomes import merged
from lamina.app.leases.recover import retract
from lamina.app.ports.facts import AttemptAborted, AttemptUnchanged, AuditsRecorded, BatchRecorded
from lamina.app.ports.loaded import version_resource
from lamina.app.ports.published import WriteThrough
from lamina.app.ports.requirements import AttemptIs, HeadIs, LeaseIsCurrent, NothingPending
from lamina.errors import (
    CommitRefused,
    LaminaError,
    LeaseLost,
    NoAnswer,
    PlanOutdated,
    PublishRefused,
    StateError,
    StatementUnanswered,
)
from lamina.graph.kinds import folds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamina.app.leases.command_ports import CommandPorts
    from lamina.app.ports.engine import Landing, Written
    from lamina.app.ports.facts import AttemptDecided, AttemptDone, AuditResult, Fact
    from lamina.app.ports.loaded import LeaseGrant
    from lamina.app.ports.published import Attempt, Publish
    from lamina.app.ports.requirements import Requirement
    from lamina.app.writing.batch_request import WriteTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """A publish that was about to be taken back and had landed before."""

    publish: Publish
    landing: Landing


class AttemptLog:
    """Records how attempts go on; batches may come from several threads."""

    def __init__(self, ports: CommandPorts, target: WriteTarget, grant: LeaseGrant) -> None:
        self._ports, self._target, self._grant = ports, target, grant
        self._guard = threading.Lock()
        self._decided: dict[int, Publish] = {}
        self._audits_of: dict[int, tuple[AuditResult, ...]] = {}
        self.audits: tuple[AuditResult, ...] = ()
        """How the audits of all batches so far came out."""
        self.is_lost = self.is_unanswered = False

    @property
    def token(self) -> LeaseIsCurrent:
        """What every commit requires: that the lease is still held."""
        return LeaseIsCurrent(resource=version_resource(self._target.physical), token=self._grant.lease.token)

    def note(self, error: LaminaError) -> None:
        """Remember what an error means for the lease."""
        self.is_lost |= isinstance(error, LeaseLost)
        self.is_unanswered |= isinstance(error, NoAnswer | StatementUnanswered)

    def note_audits(self, attempt: Attempt, results: tuple[AuditResult, ...]) -> None:
        """Remember how the audits of an attempt came out."""
        with self._guard:
            self._audits_of[attempt.number] = results
            self.audits = merged(self.audits, results)

    def audits_recorded(self, attempt: Attempt, *, is_shown: bool = True) -> tuple[Fact, ...]:
        """How the audits of an attempt came out: committed with what becomes of its rows, so never out of step."""
        results = self._audits_of.get(attempt.number)
        if not results:
            return ()
        target = self._target
        return (
            AuditsRecorded(
                run_id=target.run_id,
                node=target.model.name,
                physical=target.physical,
                number=attempt.number,
                interval=attempt.interval,
                results=results,
                recorded_at=self._ports.clock.now(),
                is_shown=is_shown,
            ),
        )

    def commit_as_planned(self, facts: Sequence[Fact], requires: Sequence[Requirement]) -> None:
        """Commit what only holds while nothing changed since the plan; `PlanOutdated` when something did."""
        try:
            self._ports.store.commit(facts, requires)
        except LeaseLost:
            raise
        except CommitRefused as error:
            name = self._target.model.name
            raise PlanOutdated(
                f"`{name}` was changed by another command after this plan was made: {error.message}",
                hint="run the command again; it plans anew from what is recorded now",
                node=name,
            ) from error

    def decide(
        self, attempt: Attempt, decided: AttemptDecided, base_sequence: int, also: tuple[Fact, ...] = ()
    ) -> None:
        """Record that a publish is to be carried out, whatever happens from now on."""
        self._decided[attempt.number] = decided.publish
        self._ports.store.commit(
            [decided, *also],
            [
                self.token,
                AttemptIs(number=attempt.number, status="open"),
                HeadIs(physical=attempt.physical, sequence=base_sequence),
                NothingPending(physical=attempt.physical),
            ],
        )

    def end(
        self,
        attempt: Attempt,
        done: AttemptDone,
        rows: int | None,
        statements: int,
        begun: float,
        also: tuple[Fact, ...] = (),
    ) -> None:
        """Record that what was decided is shown."""
        self._ports.store.commit(
            [done, *also, self._batch_fact(attempt, "succeeded", rows, statements, begun)],
            [self.token, AttemptIs(number=attempt.number, status="decided")],
        )
        self._ports.reach("write.done")

    def end_unchanged(self, attempt: Attempt, written: Written, begun: float) -> None:
        """Record that the batch came out as the table was, so that there is nothing to show."""
        ports, target = self._ports, self._target
        ports.reach("write.unchanged")
        ports.store.commit(
            [
                AttemptUnchanged(number=attempt.number, physical=target.physical),
                *self.audits_recorded(attempt),
                self._batch_fact(attempt, "succeeded", written.rows, written.statements, begun),
            ],
            [self.token, AttemptIs(number=attempt.number, status="open")],
        )
        ports.reach("write.done")

    def abort(self, attempt: Attempt, error: LaminaError, begun: float) -> Landed | None:
        """Record that nothing of an open attempt was published; answers where its rows are if they are shown after all.

        A decided publish stays for recovery to carry out, unless it never can be: then it is taken back. What is found
        to have landed is a success, whatever went wrong afterwards. A store that does not answer changes nothing about
        what went wrong first: the attempt is left to recovery.
        """
        ports, target = self._ports, self._target
        failed = replace(self._batch_fact(attempt, "failed", None, 0, begun), error=error.to_dict())
        try:
            ports.store.commit(
                [
                    AttemptAborted(number=attempt.number, physical=target.physical, reason=error.message),
                    *self.audits_recorded(attempt, is_shown=False),
                    failed,
                ],
                [self.token, AttemptIs(number=attempt.number, status="open")],
            )
        except LeaseLost as lost:
            self.note(lost)
        except CommitRefused:
            landed = self._take_back(attempt, error, begun)
            if landed is None:
                ports.store.commit([failed])
            return landed
        except StateError as unanswered:
            self.note(unanswered)
        return None

    def _take_back(self, attempt: Attempt, error: LaminaError, begun: float) -> Landed | None:
        """Take back a decided publish that only this writer could carry out, or that its table refuses."""
        publish = self._decided.pop(attempt.number, None)
        if publish is None or not (isinstance(publish, WriteThrough) or isinstance(error, PublishRefused)):
            return None
        try:
            landing = retract(
                self._ports,
                self.token,
                attempt.number,
                publish,
                error.message,
                also_landed=lambda found: (self._batch_fact(attempt, "succeeded", found.rows, 1, begun),),
            )
        except LaminaError as problem:
            # Whoever recovers carries it on.
            self.note(problem)
            return None
        return None if landing is None else Landed(publish=publish, landing=landing)

    def record_audits(self, attempt: Attempt) -> None:
        """Record how the audits of rows came out that are shown already."""
        self._ports.store.commit(self.audits_recorded(attempt))

    def has_audits(self, attempt: Attempt) -> bool:
        """Whether the audits of an attempt were asked."""
        return attempt.number in self._audits_of

    def _batch_fact(
        self, attempt: Attempt, status: str, rows: int | None, statements: int, begun: float
    ) -> BatchRecorded:
        ports, target = self._ports, self._target
        return BatchRecorded(
            run_id=target.run_id,
            node=target.model.name,
            physical=target.physical,
            number=attempt.number,
            interval=attempt.interval or (attempt.seeded.span() if folds(target.model.kind) else None),
            status=status,
            rows=rows,
            seconds=round(ports.clock.elapsed() - begun, 3),
            statements=statements,
            finished_at=ports.clock.now(),
        )
