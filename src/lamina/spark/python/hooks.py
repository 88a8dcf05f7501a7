"""Calling hooks: functions of the project around the batches of its models."""

from __future__ import annotations

import os
import traceback
from functools import partial
from typing import TYPE_CHECKING

from lamina.app.user_code import call_fenced
from lamina.errors import HookFailed
from lamina.graph.model import KnowsVariables
from lamina.graph.sealing import hide_in, secrets_of, with_secrets, without_values
from lamina.spark.python.recorded_modules import RecordedModules, raised_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from lamina.app.ports.engine import Hooks
    from lamina.graph.model import FunctionCall, VariableValue


class HookContext(KnowsVariables):
    """What a hook is called with first."""

    def __init__(self, session: SparkSession, model: str, hooks: Hooks, variables: Mapping[str, VariableValue]) -> None:
        super().__init__(variables)
        self.spark = session
        """The batch's own Spark session, in UTC; what a hook changes in it ends with the batch."""
        self.model = model
        """The name of the model, without an environment."""
        self.start = hooks.time.first
        """The first moment that the batch is about; None for models that are computed whole."""
        self.end = hooks.time.last
        """The last microsecond that the batch is about."""
        self.execution_time = hooks.time.execution.to_datetime()
        """The moment the command works at."""


def run_hooks(session: SparkSession, calls: tuple[FunctionCall, ...], hooks: Hooks, model: str) -> None:
    """Call functions one after the other; an exception out of one becomes an error at the user's line."""
    for call in with_secrets(calls, os.environ):
        about, code = f"hook `{call.name}` of `{model}`", call.code
        if code is None:
            raise HookFailed(f"{about} was recorded without its code", hint="build the environment again")
        modules = RecordedModules.of(code.modules)
        try:
            function = getattr(call_fenced(partial(modules.load, code.module)), code.function)
            call_fenced(partial(function, HookContext(session, model, hooks, code.variables), **call.values))
        except Exception as error:
            hint = "correct its code and build again, which records it"
            failed = raised_by(error, modules, about, HookFailed, hint)
            secrets = {f"${{SECRET:{name}}}": os.environ[name] for name in secrets_of(calls)}
            hide_in(failed, secrets)
            said = "".join(traceback.format_exception(error))
            if without_values(said, secrets) != said:
                # What is told of causes, for those who look for a fault, would tell the secret.
                raise failed from None
            raise failed from error
