"""The columns of external tables: asked of the catalog, written where the project declares its tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lamina.errors import LaminaError, UnknownName, raise_all
from lamina.graph.names import NodeName
from lamina.near_names import near_names
from lamina.sql.names import parse_table_name
from lamina.sql.types import normalise_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lamina.app.ports.engine import Engine
    from lamina.app.ports.project import ProjectSource, ProjectSources
    from lamina.app.requests import SourceColumnsRequest
    from lamina.graph.model import Column, Source

WRITTEN, UNCHANGED, FAILED, OUTDATED = "written", "unchanged", "failed", "outdated"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumns:
    """What became of one table; `outdated` means that it would have been written."""

    name: NodeName
    status: str
    file: str | None = None
    columns: tuple[Column, ...] = ()
    error: LaminaError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceColumnsReport:
    """Every table that was looked at."""

    tables: tuple[TableColumns, ...]
    is_check: bool = False

    @property
    def errors(self) -> tuple[LaminaError, ...]:
        """Tables that could not be looked at or written."""
        return tuple(table.error for table in self.tables if table.error is not None)

    @property
    def status(self) -> str:
        """In the contract's words."""
        found = {table.status for table in self.tables}
        if found & {FAILED, OUTDATED}:
            return "failed"
        return "succeeded" if WRITTEN in found else "nothing_to_do"

    @property
    def exit_code(self) -> int:
        """What a command should answer."""
        return 1 if self.status == "failed" else 0

    def to_dict(self) -> dict[str, Any]:
        """The document that `--json` prints."""
        return {
            "schema_version": 1,
            "command": "source columns",
            "status": self.status,
            "sources": [
                {
                    "name": table.name,
                    "status": table.status,
                    "file": table.file,
                    "columns": [
                        {"name": column.name, "type": column.type, "description": column.comment}
                        for column in table.columns
                    ],
                    "error": table.error.to_dict() if table.error else None,
                }
                for table in self.tables
            ],
        }


def source_columns(project: ProjectSource, engine: Engine, request: SourceColumnsRequest) -> SourceColumnsReport:
    """Ask the catalog for the columns of external tables and write them; a table that fails stops no other.

    Without names these are the tables that models read and whose columns are not known; with `is_all`, all of them.
    Spark starts only if there is a table to ask about.
    """
    known = project.sources(request.now)
    wanted = tuple(_chosen(known, request))
    if not wanted:
        return SourceColumnsReport(tables=(), is_check=request.is_check)
    engine.prepare("source", known.formats)
    outcomes = engine.describe([source.name for source in wanted])
    failed = {outcome.node: outcome.error for outcome in outcomes if outcome.error is not None}
    found = {
        source.name: _merged(source, outcome.columns or ())
        for source, outcome in zip(wanted, outcomes, strict=True)
        if outcome.error is None
    }
    changed = {
        source.name: found[source.name] for source in wanted if found.get(source.name) not in {None, source.columns}
    }
    answers = project.write_columns(changed, is_dry=request.is_check)
    tables: list[TableColumns] = []
    for source in wanted:
        name = source.name
        table = TableColumns(name=name, status=UNCHANGED, columns=found.get(name, ()), file=_file(source))
        answer = answers.get(name)
        error = failed.get(name) or (answer if isinstance(answer, LaminaError) else None)
        if error is not None:
            error.node, error.location = error.node or name, error.location or source.location
            error.hint = error.hint or "check the name of the table, and that this Spark may read it"
            table = replace(table, status=FAILED, error=error)
        elif isinstance(answer, str):
            table = replace(table, status=OUTDATED if request.is_check else WRITTEN, file=answer)
        tables.append(table)
    return SourceColumnsReport(tables=tuple(tables), is_check=request.is_check)


def _file(source: Source) -> str | None:
    return source.location.file if source.location else None


def _chosen(known: ProjectSources, request: SourceColumnsRequest) -> Iterator[Source]:
    by_name = {source.name: source for source in (*known.declared, *known.read)}
    if not request.names:
        yield from (source for source in known.read if request.is_all or source.columns is None)
        return
    names = [_plain(text) for text in request.names]
    raise_all(_unknown(text, by_name) for text in names if text not in by_name)
    yield from (by_name[name] for name in dict.fromkeys(names))


def _plain(text: str) -> NodeName:
    return NodeName(".".join(parse_table_name(text).parts))


def _unknown(text: str, known: dict[NodeName, Source]) -> UnknownName:
    near = near_names(text, known)
    return UnknownName(
        f"no model reads a table `{text}`, and none is declared",
        hint=f"did you mean `{near[0]}`?" if near else "name a table that models read or that `sources/` declares",
    )


def _merged(source: Source, columns: Sequence[Column]) -> tuple[Column, ...]:
    """The catalog's columns, with the descriptions that a person gave them; types as files are read."""
    said = {column.name.lower(): column.comment for column in source.columns or () if column.comment}
    return tuple(
        replace(column, type=_readable(column.type), comment=said.get(column.name.lower()) or column.comment or None)
        for column in columns
    )


def _readable(written: str | None) -> str | None:
    try:
        return normalise_type(written) if written is not None else None
    except LaminaError:
        # A type that no model can declare yet: the column is still there.
        return None
