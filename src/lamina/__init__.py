"""Lamina plans, builds and versions SQL and Python data pipelines on Apache Spark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from lamina.authoring import Retry, asset, check, hook, loader, macro, model, signal, task, udf
from lamina.errors import LaminaError

if TYPE_CHECKING:
    from lamina.api import Project

__version__ = "0.1.0"

__all__ = [
    "LaminaError",
    "Project",
    "Retry",
    "__version__",
    "asset",
    "check",
    "hook",
    "loader",
    "macro",
    "model",
    "signal",
    "task",
    "udf",
]


def __getattr__(name: str) -> object:
    """`Project` brings the whole application with it, so it is imported when it is first asked for."""
    if name == "Project":
        return import_module("lamina.api").Project
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
