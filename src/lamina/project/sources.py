"""External tables declared in `sources/*.yml` and `external_models.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lamina.errors import BadConfigValue, ConfigError, LaminaError, raise_all
from lamina.graph.model import Column, Source
from lamina.graph.names import NodeName
from lamina.project.freshness import check_freshness
from lamina.project.yaml.checked import Checked
from lamina.project.yaml.text import BadYaml, read_yaml
from lamina.reading.without_effect import FRESHNESS, no_effect, no_effect_yet
from lamina.sql.names import TableName, make_table_name, parse_table_name
from lamina.sql.types import normalise_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamina.graph.dag import Notice
    from lamina.project.yaml.places import YamlPath, YamlText

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
# What a group of tables may say for all of them.
_GROUP_KEYS = ("name", "catalog", "schema", "tables", "description", "freshness", "gateway", "owner", "start", "tags")
_WITHOUT_EFFECT = {
    "gateway": "there are no gateways here; `targets` say where tables live",
    "start": "what is read of a table follows from the models that read it",
}
# What may stand beside `sources`; other tools number their files.
_FILE_KEYS = ("sources", "version")
_COLUMN_KEYS = ("name", "type", "data_type", "description")


def read_sources(content: str, file: str) -> tuple[Source, ...]:
    """The tables that one file declares: a list of entries, or a mapping of names to entries, under `sources` or not.

    Raises everything wrong with the file at once.
    """
    return tuple(source for source, _ in read_entries(content, file))


def read_entries(content: str, file: str) -> tuple[tuple[Source, YamlPath], ...]:
    """The same, each with the path of its entry in the file."""
    return _read(content, file)[0]


def read_source_file(content: str, file: str) -> tuple[tuple[Source, ...], tuple[Notice, ...]]:
    """The same tables, and warnings about what the file says that nothing acts on."""
    entries, notices = _read(content, file)
    return tuple(source for source, _ in entries), notices


def _read(content: str, file: str) -> tuple[tuple[tuple[Source, YamlPath], ...], tuple[Notice, ...]]:
    try:
        text = read_yaml(content, file)
    except BadYaml as error:
        raise ConfigError(error.message, hint=error.hint, location=error.location) from None
    reader = _Reader(text)
    found = tuple(reader.read())
    raise_all(reader.problems)
    return found, tuple(reader.notices)


class _Reader:
    def __init__(self, text: YamlText) -> None:
        self._text = text
        self.problems: list[LaminaError] = []
        self.notices: list[Notice] = []
        self._checked = Checked(text, self.problems)

    def read(self) -> Iterator[tuple[Source, YamlPath]]:
        value = self._text.value
        path: YamlPath = ()
        if isinstance(value, Mapping) and "sources" in value:
            self._checked.keys(value, (), _FILE_KEYS, "a file of external tables")
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
        self._checked.keys(entry, path, _KEYS, "an external table")
        if entry.get("freshness") is not None:
            check_freshness(entry["freshness"], (*path, "freshness"), self._checked)
        if "tables" in entry:
            self._check_group(entry, path)
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
            self.notices.extend(self._without_effect(entry, path, source.name, inside))
            yield source, path

    def _check_group(self, entry: Mapping[str, Any], path: YamlPath) -> None:
        """Report what only a single table can have."""
        for key in entry:
            if key in _KEYS and key not in _GROUP_KEYS:
                self._checked.contradict(
                    (*path, key), f"`{key}` belongs to a table, and this is a group of them", "move it to its table"
                )

    def _without_effect(
        self, entry: Mapping[str, Any], path: YamlPath, name: NodeName, inside: TableName | None
    ) -> Iterator[Notice]:
        """What is said about the table, or the group it is in, and nothing acts on."""
        # The entry of a group holds its tables one step above the table's own.
        group = path[:-2] if inside is not None else None
        for place, given in ((group, self._at(group)), (path, entry)):
            if place is None:
                continue
            for key in ("freshness", *_WITHOUT_EFFECT):
                if given.get(key) is None:
                    continue
                location = self._text.key_location((*place, key))
                if key == "freshness":
                    why = "the table is not observed, so models below it are built as if it had none"
                    yield no_effect_yet(FRESHNESS, f"`freshness` of `{name}`", why, location, name)
                else:
                    yield no_effect(f"`{key}` of `{name}`", _WITHOUT_EFFECT[key], location, name)
        for key in ("catalog", "schema"):
            if entry.get(key) is not None and str(entry[key]).lower() not in name.split("."):
                location = self._text.key_location((*path, key))
                why = f"the table is read as `{name}`; write all of its name in one place"
                yield no_effect(f"`{key}: {entry[key]}` of `{name}`", why, location, name)
        if entry.get("table") and entry.get("name") and str(entry["table"]) != str(entry["name"]):
            location = self._text.key_location((*path, "name"))
            why = f"the table is read as `{name}`, and queries must call it so"
            yield no_effect(f"`name: {entry['name']}` beside `table: {entry['table']}`", why, location, name)

    def _at(self, path: YamlPath | None) -> Mapping[str, Any]:
        here: Any = self._text.value
        for part in path or ():
            here = here[part]
        return here if isinstance(here, Mapping) else {}

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
        seen: dict[str, str] = {}
        if isinstance(value, Mapping):
            for name, given in value.items():
                found.extend(self._column(str(name), given, (*path, name), seen))
        elif isinstance(value, list):
            for number, given in enumerate(value):
                own = given if isinstance(given, Mapping) else None
                name = given if own is None else own.get("name")
                if isinstance(name, str):
                    found.extend(self._column(name, own, (*path, number), seen))
                else:
                    self._refuse((*path, number), "must be a column with a `name`")
        else:
            self._refuse(path, "must map names of columns to types")
        return tuple(found)

    def _column(self, name: str, given: Any, path: YamlPath, seen: dict[str, str]) -> Iterator[Column]:
        comment = None
        if name.lower() in seen:
            why = f"columns `{seen[name.lower()]}` and `{name}` are the same: case does not count"
            self._checked.contradict(path, why, "remove one of them")
        seen[name.lower()] = name
        if isinstance(given, Mapping):
            self._checked.keys(given, path, _COLUMN_KEYS, "a column")
            comment = given.get("description")
            given = given.get("type") or given.get("data_type")
        try:
            written = normalise_type(str(given)) if given is not None else None
        except LaminaError as error:
            self.problems.append(BadConfigValue(error.message, hint=error.hint, location=self._text.location(path)))
            return
        yield Column(name=name, type=written, comment=str(comment) if comment is not None else None)

    def _refuse(self, path: YamlPath, what: str) -> None:
        names = ".".join(str(part) for part in path if isinstance(part, str))
        number = path[-1] + 1 if path and isinstance(path[-1], int) else None
        where = (f"entry {number} of `{names}`" if names else f"entry {number}") if number else f"`{names}`"
        self.problems.append(
            BadConfigValue(f"{where if path else 'the file'} {what}", location=self._text.location(path))
        )


def _lower(value: Any) -> str | None:
    return str(value).lower() if value is not None else None
