-- What the shop earned, day by day.
MODEL (
  name shop.daily_revenue,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column order_date
  ),
  start '2024-01-01'
);

SELECT
  order_date,
  COUNT(*) AS orders,
  COUNT(DISTINCT customer_id) AS customers,
  SUM(amount) AS revenue  -- in dollars
FROM shop.orders
WHERE order_date BETWEEN @start_date AND @end_date
GROUP BY order_date
