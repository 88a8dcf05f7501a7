"""Python code of a project: found by its imports, captured as text, and run from that text.

What is captured is what runs, when a project is loaded just as when recorded code runs later: if a module is missing
from the capture, loading fails at once and not in production. Nothing stays behind in `sys.path` or `sys.modules`.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import threading
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from lamina.app.user_code import call_fenced
from lamina.errors import BadPythonModel, Location
from lamina.graph.model import PythonModule
from lamina.project.text_files import decode, read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import ModuleType

_OWN_PACKAGE = "lamina"
_LOCK = threading.RLock()
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """A module with every project module it imports, directly or not, and the packages that are not the project's."""

    name: str
    modules: tuple[PythonModule, ...]
    outside: frozenset[str]

    @property
    def own(self) -> PythonModule:
        """The module that the capture started from."""
        return next(module for module in self.modules if module.name == self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleFolders:
    """Where the project's own modules are looked for: its root, its `python` folder, the root of its repository."""

    root: Path
    bases: tuple[Path, ...]

    @classmethod
    def of(cls, root: Path) -> ModuleFolders:
        """The folders of a project."""
        repository = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
        return cls(root=root, bases=tuple(dict.fromkeys((root, root / "python", repository))))

    def find(self, name: str) -> Path | None:
        """The file of a module, if the project has it."""
        parts = name.split(".")
        if parts[0] == _OWN_PACKAGE or parts[0] in sys.stdlib_module_names:
            return None
        for base in self.bases:
            place = base.joinpath(*parts)
            for candidate in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
                if candidate.is_file():
                    return candidate
        return None

    def has(self, name: str) -> bool:
        """Whether the project has a module or package of this top-level name."""
        return any((base / f"{name}.py").is_file() or (base / name).is_dir() for base in self.bases)

    def shown(self, path: Path) -> str:
        """The path as messages and records show it, relative to the project."""
        return os.path.relpath(path, self.root).replace(os.sep, "/")


def module_name(path: str) -> str:
    """The name under which a file of the project is imported."""
    return path.removesuffix(".py").replace("/", ".")


def capture(folders: ModuleFolders, path: str) -> Capture:
    """Read a file of the project and every project module it imports. Raises `BadPythonModel` or `UnreadableFile`."""
    first = module_name(path)
    found: dict[str, PythonModule] = {}
    outside: set[str] = set()
    waiting: list[tuple[str, Path]] = [(first, folders.root / path)]
    while waiting:
        name, place = waiting.pop()
        if name in found:
            continue
        shown = folders.shown(place)
        source = decode(read_bytes(place, shown), shown)
        found[name] = PythonModule(name=name, path=shown, source=source)
        is_package = place.name == "__init__.py"
        for imported in _imports(_parse(source, shown), name, is_package=is_package):
            file = folders.find(imported)
            if file is not None:
                waiting.append((imported, file))
            else:
                outside.add(imported.partition(".")[0])
    inside = {name.partition(".")[0] for name in found}
    return Capture(
        name=first,
        modules=tuple(found[name] for name in sorted(found)),
        outside=frozenset(outside - inside - set(sys.stdlib_module_names)),
    )


def _parse(source: str, file: str) -> ast.Module:
    try:
        return ast.parse(source, filename=file)
    except SyntaxError as error:
        raise BadPythonModel(
            f"`{file}` is not valid Python: {error.msg}",
            location=Location(file=file, line=error.lineno or 1, column=error.offset),
        ) from None
    except ValueError as error:
        raise BadPythonModel(f"`{file}` is not valid Python: {error}", location=Location(file=file, line=1)) from None
    except (RecursionError, MemoryError):
        # What Python's parser says when its own stack is full.
        message = f"`{file}` is nested too deep for Python"
        raise BadPythonModel(message, hint="take parts of it out", location=Location(file=file, line=1)) from None


def _imports(tree: ast.Module, name: str, *, is_package: bool) -> Iterator[str]:
    """Every module that the code might import, packages around it included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_packages(alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, name, is_package=is_package)
            if base is not None:
                yield from _with_packages(base)
                yield from (f"{base}.{alias.name}" for alias in node.names if alias.name != "*")


def _with_packages(name: str) -> Iterator[str]:
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        yield ".".join(parts[:length])


def _absolute(node: ast.ImportFrom, name: str, *, is_package: bool) -> str | None:
    if not node.level:
        return node.module
    package = name.split(".") if is_package else name.split(".")[:-1]
    kept = len(package) - (node.level - 1)
    base = package[:kept] if kept > 0 else []
    return ".".join([*base, *([node.module] if node.module else [])]) or None


def run_modules(modules: Sequence[PythonModule], names: Sequence[str]) -> tuple[ModuleType, ...]:
    """Execute captured modules from their text, each once, and return those of the given names.

    What the code prints goes to stderr, so that results on stdout stay clean. Raises `BadPythonModel` where the user's
    code fails, with its file and line.
    """
    found: list[ModuleType] = []
    with _importable(modules), redirect_stdout(sys.stderr):
        for name in names:
            try:
                found.append(_imported(name))
            except Exception as error:
                raise _failure(error, modules, name) from error
    return tuple(found)


def _imported(name: str) -> ModuleType:
    return call_fenced(lambda: importlib.import_module(name))


def call_in_modules(modules: Sequence[PythonModule], call: Callable[[], V]) -> V:
    """Call code of captured modules so that what it imports only then is found as well, and its prints go to stderr."""
    with _importable(modules), redirect_stdout(sys.stderr):
        return call_fenced(call)


def place_of_failure(error: BaseException, modules: Sequence[PythonModule]) -> Location | None:
    """The last line of captured code that an exception passed."""
    files = {module.path for module in modules}
    place: Location | None = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in files:
            place = Location(file=trace.tb_frame.f_code.co_filename, line=trace.tb_lineno)
        trace = trace.tb_next
    return place


def _failure(error: BaseException, modules: Sequence[PythonModule], name: str) -> BadPythonModel:
    own = next((module.path for module in modules if module.name == name), name)
    text = str(error).strip().split("\n", 1)[0]
    hint = None
    if isinstance(error, ModuleNotFoundError):
        hint = "install the package, or write the import where Lamina sees it: `import name` or `from name import …`"
    return BadPythonModel(
        f"`{own}` cannot be imported: {type(error).__name__}" + (f": {text}" if text else ""),
        hint=hint,
        location=place_of_failure(error, modules) or Location(file=own, line=1),
    )


class _CapturedFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds captured modules by name; packages without a file of their own are made up."""

    def __init__(self, modules: Sequence[PythonModule]) -> None:
        self._modules = {module.name: module for module in modules}
        packages = {".".join(name.split(".")[:n]) for name in self._modules for n in range(1, name.count(".") + 1)}
        self._packages = packages | {module.name for module in modules if module.path.endswith("__init__.py")}
        self.names = frozenset(self._modules) | packages

    def find_spec(
        self, fullname: str, _path: object = None, _target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.names:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=fullname in self._packages)

    def exec_module(self, module: ModuleType) -> None:
        captured = self._modules.get(module.__name__)
        if captured is None:
            return
        module.__file__ = captured.path
        # The text is the user's own code, which is what a project consists of.
        exec(compile(captured.source, captured.path, "exec", dont_inherit=True), module.__dict__)


@contextmanager
def _importable(modules: Sequence[PythonModule]) -> Iterator[None]:
    finder = _CapturedFinder(modules)
    with _LOCK:
        hidden = {name: sys.modules.pop(name) for name in finder.names if name in sys.modules}
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            for name in finder.names:
                sys.modules.pop(name, None)
            sys.modules.update(hidden)
