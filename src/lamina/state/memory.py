"""A state store in plain Python structures, for tests and for trying things out; it forgets everything at the end."""

from __future__ import annotations

import secrets
import threading
from collections import defaultdict
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from typing_extensions import assert_never

from lamina.app.ports.facts import (
    AttemptAborted,
    AttemptDecided,
    AttemptDone,
    AttemptOpened,
    AttemptRetracting,
    AttemptUnchanged,
    AuditsRecorded,
    BatchRecorded,
    CoverageRemoved,
    DefinitionRecorded,
    IdentityStands,
    LeaseClosed,
    LeaseReleased,
    OutcomesTaken,
    RevisionFollowed,
    RevisionWritten,
    RunFinished,
    RunStarted,
    VersionRecorded,
)
from lamina.app.ports.loaded import HistoryEntry, Lease, LeaseGrant, Loaded, Unsettled, version_resource
from lamina.environments.pointers import Revision
from lamina.planning.inputs import Rewrite, VersionFacts
from lamina.state.leases import close_lost, expiry, is_unsettled, machine_time, require_held, succeed
from lamina.state.outcomes import NOTHING_ASKED, Outcomes, forgotten, remembered
from lamina.state.requirements import (
    check,
    refuse_followed,
    refuse_head,
    refuse_revision,
    refuse_second_attempt,
)
from lamina.state.work import NOTHING_DONE, Work, require_step, touched, with_done, with_opened, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lamina.app.ports.facts import Fact
    from lamina.app.ports.loaded import LoadRequest, Owner, RevisionsSince
    from lamina.app.ports.machine import FateOf
    from lamina.app.ports.published import Attempt, AttemptStatus, Head, PartitionKey
    from lamina.app.ports.requirements import Requirement
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName, VersionId
    from lamina.planning.inputs import Read
    from lamina.timeline.interval import Instant, Interval, Intervals

_FINISHED = frozenset({"done", "aborted"})


