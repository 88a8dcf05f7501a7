"""The address of a state store in `lamina.yaml` as a value; which store that is, `bootstrap` knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from lamina.errors import BadConfigValue, NotYetSupported
from lamina.near_names import near_names

if TYPE_CHECKING:
    from pathlib import Path

_SQLITE = "sqlite:///"
_SCHEMES = ("sqlite", "postgresql", "memory")
_HINT = "write `sqlite:///<path>`, with a path relative to the project, or `postgresql://<user>@<host>/<database>`"


@dataclass(frozen=True, slots=True)
class InMemory:
    """State that ends with the process."""


@dataclass(frozen=True, slots=True)
class SqliteFile:
    """State in one file."""

    path: Path


@dataclass(frozen=True, slots=True)
class PostgresDatabase:
    """State in a PostgreSQL database."""

    url: str


StateAddress: TypeAlias = InMemory | SqliteFile | PostgresDatabase


def read_address(url: str, base: Path) -> StateAddress:
    """The address that a text spells. Relative paths of SQLite files start at `base`."""
    scheme = url.partition(":")[0].partition("+")[0].lower()
    match scheme:
        case "memory":
            return InMemory()
        case "sqlite":
            return SqliteFile(base / _sqlite_path(url))
        case "postgresql" | "postgres":
            return PostgresDatabase(url)
        case "duckdb" | "warehouse":
            raise NotYetSupported(
                f"state in `{scheme}` is not supported yet", hint="use `sqlite:///<path>` or `postgresql://…` for now"
            )
    # Only the scheme is shown: the rest may hold a password.
    near = near_names(scheme, _SCHEMES)
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
