"""Where packages of table formats are kept, and how they get there once, however many commands start at the same time.

Spark's resolver does not bear company: of two processes that fetch the same package into one folder both may fail.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from lamina.errors import FormatMissing, LaminaError, WarehouseUnwritable, raise_all
from lamina.spark.sessions.catalog_lock import CatalogLock

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Mapping

    from lamina.app.ports.events import Emit

FOLDER = "spark.jars.ivy"
PACKAGES = "spark.jars.packages"
_PIECE = 1 << 20


def is_fetched(config: Mapping[str, str]) -> bool:
    """Whether the packages that these settings name were fetched by an earlier start, or none are named."""
    marker = _marker(config)
    return marker is None or marker.exists()


@contextmanager
def fetching(config: Mapping[str, str], command: str, emit: Emit, cancelled: threading.Event) -> Iterator[None]:
    """What starts a JVM inside has the folder of packages to itself until they are there."""
    marker = _marker(config)
    if marker is None or marker.exists():
        yield
        return
    lock = CatalogLock(marker.parent / "fetching.lock", "the download of table formats")
    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(command, emit, cancelled)
    except (OSError, WarehouseUnwritable):
        # Nobody writes into a folder that is only read.
        yield
        return
    try:
        if marker.exists():
            # Another command has fetched them meanwhile.
            lock.release()
        yield
        with suppress(OSError):
            marker.touch()
    finally:
        lock.release()


def check_jars(jars: str, known: Mapping[str, str]) -> None:
    """Raise `FormatMissing` for a fetched file that is not what was published; `jars` as Spark lists them.

    Files that are not `known` are taken as the repository gave them.
    """
    problems: list[LaminaError] = []
    for jar in jars.split(","):
        file = Path(unquote(urlsplit(jar.strip()).path))
        wanted = known.get(file.name)
        if wanted is None or not file.is_file():
            continue
        found = _sha256(file)
        if found != wanted:
            problems.append(
                FormatMissing(
                    f"`{file}` is not the file that was published: its SHA-256 is {found}, not {wanted}",
                    hint=f"remove `{file.parent.parent}`, which has all packages fetched anew; if it is the same then, "
                    "the repository or the way to it gives out another file",
                )
            )
    raise_all(problems)


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while piece := opened.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _marker(config: Mapping[str, str]) -> Path | None:
    folder, packages = config.get(FOLDER), config.get(PACKAGES)
    if not folder or not packages:
        return None
    return Path(folder) / f"fetched-{hashlib.sha256(packages.encode()).hexdigest()[:16]}"