@dataclass(slots=True)
class _Contents:
    """Everything the store knows; values inside are never changed, so a shallow copy of each container is a copy."""

    definitions: dict[str, Model] = field(default_factory=dict)
    versions: dict[PhysicalName, VersionRecorded] = field(default_factory=dict)
    identities: dict[tuple[NodeName, str], tuple[str, ...]] = field(default_factory=dict)
    attempts: dict[int, Attempt] = field(default_factory=dict)
    work: dict[PhysicalName, Work] = field(default_factory=dict)
    heads: dict[PhysicalName, Head] = field(default_factory=dict)
    rewrites: dict[PhysicalName, tuple[Rewrite, ...]] = field(default_factory=dict)
    manifests: dict[PhysicalName, dict[PartitionKey, str]] = field(default_factory=dict)
    leases: dict[str, dict[int, Lease]] = field(default_factory=lambda: defaultdict(dict))
    revisions: dict[str, list[Revision]] = field(default_factory=lambda: defaultdict(list))
    runs: dict[str, RunStarted] = field(default_factory=dict)
    run_ends: dict[str, RunFinished] = field(default_factory=dict)
    batches: list[BatchRecorded] = field(default_factory=list)
    audits: list[AuditsRecorded] = field(default_factory=list)
    outcomes: dict[PhysicalName, Outcomes] = field(default_factory=dict)

    # --- what requirements ask ----------------------------------------------------------------------------------------
    def newest_lease(self, resource: str) -> Lease | None:
        held = self.leases.get(resource)
        return held[max(held)] if held else None

    def attempt_status(self, number: int) -> AttemptStatus | None:
        attempt = self.attempts.get(number)
        return attempt.status if attempt else None

    def pending_attempt(self, physical: PhysicalName) -> int | None:
        return next((a.number for a in self.unfinished(physical) if a.status != "open"), None)

    def head_sequence(self, physical: PhysicalName) -> int:
        head = self.heads.get(physical)
        return head.sequence if head else 0

    def mark(self, physical: PhysicalName) -> int:
        return self.work.get(physical, NOTHING_DONE).mark

    def newest_revision(self, environment: str) -> int:
        return self.revision(environment).number

    # --- further questions --------------------------------------------------------------------------------------------
    def revision(self, environment: str) -> Revision:
        revisions = self.revisions.get(environment)
        return revisions[-1] if revisions else Revision(environment=environment)

    def unfinished(self, physical: PhysicalName | None = None) -> list[Attempt]:
        return [
            attempt
            for attempt in self.attempts.values()
            if attempt.status not in _FINISHED and physical in {None, attempt.physical}
        ]

    # --- facts --------------------------------------------------------------------------------------------------------
    def apply(self, fact: Fact) -> None:
        match fact:
            case DefinitionRecorded():
                self.definitions.setdefault(fact.definition_id, fact.model)
            case IdentityStands(same=same):
                key = (same.node, same.identity)
                self.identities[key] = tuple(sorted({*self.identities.get(key, ()), same.stands_for}))
            case VersionRecorded():
                self.versions.setdefault(fact.physical, fact)
            case AttemptOpened():
                self._open(fact.attempt)
            case AttemptDecided():
                self._decide(fact)
            case AttemptDone():
                if fact.landed is not None:
                    self._move_head(fact.landed, fact.rewritten, is_asked=fact.is_asked)
                attempt = self._move(fact.number, "done")
                self._set_work(fact.physical, with_done(self._work(fact.physical), attempt))
            case AttemptUnchanged():
                attempt = self._move(fact.number, "done", before="open")
                self._set_work(fact.physical, with_done(self._work(fact.physical), attempt))
            case AttemptRetracting():
                self._move(fact.number, "retracting")
            case AttemptAborted():
                self._abort(fact)
            case CoverageRemoved():
                self._set_work(
                    fact.physical, without(self._work(fact.physical), fact.intervals, fact.followed, fact.restated_at)
                )
            case LeaseReleased():
                newest = self.newest_lease(fact.resource)
                lease = require_held(newest, fact.resource, fact.token)
                self.leases[fact.resource][fact.token] = replace(lease, status="released")
            case LeaseClosed():
                found = self.leases[fact.resource].get(fact.token)
                self.leases[fact.resource][fact.token] = close_lost(found, fact.resource, fact.token)
            case RevisionWritten():
                self._write_revision(fact.revision)
            case RevisionFollowed():
                self._follow(fact.environment, fact.number)
            case RunStarted():
                self.runs.setdefault(fact.run_id, fact)
            case RunFinished():
                self.run_ends[fact.run_id] = fact
            case BatchRecorded():
                self.batches.append(fact)
            case AuditsRecorded():
                if fact.results:
                    self.audits.append(fact)
                if fact.is_shown:
                    before = self.outcomes.get(fact.physical, NOTHING_ASKED)
                    self.outcomes[fact.physical] = remembered(before, fact.interval, fact.results)
            case OutcomesTaken():
                self.outcomes[fact.physical] = fact.outcomes
            case _:
                assert_never(fact)

    def _work(self, physical: PhysicalName) -> Work:
        return self.work.get(physical, NOTHING_DONE)

    def _set_work(self, physical: PhysicalName, work: Work) -> None:
        self.work[physical] = work

    def _open(self, attempt: Attempt) -> None:
        if attempt.number in self.attempts:
            raise refuse_second_attempt(attempt.number)
        self.attempts[attempt.number] = replace(attempt, status="open", publish=None, rows=None)
        if attempt.interval is not None:
            work = with_opened(self._work(attempt.physical), attempt, attempt.interval)
            self._set_work(attempt.physical, work)

    def _move(self, number: int, status: AttemptStatus, before: AttemptStatus | None = None) -> Attempt:
        require_step(number, self.attempt_status(number), status, before)
        self.attempts[number] = replace(self.attempts[number], status=status)
        return self.attempts[number]

    def _decide(self, fact: AttemptDecided) -> None:
        attempt = self._move(fact.number, "decided")
        self.attempts[fact.number] = replace(attempt, publish=fact.publish, rows=fact.rows)
        self._forget(fact.physical, attempt.interval)
        if fact.head is not None:
            self._move_head(fact.head, fact.rewritten, is_asked=fact.is_asked)
            manifest = {**self.manifests.get(fact.physical, {}), **fact.folders_set}
            for key in fact.folders_removed:
                manifest.pop(key, None)
            self.manifests[fact.physical] = manifest
        self._set_work(fact.physical, touched(self._work(fact.physical)))

    def _abort(self, fact: AttemptAborted) -> None:
        was_decided = self.attempt_status(fact.number) == "retracting"
        attempt = self._move(fact.number, "aborted")
        if was_decided:
            self._forget(fact.physical, attempt.interval)
        if attempt.interval is not None:
            self._set_work(fact.physical, touched(self._work(fact.physical)))

    def _forget(self, physical: PhysicalName, interval: Interval | None) -> None:
        if physical in self.outcomes:
            self.outcomes[physical] = forgotten(self.outcomes[physical], interval)

    def _move_head(self, head: Head, rewritten: Intervals, *, is_asked: bool) -> None:
        found = self.head_sequence(head.physical)
        if head.sequence != found + 1:
            raise refuse_head(head.physical, found, head.sequence)
        self.heads[head.physical] = head
        if not rewritten.is_empty:
            rewrite = Rewrite(sequence=head.sequence, intervals=rewritten, is_asked=is_asked)
            self.rewrites[head.physical] = (*self.rewrites.get(head.physical, ()), rewrite)

    def _write_revision(self, revision: Revision) -> None:
        found = self.newest_revision(revision.environment)
        if revision.number != found + 1:
            raise refuse_revision(revision.environment, found, revision.number)
        self.revisions[revision.environment].append(replace(revision, is_followed=False))
        if revision.is_followed:
            self._follow(revision.environment, revision.number)

    def _follow(self, environment: str, number: int) -> None:
        newest = self.newest_revision(environment)
        if not 1 <= number <= newest:
            raise refuse_followed(environment, newest, number)
        self.revisions[environment] = [
            replace(revision, is_followed=True) if revision.number <= number else revision
            for revision in self.revisions[environment]
        ]


