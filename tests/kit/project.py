"""A project without files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lamina.app.ports.project import ProjectSettings, ProjectSources
from lamina.graph.model import Source
from tests.kit.models import graph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.errors import LaminaError
    from lamina.graph.dag import Graph
    from lamina.graph.model import Column, Model
    from lamina.graph.names import NodeName
    from lamina.timeline.interval import Instant

SETTINGS = ProjectSettings(
    name="shop",
    mode="virtual",
    target="prod",
    schema="shop",
    unsuffixed_environment="prod",
    default_start=None,
    concurrency=1,
)


@dataclass(slots=True)
class FakeProject:
    """The `ProjectSource` port over models made by builders; `change` is what editing files would be."""

    models: tuple[Model, ...]
    seeds: dict[str, str] = field(default_factory=dict)
    declared: dict[NodeName, Source] = field(default_factory=dict)
    project_settings: ProjectSettings = SETTINGS
    problem: LaminaError | None = None
    graphs_read: int = 0
    environ: dict[str, str] = field(default_factory=dict)

    def settings(self) -> ProjectSettings:
        return self.project_settings

    def environment(self) -> dict[str, str]:
        return self.environ

    def graph(self, now: Instant) -> Graph:
        self.graphs_read += 1
        if self.problem is not None:
            raise self.problem
        return graph(*self.models)

    def seed_text(self, path: str) -> str:
        return self.seeds[path]

    def sources(self, now: Instant) -> ProjectSources:
        read = graph(*self.models).sources
        return ProjectSources(
            read=tuple(self.declared.get(name, source) for name, source in read.items()),
            declared=tuple(self.declared.values()),
        )

    def write_columns(
        self, columns: Mapping[NodeName, tuple[Column, ...]], *, is_dry: bool
    ) -> dict[NodeName, str | LaminaError]:
        if not is_dry:
            for name, found in columns.items():
                self.declared[name] = Source(name=name, columns=found, is_declared=True)
        return dict.fromkeys(columns, "sources/raw.yml")

    def change(self, *models: Model) -> None:
        """The files now define other models under these names, and these new ones."""
        changed = {model.name: model for model in models}
        kept = tuple(model for model in self.models if model.name not in changed)
        self.models = (*kept, *models)

    def remove(self, name: str) -> None:
        """The file of a model is deleted."""
        self.models = tuple(model for model in self.models if model.name != name)

    def configure(self, **settings: object) -> None:
        """`lamina.yaml` says something else."""
        self.project_settings = replace(self.project_settings, **settings)  # type: ignore[arg-type]
