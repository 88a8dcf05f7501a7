"""The clauses of `when_matched`: what becomes of a row of the table that a new row matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from sqlglot.tokenizer_core import TokenType
from typing_extensions import assert_never

from lamina.errors import BadPropertyValue, Location
from lamina.sql.fragment import Fragment
from lamina.sql.lexed import lex
from lamina.sql.names import quote
from lamina.sql.types import header_expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamina.sql.lexed import Lexed, Span

_EXAMPLE = "write `WHEN MATCHED AND source.x > 1 THEN UPDATE SET target.a = source.a` or `… THEN DELETE`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A column of the table and the expression, over `source` and `target`, that it is set to."""

    column: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateSome:
    """The row keeps its values but for these columns."""

    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateAll:
    """The row is replaced by the new one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """The row goes."""


MergeAction: TypeAlias = UpdateSome | UpdateAll | Delete


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClause:
    """What is done with matched rows for which the condition holds; without one, with all of them."""

    condition: str | None
    action: MergeAction

    @property
    def assigned(self) -> tuple[str, ...]:
        """The columns that it sets, where it names them."""
        return tuple(each.column for each in self.action.assignments) if isinstance(self.action, UpdateSome) else ()

    @property
    def values(self) -> tuple[str, ...]:
        """What columns are set to, where it names them."""
        return tuple(each.value for each in self.action.assignments) if isinstance(self.action, UpdateSome) else ()

    @property
    def expressions(self) -> tuple[str, ...]:
        """The condition, and what columns are set to."""
        return (self.condition, *self.values) if self.condition is not None else self.values


def read_merge_clauses(
    texts: Sequence[str], location: Location | None = None, dialect: str = "spark"
) -> tuple[MergeClause, ...]:
    """Clauses `WHEN MATCHED [AND …] THEN UPDATE SET … | DELETE`, each part as written; the first that applies counts.

    Raises `BadPropertyValue` for other clauses, and for a clause that can never apply because one before it has no
    condition, which MERGE refuses as well.
    """
    clauses = tuple(_read_clause(text, location or Location(), dialect) for text in texts)
    for text, clause in zip(texts[:-1], clauses[:-1], strict=True):
        if clause.condition is None:
            raise BadPropertyValue(
                f"`{text}` has no condition, so that the clauses of `when_matched` after it never apply",
                hint="add a condition with AND, or put the clause last",
                location=location,
            )
    return clauses


def differs_when_repeated(texts: Sequence[str]) -> bool:
    """Whether a run that is done a second time may leave other rows than it left the first time.

    A new row that was added, or has taken the place of another, matches itself then. A column must be set to the new
    row's own value, or the row changes again; one that was deleted comes back. And where the table has a say in which
    of several clauses applies, another may apply than the first time, unless all of them replace the whole row.
    """
    clauses = read_merge_clauses(texts)
    if all(isinstance(clause.action, UpdateAll) for clause in clauses):
        return False
    chooses_by_target = len(clauses) > 1 and any(_names_target(clause.condition or "") for clause in clauses)
    return chooses_by_target or not all(_takes_over(clause.action) for clause in clauses)


def _takes_over(action: MergeAction) -> bool:
    """Whether the row of the table gets values of the same columns of the new row, and nothing else happens to it."""
    if isinstance(action, UpdateSome):
        return all(_words(each.value) == ["source", ".", each.column.casefold()] for each in action.assignments)
    return isinstance(action, UpdateAll)


def _names_target(text: str) -> bool:
    return "target" in _words(text)


def _words(text: str) -> list[str]:
    lexed = lex(Fragment(text=text, location=Location(), dialect="spark"))
    return [token.text.casefold() for token in lexed.tokens]


def clauses_to_spark(texts: Sequence[str], dialect: str, location: Location | None = None) -> tuple[str, ...]:
    """The same clauses in Spark's SQL, time variables still by name; raises as `read_merge_clauses` does."""
    read_merge_clauses(texts, location, dialect)
    return tuple(_to_spark(_read_clause(text, location or Location(), dialect), dialect, location) for text in texts)


