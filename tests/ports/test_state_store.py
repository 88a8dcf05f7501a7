"""What every state store promises: one suite over memory, SQLite and PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from lamina.app.leases.keeper import LEASE_SECONDS, LeaseKeeper
from lamina.app.ports.facts import (
    AttemptAborted,
    AttemptDecided,
    AttemptDone,
    AttemptRetracting,
    AttemptUnchanged,
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
)
from lamina.app.ports.loaded import Lease, LoadRequest, RevisionsSince, environment_resource, version_resource
from lamina.app.ports.published import FastForward
from lamina.app.ports.requirements import AttemptIs, HeadIs, LeaseIsCurrent, MarkIs, NothingPending, RevisionIs
from lamina.bootstrap import open_store
from lamina.errors import CommitRefused, LeaseHeld, LeaseLost, StateError, StateTooNew
from lamina.graph.names import NodeName
from lamina.identity.version import Same
from lamina.planning.draft import ALL_TIME
from lamina.planning.inputs import AuditOutcomes, Read, Rewrite, VersionFacts
from lamina.state import backend, tables
from lamina.state.leases import machine_time
from lamina.state.memory import MemoryStateStore
from lamina.state.migrations.upgrade import upgrade
from lamina.timeline.interval import EMPTY, Interval, Intervals
from tests.kit.app import FakeProcesses, SkewedClock
from tests.kit.state import (
    NOW,
    ORDERS,
    OTHER,
    PHYSICAL,
    attempt,
    audited,
    covering,
    days,
    decided,
    done,
    fingerprint,
    finish,
    head,
    later,
    model,
    opened,
    owner,
    pointer,
    revision,
    settled,
    unknown,
    version,
    version_id,
)
from tests.kit.state import at as set_clock

ROOT = Path(__file__).parents[2]
ON_ORDERS = version_resource(PHYSICAL)
ON_PROD = environment_resource("prod")
CUSTOMERS = NodeName("shop.customers")


def take(store, resource=ON_ORDERS, *, at=0.0, seconds=60.0, process=4711, fate_of=unknown):
    return set_clock(store, at).take(resource, owner(process), seconds=seconds, fate_of=fate_of)


def facts_of(store, recorded=None) -> VersionFacts:
    recorded = recorded or version()
    store.commit([recorded])
    return store.load(LoadRequest(versions=((recorded.node, recorded.version),))).facts[recorded.physical]


def aborted(number, physical=PHYSICAL):
    return AttemptAborted(number=number, physical=physical, reason="the query failed")


def run_started(run_id="run-1", command="build"):
    return RunStarted(run_id=run_id, command=command, environment="prod", started_at=NOW, execution_time=NOW)


def batch(number, *, at, run_id="run-1", status="done", **further):
    return BatchRecorded(
        run_id=run_id,
        node=ORDERS,
        physical=PHYSICAL,
        number=number,
        interval=further.pop("interval", None),
        status=status,
        rows=further.pop("rows", 3),
        seconds=1.5,
        statements=2,
        finished_at=later(at),
        **further,
    )


# --- an empty store ---------------------------------------------------------------------------------------------------
def test_an_empty_store_answers_every_question(store):
    loaded = store.load(
        LoadRequest(
            environments=("prod",),
            versions=((ORDERS, version_id()),),
            definitions=("nothing",),
            heads=(PHYSICAL,),
            manifests=(PHYSICAL,),
            checkpoints_of=("prod",),
            revisions_since=(RevisionsSince(environment="prod"),),
        )
    )
    assert (loaded.revisions["prod"].number, loaded.revisions["prod"].status) == (0, "new")
    assert not loaded.revisions["prod"].pointers
    assert (dict(loaded.facts), dict(loaded.definitions)) == ({}, {})
    assert (dict(loaded.heads), dict(loaded.manifests)) == ({}, {})
    assert (loaded.checkpoints["prod"], loaded.series["prod"]) == ((), ())
    assert not store.load(LoadRequest(all_environments=True)).revisions
    assert store.unsettled().is_empty
    assert store.history() == ()


def test_a_store_has_an_id_of_eight_hex_digits_that_stays(store):
    assert len(store.store_id) == 8
    assert int(store.store_id, 16) >= 0
    before = store.store_id
    store.commit([version()])
    assert store.store_id == before


def test_a_store_keeps_the_key_that_it_was_made_with(store):
    store.commit([version()])
    key = store.seal_key
    assert len(key) == 32
    assert store.seal_key == key


def test_no_two_stores_have_the_same_key(tmp_path):
    keys = set()
    for number in range(3):
        store = open_store("sqlite:///state.db", tmp_path / str(number))
        assert store.seal_key is None
        keys |= {store.store_id and store.seal_key, MemoryStateStore().seal_key}
        store.close()
    assert len(keys) == 6


# --- identities -------------------------------------------------------------------------------------------------------
def test_what_an_identity_stands_for_is_remembered(store):
    same = Same(node=ORDERS, identity="new", stands_for="old")
    asked = LoadRequest(identities=((ORDERS, "new"), (ORDERS, "old"), ("shop.other", "new"), (ORDERS, "none")))
    assert dict(store.load(asked).equals) == {}
    store.commit([IdentityStands(same=same)])
    store.commit([IdentityStands(same=same), IdentityStands(same=same)])
    assert dict(store.load(asked).equals) == {(ORDERS, "new"): ("old",)}
    store.commit([IdentityStands(same=replace(same, stands_for="another")), IdentityStands(same=same)])
    store.commit([IdentityStands(same=replace(same, node="shop.other"))])
    assert dict(store.load(asked).equals) == {(ORDERS, "new"): ("another", "old"), ("shop.other", "new"): ("old",)}
    with pytest.raises(CommitRefused):
        store.commit([IdentityStands(same=replace(same, identity="none"))], [RevisionIs(environment="prod", number=9)])
    assert (ORDERS, "none") not in store.load(asked).equals


def test_closing_twice_is_safe(store):
    store.commit([version()])
    store.close()
    store.close()


# --- commits ----------------------------------------------------------------------------------------------------------
def test_a_refused_commit_writes_nothing(store):
    store.commit([version()])
    with pytest.raises(CommitRefused):
        store.commit(
            [run_started(), opened(1), RevisionWritten(revision=revision())],
            [RevisionIs(environment="prod", number=3)],
        )
    assert store.history() == ()
    assert store.unsettled().is_empty
    assert store.load(LoadRequest(environments=("prod",))).revisions["prod"].number == 0


def test_a_fact_that_cannot_be_takes_the_whole_commit_with_it(store):
    with pytest.raises(CommitRefused):
        store.commit([run_started(), opened(1), opened(2), done(2), batch(1, at=1)])
    assert store.history() == ()
    assert store.unsettled().is_empty


def test_requirements_are_checked_before_the_facts_of_the_same_commit(store):
    store.commit([opened(1)], [HeadIs(physical=PHYSICAL, sequence=0), NothingPending(physical=PHYSICAL)])
    with pytest.raises(CommitRefused):
        store.commit([decided(1, 1)], [AttemptIs(number=1, status="decided")])
    store.commit([decided(1, 1), done(1)], [AttemptIs(number=1, status="open")])
    assert facts_of(store).head_sequence == 1


@pytest.mark.parametrize(
    ("fulfilled", "refused", "names"),
    [
        (AttemptIs(number=1, status="decided"), AttemptIs(number=1, status="open"), "attempt 1"),
        (AttemptIs(number=2, status="open"), AttemptIs(number=9, status="open"), "attempt 9 does not exist"),
        (HeadIs(physical=PHYSICAL, sequence=1), HeadIs(physical=PHYSICAL, sequence=0), PHYSICAL),
        (HeadIs(physical=OTHER, sequence=0), HeadIs(physical=OTHER, sequence=1), OTHER),
        (NothingPending(physical=OTHER), NothingPending(physical=PHYSICAL), "attempt 1"),
        (MarkIs(physical=OTHER, mark=0), MarkIs(physical=PHYSICAL, mark=0), PHYSICAL),
        (RevisionIs(environment="prod", number=1), RevisionIs(environment="prod", number=2), "prod"),
        (RevisionIs(environment="dev", number=0), RevisionIs(environment="dev", number=1), "dev"),
    ],
)
def test_each_requirement_lets_through_what_is_true_and_refuses_the_rest(store, fulfilled, refused, names):
    store.commit([opened(1), decided(1, 1), opened(2, OTHER), RevisionWritten(revision=revision())])
    store.commit([run_started()], [fulfilled])
    with pytest.raises(CommitRefused, match=names) as refusal:
        store.commit([run_started("run-2")], [refused])
    assert not isinstance(refusal.value, LeaseLost)
    assert [entry.run_id for entry in store.history()] == ["run-1"]


def test_a_lost_lease_is_told_before_anything_else_that_is_not_true(store):
    with pytest.raises(LeaseLost):
        store.commit([], [HeadIs(physical=PHYSICAL, sequence=7), LeaseIsCurrent(resource=ON_ORDERS, token=1)])


def test_definitions_and_versions_are_recorded_once(store):
    first, second = model(query="SELECT 1 AS id"), model(query="SELECT 2 AS id")
    store.commit([DefinitionRecorded(definition_id="d", model=first), version()])
    changed = replace(version(), fingerprint=fingerprint("other"))
    store.commit([DefinitionRecorded(definition_id="d", model=second), changed])
    store.commit([version(), version(), changed])
    loaded = store.load(LoadRequest(definitions=("d",), versions=((ORDERS, version_id()),)))
    assert loaded.definitions["d"] == first
    assert loaded.facts[PHYSICAL].fingerprint == version().fingerprint


def test_the_first_of_two_definitions_in_one_commit_counts(store):
    first, second = model(query="SELECT 1 AS id"), model(query="SELECT 2 AS id")
    store.commit(
        [DefinitionRecorded(definition_id="d", model=first), DefinitionRecorded(definition_id="d", model=second)]
    )
    assert store.load(LoadRequest(definitions=("d",))).definitions["d"] == first


# --- leases -----------------------------------------------------------------------------------------------------------
def test_tokens_grow_with_every_taking(store):
    tokens = []
    for _ in range(3):
        lease = take(store).lease
        tokens.append(lease.token)
        store.commit([LeaseReleased(resource=ON_ORDERS, token=lease.token)])
    assert tokens == [1, 2, 3]
    assert take(store, ON_PROD).lease.token == 1


def test_a_taken_lease_says_whose_it_is_and_how_long(store):
    lease = take(store, seconds=2.5, process=7).lease
    assert (lease.resource, lease.token, lease.status) == (ON_ORDERS, 1, "held")
    assert (lease.owner, lease.expires_at) == (owner(7), later(2.5))


def test_a_held_lease_is_refused_with_the_name_of_its_owner(store):
    take(store, process=7, seconds=60)
    with pytest.raises(LeaseHeld, match=r"process 7 on desk") as refusal:
        take(store, at=59.9, process=8)
    assert refusal.value.is_retryable
    assert PHYSICAL in refusal.value.message


def test_an_expired_lease_is_taken_and_becomes_lost(store):
    first = take(store, seconds=60).lease
    grant = take(store, at=60, process=8)
    assert grant.lease.token == 2
    assert grant.lost == (replace(first, status="lost"),)
    with pytest.raises(LeaseLost, match="process 8"):
        store.commit([], [LeaseIsCurrent(resource=ON_ORDERS, token=1)])
    store.commit([], [LeaseIsCurrent(resource=ON_ORDERS, token=2)])


def test_an_expired_lease_that_nobody_took_is_still_current(store):
    take(store, seconds=1)
    store.commit([run_started()], [LeaseIsCurrent(resource=ON_ORDERS, token=1)])
    assert [entry.run_id for entry in store.history()] == ["run-1"]


def test_a_held_lease_of_which_nothing_can_come_is_taken_at_once_and_closed(store):
    take(store, seconds=60)
    grant = take(store, at=1, fate_of=settled)
    assert (grant.lease.token, grant.lost) == (2, ())
    assert set_clock(store, 1).unsettled().is_empty
    with pytest.raises(LeaseLost):
        store.commit([], [LeaseIsCurrent(resource=ON_ORDERS, token=1)])


def test_a_held_lease_whose_owner_is_gone_is_taken_at_once_and_lost(store):
    first = take(store, seconds=60).lease
    asked: list[Lease] = []

    def gone(lease):
        asked.append(lease)
        return "gone"

    grant = take(store, at=1, fate_of=gone)
    assert asked == [first]
    assert (grant.lease.token, grant.lost) == (2, (replace(first, status="lost"),))


def test_who_is_refused_learns_how_long_it_can_take(store):
    take(store, seconds=60)
    with pytest.raises(LeaseHeld) as error:
        take(store, at=12.5)
    assert error.value.seconds_left == 47.5
    assert error.value.hint.endswith("in 48 seconds")


def test_lost_leases_are_listed_until_they_are_closed(store):
    take(store, seconds=1)
    take(store, at=1, seconds=1)
    grant = take(store, at=2, seconds=60)
    assert [lease.token for lease in grant.lost] == [1, 2]
    store.commit([LeaseClosed(resource=ON_ORDERS, token=1)])
    store.commit([LeaseClosed(resource=ON_ORDERS, token=1)])
    assert [lease.token for lease in set_clock(store, 2).unsettled().leases] == [2]
    store.commit([LeaseClosed(resource=ON_ORDERS, token=2), LeaseReleased(resource=ON_ORDERS, token=3)])
    assert set_clock(store, 99).unsettled().is_empty
    assert take(store, at=99).lost == ()


@pytest.mark.parametrize("token", [1, 5])
def test_only_a_lost_lease_can_be_closed(store, token):
    take(store)
    with pytest.raises(CommitRefused):
        store.commit([LeaseClosed(resource=ON_ORDERS, token=token)])


def test_a_renewed_lease_lives_longer(store):
    lease = take(store, seconds=60).lease
    set_clock(store, 50).renew([lease], seconds=60)
    with pytest.raises(LeaseHeld):
        take(store, at=100)
    assert set_clock(store, 100).unsettled().is_empty
    assert take(store, at=110).lease.token == 2


@pytest.mark.parametrize("skew", [-120.0, 120.0])
def test_a_lease_runs_out_by_the_stores_clock_whatever_the_clocks_of_those_who_share_it_say(store, skew):
    holder = LeaseKeeper(store, SkewedClock(skew), owner(1), lambda _: None, FakeProcesses())
    taker = LeaseKeeper(store, SkewedClock(-skew), owner(2), lambda _: None, FakeProcesses())
    set_clock(store, 0)
    lease = holder.take_now(ON_ORDERS).lease
    assert lease.expires_at == later(LEASE_SECONDS)
    set_clock(store, LEASE_SECONDS - 1)
    assert store.unsettled().is_empty
    with pytest.raises(LeaseHeld):
        taker.take_now(ON_ORDERS)
    set_clock(store, LEASE_SECONDS)
    assert store.unsettled().leases == (lease,)
    grant = taker.take_now(ON_ORDERS)
    assert (grant.lease.token, grant.taken_at) == (2, later(LEASE_SECONDS))
    holder.close()
    taker.close()


def test_a_store_has_a_clock_of_its_own(store):
    before = machine_time()
    grant = store.take(ON_ORDERS, owner(), seconds=60, fate_of=unknown)
    assert before.micros - 1_000_000 <= grant.taken_at.micros <= machine_time().micros + 1_000_000
    assert grant.lease.expires_at == grant.taken_at.plus(60_000_000)


def test_a_lease_is_renewed_by_token_even_after_its_time(store):
    lease = take(store, seconds=1).lease
    set_clock(store, 5).renew([lease], seconds=10)
    with pytest.raises(LeaseHeld):
        take(store, at=14)


def test_renewing_a_lost_lease_renews_none(store):
    mine, other = take(store, seconds=60).lease, take(store, ON_PROD, seconds=60).lease
    take(store, at=60, process=8)
    with pytest.raises(LeaseLost):
        set_clock(store, 59).renew([other, mine], seconds=60)
    assert take(store, ON_PROD, at=60).lease.token == 2


def test_a_released_lease_is_no_longer_current(store):
    lease = take(store).lease
    store.commit([LeaseReleased(resource=ON_ORDERS, token=1)])
    for late in (
        lambda: store.commit([], [LeaseIsCurrent(resource=ON_ORDERS, token=1)]),
        lambda: store.renew([lease], seconds=60),
        lambda: store.commit([LeaseReleased(resource=ON_ORDERS, token=1)]),
    ):
        with pytest.raises(LeaseLost):
            late()


def test_a_grant_lists_the_unfinished_attempts_of_its_version_only(store):
    take(store, seconds=1)
    store.commit([opened(1, interval=days(1)), opened(2), opened(3), opened(4, OTHER)])
    store.commit([decided(2, 1), aborted(3)])
    grant = take(store, at=1)
    assert [(found.number, found.status) for found in grant.unfinished] == [(1, "open"), (2, "decided")]
    assert grant.unfinished[0] == attempt(1, interval=days(1))
    assert grant.unfinished[1].publish == decided(2, 1).publish
    assert grant.unfinished[1].rows == 20
    assert take(store, ON_PROD).unfinished == ()


# --- attempts, coverage and marks -------------------------------------------------------------------------------------
def test_an_attempt_goes_from_open_over_decided_to_done(store):
    store.commit([opened(1)])
    store.commit([decided(1, 1)], [AttemptIs(number=1, status="open")])
    store.commit([done(1)], [AttemptIs(number=1, status="decided")])
    store.commit([], [AttemptIs(number=1, status="done"), NothingPending(physical=PHYSICAL)])
    assert store.unsettled().is_empty


def test_an_open_attempt_can_be_aborted(store):
    store.commit([opened(1)])
    store.commit([aborted(1)])
    store.commit([], [AttemptIs(number=1, status="aborted")])
    assert store.unsettled().is_empty
    assert facts_of(store).head_sequence == 0


@pytest.mark.parametrize(
    ("so_far", "impossible"),
    [
        ([], decided(1, 1)),
        ([], done(1)),
        ([], aborted(1)),
        ([opened(1)], opened(1)),
        ([opened(1)], done(1)),
        ([opened(1), decided(1, 1)], decided(1, 2)),
        ([opened(1), decided(1, 1)], aborted(1)),
        ([opened(1), decided(1, 1), done(1)], done(1)),
        ([opened(1), decided(1, 1), done(1)], aborted(1)),
        ([opened(1), aborted(1)], decided(1, 1)),
        ([opened(1)], decided(1, 2)),
        ([opened(1), decided(1, 1), done(1), opened(2)], decided(2, 1)),
        ([opened(1), decided(1, 1), done(1), opened(2)], decided(2, 3)),
    ],
)
def test_steps_that_the_protocol_does_not_have_are_refused(store, so_far, impossible):
    store.commit(so_far)
    before = facts_of(store)
    with pytest.raises(CommitRefused):
        store.commit([impossible])
    assert facts_of(store) == before


def test_a_finished_interval_is_covered_and_merged_with_its_neighbours(store):
    finish(store, 1, 1, interval=days(1))
    finish(store, 2, 2, interval=days(3))
    assert facts_of(store).covered == covering(days(1), days(3))
    finish(store, 3, 3, interval=days(2))
    assert facts_of(store).covered == covering(days(1, 3))
    assert len(facts_of(store).covered) == 1


def test_an_interval_that_is_to_be_replaced_is_not_covered_until_it_is_done_again(store):
    finish(store, 1, 1, interval=days(1, 5))
    store.commit([opened(2, interval=days(2, 3))])
    assert facts_of(store).covered == covering(days(1), days(4, 5))
    store.commit([decided(2, 2)])
    assert facts_of(store).covered == covering(days(1), days(4, 5))
    store.commit([done(2)])
    assert facts_of(store).covered == covering(days(1, 5))


def test_an_aborted_interval_stays_uncovered(store):
    finish(store, 1, 1, interval=days(1, 3))
    store.commit([opened(2, interval=days(2))])
    store.commit([aborted(2)])
    assert facts_of(store).covered == covering(days(1), days(3))


def test_coverage_can_be_taken_back(store):
    finish(store, 1, 1, interval=days(1, 3))
    store.commit([CoverageRemoved(physical=PHYSICAL, intervals=covering(days(2)))])
    assert facts_of(store).covered == covering(days(1), days(3))


def test_a_whole_build_leaves_its_time_and_what_it_read(store):
    assert (facts_of(store).built_at, facts_of(store).reads) == (None, ())
    finish(store, 1, 1)
    found = facts_of(store)
    assert (found.built_at, found.reads) == (later(1), (Read(physical=OTHER, sequence=1),))
    store.commit([opened(2)])
    store.commit([aborted(2)])
    assert facts_of(store) == found
    finish(store, 3, 2)
    assert facts_of(store).built_at == later(3)
    assert facts_of(store).covered == Intervals.EMPTY


def test_an_interval_is_no_whole_build(store):
    finish(store, 1, 1, interval=days(1))
    assert facts_of(store).built_at is None


def test_a_parent_is_followed_from_the_first_time_it_is_read(store):
    finish(store, 1, 1, interval=days(1))
    finish(store, 2, 2, interval=days(2))
    assert facts_of(store).reads == (Read(physical=OTHER, sequence=1),)


def test_following_moves_on_and_never_back(store):
    finish(store, 1, 1, interval=days(1, 4))
    for sequence in (9, 5):
        followed = (Read(physical=OTHER, sequence=sequence),)
        store.commit([CoverageRemoved(physical=PHYSICAL, intervals=covering(days(2)), followed=followed)])
    found = facts_of(store)
    assert found.reads == (Read(physical=OTHER, sequence=9),)
    assert (found.covered, found.reopened) == (covering(days(1), days(3, 4)), covering(days(2)))


def test_what_was_recorded_and_is_to_be_done_again_stays_known_until_it_is_done(store):
    finish(store, 1, 1, interval=days(1, 3))
    store.commit([opened(2, interval=days(2, 5))])
    assert facts_of(store).reopened == covering(days(2, 3))
    store.commit([aborted(2)])
    assert (facts_of(store).covered, facts_of(store).reopened) == (covering(days(1)), covering(days(2, 3)))
    finish(store, 3, 2, interval=days(2))
    assert (facts_of(store).covered, facts_of(store).reopened) == (covering(days(1, 2)), covering(days(3)))


def test_an_attempt_that_changed_nothing_is_done_without_a_publish(store):
    finish(store, 1, 1, interval=days(1, 3))
    before = facts_of(store)
    store.commit([opened(2, interval=days(2))])
    store.commit([AttemptUnchanged(number=2, physical=PHYSICAL)])
    after = facts_of(store)
    assert (after.covered, after.reopened, after.head_sequence) == (before.covered, EMPTY, before.head_sequence)
    assert set_clock(store, 1).unsettled().is_empty
    with pytest.raises(CommitRefused):
        store.commit([AttemptUnchanged(number=1, physical=PHYSICAL)])


def test_rewrites_are_told_after_a_head(store):
    finish(store, 1, 1, interval=days(1, 3))
    assert facts_of(store).rewritten_at == 0
    for number, sequence, is_asked in ((2, 2, False), (3, 3, True)):
        store.commit([opened(number, interval=days(2))])
        fact = replace(decided(number, sequence), rewritten=covering(days(2)), is_asked=is_asked)
        store.commit([fact])
        store.commit([done(number)])
    assert facts_of(store).rewritten_at == 3

    def rewrites(after: int) -> tuple[Rewrite, ...]:
        asked = (Read(physical=PHYSICAL, sequence=after),)
        return store.load(LoadRequest(rewrites=asked)).rewrites.get(PHYSICAL, ())

    second = Rewrite(sequence=3, intervals=covering(days(2)), is_asked=True)
    assert rewrites(0) == (Rewrite(sequence=2, intervals=covering(days(2))), second)
    assert (rewrites(2), rewrites(3)) == ((second,), ())


def test_a_head_is_loaded_as_it_was_decided(store):
    store.commit([opened(1)])
    day = Interval.from_pair(("2024-01-01", "2024-01-02"))
    shown = replace(head(1, 1), view_sql="SELECT 1", contents={None: "2:3:4", day: "1:2:3"})
    store.commit([replace(decided(1, 1), head=shown)])
    assert store.load(LoadRequest(heads=(PHYSICAL,))).heads[PHYSICAL] == shown


def test_versions_do_not_share_their_work(store):
    finish(store, 1, 1, interval=days(1))
    other = facts_of(store, version(CUSTOMERS))
    assert (other.mark, other.head_sequence, other.covered) == (0, 0, Intervals.EMPTY)


def test_the_mark_moves_with_every_change_of_recorded_work(store):
    changes = [
        opened(1, interval=days(1)),
        aborted(1),
        opened(2, interval=days(1)),
        decided(2, 1),
        done(2),
        CoverageRemoved(physical=PHYSICAL, intervals=covering(days(1))),
    ]
    marks = [facts_of(store).mark]
    for change in changes:
        store.commit([change])
        marks.append(facts_of(store).mark)
        store.commit([], [MarkIs(physical=PHYSICAL, mark=marks[-1])])
        with pytest.raises(CommitRefused):
            store.commit([], [MarkIs(physical=PHYSICAL, mark=marks[-2])])
    assert marks[0] == 0
    assert len(set(marks)) == len(marks)


def test_an_intent_without_an_interval_changes_no_recorded_work(store):
    finish(store, 1, 1)
    mark = facts_of(store).mark
    store.commit([opened(2)])
    store.commit([aborted(2)])
    store.commit([version(), version(CUSTOMERS), opened(3, OTHER)])
    assert facts_of(store).mark == mark


# --- heads and manifests ----------------------------------------------------------------------------------------------
def test_deciding_moves_the_head(store):
    finish(store, 1, 1)
    store.commit([opened(2)])
    store.commit([decided(2, 2)])
    loaded = store.load(LoadRequest(heads=(PHYSICAL, OTHER)))
    assert dict(loaded.heads) == {PHYSICAL: head(2, 2)}
    assert facts_of(store).head_sequence == 2


def test_a_manifest_holds_the_newest_folder_of_every_partition(store):
    first, second, third = ("2024-01-01",), ("2024-01-02",), (None,)
    store.commit([opened(1), decided(1, 1, folders={first: "a", second: "b"}), done(1)])
    store.commit([opened(2), decided(2, 2, folders={second: "c", third: "d"}), done(2)])
    assert store.load(LoadRequest(manifests=(PHYSICAL,))).manifests == {PHYSICAL: {first: "a", second: "c", third: "d"}}
    store.commit([opened(3), decided(3, 3, folders={third: "e"}, removed=(first, second)), done(3)])
    assert store.load(LoadRequest(manifests=(PHYSICAL,))).manifests == {PHYSICAL: {third: "e"}}
    store.commit([opened(4), decided(4, 4, folders={first: "f"}, removed=(third,)), done(4)])
    assert store.load(LoadRequest(manifests=(PHYSICAL,))).manifests == {PHYSICAL: {first: "f"}}


def test_a_published_version_without_partitions_left_has_an_empty_manifest(store):
    store.commit([opened(1), decided(1, 1, folders={("a",): "x"})])
    store.commit([done(1), opened(2), decided(2, 2, folders={}, removed=(("a",),))])
    loaded = store.load(LoadRequest(manifests=(PHYSICAL, OTHER)))
    assert loaded.manifests == {PHYSICAL: {}}


def test_partition_values_may_be_any_text(store):
    keys = [("",), (None,), ("null",), ("ä'\"\\",), ("a/b=c",), ("%",), ("日",)]
    folders = {key: f"folder {number}" for number, key in enumerate(keys)}
    store.commit([opened(1), decided(1, 1, folders=folders)])
    assert store.load(LoadRequest(manifests=(PHYSICAL,))).manifests[PHYSICAL] == folders


# --- environments -----------------------------------------------------------------------------------------------------
def test_the_newest_revision_is_loaded_with_the_facts_behind_its_pointers(store):
    store.commit([version(), version(CUSTOMERS), DefinitionRecorded(definition_id="d", model=model())])
    embedded = replace(pointer(), physical=None)
    pointers = {ORDERS: pointer(), CUSTOMERS: pointer(CUSTOMERS), NodeName("shop.inner"): embedded}
    store.commit([RevisionWritten(revision=revision(number=1))])
    store.commit([RevisionWritten(revision=revision(number=2, status="finalized", pointers=pointers))])
    loaded = store.load(LoadRequest(environments=("prod", "dev")))
    assert loaded.revisions["prod"] == revision(number=2, status="finalized", pointers=pointers)
    assert loaded.revisions["dev"].number == 0
    assert set(loaded.facts) == {PHYSICAL, OTHER}
    assert dict(loaded.definitions) == {}


def test_facts_and_definitions_of_pointers_are_loaded_as_asked(store):
    recorded = version()
    definition = DefinitionRecorded(definition_id=recorded.definition_id, model=model())
    store.commit([recorded, definition, RevisionWritten(revision=revision())])
    loaded = store.load(LoadRequest(environments=("prod",), facts_of_pointers=False, definitions_of_pointers=True))
    assert dict(loaded.facts) == {}
    assert loaded.definitions == {recorded.definition_id: model()}


def test_a_revision_follows_the_one_before(store):
    store.commit([RevisionWritten(revision=revision(number=1))])
    for number in (1, 3):
        with pytest.raises(CommitRefused):
            store.commit([RevisionWritten(revision=revision(number=number))])
    assert store.load(LoadRequest(environments=("prod",))).revisions["prod"].number == 1


def test_a_revision_is_unsettled_until_it_is_followed(store):
    store.commit([RevisionWritten(revision=revision(number=1)), RevisionWritten(revision=revision(number=2))])
    assert [found.number for found in store.unsettled().revisions] == [1, 2]
    store.commit([RevisionFollowed(environment="prod", number=1)])
    assert store.unsettled().revisions == (revision(number=2),)
    store.commit([RevisionFollowed(environment="prod", number=2)])
    assert store.unsettled().is_empty
    assert store.load(LoadRequest(environments=("prod",))).revisions["prod"].is_followed
    store.commit([RevisionFollowed(environment="prod", number=1)])
    assert store.unsettled().is_empty


def test_following_the_newest_revision_settles_those_before(store):
    for number in (1, 2, 3):
        store.commit([RevisionWritten(revision=revision(number=number))])
    store.commit([RevisionFollowed(environment="prod", number=3)])
    assert store.unsettled().is_empty


def test_a_revision_may_be_followed_from_the_start(store):
    store.commit([RevisionWritten(revision=revision(is_followed=True))])
    assert store.unsettled().is_empty
    assert store.load(LoadRequest(environments=("prod",))).revisions["prod"].is_followed


@pytest.mark.parametrize("number", [0, 2])
def test_only_an_existing_revision_can_be_followed(store, number):
    store.commit([RevisionWritten(revision=revision())])
    with pytest.raises(CommitRefused):
        store.commit([RevisionFollowed(environment="prod", number=number)])


def test_all_environments_are_loaded_when_asked(store):
    for name in ("prod", "dev", "ada's"):
        store.commit([RevisionWritten(revision=revision(name))])
    store.commit([RevisionWritten(revision=revision("dev", 2, pointers={}))])
    loaded = store.load(LoadRequest(all_environments=True))
    assert {name: found.number for name, found in loaded.revisions.items()} == {"prod": 1, "dev": 2, "ada's": 1}
    assert not loaded.revisions["dev"].pointers


def test_checkpoints_are_the_finalized_revisions_newest_first(store):
    for number, status in enumerate(["finalized", "active", "finalized", "detached"], start=1):
        store.commit([RevisionWritten(revision=revision(number=number, status=status, is_followed=number < 3))])
    loaded = store.load(LoadRequest(checkpoints_of=("prod", "dev")))
    assert loaded.checkpoints["prod"] == (
        revision(number=3, status="finalized"),
        revision(number=1, status="finalized", is_followed=True),
    )
    assert loaded.checkpoints["dev"] == ()


def test_a_series_of_revisions_begins_with_the_last_followed_one(store):
    def numbers(**since) -> list[int]:
        asked = (RevisionsSince(environment="prod", **since), RevisionsSince(environment="dev"))
        loaded = store.load(LoadRequest(revisions_since=asked, facts_of_pointers=False))
        assert loaded.series["dev"] == ()
        return [found.number for found in loaded.series["prod"]]

    for number in (1, 2, 3, 4):
        store.commit([RevisionWritten(revision=revision(number=number))])
    assert numbers() == [1, 2, 3, 4]
    store.commit([RevisionFollowed(environment="prod", number=3)])
    assert numbers() == [3, 4]
    assert numbers(moment=later(2.9)) == [2, 3, 4]
    assert numbers(moment=later(2)) == [2, 3, 4]
    assert numbers(moment=later(0)) == [1, 2, 3, 4]
    assert numbers(moment=later(99)) == [3, 4]


def test_a_version_is_found_under_every_name_it_ever_had(store):
    first, second, other = version(), version(incarnation=2), version(CUSTOMERS)
    store.commit([first, second, other, version(number=2)])
    loaded = store.load(LoadRequest(versions=((ORDERS, version_id()),)))
    assert set(loaded.facts) == {first.physical, second.physical}
    found = loaded.facts[second.physical]
    assert (found.node, found.version, found.definition_id) == (ORDERS, version_id(), second.definition_id)
    assert found.fingerprint == second.fingerprint


# --- the start check --------------------------------------------------------------------------------------------------
def test_a_healthy_store_has_nothing_unsettled(store):
    grant = take(store)
    finish(store, 1, 1, interval=days(1))
    store.commit([opened(2)])
    store.commit([aborted(2)])
    store.commit([LeaseReleased(resource=ON_ORDERS, token=grant.lease.token)])
    take(store, ON_PROD, seconds=60)
    store.commit([RevisionWritten(revision=revision()), RevisionFollowed(environment="prod", number=1)])
    assert set_clock(store, 59).unsettled().is_empty


def test_an_expired_lease_is_unsettled(store):
    lease = take(store, seconds=60).lease
    assert set_clock(store, 59).unsettled().is_empty
    assert set_clock(store, 60).unsettled().leases == (lease,)


def test_a_lost_lease_is_unsettled_even_while_another_holds_the_resource(store):
    lease = take(store, seconds=60).lease
    take(store, at=60, seconds=60)
    assert set_clock(store, 61).unsettled().leases == (replace(lease, status="lost"),)


def test_unfinished_attempts_are_unsettled_with_all_they_need(store):
    store.commit([opened(1, interval=days(1)), opened(2, OTHER)])
    store.commit([decided(2, 1, OTHER)])
    found = store.unsettled().attempts
    assert found[0] == attempt(1, interval=days(1))
    expected = decided(2, 1, OTHER)
    assert found[1] == replace(attempt(2, OTHER), status="decided", publish=expected.publish, rows=expected.rows)
    store.commit([aborted(1), done(2, OTHER)])
    assert store.unsettled().is_empty


# --- history ----------------------------------------------------------------------------------------------------------
def test_history_lists_runs_newest_first_and_batches_as_they_finished(store):
    store.commit([run_started("run-1")])
    store.commit([batch(2, at=5), batch(1, at=3, interval=days(1), rows=None)])
    store.commit([run_started("run-2", "run"), batch(3, at=7, run_id="run-2")])
    store.commit([RunFinished(run_id="run-1", status="succeeded", finished_at=later(9))])
    newest, oldest = store.history()
    assert (newest.run_id, newest.command, newest.status, newest.finished_at) == ("run-2", "run", "running", None)
    assert (oldest.status, oldest.started_at, oldest.finished_at) == ("succeeded", NOW, later(9))
    assert (oldest.execution_time, oldest.nodes) == (run_started("run-1").execution_time, (batch(1, at=3).node,))
    assert oldest.batches == (batch(1, at=3, interval=days(1), rows=None), batch(2, at=5))
    assert store.history(limit=1) == (newest,)
    assert store.history(run_id="run-1") == (oldest,)
    assert store.history(run_id="nothing") == ()


def test_a_failed_batch_keeps_its_error(store):
    error = {"code": "LAM-SPARK-006", "message": "zero \x00 and \ud800", "interval": ["a", "b"], "line": 3}
    store.commit([run_started(), batch(1, at=1, status="failed", error=error)])
    assert store.history()[0].batches[0].error == error


def test_a_run_is_started_once_and_its_last_end_counts(store):
    store.commit([run_started(command="build")])
    store.commit([run_started(command="plan")])
    for status in ("failed", "succeeded"):
        store.commit([RunFinished(run_id="run-1", status=status, finished_at=later(1))])
    (entry,) = store.history()
    assert (entry.command, entry.status) == ("build", "succeeded")


# --- several at once --------------------------------------------------------------------------------------------------
def test_no_number_is_given_twice_to_eight_threads(store):
    def allocate(count: int) -> list[int]:
        given: list[int] = []
        for _ in range(10):
            first = store.allocate(count)
            given += range(first, first + count)
        return given

    with ThreadPoolExecutor(8) as pool:
        numbers = [number for given in pool.map(allocate, [1, 2, 3, 1, 2, 3, 1, 2]) for number in given]
    assert len(numbers) == 150
    assert sorted(numbers) == list(range(min(numbers), min(numbers) + 150))
    assert min(numbers) >= 1


def test_of_eight_threads_that_want_the_same_lease_one_gets_it(store):
    start = threading.Barrier(8)

    def try_to_take(process: int) -> int | None:
        start.wait()
        try:
            return take(store, process=process).lease.token
        except LeaseHeld:
            return None

    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(try_to_take, range(8)))
    assert [token for token in tokens if token] == [1]


def test_of_eight_threads_that_decide_on_the_same_head_one_succeeds(store):
    store.commit([opened(number) for number in range(1, 9)])
    start = threading.Barrier(8)

    def try_to_decide(number: int) -> bool:
        start.wait()
        try:
            store.commit([decided(number, 1)], [HeadIs(physical=PHYSICAL, sequence=0)])
        except CommitRefused:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(try_to_decide, range(1, 9)))
    assert outcomes.count(True) == 1
    assert store.load(LoadRequest(heads=(PHYSICAL,))).heads[PHYSICAL].attempt == outcomes.index(True) + 1


def test_a_loaded_snapshot_never_mixes_two_commits(store):
    store.commit([version(), version(CUSTOMERS)])
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            pair = (2 * number, 2 * number + 1)
            store.commit([opened(pair[0]), opened(pair[1], OTHER)])
            store.commit([decided(pair[0], number), decided(pair[1], number, OTHER)])
            store.commit([done(pair[0]), done(pair[1], OTHER)])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        request = LoadRequest(
            versions=((ORDERS, version_id()), (CUSTOMERS, version_id())), heads=(PHYSICAL, OTHER), manifests=(PHYSICAL,)
        )
        for _ in range(40):
            loaded = store.load(request)
            assert loaded.facts[PHYSICAL].head_sequence == loaded.facts[OTHER].head_sequence
            assert loaded.facts[PHYSICAL].mark == loaded.facts[OTHER].mark
            if PHYSICAL in loaded.heads:
                found = loaded.heads[PHYSICAL]
                assert found.sequence == loaded.heads[OTHER].sequence == loaded.facts[PHYSICAL].head_sequence
                assert loaded.manifests[PHYSICAL] == {(): f"folder {found.attempt}"}
    finally:
        stop.set()
        writer.join()


# --- stores that outlive a process ------------------------------------------------------------------------------------
def script(place, body: str) -> subprocess.Popen:
    """A process of its own that has the store open as `store`."""
    opening = f"store = open_store({place.url!r}, Path({str(place.base)!r}))"
    imports = (
        "import sys",
        "from pathlib import Path",
        *(f"from lamina.app.ports.{name} import *" for name in ("facts", "loaded", "published", "requirements")),
        "from lamina.errors import *",
        "from lamina.bootstrap import open_store",
        "from tests.kit.state import *",
    )
    code = "\n".join((*imports, opening, body))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}
    return subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    )


def test_facts_are_found_again_by_the_next_process(place):
    first = place.open()
    finish(first, first.allocate(1), 1, interval=days(1))
    take(first)
    first.commit([version(), RevisionWritten(revision=revision()), run_started(), batch(1, at=1)])
    request = LoadRequest(
        environments=("prod",), heads=(PHYSICAL,), manifests=(PHYSICAL,), versions=((ORDERS, version_id()),)
    )
    expected = (first.store_id, first.load(request), set_clock(first, 99).unsettled(), first.history())
    first.close()
    second = place.open()
    try:
        assert (second.store_id, second.load(request), set_clock(second, 99).unsettled(), second.history()) == expected
        assert second.allocate(1) == 2
    finally:
        second.close()


def test_of_two_processes_that_commit_at_once_exactly_one_wins_each_time(place):
    body = """
