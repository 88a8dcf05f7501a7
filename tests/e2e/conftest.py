"""The command line as a program of its own, on real projects and real Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

# Each command that needs Spark starts a JVM; on a busy machine that alone can take a minute.
PATIENCE = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(PATIENCE))


def surroundings(**variables: str | None) -> dict[str, str]:
    """The environment variables of a plain terminal session; `None` removes one."""
    kept = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "FORCE_COLOR", "NO_COLOR"}}
    changed = {**kept, "PYTHONPATH": str(ROOT / "src"), **variables}
    return {name: value for name, value in changed.items() if value is not None}


def lamina(
    *words: str, cwd: Path, limit: Callable[[], None] | None = None, **variables: str | None
) -> subprocess.CompletedProcess[str]:
    """Runs `lamina` with these words in a folder and waits for it; `limit` takes something away from the process."""
    return subprocess.run(
        [sys.executable, "-m", "lamina", *words],
        cwd=cwd,
        env=surroundings(**variables),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE,
        preexec_fn=limit,
    )


@dataclass(frozen=True)
class Project:
    """A project's folder and the commands called in it."""

    folder: Path

    def lamina(
        self, *words: str, limit: Callable[[], None] | None = None, **variables: str | None
    ) -> subprocess.CompletedProcess[str]:
        return lamina(*words, cwd=self.folder, limit=limit, **variables)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A command that is not waited for."""
        return subprocess.Popen(
            [sys.executable, "-m", "lamina", *words],
            cwd=self.folder,
            env=surroundings(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def document(self, *words: str, code: int = 0) -> dict[str, Any]:
        """The document a command prints; its exit code must be as expected."""
        answer = self.lamina(*words, "--json")
        assert answer.returncode == code, answer.stdout + answer.stderr
        return json.loads(answer.stdout)

    def write(self, **texts: str) -> None:
        """Write files given as `folder__name_ending`: two underscores are a slash, the last single one a dot."""
        for name, text in texts.items():
            path, _, ending = name.replace("__", "/").rpartition("_")
            place = self.folder / f"{path}.{ending}"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project without any model."""
    found = Project(tmp_path)
    found.write(lamina_yaml="name: shop\ndefaults: {start: 2024-01-01}\n")
    return found
