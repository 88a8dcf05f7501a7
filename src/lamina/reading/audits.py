"""Audits: their definitions, the calls in models, and the queries that come of the two.

A built-in audit and one written in the model's own file become queries when the file is read; one in `audits/` when all
files are known. Names never hide each other: built-in audits, those in `audits/` and those of the model's own file
must differ.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.errors import (
    BadAudit,
    BadPropertyValue,
    DuplicateName,
    LaminaError,
    Location,
    raise_all,
)
from lamina.graph.kinds import Embedded, Full, Seed, View
from lamina.graph.model import AuditCall, AuditCode, SqlText
from lamina.graph.names import NodeName
from lamina.near_names import near_names
from lamina.reading.body import Uses, analyse_expansion, macro_environment, macro_scope
from lamina.reading.header_macros import expand_properties
from lamina.reading.model_properties import read_depends_on
from lamina.reading.properties import Block
from lamina.reading.texts import kept_text
from lamina.reading.without_effect import no_effect
from lamina.sql.builtin_audits import BUILTIN_AUDITS, NON_BLOCKING, THIS_MODEL, builtin_arguments, find_builtin
from lamina.sql.fragment import Fragment
from lamina.sql.header.audit_arguments import translate_argument
from lamina.sql.header.document import read_audits
from lamina.sql.header.read import read_value
from lamina.sql.header.values import MacroValue, Pair, Property, as_items, sql_of
from lamina.sql.macros.expand import expand
from lamina.sql.macros.expander import PREDEFINED
from lamina.sql.macros.names import macro_names
from lamina.sql.macros.times import TIME_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lamina.graph.dag import Notice
    from lamina.graph.kinds import Kind
    from lamina.graph.model import Model, VariableValue
    from lamina.reading.drafts import Draft, Surroundings, WrittenReference
    from lamina.reading.properties import CallValue
    from lamina.sql.builtin_audits import BuiltinAudit
    from lamina.sql.header.document import AuditBlock
    from lamina.sql.header.values import Value
    from lamina.sql.macros.scope import MacroScope

    Remember = Callable[[object, Callable[[], AuditCode]], AuditCode]

_OF_STANDALONE = ("owner", "tags", "cron", "start", "depends_on")
_PROPERTIES = ("name", "dialect", "description", "defaults", "blocking", "skip", "standalone", *_OF_STANDALONE)
_WHEN_ASKED = "a standalone audit is asked whenever what it reads was built"
_NAME = re.compile(r"[^\W\d]\w*")
_DEFINED = re.compile(r"@DEF\s*\(\s*(\w+)", re.IGNORECASE)
# Time has no part in computing these.
_TIMELESS = (Full, View, Seed)
_NOTHING: Mapping[str, VariableValue] = MappingProxyType({})
# One object for all calls: a project has thousands of them, and its cache writes each object once.
_ONLY_THE_MODEL = AuditCode(query=SqlText(source=Fragment(text="", location=Location()), expanded=""))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditDefinition:
    """An `AUDIT (…)` block: a query over `@this_model`, and defaults of its arguments in the query's dialect.

    An audit in a model's file also sees the blueprint and the `@DEF`s of that file.
    """

    name: str
    query: Fragment
    location: Location
    defaults: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    is_blocking: bool = True
    is_skipped: bool = False
    is_standalone: bool = False
    depends_on: tuple[WrittenReference, ...] = ()
    """Tables beside those of the query that a standalone audit waits for."""
    blueprint: Mapping[str, VariableValue] = field(default_factory=lambda: MappingProxyType({}))
    definitions: tuple[Fragment, ...] = ()
    notices: tuple[Notice, ...] = ()
    """What its header says that nothing acts on."""


# --- definitions ------------------------------------------------------------------------------------------------------
def read_audit_file(text: str, file: str, surroundings: Surroundings) -> tuple[AuditDefinition, ...]:
    """The audits of a file in `audits/`; raises everything wrong at once."""
    problems: list[LaminaError] = []
    blocks = read_audits(text, file, surroundings.dialect)
    scope = macro_scope(surroundings, _NOTHING)
    found = [_read_definition(block, scope, problems, is_inline=False) for block in blocks]
    raise_all(problems)
    return tuple(definition for definition in found if definition is not None)


def read_inline_audits(
    blocks: Iterable[AuditBlock], scope: MacroScope, problems: list[LaminaError]
) -> dict[str, AuditDefinition]:
    """The audits written in a model's file, by name; they belong to that model alone."""
    found: dict[str, AuditDefinition] = {}
    for block in blocks:
        definition = _read_definition(block, scope, problems, is_inline=True)
        if definition is None:
            continue
        if definition.name in found:
            problems.append(_defined_twice(found[definition.name], definition.name, definition.location))
        found[definition.name] = definition
    return found


