-- One row per order that was not cancelled.
MODEL (
  name shop.orders,
  -- Rows belong to days. Each day is computed once and replaced whole when it is computed again.
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column order_date
  ),
  start '2024-01-01',
  grain order_id
);

SELECT
  o.order_id,
  o.customer_id,
  o.product_id,
  CAST(o.ordered_at AS DATE) AS order_date,
  o.quantity,
  @dollars(o.quantity * p.price_cents) AS amount,  -- in dollars; the macro is in macros/money.py
  o.quantity * p.price_cents >= @large_order * 100 AS is_large
FROM shop.stg_orders AS o
JOIN shop.products AS p
  ON p.id = o.product_id
WHERE
  o.status <> 'cancelled'
  -- Only the days that are being computed are read.
  AND o.ordered_at BETWEEN @start_ts AND @end_ts
