"""Whether something listens where Spark is said to be; Spark itself would go on trying for minutes."""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from lamina.errors import SparkStartFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

_PATIENCE_SECONDS = 20
_CONNECT_PORT = 15002
_MASTER_PORT = 7077
_AFTER_PLACE = re.compile(r"[/;?#&]")
_PLACE = re.compile(r"(?:\[[0-9a-fA-F:.%]+\]|[\w.-]+)(?::\d+)?")
_SHORTEST_SECRET = 4


def check_server(remote: str) -> None:
    """Fail at once when no Connect server listens at the address."""
    shown = without_secrets(remote)
    _check(
        f"no Spark Connect server answers at `{shown}`",
        [shown],
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
    """Scheme, host and port of a Connect server's address: what follows may be a token, what precedes a password."""
    scheme, _, rest = remote.partition("://")
    place = _AFTER_PLACE.split(rest, maxsplit=1)[0].rpartition("@")[2]
    return f"{scheme}://{place}" if rest and _PLACE.fullmatch(place) else "sc://***"


def hide_secrets(text: str, remote: str) -> str:
    """A text about a Connect server, such as a library's own error, without what its address may hold of secrets."""
    text = text.replace(remote, without_secrets(remote))
    parts = _AFTER_PLACE.split(remote.partition("://")[2])[1:]
    values = {value for part in parts for value in (part, part.partition("=")[2])}
    userinfo = remote.partition("://")[2].rpartition("@")[0]
    values |= {userinfo, userinfo.partition(":")[2]}
    values |= {unquote(value) for value in values}
    for value in sorted((value for value in values if len(value) >= _SHORTEST_SECRET), key=len, reverse=True):
        text = text.replace(value, "***")
    return text


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
