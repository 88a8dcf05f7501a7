"""Every option and argument, defined once."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lamina.app.requests import PlanRequest
from lamina.cli.present.output import Output
from lamina.cli.spelling import place_words
from lamina.errors import UsageError
from lamina.planning.inputs import Flags

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lamina.cli.invocation import Invocation


_COMMON = (
    click.option(
        "-C",
        "--project",
        "directory",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="The project's folder. Without it: this folder or the nearest parent with a lamina.yaml.",
    ),
    click.option(
        "--target",
        metavar="NAME",
        help="The target of lamina.yaml to work with. Without it: LAMINA_TARGET, then default_target.",
    ),
    click.option(
        "--execution-time",
        metavar="TS",
        help="The moment to work at, such as 2024-01-08 or 2024-01-08T06:00:00Z; now if not given.",
    ),
    click.option("--json", "is_json", is_flag=True, help="Print one JSON document instead of text."),
    click.option("--no-color", "is_plain", is_flag=True, help="Print without colour, as NO_COLOR does."),
    click.option("-v", "--verbose", "is_verbose", is_flag=True, help="Say more."),
    click.option("--debug", "is_debug", is_flag=True, help="Show where in the code an error arose."),
)
COMMON_NAMES = ("directory", "target", "execution_time", "is_json", "is_plain", "is_verbose", "is_debug")

_ENVIRONMENT = click.option(
    "--env",
    "--virtual-env",
    "environment_option",
    metavar="NAME",
    help="The environment; the target's own if not given.",
)

_SELECT = click.option(
    "--select",
    metavar="S",
    multiple=True,
    help="Only these nodes: a name or glob, tag:x, path:models/x, kind:FULL, state:modified, +x, x+; repeatable.",
)
_EXCLUDE = click.option("--exclude", metavar="S", multiple=True, help="All but these nodes; repeatable.")
_START = click.option("--start", metavar="TS", help="Where the time range begins.")
_END = click.option("--end", metavar="TS", help="Where the time range ends; a date includes that day.")
_CONCURRENCY = click.option(
    "--concurrency", metavar="N", type=click.IntRange(min=1), help="How many batches may run at once."
)
_FAIL_FAST = click.option(
    "--fail-fast", "is_fail_fast", is_flag=True, help="Start nothing new after the first failure."
)

_STALE_UPSTREAMS = click.option(
    "--include-stale-upstreams", is_flag=True, help="Add changed models above the selected ones to the selection."
)
_PROMOTION = (
    click.option("--from", "source", metavar="A", required=True, help="The environment whose pointers are copied."),
    click.option("--to", "destination", metavar="B", required=True, help="The environment that gets them."),
    _SELECT,
    _STALE_UPSTREAMS,
    click.option("--allow-partial", is_flag=True, help="Also when not everything of the environment is built."),
    click.option("--allow-gaps", is_flag=True, help="Also when a version covers less time than it should."),
)

_CHANGES = (
    _SELECT,
    _EXCLUDE,
    _START,
    _END,
    click.option(
        "--restate", metavar="MODEL", multiple=True, help="Process this model again, and what reads it; repeatable."
    ),
    click.option(
        "--reset",
        metavar="MODEL",
        multiple=True,
        help="Build this model from scratch: its history is lost. Asks first, or needs --yes; repeatable.",
    ),
    click.option("--allow-gaps", is_flag=True, help="Also when a changed model would show less history than before."),
    click.option("--forward-only", is_flag=True, help="Keep the history of changed models as it is."),
    click.option("--breaking", metavar="MODEL", multiple=True, help="Treat the change as breaking; repeatable."),
    click.option(
        "--non-breaking", metavar="MODEL", multiple=True, help="Treat the change as not breaking; repeatable."
    ),
    click.option("--effective-from", metavar="TS", help="From when on a forward-only change counts."),
    click.option("--force", is_flag=True, help="Build what is selected even if nothing changed."),
    click.option("--changes-only", is_flag=True, help="Leave out nodes whose definition did not change."),
    _STALE_UPSTREAMS,
    click.option("--skip-tests", is_flag=True, help="Do not run unit tests; this release runs none."),
    click.option("--skip-audits", is_flag=True, help="Do not run audits."),
    _CONCURRENCY,
    _FAIL_FAST,
)
_AUDITS = (_SELECT, _EXCLUDE, _START, _END, _CONCURRENCY)
_DUE = (
    _SELECT,
    _START,
    _END,
    click.option("--ignore-cron", is_flag=True, help="Also process what its schedule has not released yet."),
    _CONCURRENCY,
    _FAIL_FAST,
)


def common_options(function: Callable[..., int]) -> Callable[..., int]:
    """The options of every command; the function gets the settled `Invocation` first."""

    @click.pass_obj
    @wraps(function)
    def settled(invocation: Invocation, /, **values: Any) -> int:
        common = {name: values.pop(name) for name in COMMON_NAMES}
        invocation.settle(
            directory=common["directory"],
            target=common["target"],
            execution_time=common["execution_time"],
            output=Output(
                **{name: common[name] for name in ("is_json", "is_plain", "is_verbose", "is_debug")},
                place=place_words(common["directory"], common["target"]),
            ),
        )
        return function(invocation, **values)

    return _with(settled, _COMMON)


def environment_options(function: Callable[..., int]) -> Callable[..., int]:
    """`ENV` as an argument or an option; the function gets `environment`, which may be `None`."""
    argument = click.argument("environment_argument", metavar="[ENV]", required=False)

    @wraps(function)
    def chosen(*values: Any, environment_argument: str | None, environment_option: str | None, **others: Any) -> int:
        if environment_argument and environment_option and environment_argument != environment_option:
            raise UsageError(
                f"two environments were given: `{environment_argument}` and `{environment_option}`",
                hint="name one, either as the argument or with `--env`",
            )
        return function(*values, environment=environment_argument or environment_option, **others)

    return _with(chosen, (argument, _ENVIRONMENT))


def promotion_options(function: Callable[..., int]) -> Callable[..., int]:
    """Two environments and what to allow."""
    return _with(function, _PROMOTION)


def environment_option(function: Callable[..., int]) -> Callable[..., int]:
    """`--env` alone, for commands whose argument is something else; the function gets `environment`."""

    @wraps(function)
    def chosen(*values: Any, environment_option: str | None, **others: Any) -> int:
        return function(*values, environment=environment_option, **others)

    return _with(chosen, (_ENVIRONMENT,))


def range_options(function: Callable[..., int]) -> Callable[..., int]:
    """`--start` and `--end`."""
    return _with(function, (_START, _END))


def audit_options(function: Callable[..., int]) -> Callable[..., int]:
    """The options of `audit`."""
    return _with(function, _AUDITS)


def change_options(function: Callable[..., int]) -> Callable[..., int]:
    """The options of `plan` and `build`."""
    return _with(function, _CHANGES)


def due_options(function: Callable[..., int]) -> Callable[..., int]:
    """The options of `run`."""
    return _with(function, _DUE)


def read_request(
    command: str, invocation: Invocation, environment: str | None, values: Mapping[str, Any]
) -> PlanRequest:
    """The request that the options of `plan`, `build` or `run` spell."""
    flags = {name: values[name] for name in Flags.__dataclass_fields__ if name in values}
    return PlanRequest(
        command=command,
        now=invocation.now(),
        environment=environment,
        flags=Flags(**flags),
        concurrency=values.get("concurrency"),
        is_fail_fast=values.get("is_fail_fast", False),
        skips_audits=values.get("skip_audits", False),
    )


def examples(*lines: str) -> str:
    """The end of a help text: commands as a user would type them."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def _with(function: Callable[..., int], parameters: tuple[Callable[[Any], Any], ...]) -> Callable[..., int]:
    for parameter in reversed(parameters):
        function = parameter(function)
    return function