def _to_spark(clause: MergeClause, dialect: str, location: Location | None) -> str:
    condition = f" AND {header_expression(clause.condition, dialect, location)}" if clause.condition else ""
    match clause.action:
        case Delete():
            action = "DELETE"
        case UpdateAll():
            action = "UPDATE SET *"
        case UpdateSome(assignments=assignments):
            values = (
                f"target.{quote(each.column)} = {header_expression(each.value, dialect, location)}"
                for each in assignments
            )
            action = f"UPDATE SET {', '.join(values)}"
        case _:
            assert_never(clause.action)
    return f"WHEN MATCHED{condition} THEN {action}"


def _read_clause(text: str, location: Location, dialect: str) -> MergeClause:
    lexed = lex(Fragment(text=text, location=location, dialect=dialect))
    words = [lexed.lexeme(index).upper() for index in range(len(lexed.tokens))]
    then = _find_then(lexed)
    if words[:2] != ["WHEN", "MATCHED"] or then is None:
        raise _unreadable(text, location)
    condition = None
    if then > 2:
        if words[2] != "AND" or then == 3:
            raise _unreadable(text, location)
        condition = lexed.sql((3, then))
    rest = words[then + 1 :]
    if rest == ["DELETE"]:
        return MergeClause(condition=condition, action=Delete())
    if rest in (["UPDATE", "SET", "*"], ["UPDATE", "*"]):
        return MergeClause(condition=condition, action=UpdateAll())
    if rest[:2] != ["UPDATE", "SET"]:
        raise _unreadable(text, location)
    parts = lexed.split((then + 3, len(words)))
    assignments = tuple(_read_assignment(lexed, part) for part in parts)
    _check_assignments(assignments, text, location)
    return MergeClause(condition=condition, action=UpdateSome(assignments=assignments))


def _find_then(lexed: Lexed) -> int | None:
    """The THEN of the clause itself, not that of a CASE."""
    cases = 0
    for index in lexed.walk((0, len(lexed.tokens))):
        kind = lexed.tokens[index].token_type
        cases += (kind == TokenType.CASE) - (kind == TokenType.END)
        if kind == TokenType.THEN and not cases:
            return index
    return None


def _read_assignment(lexed: Lexed, span: Span) -> Assignment:
    start, end = span
    sign = next((index for index in lexed.walk(span) if lexed.tokens[index].token_type == TokenType.EQ), None)
    if sign is None or sign + 1 == end:
        raise _unreadable(lexed.sql(span) if start < end else ",", lexed.fragment.location)
    left = lexed.sql((start, sign))
    names = [lexed.tokens[index].text for index in range(start, sign) if lexed.lexeme(index) != "."]
    if len(names) == 2 and names[0].lower() == "target":
        names = names[1:]
    if len(names) != 1:
        raise BadPropertyValue(
            f"`when_matched` cannot assign to `{left}`",
            hint="assign to a column of the table, as in `target.a = source.a`",
            location=lexed.fragment.location,
        )
    return Assignment(column=names[0], value=lexed.sql((sign + 1, end)))


def _check_assignments(assignments: tuple[Assignment, ...], text: str, location: Location) -> None:
    if not assignments:
        raise _unreadable(text, location)
    seen: set[str] = set()
    for assignment in assignments:
        if assignment.column.casefold() in seen:
            raise BadPropertyValue(
                f"`{text}` assigns to `{assignment.column}` twice", hint="remove one of them", location=location
            )
        seen.add(assignment.column.casefold())


def _unreadable(text: str, location: Location) -> BadPropertyValue:
    return BadPropertyValue(f"`{text}` is not a clause of `when_matched`", hint=_EXAMPLE, location=location)
