"""Writing batches of one version: intent, write aside, decide, publish, done.

The steps and their order are those of `docs/concepts/write-protocol.md`, section 3; `reach` marks its kill points.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from lamina.app.auditing.outcomes import models_read_by_audits
from lamina.app.leases.recover import lose_version, once_carried_out, recover_version, require_live, show_columns
from lamina.app.ports.engine import Base, NewTable, OnBranch, Shown, Written
from lamina.app.ports.facts import AttemptDecided, AttemptDone, AttemptOpened, CoverageRemoved
from lamina.app.ports.loaded import LoadRequest, version_resource
from lamina.app.ports.published import Attempt, InPlace, TableShape, WriteThrough
from lamina.app.ports.requirements import MarkIs, read_whole
from lamina.app.rendering.models import Relations
from lamina.app.writing.attempt_log import AttemptLog, Landed
from lamina.app.writing.audit import audit_rows
from lamina.app.writing.batch_request import column_remarks, write_request
from lamina.app.writing.decisions import Circumstances, Decision, decide, decide_through, is_unchanged, landed_head
from lamina.app.writing.publisher import Publisher
from lamina.app.writing.seed import MARK_OF_SEEDED, mend_version, seed_version
from lamina.app.writing.views import STATEMENTS, publish_view
from lamina.errors import AuditFailed, BatchFailed, Cancelled, LaminaError, LeaseLost, PlanOutdated
from lamina.graph.kinds import View
from lamina.graph.sealing import hide_in, values_in
from lamina.graph.validity import shown_columns
from lamina.identity.naming import batch_folder
from lamina.planning.inputs import Read
from lamina.planning.readiness import stored_parents
from lamina.timeline.interval import EMPTY, Intervals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lamina.app.leases.command_ports import CommandPorts
    from lamina.app.ports.engine import WriteRequest
    from lamina.app.ports.facts import AuditResult, Fact
    from lamina.app.ports.loaded import LeaseGrant
    from lamina.app.ports.requirements import Requirement
    from lamina.app.writing.batch_request import WriteTarget
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.planning.inputs import VersionFacts
    from lamina.planning.rewrites import Reached
    from lamina.planning.steps import Batch, Seeding


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOutcome:
    """What a finished batch did."""

    rows: int | None
    statements: int
    null_times: int = 0
    changed: Intervals = EMPTY
    """Recorded time that came out with other rows."""
    remarks: tuple[str, ...] = ()
    """What a person asked to be told."""


class VersionWriter:
    """Holds a version's lease while its batches are written; batches may come from several threads."""

    def __init__(self, ports: CommandPorts, target: WriteTarget) -> None:
        self._ports, self._target = ports, target
        self._is_first = True
        self._mark = target.mark
        self._is_asked = target.is_asked
        self._intent_lock = threading.Lock()
        self._turn_lock = threading.Lock()
        self._grant: LeaseGrant = ports.keeper.take(version_resource(target.physical))
        self._log = AttemptLog(ports, target, self._grant)
        self._publisher = Publisher(ports=ports, target=target, lease=self._grant.lease, log=self._log)
        self._format = self._publisher.table_format
        ports.reach("write.taken")
        if self._grant.unfinished or self._grant.lost:
            try:
                recover_version(ports, self._grant)
            except LaminaError as error:
                self._log.note(error)
                self.release()
                raise
            ports.reach("write.recovered")

    @property
    def audits(self) -> tuple[AuditResult, ...]:
        """How the audits of all batches so far came out."""
        return self._log.audits

    def release(self) -> None:
        """Give the lease back once no batch is under way any more.

        A lost one is taken again like anyone would, to set right what a late statement may have changed. One under
        which something got no answer is left to run out: it may still land, and the lease tells others to look.
        """
        ports, lease = self._ports, self._grant.lease
        if self._log.is_unanswered:
            ports.keeper.forget(lease)
            return
        try:
            if not self._log.is_lost:
                with ports.keeper.holding(self._grant):
                    pass
        except LeaseLost:
            self._log.is_lost = True
        if self._log.is_lost:
            lose_version(ports, lease)
        ports.reach("write.released")

    def is_up_to_date(self) -> bool:
        """Whether a whole build was recorded and every parent is still as that build read it."""
        target = self._target
        model = target.model
        parents = tuple(physical for physical in self._parents().values() if physical != target.physical)
        loaded = self._ports.store.load(LoadRequest(versions=((model.name, target.version),), heads=parents))
        facts = loaded.facts.get(target.physical)
        if facts is None or facts.built_at is None:
            return False
        now = {head.physical: head.sequence for head in loaded.heads.values()}
        read = {read.physical: read.sequence for read in facts.reads if read.physical != target.physical}
        return read == now

    def write(self, batch: Batch) -> BatchOutcome:
        """Carry one batch from intent to done."""
        with ExitStack() as locks:
            return self._write(batch, locks)

    def _write(self, batch: Batch, locks: ExitStack) -> BatchOutcome:
        ports, target = self._ports, self._target
        begun = ports.clock.elapsed()
        number = ports.store.allocate(1)
        turn = self._wait_for_turn(locks)
        try:
            attempt, base, relations = self._intend(number, batch)
        except LaminaError as error:
            self._log.note(error)
            raise
        if base is not None and not self._format.writes_in_turn:
            turn.close()
        request: WriteRequest | None = None
        try:
            if isinstance(target.model.kind, View):
                publish_view(self._publisher, attempt, relations, begun)
                outcome = BatchOutcome(rows=None, statements=STATEMENTS)
            else:
                through = partial(self._decide_through, attempt, base, locks) if base is not None else None
                request = write_request(
                    target, attempt, batch, base, relations, self._publisher.table_options(attempt), through
                )
                written = ports.engine.write(request)
                ports.reach("write.written")
                if not batch.is_empty:
                    self._log.note_audits(
                        attempt, audit_rows(ports.engine, target, attempt, batch.time, relations, request, written)
                    )
                ports.reach("write.audited")
                outcome = self._publish_rows(attempt, base, written, begun, locks)
        except LaminaError as error:
            hide_in(error, values_in(target.graph.models.values()))
            self._log.note(error)
            if isinstance(error, AuditFailed):
                self._log.note_audits(attempt, error.results)
            landed = None if self._log.is_lost else self._log.abort(attempt, error, begun)
            if landed is None or request is None:
                raise
            outcome = self._end_landed(landed, attempt, batch, request, relations)
        return outcome

    def _end_landed(
        self, landed: Landed, attempt: Attempt, batch: Batch, request: WriteRequest, relations: Relations
    ) -> BatchOutcome:
        """A batch whose rows were found shown after something went wrong is done: only its audits may be left to ask.

        Nothing that fails here may have the batch repeated: its rows would be there twice.
        """
        publish, landing = landed.publish, landed.landing
        if isinstance(publish, WriteThrough) and not batch.is_empty:
            shown = Shown(publish=publish, snapshot=landing.snapshot)
            written = Written(rows=landing.rows or 0, shape=publish.head.shape, place=shown)
            try:
                if not self._log.has_audits(attempt):
                    found = audit_rows(
                        self._ports.engine, self._target, attempt, batch.time, relations, request, written
                    )
                    self._log.note_audits(attempt, found)
                self._log.record_audits(attempt)
            except Cancelled:
                raise
            except LaminaError as error:
                name = self._target.model.name
                raise BatchFailed(
                    f"new rows of `{name}` are shown, but their audits could not be asked: {error.message}",
                    hint="run the command again; it asks them, and does not repeat the batch",
                    node=name,
                ) from error
        return BatchOutcome(
            rows=landing.rows,
            statements=1,
            changed=publish.rewritten if isinstance(publish, InPlace) else EMPTY,
        )

    def _wait_for_turn(self, locks: ExitStack) -> ExitStack:
        """A table that keeps a history is begun by one batch alone, and some formats take one batch at a time."""
        turn = locks.enter_context(ExitStack())
        if self._format.keeps_history:
            turn.enter_context(self._turn_lock)
        return turn

    def seed(self, seeding: Seeding) -> None:
        """Begin with the rows of another version; before the first batch.

        A long batch of that version is waited for: lending its files changes its table, which would refuse the batch.
        """
        once_carried_out(self._ports, partial(seed_version, self._publisher, seeding), kept=(seeding.source,))
        self._mark = MARK_OF_SEEDED

    def mend(self, facts: VersionFacts, readers: Iterable[VersionFacts]) -> None:
        """Show the same rows from a table whose files are all there."""
        mend_version(self._publisher, facts, readers)

    # --- intent ---
    def _parents(self) -> dict[NodeName, PhysicalName]:
        target = self._target
        names = [*stored_parents(target.graph, target.model.name)]
        if target.model.name in target.model.reads:
            names.append(target.model.name)
        return {name: target.physical_of[name] for name in names}

    def _intend(self, number: int, batch: Batch) -> tuple[Attempt, Base | None, Relations]:
        """Record the attempt, once no parent shows its rows in part."""
        parents = [physical for physical in self._parents().values() if physical != self._target.physical]
        return once_carried_out(self._ports, partial(self._intend_now, number, batch), read=parents)

    def _intend_now(self, number: int, batch: Batch) -> tuple[Attempt, Base | None, Relations]:
        ports, target = self._ports, self._target
        parents = self._parents()
        others = {
            name: target.physical_of[name]
            for name in models_read_by_audits(target.graph, target.model)
            if name not in parents
        }
        with self._intent_lock:
            loaded = ports.store.load(
                LoadRequest(
                    heads=(*parents.values(), *others.values(), target.physical),
                    manifests=(target.physical,),
                    facts_of_pointers=False,
                )
            )
            heads = {name: loaded.heads[physical] for name, physical in parents.items() if physical in loaded.heads}
            read_by_audits = {
                name: loaded.heads[physical] for name, physical in others.items() if physical in loaded.heads
            }
            ports.reach("child.parent_pinned")
            own = loaded.heads.get(target.physical)
            if batch.begins_anew:
                # A query that reads its own table finds it empty, as the first run ever did.
                heads.pop(target.model.name, None)
            attempt = Attempt(
                number=number,
                physical=target.physical,
                token=self._grant.lease.token,
                status="open",
                interval=batch.interval,
                folder=batch_folder(target.physical, number, ports.store.store_id),
                generation=self._publisher.generation(number),
                base_sequence=own.sequence if own else 0,
                reads=tuple(Read(physical=head.physical, sequence=head.sequence) for head in heads.values()),
                seeded=Intervals.of([batch.span]) if batch.span else EMPTY,
                execution_time=None if batch.is_empty else target.execution,
            )
            facts: list[Fact] = [AttemptOpened(attempt=attempt, run_id=target.run_id)]
            requires: list[Requirement] = [
                self._log.token,
                *read_whole((each for each in parents.values() if each != target.physical), loaded.heads),
            ]
            if self._is_first:
                facts = [*target.recorded, *facts]
                requires.append(MarkIs(physical=target.physical, mark=self._mark))
            self._log.commit_as_planned(facts, requires)
            self._is_first = False
        ports.reach("write.intent")
        base = Base(head=own, manifest=loaded.manifests.get(target.physical, {})) if own else None
        columns = own.shape.columns if own else shown_columns(target.model.kind, target.model.columns or ())
        relations = Relations(
            models=target.graph.models,
            heads={**read_by_audits, **heads},
            assumed={target.model.name: columns},
            names={target.model.name: target.physical},
            load_macros=ports.load_macros,
        )
        return attempt, base, relations

    def follow(self, reached: Reached) -> None:
        """Record that time which reads rewritten rows does not count any more; before the first batch."""
        removed = CoverageRemoved(
            physical=self._target.physical, intervals=reached.intervals, followed=reached.followed
        )
        self._log.commit_as_planned(
            [removed], [self._log.token, MarkIs(physical=self._target.physical, mark=self._mark)]
        )
        self._mark += 1
        self._is_asked |= reached.is_asked
        self._ports.reach("follow.recorded")

    def remember(self, reached: Reached) -> None:
        """Record that runs went over everything again that reads rewritten rows; after the last of them."""
        physical = self._target.physical
        self._ports.store.commit(
            [CoverageRemoved(physical=physical, intervals=EMPTY, followed=reached.followed)], [self._log.token]
        )
        self._ports.reach("follow.recorded")

    # --- decide and publish ---
    def _circumstances(self, attempt: Attempt, base: Base | None) -> Circumstances:
        store = self._ports.store
        return Circumstances(
            target=self._target,
            attempt=attempt,
            base=base,
            is_asked=self._is_asked,
            writer=f"{store.store_id}:{attempt.physical}",
            number=lambda: store.allocate(1),
        )

    def _publish_rows(
        self, attempt: Attempt, base: Base | None, written: Written, begun: float, locks: ExitStack
    ) -> BatchOutcome:
        now = self._circumstances(attempt, base)
        if is_unchanged(now, written):
            self._log.end_unchanged(attempt, written, begun)
            return BatchOutcome(rows=written.rows, statements=written.statements, null_times=written.null_times)
        if not isinstance(written.place, Shown):
            locks.enter_context(self._publisher.lock)
            now = self._circumstances(attempt, self._current_base(attempt, base, written))
        decision = decide(now, written)
        statements = written.statements + decision.statements
        base = now.base
        has_new_columns = base is not None and base.head.shape.columns != written.shape.columns
        if isinstance(written.place, Shown):
            self._record_shown(now, written, decision, statements, begun, has_new_columns=has_new_columns)
        else:
            if decision.folders is not None:
                self._publisher.create_generation(attempt, written.shape, decision.folders)
                self._ports.reach("write.generation")
            decided = AttemptDecided(
                number=attempt.number,
                physical=attempt.physical,
                publish=decision.publish,
                head=decision.head,
                rewritten=decision.rewritten,
                is_asked=self._is_asked and not decision.rewritten.is_empty,
                folders_set=written.folders,
                folders_removed=tuple(key for key in written.removed if key not in written.folders),
                rows=written.rows,
            )
            sequence = base.head.sequence if base else 0
            self._publisher.decide_and_carry_out(
                attempt, decided, sequence, statements, begun, has_new_columns=has_new_columns
            )
        return BatchOutcome(
            rows=written.rows,
            statements=statements,
            null_times=written.null_times,
            changed=decision.rewritten,
            remarks=column_remarks(self._target.model.kind, base.head.shape, written.shape) if base is not None else (),
        )

    def _record_shown(
        self,
        now: Circumstances,
        written: Written,
        decision: Decision,
        statements: int,
        begun: float,
        *,
        has_new_columns: bool,
    ) -> None:
        """A batch that was its own publish: only its end is left to be told."""
        place, attempt = written.place, now.attempt
        if not isinstance(place, Shown):
            raise TypeError(place)
        if has_new_columns:
            show_columns(self._ports, self._grant.lease, place.publish.head)
        self._ports.reach("write.published")
        done = AttemptDone(
            number=attempt.number,
            physical=attempt.physical,
            landed=landed_head(now, written, place.publish, place.snapshot),
            rewritten=decision.rewritten,
            is_asked=self._is_asked and not decision.rewritten.is_empty,
        )
        self._log.end(attempt, done, written.rows, statements, begun, self._log.audits_recorded(attempt))

    def _decide_through(self, attempt: Attempt, base: Base, locks: ExitStack, shape: TableShape) -> WriteThrough:
        """Decide that what the engine is about to do is the publish; its siblings wait until it is done."""
        ports, target = self._ports, self._target
        locks.enter_context(self._publisher.lock)
        now = self._circumstances(attempt, self._newest_base() or base)
        publish = decide_through(now, shape)
        if publish.generation != base.head.generation:
            raise self._outdated(attempt, "another batch moved its rows to another table")
        require_live(ports.keeper, self._grant.lease)
        ports.reach("write.decide")
        self._log.decide(
            attempt,
            AttemptDecided(number=attempt.number, physical=target.physical, publish=publish, head=None),
            publish.head.sequence - 1,
        )
        ports.reach("write.decided")
        return publish

    def _newest_base(self) -> Base | None:
        physical = self._target.physical
        loaded = self._ports.store.load(LoadRequest(heads=(physical,), manifests=(physical,), facts_of_pointers=False))
        head = loaded.heads.get(physical)
        return None if head is None else Base(head=head, manifest=loaded.manifests.get(physical, {}))

    def _current_base(self, attempt: Attempt, base: Base | None, written: Written) -> Base | None:
        """The base as it is now; a sibling batch may have moved it, but never in this batch's own partitions."""
        now = self._newest_base()
        if now is None or (base is not None and now.head.sequence == base.head.sequence):
            return base
        self._ports.reach("write.sister_decided")
        if isinstance(written.place, NewTable | OnBranch):
            raise self._outdated(attempt, "another batch was published meanwhile")
        before = base.manifest if base else {}
        own = {*written.folders, *written.removed}
        if any(now.manifest.get(key) != before.get(key) for key in own):
            raise PlanOutdated(
                f"two batches of `{self._target.model.name}` share a partition",
                hint="set `batch_concurrency 1` on the model and run the command again",
                node=self._target.model.name,
                interval=attempt.interval.to_pair() if attempt.interval else None,
            )
        return now

    def _outdated(self, attempt: Attempt, why: str) -> PlanOutdated:
        return PlanOutdated(
            f"this batch of `{self._target.model.name}` no longer fits its table: {why}",
            hint="run the command again; it plans anew from what is recorded now",
            node=self._target.model.name,
            interval=attempt.interval.to_pair() if attempt.interval else None,
        )
