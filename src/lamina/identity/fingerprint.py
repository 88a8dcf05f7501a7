"""What a node is, as hashes: a pure function of its definition and of what it reads."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

from lamina.errors import SyntaxProblem
from lamina.graph.kinds import Embedded, Seed
from lamina.graph.model import PythonBody, SeedBody, SqlBody
from lamina.graph.sealing import Seal
from lamina.identity.naming import VersionId
from lamina.identity.version import FORM, Fingerprint, NodeVersion
from lamina.sql.on_demand import canonical_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.graph.dag import Graph
    from lamina.graph.model import AuditCall, FunctionCall, MacroEnvironment, Model, PythonModule, SqlText
    from lamina.graph.names import NodeName

# Properties of kinds that never change what a row looks like: they decide when and in which portions work is done,
# or which later changes are welcome.
_KIND_METADATA = frozenset({"batch_size", "batch_concurrency", "policy"})


def digest(*parts: object, seal: Seal | None = None) -> str:
    """A stable hash of plain values; equal values give equal text whatever process computes it."""
    plain: tuple[Any, ...] = tuple(_plain(part) for part in parts)
    return hashlib.sha256(repr(plain if seal is None else seal.of(plain)).encode()).hexdigest()[:32]


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
        pairs = ((field.name, _plain(getattr(value, field.name))) for field in fields(value))
        return (type(value).__name__, *pairs)
    return tuple((str(key), _plain(item)) for key, item in sorted(value.items(), key=lambda pair: str(pair[0])))


def query_hash(model: Model, seal: Seal | None = None) -> str:
    """Hash of what the rows are computed by, without formatting and comments."""
    match model.body:
        case SqlBody() as body:
            names = sorted(model.references.items())
            return digest("sql", body.canonical, names, _expansion(body.macros, (body.query,)), seal=seal)
        case PythonBody() as body:
            return digest("python", body.function, _module_texts(body.modules), body.variables, seal=seal)
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


def config_hash(model: Model, seal: Seal | None = None) -> str:
    """Hash of the settings that change data: a closed list."""
    kind = model.kind
    kind_values = tuple(
        (field.name, getattr(kind, field.name))
        for field in fields(kind)
        if field.name not in _KIND_METADATA and not (isinstance(kind, Seed) and field.name == "path")
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
        seal=seal,
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


def metadata_hash(model: Model, seal: Seal | None = None) -> str:
    """Hash of everything that never changes data."""
    kind_values = tuple(
        (field.name, getattr(model.kind, field.name)) for field in fields(model.kind) if field.name in _KIND_METADATA
    )
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
        seal=seal,
    )


def _audits_beside(model: Model) -> tuple[object, ...]:
    """Audits that are asked before or after the model is built; nothing for most models."""
    alone = tuple(_audit(call) for call in model.standalone_audits)
    sources = tuple((name, tuple(_audit(call) for call in calls)) for name, calls in model.source_audits.items())
    return (alone, sources) if alone or sources else ()


def version_of(model: Model, parents: Mapping[NodeName, NodeVersion], key: bytes = b"") -> NodeVersion:
    """The version of a node whose parents' versions are known; values from the environment count as digests by the key.

    At whole-node precision a child consumes all of a parent; `row_set` and `columns` are kept apart so that finer
    precision needs no other shape.
    """
    seal = Seal(model, key) if model.environment else None
    query, config = query_hash(model, seal), config_hash(model, seal)
    functions = digest()
    metadata = metadata_hash(model, seal)
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
        definition_id=definition_id_of(VersionId(whole[:16]), fingerprint),
        consumes=consumes,
    )


def definition_id_of(version: VersionId, local: Fingerprint) -> str:
    """The name of a definition that is recorded for a version: it follows from both alone."""
    parts = (version, local.query, local.config, local.functions, local.metadata)
    return f"{FORM}-{digest('definition', *parts)[:24]}"


def _consumed(parent: NodeVersion) -> str:
    return parent.fingerprint.whole


def versions_of(graph: Graph, key: bytes = b"") -> dict[NodeName, NodeVersion]:
    """Every model's version, parents first."""
    found: dict[NodeName, NodeVersion] = {}
    for name, model in graph.models.items():
        found[name] = version_of(model, found, key)
    return found


def has_object(model: Model) -> bool:
    """Whether the model has a table or view of its own in the warehouse."""
    return not isinstance(model.kind, Embedded)
