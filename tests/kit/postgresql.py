"""A PostgreSQL server for tests: its programs, installed where that is required and allowed, and one that runs."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS_TO_INSTALL = 600
SECONDS_TO_START = 60

# Ends the server and removes its folder when its input is closed: by the tests, or by their death, however violent.
KEEPER = """
folder=$1; shift
exec 3<&0
"$@" </dev/null 3<&- & server=$!
read -r _ <&3
kill -INT "$server"
wait "$server"
rm -rf "$folder"
"""


def missing(reason: str) -> None:
    if is_required():
        pytest.fail(reason)
    pytest.skip(reason)


def is_required() -> bool:
    return "1" in {os.environ.get("LAMINA_REQUIRE_SERVICES"), os.environ.get("LAMINA_REQUIRE_FORMATS")}


def find_programs() -> Path | None:
    """The folder with `initdb` and `postgres`; distributions keep it off the PATH."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((f for f in folders if (f / "initdb").exists() and (f / "postgres").exists()), None)


def install_programs() -> Path | None:
    """Install the server where it is required and this is allowed."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0 or not is_required():
        return None
    # Side by side another worker may be installing them already; the package manager lets only one at a time.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    waiting = ["-o", f"DPkg::Lock::Timeout={SECONDS_TO_INSTALL}"]
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", "postgresql"]):
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [apt, *waiting, *arguments], env=environment, capture_output=True, timeout=SECONDS_TO_INSTALL
            )
    return find_programs()


@contextlib.contextmanager
def server(programs: Path, folder: Path) -> Iterator[str]:
    identity = unprivileged_user()
    if identity:
        os.chown(folder, identity["user"], identity["group"])
    data = folder / "data"
    log = folder / "log"
    initdb = [programs / "initdb", "-D", data, "-U", "lamina", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    made = subprocess.run(initdb, cwd=folder, capture_output=True, text=True, timeout=SECONDS_TO_START, **identity)
    if made.returncode:
        pytest.fail(f"initdb failed: {made.stderr}")
    port = free_port()
    settings = [f"unix_socket_directories={folder}", "listen_addresses=127.0.0.1", f"port={port}", "fsync=off"]
    options = [part for setting in settings for part in ("-c", setting)]
    command = ["sh", "-c", KEEPER, "keeper", folder, programs / "postgres", "-D", data, *options]
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=output, stderr=output, **identity)
    try:
        address = f"postgresql://lamina@127.0.0.1:{port}/postgres"
        wait_for(process, address, log)
        yield address
    finally:
        stop(process)


def unprivileged_user() -> dict[str, int | list[int]]:
    """PostgreSQL refuses to run as root: arguments that start a process as somebody else."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    return {}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(process: subprocess.Popen, address: str, log: Path) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end and process.poll() is None:
        try:
            psycopg.connect(address, connect_timeout=2).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"PostgreSQL did not start: {log.read_text()}")


def stop(process: subprocess.Popen) -> None:
    process.stdin.close()
    process.wait(timeout=30)
