"""Whether recorded rows are still where they lie, and how they are brought back.

Spark reads a folder that is gone as an empty one, so it is looked for before anything is read. Looking costs one
question to the file system per model, and one per partition only for what is about to be read or computed again. Rows
that are gone are computed anew under a name that was never used; what keeps its history cannot be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from lamina.app.ports.loaded import LoadRequest
from lamina.app.rendering.key_ranges import may_hold
from lamina.errors import StateMissing, StorageMissing, raise_all
from lamina.graph.formats import PARQUET, find_format
from lamina.graph.kinds import Embedded, IncrementalByTimeRange, View, has_intervals, stores_rows
from lamina.identity.naming import next_name, physical_schema, version_folder
from lamina.planning.reach import stretch_read
from lamina.planning.replay import keeps_history

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from lamina.app.ports.engine import Engine
    from lamina.app.ports.machine import Folders
    from lamina.app.ports.state import StateStore
    from lamina.graph.dag import Graph
    from lamina.graph.formats import TableFormat
    from lamina.graph.model import AuditCall, Model
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.planning.inputs import PlanInputs
    from lamina.planning.steps import Plan, Step
    from lamina.timeline.interval import Instant

Stretch: TypeAlias = "tuple[Instant | None, Instant | None]"
Stretches: TypeAlias = "Mapping[NodeName, Stretch]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """State, and the folders it names."""

    store: StateStore
    folders: Folders
    ready_engine: Callable[[], Engine] | None = None
    """Makes an engine ready, which looks for folders that cannot be seen without; None where none must be started."""
    opens: Callable[[Model, str], bool] | None = None
    """Whether an engine can tell the columns of a model's table; None where none must be started."""

    def missing(
        self,
        models: Mapping[NodeName, Model],
        physical: Mapping[NodeName, PhysicalName],
        *,
        looks_deeper: bool,
        stretches: Stretches | None = None,
    ) -> dict[NodeName, tuple[str, ...]]:
        """The models whose rows are gone, in whole or in part, with the places where something is missing.

        Unless it `looks_deeper`, a model of which anything is there counts as there; with `stretches` of time, only
        partitions that may hold rows of these are looked for.
        """
        stored = {name: place for name, place in physical.items() if stores_rows(models[name].kind)}
        in_folders = {name: place for name, place in stored.items() if _format(models[name]) == PARQUET}
        folders = self._folders_to_look_for(models, in_folders, stretches or {}, looks_deeper)
        tables = {name: place for name, place in stored.items() if _lies_in_one_folder(models[name])}
        return self._folders_missing(folders, stored) | self._tables_missing(tables)

    def missing_far(
        self, models: Mapping[NodeName, Model], physical: Mapping[NodeName, PhysicalName]
    ) -> dict[NodeName, tuple[str, ...]]:
        """The same, for folders that cannot be seen without an engine."""
        far = {name: place for name, place in physical.items() if not self.folders.knows(_schema(place))}
        if not far:
            return {}
        return self.missing(models, far, looks_deeper=True) | self.tables_missing_far(models, far)

    def tables_missing_far(
        self, models: Mapping[NodeName, Model], physical: Mapping[NodeName, PhysicalName]
    ) -> dict[NodeName, tuple[str, ...]]:
        """The models whose tables have a history and are gone, as far as only an engine can tell.

        Reading such a table fails, so only who is about to bring it back has to know beforehand. Catalogs may put
        tables elsewhere than in a folder of their name, so a table is gone only if it cannot be opened either.
        """
        stored = {
            name: place
            for name, place in physical.items()
            if stores_rows(models[name].kind) and _lies_in_one_folder(models[name])
        }
        if self.opens is None or not stored:
            return {}
        heads = self.store.load(LoadRequest(heads=tuple(set(stored.values())), facts_of_pointers=False)).heads
        by_schema: dict[str, dict[NodeName, str]] = {}
        for name, place in stored.items():
            if place not in heads:
                continue
            schema, _, table = heads[place].generation.rpartition(".")
            if not self.folders.knows(schema):
                by_schema.setdefault(schema, {})[name] = table
        found: dict[NodeName, tuple[str, ...]] = {}
        for schema, tables in by_schema.items():
            if self._one_gone(schema, list(tables.values())) is not None:
                for name, table in tables.items():
                    folder = self._one_gone(schema, [table])
                    if folder is not None and not self.opens(models[name], f"{schema}.{table}"):
                        found[name] = (folder,)
        return found

    def _folders_to_look_for(
        self,
        models: Mapping[NodeName, Model],
        stored: Mapping[NodeName, PhysicalName],
        stretches: Stretches,
        looks_deeper: bool,
    ) -> dict[NodeName, list[str]]:
        if not looks_deeper:
            # A version that began as a copy may have no folder of its own; its manifest tells.
            stored = {
                name: place
                for name, place in stored.items()
                if self.folders.absent(_schema(place), [version_folder(place, self.store.store_id)])
            }
        elif self.ready_engine is None:
            stored = {name: place for name, place in stored.items() if self.folders.knows(_schema(place))}
        if not stored:
            return {}
        places = tuple(set(stored.values()))
        heads = tuple(stored[name] for name in stretches if name in stored)
        loaded = self.store.load(LoadRequest(manifests=places, heads=heads, facts_of_pointers=False))
        found: dict[NodeName, list[str]] = {}
        for name, place in stored.items():
            manifest, head, kind = loaded.manifests.get(place, {}), loaded.heads.get(place), models[name].kind
            if head is not None and isinstance(kind, IncrementalByTimeRange):
                is_read = may_hold(head.shape, kind.time_column.name, *stretches.get(name, (None, None)))
                manifest = {key: folder for key, folder in manifest.items() if is_read(key)}
            found[name] = list(manifest.values())
        return found

    def _folders_missing(
        self, folders: Mapping[NodeName, list[str]], physical: Mapping[NodeName, PhysicalName]
    ) -> dict[NodeName, tuple[str, ...]]:
        found: dict[NodeName, tuple[str, ...]] = {}
        far: dict[str, list[NodeName]] = {}
        for name, wanted in folders.items():
            schema = _schema(physical[name])
            if self.folders.knows(schema):
                found[name] = self.folders.absent(schema, wanted)
            else:
                far.setdefault(schema, []).append(name)
        for schema, names in far.items():
            # One question about all of them; whose they are is asked only when some are gone.
            if self._one_gone(schema, [folder for name in names for folder in folders[name]]) is not None:
                gone = {name: self._one_gone(schema, folders[name]) for name in names}
                found |= {name: (place,) for name, place in gone.items() if place is not None}
        return {name: places for name, places in found.items() if places}

    def _one_gone(self, schema: str, folders: list[str]) -> str | None:
        return None if self.ready_engine is None or not folders else self.ready_engine().absent(schema, folders)

    def _tables_missing(self, stored: Mapping[NodeName, PhysicalName]) -> dict[NodeName, tuple[str, ...]]:
        if not stored:
            return {}
        heads = self.store.load(LoadRequest(heads=tuple(set(stored.values())), facts_of_pointers=False)).heads
        found: dict[NodeName, tuple[str, ...]] = {}
        for name, place in stored.items():
            if place in heads:
                # Tables may have another catalog than the views over them.
                schema, _, table = heads[place].generation.rpartition(".")
                found[name] = self.folders.absent(schema, [table])
        return {name: places for name, places in found.items() if places}

    def lending(
        self, models: Mapping[NodeName, Model], physical: Mapping[NodeName, PhysicalName]
    ) -> dict[NodeName, TableFormat]:
        """The models whose tables may read files of other tables, without a folder that would tell."""
        found = {name: _format(models[name]) for name in physical if stores_rows(models[name].kind)}
        return {name: one for name, one in found.items() if one is not None and one.keeps_history and one.can_clone}

    def missing_files(
        self, engine: Engine, lending: Mapping[NodeName, TableFormat], physical: Mapping[NodeName, PhysicalName]
    ) -> dict[NodeName, tuple[str, ...]]:
        """Files that are gone of those that the tables of these models read."""
        places = {name: physical[name] for name in lending}
        heads = self.store.load(LoadRequest(heads=tuple(set(places.values())), facts_of_pointers=False)).heads
        found: dict[PhysicalName, tuple[str, ...]] = {}
        for table_format in {each.name: each for each in lending.values()}.values():
            of_format = {places[name] for name, each in lending.items() if each == table_format}
            found |= engine.missing_files(table_format, [heads[place] for place in sorted(of_format) if place in heads])
        return {name: found[place] for name, place in places.items() if place in found}

    def looked_for(
        self, inputs: PlanInputs, named: Callable[[tuple[str, ...]], set[NodeName]], repairs: frozenset[NodeName]
    ) -> PlanInputs:
        """The inputs of a plan, once rows that are gone are told or, where somebody asked for that, put down to be
        computed again; `named` finds the models of texts, and `repairs` are known to have lost rows.
        """
        flags, models = inputs.flags, inputs.graph.models
        if not inputs.environment.number and not inputs.baseline.number:
            self.check_state(models)
        is_asked = bool(flags.force or flags.restate or flags.reset or repairs)
        published, reset = _published(inputs), named(flags.reset)
        missing = dict.fromkeys(repairs, ()) | replace(self, ready_engine=None).missing(
            models, published, looks_deeper=is_asked
        )
        if self.ready_engine is not None:
            # Whoever asks for rows anew has an engine started for them, which can look where nobody else can.
            anew = {*models} if flags.force else reset | named(flags.restate)
            missing |= self.missing_far(models, {name: place for name, place in published.items() if name in anew})
        if not missing:
            return inputs
        wanted = {*missing} if flags.force or repairs else missing.keys() & (reset | named(flags.restate))
        # What only other environments show is theirs to miss: here it has not been built.
        shown = {*inputs.environment.places.values(), *inputs.baseline.places.values()}
        wanted |= {name for name in missing if inputs.physical[name] not in shown}
        back = {name for name in wanted if name in reset or not keeps_history(models[name])}
        if not repairs:
            left = {name: places for name, places in missing.items() if name not in back}
            _check(left, models, inputs.environment.environment)
        versions = tuple((name, inputs.versions[name].version) for name in inputs.graph.models)
        lives = self.store.load(LoadRequest(versions=versions, facts_of_pointers=False)).facts
        return made_again(inputs, back, lives)

    def check_read(self, inputs: PlanInputs, plan: Plan) -> None:
        """Look for every partition of what a plan is about to read, or to keep, or asks audits about."""
        models = inputs.graph.models
        computed = [step for step in plan.steps if step.batches and step.node in models]
        asked = {step.node for step in plan.steps if step.questions and step.node in models}
        audited = [models[name] for name in {*asked, *(step.node for step in computed)}]
        asked |= {other for model in audited for other in read_by_audits(model) if other != model.name}
        asked |= {
            other
            for model in models.values()
            for call in model.standalone_audits
            if call.name in plan.standalone
            for other in _named_in(call)
        }
        wanted = {*asked, *(name for step in computed for name in (step.node, *models[step.node].reads))}
        # Audits are asked about all time.
        whole = _read_by(models, asked)
        stretches = {name: time for name, time in _stretches(models, computed).items() if name not in whole}
        self.check_rows(models, _published(inputs), wanted, inputs.environment.environment, stretches)

    def check_rows(
        self,
        models: Mapping[NodeName, Model],
        physical: Mapping[NodeName, PhysicalName],
        wanted: Iterable[NodeName],
        environment: str,
        stretches: Stretches | None = None,
    ) -> None:
        """Raise `StorageMissing` when rows of these models, or of what those that are views show, are gone."""
        read = _read_by(models, wanted)
        there = {name: place for name, place in physical.items() if name in read}
        _check(self.missing(models, there, looks_deeper=True, stretches=stretches), models, environment)

    def check_state(self, models: Iterable[NodeName]) -> None:
        """Raise `StateMissing` when nothing is recorded, and tables that Lamina made are where it would make some."""
        places = () if self._knows_anything() else self.folders.left_behind(sorted(set(map(physical_schema, models))))
        if places:
            raise _state_missing(places, "move these folders away first")

    def check_catalog(self, engine: Engine, names: Iterable[PhysicalName]) -> None:
        """The same where only the catalog tells: versions that would be made for the first time are there already."""
        found = () if self._knows_anything() else engine.left_behind(tuple(names))
        if found:
            schemas = sorted({_schema(name) for name in found})
            raise _state_missing(schemas, "drop these schemas first, in which nothing but Lamina's own tables lie")

    def _knows_anything(self) -> bool:
        known = self.store.load(LoadRequest(all_environments=True, facts_of_pointers=False)).revisions
        return bool(known or self.store.history(limit=1))