print("ready", flush=True)
sys.stdin.readline()
won = []
for number in range(60):
    environment = f"environment {number}"
    try:
        store.commit(
            [RevisionWritten(revision=revision(environment)), opened(store.allocate(1))],
            [RevisionIs(environment=environment, number=0)],
        )
    except CommitRefused:
        continue
    won.append(number)
store.close()
print(*won)
"""
    processes = [script(place, body) for _ in range(2)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    won = [[int(number) for number in process.communicate(timeout=120)[0].split()] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sorted(won[0] + won[1]) == list(range(60))
    store = place.open()
    try:
        loaded = store.load(LoadRequest(all_environments=True))
        assert {found.number for found in loaded.revisions.values()} == {1}
        assert len(loaded.revisions) == 60
        assert len(store.unsettled().attempts) == 60
    finally:
        store.close()


def test_a_process_that_is_killed_between_commits_leaves_a_store_that_tells_what_was_answered(place):
    body = """
def run_started(number):
    return RunStarted(run_id=str(number), command="build", environment="prod", started_at=NOW, execution_time=NOW)

for number in range(1, 100000):
    store.commit([opened(number, interval=days(1)), run_started(number)])
    print("opened", number, flush=True)
    store.commit([decided(number, number)])
    store.commit([done(number)])
    print("done", number, flush=True)
