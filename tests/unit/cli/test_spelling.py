"""Commands in hints can be pasted into a shell, and do what was shown."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.text import Text

from lamina.app.requests import PlanRequest
from lamina.cli.main import cli
from lamina.cli.spelling import with_place
from lamina.errors import AnalysisFailed, BadName
from tests.kit.models import instant
from tests.unit.cli.conftest import Lamina
from tests.unit.cli.fake_application import NOW, FakeApplication, FakeServices, Shop, succeeded

SHOP = Shop()
TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="`"), min_size=1, max_size=12)
MODELS = st.sampled_from(["shop.orders", "+shop.revenue", "tag:night ly", "-x", "--json", "a'b", '$(x) "y"', "*"])
DATES = st.sampled_from(["2024-01-03", "2024-01-05T06:00:00Z", "3 days ago", "yesterday"])
REPEATED = ("--select", "--exclude", "--restate", "--reset", "--breaking", "--non-breaking")
SWITCHES = (
    "--allow-gaps",
    "--forward-only",
    "--force",
    "--changes-only",
    "--include-stale-upstreams",
    "--skip-tests",
    "--skip-audits",
    "--fail-fast",
)


@st.composite
def flags(draw: st.DrawFn) -> list[str]:
    words = [word for switch in SWITCHES if draw(st.booleans()) for word in [switch]]
    for option in REPEATED:
        words += [f"{option}={value}" for value in draw(st.lists(MODELS | TEXTS, max_size=2))]
    for option in ("--start", "--end", "--effective-from"):
        words += [f"{option}={value}" for value in draw(st.lists(DATES, max_size=1))]
    words += [f"--concurrency={number}" for number in draw(st.lists(st.integers(1, 9), max_size=1))]
    words += [f"--execution-time={time}" for time in draw(st.lists(st.just("2024-01-08T05:00:00Z"), max_size=1))]
    words += [f"-C{value}" for value in draw(st.lists(TEXTS, max_size=1))]
    words += [f"--target={value}" for value in draw(st.lists(TEXTS, max_size=1))]
    words += draw(st.sampled_from([[], ["dev"], ["--env", "dev"], ["--virtual-env=dev"]]))
    return draw(st.permutations(words)) if "--env" not in words else words


def hinted(text: str) -> list[str]:
    (command,) = re.findall(r"`(lamina .*)`", text)
    return shlex.split(command)[1:]


@given(words=flags(), looks=st.lists(st.sampled_from(["-v", "--explain", "--no-color"]), max_size=2))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_command_that_a_plan_hints_at_asks_for_what_was_shown(words: list[str], looks: list[str]):
    services = FakeServices()
    services.application.report = SHOP.plan()
    shown = CliRunner().invoke(cli, ["plan", *words, *looks], obj=services.as_services())
    assert shown.exit_code == 0, shown.output
    command = hinted(shown.stderr)
    services.application.report = replace(SHOP.plan(), status="planned")

    CliRunner().invoke(cli, ["build", "--yes", *command[1:]], obj=services.as_services())

    asked, done = (request for request in services.application.requests if isinstance(request, PlanRequest))
    assert command[0] == "build"
    assert done == replace(asked, command="build")
    assert services.opened[0] == services.opened[1]


@pytest.mark.parametrize("time", ["3 days ago", "yesterday"])
def test_a_moment_that_counts_from_now_is_written_out(time: str):
    services = FakeServices()
    services.application.report = SHOP.plan(now="2024-01-07")
    real = replace(services.as_services(), parse_execution_time=lambda text: instant("2024-01-07"))

    answer = CliRunner().invoke(cli, ["plan", "--execution-time", time], obj=real)

    assert hinted(answer.stderr) == ["build", "--execution-time", "2024-01-07T00:00:00Z"]


def test_a_failed_build_hints_at_the_same_build(lamina: Lamina, application: FakeApplication, shop: Shop):
    report = succeeded(shop.plan("dev", command="build"))
    broken = replace(report.results[report.plan.steps[0].node], status="failed", error=AnalysisFailed("no column"))
    application.report = replace(report, status="failed", results={**report.results, report.plan.steps[0].node: broken})

    told = lamina("build", "dev", "-C", "my shop", "--select", "+a", "-v", "--execution-time", NOW)

    assert f"then `lamina build dev --select +a -C 'my shop' --execution-time {NOW}` goes on" in told.stderr
    assert "`lamina history run1 -C 'my shop'` lists every batch" in told.stderr


def test_commands_in_hints_are_about_the_same_project_and_target(lamina: Lamina, application: FakeApplication):
    application.report = BadName("x", hint="`lamina plan` lists every model; or run `lamina init DIR`")

    told = lamina("build", "-C", "a b", "--target", "prod").stderr

    assert "`lamina plan -C 'a b' --target prod` lists every model; or run `lamina init DIR`" in told


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        ("`lamina plan`", "`lamina plan -C x`"),
        ("  hint: look:\n    lamina query 'SELECT 1'", "  hint: look:\n    lamina query 'SELECT 1' -C x"),
        ("`lamina plan -C y` and `lamina env --help`", "`lamina plan -C y` and `lamina env --help`"),
        ("lamina is a word here", "lamina is a word here"),
        ("`lamina a`, `lamina b`", "`lamina a -C x`, `lamina b -C x`"),
    ],
)
def test_a_place_is_added_to_commands_that_have_none(text: str, completed: str):
    assert with_place(Text(text), "-C x").plain == completed
