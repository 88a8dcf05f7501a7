"""Giving a version a table that begins with rows which are there already: those of another version, or its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lamina.app.ports.facts import AttemptDecided, AttemptOpened, CoverageRemoved, OutcomesTaken
from lamina.app.ports.loaded import LoadRequest
from lamina.app.ports.published import Attempt, switch_to
from lamina.app.ports.requirements import MarkIs, NothingPending
from lamina.app.writing.batch_request import description_of
from lamina.errors import LaminaError
from lamina.identity.naming import batch_folder
from lamina.planning.inputs import Read
from lamina.timeline.interval import EMPTY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lamina.app.ports.facts import Fact
    from lamina.app.ports.published import Head, PartitionKey
    from lamina.app.ports.requirements import Requirement
    from lamina.app.writing.publisher import Publisher
    from lamina.planning.inputs import VersionFacts
    from lamina.planning.steps import Seeding


MARK_OF_SEEDED = 2
"""How often the work of a version was changed once it is seeded: it was decided, and it was done."""


def seed_version(publisher: Publisher, seeding: Seeding) -> None:
    """Begin with the rows of another version: its folders are shown under this version's name, nothing is copied.

    What was known of them is known here then, and as one step: before it the version does not exist.
    """
    target, source = publisher.target, seeding.source
    loaded = publisher.ports.store.load(
        LoadRequest(heads=(source,), manifests=(source,), facts_of_pointers=False),
    )
    base = loaded.heads[source]
    requires = (
        NothingPending(physical=source),
        MarkIs(physical=source, mark=seeding.source_mark),
        MarkIs(physical=target.physical, mark=0),
    )
    _make_table(publisher, base, loaded.manifests.get(source, {}), seeding.facts, requires, sequence=1)


def mend_version(publisher: Publisher, facts: VersionFacts, readers: Iterable[VersionFacts]) -> None:
    """Have a version whose table has lost files show a table with the same rows, put together from what is left.

    Nothing is computed, and `readers` that had read everything have read everything still. `StorageMissing` when rows
    are nowhere to be found.
    """
    physical = publisher.target.physical
    base = publisher.ports.store.load(LoadRequest(heads=(physical,), facts_of_pointers=False)).heads[physical]
    before, after = (Read(physical=physical, sequence=sequence) for sequence in (base.sequence, base.sequence + 1))
    followed = (
        CoverageRemoved(physical=reader.physical, intervals=EMPTY, followed=(after,))
        for reader in readers
        if before in reader.reads and reader.physical != physical
    )
    requires = (MarkIs(physical=physical, mark=facts.mark),)
    _make_table(publisher, base, {}, facts, requires, sequence=after.sequence, is_mended=True, also=tuple(followed))


def _make_table(
    publisher: Publisher,
    base: Head,
    manifest: Mapping[PartitionKey, str],
    facts: VersionFacts,
    requires: tuple[Requirement, ...],
    *,
    sequence: int,
    is_mended: bool = False,
    also: tuple[Fact, ...] = (),
) -> None:
    """Make a table with the rows of a head and show it; what is known of them is given as it will be known then."""
    ports, target, log = publisher.ports, publisher.target, publisher.log
    begun, number = ports.clock.elapsed(), ports.store.allocate(1)
    attempt = Attempt(
        number=number,
        physical=target.physical,
        token=publisher.lease.token,
        status="open",
        interval=None,
        folder=batch_folder(target.physical, number, ports.store.store_id),
        generation=publisher.generation(number),
        base_sequence=sequence - 1,
        reads=facts.reads,
        seeded=facts.covered,
        execution_time=facts.built_at,
    )
    try:
        log.commit_as_planned(
            [*target.recorded, AttemptOpened(attempt=attempt, run_id=target.run_id)], [log.token, *requires]
        )
    except LaminaError as error:
        log.note(error)
        raise
    ports.reach("seed.intent")
    try:
        snapshot = publisher.create_generation(attempt, base.shape, manifest, source=base, is_mended=is_mended)
        head = replace(
            base,
            physical=target.physical,
            sequence=sequence,
            generation=attempt.generation,
            attempt=number,
            snapshot=snapshot,
            beneath=None,
        )
        decided = AttemptDecided(
            number=number,
            physical=target.physical,
            publish=switch_to(head, description_of(target.model)),
            head=head,
            folders_set=manifest,
        )
        ports.reach("seed.decided")
        taken = OutcomesTaken(physical=target.physical, outcomes=facts.outcomes)
        publisher.decide_and_carry_out(attempt, decided, sequence - 1, 3, begun, also=(taken, *also))
    except LaminaError as error:
        log.note(error)
        if not log.is_lost:
            log.abort(attempt, error, begun)
        raise
