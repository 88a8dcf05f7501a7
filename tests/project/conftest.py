"""Projects on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from lamina.errors import LaminaError
from lamina.graph.dag import Graph
from lamina.project.files import FileProject
from lamina.timeline.interval import Instant

NOW = Instant.parse_iso("2024-03-01T00:00:00Z")


class ProjectFolder:
    """A folder that tests write files to and load."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, files: Mapping[str, str | bytes]) -> None:
        for path, content in files.items():
            place = self.root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.encode() if isinstance(content, str) else content)

    def open(self, **arguments) -> FileProject:
        return FileProject(self.root, **arguments)

    def graph(self, **arguments) -> Graph:
        return self.open(**arguments).graph(NOW)

    def problems(self, **arguments) -> list[LaminaError]:
        with pytest.raises(LaminaError) as caught:
            self.graph(**arguments)
        return list(caught.value.problems)

    def problem(self, **arguments) -> LaminaError:
        (found,) = self.problems(**arguments)
        return found


@pytest.fixture
def project(tmp_path: Path) -> Callable[[Mapping[str, str | bytes]], ProjectFolder]:
    """Makes a project from files; `lamina.yaml` is there unless it is given."""

    def make(files: Mapping[str, str | bytes]) -> ProjectFolder:
        folder = ProjectFolder(tmp_path / "shop")
        folder.write({"lamina.yaml": "name: shop\n", **files})
        return folder

    return make
