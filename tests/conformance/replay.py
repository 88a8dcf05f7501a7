"""Histories over a file that changes: what they hold after every build, one of which is killed while it copies.

Only over Connect a command can be killed that others of the same catalog outlive.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.conformance.kills import Killer
from tests.conformance.project import rows_shown
from tests.conformance.sessions import Sessions
from tests.kit.told import tell

SCHEMA = "menus"
KINDS = {
    "by_time": ("SCD_TYPE_2_BY_TIME (unique_key id, invalidate_hard_deletes true)", "id, name, price, updated_at"),
    "appends": ("INCREMENTAL_UNMANAGED", "id, name"),
}
FIRST = [
    "1,Chicken Sandwich,10.99,2020-01-01 00:00:00",
    "2,Cheeseburger,8.99,2020-01-01 00:00:00",
    "3,French Fries,4.99,2020-01-01 00:00:00",
]
SECOND = [
    "1,Chicken Sandwich,12.99,2020-01-02 00:00:00",
    "3,French Fries,4.99,2020-01-01 00:00:00",
    "4,Milkshake,3.99,2020-01-02 00:00:00",
]


def write_files(folder: Path, sessions: Sessions) -> None:
    for name in ("models", "seeds"):
        (folder / name).mkdir(parents=True)
    (folder / "lamina.yaml").write_text(f"name: {SCHEMA}\nspark: {{{sessions.spark}}}\nconcurrency: 2\n")
    (folder / "models" / "menu.sql").write_text(
        f"MODEL (name {SCHEMA}.menu, kind SEED (path '../seeds/menu.csv'), "
        "columns (id INT, name STRING, price DOUBLE, updated_at TIMESTAMP))\n"
    )
    for table_format in sessions.formats:
        for name, (kind, columns) in KINDS.items():
            (folder / "models" / f"{name}_{table_format}.sql").write_text(
                f"MODEL (name {SCHEMA}.{name}_{table_format}, kind {kind}, table_format {table_format});\n"
                f"SELECT {columns} FROM {SCHEMA}.menu\n"
            )


def set_menu(folder: Path, rows: list[str]) -> None:
    (folder / "seeds" / "menu.csv").write_text("\n".join(["id,name,price,updated_at", *rows, ""]))


def main(place: str, sort: str, remote: str) -> None:
    folder = Path(place)
    sessions = Sessions(sort, folder, remote)
    write_files(folder, sessions)
    set_menu(folder, FIRST)
    spark = sessions.session()
    tables = [f"{name}_{table_format}" for name in KINDS for table_format in sessions.formats]
    seen: dict[str, Any] = {}

    def build(step: str, at: str) -> None:
        with sessions.project() as project:
            report = project.build(execution_time=at).to_dict()
        actions = {
            node["name"].removeprefix(f"{SCHEMA}."): [node["action"], node["replay"]] for node in report["nodes"]
        }
        seen[step] = {"status": report["status"], "actions": actions, "rows": rows_shown(spark, SCHEMA, tables)}

    build("first", "2020-01-01 11:00:00")
    set_menu(folder, SECOND)
    if remote:
        end = Killer(folder).kill("seed.decided", ["build", "--execution-time", "2020-01-02 11:00:00"])
        seen["killed"] = {"end": end, "rows": rows_shown(spark, SCHEMA, tables)}
    build("second", "2020-01-02 11:00:00")
    build("again", "2020-01-02 11:00:00")
    set_menu(folder, FIRST)
    build("back", "2020-01-03 11:00:00")
    tell(seen)
    sessions.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
