"""The project on disk: the `ProjectSource` of everything else.

What parses is imported when there is something to parse: a project that has not changed comes out of the cache.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lamina.app.ports.project import ProjectSources
from lamina.errors import LaminaError
from lamina.graph.formats import formats_of
from lamina.graph.kinds import Seed
from lamina.graph.model import SeedBody
from lamina.project.cache.file import ProjectCache, code_key, combine, pack, unpack
from lamina.project.cache.look import Look
from lamina.project.cache.shapes import CONFIG
from lamina.project.configuration.values import TARGET_VARIABLE, may_be_kept
from lamina.project.discover import CONFIG_FILE, discover
from lamina.project.text_files import decode, read_bytes
from lamina.reading.check_times import check_graph_times

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from lamina.app.ports.project import ProjectSettings
    from lamina.graph.dag import Graph
    from lamina.graph.model import Column
    from lamina.graph.names import NodeName
    from lamina.project.configuration.values import Config
    from lamina.timeline.interval import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFigures:
    """What the last load had to do."""

    files: int = 0
    read: tuple[str, ...] = ()
    """Files that were read and parsed, because they or their surroundings had changed."""
    is_whole_graph_cached: bool = False


class FileProject:
    """A project folder, for one target; files are looked at anew with every call of `graph`.

    `environ` gives `${ENV:NAME}` and `LAMINA__…`; `overrides` maps dotted keys of the configuration to values.
    """

    def __init__(
        self,
        root: Path,
        *,
        target: str | None = None,
        environ: Mapping[str, str] | None = None,
        overrides: Mapping[str, Any] | None = None,
    ) -> None:
        self._root = root
        self._target = target
        self._environ = environ or {}
        self._overrides = overrides or {}
        self._config: Config | None = None
        self._has_new_config = False
        self._cache = ProjectCache(root)
        self._remembered = self._cache.load()
        self._encodings: dict[str, str] = {}
        self.figures = LoadFigures()

    @property
    def root(self) -> Path:
        """The folder with `lamina.yaml`."""
        return self._root

    def config(self) -> Config:
        """The configuration, read once; raises everything wrong with it."""
        if self._config is None:
            self._config = self._find_config()
        return self._config

    def _find_config(self) -> Config:
        """As it was read before, where nothing but the file decides what it says."""
        content = decode(read_bytes(self._root / CONFIG_FILE, CONFIG_FILE), CONFIG_FILE)
        is_kept = not self._overrides and may_be_kept(content, self._environ)
        target = self._target or self._environ.get(TARGET_VARIABLE)
        key = combine(code_key(), content, target) if is_kept else ""
        remembered = self._remembered
        known: Config | None = None
        if is_kept and key == remembered.config_key:
            known = unpack(remembered.config, CONFIG, "Config")
        if known is not None:
            return known
        from lamina.project.configuration.read import read_config

        config = read_config(content, target=self._target, overrides=self._overrides, environ=self._environ)
        remembered.config_key, remembered.config = key, pack(config, CONFIG, "Config") if is_kept else b""
        self._has_new_config = is_kept
        return config

    def mistaken_variables(self) -> dict[str, str]:
        """Environment variables that mean nothing and look as if they should, each with what to do."""
        if not any(name.upper().startswith("LAMINA_") and name != TARGET_VARIABLE for name in self._environ):
            return {}
        from lamina.project.configuration.variables import mistaken_variables

        return mistaken_variables(self._environ, decode(read_bytes(self._root / CONFIG_FILE, CONFIG_FILE), CONFIG_FILE))

    def settings(self) -> ProjectSettings:
        """The configuration as the use cases need it."""
        return self.config().settings()

    def environment(self) -> Mapping[str, str]:
        """The variables that the project was opened with."""
        return self._environ

    def graph(self, now: Instant) -> Graph:
        """Every model, seed and source; raises everything wrong at once."""
        config = self.config()
        graph = self._graph(config)
        if config.notices:
            graph = replace(graph, warnings=(*config.notices, *graph.warnings))
        self._encodings = {
            model.body.path: model.kind.csv_settings.encoding
            for model in graph.models.values()
            if isinstance(model.body, SeedBody) and isinstance(model.kind, Seed)
        }
        check_graph_times(graph.models.values(), now)
        return graph

    def _graph(self, config: Config) -> Graph:
        self.figures = LoadFigures()
        look = Look(self._root, config, self._cache, self._remembered)
        known = look.known_graph()
        self.figures = LoadFigures(files=look.file_count, is_whole_graph_cached=known is not None)
        if known is not None:
            if self._has_new_config:
                self._cache.save(self._remembered)
                self._has_new_config = False
            return known
        from lamina.project.load import Load

        load = Load(look)
        try:
            return load.build()
        finally:
            self.figures = replace(self.figures, read=tuple(dict.fromkeys(load.read)))

    def seed_text(self, path: str) -> str:
        """The content of a seed's file, as it is but for a byte order mark."""
        content = read_bytes(self._root / path, path)
        return decode(content, path, self._encodings.get(path, "utf-8"), keep_line_ends=True)

    def sources(self, now: Instant) -> ProjectSources:
        """External tables, also those that must be declared and are not yet."""
        from lamina.project.source_files import read_source_text
        from lamina.project.sources import read_sources

        lenient = replace(self.config(), strict_sources=False)
        graph = self._graph(lenient)
        check_graph_times(graph.models.values(), now)
        declared = [
            source
            for file in discover(self._root).sources
            for source in read_sources(read_source_text(self._root, file.path), file.path)
        ]
        return ProjectSources(
            read=tuple(graph.sources.values()), declared=tuple(declared), formats=formats_of(graph.models.values())
        )

    def write_columns(
        self, columns: Mapping[NodeName, tuple[Column, ...]], *, is_dry: bool
    ) -> dict[NodeName, str | LaminaError]:
        """Declare columns of external tables where the tables are declared, or where they belong."""
        from lamina.project.source_files import file_for, read_source_text, with_columns, write_source_text
        from lamina.project.sources import read_sources

        places = {
            source.name: file.path
            for file in discover(self._root).sources
            for source in read_sources(read_source_text(self._root, file.path), file.path)
        }
        answers: dict[NodeName, str | LaminaError] = {}
        for table, found in columns.items():
            file = places.get(table) or file_for(self._root, table)
            try:
                text = with_columns(read_source_text(self._root, file), file, {table: found})
                if not is_dry:
                    write_source_text(self._root, file, text)
                answers[table] = file
            except LaminaError as error:
                answers[table] = error
        return answers
