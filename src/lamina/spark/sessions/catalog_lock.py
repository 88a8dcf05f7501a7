"""The lock that lets one process at a time use something, mostly the embedded catalog, and says who holds it."""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from lamina.app.ports.events import Waiting
from lamina.errors import Cancelled, CatalogBusy, SparkStartFailed, WarehouseUnwritable

try:
    import fcntl
except ImportError:
    # Windows has nothing that another process could inherit and that ends with it.
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from lamina.app.ports.events import Emit

_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who has the lock."""

    command: str
    process: int
    host: str
    since: str

    def describe(self) -> str:
        """For messages: which command, where, since when."""
        return f"`lamina {self.command}` (process {self.process} on {self.host}, since {self.since})"


class CatalogLock:
    """An advisory lock on a file; the operating system gives it back when every process that has it open is gone.

    The descriptor is handed to the JVM as well: when this process is killed, the lock stays until its JVM, which may
    still be in the middle of a catalog statement, is gone too. Holding it is proof that no other process lives.
    """

    def __init__(self, path: Path, what: str = "the embedded catalog") -> None:
        self._path, self._what = path, what
        self._descriptor: int | None = None

    @property
    def descriptor(self) -> int | None:
        """The open file while the lock is held."""
        return self._descriptor

    def acquire(self, command: str, emit: Emit, cancelled: threading.Event, patience: float | None = None) -> None:
        """Wait until the lock is free, telling `emit` who holds it; `CatalogBusy` after `patience` seconds."""
        if fcntl is None:
            raise SparkStartFailed(
                "Lamina starts Spark on Linux and macOS only: here one process cannot keep others from its catalog",
                hint="run it in WSL or a container, or name a Spark Connect server as `spark.remote` in lamina.yaml",
            )
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise WarehouseUnwritable(
                f"`{self._path}` cannot be written: {error.strerror}",
                hint="make the project folder writable, or set another place for `.lamina`",
            ) from error
        try:
            self._wait(descriptor, emit, cancelled, patience)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        self._sign(command, descriptor)

    @property
    def identity(self) -> str:
        """What tells this lock from all others, that of a copy of the project's folder included."""
        if self._descriptor is None:
            raise RuntimeError("the lock is not held")
        text = os.pread(self._descriptor, 64, 0)
        if not text:
            text = uuid.uuid4().hex.encode()
            os.pwrite(self._descriptor, text, 0)
        return f"{text.decode('ascii', 'replace')}:{os.fstat(self._descriptor).st_ino}"

    def release(self) -> None:
        """Give the lock back; safe to call twice."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = None

    def _wait(self, descriptor: int, emit: Emit, cancelled: threading.Event, patience: float | None) -> None:
        begun = time.monotonic()
        told: str | None = None
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = self._holder()
                if holder != told:
                    emit(Waiting(what=self._what, holder=holder))
                    told = holder
            else:
                return
            if patience is not None and time.monotonic() - begun > patience:
                raise CatalogBusy(
                    f"{self._what} is in use by {told}",
                    hint="wait for that command to end, then run this one again",
                )
            if cancelled.wait(_POLL_SECONDS):
                raise Cancelled(f"cancelled while waiting for {self._what}")

    @property
    def _card(self) -> Path:
        return self._path.with_suffix(".json")

    def _sign(self, command: str, descriptor: int) -> None:
        """Leave a card for those who wait; that it may be missing or old only makes a message vaguer."""
        os.utime(descriptor)
        holder = Holder(
            command=command,
            process=os.getpid(),
            host=socket.gethostname(),
            since=datetime.fromtimestamp(os.fstat(descriptor).st_mtime, tz=timezone.utc).strftime("%H:%M:%SZ"),
        )
        fresh = self._card.with_suffix(f".{holder.process}.tmp")
        try:
            fresh.touch(mode=0o600)
            fresh.write_text(json.dumps(asdict(holder)), encoding="utf-8")
            fresh.replace(self._card)
        except OSError:
            return

    def _holder(self) -> str:
        try:
            return Holder(**json.loads(self._card.read_text(encoding="utf-8"))).describe()
        except (OSError, ValueError, TypeError):
            return "another process"