def _read_definition(
    block: AuditBlock, scope: MacroScope, problems: list[LaminaError], *, is_inline: bool
) -> AuditDefinition | None:
    header, before = block.header, len(problems)
    try:
        expanded = tuple(expand_properties(header.properties, scope, block.dialect))
    except LaminaError as error:
        problems.extend(error.problems)
        return None
    properties = Block.of("AUDIT", expanded, header.location, block.dialect, problems)
    properties.check_keys(_PROPERTIES)
    name = _name_of(properties)
    is_standalone = properties.boolean("standalone") or False
    if is_standalone and is_inline:
        properties.contradict(
            "a standalone audit stands in the file of a model",
            "move it to a file in `audits/`, or remove `standalone true`",
            "standalone",
        )
    for key in _OF_STANDALONE:
        if properties.has(key) and not is_standalone:
            properties.contradict(
                f"`{key}` belongs to a standalone audit; this one runs with its model", f"remove `{key}`", key
            )
    depends_on = read_depends_on(properties)
    defaults = _read_defaults(properties, scope, block.query.dialect)
    if name is None or len(problems) > before:
        return None
    return AuditDefinition(
        name=name,
        query=block.query,
        location=header.location,
        defaults=defaults,
        is_blocking=properties.boolean("blocking") is not False,
        is_skipped=properties.boolean("skip") or False,
        is_standalone=is_standalone,
        depends_on=depends_on,
        blueprint=scope.blueprint if is_inline else MappingProxyType({}),
        definitions=scope.definitions if is_inline else (),
        notices=tuple(
            no_effect(f"`{key}` of audit `{name}`", _WHEN_ASKED, properties.place(key))
            for key in ("cron", "start")
            if properties.has(key)
        ),
    )


def _name_of(block: Block) -> str | None:
    written = block.text("name")
    if written is None:
        if "name" not in block.properties:
            block.problems.append(
                BadAudit("the audit has no name", hint="write `AUDIT (name …);`", location=block.location)
            )
        return None
    name = written.lower()
    if not _NAME.fullmatch(name):
        block.refuse("name", "a word of letters, digits and underscores")
        return None
    if find_builtin(name) is not None:
        block.problems.append(
            DuplicateName(f"`{name}` is a built-in audit", hint="choose another name", location=block.place("name"))
        )
        return None
    return name


def _read_defaults(block: Block, scope: MacroScope, dialect: str) -> Mapping[str, str]:
    value = block.value("defaults")
    found: dict[str, str] = {}
    for item in as_items(value) if value is not None else ():
        if not isinstance(item, Pair):
            block.refuse("defaults", "a list of `argument = value`", value=item)
            continue
        try:
            text = _argument_text(item.value, scope, block.dialect, f"defaults({item.key})")
            found[item.key.lower()] = translate_argument(text, block.dialect, dialect, item.location)
        except LaminaError as error:
            block.problems.extend(error.problems)
    return MappingProxyType(found)


def _defined_twice(first: AuditDefinition, name: str, second: Location) -> DuplicateName:
    return DuplicateName(
        f"audit `{name}` is defined twice: in `{first.location}` and in `{second}`",
        hint="rename one of them",
        location=second,
    )