def _check(missing: Mapping[NodeName, tuple[str, ...]], models: Mapping[NodeName, Model], environment: str) -> None:
    raise_all([rows_gone(models[name], places, environment) for name, places in sorted(missing.items())])


def rows_gone(model: Model, places: tuple[str, ...], environment: str, *, are_lent: bool = False) -> StorageMissing:
    """The error for a model of whose folders some are gone, or of files that other tables may have lent it."""
    what = f"`{places[0]}` is" if len(places) == 1 else f"`{places[0]}` and {len(places) - 1} more are"
    repair = f"`lamina state repair {environment}`"
    back = (
        f"{repair} puts the rows together again where they can be found"
        if are_lent
        else f"`lamina build {environment} --reset {model.name}` begins from scratch, and its history is lost"
        if keeps_history(model)
        else f"{repair} computes the rows again"
    )
    return StorageMissing(
        f"rows of `{model.name}` are gone: {what} not there",
        hint=f"put back what was there, or: {back}",
        location=model.location,
        node=model.name,
    )


def _state_missing(places: Iterable[str], to_begin_anew: str) -> StateMissing:
    return StateMissing(
        f"the state is empty, and tables that Lamina has made are in {', '.join(f'`{place}`' for place in places)}",
        hint="put the state back from a backup, or look at `state` in lamina.yaml; to begin anew, " + to_begin_anew,
    )


