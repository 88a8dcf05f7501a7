"""Beginning a version with the rows of another one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lamina.app.records import (
    Attempt,
    AttemptDecided,
    AttemptOpened,
    LoadRequest,
    MarkIs,
    NothingPending,
    OutcomesTaken,
    SwitchGeneration,
)
from lamina.errors import LaminaError
from lamina.identity.naming import batch_folder

if TYPE_CHECKING:
    from lamina.app.publisher import Publisher
    from lamina.planning.steps import Seeding


MARK_OF_SEEDED = 2
"""How often the work of a version was changed once it is seeded: it was decided, and it was done."""


def seed_version(publisher: Publisher, seeding: Seeding) -> None:
    """Begin with the rows of another version: its folders are shown under this version's name, nothing is copied.

    What was known of them is known here then, and as one step: before it the version does not exist.
    """
    ports, target, log, source = publisher.ports, publisher.target, publisher.log, seeding.source
    begun, number = ports.clock.elapsed(), ports.store.allocate(1)
    loaded = ports.store.load(LoadRequest(heads=(source,), manifests=(source,), facts_of_pointers=False))
    base, manifest = loaded.heads[source], loaded.manifests.get(source, {})
    attempt = Attempt(
        number=number,
        physical=target.physical,
        token=publisher.lease.token,
        status="open",
        interval=None,
        folder=batch_folder(target.physical, number, ports.store.store_id),
        generation=publisher.generation(number),
        base_sequence=0,
        reads=seeding.facts.reads,
        seeded=seeding.facts.covered,
        execution_time=seeding.facts.built_at,
    )
    try:
        log.commit_as_planned(
            [*target.recorded, AttemptOpened(attempt=attempt, run_id=target.run_id)],
            [
                log.token,
                NothingPending(physical=source),
                MarkIs(physical=source, mark=seeding.source_mark),
                MarkIs(physical=target.physical, mark=0),
            ],
        )
    except LaminaError as error:
        log.note(error)
        raise
    ports.reach("seed.intent")
    try:
        snapshot = publisher.create_generation(attempt, base.shape, manifest, source=base)
        decided = AttemptDecided(
            number=number,
            physical=target.physical,
            publish=SwitchGeneration(
                physical=target.physical,
                generation=attempt.generation,
                shape=base.shape,
                description=target.model.description,
            ),
            head=replace(
                base,
                physical=target.physical,
                sequence=1,
                generation=attempt.generation,
                attempt=number,
                snapshot=snapshot,
            ),
            folders_set=manifest,
        )
        ports.reach("seed.decided")
        taken = OutcomesTaken(physical=target.physical, outcomes=seeding.facts.outcomes)
        publisher.decide_and_carry_out(attempt, decided, 0, 3, begun, also=(taken,))
    except LaminaError as error:
        log.note(error)
        if not log.is_lost:
            log.abort(attempt, error, begun)
        raise
