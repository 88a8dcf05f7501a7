"""`lamina plan`."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lamina.errors import NotYetSupported
from lamina.graph.dag import Notice
from lamina.planning.inputs import Flags
from tests.kit.models import instant, model
from tests.unit.cli.conftest import Lamina
from tests.unit.cli.fake_application import FakeApplication, FakeServices, Shop, succeeded

CHANGED = "SELECT ds, x * 2 AS revenue FROM shop.orders"


def test_nodes_stand_under_the_reason_for_their_work(lamina: Lamina, application: FakeApplication, shop: Shop):
    shop.build()
    shop.change("shop.revenue", CHANGED)
    application.report = shop.plan("dev")

    answer = lamina("plan", "dev")

    lines = answer.stdout.splitlines()
    assert answer.exit_code == 0
    assert lines[0].startswith("Environment dev (new, begins as prod) of project shop, as of 2024-01-08 00:00:00 UTC")
    assert "query changed" in lines[2]
    assert "+ build shop.revenue  FULL" in lines[3]
    assert any("upstream changed (because of shop.revenue)" in line for line in lines)
    assert lines[-1] == "2 to build (2 batches), 1 unchanged"
    assert "`lamina build dev` carries this out" in answer.stderr
    assert application.is_closed


def test_a_changed_query_is_shown_as_a_unified_diff(lamina: Lamina, application: FakeApplication, shop: Shop):
    shop.build()
    shop.change("shop.revenue", CHANGED)
    application.report = shop.plan()

    text = lamina("plan").stdout

    assert "-SELECT ds, x AS revenue FROM shop.orders" in text
    assert f"+{CHANGED}" in text


def test_intervals_are_ranges_of_days_with_the_number_of_batches(
    lamina: Lamina, application: FakeApplication, shop: Shop
):
    application.report = shop.plan()

    assert "2024-01-01 to 2024-01-07: " in lamina("plan").stdout


def test_unchanged_nodes_are_counted_and_named_only_when_asked(
    lamina: Lamina, application: FakeApplication, shop: Shop
):
    shop.build()
    application.report = shop.plan()

    assert "shop.orders" not in lamina("plan").stdout
    assert "3 unchanged" in lamina("plan").stdout
    assert "shop.orders" in lamina("plan", "-v").stdout


def test_a_removed_model_is_said_to_go(lamina: Lamina, application: FakeApplication, shop: Shop):
    shop.build()
    shop.remove("shop.page")
    application.report = shop.plan()

    text = lamina("plan").stdout

    assert "no longer in the project" in text
    assert "- remove shop.page  VIEW" in text


def test_what_waits_is_shown_with_its_reason(lamina: Lamina, application: FakeApplication, shop: Shop):
    report = shop.plan()
    waiting = replace(report.plan.steps[0], action="wait", batches=(), explanation="waits for `raw.events`")
    application.report = replace(report, plan=replace(report.plan, steps=(waiting,)))

    text = lamina("plan").stdout

    assert "waiting" in text
    assert ". wait shop.orders" in text
    assert "waits for `raw.events`" in text


def test_a_blocked_plan_answers_one(lamina: Lamina, application: FakeApplication, shop: Shop):
    shop.build()
    shop.change("shop.revenue", CHANGED)
    application.report = shop.plan(flags=Flags(select=("shop.page",)))

    answer = lamina("plan", "--select", "shop.page", "--detailed-exit-code")

    assert answer.exit_code == 1
    assert "! blocked shop.page" in answer.stdout
    assert "cannot be built as it is" in answer.stderr


def test_warnings_go_to_stderr(lamina: Lamina, application: FakeApplication, shop: Shop):
    report = shop.plan()
    application.report = replace(report, notices=(Notice(code="LAM-WARN-010", message="audits are not run"),))

    answer = lamina("plan")

    assert "warning LAM-WARN-010: audits are not run" in answer.stderr
    assert "LAM-WARN-010" not in answer.stdout


@pytest.mark.parametrize(("is_built", "code"), [(True, 0), (False, 3)])
def test_a_detailed_exit_code_tells_whether_there_are_changes(
    lamina: Lamina, application: FakeApplication, shop: Shop, is_built: bool, code: int
):
    if is_built:
        shop.build()
    application.report = shop.plan()

    assert lamina("plan", "--detailed-exit-code").exit_code == code
    assert lamina("plan").exit_code == 0


def test_a_new_environment_is_a_change_even_when_nothing_is_computed(
    lamina: Lamina, application: FakeApplication, shop: Shop
):
    shop.build()
    application.report = shop.plan("dev")

    answer = lamina("plan", "dev", "--detailed-exit-code")

    assert answer.exit_code == 3
    assert "`lamina build dev` creates the environment" in answer.stderr


def test_an_unchanged_project_has_nothing_to_do(lamina: Lamina, application: FakeApplication, shop: Shop):
    shop.build()
    application.report = shop.plan()

    answer = lamina("plan")

    assert "nothing to build, 3 unchanged" in answer.stdout
    assert "Nothing to do" in answer.stderr


def test_json_is_the_report_and_nothing_else(lamina: Lamina, application: FakeApplication, shop: Shop):
    application.report = shop.plan()

    answer = lamina("plan", "--json")

    assert json.loads(answer.stdout) == application.report.to_dict()
    assert answer.stderr == ""


def test_explain_adds_the_sql_of_every_step_with_work(lamina: Lamina, application: FakeApplication, shop: Shop):
    application.report, application.sql = shop.plan(), "SELECT 'rendered'"

    text = lamina("plan", "--explain").stdout
    document = json.loads(lamina("plan", "--explain", "--json").stdout)

    assert "SQL of shop.orders:" in text
    assert "  SELECT 'rendered'" in text
    assert {node["sql"] for node in document["nodes"]} == {"SELECT 'rendered'"}
    asked = {request["model"]: request for request in application.requests if isinstance(request, dict)}
    first = application.report.plan.steps[0].batches[0].interval
    assert (asked["shop.orders"]["start"], asked["shop.orders"]["end"]) == first.to_pair()
    assert asked["shop.revenue"]["start"] is None


def test_explain_leaves_out_what_is_not_written_in_sql(lamina: Lamina, application: FakeApplication, shop: Shop):
    shop.build()
    application.report, application.sql = shop.plan(), AssertionError("nothing is to be rendered")

    assert lamina("plan", "--explain").exit_code == 0


def test_every_flag_reaches_the_request(
    lamina: Lamina, application: FakeApplication, services: FakeServices, shop: Shop
):
    application.report = shop.plan()

    lamina(
        "plan", "dev", "-C", "some/where", "--target", "lake", "--execution-time", "2024-02-03",
        "--select", "a", "--select", "+b", "--exclude", "c", "--start", "2024-01-01", "--end", "2024-01-02",
        "--restate", "d", "--forward-only", "--breaking", "e", "--non-breaking", "f", "--effective-from", "2024-01-01",
        "--force", "--changes-only", "--include-stale-upstreams", "--skip-tests", "--skip-audits",
        "--concurrency", "3", "--fail-fast", "--debug",
    )  # fmt: skip

    request = application.requests[0]
    assert request.command == "plan"
    assert request.environment == "dev"
    assert request.now == instant("2024-02-03")
    assert (request.concurrency, request.is_fail_fast) == (3, True)
    assert request.flags == Flags(
        select=("a", "+b"),
        exclude=("c",),
        start="2024-01-01",
        end="2024-01-02",
        restate=("d",),
        forward_only=True,
        breaking=("e",),
        non_breaking=("f",),
        effective_from="2024-01-01",
        force=True,
        changes_only=True,
        include_stale_upstreams=True,
    )
    assert str(services.opened[0].directory) == "some/where"
    assert (services.opened[0].target, services.opened[0].debug) == ("lake", True)


@pytest.mark.parametrize("words", [("dev",), ("--env", "dev"), ("--virtual-env", "dev"), ("dev", "--env", "dev")])
def test_an_environment_may_be_an_argument_or_an_option(
    lamina: Lamina, application: FakeApplication, shop: Shop, words: tuple[str, ...]
):
    application.report = shop.plan("dev")

    assert lamina("plan", *words).exit_code == 0
    assert application.requests[0].environment == "dev"


def test_two_different_environments_are_refused(lamina: Lamina, application: FakeApplication):
    answer = lamina("plan", "dev", "--env", "prod")

    assert answer.exit_code == 2
    assert "LAM-USE-001: two environments were given: `dev` and `prod`" in answer.stderr
    assert application.requests == []


def test_without_an_environment_the_target_decides(lamina: Lamina, application: FakeApplication, shop: Shop):
    application.report = shop.plan()

    lamina("plan")

    assert application.requests[0].environment is None


# --- apply --------------------------------------------------------------------------------------------------
def test_apply_shows_the_plan_and_builds_it(lamina: Lamina, application: FakeApplication, shop: Shop):
    application.planned = shop.plan()
    application.report = succeeded(application.planned)

    answer = lamina("plan", "--apply", "--yes")

    assert answer.exit_code == 0
    assert answer.stdout.index("first run") < answer.stdout.index("succeeded")
    assert application.requests[0].command == "build"


def test_apply_needs_somebody_to_ask_or_a_yes(lamina: Lamina, application: FakeApplication):
    answer = lamina("plan", "--apply")

    assert answer.exit_code == 2
    assert "nobody can answer here" in answer.stderr
    assert "`--yes`" in answer.stderr
    assert application.requests == []


def test_apply_with_json_prints_one_document(lamina: Lamina, application: FakeApplication, shop: Shop):
    application.planned = shop.plan()
    application.report = succeeded(application.planned)

    answer = lamina("plan", "--apply", "--yes", "--json")

    assert json.loads(answer.stdout)["status"] == "succeeded"


@pytest.mark.parametrize(("reply", "code", "expected"), [("y\n", 0, "succeeded"), ("n\n", 1, "nothing was changed")])
def test_on_a_terminal_apply_asks_first(
    lamina: Lamina,
    application: FakeApplication,
    shop: Shop,
    monkeypatch: pytest.MonkeyPatch,
    reply: str,
    code: int,
    expected: str,
):
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: self.name == "<stdin>", raising=False)
    application.planned = shop.plan()
    application.report = succeeded(application.planned)

    answer = lamina("plan", "--apply", input=reply)

    assert "Build `prod`?" in answer.output
    assert answer.exit_code == code
    assert expected in answer.output


@pytest.mark.parametrize("words", [("--yes",), ("--apply", "--yes", "--detailed-exit-code")])
def test_flags_that_say_nothing_together_are_refused(
    lamina: Lamina, application: FakeApplication, words: tuple[str, ...]
):
    assert lamina("plan", *words).exit_code == 2
    assert application.requests == []


def test_a_plan_that_cannot_be_made_names_every_reason(lamina: Lamina, application: FakeApplication):
    application.report = NotYetSupported("`shop.x` is of kind MANAGED", hint="use FULL")

    answer = lamina("plan")

    assert answer.exit_code == 1
    assert "error LAM-PLAN-002: `shop.x` is of kind MANAGED" in answer.stderr
    assert answer.stdout == ""


def test_names_that_look_like_markup_are_taken_literally(lamina: Lamina, application: FakeApplication, shop: Shop):
    shop.models.append(model("shop.odd", query="SELECT '[red]x[/red]' AS y"))
    shop.world.change(*shop.models)
    shop.build()
    shop.change("shop.odd", "SELECT '[bold]x[/nothing]' AS y")
    application.report = shop.plan()

    text = lamina("plan").stdout

    assert "+SELECT '[bold]x[/nothing]' AS y" in text


def test_intervals_that_the_baseline_writes_are_named_where_it_is_shared(
    lamina: Lamina, application: FakeApplication, shop: Shop
):
    shop.build()
    shop.build("dev")
    application.report = shop.plan("dev", now="2024-01-10")

    answer = lamina("plan", "dev", "--target", "prod")

    assert "waiting for the baseline" in answer.stdout
    assert ". wait shop.orders" in answer.stdout
    assert "which alone writes it and lacks [2024-01-08T00:00:00Z, 2024-01-10T00:00:00Z)" in answer.stdout
    assert "no interval is missing" not in answer.stderr
    assert "are for prod to write first" in answer.stderr
    assert "`lamina run prod --target prod` writes those that are released" in answer.stderr
    later = lamina("plan", "dev", "--execution-time", "2024-01-10 00:00:00").stderr
    assert "`lamina run prod --execution-time '2024-01-10 00:00:00'` writes those" in later
    left = next(node for node in json.loads(lamina("plan", "dev", "--json").stdout)["nodes"])["left_to_baseline"]
    assert left == [["2024-01-08T00:00:00Z", "2024-01-10T00:00:00Z"]]


@pytest.mark.parametrize("command", ["build", "run"])
def test_a_command_with_nothing_to_do_names_what_is_left_to_the_baseline(
    lamina: Lamina, application: FakeApplication, shop: Shop, command: str
):
    shop.build()
    shop.build("dev")
    application.report = shop.plan("dev", now="2024-01-10", command=command)

    answer = lamina(command, "dev")

    assert "Nothing to do in dev right now" in answer.stdout
    assert "New intervals of 1 model are for prod to write" in answer.stdout


def test_a_change_says_why_it_is_breaking(lamina: Lamina, application: FakeApplication, shop: Shop):
    shop.models.append(model("shop.totals", ["shop.revenue"]))
    shop.world.change(*shop.models)
    shop.build()
    shop.change("shop.revenue", CHANGED)
    application.report = shop.plan()

    answer = lamina("plan")

    assert any(
        "shop.revenue" in line and "breaking: reaches shop.totals" in line for line in answer.stdout.splitlines()
    )
    assert "non-breaking: reaches no other table" in answer.stdout
    nodes = {node["name"]: node["reaches"] for node in json.loads(lamina("plan", "--json").stdout)["nodes"]}
    assert (nodes["shop.revenue"], nodes["shop.totals"]) == (["shop.totals"], [])
