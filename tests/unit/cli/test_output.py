"""Streams, colour, width and encodings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.app.ports.engine import QueryResult
from lamina.cli.present.words import count_of, interval_words, intervals_words, printable, seconds_words
from lamina.graph.model import Column
from lamina.timeline.interval import Interval
from tests.kit.models import instant, model, ranges
from tests.unit.cli.conftest import Lamina
from tests.unit.cli.fake_application import FakeApplication, Shop

ROOT = Path(__file__).parents[3]

SHOW_A_PLAN = """
import sys
from lamina.cli.main import cli
from tests.kit.models import model
from tests.unit.cli.fake_application import FakeServices, Shop
shop = Shop()
shop.models.append(model("shop.müßig", query="SELECT '✓' AS y"))
shop.world.change(*shop.models)
services = FakeServices()
services.application.report = shop.plan()
cli.main(sys.argv[1:], obj=services.as_services())
"""


def show_a_plan(*words: str, script: str = SHOW_A_PLAN, **variables: str) -> subprocess.CompletedProcess[bytes]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    return subprocess.run(
        [sys.executable, "-c", script, "plan", *words],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": path, **variables},
    )


def test_a_terminal_without_unicode_gets_ascii():
    answer = show_a_plan(PYTHONIOENCODING="ascii", COLUMNS="80")

    assert answer.returncode == 0
    assert b"`-- + build" in answer.stdout
    assert b"shop.m\\xfc\\xdfig" in answer.stdout
    assert answer.stdout.isascii()


def test_json_is_ascii_where_the_stream_is():
    answer = show_a_plan("--json", PYTHONIOENCODING="ascii")

    assert answer.returncode == 0
    assert b'"shop.m\\u00fc\\u00dfig"' in answer.stdout


def test_what_the_projects_own_code_prints_is_no_result():
    noisy = "shop.plan_before = services.application.plan\nservices.application.plan = lambda *given, **named: ("
    noisy += "print('noise'), shop.plan_before(*given, **named))[1]\ncli.main("
    answer = show_a_plan("--json", script=SHOW_A_PLAN.replace("cli.main(", noisy))

    assert answer.returncode == 0
    assert answer.stdout.startswith(b"{")
    assert b"noise" in answer.stderr


@pytest.mark.parametrize("columns", ["1", "7", "20"])
def test_a_narrow_terminal_does_not_crash(columns: str):
    assert show_a_plan("-v", COLUMNS=columns).returncode == 0


def test_colour_is_used_on_terminals_and_never_when_unwanted():
    forced = {"FORCE_COLOR": "1", "COLUMNS": "80", "TERM": "xterm-256color"}

    assert b"\x1b[32m" in show_a_plan(**forced).stdout
    assert b"\x1b[32m" not in show_a_plan("--no-color", **forced).stdout
    assert b"\x1b[32m" not in show_a_plan(**forced, NO_COLOR="1").stdout
    assert b"\x1b" not in show_a_plan(FORCE_COLOR="", COLUMNS="80").stdout


def test_a_reader_that_leaves_early_is_no_error():
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    reading, writing = os.pipe()
    os.close(reading)
    try:
        answer = subprocess.run(
            [sys.executable, "-c", SHOW_A_PLAN, "plan", "--json"],
            stdout=writing,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
        plain = subprocess.run(
            [sys.executable, "-c", SHOW_A_PLAN, "plan"],
            stdout=writing,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
    finally:
        os.close(writing)

    assert (answer.returncode, answer.stderr) == (0, b"")
    assert plain.returncode == 0
    assert b"Error" not in plain.stderr


def test_what_a_program_reads_is_not_folded(lamina: Lamina, application: FakeApplication, shop: Shop):
    name = f"shop.{'long_' * 40}name"
    shop.models.append(model(name))
    shop.world.change(*shop.models)
    application.report = shop.plan()

    assert f"+ build {name}  FULL" in lamina("plan").stdout


# --- words --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        ("2024-01-01", "2024-01-02", "2024-01-01"),
        ("2024-01-01", "2024-02-01", "2024-01-01 to 2024-01-31"),
        ("2024-01-01T06:00:00Z", "2024-01-01T07:30:00Z", "2024-01-01 06:00 until 2024-01-01 07:30 UTC"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z", "2024-01-01 until 2024-01-01 00:00:01 UTC"),
    ],
)
def test_whole_days_are_named_inclusively(start: str, end: str, words: str):
    assert interval_words(Interval(instant(start), instant(end))) == words
    assert interval_words((instant(start).isoformat(), instant(end).isoformat())) == words


def test_of_many_ranges_the_first_few_are_named():
    many = ranges(*((f"2024-01-{day:02d}", f"2024-01-{day + 1:02d}") for day in range(1, 20, 2)))

    assert intervals_words(many).endswith("2024-01-07 and 6 more ranges")
    assert intervals_words(many, is_complete=True).count(",") == 9


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [(1, "batch", "1 batch"), (2, "batch", "2 batches"), (0, "query", "0 queries"), (1200, "row", "1,200 rows")],
)
def test_numbers_agree_with_their_nouns(number: int, noun: str, words: str):
    assert count_of(number, noun) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.04, "0.0 s"), (59.94, "59.9 s"), (65, "1 min 05 s"), (3720, "1 h 02 min")]
)
def test_durations_are_as_coarse_as_they_are_long(seconds: float, words: str):
    assert seconds_words(seconds) == words


def test_control_characters_are_made_visible():
    assert printable("a\x1bb\x00c\nd\te\u202e") == "a\\x1bb\\x00c\nd\te\\u202e"


def test_sql_that_goes_to_a_file_is_neither_padded_nor_folded_nor_touched(
    lamina: Lamina, application: FakeApplication, shop: Shop
):
    long = "SELECT '" + "x" * 150_000 + "' AS y,"
    application.report, application.sql = shop.plan(), f"{long}\n  'a\tb ' AS z"

    answer = lamina("plan", "--explain")

    lines = answer.stdout.split("\n")
    assert f"  {long}" in lines
    assert "    'a\tb ' AS z" in lines
    assert [line for line in lines if line.endswith(" ")] == []
    assert max(len(line) for line in lines) == len(long) + 2


def test_a_wide_cell_pads_no_other_line(lamina: Lamina, application: FakeApplication):
    wide = "w" * 120_000
    columns = (Column(name="a", type="int"), Column(name="b", type="string"))
    application.result = QueryResult(columns=columns, rows=((1, "short"), (2, wide)), is_truncated=False)

    lines = lamina("query", "SELECT 1").stdout.splitlines()

    assert [line for line in lines if line.endswith(" ")] == []
    assert any(line.endswith(wide) for line in lines)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("words", [["--help"], ["init", "--help"], ["plan", "--json"], ["plan"]])
def test_a_result_that_cannot_be_written_is_one_sentence(words: list[str], tmp_path: Path):
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "lamina", *words], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        )

    assert ended.returncode in {1, 2}
    assert "Traceback" not in ended.stderr
    assert "LAM-000" not in ended.stderr
    # Without a project there is no result of `plan` in text.
    assert ("LAM-OUT-001" in ended.stderr) == (words != ["plan"])
