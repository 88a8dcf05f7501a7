"""Numbered steps from one schema version to the next.

A new store is made from `tables.py` as it stands. An existing one is brought up to date by the steps it lacks, inside
the transaction that writes the new version number. A change of `tables.py` therefore comes with a higher
`SCHEMA_VERSION` and a step here, written against the tables of its time: in SQL, not with `tables.py`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.errors import StateError
from lamina.state.migrations.identities import number_identities
from lamina.state.migrations.layers import name_what_lies_beneath
from lamina.state.migrations.shapes_once import keep_shapes_once

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import Connection

MIGRATIONS: Mapping[int, Callable[[Connection], None]] = MappingProxyType(
    {2: keep_shapes_once, 3: name_what_lies_beneath, 4: number_identities}
)
"""For each schema version above 1, what makes it from the version before."""


def upgrade(
    connection: Connection, found: int, migrations: Mapping[int, Callable[[Connection], None]] = MIGRATIONS
) -> int:
    """Carry out every step above `found`, in order; answers the version reached."""
    reached = max(migrations, default=1)
    for version in range(found + 1, reached + 1):
        if version not in migrations:
            raise StateError(
                f"the state has schema version {found}, which is too old to be brought up to date",
                hint=f"open it once with an older Lamina that knows versions {found} and {version}",
            )
        migrations[version](connection)
    return reached
