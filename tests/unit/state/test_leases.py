from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.app.ports.loaded import Lease
from lamina.errors import CommitRefused, LeaseHeld, LeaseLost
from lamina.state.leases import close_lost, describe, expiry, is_unsettled, require_held, succeed
from tests.kit.state import NOW, later, owner

LEASE = Lease(resource="version:shop.orders", token=4, owner=owner(), status="held", expires_at=later(60))
seconds = st.integers(min_value=0, max_value=200)


@given(
    status=st.sampled_from(["held", "released", "lost", "closed"]),
    at=seconds,
    fate=st.sampled_from(["unknown", "gone", "settled"]),
)
def test_a_lease_is_taken_exactly_when_nobody_else_may_be_working_under_it(status, at, fate):
    former = replace(LEASE, status=status)
    if status == "held" and at < 60 and fate == "unknown":
        with pytest.raises(LeaseHeld):
            succeed(former, former.resource, owner(2), now=later(at), seconds=5, fate_of=lambda _: fate)
        return
    lease, changed = succeed(former, former.resource, owner(2), now=later(at), seconds=5, fate_of=lambda _: fate)
    assert (lease.token, lease.status, lease.owner, lease.expires_at) == (5, "held", owner(2), later(at + 5))
    after = changed or former
    assert after.status == (("closed" if fate == "settled" else "lost") if status == "held" else status)
    assert replace(after, status=status) == former


@given(status=st.sampled_from(["held", "released", "lost", "closed"]), at=seconds)
def test_a_lease_is_unsettled_when_lost_or_overdue(status, at):
    lease = replace(LEASE, status=status)
    assert is_unsettled(lease, later(at)) == (status == "lost" or (status == "held" and at >= 60))


def test_only_the_newest_lease_counts_as_held():
    assert require_held(LEASE, LEASE.resource, 4) is LEASE
    for newest, token in [(None, 1), (LEASE, 3), (LEASE, 5), (replace(LEASE, status="lost"), 4)]:
        with pytest.raises(LeaseLost) as error:
            require_held(newest, LEASE.resource, token)
        assert error.value.hint


def test_a_lease_that_was_not_lost_is_not_closed():
    assert close_lost(replace(LEASE, status="lost"), LEASE.resource, 4).status == "closed"
    for found in (None, LEASE, replace(LEASE, status="released")):
        with pytest.raises(CommitRefused):
            close_lost(found, LEASE.resource, 4)


def test_a_resource_is_named_in_words():
    assert describe("environment:dev") == "environment `dev`"


def test_fractions_of_a_second_count():
    assert expiry(NOW, 0.25) == NOW.plus(250_000)
