"""Whether what a commit requires is true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from typing_extensions import assert_never

from lamina.app.ports.requirements import AttemptIs, HeadIs, LeaseIsCurrent, MarkIs, NothingPending, RevisionIs
from lamina.errors import CommitRefused
from lamina.state.leases import require_held

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamina.app.ports.loaded import Lease
    from lamina.app.ports.published import AttemptStatus
    from lamina.app.ports.requirements import Requirement
    from lamina.identity.naming import PhysicalName

_PLAN_AGAIN = "run the command again: it plans from the state as it is now"


class Present(Protocol):
    """The state as it is at the moment of a commit."""

    def newest_lease(self, resource: str) -> Lease | None:
        """The lease with the highest token."""
        ...

    def attempt_status(self, number: int) -> AttemptStatus | None:
        """The attempt's latest status, `None` for an unknown number."""
        ...

    def pending_attempt(self, physical: PhysicalName) -> int | None:
        """An attempt of the version that is decided or retracting."""
        ...

    def head_sequence(self, physical: PhysicalName) -> int:
        """The sequence number of the version's head, 0 without one."""
        ...

    def mark(self, physical: PhysicalName) -> int:
        """The mark of the version's recorded work, 0 without any."""
        ...

    def newest_revision(self, environment: str) -> int:
        """The number of the environment's newest revision, 0 without one."""
        ...


def check(requires: Sequence[Requirement], present: Present) -> None:
    """Raise `LeaseLost` if a lease is gone, else `CommitRefused` for the first thing that is not true.

    Leases come first: who lost one must stop, whatever else has changed.
    """
    for requirement in requires:
        if isinstance(requirement, LeaseIsCurrent):
            require_held(present.newest_lease(requirement.resource), requirement.resource, requirement.token)
    for requirement in requires:
        refusal = _refusal(requirement, present)
        if refusal:
            raise CommitRefused(refusal, hint=_PLAN_AGAIN)


def _refusal(requirement: Requirement, present: Present) -> str | None:
    match requirement:
        case LeaseIsCurrent():
            return None
        case AttemptIs(number=number, status=wanted):
            status = present.attempt_status(number)
            if status != wanted:
                return (
                    f"attempt {number} {'does not exist' if status is None else f'is `{status}`'}, expected `{wanted}`"
                )
        case HeadIs(physical=physical, sequence=wanted_sequence):
            sequence = present.head_sequence(physical)
            if sequence != wanted_sequence:
                return f"`{physical}` was published {sequence} times, expected {wanted_sequence}"
        case NothingPending(physical=physical):
            pending = present.pending_attempt(physical)
            if pending is not None:
                return f"attempt {pending} on `{physical}` is decided and not yet carried out"
        case MarkIs(physical=physical, mark=wanted_mark):
            mark = present.mark(physical)
            if mark != wanted_mark:
                return f"the recorded work of `{physical}` has changed since the plan was made"
        case RevisionIs(environment=environment, number=wanted_number):
            number = present.newest_revision(environment)
            if number != wanted_number:
                return f"environment `{environment}` is at revision {number}, expected {wanted_number}"
        case _:
            assert_never(requirement)
    return None


def refuse_second_attempt(number: int) -> CommitRefused:
    """An attempt number may be used once."""
    return CommitRefused(f"attempt {number} exists already")


def refuse_head(physical: PhysicalName, found: int, wanted: int) -> CommitRefused:
    """A head follows the one before."""
    return CommitRefused(
        f"the head of `{physical}` has number {found} and cannot be followed by {wanted}", hint=_PLAN_AGAIN
    )


def refuse_revision(environment: str, found: int, wanted: int) -> CommitRefused:
    """A revision follows the one before."""
    return CommitRefused(
        f"environment `{environment}` is at revision {found}, which cannot be followed by {wanted}", hint=_PLAN_AGAIN
    )


def refuse_followed(environment: str, found: int, wanted: int) -> CommitRefused:
    """Only a revision that exists can be followed."""
    return CommitRefused(f"environment `{environment}` is at revision {found}; {wanted} cannot have been followed")