# --- calls ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class CallReader:
    """Reads the audits of one model; what is wrong with them goes to the problems of the blocks it is given."""

    kind: Kind
    dialect: str
    surroundings: Surroundings
    scope: MacroScope
    inline: Mapping[str, AuditDefinition]

    def read(self, block: Block, defaults: Mapping[str, Property]) -> tuple[AuditCall, ...]:
        """The project's audits, those of the header, and those written in the file; none twice.

        Of two calls with the same arguments the later one says whether it blocks.
        """
        found: list[AuditCall] = []
        listed: set[str] = set()
        # Nothing is stored for an embedded model, so what holds for all models cannot be meant for it.
        if "audits" in defaults and not isinstance(self.kind, Embedded):
            dialect = self.surroundings.dialect
            given = Block.of("defaults", (defaults["audits"],), block.location, dialect, block.problems)
            found += self._calls(given, listed)
        found += self._calls(block, listed)
        for name, definition in self.inline.items():
            if name not in listed:
                found += self._with_code(AuditCall(name=name, location=definition.location), block.problems)
        unique = {(call.name, tuple(sorted(call.arguments.items()))): call for call in found}
        return tuple(unique.values())

    def _calls(self, block: Block, listed: set[str]) -> list[AuditCall]:
        """The calls of a list with nothing wrong; `listed` gets the names of all."""
        value = block.value("audits")
        found: list[AuditCall] = []
        for written in as_items(value) if value is not None else ():
            try:
                for item in self._listed(written, block):
                    found += self._call(item, block, listed)
            except LaminaError as error:
                block.problems.extend(error.problems)
        return found

    def _call(self, item: Value, block: Block, listed: set[str]) -> list[AuditCall]:
        before = len(block.problems)
        single = Property(key="audits", value=item, location=item.location)
        calls = Block.of(block.title, (single,), block.location, block.dialect, block.problems).calls("audits")
        listed |= {call.name for call in calls}
        if len(block.problems) > before:
            return []
        return [each for call in calls for each in self._with_code(self._read(call, block), block.problems)]

    def _listed(self, item: Value, block: Block) -> tuple[Value, ...]:
        """An item of the list, or the items that a macro gives in its place."""
        if not isinstance(item, MacroValue):
            return (item,)
        made = expand(Fragment(text=item.text, location=item.location, dialect=block.dialect), self.scope).text
        if not made.strip():
            return ()
        listed = read_value("audits", Fragment(text=f"({made})", location=item.location, dialect=block.dialect))
        return tuple(each for given in as_items(listed) for each in as_items(given))

    def _read(self, call: CallValue, block: Block) -> AuditCall:
        arguments: dict[str, str] = {}
        flags: dict[str, bool | None] = {}
        for key, value in call.values.items():
            text = _argument_text(value, self.scope, block.dialect, f"{call.name}({key})")
            if key in {"blocking", "skip"}:
                flags[key] = _flag(call.name, key, text, value.location)
            else:
                arguments[key] = translate_argument(text, block.dialect, self.dialect, value.location)
        return AuditCall(
            name=call.name,
            arguments=MappingProxyType(arguments),
            blocking=flags.get("blocking"),
            skip=flags.get("skip"),
            location=call.location,
        )

    def _with_code(self, call: AuditCall, problems: list[LaminaError]) -> list[AuditCall]:
        """The call with its query where it is known already; nothing when something is wrong with it."""
        builtin = find_builtin(call.name)
        try:
            if builtin is not None:
                return [replace(call, code=_builtin_code(call, *builtin, self.dialect))]
            if call.name in self.inline:
                code = audit_code(self.inline[call.name], call, self.dialect, self.kind, self.surroundings)
                return [replace(call, code=code)]
        except LaminaError as error:
            problems.extend(error.problems)
            return []
        return [call]


