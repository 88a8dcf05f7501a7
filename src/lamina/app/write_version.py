"""Writing batches of one version: intent, write aside, decide, publish, done.

The steps and their order are those of `docs/concepts/write-protocol.md`, section 3; `reach` marks its kill points.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lamina.app.audit_batch import audit_rows, audit_view, merged, models_read_by_audits
from lamina.app.batch_request import comments_of, with_comments, with_declared, within, write_request
from lamina.app.contents import contents_after
from lamina.app.ports import (
    AnalysisRequest,
    Base,
    GenerationRequest,
    SqlQuery,
    Written,
)
from lamina.app.records import (
    AddPartitions,
    Attempt,
    AttemptAborted,
    AttemptDecided,
    AttemptDone,
    AttemptIs,
    AttemptOpened,
    AttemptUnchanged,
    AuditsRecorded,
    BatchRecorded,
    CoverageRemoved,
    Head,
    HeadIs,
    LeaseIsCurrent,
    LoadRequest,
    MarkIs,
    NothingPending,
    OutcomesTaken,
    SetView,
    SwitchGeneration,
    TableShape,
    version_resource,
)
from lamina.app.recover import RecoveryPorts, lose_version, publish_under, recover_version
from lamina.app.rendering import Relations
from lamina.errors import (
    AuditFailed,
    BatchFailed,
    CommitRefused,
    LaminaError,
    LeaseLost,
    NoAnswer,
    PlanOutdated,
    StateError,
    StatementUnanswered,
)
from lamina.graph.kinds import View, folds
from lamina.graph.validity import shown_columns
from lamina.identity.naming import batch_folder, generation_name
from lamina.planning.draft import ALL_TIME, before_end
from lamina.planning.inputs import Read
from lamina.planning.readiness import stored_parents
from lamina.timeline.interval import EMPTY, Intervals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lamina.app.batch_request import WriteTarget
    from lamina.app.records import AuditResult, Fact, LeaseGrant, PartitionKey, Publish, Requirement
    from lamina.app.rendering import MacroLoader
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.planning.rewrites import Reached
    from lamina.planning.steps import Batch, Seeding

TRIES = 3
"""How often something that fails in a way that may pass is tried."""
PAUSE_GROWTH = 3
"""By how much each pause between tries is longer than the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePorts(RecoveryPorts):
    """What writing needs from the world; `retry_pause` is the first pause between tries, in seconds."""

    load_macros: MacroLoader
    retry_pause: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOutcome:
    """What a finished batch did."""

    rows: int | None
    statements: int
    null_times: int = 0
    changed: Intervals = EMPTY
    """Recorded time that came out with other rows."""


