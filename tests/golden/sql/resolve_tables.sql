# title: qualifiers keep working
SELECT orders.* FROM shop.orders;
SELECT orders.* FROM `lake`.`orders__v1` AS `orders`;

# title: qualifiers of several parts
SELECT shop.orders.*, `shop`.Orders.id, SHOP.orders.address.city.zip FROM Shop.`ORDERS` -- from shop.orders;
SELECT `orders`.*, `orders`.id, `orders`.address.city.zip FROM `lake`.`orders__v1` AS `orders` -- from shop.orders;

# title: a comma, and a subquery in place of a table
SELECT o.id, customers.name FROM shop.orders o, shop.customers;
SELECT o.id, customers.name FROM `lake`.`orders__v1` o, (SELECT * FROM `lake`.`customers__v2` WHERE `day` < 3) AS `customers`;

# title: the same table twice
SELECT * FROM shop.orders o JOIN shop.orders p ON o.id = p.parent_id;
SELECT * FROM `lake`.`orders__v1` o JOIN `lake`.`orders__v1` p ON o.id = p.parent_id;

# title: two tables of the same name
SELECT shop.orders.id, crm.orders.* FROM shop.orders JOIN crm.orders ON shop.orders.id = crm.orders.id;
SELECT `shop__orders`.id, `crm__orders`.* FROM `lake`.`orders__v1` AS `shop__orders` JOIN `lake`.`crm_orders__v3` AS `crm__orders` ON `shop__orders`.id = `crm__orders`.id;

# title: the inner table hides the outer one of the same name
SELECT id FROM shop.orders WHERE EXISTS (SELECT 1 FROM crm.orders WHERE crm.orders.id = shop.orders.id AND orders.open);
SELECT id FROM `lake`.`orders__v1` AS `shop__orders` WHERE EXISTS (SELECT 1 FROM `lake`.`crm_orders__v3` AS `crm__orders` WHERE `crm__orders`.id = `shop__orders`.id AND `crm__orders`.open);

# title: strings, comments and other columns are left alone
SELECT 'FROM shop.orders' AS a, "shop.orders ü" AS b, shop.orders_total /* shop.orders */ FROM shop.orders;
SELECT 'FROM shop.orders' AS a, "shop.orders ü" AS b, shop.orders_total /* shop.orders */ FROM `lake`.`orders__v1` AS `orders`;

# title: a name in backticks
SELECT `my orders`.`a b` FROM shop.`my orders`;
SELECT `my orders`.`a b` FROM `lake`.`mine` AS `my orders`;

# title: a common table expression of the same name
WITH orders AS (SELECT * FROM shop.orders WHERE shop.orders.id > 1) SELECT orders.id FROM orders;
WITH orders AS (SELECT * FROM `lake`.`orders__v1` AS `shop__orders` WHERE `shop__orders`.id > 1) SELECT orders.id FROM orders;

# title: without schema
# default_schema: shop
SELECT orders.id, shop.orders.amount FROM orders JOIN crm.contacts ON contacts.id = orders.id;
SELECT orders.id, `orders`.amount FROM `lake`.`orders__v1` AS `orders` JOIN crm.contacts ON contacts.id = orders.id;

# title: common table expressions hide tables of the default schema
# default_schema: shop
WITH recent AS (SELECT * FROM orders), orders AS (SELECT 1 AS id) SELECT * FROM recent JOIN orders USING (id);
WITH recent AS (SELECT * FROM `lake`.`orders__v1` AS `orders`), orders AS (SELECT 1 AS id) SELECT * FROM recent JOIN orders USING (id);

# title: nested common table expressions
# default_schema: shop
WITH a AS (WITH orders AS (SELECT 1 AS id) SELECT * FROM orders) SELECT * FROM a JOIN orders USING (id);
WITH a AS (WITH orders AS (SELECT 1 AS id) SELECT * FROM orders) SELECT * FROM a JOIN `lake`.`orders__v1` AS `orders` USING (id);

# title: recursion
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r JOIN shop.orders ON orders.id = n) SELECT n FROM r;
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r JOIN `lake`.`orders__v1` AS `orders` ON orders.id = n) SELECT n FROM r;

# title: TABLE
TABLE shop.orders;
SELECT * FROM `lake`.`orders__v1` AS `orders`;

# title: TABLE in a set operation
TABLE shop.orders UNION ALL (TABLE shop.customers);
SELECT * FROM `lake`.`orders__v1` AS `orders` UNION ALL (SELECT * FROM (SELECT * FROM `lake`.`customers__v2` WHERE `day` < 3) AS `customers`);

# title: FROM comes first
FROM shop.orders SELECT id WHERE shop.orders.id > 1;
FROM `lake`.`orders__v1` AS `orders` SELECT id WHERE `orders`.id > 1;

