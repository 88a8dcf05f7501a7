"""External tables declared in `sources/*.yml` and `external_models.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lamina.errors import BadConfigValue, ConfigError, LaminaError, UnknownConfigKey, raise_all
from lamina.graph.model import Column, Source
from lamina.graph.names import NodeName
from lamina.near_names import near_names
from lamina.project.yaml_text import BadYaml, read_yaml
from lamina.sql.names import TableName, make_table_name, parse_table_name
from lamina.sql.types import normalise_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamina.project.yaml_places import YamlPath, YamlText

# What is said beyond name and columns is accepted here and used by those who observe or audit the table.
_KEYS = (
    "name",
    "catalog",
    "schema",
    "table",
    "tables",
    "description",
    "columns",
    "freshness",
    "audits",
    "gateway",
    "owner",
    "start",
    "tags",
)
_COLUMN_KEYS = ("name", "type", "data_type", "description")


def read_sources(content: str, file: str) -> tuple[Source, ...]:
    """The tables that one file declares: a list of entries, or a mapping of names to entries, under `sources` or not.

    Raises everything wrong with the file at once.
    """
    return tuple(source for source, _ in read_entries(content, file))


def read_entries(content: str, file: str) -> tuple[tuple[Source, YamlPath], ...]:
    """The same, each with the path of its entry in the file."""
    try:
        text = read_yaml(content, file)
    except BadYaml as error:
        raise ConfigError(error.message, hint=error.hint, location=error.location) from None
    reader = _Reader(text)
    found = tuple(reader.read())
    raise_all(reader.problems)
    return found


class _Reader:
    def __init__(self, text: YamlText) -> None:
        self._text = text
        self.problems: list[LaminaError] = []

    def read(self) -> Iterator[tuple[Source, YamlPath]]:
        value = self._text.value
        path: YamlPath = ()
        if isinstance(value, Mapping) and "sources" in value:
            value, path = value["sources"], ("sources",)
        yield from self._entries(value, path)

    def _entries(
        self, value: Any, path: YamlPath, *, inside: TableName | None = None
    ) -> Iterator[tuple[Source, YamlPath]]:
        if value is None:
            return
        if isinstance(value, list):
            for number, entry in enumerate(value):
                yield from self._entry(entry, (*path, number), None, inside)
        elif isinstance(value, Mapping):
            for name, entry in value.items():
                yield from self._entry(entry, (*path, name), str(name), inside)
        else:
            self._refuse(path, "must be a list of tables")

    def _entry(
        self, entry: Any, path: YamlPath, key: str | None, inside: TableName | None
    ) -> Iterator[tuple[Source, YamlPath]]:
        if isinstance(entry, str) and key is None:
            entry = {"name": entry}
        if entry is None and key is not None:
            entry = {}
        if not isinstance(entry, Mapping):
            self._refuse(path, "must hold `name` and `columns`")
            return
        self._check_keys(entry, path, _KEYS)
        if "tables" in entry:
            schema = str(entry.get("schema") or entry.get("name") or key or "")
            parent = TableName(catalog=_lower(entry.get("catalog")), schema=schema.lower(), table="")
            yield from self._entries(entry["tables"], (*path, "tables"), inside=parent)
            return
        name = self._name(entry, path, key, inside)
        if name is not None:
            description = entry.get("description")
            source = Source(
                name=NodeName(".".join(name.parts)),
                columns=self._columns(entry.get("columns"), (*path, "columns")),
                is_declared=True,
                description=str(description) if description is not None else None,
                location=self._text.key_location(path),
                given_audits=entry.get("audits"),
                audits_location=self._text.key_location((*path, "audits")) if "audits" in entry else None,
            )
            yield source, path

    def _name(
        self, entry: Mapping[str, Any], path: YamlPath, key: str | None, inside: TableName | None
    ) -> TableName | None:
        written = entry.get("table") or entry.get("name") or key
        if not isinstance(written, str) or not written.strip():
            self._refuse(path, "has no `name`")
            return None
        try:
            name = parse_table_name(written)
            catalog, schema = _lower(entry.get("catalog")), _lower(entry.get("schema"))
            if inside is not None and name.schema is None:
                name = TableName(catalog=inside.catalog, schema=inside.schema, table=name.table)
            elif schema is not None and name.schema is None:
                name = make_table_name([part for part in (catalog, schema, name.table) if part is not None])
        except LaminaError as error:
            self.problems.append(
                BadConfigValue(error.message, hint=error.hint, location=self._text.location((*path, "name")))
            )
            return None
        return name

    def _columns(self, value: Any, path: YamlPath) -> tuple[Column, ...] | None:
        if value is None:
            return None
        found: list[Column] = []
        if isinstance(value, Mapping):
            for name, given in value.items():
                found.extend(self._column(str(name), given, (*path, name)))
        elif isinstance(value, list):
            for number, given in enumerate(value):
                name = given.get("name") if isinstance(given, Mapping) else given
                if isinstance(name, str):
                    found.extend(self._column(name, given if isinstance(given, Mapping) else None, (*path, number)))
                else:
                    self._refuse((*path, number), "must be a column with a `name`")
        else:
            self._refuse(path, "must map names of columns to types")
        return tuple(found)

    def _column(self, name: str, given: Any, path: YamlPath) -> Iterator[Column]:
        comment = None
        if isinstance(given, Mapping):
            self._check_keys(given, path, _COLUMN_KEYS)
            comment = given.get("description")
            given = given.get("type") or given.get("data_type")
        try:
            written = normalise_type(str(given)) if given is not None else None
        except LaminaError as error:
            self.problems.append(BadConfigValue(error.message, hint=error.hint, location=self._text.location(path)))
            return
        yield Column(name=name, type=written, comment=str(comment) if comment is not None else None)

    def _check_keys(self, entry: Mapping[str, Any], path: YamlPath, known: tuple[str, ...]) -> None:
        for key in entry:
            if key not in known:
                near = near_names(str(key), known)
                self.problems.append(
                    UnknownConfigKey(
                        f"unknown key `{key}`",
                        hint=f"did you mean `{near[0]}`?" if near else f"the keys are {', '.join(known)}",
                        location=self._text.key_location((*path, key)),
                    )
                )

    def _refuse(self, path: YamlPath, what: str) -> None:
        names = ".".join(str(part) for part in path if isinstance(part, str))
        number = path[-1] + 1 if path and isinstance(path[-1], int) else None
        where = (f"entry {number} of `{names}`" if names else f"entry {number}") if number else f"`{names}`"
        self.problems.append(
            BadConfigValue(f"{where if path else 'the file'} {what}", location=self._text.location(path))
        )


def _lower(value: Any) -> str | None:
    return str(value).lower() if value is not None else None
