"""Which tables a query reads, and which of them its column qualifiers mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from lamina.errors import SyntaxProblem
from lamina.sql.names import MOST_PARTS, TableName, make_table_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamina.errors import Location

FILE_FORMATS = frozenset(
    {"parquet", "orc", "json", "csv", "text", "avro", "xml", "delta", "iceberg", "binaryfile", "image"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReference:
    """A table that a query reads; `start` and `end` enclose its name in the text."""

    name: TableName
    start: int
    end: int
    alias: str | None = None
    is_path: bool = False
    """The name is a folder read in a file format, such as parquet.`/data/x`."""
    is_argument: bool = False
    """The table is handed to a table function, where no alias can stand."""
    has_version: bool = False
    """The reference asks for an older version of the table: `VERSION AS OF`."""

    @property
    def has_alias(self) -> bool:
        """Whether the query gives the table a name of its own."""
        return self.alias is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One word of a dotted name, in lower case, and where it stands."""

    word: str
    start: int
    end: int


@dataclass(slots=True, kw_only=True, eq=False)
class Relation:
    """Something in a FROM clause: a table, a common table expression, a subquery, or rows of a function."""

    words: tuple[str, ...]
    reference: TableReference | None = None

    def answers_to(self, words: tuple[str, ...]) -> bool:
        """Whether columns may be qualified with these words: any tail of the full name, or the alias."""
        return bool(words) and self.words[-len(words) :] == words


