"""A project of every sort of node, and its state as a Lamina recorded it that knew only the first form of identity.

`tests/ports/stores/first_form_sqlite.sql` holds that state: `build` up to `BUILT`, then `build dev`, with these files
and this environment. It was written by the last Lamina before identity had a number.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.kit.app import Place

STORE = Path(__file__).parents[1] / "ports" / "stores" / "first_form_sqlite.sql"
STATE = "sqlite:///.lamina/state.db"
BUILT = "2024-01-04"
ENVIRON = {"SHOP_REGION": "eu", "SHOP_MARK": "it's a mark"}

FILES = {
    "lamina.yaml": """name: shop
variables:
  region: ${ENV:SHOP_REGION}
  mark: ${ENV:SHOP_MARK}
  plain: 7
defaults:
  start: 2024-01-01
targets: {prod: {}}
""",
    "models/orders.sql": """MODEL (
  name shop.orders,
  kind INCREMENTAL_BY_TIME_RANGE (time_column ds),
  audits (not_null(columns := (ds)), marked),
  cron '@daily',
  signals (is_there(mark := @mark)),
  session_properties ('spark.sql.mark' = @mark)
);
SET spark.some.mark = @mark;
SELECT ds, @lowered(x) AS x FROM raw.orders WHERE ds BETWEEN @start_ds AND @end_ds
""",
    "models/totals.sql": """MODEL (name shop.totals, kind FULL, owner ann);
SELECT ds, x, @mark AS mark FROM shop.orders /* all of them */ WHERE x <> @region
""",
    "models/often.sql": """MODEL (name shop.often, kind FULL);
SELECT ds, x, @IF(@region = 'eu', 1, 2) AS r, @EVAL(@plain + 1) AS n, @IF(@execution_ds > '2024', 1, 2) AS t
FROM shop.orders
""",
    "models/shown.sql": """MODEL (name shop.shown, kind VIEW);
SELECT ds, x FROM shop.totals;
ON_VIRTUAL_UPDATE_BEGIN;
GRANT SELECT ON @this_model TO @mark;
ON_VIRTUAL_UPDATE_END;
""",
    "models/within.sql": "MODEL (name shop.within, kind EMBEDDED);\nSELECT ds, x FROM shop.orders WHERE x <> @mark\n",
    "models/joined.sql": "MODEL (name shop.joined, kind FULL);\nSELECT ds, x FROM shop.within\n",
    "models/plain.sql": "MODEL (name shop.plain, kind FULL);\nSELECT ds, x FROM raw.orders\n",
    "models/people.py": """from lamina import model

@model("shop.people", kind="FULL", columns={"ds": "string", "x": "string"})
def execute(context, start, end, execution_time, **kwargs):
    return context.table("shop.orders").withColumn("m", context.var("mark"))
""",
    "seeds/names.csv": "ds,x\n2024-01-01,a\n",
    "audits/marked.sql": "AUDIT (name marked);\nSELECT * FROM @this_model WHERE x = @mark\n",
    "macros/lowered.py": """from lamina import macro

@macro()
def lowered(evaluator, column):
    return f"lower({column.sql()})"
""",
    "signals/is_there.py": """from lamina import signal

@signal()
def is_there(batch, mark):
    return True
""",
}


def write_files(root: Path) -> None:
    """The project's folder."""
    for name, content in FILES.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)


def put_state(root: Path) -> None:
    """The recorded state, in the project's folder."""
    (root / ".lamina").mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(root / ".lamina" / "state.db") as connection:
        connection.executescript(STORE.read_text())
    connection.close()


def build_everything(place: Place) -> None:
    """What the recorded state has seen."""
    for environment in (None, "dev"):
        report = place.build(BUILT, environment)
        assert report.status in {"succeeded", "nothing_to_do"}, report.results
