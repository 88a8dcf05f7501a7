"""Making files known to the catalog as a table that models can read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lamina.app.ports.engine import ExternalTable
from lamina.app.ports.loaded import LoadRequest
from lamina.app.requests import FILE_FORMATS
from lamina.errors import EmptyProject, UsageError
from lamina.graph.formats import formats_of
from lamina.graph.names import NodeName, schema_of
from lamina.near_names import did_you_mean
from lamina.sql.names import check_catalog_name, parse_table_name

if TYPE_CHECKING:
    from lamina.app.ports.bundle import Ports
    from lamina.app.requests import RegisterRequest
    from lamina.graph.model import Column, Model

_OWN = "__"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSource:
    """A table that the catalog knows now."""

    table: ExternalTable
    columns: tuple[Column, ...]

    def to_dict(self) -> dict[str, Any]:
        """The document that `--json` prints."""
        return {
            "schema_version": 1,
            "command": "source register",
            "status": "succeeded",
            "source": {
                "name": self.table.name,
                "path": self.table.path,
                "format": self.table.format,
                "columns": [{"name": column.name, "type": column.type} for column in self.columns],
            },
        }


def register_source(ports: Ports, request: RegisterRequest) -> RegisteredSource:
    """Register files under a name that is nobody's, in a schema that is none of Lamina's."""
    models = _models(ports, request)
    name = _checked_name(request.name, _own_schemas(ports, models), models)
    if request.format not in FILE_FORMATS:
        known = ", ".join(f"`{each}`" for each in FILE_FORMATS)
        raise UsageError(
            f"files of format `{request.format}` cannot be registered",
            hint=did_you_mean(request.format, FILE_FORMATS) or f"the formats are {known}",
        )
    table = ExternalTable(name=name, path=_absolute(request.path), format=request.format, options=request.options)
    needed = {"delta"} if request.format == "delta" else set()
    ports.engine.prepare("source", formats_of(models.values()) | needed)
    return RegisteredSource(table=table, columns=ports.engine.register(table))


def _absolute(path: str) -> str:
    """A path as Spark finds it from wherever it runs; one without a scheme counts from the folder of the command."""
    return path if _SCHEME.match(path) else str(Path(path).absolute())


def _models(ports: Ports, request: RegisterRequest) -> dict[NodeName, Model]:
    try:
        return dict(ports.project.graph(request.now).models)
    except EmptyProject:
        # Tables may come before the models that read them.
        return {}


def _own_schemas(ports: Ports, models: dict[NodeName, Model]) -> set[str]:
    """Schemas that hold views of environments; what lies beside them begins with the same word."""
    loaded = ports.store.load(LoadRequest(all_environments=True, facts_of_pointers=False))
    shown = {name for revision in loaded.revisions.values() for name in revision.pointers}
    return {schema_of(name) for name in {*models, *shown}} | {ports.project.settings().schema}


def _checked_name(written: str, own: set[str], models: dict[NodeName, Model]) -> NodeName:
    parts = parse_table_name(written).parts
    if len(parts) != 2:
        raise UsageError(f"`{written}` is not a schema and a table", hint="name both, such as `raw.orders`")
    for part in parts:
        reason = check_catalog_name(part)
        if reason is not None:
            raise UsageError(f"`{written}` cannot be the name of a table: {reason}")
    name, schema = NodeName(".".join(parts)), parts[0]
    if name in models:
        raise UsageError(f"`{name}` is a model of this project", hint="choose a name that nothing in the project has")
    taken = next((each for each in own if schema == each or schema.startswith(f"{each}{_OWN}")), None)
    if taken is not None:
        raise UsageError(
            f"schema `{schema}` belongs to Lamina, which keeps what models of `{taken}` show there",
            hint=f"choose a schema of your own, such as `raw.{parts[1]}`",
        )
    return name