def _argument_text(value: Value, scope: MacroScope, dialect: str, shown: str) -> str:
    """The SQL of an argument with its macros expanded; time variables stay in it."""
    if not isinstance(value, MacroValue) and "@" not in sql_of(value):
        return sql_of(value)
    expansion = expand(Fragment(text=sql_of(value), location=value.location, dialect=dialect), scope)
    if expansion.is_time_dependent:
        raise BadPropertyValue(
            f"`{shown}` depends on the interval in more than a value",
            hint="hand over the time variable as an argument, and decide in the query of the audit",
            location=value.location,
        )
    return expansion.text


def _flag(name: str, key: str, text: str, location: Location) -> bool | None:
    written = text.strip().strip("'\"`").lower()
    if written == "null":
        return None
    if written not in {"true", "false"}:
        raise BadAudit(f"`{key}` of audit `{name}` must be `true` or `false`, not `{text}`", location=location)
    return written == "true"


# --- queries ----------------------------------------------------------------------------------------------------------
def _builtin_code(call: AuditCall, audit: BuiltinAudit, is_blocking: bool, dialect: str) -> AuditCode:
    _check_arguments(call, audit.required, (*audit.required, *audit.optional))
    text = audit.build(builtin_arguments(call.name, call.arguments, dialect, call.location))
    source = Fragment(text=text, location=call.location or Location())
    return replace(_ONLY_THE_MODEL, query=kept_text(source, text), is_blocking=is_blocking)


def audit_code(
    definition: AuditDefinition, call: AuditCall, dialect: str, kind: Kind, surroundings: Surroundings
) -> AuditCode:
    """The query of an audit with the arguments of a call in it, tables still as written. Raises everything wrong."""
    _check_parameters(definition, call, surroundings)
    query = definition.query
    given = {
        name: translate_argument(text, dialect, query.dialect, call.location) for name, text in call.arguments.items()
    }
    parameters = {**definition.defaults, **given}
    scope = replace(
        macro_scope(surroundings, definition.blueprint, kind=kind.name, definitions=definition.definitions),
        locals=MappingProxyType(parameters),
        this_model=THIS_MODEL,
    )
    expansion = expand(query, scope)
    problems: list[LaminaError] = []
    shape = analyse_expansion(query, expansion, problems)
    raise_all(problems)
    unknown = sorted(name for name in expansion.times_used if not name.startswith(("execution", "latest")))
    if unknown and definition.is_standalone:
        raise BadAudit(
            f"audit `{call.name}` uses `@{unknown[0]}`, and a standalone audit is about no interval",
            hint="`@execution_ds` and the like can be used",
            location=call.location,
        )
    if unknown and isinstance(kind, _TIMELESS):
        raise BadAudit(
            f"audit `{call.name}` uses `@{unknown[0]}`, which a model of kind `{kind.name}` does not have",
            hint="such a model is computed whole; `@execution_ds` and the like exist for all models",
            location=call.location,
        )
    uses = Uses()
    uses.add(expansion)
    texts = [query.text, *parameters.values(), *(each.text for each in definition.definitions)]
    references = shape.references if shape is not None else ()
    return AuditCode(
        query=kept_text(query, expansion.text, is_time_dependent=expansion.is_time_dependent),
        parameters=MappingProxyType(parameters),
        references=MappingProxyType(
            {
                each.name.to_text(): NodeName(".".join(each.name.parts))
                for each in references
                if not each.is_path and each.name.parts != (THIS_MODEL,)
            }
        ),
        macros=macro_environment(uses, texts, definition.definitions, surroundings, definition.blueprint),
        is_blocking=definition.is_blocking,
        is_skipped=definition.is_skipped,
    )


def _check_parameters(definition: AuditDefinition, call: AuditCall, surroundings: Surroundings) -> None:
    names = macro_names(definition.query)
    predefined = TIME_NAMES | PREDEFINED
    defined = {name.lower() for each in definition.definitions for name in _DEFINED.findall(each.text)}
    known = {*predefined, *defined, *surroundings.variables, *definition.blueprint}
    required = sorted(names.variables - known - set(definition.defaults))
    if names.functions & set(surroundings.functions):
        # A macro may ask for any argument by its name.
        accepted = {*names.mentioned, *definition.defaults, *call.arguments}
    else:
        accepted = {*names.mentioned, *definition.defaults}
    shown = (*required, *sorted(definition.defaults))
    _check_arguments(call, required, sorted(accepted - predefined - names.functions), shown)


