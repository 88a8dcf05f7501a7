"""Makes projects of any size that look like real ones: layers, joins, windows, incremental facts and whole marts."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

_CONFIG = """name: bench
defaults: {{start: 2024-01-01, cron: "@daily"}}
variables: {{region: eu, threshold: 100}}
spark: {{master: "local[{cores}]"}}
concurrency: {concurrency}
"""

_STAGING = """MODEL (
  name staging.stg_{n},
  kind VIEW,
  description 'Cleaned rows of feed {n}',
  tags (staging, feed_{tag})
);

SELECT
  CAST(id AS BIGINT) AS id,          -- key of the feed
  CAST(customer_id AS BIGINT) AS customer_id,
  LOWER(TRIM(status)) AS status,
  CAST(amount AS DECIMAL(18, 2)) AS amount,
  CAST(quantity AS INT) AS quantity,
  COALESCE(country, 'unknown') AS country,
  CAST(event_ts AS TIMESTAMP) AS event_ts,
  CAST(event_ts AS DATE) AS ds
FROM raw.feed_{n}
WHERE NOT is_deleted AND region = @region
"""

_FACT = """MODEL (
  name facts.fct_{n},
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column ds,
    batch_size 30
  ),
  cron '@daily',
  grain id,
  tags (facts)
);

WITH events AS (
  SELECT id, customer_id, status, amount, quantity, country, ds
  FROM staging.stg_{a}
  WHERE ds BETWEEN @start_ds AND @end_ds
),
lookups AS (
  SELECT customer_id, MAX(amount) AS highest, COUNT(*) AS visits
  FROM staging.stg_{b}
  WHERE ds BETWEEN @start_ds AND @end_ds
  GROUP BY customer_id
)
SELECT
  e.id,
  e.customer_id,
  e.status,
  e.amount,
  e.amount * e.quantity AS total,
  CASE WHEN e.amount > @threshold THEN 'large' WHEN e.amount > 10 THEN 'medium' ELSE 'small' END AS size,
  l.highest,
  l.visits,
  ROW_NUMBER() OVER (PARTITION BY e.customer_id ORDER BY e.id) AS position,
  e.country,
  e.ds
FROM events AS e
LEFT JOIN lookups AS l ON e.customer_id = l.customer_id
"""

_MART = """MODEL (
  name marts.mart_{n},
  kind FULL,
  description 'Figures per customer and country',
  owner analytics
);

SELECT
  f.customer_id,
  f.country,
  SUM(f.total) AS revenue,
  SUM(CASE WHEN f.size = 'large' THEN 1 ELSE 0 END) AS large_orders,
  COUNT(DISTINCT f.id) AS orders,
  MIN(f.ds) AS first_seen,
  MAX(g.ds) AS last_seen,
  AVG(g.amount) AS average_amount
FROM facts.fct_{a} AS f
JOIN facts.fct_{b} AS g ON f.customer_id = g.customer_id AND f.ds = g.ds
GROUP BY f.customer_id, f.country
HAVING SUM(f.total) > 0
"""


def generate(folder: Path, models: int, *, seed: int = 7, cores: int = 2, concurrency: int = 4) -> None:
    """Write a project with that many models: a quarter staging, half facts, a quarter marts."""
    if folder.exists():
        shutil.rmtree(folder)
    random_numbers = random.Random(seed)  # repeatable, not secret
    staging = max(1, models // 4)
    facts = max(1, models // 2)
    marts = models - staging - facts
    (folder / "models").mkdir(parents=True)
    (folder / "lamina.yaml").write_text(_CONFIG.format(cores=cores, concurrency=concurrency))
    for number in range(staging):
        _write(folder, "staging", number, _STAGING.format(n=number, tag=number % 10))
    for number in range(facts):
        a, b = random_numbers.randrange(staging), random_numbers.randrange(staging)
        _write(folder, "facts", number, _FACT.format(n=number, a=a, b=b))
    for number in range(marts):
        a, b = random_numbers.randrange(facts), random_numbers.randrange(facts)
        _write(folder, "marts", number, _MART.format(n=number, a=a, b=b))


def _write(folder: Path, layer: str, number: int, text: str) -> None:
    path = folder / "models" / layer / f"group_{number // 100}" / f"{layer}_{number}.sql"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def generate_daily(folder: Path, models: int, *, cores: int = 2, concurrency: int = 4) -> None:
    """Write a project of small incremental models over one source table, for measuring a day's run."""
    if folder.exists():
        shutil.rmtree(folder)
    (folder / "models").mkdir(parents=True)
    (folder / "lamina.yaml").write_text(_CONFIG.format(cores=cores, concurrency=concurrency))
    for number in range(models):
        (folder / "models" / f"daily_{number}.sql").write_text(
            f"MODEL (\n  name facts.daily_{number},\n  kind INCREMENTAL_BY_TIME_RANGE (time_column ds)\n);\n\n"
            f"{daily_query(number, 'raw.events')}\n"
            "WHERE ds BETWEEN @start_date AND @end_date\nGROUP BY customer_id, ds\n"
        )


def daily_query(number: int, source: str) -> str:
    """The query of one of the small models, without its time filter."""
    return (
        f"SELECT customer_id, SUM(amount + {number}) AS total, COUNT(*) AS events, MAX(status) AS status, ds\n"
        f"FROM {source}"
    )
