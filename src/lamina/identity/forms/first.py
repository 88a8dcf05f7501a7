"""The first form of identity, as it was when state knew no other.

Nothing here may change what a hash comes out as: state that was made with this form is recognised by it, and by nothing
else. What only reads better belongs in `identity/fingerprint.py`.
"""

from __future__ import annotations

import ast
import hashlib
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lamina.errors import SyntaxProblem
from lamina.graph.kinds import Seed
from lamina.graph.model import PythonBody, SeedBody, SqlBody
from lamina.identity.naming import VersionId
from lamina.identity.version import Fingerprint, NodeVersion
from lamina.sql.on_demand import canonical_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.graph.model import AuditCall, FunctionCall, MacroEnvironment, Model, PythonModule, SqlText
    from lamina.graph.names import NodeName

# Properties of kinds that never change what a row looks like: they decide when and in which portions work is done,
# or which later changes are welcome.
_KIND_METADATA = frozenset({"batch_size", "batch_concurrency", "policy"})


# What a value of each sort had when this form was in use: what it was given since does not count.
_FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "CsvSettings": (
            "delimiter",
            "quotechar",
            "doublequote",
            "escapechar",
            "skipinitialspace",
            "lineterminator",
            "encoding",
            "na_values",
            "na_values_by_column",
            "keep_default_na",
        ),
        "Custom": (
            "materialization",
            "materialization_properties",
            "batch_size",
            "batch_concurrency",
            "lookback",
            "policy",
        ),
        "IncrementalByPartition": ("policy",),
        "IncrementalByTimeRange": (
            "time_column",
            "batch_size",
            "batch_concurrency",
            "lookback",
            "partition_by_time_column",
            "policy",
        ),
        "IncrementalByUniqueKey": (
            "unique_key",
            "when_matched",
            "merge_filter",
            "order_by",
            "batch_size",
            "lookback",
            "policy",
        ),
        "IncrementalPolicy": (
            "forward_only",
            "disable_restatement",
            "on_destructive_change",
            "on_additive_change",
            "auto_restatement_cron",
            "auto_restatement_intervals",
        ),
        "IncrementalUnmanaged": ("insert_overwrite", "policy"),
        "ScdType2ByColumn": (
            "unique_key",
            "columns",
            "valid_from_name",
            "valid_to_name",
            "time_data_type",
            "invalidate_hard_deletes",
            "execution_time_as_valid_from",
            "updated_at_name",
            "batch_size",
            "policy",
        ),
        "ScdType2ByTime": (
            "unique_key",
            "valid_from_name",
            "valid_to_name",
            "time_data_type",
            "invalidate_hard_deletes",
            "updated_at_name",
            "updated_at_as_valid_from",
            "batch_size",
            "policy",
        ),
        "Seed": ("path", "batch_size", "csv_settings"),
        "TimeColumn": ("name", "format"),
        "View": ("materialized",),
    }
)


def _fields_of(value: Any) -> tuple[str, ...]:
    return _FIELDS.get(type(value).__name__) or tuple(field.name for field in fields(value))


def digest(*parts: object) -> str:
    """A stable hash of plain values; equal values give equal text whatever process computes it."""
    return hashlib.sha256(repr(tuple(_plain(part) for part in parts)).encode()).hexdigest()[:32]


def _plain(value: Any) -> Any:  # one line per case reads best
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, frozenset | set):
        return tuple(sorted(repr(_plain(item)) for item in value))
    if is_dataclass(value):
        pairs = ((name, _plain(getattr(value, name))) for name in _fields_of(value))
        return (type(value).__name__, *pairs)
    return tuple((str(key), _plain(item)) for key, item in sorted(value.items(), key=lambda pair: str(pair[0])))


def query_hash(model: Model) -> str:
    """Hash of what the rows are computed by, without formatting and comments."""
    match model.body:
        case SqlBody() as body:
            names = sorted(model.references.items())
            return digest("sql", body.canonical, names, _expansion(body.macros, (body.query,)))
        case PythonBody() as body:
            return digest("python", body.function, _module_texts(body.modules), body.variables)
        case SeedBody() as body:
            return digest("seed", body.content_hash)


