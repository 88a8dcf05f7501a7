"""Suggestions: what is a slip away is suggested, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.near_names import did_you_mean, near_names

COMMANDS = (
    "init",
    "plan",
    "build",
    "run",
    "audit",
    "query",
    "render",
    "env",
    "promote",
    "source",
    "intervals",
    "history",
)
COMMANDS += ("state", "doctor")
WORDS = st.text("abcdefgh_", min_size=3, max_size=14)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("bulid", "build"),
        ("plna", "plan"),
        ("PLAN", "plan"),
        ("histroy", "history"),
        ("promot", "promote"),
        ("interval", "intervals"),
        ("qurey", "query"),
        ("rn", "run"),
    ],
)
def test_a_slip_is_recognised(written: str, meant: str):
    assert near_names(written, COMMANDS) == (meant,)


@pytest.mark.parametrize("written", ["lint", "x", "", "compile", "deploy", "ls", "test", "seed", "freshness", "up"])
def test_nothing_is_suggested_for_another_word(written: str):
    assert near_names(written, COMMANDS) == ()


@pytest.mark.parametrize(
    ("written", "known", "near"),
    [
        ("shop.a", ["shop.b"], ()),
        ("shop.ordrs", ["shop.orders", "shop.other"], ("shop.orders",)),
        ("ordrs", ["shop.orders"], ("shop.orders",)),
        ("a.b.orders", ["shop.orders"], ()),
        ("exec-time", ["execution-time", "target"], ("execution-time",)),
        ("incremental", ["FULL", "INCREMENTAL_BY_TIME_RANGE"], ("INCREMENTAL_BY_TIME_RANGE",)),
    ],
)
def test_names_are_compared_part_by_part(written: str, known: list[str], near: tuple[str, ...]):
    assert near_names(written, known) == near


@given(WORDS, st.data())
def test_a_known_name_with_one_slip_is_found(word: str, data: st.DataObject):
    place = data.draw(st.integers(0, len(word) - 1))
    slipped = data.draw(
        st.sampled_from(
            [word[:place] + word[place + 1 :], word[:place] + "x" + word[place:], f"{word[:place]}x{word[place + 1 :]}"]
        )
    )
    assert near_names(slipped, ["unrelated.name", word]) == (word,)


@given(WORDS, st.lists(WORDS, max_size=5))
def test_the_name_itself_is_the_nearest(word: str, others: list[str]):
    assert near_names(word, [*others, word])[0] == word


@given(WORDS, st.lists(WORDS, max_size=8), st.integers(1, 4))
def test_suggestions_are_known_names_and_no_more_than_wanted(word: str, known: list[str], limit: int):
    found = near_names(word, known, limit)
    assert set(found) <= set(known)
    assert len(found) == len(set(found)) <= limit


def test_the_hint_names_all_of_them():
    assert did_you_mean("ab_c", ["ab_d", "ab_e"], 2) == "did you mean `ab_d` or `ab_e`?"
    assert did_you_mean("start", ["other"], prefix="--") is None