# title: sampling
SELECT orders.id FROM shop.orders TABLESAMPLE (10 PERCENT) REPEATABLE (7) WHERE true;
SELECT orders.id FROM `lake`.`orders__v1` TABLESAMPLE (10 PERCENT) REPEATABLE (7) AS `orders` WHERE true;

# title: sampling with an alias
SELECT o.id FROM shop.customers TABLESAMPLE (5 ROWS) o;
SELECT o.id FROM (SELECT * FROM `lake`.`customers__v2` WHERE `day` < 3) TABLESAMPLE (5 ROWS) o;

# title: pivot
SELECT * FROM shop.orders PIVOT (sum(amount) FOR year IN (2020, 2021));
SELECT * FROM `lake`.`orders__v1` AS `orders` PIVOT (sum(amount) FOR year IN (2020, 2021));

# title: lateral views
SELECT item, orders.id FROM shop.orders LATERAL VIEW OUTER explode(shop.orders.items) v AS item;
SELECT item, orders.id FROM `lake`.`orders__v1` AS `orders` LATERAL VIEW OUTER explode(`orders`.items) v AS item;

# title: lateral joins
SELECT c.name FROM shop.orders, LATERAL (SELECT name FROM shop.customers WHERE customers.id = shop.orders.customer_id) c;
SELECT c.name FROM `lake`.`orders__v1` AS `orders`, LATERAL (SELECT name FROM (SELECT * FROM `lake`.`customers__v2` WHERE `day` < 3) AS `customers` WHERE customers.id = `orders`.customer_id) c;

# title: hints
SELECT /*+ BROADCAST(shop.orders), MERGE(c) */ c.id FROM shop.orders JOIN shop.customers c USING (id);
SELECT /*+ BROADCAST(`orders`), MERGE(c) */ c.id FROM `lake`.`orders__v1` AS `orders` JOIN (SELECT * FROM `lake`.`customers__v2` WHERE `day` < 3) c USING (id);

# title: window functions and aggregates
SELECT sum(shop.orders.amount) OVER (PARTITION BY orders.day ORDER BY shop.orders.id) AS s FROM shop.orders;
SELECT sum(`orders`.amount) OVER (PARTITION BY orders.day ORDER BY `orders`.id) AS s FROM `lake`.`orders__v1` AS `orders`;

# title: parentheses around a join
SELECT x.id FROM (shop.orders JOIN shop.customers ON shop.orders.id = shop.customers.id) x;
SELECT x.id FROM (`lake`.`orders__v1` AS `orders` JOIN (SELECT * FROM `lake`.`customers__v2` WHERE `day` < 3) AS `customers` ON `orders`.id = `customers`.id) x;

# title: subqueries everywhere
SELECT (SELECT max(shop.orders.id) FROM shop.orders) AS m FROM shop.customers WHERE id IN (SELECT id FROM crm.orders);
SELECT (SELECT max(`shop__orders`.id) FROM `lake`.`orders__v1` AS `shop__orders`) AS m FROM (SELECT * FROM `lake`.`customers__v2` WHERE `day` < 3) AS `customers` WHERE id IN (SELECT id FROM `lake`.`crm_orders__v3` AS `crm__orders`);

# title: set operations
SELECT id FROM shop.orders UNION SELECT id FROM crm.orders EXCEPT SELECT orders.id FROM shop.orders;
SELECT id FROM `lake`.`orders__v1` AS `orders` UNION SELECT id FROM `lake`.`crm_orders__v3` AS `orders` EXCEPT SELECT orders.id FROM `lake`.`orders__v1` AS `orders`;

# title: a table handed to a function
SELECT * FROM my_function(TABLE(shop.orders), 3);
SELECT * FROM my_function(TABLE(`lake`.`orders__v1`), 3);

# title: rows from nowhere
SELECT * FROM VALUES (1, 'shop.orders') AS t(id, name) JOIN shop.orders USING (id);
SELECT * FROM VALUES (1, 'shop.orders') AS t(id, name) JOIN `lake`.`orders__v1` AS `orders` USING (id);

# title: folders are not models
SELECT * FROM parquet.`/data/shop.orders` p JOIN shop.orders ON orders.id = p.id;
SELECT * FROM parquet.`/data/shop.orders` p JOIN `lake`.`orders__v1` AS `orders` ON orders.id = p.id;

# title: time variables stay
SELECT id FROM shop.orders WHERE ds BETWEEN @start_ds AND @end_ds - INTERVAL 30 DAYS;
SELECT id FROM `lake`.`orders__v1` AS `orders` WHERE ds BETWEEN @start_ds AND @end_ds - INTERVAL 30 DAYS;

# title: another dialect
# dialect: bigquery
SELECT orders.id, DATE_SUB(ds, INTERVAL 1 DAY) AS d FROM `shop.orders` WHERE ds = @start_ds;
SELECT orders.id, DATE_ADD(ds, -1) AS d FROM `lake`.`orders__v1` AS `orders` WHERE ds = @start_ds;
