-- Customers with what they have bought so far.
MODEL (
  name shop.customers,
  kind FULL,      -- computed anew whenever an input has changed
  grain customer_id
);

SELECT
  c.id AS customer_id,
  c.name,
  c.country,
  COUNT(o.order_id) AS orders,
  COALESCE(SUM(o.amount), 0) AS lifetime_amount,  -- in dollars
  MIN(o.order_date) AS first_order,
  MAX(o.order_date) AS last_order
FROM shop.raw_customers AS c
LEFT JOIN shop.orders AS o
  ON o.customer_id = c.id
GROUP BY c.id, c.name, c.country