def made_again(inputs: PlanInputs, gone: Iterable[NodeName], taken: Collection[PhysicalName]) -> PlanInputs:
    """The inputs as if models whose rows are gone had never been built: under a name that is not taken, or the one
    that the baseline shows. Views over them are made anew too, because they name what they read.
    """
    targets: dict[NodeName, PhysicalName] = {}
    lost = {inputs.physical[name] for name in gone}
    for name in inputs.graph.models:
        is_view_of = isinstance(inputs.graph.models[name].kind, View) and not targets.keys().isdisjoint(
            _named_by(inputs.graph, name)
        )
        if name in inputs.physical and (inputs.physical[name] in lost or is_view_of):
            version = inputs.versions[name].version
            shown = inputs.baseline.pointers.get(name)
            is_there = shown is not None and shown.version == version and shown.physical not in {None, *lost}
            new = next_name(name, version, {*taken, *inputs.facts, inputs.physical[name]})
            targets[name] = shown.physical if is_there and shown and shown.physical and not is_view_of else new
    return replace(inputs, physical={**inputs.physical, **targets})


def _named_by(graph: Graph, name: NodeName) -> set[NodeName]:
    """What the stored query of a view names: its parents, looked through embedded models."""
    found: set[NodeName] = set()
    for parent in graph.models[name].reads:
        if parent in graph.models and isinstance(graph.models[parent].kind, Embedded):
            found |= _named_by(graph, parent)
        else:
            found.add(parent)
    return found


