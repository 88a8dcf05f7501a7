"""Expressions in which columns are put in other words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp, parse_one

if TYPE_CHECKING:
    from collections.abc import Callable


def replace_columns(expression: str, value_of: Callable[[str], str]) -> str:
    """A Spark SQL expression over the columns of one table, each column in other words: `a` as `source.a`, say."""

    def replaced(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.Column):
            return node
        first, *fields = node.parts
        value = parse_one(value_of(first.name), dialect="spark")
        if not isinstance(value, exp.Column):
            value = exp.paren(value)
        return exp.Dot.build([value, *(field.copy() for field in fields)]) if fields else value

    return parse_one(expression, dialect="spark").transform(replaced).sql(dialect="spark")


def columns_of_expression(expression: str) -> frozenset[str]:
    """The columns that a Spark SQL expression over one table reads, in lower case."""
    return frozenset(
        column.parts[0].name.lower() for column in parse_one(expression, dialect="spark").find_all(exp.Column)
    )