@dataclass(slots=True, kw_only=True, eq=False)
class Scope:
    """The relations a SELECT can name, and the scope around it."""

    parent: Scope | None = None
    relations: list[Relation] = field(default_factory=list)

    def chain(self) -> Iterator[Scope]:
        """This scope and the ones around it, from the inside out."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


@dataclass(slots=True, kw_only=True, eq=False)
class QualifiedColumn:
    """A column written with dots: the words before the last dot may name a table, or a struct."""

    parts: tuple[Part, ...]
    scope: Scope

    def find(self) -> tuple[list[Relation], int]:
        """The relations that the longest possible qualifier names, and of how many words it consists.

        Like Spark: the innermost scope that knows the qualifier wins, and in it the longest qualifier.
        """
        words = tuple(part.word for part in self.parts)
        for scope in self.scope.chain():
            for length in range(min(len(words) - 1, MOST_PARTS), 0, -1):
                found = [relation for relation in scope.relations if relation.answers_to(words[:length])]
                if found:
                    return found, length
        return [], 0


@dataclass(slots=True, kw_only=True)
class Bindings:
    """Everything in a query that names a table."""

    references: list[TableReference] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    columns: list[QualifiedColumn] = field(default_factory=list)


def bind(tree: exp.Expr, location: Location | None = None, default_schema: str | None = None) -> Bindings:
    """Find the tables and qualifiers of a query; common table expressions hide tables as they do in Spark.

    With `default_schema` a table written without one also answers to `schema.table`.
    """
    binder = _Binder(location=location, default_schema=default_schema)
    binder.walk(tree)
    binder.found.references.sort(key=lambda reference: reference.start)
    return binder.found


@dataclass(slots=True, kw_only=True)
class _Binder:
    location: Location | None
    default_schema: str | None
    found: Bindings = field(default_factory=Bindings)

    def walk(self, tree: exp.Expr) -> None:
        """Visit every node with the names that are known there; iterative, because trees can be deep."""
        waiting: list[tuple[exp.Expr, frozenset[str], Scope]] = [(tree, frozenset(), Scope())]
        while waiting:
            node, ctes, scope = waiting.pop()
            if isinstance(node, exp.Hint):
                continue
            if isinstance(node, exp.Column):
                self._add_column(node, scope)
                continue
            with_clause = node.args.get("with_")
            if with_clause is not None:
                for cte in with_clause.expressions:
                    inside = ctes | {cte.alias.lower()}
                    waiting.append((cte.this, inside if with_clause.args.get("recursive") else ctes, scope))
                    ctes = inside
            if isinstance(node, exp.Select):
                scope = Scope(parent=scope)
                for source in sources_of(node):
                    self._declare(source, ctes, scope)
            elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table) and node.alias:
                scope = Scope(parent=scope)
                self._declare(node.this, ctes, scope)
            elif isinstance(node, exp.Merge | exp.MultitableInserts):
                scope = Scope(parent=scope)
                self._declare(node.args["using" if isinstance(node, exp.Merge) else "source"], ctes, scope)
            elif is_table_argument(node):
                self._add_argument(node.expressions[0], ctes)
                continue
            for key, value in node.args.items():
                if key == "with_" or (isinstance(node, exp.Table) and isinstance(value, exp.Identifier)):
                    continue
                children = value if isinstance(value, list) else (value,)
                waiting.extend((child, ctes, scope) for child in children if isinstance(child, exp.Expr))

    def _declare(self, source: exp.Expr, ctes: frozenset[str], scope: Scope) -> None:
        alias = source.alias.lower() or None
        if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Table) and alias is None:
            self._declare(source.this, ctes, scope)
        elif isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
            self._add_table(source, alias, ctes, scope)
        elif alias is not None:
            self._add_relation(Relation(words=(alias,)), scope)
        for inner in joined_sources(source):
            self._declare(inner, ctes, scope)

    def _add_table(self, table: exp.Table, alias: str | None, ctes: frozenset[str], scope: Scope) -> None:
        parts = [self._part(identifier) for identifier in table.parts if isinstance(identifier, exp.Identifier)]
        words = tuple(part.word for part in parts)
        if (len(words) == 1 and words[0] in ctes) or len(words) > MOST_PARTS:
            self._add_relation(Relation(words=(alias,) if alias else words[-MOST_PARTS:]), scope)
            return
        name = make_table_name(words)
        reference = TableReference(
            name=name,
            start=parts[0].start,
            end=parts[-1].end,
            alias=alias,
            is_path=_is_path(table, words),
            has_version=table.args.get("version") is not None,
        )
        full = name.in_schema(self.default_schema).parts
        self.found.references.append(reference)
        self._add_relation(Relation(words=(alias,) if alias else full, reference=reference), scope)

    def _add_relation(self, relation: Relation, scope: Scope) -> None:
        scope.relations.append(relation)
        self.found.relations.append(relation)

    def _add_argument(self, column: exp.Column, ctes: frozenset[str]) -> None:
        parts = [self._part(identifier) for identifier in column.parts]
        words = tuple(part.word for part in parts)
        if len(words) > MOST_PARTS or (len(words) == 1 and words[0] in ctes):
            return
        self.found.references.append(
            TableReference(name=make_table_name(words), start=parts[0].start, end=parts[-1].end, is_argument=True)
        )

    def _add_column(self, column: exp.Column, scope: Scope) -> None:
        identifiers = column.parts
        if len(identifiers) > 1:
            qualifier = [self._part(identifier) for identifier in identifiers[:-1]]
            last = Part(word=identifiers[-1].name.lower() or "*", start=qualifier[-1].end, end=qualifier[-1].end)
            self.found.columns.append(QualifiedColumn(parts=(*qualifier, last), scope=scope))

    def _part(self, identifier: exp.Expr) -> Part:
        meta = identifier.meta
        if "start" not in meta:
            raise SyntaxProblem(
                f"`{identifier.name}` cannot be located in the query",
                hint="put the name in backticks",
                location=self.location,
            )
        return Part(word=identifier.name.lower(), start=meta["start"], end=meta["end"] + 1)


def sources_of(select: exp.Select) -> Iterator[exp.Expr]:
    """What stands in FROM, JOIN and LATERAL VIEW of a SELECT, in that order."""
    from_clause = select.args.get("from_")
    if from_clause is not None:
        yield from_clause.this
    yield from joined_sources(select)


def joined_sources(node: exp.Expr) -> Iterator[exp.Expr]:
    """What is joined to a node, inside of FROM or of parentheses."""
    for join in node.args.get("joins") or ():
        yield join.this
    yield from node.args.get("laterals") or ()


def is_table_argument(node: exp.Expr) -> bool:
    """Whether the node is `TABLE(x)`, a table handed to a table function."""
    return (
        isinstance(node, exp.Anonymous)
        and node.name.lower() == "table"
        and len(node.expressions) == 1
        and isinstance(node.expressions[0], exp.Column)
    )


def _is_path(table: exp.Table, words: tuple[str, ...]) -> bool:
    last_is_quoted = isinstance(table.this, exp.Identifier) and bool(table.this.quoted)
    return len(words) == 2 and last_is_quoted and words[0] in FILE_FORMATS and any(mark in words[1] for mark in "/:.")
