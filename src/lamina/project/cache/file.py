"""What loading has found out, kept in one file so that unchanged files are not read again.

A file counts as unchanged when the file system says so, provided that it was already old when it was last read: a file
written twice within the clock's tick looks the same and may not be. Young files are hashed. Whatever is wrong with the
cache, or with writing it, only means that more is read.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lamina.project.cache.packed import CannotBePacked, Shapes
from lamina.project.discover import WORK_FOLDER, FileStamp
from lamina.project.text_files import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import BinaryIO

FORMAT = 3
_FILE = "project.jsonl"
# What older versions kept: reading it could run code, so it is never read.
_FORMER_FILE = "project.pickle"
_HEADER = f"lamina cache {FORMAT}"
_LARGEST = 1 << 29
# Coarser than the clock of any file system in use.
_YOUNG_NANOSECONDS = 2_000_000_000
_ROOMS = ("graph", "project", "reading", "sql", "timeline")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """Every file that went into what a file says, and where each module was found that these might import.

    `state` stands for all of it as it was then.
    """

    files: tuple[str, ...] = ()
    modules: tuple[tuple[str, str | None], ...] = ()
    state: str = ""


@dataclass(slots=True, kw_only=True)
class Remembered:
    """Everything the cache holds; its parts are unpacked only when they are needed."""

    stamps: Mapping[str, tuple[FileStamp, str]] = field(default_factory=dict)
    dependencies: Mapping[str, Dependencies] = field(default_factory=dict)
    graph_key: str = ""
    graph: bytes = b""
    entries: bytes = b""
    config_key: str = ""
    config: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    """What the cache knows of files, as it is packed."""

    stamps: Mapping[str, tuple[FileStamp, str]]
    dependencies: Mapping[str, Dependencies]


_SHAPES = Shapes((_Files, FileStamp, Dependencies), {})


class ProjectCache:
    """The cache file of one project: a line for each part, all of them data."""

    def __init__(self, root: Path) -> None:
        self._folder = root / WORK_FOLDER / "cache"

    def load(self) -> Remembered:
        """What was remembered; nothing when there is no usable cache."""
        if not (self._folder.is_symlink() or self._folder.parent.is_symlink()):
            with suppress(OSError):
                (self._folder / _FORMER_FILE).unlink(missing_ok=True)
        try:
            status = (self._folder / _FILE).stat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
                return Remembered()
            header, graph_key, config_key, files, graph, entries, config = (
                (self._folder / _FILE).read_bytes().split(b"\n")
            )
        except (OSError, ValueError):
            return Remembered()
        found: _Files | None = unpack(files, _SHAPES, "_Files")
        if header != _HEADER.encode() or found is None:
            return Remembered()
        return Remembered(
            stamps=found.stamps,
            dependencies=found.dependencies,
            graph_key=graph_key.decode("ascii", "replace"),
            graph=graph,
            entries=entries,
            config_key=config_key.decode("ascii", "replace"),
            config=config,
        )

    def save(self, remembered: Remembered) -> None:
        """Write the cache in one step, or leave the old one."""
        files = _Files(stamps=remembered.stamps, dependencies=remembered.dependencies)
        content = b"\n".join(
            (
                _HEADER.encode(),
                remembered.graph_key.encode(),
                remembered.config_key.encode(),
                pack(files, _SHAPES, "_Files"),
                remembered.graph,
                remembered.entries,
                remembered.config,
            )
        )
        with suppress(OSError), self._new_file(_FILE) as (file, place):
            file.write(content)
            file.close()
            place.replace(self._folder / _FILE)

    def file_clock(self) -> int | None:
        """The file system's time in nanoseconds; None where nothing can be written."""
        try:
            with self._new_file("clock") as (file, _):
                return os.fstat(file.fileno()).st_mtime_ns
        except OSError:
            return None

    @contextmanager
    def _new_file(self, name: str) -> Iterator[tuple[BinaryIO, Path]]:
        """A file of our own that only we may read, gone at the end unless it was moved; nothing there is followed."""
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        place = self._folder / f".{name}.{os.getpid()}"
        place.unlink(missing_ok=True)
        try:
            with os.fdopen(os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                yield file, place
        finally:
            with suppress(OSError):
                place.unlink(missing_ok=True)


class Hashes:
    """Hashes of files, computed where the stamps do not tell that nothing changed."""

    def __init__(self, root: Path, stamps: Mapping[str, tuple[FileStamp, str]], cache: ProjectCache) -> None:
        self._root = root
        self._known = stamps
        self._cache = cache
        self._clock: int | None = None
        self._seen: dict[str, tuple[FileStamp, str]] = {}
        self.has_learned = False

    def of(self, path: str, stamp: FileStamp | None = None) -> str:
        """The hash of a file's content. Raises `UnreadableFile`."""
        if path in self._seen:
            return self._seen[path][1]
        if stamp is None:
            with suppress(OSError):
                stamp = FileStamp.of((self._root / path).stat())
        known = self._known.get(path)
        if stamp is not None and known is not None and known[0] == stamp:
            self._seen[path] = known
            return known[1]
        if self._clock is None:
            self._clock = self._cache.file_clock() or 0
        found = hashlib.sha256(read_bytes(self._root / path, path)).hexdigest()
        if stamp is not None:
            self._seen[path] = (stamp, found)
            self.has_learned = self.has_learned or self._is_old(stamp)
        return found

    def stamps(self) -> dict[str, tuple[FileStamp, str]]:
        """The stamps that may be trusted next time."""
        return {
            path: found
            for path, found in self._seen.items()
            if self._known.get(path) == found or self._is_old(found[0])
        }

    def _is_old(self, stamp: FileStamp) -> bool:
        return bool(self._clock) and max(stamp.modified, stamp.changed) + _YOUNG_NANOSECONDS < (self._clock or 0)


def pack(value: object, shapes: Shapes, annotation: str) -> bytes:
    """A value of the annotated type as one line; b"" when it cannot be packed."""
    try:
        text = shapes.pack(value, annotation).encode()
    except (CannotBePacked, RecursionError):
        return b""
    return b"%08x %b" % (zlib.crc32(text), text)


def unpack(content: bytes, shapes: Shapes, annotation: str) -> Any:
    """The value of `pack`, None when it is not whole or not of this type."""
    text = content[9:]
    return shapes.unpack(text, annotation) if content[:9] == b"%08x " % zlib.crc32(text) else None


def combine(*parts: object) -> str:
    """One hash of several values whose text says all there is."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def code_key() -> str:
    """Changes with every release of Lamina or the parser, and with every edit of Lamina's own code."""
    home = Path(__file__).parents[2]
    stamps = [
        (entry.name, entry.stat().st_size, entry.stat().st_mtime_ns)
        for folder in (str(home), *_with_floors(home / room for room in _ROOMS))
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)
        if entry.name.endswith(".py")
    ]
    try:
        parser = version("sqlglot")
    except PackageNotFoundError:
        parser = ""
    return combine(FORMAT, parser, sys.version_info[:3], stamps)


def _with_floors(rooms: Iterable[Path]) -> Iterator[str]:
    return (folder for room in rooms for folder, _, _ in sorted(os.walk(room)) if not folder.endswith("__pycache__"))
