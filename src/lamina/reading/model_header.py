"""Reads the properties of one model, fills in defaults and checks what one file can tell."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.errors import BadName, BadPythonModel, DefinitionError, LaminaError, SyntaxProblem
from lamina.graph.dag import Notice
from lamina.graph.kinds import (
    Embedded,
    External,
    Full,
    IncrementalByPartition,
    Managed,
    Seed,
    View,
)
from lamina.graph.model import Column, Model, SeedBody
from lamina.graph.names import NodeName
from lamina.graph.validity import given_columns
from lamina.near_names import near_names
from lamina.reading.audits import CallReader, read_inline_audits
from lamina.reading.body import macro_scope, read_sql_body, read_virtual_update
from lamina.reading.check_model import check_model
from lamina.reading.drafts import Draft, WrittenReference
from lamina.reading.effects import unheeded
from lamina.reading.function_calls import read_calls
from lamina.reading.header_macros import expand_properties
from lamina.reading.kinds import read_kind
from lamina.reading.merge import with_merge_texts
from lamina.reading.model_properties import (
    FURTHER,
    read_depends_on,
    read_further,
    read_grains,
    read_partitions,
    read_replay,
    read_run_despite_unchanged,
    read_schedule,
    read_settings,
    read_time,
)
from lamina.reading.properties import Block, setting_of
from lamina.sql.fragment import Fragment
from lamina.sql.header.values import KindValue, Word, as_items, text_of
from lamina.sql.names import LONGEST_SCHEMA_NAME, LONGEST_TABLE_NAME, check_catalog_name, make_table_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lamina.errors import Location
    from lamina.graph.kinds import Kind
    from lamina.graph.model import AuditCall, Body, MacroEnvironment, PythonBody, SqlText, VariableValue
    from lamina.reading.audits import AuditDefinition
    from lamina.reading.body import ReadBody
    from lamina.reading.drafts import Surroundings
    from lamina.sql.header.document import Document
    from lamina.sql.header.values import Property
    from lamina.sql.names import TableName
    from lamina.sql.query import QueryShape

_MAPS = ("physical_properties", "virtual_properties", "session_properties")
_AROUND = ("pre_statements", "post_statements")
_HOOKS = ("pre_hooks", "post_hooks")
_CALLED = ("signals", *_HOOKS)
_VIRTUAL = "on_virtual_update"
_STATEMENTS = (*_AROUND, _VIRTUAL)
_KIND_DEFAULTS = ("on_destructive_change", "on_additive_change", "batch_concurrency")
PROPERTIES = (
    "name",
    "kind",
    "materialized",
    "dialect",
    "description",
    "owner",
    "tags",
    "start",
    "end",
    "cron",
    "cron_tz",
    "interval_unit",
    "allow_partials",
    "stamp",
    "columns",
    "column_descriptions",
    "depends_on",
    "audits",
    "signals",
    *_HOOKS,
    "grain",
    "grains",
    "partitioned_by",
    "clustered_by",
    "table_format",
    "storage_format",
    "table_properties",
    *_MAPS,
    "enabled",
    "blueprints",
    "forward_only",
    "replay_on_change",
    "query_change_backfill",
    "run_despite_unchanged",
    "wait_for_parents",
    "follow_rewrites",
    "seed_copy",
    *FURTHER,
)
"""Every property of a MODEL header."""

_TABLE_FORMATS = ("parquet", "delta", "iceberg", "hive", "hudi")


class ModelReader:
    """Reads one model of one file; problems go to the list it is given."""

    def __init__(
        self,
        properties: tuple[Property, ...],
        location: Location,
        dialect: str,
        surroundings: Surroundings,
        blueprint: Mapping[str, VariableValue],
        number: int,
        problems: list[LaminaError],
    ) -> None:
        self._surroundings = surroundings
        self._blueprint = blueprint
        self._number = number
        self._location = location
        self._dialect = dialect
        self._problems = problems
        self._notices: list[Notice] = []
        self._defaults = {each.key: each for each in surroundings.defaults}
        self._block = self._open(properties)

    def read_sql(self, document: Document, stem: str) -> Draft | None:
        """The draft of a SQL model; None when it is not enabled or something is wrong."""
        if self._block.boolean("enabled") is False:
            return None
        self._block.check_keys(PROPERTIES)
        name = self._name(stem)
        kind = self._kind(View())
        if isinstance(kind, External):
            self._block.contradict(
                "kind `EXTERNAL` belongs to tables that no model makes", "declare the table in `sources/`", "kind"
            )
        if isinstance(kind, Seed):
            return self._seed(document, name, kind)
        if document.query is None and kind is None and self._names_kind(Seed.name):
            return None
        if document.query is None:
            self._problems.append(
                DefinitionError(
                    "the model has no query", hint="write a SELECT after the header", location=self._location
                )
            )
            return None
        body = read_sql_body(
            document,
            document.query,
            self._surroundings,
            self._blueprint,
            kind.name if kind else None,
            self._default_statements(),
            self._problems,
        )
        inline = self._inline_audits(document, kind)
        if body is None or name is None or kind is None:
            self._read_rest(name, kind or Full(), None, inline)
            return None
        return self._finish(name, kind, body.body, body, inline)

    def read_python(self, body: PythonBody, reads: tuple[WrittenReference, ...], stem: str) -> Draft | None:
        """The draft of a Python model; None when it is not enabled or something is wrong."""
        if self._block.boolean("enabled") is False:
            return None
        self._block.check_keys(
            (*PROPERTIES, _VIRTUAL),
            dict.fromkeys(_AROUND, "statements around a Python model are written in its function"),
        )
        name = self._name(stem)
        kind = self._kind(Full())
        if isinstance(kind, View | Embedded | Seed | Managed | External):
            self._problems.append(
                BadPythonModel(
                    f"a Python model cannot be of kind `{kind.name}`",
                    hint="use `FULL` or an incremental kind, or write the model in SQL",
                    location=self._location,
                )
            )
        if not self._block.has("columns"):
            self._problems.append(
                BadPythonModel(
                    "a Python model must declare its columns",
                    hint='add `columns={"id": "int", …}` to the decorator',
                    location=self._location,
                )
            )
        if name is None or kind is None:
            self._read_rest(name, kind or Full(), None, {})
            return None
        virtual, macros = self._virtual_update(self._listed(_VIRTUAL), (), kind)
        body = replace(body, variables=self._python_variables(body), on_virtual_update=virtual, macros=macros)
        draft = self._finish(name, kind, body, None, {})
        # What the user lists is the whole truth: code may name tables that it does not read.
        is_listed = self._block.has("depends_on")
        return draft if draft is None or is_listed else replace(draft, references=reads)

    def _listed(self, key: str) -> tuple[Fragment, ...]:
        """Statements given as texts in a decorator."""
        value = self._block.value(key)
        return tuple(
            Fragment(text=text_of(item) or "", location=item.location, dialect=self._dialect)
            for item in (as_items(value) if value is not None else ())
        )

    def _virtual_update(
        self, own: tuple[Fragment, ...], definitions: tuple[Fragment, ...], kind: Kind
    ) -> tuple[tuple[SqlText, ...], MacroEnvironment]:
        return read_virtual_update(
            (*self._default_statements()[_VIRTUAL], *own),
            definitions,
            self._surroundings,
            self._blueprint,
            kind.name,
            self._problems,
        )

    def _python_variables(self, body: PythonBody) -> Mapping[str, VariableValue]:
        return MappingProxyType({**body.variables, **self._blueprint})

    def _seed(self, document: Document, name: TableName | None, kind: Seed) -> Draft | None:
        query = document.query
        if query is not None and not query.text.strip().upper().startswith("@INSERT_SEED"):
            self._problems.append(
                DefinitionError(
                    "a model of kind `SEED` has no query of its own",
                    hint="remove the query; the rows come from the file",
                    location=query.location,
                )
            )
        self._problems.extend(
            DefinitionError(
                "a model of kind `SEED` has no query, so no statement can stand before or after it",
                hint="put it between `ON_VIRTUAL_UPDATE_BEGIN;` and `ON_VIRTUAL_UPDATE_END;`, or remove it",
                location=statement.location,
            )
            for statement in (*document.pre_statements, *document.post_statements)
            if statement is not query
        )
        inline = self._inline_audits(document, kind)
        virtual, macros = self._virtual_update(document.on_virtual_update, document.definitions, kind)
        body = SeedBody(path="", content_hash="", on_virtual_update=virtual, macros=macros)
        return None if name is None else self._finish(name, kind, body, None, inline)

    def _open(self, properties: tuple[Property, ...]) -> Block:
        """The header with its macros expanded and the project's defaults behind it."""
        scope = macro_scope(self._surroundings, self._blueprint)
        expanded: list[Property] = []
        for each in properties:
            if each.key == "blueprints":
                continue
            try:
                expanded.extend(expand_properties((each,), scope, self._dialect))
            except LaminaError as error:
                self._problems.extend(error.problems)
        given = {each.key for each in expanded}
        if len(given) < len(expanded):
            repeated = next(
                each for number, each in enumerate(expanded) if each.key in {p.key for p in expanded[:number]}
            )
            self._problems.append(
                SyntaxProblem(f"`{repeated.key}` is given twice", hint="remove one of them", location=repeated.location)
            )
        own_kind = {"kind"} if "materialized" in given else set()
        left_out = {*given, *own_kind, *_MAPS, *_STATEMENTS, *_KIND_DEFAULTS, "audits", "enabled"}
        inherited = (each for each in self._surroundings.defaults if each.key not in left_out)
        if "enabled" not in given and "enabled" in self._defaults:
            expanded.append(self._defaults["enabled"])
        return Block.of("MODEL", (*expanded, *inherited), self._location, self._dialect, self._problems)

    # --- name and kind ---
    def _name(self, stem: str) -> TableName | None:
        value = self._block.value("name")
        place = value.location if value is not None else self._location
        if value is None:
            parts: tuple[str, ...] = (stem,)
        elif isinstance(value, Word):
            parts = value.parts
        else:
            self._block.refuse("name", "a table name such as `schema.table`, without quotes")
            return None
        try:
            name = make_table_name(parts)
        except LaminaError as error:
            self._problems.append(BadName(error.message, hint=error.hint, location=place))
            return None
        for number, part in enumerate(reversed(name.parts)):
            longest = LONGEST_SCHEMA_NAME if number else LONGEST_TABLE_NAME
            reason = check_catalog_name(part, longest=longest)
            if reason is not None:
                hint = "rename it" if value is not None else "rename the file, or give the model a `name`"
                self._problems.append(
                    BadName(f"`{name.to_text()}` cannot be the name of a model: {reason}", hint=hint, location=place)
                )
                return None
        return name

    def _names_kind(self, name: str) -> bool:
        value = self._block.value("kind")
        return isinstance(value, KindValue) and value.name == name

    def _kind(self, fallback: Kind) -> Kind | None:
        spelled = self._block.choice("materialized", ("view", "table"))
        value = self._block.value("kind")
        if spelled is not None and value is not None:
            self._block.contradict(
                "both `materialized` and `kind` are given", "keep `kind`: `materialized` is another spelling", "kind"
            )
        if spelled is not None:
            return View() if spelled == "view" else Full()
        if value is None:
            return fallback if self._block.properties.get("materialized") is None else None
        if not isinstance(value, KindValue):
            self._block.refuse("kind", "the name of a kind, such as `FULL`")
            return None
        kind = read_kind(value, self._dialect, self._problems, self._kind_defaults())
        if kind is None:
            return None
        scope = macro_scope(self._surroundings, self._blueprint, kind=kind.name)
        kind = with_merge_texts(kind, value, self._dialect, scope, self._problems)
        return self._with_forward_only(kind, value)

    def _kind_defaults(self) -> dict[str, str | int]:
        values = {key: setting_of(self._defaults[key].value) for key in _KIND_DEFAULTS if key in self._defaults}
        return {key: value for key, value in values.items() if isinstance(value, str | int)}

    def _with_forward_only(self, kind: Kind, value: KindValue) -> Kind:
        """The kind with what the header says about it."""
        wanted = self._block.boolean("forward_only")
        if wanted is None:
            return kind
        if isinstance(kind, Full | View | Embedded | Seed | External | Managed):
            self._block.contradict(
                f"`forward_only` has no meaning for kind `{kind.name}`",
                "remove it, or choose an incremental kind",
                "forward_only",
            )
            return kind
        inside = next((each for each in value.properties if each.key == "forward_only"), None)
        if (inside is not None and kind.policy.forward_only != wanted) or (
            isinstance(kind, IncrementalByPartition) and not wanted
        ):
            self._block.contradict("`forward_only` contradicts the kind", "say it once", "forward_only")
            return kind
        return replace(kind, policy=replace(kind.policy, forward_only=wanted))

    def _default_statements(self) -> dict[str, tuple[Fragment, ...]]:
        found: dict[str, tuple[Fragment, ...]] = {}
        for key in _STATEMENTS:
            given = self._defaults.get(key)
            found[key] = tuple(
                Fragment(text=text_of(item) or "", location=item.location, dialect=self._dialect)
                for item in (as_items(given.value) if given is not None else ())
            )
        return found

    # --- everything else ---
    def _finish(
        self, name: TableName, kind: Kind, body: Body, sql: ReadBody | None, inline: Mapping[str, AuditDefinition]
    ) -> Draft | None:
        before = len(self._problems)
        for key in _HOOKS if isinstance(kind, Embedded) else ():
            if self._block.has(key):
                self._block.contradict(
                    "a model of kind `EMBEDDED` has no batches, so no hook runs around them",
                    "name the hook in the models that read it",
                    key,
                )
        depends_on = read_depends_on(self._block)
        model, descriptions = self._read_rest(name, kind, sql, inline, body)
        if model is None or len(self._problems) > before:
            return None
        given = self._block.value("kind")
        in_kind = given.properties if isinstance(given, KindValue) else ()
        header = [each for each in self._block.properties.values() if each.location.file == self._location.file]
        self._notices.extend(unheeded(name.to_text(), kind, header, in_kind))
        return Draft(
            name=name,
            model=model,
            references=sql.references if sql else (),
            depends_on=depends_on,
            needs_columns=sql.needs_columns if sql else frozenset(),
            descriptions=MappingProxyType(descriptions),
            notices=tuple(self._notices),
            given=MappingProxyType({each.key: each.location for each in (*header, *in_kind)}),
            blueprint_number=self._number,
        )

    def _read_rest(
        self,
        name: TableName | None,
        kind: Kind,
        sql: ReadBody | None,
        inline: Mapping[str, AuditDefinition],
        body: Body | None = None,
    ) -> tuple[Model | None, dict[str, str]]:
        """The model without its name resolved; read also when the body is wrong, so that all problems are found."""
        block = self._block
        cron, cron_tz, grain, allow_partials = read_schedule(block)
        descriptions = {column: text for column, (text, _) in block.descriptions("column_descriptions").items()}
        columns = self._columns(sql.shape if sql else None, descriptions, name)
        fields = {
            "description": block.text("description"),
            "owner": block.text("owner"),
            "tags": block.texts("tags"),
            "start": read_time(block, "start"),
            "end": read_time(block, "end"),
            "stamp": block.text("stamp"),
            "audits": self._audits(kind, inline),
            **{key: read_calls(block, key, macro_scope(self._surroundings, self._blueprint)) for key in _CALLED},
            "grains": read_grains(block),
            "partitioned_by": read_partitions(block, kind),
            "clustered_by": block.column_expressions("clustered_by"),
            "table_format": block.choice("table_format", _TABLE_FORMATS) or "parquet",
            "storage_format": block.text("storage_format"),
            "physical_properties": read_settings(block, self._defaults, "physical_properties", "table_properties"),
            "virtual_properties": read_settings(block, self._defaults, "virtual_properties"),
            "session_properties": read_settings(block, self._defaults, "session_properties"),
            "replay_on_change": read_replay(block),
            "run_despite_unchanged": read_run_despite_unchanged(block, kind),
            "wait_for_parents": block.boolean("wait_for_parents") is not False,
            "follow_rewrites": block.boolean("follow_rewrites") is not False,
            "seed_copy": block.choice("seed_copy", ("always",)),
            "further": MappingProxyType(read_further(block)),
        }
        if name is None or body is None:
            return None, descriptions
        model = Model(
            name=NodeName(name.to_text()),
            kind=kind,
            body=body,
            reads=(),
            location=self._location,
            columns=columns,
            columns_are_declared=block.has("columns"),
            dialect=self._dialect,
            cron=cron,
            cron_tz=cron_tz,
            grain=grain,
            allow_partials=allow_partials,
            **fields,  # type: ignore[arg-type]  # each is read into its own type above
        )
        self._problems.extend(check_model(model, block, certain_columns(model, sql.shape if sql else None)))
        # A view shows what it declares, whatever else its query gives.
        if sql is not None and model.columns_are_declared and not isinstance(kind, View | Embedded):
            self._check_undeclared(given_columns(kind, model.columns or ()), sql.shape)
        return model, descriptions

    def _columns(
        self, shape: QueryShape | None, descriptions: Mapping[str, str], name: TableName | None
    ) -> tuple[Column, ...] | None:
        declared = self._block.columns("columns")
        outputs = shape.output_columns if shape is not None else None
        beside = {output.name.lower(): output.comment for output in outputs or ()}
        if declared is not None and shape is not None:
            self._check_declared(declared, shape)
        if declared is not None:
            known: Iterable[tuple[str, str | None]] = declared
        elif outputs is not None and shape is not None:
            known = tuple((output.name, shape.declared_types.get(output.name.lower())) for output in outputs)
        else:
            return None
        columns = tuple(
            Column(name=column, type=written, comment=descriptions.get(column.lower()) or beside.get(column.lower()))
            for column, written in known
        )
        names = {column.name.lower() for column in columns}
        for described in sorted(set(descriptions) - names):
            self._notices.append(
                Notice(
                    code="LAM-WARN-002",
                    message=f"`column_descriptions` describes `{described}`, which the model does not have",
                    node=name.to_text() if name else None,
                )
            )
        return columns

    def _check_declared(self, declared: tuple[tuple[str, str], ...], shape: QueryShape) -> None:
        """Report declared columns that the query does not give."""
        outputs = shape.output_columns
        if outputs is None or not all(output.is_name_certain for output in outputs):
            return
        kind = self._block.value("kind")
        is_scd = isinstance(kind, KindValue) and kind.name.startswith("SCD_TYPE_2")
        names = [output.name for output in outputs]
        for name, _ in declared:
            if name.lower() not in {known.lower() for known in names} and not is_scd:
                near = near_names(name, names)
                listed = ", ".join(f"`{known}`" for known in names)
                self._block.contradict(
                    f"`columns` declares `{name}`, which the query does not give",
                    f"did you mean `{near[0]}`?" if near else f"the query gives {listed}",
                    "columns",
                )

    def _check_undeclared(self, declared: tuple[Column, ...], shape: QueryShape) -> None:
        """Report what the query gives beside the declared columns, where it gives all of these."""
        outputs = shape.output_columns
        known = {column.name.lower() for column in declared}
        if outputs is None or not all(output.is_name_certain for output in outputs):
            return
        if not known or not known <= {output.name.lower() for output in outputs}:
            return
        extra = [f"`{output.name}`" for output in outputs if output.name.lower() not in known]
        if extra:
            self._block.contradict(
                f"the query gives {', '.join(extra)}, which `columns` does not declare",
                "declare all that the query gives, or give no more than is declared",
                "columns",
            )

    def _inline_audits(self, document: Document, kind: Kind | None) -> dict[str, AuditDefinition]:
        """Audits written in the model's file, by name; they see what its query sees."""
        scope = macro_scope(
            self._surroundings, self._blueprint, kind=kind.name if kind else None, definitions=document.definitions
        )
        return read_inline_audits(document.audits, scope, self._problems)

    def _audits(self, kind: Kind, inline: Mapping[str, AuditDefinition]) -> tuple[AuditCall, ...]:
        reader = CallReader(
            kind=kind,
            dialect=self._dialect,
            surroundings=self._surroundings,
            scope=macro_scope(self._surroundings, self._blueprint, kind=kind.name),
            inline=inline,
        )
        return reader.read(self._block, self._defaults)


def certain_columns(model: Model, shape: QueryShape | None) -> tuple[Column, ...] | None:
    """The columns a model has for sure; None when some are unknown or have names that only Spark knows."""
    if model.columns_are_declared or shape is None:
        return model.columns
    outputs = shape.output_columns
    return model.columns if outputs is not None and all(output.is_name_certain for output in outputs) else None
