"""What loading has found out, kept in one file so that unchanged files are not read again.

A file counts as unchanged when the file system says so, provided that it was already old when it was last read: a file
written twice within the clock's tick looks the same and may not be. Young files are hashed. Whatever is wrong with the
cache, or with writing it, only means that more is read.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import sys
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lamina.project.discover import WORK_FOLDER, FileStamp
from lamina.project.text_files import read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FORMAT = 2
_FILE = "project.pickle"
# Coarser than the clock of any file system in use.
_YOUNG_NANOSECONDS = 2_000_000_000
_ROOMS = ("graph", "project", "sql", "timeline", ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """Every file that went into what a file says, and where each module was found that these might import.

    `state` stands for all of it as it was then.
    """

    files: tuple[str, ...] = ()
    modules: tuple[tuple[str, str | None], ...] = ()
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What was read from one file; `key` says from which content and in which surroundings."""

    key: str
    value: Any


@dataclass(slots=True, kw_only=True)
class Remembered:
    """Everything the cache holds; its parts are unpacked only when they are needed."""

    stamps: dict[str, tuple[FileStamp, str]] = field(default_factory=dict)
    dependencies: dict[str, Dependencies] = field(default_factory=dict)
    graph_key: str = ""
    graph: bytes = b""
    entries: bytes = b""
    config_key: str = ""
    config: bytes = b""


class ProjectCache:
    """The cache file of one project."""

    def __init__(self, root: Path) -> None:
        self._folder = root / WORK_FOLDER / "cache"

    def load(self) -> Remembered:
        """What was remembered; nothing when there is no usable cache."""
        try:
            found = pickle.loads((self._folder / _FILE).read_bytes())
        except Exception:  # noqa: BLE001  # a broken file can fail in any way, and none of them matters
            return Remembered()
        is_ours = isinstance(found, tuple) and len(found) == 2 and found[0] == FORMAT
        return found[1] if is_ours and isinstance(found[1], Remembered) else Remembered()

    def save(self, remembered: Remembered) -> None:
        """Write the cache in one step, or leave the old one."""
        temporary = self._folder / f".{_FILE}.{os.getpid()}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(pack((FORMAT, remembered)))
            temporary.replace(self._folder / _FILE)
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def file_clock(self) -> int | None:
        """The file system's time in nanoseconds; None where nothing can be written."""
        probe = self._folder / f".clock.{os.getpid()}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            probe.touch()
            return probe.stat().st_mtime_ns
        except OSError:
            return None
        finally:
            with suppress(OSError):
                probe.unlink(missing_ok=True)


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


def pack(value: object) -> bytes:
    """A value as bytes, read-only mappings included; b"" when it cannot be packed."""
    buffer = io.BytesIO()
    try:
        _Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    except (pickle.PickleError, AttributeError, RecursionError, TypeError):
        return b""
    return buffer.getvalue()


class _Pickler(pickle.Pickler):
    """Writes frozen values so that reading them back costs a tenth of what it does by default."""

    def reducer_override(self, value: object) -> Any:
        if isinstance(value, MappingProxyType):
            return _restore_mapping, ((dict(value),) if value else ())
        if is_dataclass(value) and hasattr(type(value), "__slots__") and not isinstance(value, type):
            names = _slots_of(type(value))
            return _restore_value, (type(value), tuple(getattr(value, name) for name in names))
        return NotImplemented


@cache
def _slots_of(cls: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(cls))


@cache
def _setters_of(cls: type) -> tuple[Callable[[object, object], None], ...]:
    return tuple(getattr(cls, name).__set__ for name in _slots_of(cls))


def _restore_value(cls: type, values: tuple[object, ...]) -> object:
    restored: object = object.__new__(cls)
    for setter, value in zip(_setters_of(cls), values, strict=True):
        setter(restored, value)
    return restored


def _restore_mapping(content: dict[Any, Any] | None = None) -> MappingProxyType[Any, Any]:
    return MappingProxyType(content or {})


def unpack(content: bytes) -> Any:
    """The value of `pack`, None when it cannot be read."""
    try:
        return pickle.loads(content) if content else None
    except Exception:  # noqa: BLE001  # what an older Lamina wrote can fail in any way
        return None


def combine(*parts: object) -> str:
    """One hash of several values whose text says all there is."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def code_key() -> str:
    """Changes with every release of Lamina or the parser, and with every edit of Lamina's own code."""
    home = Path(__file__).parents[1]
    stamps = [
        (entry.name, entry.stat().st_size, entry.stat().st_mtime_ns)
        for room in _ROOMS
        for entry in sorted(os.scandir(home / room), key=lambda entry: entry.name)
        if entry.name.endswith(".py")
    ]
    try:
        parser = version("sqlglot")
    except PackageNotFoundError:
        parser = ""
    return combine(FORMAT, parser, sys.version_info[:3], stamps)