def read_by_audits(model: Model) -> frozenset[NodeName]:
    """What the queries of a model's audits name, those of standalone ones that know of it too."""
    return frozenset(name for call in (*model.audits, *model.standalone_audits) for name in _named_in(call))


def _named_in(call: AuditCall) -> Iterable[NodeName]:
    return call.code.references.values() if call.code is not None else ()


def _read_by(models: Mapping[NodeName, Model], names: Iterable[NodeName]) -> set[NodeName]:
    """Models whose rows are read to answer for these: themselves, or what is beneath where they are views."""
    found: set[NodeName] = set()
    to_look_at = list(names)
    while to_look_at:
        name = to_look_at.pop()
        if name in models and name not in found:
            found.add(name)
            if not stores_rows(models[name].kind):
                to_look_at += models[name].reads
    return found


def _stretches(models: Mapping[NodeName, Model], steps: Iterable[Step]) -> dict[NodeName, Stretch]:
    """The time of models outside of which the batches of some steps read and keep nothing; None is no bound."""
    found: dict[NodeName, Stretch] = {}
    for step in steps:
        model = models[step.node]
        names = _read_by(models, (step.node, *model.reads))
        for time in (batch.time for batch in step.batches):
            own: Stretch = (time.start, time.end) if time is not None and has_intervals(model.kind) else (None, None)
            for name in names:
                stretch = own
                if name != step.node:
                    is_bounded = time is not None and name in model.windows
                    stretch = stretch_read(model, name, time) if time is not None and is_bounded else (None, None)
                found[name] = stretch if name not in found else _around(found[name], stretch)
    return found


def _around(one: Stretch, other: Stretch) -> Stretch:
    first, last = (tuple(bound for bound in bounds if bound is not None) for bounds in zip(one, other, strict=True))
    return min(first) if len(first) == 2 else None, max(last) if len(last) == 2 else None


def _published(inputs: PlanInputs) -> dict[NodeName, PhysicalName]:
    """The nodes whose versions have published something."""
    facts = inputs.facts
    return {name: place for name, place in inputs.physical.items() if place in facts and facts[place].head_sequence}


def _format(model: Model) -> TableFormat | None:
    return find_format(model.table_format)


def _lies_in_one_folder(model: Model) -> bool:
    """Whether the model's table has a history, and its files lie where its catalog puts tables."""
    table_format = _format(model)
    is_elsewhere = any(key.lower().endswith(".path") for key in model.physical_properties)
    return table_format is not None and table_format.keeps_history and not is_elsewhere


def _schema(physical: PhysicalName) -> str:
    return physical.rpartition(".")[0]
