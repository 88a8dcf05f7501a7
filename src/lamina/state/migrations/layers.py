"""Version 3: heads name the generation that theirs is laid over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import Connection


def name_what_lies_beneath(connection: Connection) -> None:
    """Make room for it; whatever is recorded holds everything itself."""
    connection.execute(text("ALTER TABLE lamina_heads ADD COLUMN beneath TEXT"))
