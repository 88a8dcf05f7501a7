# title: Spark's own text
SELECT  date_sub(a, 1) AS b FROM t;
SELECT  date_sub(a, 1) AS b FROM t;

# dialect: postgres
SELECT "Id"::INT AS id, payload->>'city' AS city FROM t WHERE name ~ '^a' AND ds >= @start_ds;
SELECT CAST(`Id` AS INT) AS id, GET_JSON_OBJECT(payload, '$.city') AS city FROM t WHERE name RLIKE '^a' AND ds >= @start_ds;

# dialect: duckdb
SELECT strftime(ts, '%Y-%m') AS month, [1, 2] AS xs, ts::DATE AS d FROM t WHERE ts >= @start_ts;
SELECT DATE_FORMAT(ts, 'yyyy-MM') AS month, ARRAY(1, 2) AS xs, CAST(ts AS DATE) AS d FROM t WHERE ts >= @start_ts;

# dialect: bigquery
SELECT SAFE_CAST(a AS INT64) AS a, DATE_TRUNC(d, MONTH) AS m, STRUCT(1 AS x) AS s FROM `p.shop.t` WHERE d < @end_date;
SELECT TRY_CAST(a AS BIGINT) AS a, TRUNC(d, 'MONTH') AS m, STRUCT(1 AS x) AS s FROM `p`.`shop`.`t` WHERE d < @end_date;

# dialect: snowflake
SELECT IFF(a > 1, 'x', 'y') AS k, NVL2(b, 1, 2) AS n FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) = 1;
SELECT k, n FROM (SELECT IF(a > 1, 'x', 'y') AS k, NVL2(b, 1, 2) AS n, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b NULLS LAST) AS _w FROM t) AS _t WHERE _w = 1;

# dialect: tsql
SELECT TOP 3 [a b], LEN(c) AS n FROM t WHERE d >= @start_ds;
SELECT `a b`, LENGTH(CAST(c AS STRING)) AS n FROM t WHERE d >= @start_ds LIMIT 3;
