"""Models whose names begin with a catalog: built day by day, shown in two environments, refused where they must be."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from lamina import LaminaError, Project
from tests.conformance.project import Event, set_sources
from tests.kit.connect import reader
from tests.kit.told import tell

EVENTS: list[Event] = [(day, "a", f"2024-01-{day:02d}", day) for day in range(1, 10)]
DAILY = (
    "MODEL (name store.named.daily, table_format iceberg, kind INCREMENTAL_BY_TIME_RANGE (time_column day));\n"
    "SELECT id, amount, day FROM raw.events WHERE day BETWEEN @start_date AND @end_date\n"
)
TOTAL = "MODEL (name store.named.total, kind VIEW);\nSELECT SUM(amount) AS amount FROM store.named.daily\n"
REPORT = "MODEL (name named.report, kind FULL);\nSELECT amount FROM store.named.total\n"
REFUSED = {
    "no views": "MODEL (name files.named.x, table_format iceberg, kind FULL);\nSELECT 1 AS one\n",
    "wrong format": "MODEL (name store.named.x, kind FULL);\nSELECT 1 AS one\n",
    "no catalog": "MODEL (name nowhere.named.x, kind VIEW);\nSELECT 1 AS one\n",
}


def main(place: str, remote: str) -> None:
    folder, spark = Path(place), reader(remote, "store", "files")
    models = folder / "models"
    models.mkdir(parents=True)
    (folder / "lamina.yaml").write_text(
        f"name: named\nspark: {{remote: '{remote}'}}\ndefaults: {{start: 2024-01-01}}\n"
    )
    for name, text in (("daily", DAILY), ("total", TOTAL), ("report", REPORT)):
        (models / f"{name}.sql").write_text(text)
    set_sources(spark, EVENTS)
    seen: dict[str, Any] = {}

    def build(step: str, command: str, environment: str, at: str) -> None:
        suffix = "" if environment == "prod" else f"__{environment}"
        with Project.open(folder) as project:
            report = getattr(project, command)(environment, execution_time=at).to_dict()
        shown = spark.sql(f"SELECT id, amount FROM store.named{suffix}.daily ORDER BY id").collect()
        total = spark.sql(f"SELECT (SELECT * FROM store.named{suffix}.total), * FROM named{suffix}.report").collect()
        seen[step] = {
            "status": report["status"],
            "rows": [list(row) for row in shown],
            "totals": list(total[0]),
            "errors": [node["error"] for node in report["nodes"] if node["error"]],
        }

    build("first", "build", "prod", "2024-01-03")
    build("again", "build", "prod", "2024-01-03")
    build("next", "run", "prod", "2024-01-04")
    (models / "daily.sql").write_text(DAILY.replace("id, amount,", "id, amount * 10 AS amount,"))
    build("dev", "build", "dev", "2024-01-04")
    for name, text in REFUSED.items():
        (models / "refused.sql").write_text(text)
        seen[name] = _refusal(folder)
    (models / "refused.sql").unlink()
    tell(seen)


def _refusal(folder: Path) -> list[dict[str, Any]]:
    try:
        with Project.open(folder) as project:
            report = project.build("other", execution_time="2024-01-04")
    except LaminaError as error:
        return error.errors
    return [{"code": report.status}]


if __name__ == "__main__":
    main(*sys.argv[1:])
