"""The rows of a query."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from lamina.app.documents import SCHEMA_VERSION
from lamina.cli.present.words import count_of, printable

if TYPE_CHECKING:
    from lamina.app.ports.engine import QueryResult

_NUMBERS = ("tinyint", "smallint", "int", "integer", "bigint", "float", "double", "decimal")


def rows_document(result: QueryResult) -> dict[str, Any]:
    """Columns and rows; numbers that JSON does not have (NaN, infinities) are text."""
    return {
        "schema_version": SCHEMA_VERSION,
        "columns": [{"name": column.name, "type": column.type} for column in result.columns],
        "rows": [[_json_value(value) for value in row] for row in result.rows],
        "truncated": result.is_truncated,
    }


def rows_text(result: QueryResult) -> Table:
    """The rows as a table, numbers to the right."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in result.columns:
        is_number = (column.type or "").partition("(")[0] in _NUMBERS
        table.add_column(Text(printable(column.name)), justify="right" if is_number else "left", overflow="fold")
    for row in result.rows:
        table.add_row(*(_cell(value) for value in row))
    return table


def rows_note(result: QueryResult) -> Text:
    """How many rows there are, and whether there would be more."""
    number = len(result.rows)
    if result.is_truncated:
        return Text(f"the first {count_of(number, 'row')}; there are more: `--limit 0` fetches all", style="yellow")
    return Text(count_of(number, "row"), style="dim")


def rows_csv(result: QueryResult) -> str:
    """The rows as CSV with a header; NULL is an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in result.columns])
    writer.writerows([_csv_value(value) for value in row] for row in result.rows)
    return text.getvalue()


def _cell(value: Any) -> Text:
    if value is None:
        return Text("NULL", style="dim")
    return Text(printable(_plain(value)))


def _csv_value(value: Any) -> str:
    return "" if value is None else _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | dict):
        return json.dumps(_json_value(value), ensure_ascii=False)
    return str(value)


def _json_value(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case list() | tuple():
            return [_json_value(item) for item in value]
        case dict():
            return {str(key): _json_value(item) for key, item in value.items()}
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)
