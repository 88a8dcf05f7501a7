"""Statements that follow an environment's views: whose, in what words, and what came of them.

They run after all views of a revision are set and before it counts as followed, by the definitions that the revision
points to. So a command that ends early, or a statement that fails, leaves a revision that is not followed: the next
command runs them again. Whatever they do must be safe to do twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.app.ports.engine import Statement, StatementsRequest
from lamina.app.ports.loaded import LoadRequest
from lamina.app.rendering.models import table_text, time_texts
from lamina.errors import StatementsFailed
from lamina.graph.dag import in_dependency_order
from lamina.graph.names import NodeName
from lamina.graph.sealing import values_hidden
from lamina.identity.fingerprint import virtual_key
from lamina.identity.naming import logical_name
from lamina.sql.builtin_audits import THIS_MODEL
from lamina.sql.macros.expand import expand
from lamina.sql.macros.scope import MacroScope
from lamina.sql.macros.times import substitute_times
from lamina.sql.names import make_table_name
from lamina.sql.statements import resolve_statement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lamina.app.ports.project import MacroLoader
    from lamina.app.ports.state import StateStore
    from lamina.environments.pointers import Revision
    from lamina.errors import LaminaError, LeaseHeld
    from lamina.graph.model import Model, SqlText
    from lamina.graph.names import Naming
    from lamina.timeline.interval import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """How an environment followed its revision: views changed, statements run by model, and statements that failed.

    It did not follow yet where that is `left_to` another command, which has the lease.
    """

    views: int = 0
    statements: Mapping[NodeName, int] = field(default_factory=lambda: MappingProxyType({}))
    failures: Mapping[NodeName, LaminaError] = field(default_factory=lambda: MappingProxyType({}))
    left_to: LeaseHeld | None = None


class Definitions:
    """Recorded definitions by their ids, each read from state once: they never change."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._known: dict[str, Model] = {}

    def of(self, wanted: Iterable[str]) -> Mapping[str, Model]:
        """Those of the wanted ones that are recorded."""
        lacking = tuple(sorted({one for one in wanted if one not in self._known}))
        if lacking:
            request = LoadRequest(definitions=lacking, facts_of_pointers=False)
            self._known.update(self._store.load(request).definitions)
        return self._known


def models_to_update(recorded: Definitions, series: Sequence[Revision]) -> dict[NodeName, Model]:
    """The models of the last revision whose views or statements changed anywhere in the series, parents first.

    The series begins with the last revision that was followed.
    """
    newest = series[-1]
    moved: set[NodeName] = set()
    redefined: dict[NodeName, set[str]] = {}
    for before, after in pairwise(series):
        for name, pointer in newest.pointers.items():
            old, new = before.pointers.get(name), after.pointers.get(name)
            if pointer.physical is None or old == new:
                continue
            if old is None or new is None or old.physical != new.physical:
                moved.add(name)
            else:
                redefined.setdefault(name, set()).update((old.definition_id, new.definition_id))
    further = {one for name, found in redefined.items() if name not in moved for one in found}
    wanted = further | {newest.pointers[name].definition_id for name in moved}
    if not wanted:
        return {}
    definitions = recorded.of(wanted)
    for name, found in redefined.items():
        keys = {virtual_key(definitions[one]) if one in definitions else None for one in found}
        if len(keys) > 1:
            moved.add(name)
    models = {
        name: definitions[newest.pointers[name].definition_id]
        for name in moved
        if newest.pointers[name].definition_id in definitions
    }
    return {name: model for name, model in in_dependency_order(models).items() if model.body.on_virtual_update}


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualNames:
    """What names mean in statements of one environment: its views."""

    revision: Revision
    unsuffixed: str
    naming: Naming

    def view(self, name: NodeName) -> str:
        """The view of a node as Spark SQL."""
        return table_text(logical_name(name, self.revision.environment, self.unsuffixed))

    def resolve(self, parts: tuple[str, ...]) -> str | None:
        """The view that a written name means; None when it is not a model's."""
        for name in (self.naming.full_name(make_table_name(parts)), NodeName(".".join(parts))):
            pointer = self.revision.pointers.get(name)
            if pointer is not None and pointer.physical is not None:
                return self.view(name)
        return None


def statements_request(
    model: Model, names: VirtualNames, execution: Instant, load_macros: MacroLoader
) -> StatementsRequest:
    """The statements of a model with everything filled in, as they are run after its view was set."""
    view = names.view(model.name)
    with values_hidden(lambda: (model,)):
        statements = tuple(
            Statement(
                sql=resolve_statement(text, names.resolve, {THIS_MODEL: view}),
                location=written.source.location,
                written=written.source,
            )
            for written in model.body.on_virtual_update
            if (text := _expanded(model, written, execution, load_macros).strip())
        )
    return StatementsRequest(
        node=model.name,
        environment=names.revision.environment,
        statements=statements,
        settings=model.session_properties,
    )


def _expanded(model: Model, text: SqlText, execution: Instant, load_macros: MacroLoader) -> str:
    times = time_texts(None, execution, model.dialect)
    if not text.is_time_dependent:
        return substitute_times(text.expanded, model.dialect, {**times, "this_model": THIS_MODEL})
    macros = model.body.macros
    scope = MacroScope(
        variables=macros.variables,
        blueprint=macros.blueprint,
        functions=load_macros(macros.modules),
        times=times,
        this_model=THIS_MODEL,
        definitions=macros.definitions,
        stage="promoting",
        model_kind=model.kind.name,
    )
    return expand(text.source, scope).text


def failed(model: Model, environment: str, error: LaminaError) -> StatementsFailed:
    """The error for a statement that did not run, which the engine has told."""
    return StatementsFailed(
        f"the view of `{model.name}` in environment `{environment}` is set, but a statement of its ON_VIRTUAL_UPDATE"
        f" did not run: {error.message}",
        hint=f"correct the statement, or what it needs, then run `lamina build {environment}`; until they go through,"
        " every build, run and promote runs the statements again",
        location=error.location or model.location,
        node=model.name,
    )