class VersionWriter:
    """Holds a version's lease while its batches are written; batches may come from several threads."""

    def __init__(self, ports: WritePorts, target: WriteTarget) -> None:
        self._ports, self._target = ports, target
        self._resource = version_resource(target.physical)
        self._is_first = True
        self._mark = target.mark
        self._is_asked = target.is_asked
        self._intent_lock = threading.Lock()
        self._publish_lock = threading.Lock()
        self._grant: LeaseGrant = ports.keeper.take(self._resource)
        self._is_lost = self._is_unanswered = False
        self.audits: tuple[AuditResult, ...] = ()
        """How the audits of all batches so far came out."""
        self._audits_of: dict[int, tuple[AuditResult, ...]] = {}
        ports.reach("write.taken")
        if self._grant.unfinished or self._grant.lost:
            try:
                recover_version(ports, self._grant)
            except LaminaError as error:
                self._note(error)
                self.release()
                raise
            ports.reach("write.recovered")

    @property
    def _token(self) -> LeaseIsCurrent:
        return LeaseIsCurrent(resource=self._resource, token=self._grant.lease.token)

    def release(self) -> None:
        """Give the lease back once no batch is under way any more.

        A lost one is taken again like anyone would, to set right what a late statement may have changed. One under
        which something got no answer is left to run out: it may still land, and the lease tells others to look.
        """
        ports, lease = self._ports, self._grant.lease
        if self._is_unanswered:
            ports.keeper.forget(lease)
            return
        try:
            if not self._is_lost:
                with ports.keeper.holding(self._grant):
                    pass
        except LeaseLost:
            self._is_lost = True
        if self._is_lost:
            lose_version(ports, lease)
        ports.reach("write.released")

    def _note(self, error: LaminaError) -> None:
        """Remember what an error means for the lease."""
        self._is_lost |= isinstance(error, LeaseLost)
        self._is_unanswered |= isinstance(error, NoAnswer | StatementUnanswered)

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
        ports, target = self._ports, self._target
        begun = ports.clock.elapsed()
        number = ports.store.allocate(1)
        try:
            attempt, base, relations = self._intend(number, batch)
        except LaminaError as error:
            self._note(error)
            raise
        try:
            if isinstance(target.model.kind, View):
                outcome = self._publish_view(attempt, relations, begun)
            else:
                request = write_request(target, attempt, batch, base, relations)
                written = ports.engine.write(request)
                ports.reach("write.written")
                if not batch.is_empty:
                    self._note_audits(
                        attempt, audit_rows(ports.engine, target, attempt, batch.time, relations, written)
                    )
                ports.reach("write.audited")
                outcome = self._publish_rows(attempt, base, written, begun)
        except LaminaError as error:
            self._note(error)
            if isinstance(error, AuditFailed):
                self._note_audits(attempt, error.results)
            if not self._is_lost:
                self._abort(attempt, error, begun)
            raise
        return outcome

    def _note_audits(self, attempt: Attempt, results: tuple[AuditResult, ...]) -> None:
        with self._intent_lock:
            self._audits_of[attempt.number] = results
            self.audits = merged(self.audits, results)

    def _audits_recorded(self, attempt: Attempt, *, is_shown: bool = True) -> tuple[Fact, ...]:
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

    def seed(self, seeding: Seeding) -> None:
        """Begin with the rows of another version: its folders are shown under this version's name, nothing is copied.

        What was known of them is known here then, and as one step: before it the version does not exist.
        """
        ports, target, source = self._ports, self._target, seeding.source
        begun, number = ports.clock.elapsed(), ports.store.allocate(1)
        loaded = ports.store.load(LoadRequest(heads=(source,), manifests=(source,), facts_of_pointers=False))
        base, manifest = loaded.heads[source], loaded.manifests.get(source, {})
        attempt = Attempt(
            number=number,
            physical=target.physical,
            token=self._grant.lease.token,
            status="open",
            interval=None,
            folder=batch_folder(target.physical, number, ports.store.store_id),
            generation=generation_name(target.physical, number),
            base_sequence=0,
            reads=seeding.facts.reads,
            seeded=seeding.facts.covered,
            execution_time=seeding.facts.built_at,
        )
        try:
            self._commit_as_planned(
                [*target.recorded, AttemptOpened(attempt=attempt, run_id=target.run_id)],
                [
                    self._token,
                    NothingPending(physical=source),
                    MarkIs(physical=source, mark=seeding.source_mark),
                    MarkIs(physical=target.physical, mark=0),
                ],
            )
        except LaminaError as error:
            self._note(error)
            raise
        ports.reach("seed.intent")
        try:
            self._create_generation(attempt, base.shape, manifest)
            decided = AttemptDecided(
                number=number,
                physical=target.physical,
                publish=SwitchGeneration(
                    physical=target.physical,
                    generation=attempt.generation,
                    shape=base.shape,
                    description=target.model.description,
                ),
                head=replace(base, physical=target.physical, sequence=1, generation=attempt.generation, attempt=number),
                folders_set=manifest,
            )
            ports.reach("seed.decided")
            taken = OutcomesTaken(physical=target.physical, outcomes=seeding.facts.outcomes)
            self._decide_and_carry_out(attempt, decided, 0, 3, begun, also=(taken,))
        except LaminaError as error:
            self._note(error)
            if not self._is_lost:
                self._abort(attempt, error, begun)
            raise

    def _create_generation(self, attempt: Attempt, shape: TableShape, manifest: Mapping[PartitionKey, str]) -> None:
        model = self._target.model
        self._ports.engine.create_generation(
            GenerationRequest(
                physical=attempt.physical,
                generation=attempt.generation,
                shape=shape,
                manifest=manifest,
                folder=attempt.folder,
                properties=model.physical_properties,
                storage_format=model.storage_format,
            )
        )

    # --- intent ---
    def _parents(self) -> dict[NodeName, PhysicalName]:
        target = self._target
        names = [*stored_parents(target.graph, target.model.name)]
        if target.model.name in target.model.reads:
            names.append(target.model.name)
        return {name: target.physical_of[name] for name in names}

    def _intend(self, number: int, batch: Batch) -> tuple[Attempt, Base | None, Relations]:
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
                generation=generation_name(target.physical, number),
                base_sequence=own.sequence if own else 0,
                reads=tuple(Read(physical=head.physical, sequence=head.sequence) for head in heads.values()),
                seeded=Intervals.of([batch.span]) if batch.span else EMPTY,
                execution_time=target.execution,
            )
            facts: list[Fact] = [AttemptOpened(attempt=attempt, run_id=target.run_id)]
            requires: list[Requirement] = [
                self._token,
                *(NothingPending(physical=physical) for physical in parents.values() if physical != target.physical),
            ]
            if self._is_first:
                facts = [*target.recorded, *facts]
                requires.append(MarkIs(physical=target.physical, mark=self._mark))
            self._commit_as_planned(facts, requires)
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
        self._commit_as_planned([removed], [self._token, MarkIs(physical=self._target.physical, mark=self._mark)])
        self._mark += 1
        self._is_asked |= reached.is_asked
        self._ports.reach("follow.recorded")

    def _commit_as_planned(self, facts: Sequence[Fact], requires: Sequence[Requirement]) -> None:
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

    # --- decide and publish ---
    def _publish_rows(self, attempt: Attempt, base: Base | None, written: Written, begun: float) -> BatchOutcome:
        ports, target = self._ports, self._target
        statements = written.statements
        if self._is_unchanged(attempt, base, written):
            self._end_unchanged(attempt, written, begun)
            return BatchOutcome(rows=written.rows, statements=statements, null_times=written.null_times)
        with self._publish_lock:
            base = self._current_base(attempt, base, written)
            shape, publish_adds = self._published_shape(base, written)
            manifest: dict[PartitionKey, str] = dict(base.manifest) if base and not publish_adds else {}
            for key in written.removed:
                manifest.pop(key, None)
            manifest.update(written.folders)
            publish: Publish
            if publish_adds and base is not None:
                generation = base.head.generation
                publish = AddPartitions(
                    physical=target.physical, generation=generation, shape=shape, partitions=written.folders
                )
                statements += 1 if written.folders else 0
            else:
                generation = attempt.generation
                self._create_generation(attempt, shape, manifest)
                ports.reach("write.generation")
                publish = SwitchGeneration(
                    physical=target.physical,
                    generation=generation,
                    shape=shape,
                    description=target.model.description,
                )
                statements += 2 + (1 if manifest and shape.partition_columns else 0)
            head = Head(
                physical=target.physical,
                sequence=(base.head.sequence if base else 0) + 1,
                generation=generation,
                attempt=attempt.number,
                shape=shape,
                contents=contents_after(attempt.interval, base, written),
            )
            rewritten = self._rewritten(attempt, base, written)
            decided = AttemptDecided(
                number=attempt.number,
                physical=target.physical,
                publish=publish,
                head=head,
                rewritten=rewritten,
                is_asked=self._is_asked and not rewritten.is_empty,
                folders_set=written.folders,
                folders_removed=tuple(key for key in written.removed if key not in written.folders),
                rows=written.rows,
            )
            has_new_columns = base is not None and base.head.shape.columns != shape.columns
            self._decide_and_carry_out(
                attempt, decided, base.head.sequence if base else 0, statements, begun, has_new_columns=has_new_columns
            )
        return BatchOutcome(rows=written.rows, statements=statements, null_times=written.null_times, changed=rewritten)

    def _is_unchanged(self, attempt: Attempt, base: Base | None, written: Written) -> bool:
        """Whether what is shown is what came out, so that there is nothing to publish."""
        if base is None or written.shape != base.head.shape:
            return False
        if attempt.interval is None:
            has_no_effect = bool(written.shape.partition_columns) and not written.folders and not written.removed
            is_same = None in written.contents and written.contents[None] == base.head.contents.get(None)
            return has_no_effect or is_same
        recorded = within(attempt.interval, self._target.recorded_time)
        return written.changed.is_empty and recorded.covers(attempt.interval)

    def _rewritten(self, attempt: Attempt, base: Base | None, written: Written) -> Intervals:
        """Time that came out different from what its readers may have read.

        A whole table counts only where somebody asked for it: it changes whenever something above it grows, and nobody
        wants all of its readers' history computed again each time.
        """
        if attempt.interval is not None:
            recorded = self._target.recorded_time
            filled = Intervals.of([attempt.interval]).minus(recorded) if written.rows else EMPTY
            return written.changed.union(before_end(filled, recorded))
        return ALL_TIME if self._is_asked and base is not None else EMPTY

    def _end_unchanged(self, attempt: Attempt, written: Written, begun: float) -> None:
        ports, target = self._ports, self._target
        ports.reach("write.unchanged")
        ports.store.commit(
            [
                AttemptUnchanged(number=attempt.number, physical=target.physical),
                *self._audits_recorded(attempt),
                self._batch_fact(attempt, "succeeded", written.rows, written.statements, begun),
            ],
            [self._token, AttemptIs(number=attempt.number, status="open")],
        )
        ports.reach("write.done")

    def _current_base(self, attempt: Attempt, base: Base | None, written: Written) -> Base | None:
        """The base as it is now; a sister batch may have moved it, but never in this batch's own partitions."""
        target = self._target
        loaded = self._ports.store.load(
            LoadRequest(heads=(target.physical,), manifests=(target.physical,), facts_of_pointers=False)
        )
        head = loaded.heads.get(target.physical)
        if head is None or (base is not None and head.sequence == base.head.sequence):
            return base
        self._ports.reach("write.sister_decided")
        now = Base(head=head, manifest=loaded.manifests.get(target.physical, {}))
        before = base.manifest if base else {}
        own = {*written.folders, *written.removed}
        if any(now.manifest.get(key) != before.get(key) for key in own):
            raise PlanOutdated(
                f"two batches of `{target.model.name}` share a partition",
                hint="set `batch_concurrency 1` on the model and run the command again",
                node=target.model.name,
                interval=attempt.interval.to_pair() if attempt.interval else None,
            )
        return now

    @staticmethod
    def _published_shape(base: Base | None, written: Written) -> tuple[TableShape, bool]:
        """The shape to publish, and whether partitions can simply be added to what is shown."""
        if base is None:
            return written.shape, False
        is_same = written.shape == base.head.shape
        only_adds = not written.removed and not any(key in base.manifest for key in written.folders)
        return written.shape, is_same and only_adds and bool(written.shape.partition_columns)

    def _publish_view(self, attempt: Attempt, relations: Relations, begun: float) -> BatchOutcome:
        ports, target = self._ports, self._target
        model = target.model
        sql = relations.reader_query(model, target.physical_of, target.execution)
        (outcome,) = ports.engine.analyse(
            [
                AnalysisRequest(
                    node=model.name,
                    location=model.location,
                    rows=SqlQuery(sql=with_declared(model, sql)),
                    settings=model.session_properties,
                )
            ]
        )
        if outcome.error is not None:
            raise outcome.error
        shape = TableShape(columns=with_comments(outcome.columns or (), comments_of(model)))
        self._note_audits(attempt, audit_view(ports.engine, target, attempt, relations, self._readable(relations)))
        with self._publish_lock:
            publish = SetView(
                physical=target.physical,
                generation=attempt.generation,
                sql=with_declared(model, sql),
                shape=shape,
                description=model.description,
            )
            head = Head(
                physical=target.physical,
                sequence=attempt.base_sequence + 1,
                generation=attempt.generation,
                attempt=attempt.number,
                shape=shape,
                view_sql=publish.sql,
            )
            decided = AttemptDecided(number=attempt.number, physical=target.physical, publish=publish, head=head)
            self._decide_and_carry_out(attempt, decided, attempt.base_sequence, 2, begun)
        return BatchOutcome(rows=None, statements=2)

    def _readable(self, relations: Relations) -> str:
        """The rows of a view as Lamina itself reads them: from what state names, never through other views."""
        model = self._target.model
        return with_declared(model, relations.query(model, None, self._target.execution))

    def _decide_and_carry_out(
        self,
        attempt: Attempt,
        decided: AttemptDecided,
        base_sequence: int,
        statements: int,
        begun: float,
        *,
        has_new_columns: bool = False,
        also: tuple[Fact, ...] = (),
    ) -> None:
        ports, target = self._ports, self._target
        ports.reach("write.decide")
        ports.store.commit(
            [decided, *self._audits_recorded(attempt), *also],
            [
                self._token,
                AttemptIs(number=attempt.number, status="open"),
                HeadIs(physical=target.physical, sequence=base_sequence),
                NothingPending(physical=target.physical),
            ],
        )
        ports.reach("write.decided")
        self._carry_out(decided.publish, has_new_columns=has_new_columns)
        ports.reach("write.published")
        ports.store.commit(
            [
                AttemptDone(number=attempt.number, physical=target.physical),
                self._batch_fact(attempt, "succeeded", decided.rows, statements, begun),
            ],
            [self._token, AttemptIs(number=attempt.number, status="decided")],
        )
        ports.reach("write.done")

    def _carry_out(self, publish: Publish, *, has_new_columns: bool) -> None:
        """Publish what was decided; what fails in a way that may pass is tried again, because sisters wait for it."""
        ports, pause = self._ports, self._ports.retry_pause
        for tries_left in reversed(range(TRIES)):
            try:
                publish_under(ports, self._grant.lease, publish, has_new_columns=has_new_columns)
                return
            except LaminaError as error:
                if not error.is_retryable:
                    raise
                if not tries_left:
                    raise BatchFailed(
                        f"new rows of `{self._target.model.name}` are written but could not be shown: {error.message}",
                        hint="run the command again; it carries out what was decided",
                        node=self._target.model.name,
                    ) from error
            time.sleep(pause)
            pause *= PAUSE_GROWTH

    # --- failures ---
    def _abort(self, attempt: Attempt, error: LaminaError, begun: float) -> None:
        """Record that nothing of an open attempt was published; a decided one stays for recovery to carry out.

        A store that does not answer changes nothing about what went wrong first: the attempt is left to recovery.
        """
        ports, target = self._ports, self._target
        failed = replace_error(self._batch_fact(attempt, "failed", None, 0, begun), error)
        try:
            ports.store.commit(
                [
                    AttemptAborted(number=attempt.number, physical=target.physical, reason=error.message),
                    *self._audits_recorded(attempt, is_shown=False),
                    failed,
                ],
                [self._token, AttemptIs(number=attempt.number, status="open")],
            )
        except LeaseLost as lost:
            self._note(lost)
        except CommitRefused:
            ports.store.commit([failed])
        except StateError as unanswered:
            self._note(unanswered)

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


def replace_error(fact: BatchRecorded, error: LaminaError) -> BatchRecorded:
    """The batch's record with what went wrong."""
    return replace(fact, error=error.to_dict())
