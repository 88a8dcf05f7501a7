"""From the address in `lamina.yaml` to a state store."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from lamina.errors import BadConfigValue, NotYetSupported
from lamina.state.memory import MemoryStateStore
from lamina.state.postgres import PostgresBackend
from lamina.state.sqlite import SqliteBackend
from lamina.state.store import SqlStateStore

if TYPE_CHECKING:
    from pathlib import Path

    from lamina.app.ports import StateStore

_SQLITE = "sqlite:///"
_SCHEMES = ("sqlite", "postgresql", "memory")
_HINT = "write `sqlite:///<path>`, with a path relative to the project, or `postgresql://<user>@<host>/<database>`"


def open_store(url: str, base: Path) -> StateStore:
    """The store at `url`; nothing is read or made yet. Relative paths of SQLite files start at `base`."""
    scheme = url.partition(":")[0].partition("+")[0].lower()
    match scheme:
        case "memory":
            return MemoryStateStore()
        case "sqlite":
            return SqlStateStore(SqliteBackend(base / _sqlite_path(url)))
        case "postgresql" | "postgres":
            return SqlStateStore(PostgresBackend(url))
        case "duckdb" | "warehouse":
            raise NotYetSupported(
                f"state in `{scheme}` is not supported yet", hint="use `sqlite:///<path>` or `postgresql://…` for now"
            )
    # Only the scheme is shown: the rest may hold a password.
    near = get_close_matches(scheme, _SCHEMES, n=1)
    shown = f"`{scheme}` is not a state store" if "://" in url else "the address of the state store has no scheme"
    raise BadConfigValue(shown, hint=f"Did you mean `{near[0]}`? Else {_HINT}" if near else _HINT)


def _sqlite_path(url: str) -> str:
    path = url[len(_SQLITE) :] if url.lower().startswith(_SQLITE) else ""
    if not path or path == ":memory:":
        raise BadConfigValue(
            f"`{url}` names no file for the state",
            hint="write `sqlite:///<path>`, with a path relative to the project and four slashes for an absolute one",
        )
    return path