class MemoryStateStore:
    """The `StateStore` port without a database: a commit works on a copy that takes the place of the original."""

    def __init__(self, clock: Callable[[], Instant] = machine_time) -> None:
        self.clock = clock
        self.store_id = secrets.token_hex(4)
        self.seal_key: bytes | None = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._contents = _Contents()
        self._next_attempt = 1

    def unsettled(self) -> Unsettled:
        """What the start check looks for."""
        with self._lock:
            contents, now = self._contents, self.clock()
            every_lease = (lease for by_token in contents.leases.values() for lease in by_token.values())
            found = [lease for lease in every_lease if is_unsettled(lease, now)]
            behind = (r for by_number in contents.revisions.values() for r in by_number if not r.is_followed)
            return Unsettled(
                leases=tuple(sorted(found, key=lambda lease: (lease.resource, lease.token))),
                attempts=tuple(sorted(contents.unfinished(), key=lambda attempt: attempt.number)),
                revisions=tuple(sorted(behind, key=lambda revision: (revision.environment, revision.number))),
            )

    def load(self, request: LoadRequest) -> Loaded:
        """The facts asked for."""
        with self._lock:
            contents = self._contents
            known = sorted(contents.revisions) if request.all_environments else ()
            names = dict.fromkeys((*request.environments, *known))
            revisions = {name: contents.revision(name) for name in names}
            pointers = [pointer for revision in revisions.values() for pointer in revision.pointers.values()]
            wanted_facts = {p.physical for p in pointers if p.physical} if request.facts_of_pointers else set()
            wanted_facts |= _named(contents, request.versions)
            wanted_definitions = set(request.definitions)
            if request.definitions_of_pointers:
                wanted_definitions |= {pointer.definition_id for pointer in pointers}
            manifests = {name: contents.manifests.get(name, {}) for name in request.manifests if name in contents.heads}
            return Loaded(
                revisions=MappingProxyType(revisions),
                facts=MappingProxyType(_facts(contents, wanted_facts)),
                equals=MappingProxyType(
                    {asked: contents.identities[asked] for asked in request.identities if asked in contents.identities}
                ),
                definitions=MappingProxyType(
                    {id_: contents.definitions[id_] for id_ in wanted_definitions if id_ in contents.definitions}
                ),
                heads=MappingProxyType(
                    {name: contents.heads[name] for name in request.heads if name in contents.heads}
                ),
                manifests=MappingProxyType({name: MappingProxyType(found) for name, found in manifests.items()}),
                rewrites=MappingProxyType(_rewrites(contents, request.rewrites)),
                checkpoints=MappingProxyType({name: _checkpoints(contents, name) for name in request.checkpoints_of}),
                series=MappingProxyType({one.environment: _series(contents, one) for one in request.revisions_since}),
            )

    def allocate(self, count: int) -> int:
        """Attempt numbers that nobody else gets."""
        with self._lock:
            first = self._next_attempt
            self._next_attempt += count
            return first

    def take(self, resource: str, owner: Owner, *, seconds: float, fate_of: FateOf) -> LeaseGrant:
        """A lease, with what was left unfinished on the resource."""
        with self._lock:
            contents = _copied(self._contents)
            former, now = contents.newest_lease(resource), self.clock()
            lease, changed = succeed(former, resource, owner, now=now, seconds=seconds, fate_of=fate_of)
            if changed is not None:
                contents.leases[resource][changed.token] = changed
            contents.leases[resource][lease.token] = lease
            self._contents = contents
            return LeaseGrant(
                lease=lease,
                taken_at=now,
                unfinished=tuple(a for a in contents.unfinished() if version_resource(a.physical) == resource),
                lost=tuple(found for found in contents.leases[resource].values() if found.status == "lost"),
            )

    def renew(self, leases: Sequence[Lease], *, seconds: float) -> None:
        """Later expiry for all of them, or for none."""
        with self._lock:
            found = [
                require_held(self._contents.newest_lease(lease.resource), lease.resource, lease.token)
                for lease in leases
            ]
            now = self.clock()
            for lease in found:
                renewed = replace(lease, expires_at=expiry(now, seconds))
                self._contents.leases[lease.resource][lease.token] = renewed

    def commit(self, facts: Sequence[Fact], requires: Sequence[Requirement] = ()) -> None:
        """All facts or none."""
        with self._lock:
            contents = _copied(self._contents)
            check(requires, contents)
            for fact in facts:
                contents.apply(fact)
            self._contents = contents

    def history(self, *, run_id: str | None = None, limit: int = 20) -> tuple[HistoryEntry, ...]:
        """Runs, newest first."""
        with self._lock:
            contents = self._contents
            runs = [run for run in reversed(contents.runs.values()) if run_id in {None, run.run_id}]
            return tuple(_entry(contents, run) for run in runs[:limit])

    def close(self) -> None:
        """Nothing to let go of."""


