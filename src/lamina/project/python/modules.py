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
import stat
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
    """A module with every project module it imports, directly or not.

    `places` says for every module that the code might import which file of the project it is; None for any other.
    """

    name: str
    modules: tuple[PythonModule, ...]
    places: tuple[tuple[str, str | None], ...]

    @property
    def own(self) -> PythonModule:
        """The module that the capture started from."""
        return next(module for module in self.modules if module.name == self.name)


class ModuleFolders:
    """Where the project's own modules are looked for: its root, its `python` folder, the root of its repository.

    Each module is looked for once: what is found stays so for one look at the project.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        repository = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
        self._bases = tuple(dict.fromkeys((root, root / "python", repository)))
        self._tops: dict[str, bool] = {}
        self._places: dict[str, str | None] = {}

    def find(self, name: str) -> str | None:
        """The file of a module relative to the project, as messages and records show it; None if it has none."""
        if name not in self._places:
            self._places[name] = self._find(name) if self._has(name.partition(".")[0]) else None
        return self._places[name]

    def _find(self, name: str) -> str | None:
        for base in self._bases:
            place = base.joinpath(*name.split("."))
            for candidate in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
                if stat.S_ISREG(_mode(candidate)):
                    return os.path.relpath(candidate, self.root).replace(os.sep, "/")
        return None

    def _has(self, top: str) -> bool:
        """Whether the project can have modules of this top-level name; most imports are of packages outside."""
        if is_foreign(top):
            return False
        if top not in self._tops:
            self._tops[top] = any(
                stat.S_ISREG(_mode(base / f"{top}.py")) or stat.S_ISDIR(_mode(base / top)) for base in self._bases
            )
        return self._tops[top]


def _mode(place: Path) -> int:
    """What sort of thing lies there; 0 where nothing does, or nothing that one may look at."""
    try:
        return place.stat().st_mode
    except OSError:
        return 0


def is_foreign(name: str) -> bool:
    """Whether a module is never the project's, whatever files it has."""
    top = name.partition(".")[0]
    return top == _OWN_PACKAGE or top in sys.stdlib_module_names


def module_name(path: str) -> str:
    """The name under which a file of the project is imported."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def capture(folders: ModuleFolders, path: str) -> Capture:
    """Read a file of the project and every project module it imports. Raises `BadPythonModel` or `UnreadableFile`."""
    first = module_name(path)
    found: dict[str, PythonModule] = {}
    places: dict[str, str | None] = {}
    waiting = [(first, path)]
    while waiting:
        name, file = waiting.pop()
        if name in found:
            continue
        source = decode(read_bytes(folders.root / file, file), file)
        found[name] = PythonModule(name=name, path=file, source=source)
        is_package = file.rpartition("/")[2] == "__init__.py"
        for imported in _imports(parse_python(source, file), name, is_package=is_package):
            if not is_foreign(imported) and imported not in places:
                places[imported] = folders.find(imported)
            place = places.get(imported)
            if place is not None:
                waiting.append((imported, place))
    return Capture(
        name=first, modules=tuple(found[name] for name in sorted(found)), places=tuple(sorted(places.items()))
    )


def parse_python(source: str, file: str) -> ast.Module:
    """The syntax tree of a file. Raises `BadPythonModel`."""
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
