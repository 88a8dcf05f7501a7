"""Version 4: identities stand for earlier ones, and a store has a key for digests of values from the environment."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import Connection

_KEY_BYTES = 32


def number_identities(connection: Connection) -> None:
    """Make room for both; whatever is recorded was made in the first form, and says so by not naming one."""
    connection.execute(
        text(
            "CREATE TABLE lamina_identities (identity TEXT NOT NULL, node TEXT NOT NULL, stands_for TEXT NOT NULL, "
            "PRIMARY KEY (identity, node, stands_for))"
        )
    )
    connection.execute(text("ALTER TABLE lamina_store ADD COLUMN seal_key TEXT"))
    connection.execute(text("UPDATE lamina_store SET seal_key = :key"), {"key": secrets.token_hex(_KEY_BYTES)})
