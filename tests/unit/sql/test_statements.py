"""Table names in statements: what is replaced, and what only looks like a table."""

from __future__ import annotations

import pytest

from lamina.sql.statements import resolve_statement

VIEWS = {
    ("shop", "orders"): "`shop__dev`.`orders`",
    ("orders",): "`shop__dev`.`orders`",
    ("shop", "daily"): "`shop__dev`.`daily`",
    ("daily",): "`shop__dev`.`daily`",
    ("lake", "shop", "orders"): "`lake`.`shop__dev`.`orders`",
}


def resolved(text: str) -> str:
    return resolve_statement(text, VIEWS.get, {"__this": "`shop__dev`.`this`"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GRANT SELECT ON VIEW __this TO `r`", "GRANT SELECT ON VIEW `shop__dev`.`this` TO `r`"),
        ("GRANT SELECT ON orders TO r", "GRANT SELECT ON `shop__dev`.`orders` TO r"),
        ("REVOKE SELECT ON TABLE Shop.Orders FROM r", "REVOKE SELECT ON TABLE `shop__dev`.`orders` FROM r"),
        ("ANALYZE TABLE shop.orders COMPUTE STATISTICS", "ANALYZE TABLE `shop__dev`.`orders` COMPUTE STATISTICS"),
        ("COMMENT ON TABLE `shop`.`orders` IS 'shop.orders'", "COMMENT ON TABLE `shop__dev`.`orders` IS 'shop.orders'"),
        ("INSERT INTO log SELECT count(*) FROM orders", "INSERT INTO log SELECT count(*) FROM `shop__dev`.`orders`"),
        (
            "INSERT INTO log SELECT shop.orders.id, daily.id FROM shop.orders, daily WHERE orders.id > 1",
            "INSERT INTO log SELECT `shop__dev`.`orders`.id, daily.id FROM `shop__dev`.`orders`, `shop__dev`.`daily`"
            " WHERE orders.id > 1",
        ),
        (
            "INSERT INTO log SELECT o.id FROM orders AS o, shop.daily AS d JOIN daily ON d.id = o.id",
            "INSERT INTO log SELECT o.id FROM `shop__dev`.`orders` AS o, `shop__dev`.`daily` AS d"
            " JOIN `shop__dev`.`daily` ON d.id = o.id",
        ),
        ("SELECT * FROM lake . shop . orders", "SELECT * FROM `lake`.`shop__dev`.`orders`"),
        ("DROP TABLE IF EXISTS daily", "DROP TABLE IF EXISTS `shop__dev`.`daily`"),
        ("SELECT __this.id FROM __this", "SELECT `shop__dev`.`this`.id FROM `shop__dev`.`this`"),
        ("CACHE TABLE shop.orders -- shop.orders", "CACHE TABLE `shop__dev`.`orders` -- shop.orders"),
    ],
)
def test_names_of_models_become_views_of_the_environment(text: str, expected: str) -> None:
    assert resolved(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT orders, daily FROM elsewhere",
        "SELECT shop.orders FROM elsewhere AS shop",
        "WITH orders AS (SELECT 1) SELECT * FROM orders",
        "WITH a AS (SELECT 1), daily AS (SELECT 1) SELECT * FROM daily",
        "WITH orders(id) AS (SELECT 1) SELECT * FROM orders",
        "SELECT shop.orders(1)",
        "INSERT INTO log VALUES ('shop.orders', \"shop.orders\", 1.5)",
        "/* shop.orders */ SELECT 1 FROM (VALUES (1), (2)) AS t(id)",
        "",
    ],
)
def test_what_only_looks_like_a_model_stays(text: str) -> None:
    assert resolved(text) == text
