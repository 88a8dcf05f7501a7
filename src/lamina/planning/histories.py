"""What no plan may do to the history that readers have: rebuild what keeps it, shorten it, or grow it anew in sight."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lamina.errors import HistoryLost, NotYetSupported
from lamina.graph.dag import Notice
from lamina.graph.kinds import folds, has_intervals
from lamina.graph.spans import uses_span
from lamina.planning.batches import runs_of
from lamina.planning.missing import asked_range, model_end
from lamina.planning.replay import has_runs, keeps_history, never_continued, why_not_continued, with_default_replay
from lamina.timeline.interval import EMPTY, Interval, Intervals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamina.errors import PlanError
    from lamina.graph.names import NodeName
    from lamina.planning.draft import Draft, Work
    from lamina.planning.inputs import VersionFacts


def losses(draft: Draft) -> Iterator[PlanError]:
    """Every model whose history the plan would take from readers, and what to do instead."""
    yield from _changes_that_cannot_go_on(draft)
    yield from _restated_although_kept(draft)
    yield from _shortened(draft)
    yield from _rebuilt_in_sight(draft)


def not_kept_yet(draft: Draft) -> Iterator[Notice]:
    """What asks for a way to go on after a change that this release does not have, said before anything changes."""
    inputs, by_default = draft.inputs, []
    if inputs.command == "run":
        return
    for name, model in inputs.graph.models.items():
        has_default = model.replay_on_change is None and inputs.default_replay != "full"
        asked = replace(model, replay_on_change=inputs.default_replay) if has_default else model
        why = never_continued(asked) if keeps_history(asked) and name not in draft.refused else None
        if why is not None and keeps_history(model) and never_continued(model) is not None:
            message = f"`{name}` asks to keep its history when it changes, {_NOT_YET} {why}: {_THEN}"
            yield Notice(code="LAM-WARN-049", message=message, node=name, location=model.location)
        elif why is not None:
            by_default.append((name, why))
    if by_default:
        (name, why), *others = by_default
        which = f"`{name}` and {len(others)} more" if others else f"`{name}`"
        message = (
            f"`replay_on_change: {inputs.default_replay}` of lamina.yaml has the histories of {which} kept when they "
            f"change, {_NOT_YET} {why}: {_THEN}"
        )
        yield Notice(code="LAM-WARN-049", message=message)


_NOT_YET = "which this release cannot do"
_THEN = "a change is refused, and `--reset` builds anew"


def _former(draft: Draft, name: NodeName) -> VersionFacts | None:
    """What the environment shows of a changed model now, if that has rows."""
    pointer = draft.before.get(name)
    former = draft.inputs.facts.get(pointer.physical) if pointer is not None and pointer.physical is not None else None
    return former if has_runs(former) and draft.differences[name].is_version_new else None


def _changes_that_cannot_go_on(draft: Draft) -> Iterator[NotYetSupported]:
    for name, difference in draft.differences.items():
        model, former = (
            with_default_replay(draft.inputs, draft.inputs.graph.models[name], difference),
            _former(draft, name),
        )
        is_settled = name in draft.continuations or name in draft.reset or draft.is_shared(name)
        is_settled |= name in draft.refused
        if former is None or is_settled or not keeps_history(model):
            continue
        why = why_not_continued(draft.inputs, model, difference, former)
        yield NotYetSupported(
            f"`{name}` changed and asks to keep its history (`replay_on_change` or `forward_only`), which this "
            f"release cannot do {why}",
            hint=f"take the change back to go on with the rows that are there, or make it in a model of another name, "
            f"which begins a history of its own while `{name}` goes on; `--reset {name}` builds it anew, and its "
            "history is lost",
            location=model.location,
            node=name,
        )


def _restated_although_kept(draft: Draft) -> Iterator[HistoryLost]:
    """A restatement of what is the sum of its runs could only begin anew, and so could one by a new definition."""
    for name in sorted(draft.restated & draft.chosen):
        if draft.is_protected(name):
            continue
        model = draft.inputs.graph.models[name]
        if folds(model.kind) and has_runs(draft.facts(name)) and not draft.begins_anew(name):
            yield HistoryLost(
                f"`{name}` keeps its history: restating it would build it anew from what its inputs hold now",
                hint=f"`--reset {name}` begins from scratch, and its history is lost; nothing else does",
                location=model.location,
                node=name,
            )
        elif name in draft.continuations:
            yield HistoryLost(
                f"`{name}` changed and keeps its history: restating it in the same command would build it anew",
                hint="build it first without `--restate`, so that it goes on from what it holds; "
                f"`--reset {name}` begins from scratch, and its history is lost",
                location=draft.inputs.graph.models[name].location,
                node=name,
            )


def _shortened(draft: Draft) -> Iterator[HistoryLost]:
    """What would come out without time which the baseline's readers have: new versions, and runs that begin anew.

    Other environments may hold less, as development asks for: promoting them looks for what is lacking.
    """
    if not draft.is_baseline or draft.inputs.flags.allow_gaps:
        return
    for name, work in draft.works.items():
        shown = _to_be_replaced(draft, name)
        if shown is None:
            continue
        is_changed = draft.differences[name].is_version_new
        what = "changed, and its new version" if is_changed else "would be built anew, and then"
        for time, why, hint in _reasons_to_lack(draft, name, work, shown):
            lost = time.intersect(shown.recorded)
            if not lost.is_empty:
                yield HistoryLost(
                    f"`{name}` {what} would lack {_ranges(lost)}, which readers of "
                    f"`{draft.inputs.environment.environment}` have now: {why}",
                    hint=f"{hint}; `--allow-gaps` shows less history",
                    location=draft.inputs.graph.models[name].location,
                    node=name,
                )
                break


def _to_be_replaced(draft: Draft, name: NodeName) -> VersionFacts | None:
    """What readers have now of a model that gets another version, or whose table begins with its first run again."""
    is_built = name in draft.chosen and not draft.blocked_by[name]
    if not is_built or name in draft.refused or name in draft.unready or name in draft.reset:
        return None
    difference = draft.differences[name]
    former = _former(draft, name)
    if former is not None:
        model = with_default_replay(draft.inputs, draft.inputs.graph.models[name], difference)
        return None if keeps_history(model) else former
    facts = draft.facts(name)
    return facts if draft.works[name].begins_anew and has_runs(facts) and not difference.is_version_new else None


def _reasons_to_lack(
    draft: Draft, name: NodeName, work: Work, shown: VersionFacts
) -> Iterator[tuple[Intervals, str, str]]:
    """Time that will not be there, why, and what to do."""
    start = draft.inputs.flags.start or "…"
    yield (
        work.left_out,
        "`--start` and `--end` leave it out",
        "leave out `--start` and `--end`, or build part of the time in another environment, as with "
        f"`lamina build dev --start {start}`",
    )
    waiting_for = dict.fromkeys(each.name for each in work.readiness.waiting_for)
    yield (
        work.readiness.waiting,
        f"it waits for {', '.join(f'`{other}`' for other in waiting_for)}",
        f"`--select +{name}` builds along what is above it; what a signal holds back, only the signal releases",
    )
    yield (
        _before_its_first_run(draft, name, work),
        "another environment has built that version from later on, and runs never fill in time before their first one",
        f"`--reset {name}` builds it from the beginning",
    )
    yield (
        _after_this_command(draft, name, work, shown),
        f"it lies after the time of this command, {draft.inputs.now}",
        "leave out `--execution-time`, or build in another environment",
    )


def _before_its_first_run(draft: Draft, name: NodeName, work: Work) -> Intervals:
    """What lies before the first run of a table of runs that goes on from what it holds."""
    model, facts = draft.inputs.graph.models[name], draft.facts(name)
    first = facts.recorded.span() if facts is not None and folds(model.kind) and not work.begins_anew else None
    start = draft.starts[name]
    return Intervals.of([Interval(start, first.start)]) if first is not None and start < first.start else EMPTY


def _after_this_command(draft: Draft, name: NodeName, work: Work, shown: VersionFacts) -> Intervals:
    """What is shown of the time that a command at this moment does not come to, unless it is there already."""
    model, facts, now = draft.inputs.graph.models[name], draft.facts(name), draft.inputs.now
    is_in_time = has_intervals(model.kind) or (folds(model.kind) and uses_span(draft.inputs.graph.models, model))
    span = shown.recorded.span()
    # Behind the last whole unit of a coarser schedule nothing is missed before that unit is over.
    if not is_in_time or span is None or span.end <= now:
        return EMPTY
    unbounded = replace(draft.inputs.flags, start=None, end=None)
    asked = asked_range(model, draft.starts[name], unbounded, now, respects_cron=draft.respects_cron)
    begin, end = asked.end if asked is not None else draft.starts[name], model_end(model, now) or span.end
    later = Intervals.of([Interval(begin, end)]) if begin < end else EMPTY
    return later.minus(facts.recorded) if facts is not None and not work.begins_anew else later


def _ranges(time: Intervals) -> str:
    first, *others = time
    return f"{first} and {len(others)} more range{'s' if len(others) > 1 else ''}" if others else str(first)


def _rebuilt_in_sight(draft: Draft) -> Iterator[NotYetSupported]:
    """Tables that would be built anew run by run while the baseline's readers look on: each run shows what it has."""
    if not draft.is_baseline:
        return
    for name, work in draft.works.items():
        model = draft.inputs.graph.models[name]
        if not (folds(model.kind) and work.begins_anew and work.is_asked):
            continue
        runs, flag = len(runs_of(model, work.readiness.ready, begins_anew=True)), "restate"
        if name in draft.reset:
            flag = "reset"
        if runs > 1:
            yield NotYetSupported(
                f"`{name}` would be built anew in {runs} runs, and readers would see it begin empty and grow again",
                hint=f"{flag} it in another environment, as with `lamina build dev --{flag} {name}`, and promote that",
                location=model.location,
                node=name,
            )
