"""Any sequence of calls has the same answers in memory, where they are plainly right, and on a database."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.app.ports.facts import (
    AttemptAborted,
    AttemptDone,
    AttemptRetracting,
    CoverageRemoved,
    IdentityStands,
    LeaseClosed,
    LeaseReleased,
    OutcomesTaken,
    RevisionFollowed,
    RevisionWritten,
)
from lamina.app.ports.loaded import LoadRequest, RevisionsSince, version_resource
from lamina.app.ports.requirements import AttemptIs, HeadIs, LeaseIsCurrent, MarkIs, NothingPending, RevisionIs
from lamina.bootstrap import open_store
from lamina.errors import StateError
from lamina.identity.version import Same
from lamina.planning.inputs import AuditOutcomes
from lamina.state.memory import MemoryStateStore
from tests.kit.state import (
    ORDERS,
    OTHER,
    PHYSICAL,
    at,
    audited,
    covering,
    days,
    decided,
    done,
    head,
    later,
    opened,
    owner,
    revision,
    settled,
    unknown,
    version,
    version_id,
)

CUSTOMERS = "shop.customers"
small = st.integers(min_value=1, max_value=3)
physical = st.sampled_from([PHYSICAL, OTHER])
environments = st.sampled_from(["prod", "dev"])
nodes = st.sampled_from([ORDERS, CUSTOMERS])
resources = physical.map(version_resource)
intervals = st.none() | st.builds(lambda first, length: days(first, first + length), small, small)
partitions = st.dictionaries(st.tuples(st.sampled_from(["a", "b", None])), st.sampled_from("xyz"), max_size=3)
statuses = st.sampled_from(["open", "decided", "retracting", "done", "aborted"])

facts = st.one_of(
    st.builds(opened, small, physical, intervals),
    st.builds(
        lambda number, sequence, name, folders, removed: decided(
            number,
            sequence,
            name,
            folders={key: folder for key, folder in folders.items() if key not in removed},
            removed=tuple(removed),
        ),
        small,
        small,
        physical,
        partitions,
        partitions,
    ),
    st.builds(done, small, physical),
    st.builds(AttemptAborted, number=small, physical=physical, reason=st.just("failed")),
    st.builds(AttemptRetracting, number=small, physical=physical),
    st.builds(
        lambda number, name, sequence, rewritten: AttemptDone(
            number=number,
            physical=name,
            landed=replace(head(sequence, number, name), snapshot=number),
            rewritten=covering(*([rewritten] if rewritten else [])),
        ),
        small,
        physical,
        small,
        intervals,
    ),
    st.builds(CoverageRemoved, physical=physical, intervals=intervals.map(lambda i: covering(*([i] if i else [])))),
    st.builds(
        lambda number, interval, name, is_shown, outcomes: audited(
            number, interval, physical=name, is_shown=is_shown, **outcomes
        ),
        small,
        intervals,
        physical,
        st.booleans(),
        st.dictionaries(st.sampled_from("ab"), st.sampled_from(["passed", "failed", "skipped"])),
    ),
    st.builds(
        lambda name, interval: OutcomesTaken(
            physical=name, outcomes={"a": AuditOutcomes(passed=covering(*([interval] if interval else [])))}
        ),
        physical,
        intervals,
    ),
    st.builds(LeaseReleased, resource=resources, token=small),
    st.builds(LeaseClosed, resource=resources, token=small),
    st.builds(
        lambda name, number, status, is_followed: RevisionWritten(
            revision=revision(name, number, status=status, is_followed=is_followed)
        ),
        environments,
        small,
        st.sampled_from(["active", "finalized"]),
        st.booleans(),
    ),
    st.builds(RevisionFollowed, environment=environments, number=small),
    st.builds(
        IdentityStands,
        same=st.builds(Same, node=nodes, identity=st.sampled_from("pq"), stands_for=st.sampled_from("rst")),
    ),
)
requirements = st.one_of(
    st.builds(LeaseIsCurrent, resource=resources, token=small),
    st.builds(AttemptIs, number=small, status=statuses),
    st.builds(HeadIs, physical=physical, sequence=st.integers(0, 3)),
    st.builds(NothingPending, physical=physical),
    st.builds(MarkIs, physical=physical, mark=st.integers(0, 4)),
    st.builds(RevisionIs, environment=environments, number=st.integers(0, 2)),
)


def call(name, *arguments, **further):
    return lambda store: getattr(store, name)(*arguments, **further)


calls = st.one_of(
    st.builds(lambda fact: call("commit", [fact]), facts),
    st.builds(
        lambda several, requires: call("commit", several, requires),
        st.lists(facts, max_size=3),
        st.lists(requirements, max_size=2),
    ),
    st.builds(
        lambda resource, now, fate_of: (
            lambda store: at(store, now).take(resource, owner(now), seconds=5, fate_of=fate_of)
        ),
        resources,
        st.integers(0, 20),
        st.sampled_from([unknown, settled, lambda _: "gone"]),
    ),
    st.builds(lambda count: call("allocate", count), small),
    st.builds(lambda now: lambda store: at(store, now).unsettled(), st.integers(0, 20)),
)

EVERYTHING = LoadRequest(
    all_environments=True,
    versions=((ORDERS, version_id()), (CUSTOMERS, version_id())),
    identities=((ORDERS, "p"), (ORDERS, "q"), (CUSTOMERS, "p")),
    heads=(PHYSICAL, OTHER),
    manifests=(PHYSICAL, OTHER),
    checkpoints_of=("prod", "dev"),
    revisions_since=(RevisionsSince(environment="prod"), RevisionsSince(environment="dev", moment=later(1))),
)


def answer(store, use):
    """What a call gave: a value, or the sort of its refusal and its words."""
    try:
        return use(store)
    except StateError as error:
        return type(error), error.message


@settings(max_examples=40)
@given(st.lists(calls, max_size=25))
def test_memory_and_sqlite_agree_on_every_answer(sequence):
    with tempfile.TemporaryDirectory() as folder:
        stores = (MemoryStateStore(), open_store("sqlite:///state.db", Path(folder)))
        for store in stores:
            store.commit([version(), version(CUSTOMERS)])
        for use in sequence:
            in_memory, in_sqlite = (answer(store, use) for store in stores)
            assert in_memory == in_sqlite
        in_memory, in_sqlite = (store.load(EVERYTHING) for store in stores)
        assert in_memory == in_sqlite
        stores[1].close()
