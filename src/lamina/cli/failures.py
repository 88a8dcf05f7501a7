"""The one place where errors become messages and exit codes."""

from __future__ import annotations

import errno
import re
import traceback
from typing import TYPE_CHECKING, Any

import click

from lamina.cli.present.output import cannot_write, finish
from lamina.cli.present.problems import problems_document, problems_text
from lamina.errors import Cancelled, LaminaError, OutputFailed, UsageError
from lamina.near_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lamina.cli.invocation import Invocation

# What a device answers that takes no more.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_QUOTED = re.compile(r"'([^']+)'")


def exit_code_of(command: Callable[[], Any], invocation: Invocation) -> int:
    """Run a command and answer its exit code; whatever it raises has been reported."""
    try:
        answer = command()
        code = answer if isinstance(answer, int) else 0
    except LaminaError as error:
        code = _report(error, invocation)
    except click.UsageError as error:
        code = _report(_usage_error(error), invocation)
    except click.ClickException as error:
        code = _report(UsageError(_sentence(error.format_message())), invocation)
    except (KeyboardInterrupt, click.Abort):
        code = _report(_interruption(), invocation)
    except BaseException as error:  # noqa: BLE001  # the outermost fence: a defect ends in a sentence and is no success
        is_full = isinstance(error, OSError) and error.errno in _FULL and error.filename is None
        code = _report(cannot_write(error) if is_full else _defect(error, invocation), invocation)
    unwritten = finish()
    return code if unwritten is None else _report(unwritten, invocation)


def _report(error: LaminaError, invocation: Invocation) -> int:
    output = invocation.output
    for problem in error.problems:
        problem.message = _hidden(problem.message, invocation)
        problem.hint = _hidden(problem.hint, invocation) if problem.hint else None
    try:
        if output.is_json and not isinstance(error, OutputFailed):
            output.document(problems_document(error))
        else:
            output.note(problems_text(error))
    except OutputFailed as unwritten:
        output.note(problems_text(error), problems_text(unwritten))
    if output.is_debug:
        output.note(_hidden(traceback.format_exc().rstrip(), invocation))
    return error.exit_code


def _hidden(text: str, invocation: Invocation) -> str:
    """The text without what the project has from the environment."""
    return invocation.services.hide_values(invocation.open_options, text)


def _interruption() -> LaminaError:
    return Cancelled(
        "the command was interrupted", hint="what was finished is recorded; the same command goes on from there"
    )


def _defect(error: BaseException, invocation: Invocation) -> LaminaError:
    log = _log_defect(invocation)
    hint = f"its details are in `{log}`; include them in a report" if log else "`--debug` shows where it arose"
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return LaminaError(f"unexpected error ({what}); this is a defect in Lamina", hint=hint)


def _log_defect(invocation: Invocation) -> Path | None:
    """Write the traceback beside the project's other logs; `None` where that is not possible."""
    try:
        folder = invocation.services.log_folder(invocation.open_options)
        if folder is None:
            return None
        moment = re.sub(r"[^0-9T]", "", invocation.services.parse_execution_time(None).isoformat())
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        log = folder / f"defect-{moment}.log"
        log.touch(mode=0o600)
        text = _hidden(traceback.format_exc(), invocation)
        log.write_text(f"lamina {' '.join(invocation.words)}\n\n{text}", encoding="utf-8")
    except (OSError, LaminaError):
        return None
    return log


def _usage_error(error: click.UsageError) -> LaminaError:
    path = error.ctx.command_path if error.ctx else "lamina"
    help_hint = f"`{path} --help` shows how it is called"
    match error:
        case click.NoSuchOption():
            return UsageError(f"`{path}` has no option `{error.option_name}`", hint=_option_hint(error, help_hint))
        case click.MissingParameter() if error.param is not None:
            return UsageError(f"`{path}` needs {_name_of(error.param)}", hint=help_hint)
        case click.BadParameter() if error.param is not None:
            return UsageError(f"{_name_of(error.param)}: {_sentence(error.message)}", hint=help_hint)
        case _:
            return UsageError(_sentence(error.format_message()), hint=help_hint)


def _option_hint(error: click.NoSuchOption, otherwise: str) -> str:
    command = error.ctx.command if error.ctx else None
    known = [name for option in command.params for name in option.opts] if command else []
    long = [name.removeprefix("--") for name in known if name.startswith("--")]
    near = did_you_mean(error.option_name.lstrip("-"), [*long, "help"], prefix="--")
    if near is not None:
        return near
    if isinstance(command, click.Group) and error.ctx is not None:
        # The command most people mean stands for all that have the option.
        for name in sorted(command.list_commands(error.ctx), key=lambda name: name != "plan"):
            below = command.get_command(error.ctx, name)
            if below and any(error.option_name in (*option.opts, *option.secondary_opts) for option in below.params):
                return f"options come after the command: `{error.ctx.command_path} {name} {error.option_name}`"
    return otherwise


def _name_of(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        return f"`{(parameter.metavar or parameter.name or '').strip('[]')}`"
    return f"`{parameter.opts[-1]}`"


def _sentence(text: str) -> str:
    """Click's words in the style of our messages."""
    plain = _QUOTED.sub(r"`\1`", text.strip()).rstrip(".")
    return plain[:1].lower() + plain[1:]