def _copied(contents: _Contents) -> _Contents:
    """A copy with containers of its own."""
    return _Contents(
        definitions=dict(contents.definitions),
        versions=dict(contents.versions),
        identities=dict(contents.identities),
        attempts=dict(contents.attempts),
        work=dict(contents.work),
        heads=dict(contents.heads),
        rewrites=dict(contents.rewrites),
        manifests=dict(contents.manifests),
        leases=defaultdict(dict, {resource: dict(found) for resource, found in contents.leases.items()}),
        revisions=defaultdict(list, {name: list(found) for name, found in contents.revisions.items()}),
        runs=dict(contents.runs),
        run_ends=dict(contents.run_ends),
        batches=list(contents.batches),
        audits=list(contents.audits),
        outcomes=dict(contents.outcomes),
    )


def _named(contents: _Contents, versions: Iterable[tuple[NodeName, VersionId]]) -> set[PhysicalName]:
    wanted = set(versions)
    return {fact.physical for fact in contents.versions.values() if (fact.node, fact.version) in wanted}


def _facts(contents: _Contents, names: Iterable[PhysicalName]) -> Mapping[PhysicalName, VersionFacts]:
    found = {}
    for name in sorted(names):
        recorded = contents.versions.get(name)
        if recorded is None:
            continue
        work = contents.work.get(name, NOTHING_DONE)
        found[name] = VersionFacts(
            physical=name,
            node=recorded.node,
            version=recorded.version,
            definition_id=recorded.definition_id,
            fingerprint=recorded.fingerprint,
            mark=work.mark,
            head_sequence=contents.head_sequence(name),
            covered=work.covered,
            reopened=work.reopened,
            built_at=work.built_at,
            restated_at=work.restated_at,
            reads=work.reads,
            rewritten_at=max((rewrite.sequence for rewrite in contents.rewrites.get(name, ())), default=0),
            outcomes=contents.outcomes.get(name, NOTHING_ASKED),
        )
    return found


def _rewrites(contents: _Contents, asked: Iterable[Read]) -> dict[PhysicalName, tuple[Rewrite, ...]]:
    found = {
        read.physical: tuple(
            rewrite for rewrite in contents.rewrites.get(read.physical, ()) if rewrite.sequence > read.sequence
        )
        for read in asked
    }
    return {physical: rewrites for physical, rewrites in found.items() if rewrites}


def _checkpoints(contents: _Contents, environment: str) -> tuple[Revision, ...]:
    revisions = contents.revisions.get(environment, [])
    return tuple(revision for revision in reversed(revisions) if revision.status == "finalized")


def _series(contents: _Contents, asked: RevisionsSince) -> tuple[Revision, ...]:
    revisions = contents.revisions.get(asked.environment, [])
    first = max((revision.number for revision in revisions if revision.is_followed), default=0)
    if asked.moment is not None:
        known = (r.number for r in revisions if r.created_at is not None and r.created_at <= asked.moment)
        first = min(first, max(known, default=0))
    return tuple(revision for revision in revisions if revision.number >= first)


def _entry(contents: _Contents, run: RunStarted) -> HistoryEntry:
    end = contents.run_ends.get(run.run_id)
    batches = [batch for batch in contents.batches if batch.run_id == run.run_id]
    return HistoryEntry(
        run_id=run.run_id,
        command=run.command,
        environment=run.environment,
        status=end.status if end else "running",
        started_at=run.started_at,
        finished_at=end.finished_at if end else None,
        execution_time=run.execution_time,
        batches=tuple(sorted(batches, key=lambda batch: batch.finished_at)),
        audits=tuple(audits for audits in contents.audits if audits.run_id == run.run_id),
    )
