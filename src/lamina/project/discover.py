"""Which files make a project."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamina.errors import Location, NoProject, UnreadableFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG_FILE = "lamina.yaml"
WORK_FOLDER = ".lamina"
_YAML = (".yml", ".yaml")
EXTERNAL_MODELS_FILES = ("external_models.yaml", "external_models.yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStamp:
    """What the file system says about a file without reading it."""

    size: int
    modified: int
    changed: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileStamp:
        return cls(size=status.st_size, modified=status.st_mtime_ns, changed=status.st_ctime_ns, inode=status.st_ino)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFile:
    """A file of the project, named relative to its root with forward slashes."""

    path: str
    stamp: FileStamp

    @property
    def stem(self) -> str:
        """The name of the file without folders and ending."""
        return self.path.rpartition("/")[2].rpartition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFiles:
    """Every file that says something about the project, each group sorted by path."""

    sql_models: tuple[ProjectFile, ...] = ()
    python_models: tuple[ProjectFile, ...] = ()
    seeds: tuple[ProjectFile, ...] = ()
    macros: tuple[ProjectFile, ...] = ()
    sources: tuple[ProjectFile, ...] = ()
    audits: tuple[ProjectFile, ...] = ()
    signals: tuple[ProjectFile, ...] = ()
    python: tuple[ProjectFile, ...] = ()
    functions: tuple[ProjectFile, ...] = ()
    tests: tuple[ProjectFile, ...] = ()
    unread: tuple[str, ...] = ()
    """Paths of what lies in folders of the project with endings that nothing in them has."""


def find_root(start: Path) -> Path:
    """The folder that holds `lamina.yaml`: this one or the nearest parent. Raises `NoProject`."""
    try:
        here = start.expanduser().resolve()
    except (OSError, RuntimeError) as error:
        raise NoProject(f"`{start}` is not a folder", hint="name a folder with `--project`") from error
    if here.is_file():
        here = here.parent
    if not here.exists():
        raise NoProject(f"folder `{start}` does not exist", hint="run `lamina init DIR` to make a project")
    for folder in (here, *here.parents):
        if (folder / CONFIG_FILE).is_file():
            return folder
    raise NoProject(
        f"neither `{start}` nor a folder above it has a `{CONFIG_FILE}`",
        hint="run `lamina init DIR` to make a project, or name its folder with `--project`",
    )


def discover(root: Path) -> ProjectFiles:
    """List the project's files; hidden ones and `__pycache__` do not count. Raises `UnreadableFile`."""
    unread: list[str] = []

    def walk(folder: str, *endings: str) -> tuple[ProjectFile, ...]:
        return tuple(_walk(root, folder, endings, unread))

    models = walk("models", ".sql", ".py")
    sources = (
        *walk("sources", *_YAML),
        *walk("external_models", *_YAML),
        *_single(root, EXTERNAL_MODELS_FILES),
    )
    return ProjectFiles(
        sql_models=tuple(file for file in models if file.path.lower().endswith(".sql")),
        python_models=tuple(file for file in models if file.path.lower().endswith(".py")),
        seeds=walk("seeds", ".csv"),
        macros=walk("macros", ".py"),
        sources=tuple(sorted(sources, key=lambda file: file.path)),
        audits=walk("audits", ".sql"),
        signals=walk("signals", ".py"),
        python=walk("python", ".py"),
        functions=walk("functions", ".sql", ".py"),
        tests=walk("tests", *_YAML),
        unread=tuple(sorted(unread)),
    )


def _walk(root: Path, folder: str, endings: tuple[str, ...], unread: list[str]) -> Iterator[ProjectFile]:
    """Files below a folder in the order of their paths; links to folders are followed once, after everything else.

    Paths of files with other endings are added to `unread`.
    """
    top = root / folder
    # Others may call a file `python`; where models are expected nothing may be in the way.
    if not os.path.lexists(top) or (top.is_file() and folder != "models"):
        return
    found: list[ProjectFile] = []
    waiting, links = [folder], list[str]()
    visited: set[str] = set()
    while waiting or links:
        current = waiting.pop() if waiting else links.pop(0)
        real = os.path.realpath(root / current)
        if real in visited:
            continue
        visited.add(real)
        for entry in sorted(_entries(root, current), key=lambda entry: entry.name):
            if entry.name.startswith(".") or entry.name == "__pycache__":
                continue
            path = f"{current}/{entry.name}"
            if _is_folder(entry):
                (links if entry.is_symlink() else waiting).append(path)
            elif entry.name.lower().endswith(endings):
                found.append(ProjectFile(path=path, stamp=_stamp(entry, path)))
            else:
                unread.append(path)
    yield from sorted(found, key=lambda file: file.path)


def _entries(root: Path, folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(root / folder) as entries:
            return list(entries)
    except OSError as error:
        raise UnreadableFile(
            f"folder `{folder}` cannot be read: {error.strerror}",
            hint="check that you may read the folder",
            location=Location(file=folder),
        ) from error


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link that leads to itself.
        return False


def _stamp(entry: os.DirEntry[str], path: str) -> FileStamp:
    try:
        status = entry.stat()
        reason = None if stat.S_ISREG(status.st_mode) else "it is no regular file"
    except OSError as error:
        reason = error.strerror
    if reason is not None:
        raise UnreadableFile(
            f"`{path}` cannot be read: {reason}",
            hint="check that the file exists and that you may read it",
            location=Location(file=path),
        )
    return FileStamp.of(status)


def _single(root: Path, names: tuple[str, ...]) -> Iterator[ProjectFile]:
    for name in names:
        if (root / name).is_file():
            yield ProjectFile(path=name, stamp=FileStamp.of((root / name).stat()))
