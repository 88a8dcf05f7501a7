"""Giving an environment copies of its own of versions that others show too, before it computes them again.

The copies hold the same rows, so pointing to them changes nothing for readers; it is done first and as a whole. From
there on the environment's versions are written like any other, and what is interrupted is found by the next command.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from lamina.app.environments.point import EnvironmentPointer, next_revision
from lamina.app.environments.virtual_update import Followed
from lamina.app.leases.retried import retried
from lamina.app.ports.events import Retried
from lamina.app.writing.seed import MARK_OF_SEEDED
from lamina.app.writing.write_version import VersionWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamina.app.leases.command_ports import CommandPorts
    from lamina.app.ports.facts import Fact
    from lamina.app.writing.batch_request import WriteTarget
    from lamina.environments.pointers import Revision
    from lamina.identity.naming import PhysicalName
    from lamina.planning.steps import Plan, Step


def fork_versions(
    ports: CommandPorts,
    plan: Plan,
    before: Revision,
    target_of: Callable[[Step], WriteTarget],
    definitions: tuple[Fact, ...],
) -> tuple[Revision, dict[PhysicalName, int], Followed]:
    """Make the plan's forks and point the environment to them.

    Answers its revision, the marks of the copies, and how the environment followed.
    """
    marks: dict[PhysicalName, int] = {}
    pointers = dict(plan.before)
    for step in plan.steps:
        if step.seed is None or step.physical is None:
            continue
        writer = VersionWriter(ports, target_of(step))
        try:
            retried(
                partial(writer.seed, step.seed),
                ports.emit,
                partial(Retried, what=f"the copy of {step.node}"),
                pause=ports.retry_pause,
                is_stopped_within=ports.keeper.is_stopped_within,
            )
        finally:
            writer.release()
        marks[step.physical] = MARK_OF_SEEDED
        pointers[step.node] = plan.pointers[step.node]
    if not marks:
        return before, marks, Followed()
    revision = next_revision(before, pointers, "active", ports.clock)
    followed = EnvironmentPointer(ports, plan.now).move(before, revision, plan.models, definitions)
    return replace(revision, is_followed=not followed.failures), marks, followed