def _check_arguments(
    call: AuditCall, required: Sequence[str], accepted: Sequence[str], shown: Sequence[str] | None = None
) -> None:
    """Raise for every argument that is missing or that the audit does not have."""
    listed = accepted if shown is None else shown
    takes = f"it takes {_listed(listed)}" if listed else "it takes no arguments"
    problems: list[LaminaError] = []
    for name in call.arguments:
        if name not in accepted:
            near = near_names(name, listed)
            hint = f"did you mean `{near[0]}`?" if near else takes
            problems.append(
                BadAudit(f"audit `{call.name}` has no argument `{name}`", hint=hint, location=call.location)
            )
    problems.extend(
        BadAudit(f"audit `{call.name}` needs the argument `{name}`", hint=takes, location=call.location)
        for name in required
        if name not in call.arguments
    )
    raise_all(problems)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


# --- binding ----------------------------------------------------------------------------------------------------------
def bind_audits(
    drafts: Sequence[Draft],
    definitions: Sequence[AuditDefinition],
    surroundings: Callable[[], Surroundings],
    remember: Remember,
) -> list[Draft]:
    """The drafts with the queries of the audits they name; raises every unknown name and wrong argument at once.

    `remember` may give a query that an earlier load has made of the same definition and arguments; only what it does
    not know asks for the surroundings.
    """
    problems: list[LaminaError] = []
    by_name: dict[str, AuditDefinition] = {}
    for definition in definitions:
        if definition.name in by_name:
            problems.append(_defined_twice(by_name[definition.name], definition.name, definition.location))
        by_name[definition.name] = definition

    def bound(call: AuditCall, model: Model) -> AuditCall | None:
        definition = by_name.get(call.name)
        if call.code is not None:
            # Built-in names are refused where audits are defined, so this one stands in the model's own file.
            if definition is not None:
                problems.append(_defined_twice(definition, call.name, call.code.query.source.location))
            return call
        if definition is None:
            problems.append(_unknown(call, model, by_name))
            return None
        if definition.is_standalone:
            problems.append(_attached(call, model))
            return None

        def compute() -> AuditCode:
            return audit_code(definition, call, model.dialect, model.kind, surroundings())

        key = (definition, sorted(call.arguments.items()), model.dialect, model.kind.name)
        try:
            return replace(call, code=remember(key, compute))
        except LaminaError as error:
            for problem in error.problems:
                problem.node = problem.node or model.name
            problems.extend(error.problems)
            return None

    found: list[Draft] = []
    for draft in drafts:
        if not draft.model.audits:
            found.append(draft)
            continue
        calls = (bound(call, draft.model) for call in draft.model.audits)
        audits = tuple(call for call in calls if call is not None)
        found.append(replace(draft, model=replace(draft.model, audits=audits)))
    raise_all(problems)
    return found


def _attached(call: AuditCall, model: Model) -> BadAudit:
    return BadAudit(
        f"audit `{call.name}` is standalone and cannot be attached to a model",
        hint="remove it here: it is asked by itself; or remove `standalone true` from the audit",
        location=call.location,
        node=model.name,
    )


def _unknown(call: AuditCall, model: Model, definitions: Mapping[str, AuditDefinition]) -> BadAudit:
    known = [*BUILTIN_AUDITS, *(f"{name}{NON_BLOCKING}" for name in BUILTIN_AUDITS), *definitions]
    near = near_names(call.name, known)
    hint = f"did you mean `{near[0]}`?" if near else f"define it in a file in `audits/`: `AUDIT (name {call.name});`"
    return BadAudit(f"there is no audit `{call.name}`", hint=hint, location=call.location, node=model.name)