def _module_texts(modules: tuple[PythonModule, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((module.name, _normalised(module.source)) for module in modules)


@cache
def _normalised(source: str) -> str:
    """Python code without comments, blank lines and formatting."""
    try:
        return ast.unparse(ast.parse(source))
    except SyntaxError:
        return source


def _expansion(macros: MacroEnvironment, texts: tuple[SqlText, ...]) -> tuple[object, ...]:
    """Everything that texts are expanded from, where time decides more than literals and one expansion says little."""
    sources = tuple(text.source.text for text in texts if text.is_time_dependent)
    if not sources:
        return ()
    definitions = tuple(definition.text for definition in macros.definitions)
    return sources, definitions, _module_texts(macros.modules), macros.variables, macros.blueprint


def _statements(statements: tuple[SqlText, ...], dialect: str) -> tuple[str, ...]:
    return tuple(_canonical_of(statement, dialect) for statement in statements)


def _canonical_of(text: SqlText, dialect: str) -> str:
    """As it was found when the text was read, else found now."""
    is_known = text.canonical is not None and text.source.dialect == dialect
    return text.canonical or "" if is_known else _canonical(text.expanded, dialect)


@cache
def _canonical(text: str, dialect: str) -> str:
    try:
        return canonical_text(text, dialect)
    except SyntaxProblem:
        return text


def config_hash(model: Model) -> str:
    """Hash of the settings that change data: a closed list."""
    kind = model.kind
    kind_values = tuple(
        (name, getattr(kind, name))
        for name in _fields_of(kind)
        if name not in _KIND_METADATA and not (isinstance(kind, Seed) and name == "path")
    )
    around: tuple[object, ...] = ()
    if isinstance(model.body, SqlBody):
        before, after = model.body.pre_statements, model.body.post_statements
        around = (
            _statements(before, model.dialect),
            _statements(after, model.dialect),
            _expansion(model.body.macros, (*before, *after)),
        )
    declared = tuple((column.name, column.type) for column in model.columns or ()) if model.columns_are_declared else ()
    return digest(
        kind.name,
        kind_values,
        model.partitioned_by,
        model.clustered_by,
        model.table_format,
        model.storage_format,
        model.physical_properties,
        model.session_properties,
        declared,
        model.dialect,
        model.stamp,
        around,
        *_hooks(model),
    )


def _hooks(model: Model) -> tuple[object, ...]:
    """The functions around the model's batches; nothing for most models."""
    found = tuple(tuple(_function(call) for call in calls) for calls in (model.pre_hooks, model.post_hooks))
    return found if any(found) else ()


def audit_key(call: AuditCall) -> str:
    """A hash of what decides the outcome of an audit over given rows; not of its name or of what a failure leads to."""
    code = call.code
    if code is None:
        return digest("unknown", call.name, call.arguments)
    dialect = code.query.source.dialect
    again = _expansion(code.macros, (code.query,))
    return digest(
        "audit",
        _canonical_of(code.query, dialect),
        dialect,
        sorted(code.references.items()),
        (again, code.parameters) if again else (),
    )


def _audit(call: AuditCall) -> tuple[object, ...]:
    """What an audit is to a model; where it is written does not count."""
    return call.name, call.arguments, call.is_blocking, call.is_skipped, audit_key(call)


def _function(call: FunctionCall) -> tuple[object, ...]:
    """What a signal or hook is; where it is written does not count."""
    code = call.code
    made_of = (code.function, _module_texts(code.modules), code.variables) if code is not None else ()
    return call.name, call.values, made_of


def virtual_key(model: Model) -> tuple[object, ...]:
    """What the statements that follow the model's view come from: the same key, the same statements."""
    statements = model.body.on_virtual_update
    return (*_statements(statements, model.dialect), *_expansion(model.body.macros, statements))


def metadata_hash(model: Model) -> str:
    """Hash of everything that never changes data."""
    kind_values = tuple((name, getattr(model.kind, name)) for name in _fields_of(model.kind) if name in _KIND_METADATA)
    virtual = virtual_key(model)
    comments = tuple((column.name, column.comment) for column in model.columns or () if column.comment)
    return digest(
        kind_values,
        model.description,
        model.owner,
        model.tags,
        model.start,
        model.end,
        model.cron,
        model.cron_tz,
        model.grain,
        model.allow_partials,
        tuple(_audit(call) for call in model.audits),
        tuple(_function(call) for call in model.signals),
        model.grains,
        model.virtual_properties,
        model.replay_on_change,
        model.run_despite_unchanged,
        model.wait_for_parents,
        model.follow_rewrites,
        model.further,
        virtual,
        comments,
        *_audits_beside(model),
        # Last and only where it is said, so that nothing else changes.
        *((model.seed_copy,) if model.seed_copy else ()),
    )


def _audits_beside(model: Model) -> tuple[object, ...]:
    """Audits that are asked before or after the model is built; nothing for most models."""
    alone = tuple(_audit(call) for call in model.standalone_audits)
    sources = tuple((name, tuple(_audit(call) for call in calls)) for name, calls in model.source_audits.items())
    return (alone, sources) if alone or sources else ()


def version_of(model: Model, parents: Mapping[NodeName, NodeVersion]) -> NodeVersion:
    """The version of a node whose parents' versions, in this form too, are known."""
    query, config = query_hash(model), config_hash(model)
    functions = digest()
    metadata = metadata_hash(model)
    consumes = {name: _consumed(parents[name]) for name in model.reads if name in parents and name != model.name}
    whole = digest(model.name, query, config, functions, consumes)
    fingerprint = Fingerprint(
        query=query,
        config=config,
        functions=functions,
        metadata=metadata,
        row_set=whole,
        whole=whole,
        columns={column.name: digest(whole, column.name) for column in model.columns or ()},
    )
    return NodeVersion(
        node=model.name,
        version=VersionId(whole[:16]),
        fingerprint=fingerprint,
        definition_id=digest(whole, metadata)[:24],
        consumes=consumes,
    )


def _consumed(parent: NodeVersion) -> str:
    return parent.fingerprint.whole