"""
    process = script(place, body)
    answered = [process.stdout.readline().split() for _ in range(25)]
    process.kill()
    answered += [line.split() for line in process.communicate()[0].splitlines()]
    opened_last = max(int(line[1]) for line in answered if line[0] == "opened")
    done_last = max(int(line[1]) for line in answered if line[0] == "done")
    store = place.open()
    try:
        runs = len(store.history(limit=100000))
        assert opened_last <= runs <= opened_last + 1
        found = facts_of(store)
        assert found.head_sequence in {done_last, done_last + 1}
        unfinished = store.unsettled().attempts
        assert len(unfinished) <= 1
        assert found.covered == (Intervals.EMPTY if unfinished else covering(days(1)))
        finish(store, 200000, 1, OTHER, interval=days(2))
        assert facts_of(store, version(CUSTOMERS)).covered == covering(days(2))
    finally:
        store.close()


def test_an_older_store_is_brought_up_to_date_by_whoever_looks_first(place, monkeypatch):
    old = place.open()
    old.commit([version()])
    old.close()

    def add_notes(connection) -> None:
        connection.exec_driver_sql("CREATE TABLE lamina_notes (note TEXT)")

    following = tables.SCHEMA_VERSION + 1
    monkeypatch.setattr(tables, "SCHEMA_VERSION", following)
    monkeypatch.setattr(backend, "upgrade", partial(upgrade, migrations={following: add_notes}))
    for _ in range(2):
        new = place.open()
        assert new.load(LoadRequest(versions=((ORDERS, version_id()),))).facts[PHYSICAL].node == ORDERS
        new.commit([version(CUSTOMERS)])
        new.close()
    monkeypatch.undo()
    old = place.open()
    with pytest.raises(StateTooNew):
        old.unsettled()
    old.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(place, monkeypatch):
    old = place.open()
    old.commit([version()])
    old.close()

    def fail(connection) -> None:
        connection.exec_driver_sql("DELETE FROM lamina_versions")
        connection.exec_driver_sql("nonsense")

    following = tables.SCHEMA_VERSION + 1
    monkeypatch.setattr(tables, "SCHEMA_VERSION", following)
    monkeypatch.setattr(backend, "upgrade", partial(upgrade, migrations={following: fail}))
    new = place.open()
    with pytest.raises(StateError):
        new.unsettled()
    new.close()
    monkeypatch.undo()
    old = place.open()
    assert facts_of(old).node == ORDERS
    old.close()


def test_a_store_is_not_made_by_looking_at_it(place):
    store = place.open()
    try:
        assert store.unsettled().is_empty
        assert store.load(LoadRequest(environments=("prod",))).revisions["prod"].number == 0
        assert store.history() == ()
    finally:
        store.close()
    assert list(place.base.iterdir()) == []
    another = place.open()
    with pytest.raises(StateError):
        another.commit([done(1)])
    another.close()


# --- audits -----------------------------------------------------------------------------------------------------------
def in_place(number: int) -> AttemptDecided:
    """A decision that moves no head."""
    change = FastForward(head=head(2, number), branch=f"b{number}")
    return AttemptDecided(number=number, physical=PHYSICAL, publish=change, head=None)


def retracting(number: int) -> AttemptRetracting:
    return AttemptRetracting(number=number, physical=PHYSICAL)


def outcomes_of(store) -> dict[str, AuditOutcomes]:
    return dict(facts_of(store).outcomes)


def test_outcomes_are_remembered_for_the_rows_that_are_shown(store):
    store.commit([opened(1, interval=days(1, 2))])
    store.commit([decided(1, 1), audited(1, days(1, 2), a="passed", b="failed")])
    store.commit([audited(2, days(3), a="passed", b="skipped")])
    store.commit([audited(3, days(2), b="passed"), audited(4, days(2), is_shown=False, a="failed")])
    assert outcomes_of(store) == {
        "a": AuditOutcomes(passed=covering(days(1, 3))),
        "b": AuditOutcomes(passed=covering(days(2)), failed=covering(days(1)), skipped=covering(days(3))),
    }
    assert facts_of(store).mark == 2, "outcomes are no change of the version's work"


def test_a_decision_forgets_the_outcomes_over_the_rows_it_replaces(store):
    finish(store, 1, 1, interval=days(1, 3))
    store.commit([audited(1, days(1, 3), a="passed", b="failed")])
    store.commit([opened(2, interval=days(2))])
    assert outcomes_of(store)["a"].passed == covering(days(1, 3)), "an intent replaces nothing yet"
    store.commit([decided(2, 2), audited(2, days(2), a="failed")])
    assert outcomes_of(store) == {
        "a": AuditOutcomes(passed=covering(days(1), days(3)), failed=covering(days(2))),
        "b": AuditOutcomes(failed=covering(days(1), days(3))),
    }


def test_a_whole_build_forgets_all_outcomes_and_an_unchanged_one_none(store):
    finish(store, 1, 1)
    store.commit([audited(1, None, a="passed")])
    assert outcomes_of(store) == {"a": AuditOutcomes(passed=ALL_TIME)}
    store.commit([opened(2)])
    store.commit([AttemptUnchanged(number=2, physical=PHYSICAL), audited(2, None, b="failed")])
    assert outcomes_of(store) == {"a": AuditOutcomes(passed=ALL_TIME), "b": AuditOutcomes(failed=ALL_TIME)}
    store.commit([opened(3)])
    store.commit([decided(3, 2)])
    assert outcomes_of(store) == {}


def test_outcomes_of_an_aborted_attempt_are_kept_for_people_only(store):
    store.commit([run_started(), opened(1, interval=days(1))])
    store.commit([aborted(1), audited(1, days(1), is_shown=False, a="failed", b="passed")])
    assert outcomes_of(store) == {}
    (run,) = store.history()
    assert run.audits == (audited(1, days(1), is_shown=False, a="failed", b="passed"),)


def test_a_decision_that_is_taken_back_forgets_the_outcomes_it_came_with(store):
    finish(store, 1, 1, interval=days(1, 3))
    store.commit([audited(1, days(1, 3), a="passed")])
    store.commit([opened(2, interval=days(2))])
    store.commit([in_place(2), audited(2, days(2), a="passed", b="failed")])
    store.commit([retracting(2)])
    assert outcomes_of(store)["a"].passed == covering(days(1, 3))
    store.commit([aborted(2)])
    assert outcomes_of(store) == {"a": AuditOutcomes(passed=covering(days(1), days(3)))}
    store.commit([opened(3)])
    store.commit([in_place(3), audited(3, None, b="passed")])
    store.commit([retracting(3)])
    store.commit([aborted(3)])
    assert outcomes_of(store) == {}


@pytest.mark.parametrize("is_looked_for", [False, True])
def test_a_change_in_place_that_landed_keeps_its_outcomes(store, is_looked_for):
    finish(store, 1, 1, interval=days(1, 2))
    store.commit([audited(1, days(1, 2), a="passed")])
    store.commit([opened(2, interval=days(2))])
    store.commit([in_place(2), audited(2, days(2), a="failed")])
    if is_looked_for:
        store.commit([retracting(2)])
    store.commit([AttemptDone(number=2, physical=PHYSICAL, landed=head(2, 2)), audited(2, days(2), b="passed")])
    assert outcomes_of(store) == {
        "a": AuditOutcomes(passed=covering(days(1)), failed=covering(days(2))),
        "b": AuditOutcomes(passed=covering(days(2))),
    }


def test_giving_up_before_a_decision_forgets_nothing(store):
    finish(store, 1, 1, interval=days(1, 2))
    store.commit([audited(1, days(1, 2), a="passed")])
    store.commit([opened(2, interval=days(2))])
    store.commit([aborted(2)])
    assert outcomes_of(store) == {"a": AuditOutcomes(passed=covering(days(1, 2)))}


def test_a_copy_takes_over_the_outcomes_of_its_source(store):
    taken = {"a": AuditOutcomes(passed=covering(days(1)), failed=covering(days(2)))}
    store.commit([OutcomesTaken(physical=PHYSICAL, outcomes=taken)])
    assert outcomes_of(store) == taken


def test_outcomes_are_committed_with_what_they_belong_to_or_not_at_all(store):
    store.commit([opened(1, interval=days(1))])
    with pytest.raises(CommitRefused):
        store.commit([decided(1, 1), audited(1, days(1), a="passed")], [HeadIs(physical=PHYSICAL, sequence=7)])
    assert outcomes_of(store) == {}
    assert store.load(LoadRequest(heads=(PHYSICAL,))).heads == {}


def test_history_has_audits_in_the_order_they_were_recorded(store):
    store.commit([run_started(), run_started("run-2")])
    store.commit([audited(7, days(1), a="passed")])
    store.commit([audited(5, None, run_id="run-2", a="failed"), audited(8, days(2), a="passed", b="skipped")])
    store.commit([audited(9, None, a="passed"), audited(9, None, physical=OTHER, a="passed")])
    second, first = store.history()
    assert [(recorded.number, recorded.physical) for recorded in first.audits] == [
        (7, PHYSICAL),
        (8, PHYSICAL),
        (9, PHYSICAL),
        (9, OTHER),
    ]
    assert [recorded.number for recorded in second.audits] == [5]
