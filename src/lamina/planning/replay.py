"""Models that keep their history: a new version begins with the rows of the one before it and goes on from there.

What only earlier runs knew cannot be computed again, so a changed model of these kinds is not built anew. Its new
version is a copy of what the environment shows, and the next run is the first one by the new definition.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

from lamina.graph.kinds import (
    IncrementalUnmanaged,
    ScdType2ByColumn,
    ScdType2ByTime,
    folds,
    may_be_restated,
    stores_rows,
    with_rules_of,
)
from lamina.graph.spans import uses_span
from lamina.identity.fingerprint import config_hash
from lamina.identity.naming import next_name
from lamina.planning.inputs import Copy
from lamina.timeline.interval import EMPTY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.environments.pointers import Pointer
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.planning.inputs import PlanInputs, VersionFacts
    from lamina.planning.reasons import Difference


def keeps_history(model: Model) -> bool:
    """Whether a change of the model must not have it built anew; the table of other kinds is made anew each time."""
    policy = getattr(model.kind, "policy", None)
    if policy is None or not stores_rows(model.kind):
        return False
    if policy.forward_only:
        return not (folds(model.kind) and model.replay_on_change == "full")
    return (model.replay_on_change or "full") != "full"


def with_default_replay(inputs: PlanInputs, model: Model, difference: Difference) -> Model:
    """The model as its own change is treated: where it does not say, the project's `replay_on_change` counts.

    A model that is only reached by a change above it has not changed itself, and the default says nothing about it.
    """
    is_asked = model.replay_on_change is None and inputs.default_replay != "full" and hasattr(model.kind, "policy")
    if not is_asked or not difference.is_version_new or difference.reason == "upstream_changed":
        return model
    return replace(model, replay_on_change=inputs.default_replay)


def restating_begins_anew(model: Model) -> bool:
    """Whether a restatement may build a table that is the sum of its runs anew.

    One that keeps its history gives it up for a reset only, unless the model itself lifts the protection of its kind.
    """
    lifts = isinstance(model.kind, IncrementalUnmanaged | ScdType2ByTime | ScdType2ByColumn)
    return may_be_restated(model.kind) and (lifts or not keeps_history(model))


def continuations_of(
    inputs: PlanInputs,
    before: Mapping[NodeName, Pointer],
    differences: Mapping[NodeName, Difference],
    reset: frozenset[NodeName],
) -> Mapping[NodeName, Copy]:
    """The models of which a new version goes on where the former one ends.

    It is always a new table, also where the version was built before: that one knows nothing of what came since. Only
    what the baseline shows is shared, and only a reset begins anew.
    """
    found: dict[NodeName, Copy] = {}
    for name, difference in differences.items():
        model, pointer = with_default_replay(inputs, inputs.graph.models[name], difference), before.get(name)
        if pointer is None or pointer.physical is None or name in reset or _is_shared(inputs, name):
            continue
        former = inputs.facts.get(pointer.physical)
        is_changed = difference.is_version_new and keeps_history(model)
        if is_changed and has_runs(former) and why_not_continued(inputs, model, difference, former) is None:
            target = next_name(name, inputs.versions[name].version, inputs.facts)
            found[name] = Copy(node=name, source=pointer.physical, target=target)
    return found


def has_runs(facts: VersionFacts | None) -> TypeGuard[VersionFacts]:
    """Whether anything was ever put into the version's table."""
    return facts is not None and (facts.built_at is not None or not facts.recorded.is_empty)


def never_continued(model: Model) -> str | None:
    """Where no version of the model can go on with the rows of the one before it, whatever changed."""
    if not folds(model.kind):
        return f"for kind {model.kind.name}"
    if (model.replay_on_change or "forward") != "forward":
        return f"with `replay_on_change {model.replay_on_change}`"
    return None


def why_not_continued(inputs: PlanInputs, model: Model, difference: Difference, former: VersionFacts) -> str | None:
    """Where rows of the former version cannot stand in the new one; None where they can."""
    never = never_continued(model)
    if never is not None:
        return never
    if uses_span(inputs.graph.models, model) == former.recorded.is_empty:
        return "where runs over everything would follow runs that go on in time, or the other way round"
    if difference.reason == "upstream_changed":
        return None
    before = inputs.previous.get(model.name)
    is_own = difference.reason in {"query_changed", "config_changed"}
    if before is None or not is_own or not _fits_config(inputs, before, model):
        return "where keys, partitions or other settings changed"
    if difference.reason == "config_changed":
        return None
    return None if _columns_fit(before, model) else "where columns go away or are not known"


def _fits_config(inputs: PlanInputs, former: Model, model: Model) -> bool:
    """Whether keys, partitions, format and the like are those that the rows were written with."""
    as_now = replace(former, kind=with_rules_of(former.kind, model.kind))
    return config_hash(as_now) == inputs.versions[model.name].fingerprint.config


def _columns_fit(former: Model, model: Model) -> bool:
    """Whether the columns are known, and none of them comes or goes that the model does not allow to."""
    if not former.columns or not model.columns or not folds(model.kind):
        return False
    was, is_now = ({column.name.casefold() for column in each.columns or ()} for each in (former, model))
    policy = model.kind.policy
    may_lose = was <= is_now or policy.on_destructive_change != "error"
    return may_lose and (is_now <= was or policy.on_additive_change != "error")


def _is_shared(inputs: PlanInputs, name: NodeName) -> bool:
    """Whether the baseline shows the version already, or this environment does."""
    version = inputs.versions[name].version
    shown = (inputs.baseline.pointers.get(name), inputs.environment.pointers.get(name))
    return any(pointer is not None and pointer.version == version for pointer in shown)


def with_continuations(inputs: PlanInputs, continuations: Mapping[NodeName, Copy]) -> PlanInputs:
    """The inputs as they are once the new versions have begun."""
    if not continuations:
        return inputs
    targets = {name: each.target for name, each in continuations.items()}
    begun = {each.target: _begun(inputs, each) for each in continuations.values()}
    return replace(inputs, physical={**inputs.physical, **targets}, facts={**inputs.facts, **begun})


def _begun(inputs: PlanInputs, continuation: Copy) -> VersionFacts:
    """What will be known then: the same time is recorded, and nothing was run by the new definition yet.

    Where a rebuild was begun and did not come to its first run, the rows are still those of the runs before it.
    """
    version, source = inputs.versions[continuation.node], inputs.facts[continuation.source]
    return replace(
        source,
        physical=continuation.target,
        version=version.version,
        definition_id=version.definition_id,
        fingerprint=version.fingerprint,
        mark=0,
        head_sequence=1,
        covered=source.reopened if source.covered.is_empty else source.covered,
        reopened=EMPTY,
        built_at=None,
        reads=(),
        rewritten_at=0,
    )
