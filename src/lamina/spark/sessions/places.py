"""Where schemas lie on this machine's disks, remembered so that it can be looked at without Spark.

Spark reads a folder that is gone as an empty one, and takes seconds to start: whether tables are where they were is
asked of the file system.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_FILE = "places.json"


def connection_key(remote: str | None, config: Mapping[str, str]) -> str:
    """What a way to Spark is told by: by another one, schemas of the same name may lie elsewhere."""
    return hashlib.sha256(json.dumps([remote, sorted(config.items())]).encode()).hexdigest()[:16]


def remember_place(home: Path, connection: str, schema: str, location: str) -> None:
    """Keep where a schema's tables lie, if that is a folder of this machine; elsewhere, forget what was kept."""
    folder, known = _local(location), _read(home)
    places = known.get(connection, {})
    if places.get(schema) == folder:
        return
    others = {name: place for name, place in places.items() if name != schema}
    now = {**known, connection: others if folder is None else {**others, schema: folder}}
    new = home / f"{_FILE}.{os.getpid()}"
    # What is not remembered is not looked at; nothing else depends on it.
    with suppress(OSError):
        new.touch(mode=0o600)
        new.write_text(json.dumps(now, indent=2), encoding="utf-8")
        new.replace(home / _FILE)


class LocalFolders:
    """The folders of a project's schemas, as far as they are on this machine's disks and were seen before."""

    def __init__(self, home: Path, connection: str, warehouse: str | None = None) -> None:
        """`warehouse` is where schemas lie that were never seen; without it, a folder in `home`."""
        self._home, self._connection = home, connection
        self._warehouse = Path((warehouse and _local(warehouse)) or home / "warehouse")

    def knows(self, schema: str) -> bool:
        """See `Folders.knows`."""
        return schema in self._places()

    def absent(self, schema: str, folders: Iterable[str]) -> tuple[str, ...]:
        """See `Folders.absent`."""
        root = self._places().get(schema)
        if root is None:
            return ()
        return tuple(place for folder in folders if not os.path.exists(place := f"{root}/{folder}"))  # noqa: PTH110

    def left_behind(self, schemas: Iterable[str]) -> tuple[str, ...]:
        """See `Folders.left_behind`."""
        known = self._places()
        places: list[Path] = []
        for schema in schemas:
            places.append(Path(known.get(schema) or self._warehouse / f"{schema}.db"))
            # The same schema in catalogs that hold tables of some format alone.
            others = [Path(root) for name, root in known.items() if name.endswith(f".{schema}")]
            places += others or [self._home / "iceberg" / schema]
        return tuple(str(place) for place in places if _holds_versions(place))

    def _places(self) -> dict[str, str]:
        return _read(self._home).get(self._connection, {})


def _holds_versions(root: Path) -> bool:
    try:
        return any("__v_" in place.name or place.name.startswith("_lamina_") for place in root.iterdir())
    except OSError:
        return False


def _read(home: Path) -> dict[str, dict[str, str]]:
    try:
        found = json.loads((home / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    is_sound = isinstance(found, dict) and all(isinstance(places, dict) for places in found.values())
    return found if is_sound else {}


def lies_below(location: str, folder: str) -> bool:
    """Whether a folder of this machine has such a one in it."""
    root = _local(location)
    return root is not None and (Path(root) / folder).is_dir()


def _local(location: str) -> str | None:
    """The path of a folder on a disk of this machine."""
    if location.startswith("/"):
        return location
    address = urlsplit(location)
    return location.partition(":")[2].replace("///", "/", 1) if address.scheme == "file" else None
