-- Raw orders with proper types and readable names.
MODEL (
  name shop.stg_orders,
  kind VIEW        -- no data of its own: a view over the seed
);

SELECT
  CAST(id AS INT) AS order_id,
  CAST(customer AS INT) AS customer_id,
  CAST(product AS INT) AS product_id,
  CAST(quantity AS INT) AS quantity,
  CAST(ordered_at AS TIMESTAMP) AS ordered_at,  -- when the customer pressed the button, in UTC
  status
FROM shop.raw_orders
