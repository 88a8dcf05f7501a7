"""How errors end a command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lamina.errors import (
    BadName,
    Cancelled,
    DuplicateName,
    LaminaError,
    Location,
    Problems,
    SparkMissing,
    UnknownKind,
)
from tests.unit.cli.conftest import Lamina
from tests.unit.cli.fake_application import FakeApplication, FakeServices

KIND = UnknownKind(
    "unknown kind `FUL`",
    hint="did you mean `FULL`?",
    location=Location(file="models/a.sql", line=3, column=8),
    node="shop.a",
)
NAME = DuplicateName("two models are named `shop.b`", location=Location(file="models/b.sql", line=1))


def test_an_error_has_code_message_place_model_and_hint(lamina: Lamina, application: FakeApplication):
    application.report = KIND

    answer = lamina("plan")

    assert answer.exit_code == 2
    assert answer.stdout == ""
    assert answer.stderr == (
        "error LAM-SQL-003: unknown kind `FUL`\n  at models/a.sql:3:8\n  model: shop.a\n  hint: did you mean `FULL`?\n"
    )


def test_all_problems_are_reported_together(lamina: Lamina, application: FakeApplication):
    application.report = Problems([KIND, NAME])

    answer = lamina("plan")

    assert answer.exit_code == 2
    assert answer.stderr.count("error LAM-") == 2
    assert answer.stderr.endswith("2 problems found\n")


def test_several_problems_of_one_node_are_all_said_where_there_is_room_for_one():
    error = Problems([KIND, NAME]).to_dict()
    assert error["message"] == f"{KIND.message}; {NAME.message}"
    assert (error["hint"], error["file"], error["line"]) == ("did you mean `FULL`?", "models/a.sql", 3)


def test_json_errors_are_one_document_on_stdout(lamina: Lamina, application: FakeApplication):
    application.report = Problems([KIND, NAME])

    answer = lamina("plan", "--json")

    document = json.loads(answer.stdout)
    assert answer.exit_code == 2
    assert answer.stderr == ""
    assert (document["schema_version"], document["status"]) == (1, "failed")
    assert document["errors"][0] == {
        "code": "LAM-SQL-003",
        "message": "unknown kind `FUL`",
        "hint": "did you mean `FULL`?",
        "file": "models/a.sql",
        "line": 3,
        "column": 8,
        "node": "shop.a",
        "interval": None,
    }
    assert document["errors"][1]["code"] == "LAM-GRAPH-002"


@pytest.mark.parametrize(
    ("error", "code"), [(BadName("x"), 2), (SparkMissing("x"), 1), (Cancelled("x"), 130), (KeyboardInterrupt(), 130)]
)
def test_each_kind_of_error_has_its_exit_code(
    lamina: Lamina, application: FakeApplication, error: BaseException, code: int
):
    application.report = error

    assert lamina("build").exit_code == code
    assert application.is_closed


def test_an_interrupt_says_how_to_go_on(lamina: Lamina, application: FakeApplication):
    application.report = KeyboardInterrupt()

    answer = lamina("build")
    document = json.loads(lamina("build", "--json").stdout)

    assert "the same command goes on from there" in answer.stderr
    assert document["errors"][0]["code"] == Cancelled.code


# --- defects ------------------------------------------------------------------------------------------------
def test_a_defect_is_one_sentence_and_a_log(
    lamina: Lamina, application: FakeApplication, services: FakeServices, tmp_path: Path
):
    application.report, services.logs = ZeroDivisionError("oops"), tmp_path / "logs"

    answer = lamina("plan", "dev")

    (log,) = services.logs.iterdir()
    assert answer.exit_code == 1
    assert "unexpected error (ZeroDivisionError: oops); this is a defect in Lamina" in answer.stderr
    assert str(log) in answer.stderr
    assert "Traceback" not in answer.output
    assert log.read_text(encoding="utf-8").startswith("lamina plan dev\n")
    assert "Traceback" in log.read_text(encoding="utf-8")


def test_a_defect_where_no_log_can_be_written_is_still_reported(
    lamina: Lamina, application: FakeApplication, services: FakeServices, tmp_path: Path
):
    blocked = tmp_path / "file"
    blocked.touch()
    application.report, services.logs = ZeroDivisionError("oops"), blocked / "logs"

    answer = lamina("plan")

    assert answer.exit_code == 1
    assert "`--debug` shows where it arose" in answer.stderr


def test_a_traceback_is_shown_when_asked_for(lamina: Lamina, application: FakeApplication):
    application.report = ZeroDivisionError("oops")

    assert "Traceback" in lamina("plan", "--debug").stderr


def test_a_defect_as_json(lamina: Lamina, application: FakeApplication):
    application.report = ZeroDivisionError("oops")

    answer = lamina("plan", "--json")

    assert json.loads(answer.stdout)["errors"][0]["code"] == LaminaError.code
    assert answer.exit_code == 1


# --- wrong usage --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("plann",), "`lamina` has no command `plann`", "did you mean `lamina plan`?"),
        (("xyzzy",), "`lamina` has no command `xyzzy`", "`lamina --help` lists the commands there are"),
        (("rollback",), "`lamina rollback` is not part of this release yet", "`lamina --help`"),
        (("env", "delete", "dev"), "`lamina env delete` is not part of this release yet", "`lamina env --help`"),
        (("env", "showw"), "`lamina env` has no command `showw`", "did you mean `lamina env show`?"),
        (("plan", "--selct", "x"), "`lamina plan` has no option `--selct`", "did you mean `--select`?"),
        (("-C", "x", "plan"), "`lamina` has no option `-C`", "options come after the command: `lamina plan -C`"),
        (("query",), "`lamina query` needs `SQL`", "`lamina query --help`"),
        (("query", "x", "--limit", "many"), "`--limit`: `many` is not a valid integer", "`lamina query --help`"),
        (("query", "x", "--limit", "-1"), "`--limit`: -1 is not in the range x>=0", "`lamina query --help`"),
        (("run", "--concurrency", "0"), "`--concurrency`", "`lamina run --help`"),
        (("render", "a", "b"), "unexpected extra argument (b)", "`lamina render --help`"),
        (("plan", "--select"), "option `--select` requires an argument", "--help` shows how it is called"),
    ],
)
def test_wrong_usage_is_explained(lamina: Lamina, words: tuple[str, ...], message: str, hint: str):
    answer = lamina(*words)

    assert answer.exit_code == 2
    assert message in answer.stderr
    assert hint in answer.stderr
    assert answer.stdout == ""


@pytest.mark.parametrize("words", [("plan", "--nonsense"), ("query",), ("nonsense",), ("promote", "--from", "a")])
def test_wrong_usage_is_a_document_when_json_was_asked_for(lamina: Lamina, words: tuple[str, ...]):
    answer = lamina(*words, "--json")

    document = json.loads(answer.stdout)
    assert answer.exit_code == 2
    assert document["status"] == "failed"
    assert document["errors"][0]["code"].startswith("LAM-USE-")


@pytest.mark.parametrize(
    "name",
    ["rollback", "test", "freshness", "lineage", "dag", "diff", "janitor"],
)
def test_commands_of_later_releases_do_not_exist_silently(lamina: Lamina, name: str):
    answer = lamina(name)

    assert answer.exit_code == 2
    assert "not part of this release yet" in answer.stderr
    assert name not in lamina("--help").stdout.split("Commands:")[1].split()


@pytest.mark.parametrize("words", [(), ("env",)])
def test_without_a_command_the_help_is_shown_as_wrong_usage(lamina: Lamina, words: tuple[str, ...]):
    answer = lamina(*words)

    assert answer.exit_code == 2
    assert answer.stderr.startswith("Usage: lamina")
