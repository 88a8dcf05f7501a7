"""Whether something listens where Spark is said to be; Spark itself would go on trying for minutes."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lamina.errors import SparkStartFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

_PATIENCE_SECONDS = 20
_CONNECT_PORT = 15002
_MASTER_PORT = 7077


def check_server(remote: str) -> None:
    """Fail at once when no Connect server listens at the address."""
    shown = without_secrets(remote)
    _check(
        f"no Spark Connect server answers at `{shown}`",
        [remote],
        _CONNECT_PORT,
        "check the address and that the server runs",
    )


def check_master(master: str) -> None:
    """Fail at once when the master is a standalone cluster, and none of its addresses answers."""
    scheme, _, addresses = master.partition("://")
    if scheme == "spark":
        told = f"no Spark master answers at `{master}`"
        places = [f"spark://{address}" for address in addresses.split(",")]
        _check(told, places, _MASTER_PORT, "check the address and that the cluster runs")


def without_secrets(remote: str) -> str:
    """The address without its parameters, which may hold a token."""
    return remote.split(";", 1)[0].rstrip("/")


def _check(told: str, places: Iterable[str], default_port: int, hint: str) -> None:
    problem: Exception | None = None
    for place in places:
        try:
            address = urlsplit(place)
            socket.create_connection((address.hostname or "", address.port or default_port), _PATIENCE_SECONDS).close()
        except (OSError, ValueError) as error:
            problem = error
        else:
            return
    raise SparkStartFailed(f"{told}: {problem}", hint=hint) from problem
