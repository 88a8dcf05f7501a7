"""What differs between two texts of a query, for people to read."""

from __future__ import annotations

from difflib import unified_diff as diff_lines

from lamina.sql.canonical import canonical_tree
from lamina.sql.lineage.outputs import is_star, leftmost_select
from lamina.sql.lineage.trace import trace_query
from lamina.sql.query import analyse_query
from lamina.sql.syntax import SPARK, parse_query

STAR = "*"


def unified_diff(old_text: str, new_text: str, name: str) -> str:
    """The lines that changed, with three lines around them; empty when nothing changed."""
    lines = diff_lines(
        old_text.splitlines(), new_text.splitlines(), fromfile=f"{name} (before)", tofile=f"{name} (now)", lineterm=""
    )
    return "\n".join(lines)


def changed_columns(old_text: str, new_text: str, dialect: str = SPARK) -> tuple[str, ...]:
    """The output columns that were added, removed or are computed differently: new ones in order, then removed ones.

    Common table expressions and subqueries are looked through where every name can be resolved; otherwise only the
    outermost expressions are compared. Columns behind a star over unknown tables count as one column named `*`.
    """
    old_lineage, new_lineage = trace_query(old_text, dialect), trace_query(new_text, dialect)
    if old_lineage is not None and new_lineage is not None:
        old = {name: source.expression for name, source in old_lineage.columns.items()}
        new = {name: source.expression for name, source in new_lineage.columns.items()}
    else:
        old, new = _projections(old_text, dialect), _projections(new_text, dialect)
    changed = [name for name, definition in new.items() if old.get(name) != definition]
    return (*changed, *(name for name in old if name not in new))


def _projections(text: str, dialect: str) -> dict[str, str]:
    """The canonical texts of the outermost projections by column name in lower case."""
    columns = analyse_query(text, dialect).output_columns
    if columns is not None:
        return {column.name.lower(): column.canonical for column in columns}
    query = parse_query(text, dialect)
    select = leftmost_select(query.tree)
    if select is None:
        return {STAR: canonical_tree(query.tree, query.text)}
    found: dict[str, str] = {}
    for projection in select.expressions:
        canonical = canonical_tree(projection.unalias(), query.text)
        name = STAR if is_star(projection) else projection.alias_or_name.lower() or canonical
        found[name] = f"{found[name]} {canonical}" if name in found else canonical
    return found
