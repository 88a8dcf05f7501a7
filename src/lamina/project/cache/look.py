"""One look at all files of a project: whether it is what it was when it was loaded before.

Nothing is parsed here. What reads files is in `load.py`, which is imported when something has changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.errors import EmptyProject, LaminaError, Location, UnreadableFile
from lamina.project.cache.file import Dependencies, Hashes, code_key, combine, unpack
from lamina.project.cache.shapes import GRAPH
from lamina.project.discover import CONFIG_FILE, discover
from lamina.project.python.modules import ModuleFolders, capture

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lamina.graph.dag import Graph
    from lamina.project.cache.file import ProjectCache, Remembered
    from lamina.project.configuration.values import Config
    from lamina.project.discover import ProjectFile
    from lamina.project.python.modules import Capture

# Where the files named by models of kind SEED are remembered; no path looks like this.
SEED_FILES = "<seeds>"


class Look:
    """The files as they are now, and keys of their state; problems met on the way are collected."""

    def __init__(self, root: Path, config: Config, cache: ProjectCache, remembered: Remembered) -> None:
        self.root = root
        self.config = config
        self.cache = cache
        self.remembered = remembered
        self.hashes = Hashes(root, remembered.stamps, cache)
        self.problems: list[LaminaError] = []
        self.dependencies: dict[str, Dependencies] = {}
        self.code_key = code_key()
        self.files = discover(root)
        self._folders = ModuleFolders(root)
        self._captures: dict[str, Capture] = {}
        files = self.files
        modelled = (*files.sql_models, *files.python_models, *files.seeds)
        self.file_count = sum(
            map(
                len,
                (
                    modelled,
                    files.sources,
                    files.macros,
                    files.signals,
                    files.python,
                    files.audits,
                    files.functions,
                    files.tests,
                ),
            )
        )
        if not modelled:
            raise empty("put a `.sql` file into `models/` or a CSV file into `seeds/`")
        self.surroundings_key = self._key_of_surroundings()

    def known_graph(self) -> Graph | None:
        """The graph of the last load, when nothing has changed since."""
        graph_key = self.graph_key()
        if graph_key is None or graph_key != self.remembered.graph_key:
            return None
        graph: Graph | None = unpack(self.remembered.graph, GRAPH, "Graph")
        if graph is not None and self.hashes.has_learned:
            self.remembered.stamps = self.hashes.stamps()
            self.cache.save(self.remembered)
        return graph

    def _key_of_surroundings(self) -> str:
        """What every file is read against: configuration, macros, and the code that reads."""
        macros = [
            (file.path, self._safe_hash(file), self.state_of_dependencies(file.path)) for file in self.files.macros
        ]
        config = self.config
        return combine(self.code_key, sorted(config.variables.items()), sorted(config.defaults.items()), macros)

    def _safe_hash(self, file: ProjectFile) -> str:
        try:
            return self.hashes.of(file.path, file.stamp)
        except UnreadableFile as error:
            self.problems.append(error)
            return ""

    def _known_dependencies(self, path: str) -> Dependencies | None:
        return self.dependencies.get(path) or self.remembered.dependencies.get(path)

    def _dependency_key(self, path: str) -> str | None:
        """The state of the files behind a file, as remembered; None when that is not known or outdated."""
        known = self._known_dependencies(path)
        if known is None or any(self._folders.find(name) != place for name, place in known.modules):
            return None
        try:
            return self._state(known.files, known.modules)
        except UnreadableFile:
            return None

    def _state(self, files: Sequence[str], modules: Sequence[tuple[str, str | None]]) -> str:
        return combine(modules, [(file, self.hashes.of(file)) for file in files])

    def state_of_dependencies(self, path: str) -> str | None:
        """The same, found out by reading the files where any has changed; None when one cannot be read.

        What an unchanged file imports is known; what a changed one imports is not, however the change came about.
        """
        state = self._dependency_key(path)
        known = self._known_dependencies(path)
        if known is not None and state == known.state:
            self.dependencies[path] = known
            return state
        try:
            self.capture(path)
        except LaminaError as error:
            self.problems.extend(error.problems)
            return None
        return self.dependencies[path].state

    def graph_key(self) -> str | None:
        """The state of the whole project; None when some file's dependencies are not known."""
        files = self.files
        code = (*files.python_models, *files.macros, *files.signals)
        plain = (*files.sql_models, *files.seeds, *files.sources, *files.audits, *files.functions, *files.tests)
        hashed = [(file.path, self._safe_hash(file)) for file in (*code, *plain, *files.python)]
        # What lies in `python/` is only looked into for models that name something in it.
        used = [file for file in files.python if file.path in self.remembered.dependencies]
        further = [self._dependency_key(file.path) for file in (*code, *used)]
        seeds = self._dependency_key(SEED_FILES)
        if self.problems or seeds is None or None in further:
            return None
        return combine(self.surroundings_key, self._naming_key(), hashed, files.unread, further, seeds)

    def _naming_key(self) -> object:
        config = self.config
        targets = [
            (name, target.schema, target.schema_suffix, target.warehouse()) for name, target in config.targets.items()
        ]
        return config.target.name, config.strict_sources, targets

    def capture(self, path: str) -> Capture:
        if path not in self._captures:
            found = capture(self._folders, path)
            files = tuple(sorted(module.path for module in found.modules))
            state = self._state(files, found.places)
            self._captures[path] = found
            self.dependencies[path] = Dependencies(files=files, modules=found.places, state=state)
        return self._captures[path]


def empty(hint: str) -> EmptyProject:
    """The error of a project without models."""
    return EmptyProject("the project has no models and no seeds", hint=hint, location=Location(file=CONFIG_FILE))
