-- The five customers who spent most.
MODEL (
  name shop.top_customers,
  kind VIEW
);

SELECT
  customer_id,
  name,
  orders,
  lifetime_amount
FROM shop.customers
ORDER BY lifetime_amount DESC, customer_id
LIMIT 5
