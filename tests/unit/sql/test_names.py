from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import BadName
from lamina.sql.names import (
    LONGEST_SCHEMA_NAME,
    TableName,
    check_catalog_name,
    make_table_name,
    parse_table_name,
    quote,
)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("orders", ("orders",)),
        ("Shop.Orders", ("shop", "orders")),
        ("cat.shop.orders", ("cat", "shop", "orders")),
        (" `shop`.`my orders` ", ("shop", "my orders")),
        ('"Shop"."Orders"', ("shop", "orders")),
        ("`a.b`.c", ("a.b", "c")),
        ("`x``y`", ("x`y",)),
    ],
)
def test_a_table_name_is_read_in_lower_case_and_without_quotes(text: str, parts: tuple[str, ...]) -> None:
    assert parse_table_name(text).parts == parts


def test_bigquery_may_quote_a_whole_dotted_name() -> None:
    assert parse_table_name("`Project.shop.orders`", "bigquery").to_text() == "project.shop.orders"


@pytest.mark.parametrize("text", ["", "a.", ".a", "a..b", "a b", "a.b.c.d", "`a", "a.``"])
def test_what_is_not_a_table_name_is_refused(text: str) -> None:
    with pytest.raises(BadName):
        parse_table_name(text)


def test_a_missing_schema_is_filled_in_and_a_given_one_kept() -> None:
    assert parse_table_name("orders").in_schema("Shop").to_text() == "shop.orders"
    assert parse_table_name("crm.orders").in_schema("shop").to_text() == "crm.orders"
    assert parse_table_name("orders").in_schema(None).to_text() == "orders"


def test_every_part_is_quoted_for_spark() -> None:
    assert quote("shop", "my `orders`") == "`shop`.`my ``orders```"


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1), min_size=1, max_size=3))
def test_a_quoted_name_is_read_back(parts: list[str]) -> None:
    assert parse_table_name(quote(*parts)) == make_table_name(parts)


@given(st.lists(st.text("abc_1.` -", min_size=1), min_size=1, max_size=3))
def test_the_text_of_a_name_is_read_back(parts: list[str]) -> None:
    name = make_table_name(parts)
    assert parse_table_name(name.to_text()) == name


def test_names_that_the_catalog_can_hold_have_no_reason_against_them() -> None:
    assert check_catalog_name("orders_2024") is None
    assert check_catalog_name("a" * 128) is None


@pytest.mark.parametrize("part", ["", "my orders", "my-orders", "größe", "a" * 129])
def test_names_that_the_catalog_cannot_hold_come_with_the_reason(part: str) -> None:
    assert check_catalog_name(part)


def test_schemas_may_be_shorter_only() -> None:
    assert check_catalog_name("a" * 121, longest=LONGEST_SCHEMA_NAME) is not None


def test_names_are_ordered_and_printed_by_their_parts() -> None:
    assert str(TableName(schema="shop", table="orders")) == "shop.orders"
