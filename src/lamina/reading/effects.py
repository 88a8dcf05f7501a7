"""Which settings of a model mean nothing to its kind, and what is said about them.

Everything that is not listed here has an effect or is refused; `tests/unit/app/test_every_setting.py` sets each
property of each kind and looks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamina.graph.kinds import (
    Embedded,
    Full,
    IncrementalByPartition,
    IncrementalByUniqueKey,
    IncrementalUnmanaged,
    Kind,
    ScdType2ByColumn,
    ScdType2ByTime,
    Seed,
    View,
    folds,
    may_be_restated,
    needs_partitions,
)
from lamina.graph.spans import uses_span
from lamina.reading.without_effect import RUN_DESPITE_UNCHANGED, no_effect, no_effect_yet
from lamina.sql.header.values import sql_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lamina.errors import Location
    from lamina.graph.dag import Notice
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.sql.header.values import Property

DOCUMENTATION = ("owner", "grain", "grains", "project", "references")
"""Properties that only tell people something; they are recorded with the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Properties that have no effect for some kinds, all if none is named; `unless` is what happens anyway."""

    keys: tuple[str, ...]
    why: str
    kinds: tuple[type, ...] = ()
    unless: str | None = None

    def applies(self, kind: Kind, given: Property) -> bool:
        """Whether the property has no effect although it asks for something."""
        if given.key not in self.keys or (self.kinds and not isinstance(kind, self.kinds)):
            return False
        return self.unless is None or (text_of(given.value) or sql_of(given.value)).lower() != self.unless


_WHOLE = "a model of this kind is computed whole, not by units of time"
_PARENTS = "a model of this kind is built once everything above it is, and follows whatever changes there"
_ANEW = "the table of a model of this kind is made anew each time"
_NO_TABLE = "a model of this kind has no table"
_INSIDE = "its query is put into the models that read it, and theirs count"
HEADER = (
    Rule(keys=("gateway",), why="there are no gateways here; `targets` in lamina.yaml say where tables live"),
    Rule(keys=("grants", "grants_target_layer"), why="give rights in statements of ON_VIRTUAL_UPDATE"),
    Rule(keys=("physical_version",), why="the version of a table follows from what the model is"),
    Rule(keys=("optimize_query",), why="queries are sent as they are written", unless="false"),
    Rule(keys=("formatting",), why="nothing reformats files here"),
    Rule(keys=("ignored_rules",), why="there is no linter whose rules could be ignored"),
    Rule(keys=("virtual_environment_mode",), why="every environment is made of views over versions", unless="full"),
    Rule(keys=("retention",), why="what nothing shows any more is kept until it is cleaned up"),
    Rule(keys=("interval_unit", "allow_partials", "end"), why=_WHOLE, kinds=(Full, View, Embedded, Seed)),
    Rule(keys=("wait_for_parents", "follow_rewrites"), why=_PARENTS, kinds=(Full, View, Embedded, Seed)),
    Rule(keys=("table_format", "storage_format", "seed_copy"), why=_NO_TABLE, kinds=(View, Embedded)),
    Rule(keys=("replay_on_change", "query_change_backfill"), why=_NO_TABLE, kinds=(View, Embedded)),
    Rule(keys=("replay_on_change", "query_change_backfill"), why=_ANEW, kinds=(Full, Seed), unless="full"),
    Rule(
        keys=("physical_properties", "table_properties"),
        why=f"{_NO_TABLE}; `virtual_properties` are those of the view that readers see",
        kinds=(View,),
    ),
    Rule(
        keys=("physical_properties", "table_properties", "virtual_properties", "session_properties"),
        why=_INSIDE,
        kinds=(Embedded,),
    ),
    Rule(keys=("cron", "cron_tz"), why=_INSIDE, kinds=(Embedded,)),
)
"""What is said about properties of a header."""

_FOLDING = (IncrementalByUniqueKey, IncrementalByPartition, IncrementalUnmanaged, ScdType2ByTime, ScdType2ByColumn)
IN_KIND = (
    Rule(keys=("batch_size",), why="the rows of a seed are loaded at once", kinds=(Seed,)),
    Rule(
        keys=("auto_restatement_intervals",),
        why="a model of this kind has no intervals that could be restated",
        kinds=_FOLDING,
    ),
)
"""What is said about properties inside of `kind X (…)`."""

_OF_TIME = ("batch_size", "lookback", "end", "interval_unit", "allow_partials", "wait_for_parents")
_REWRITES = "follow_rewrites"
_WITHOUT_TIME = {*_OF_TIME, _REWRITES}


def unheeded(node: str, kind: Kind, header: Iterable[Property], in_kind: Iterable[Property]) -> Iterator[Notice]:
    """A warning for every property of a model's own file that nothing heeds."""
    header, in_kind = tuple(header), tuple(in_kind)
    for rules, properties in ((HEADER, header), (IN_KIND, in_kind)):
        for given in properties:
            rule = next((each for each in rules if each.applies(kind, given)), None)
            if rule is not None:
                yield no_effect(f"`{given.key}` of `{node}`", rule.why, given.location, node)
    for given in header:
        if given.key == "run_despite_unchanged":
            why = "the model is built when it or what it reads changed"
            yield no_effect_yet(RUN_DESPITE_UNCHANGED, f"`{given.key}` of `{node}`", why, given.location, node)
    yield from _restatements(node, {each.key: each for each in in_kind})


def _restatements(node: str, in_kind: Mapping[str, Property]) -> Iterator[Notice]:
    given, cron = in_kind.get("auto_restatement_intervals"), in_kind.get("auto_restatement_cron")
    if given is not None and cron is None:
        why = "without `auto_restatement_cron` nothing is restated"
        yield no_effect(f"`{given.key}` of `{node}`", why, given.location, node)
    disabled = in_kind.get("disable_restatement")
    if cron is not None and disabled is not None and (text_of(disabled.value) or sql_of(disabled.value)) == "true":
        why = "`disable_restatement` protects what the model holds"
        yield no_effect(f"`{cron.key}` of `{node}`", why, cron.location, node)


def without_time(models: Mapping[NodeName, Model], model: Model, given: Mapping[str, Location]) -> Iterator[Notice]:
    """What is about time, of a model whose query asks about none; known once the models that it embeds are."""
    if not folds(model.kind) or given.keys().isdisjoint(_WITHOUT_TIME) or uses_span(models, model):
        return
    for key in _OF_TIME:
        if key in given:
            why = "its query asks about no time (`@start_ds`, `@end_ds` and the like), so one run computes everything"
            yield no_effect(f"`{key}` of `{model.name}`", why, given[key], model.name)
    if _REWRITES in given and needs_partitions(model.kind) and may_be_restated(model.kind):
        why = "its query asks about no time, so every run replaces all partitions that occur, whatever changed above"
        yield no_effect(f"`{_REWRITES}` of `{model.name}`", why, given[_REWRITES], model.name)
