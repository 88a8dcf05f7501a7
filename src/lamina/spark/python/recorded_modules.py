"""Python code as it was recorded, run without the files it came from.

Every set of modules lives under a name made from its content. Two versions of one file never meet, and nothing of a
project is importable by its own name from outside.
"""

from __future__ import annotations

import builtins
import hashlib
import linecache
import sys
import threading
import traceback
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle

from lamina.errors import LaminaError, Location
from lamina.spark.errors import is_failure_of_spark, translate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lamina.graph.model import PythonModule


class RecordedModules:
    """The modules of one recorded body; each is run once, when it is first imported."""

    _known: dict[str, RecordedModules] = {}  # noqa: RUF012  # a cache shared on purpose, guarded by the lock beside it
    _guard = threading.RLock()

    def __init__(self, root: str, modules: Sequence[PythonModule]) -> None:
        self._root = root
        self._sources = {module.name: module for module in modules}
        self._packages = {
            ".".join(parts[:length])
            for module in modules
            for parts in [module.name.split(".")]
            for length in range(1, len(parts))
        }
        self._loaded: dict[str, ModuleType] = {}
        self._builtins = {**vars(builtins), "__import__": self._import}

    @classmethod
    def of(cls, modules: Sequence[PythonModule]) -> RecordedModules:
        """The one loader for this content."""
        digest = hashlib.sha256()
        for module in sorted(modules, key=lambda module: module.name):
            for part in (module.name, module.path, module.source):
                digest.update(f"{len(part)}:{part}".encode())
        root = f"_lamina_{digest.hexdigest()[:16]}"
        with cls._guard:
            if root not in cls._known:
                cls._known[root] = cls(root, modules)
            return cls._known[root]

    @property
    def files(self) -> frozenset[str]:
        """The paths of the user's files, as tracebacks name them."""
        return frozenset(module.path for module in self._sources.values())

    def load(self, name: str) -> ModuleType:
        """The module, run if it was not yet."""
        with RecordedModules._guard:
            if name not in self._loaded:
                self._run(name)
            return self._loaded[name]

    def _run(self, name: str) -> None:
        parent, _, last = name.rpartition(".")
        if parent and self._knows(parent):
            self.load(parent)
        source = self._sources.get(name)
        module = ModuleType(f"{self._root}.{name}")
        is_package = name in self._packages or (source is not None and source.path.endswith("__init__.py"))
        namespace: dict[str, Any] = module.__dict__
        namespace["__builtins__"] = self._builtins
        namespace["__package__"] = module.__name__ if is_package else module.__name__.rpartition(".")[0]
        self._loaded[name] = module
        sys.modules[module.__name__] = module
        # Functions that run on executors travel by value, because the module exists in this process only.
        register: Any = cloudpickle.register_pickle_by_value
        register(module)
        if source is not None:
            namespace["__file__"] = source.path
            lines = source.source.splitlines(keepends=True)
            linecache.cache[source.path] = (len(source.source), None, lines, source.path)
            try:
                exec(compile(source.source, source.path, "exec"), namespace)
            except BaseException:
                del self._loaded[name], sys.modules[module.__name__]
                raise
        if parent in self._loaded:
            setattr(self._loaded[parent], last, module)

    def _knows(self, name: str) -> bool:
        return name in self._sources or name in self._packages

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        """What `import` does in recorded code: recorded modules first, then everything else."""
        full = self._absolute(name, globals or {}, level)
        if full is None or not self._knows(full):
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        module = self.load(full)
        if not fromlist:
            return self.load(full.split(".")[0])
        for item in fromlist:
            if self._knows(f"{full}.{item}"):
                self.load(f"{full}.{item}")
        return module

    def _absolute(self, name: str, namespace: Mapping[str, Any], level: int) -> str | None:
        if level == 0:
            return name
        package = str(namespace.get("__package__") or "").removeprefix(self._root).strip(".")
        parts = package.split(".") if package else []
        if level - 1 > len(parts):
            return None
        return ".".join([*parts[: len(parts) - level + 1], *([name] if name else [])])


def raised_by(
    error: BaseException, modules: RecordedModules, about: str, failure: type[LaminaError], hint: str
) -> LaminaError:
    """The error for an exception out of a user's code, at the last line of it that was passed."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in modules.files]
    place = Location(file=frames[-1].filename, line=frames[-1].lineno) if frames else None
    if isinstance(error, SyntaxError) and error.filename in modules.files:
        place = Location(file=error.filename, line=error.lineno)
    if isinstance(error, LaminaError):
        error.location = error.location or place
        return error
    if isinstance(error, Exception) and is_failure_of_spark(error) and not isinstance(error, OSError):
        translated = translate(error, about)
        translated.location = place
        return translated
    said = str(error).strip()
    return failure(
        f"{about} raised `{type(error).__name__}`" + (f": {said}" if said else ""), hint=hint, location=place
    )
