"""Sentences: why a step is what it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lamina.planning.readiness import SIGNAL, is_signal
from lamina.timeline.interval import Intervals

if TYPE_CHECKING:
    from lamina.graph.names import NodeName
    from lamina.planning.inputs import Waiting
    from lamina.planning.steps import Step

_NOTHING = "nothing changed and nothing is missing"
_BECAUSE = {
    "first_run": "it has not been built before",
    "query_changed": "its query changed",
    "config_changed": "its configuration changed",
    "function_changed": "a function it calls changed",
    "schema_changed": "the columns it reads changed",
    "missing_intervals": "intervals are missing",
    "restated": "a restatement was asked for",
    "run_despite_unchanged": "it is configured to run even when nothing changed",
    "forced": "`--force` was given",
}


def explain(
    step: Step,
    *,
    blocked_by: tuple[NodeName, ...],
    is_chosen: bool,
    baseline: str,
    is_shared: bool,
    why_unready: str | None,
) -> Step:
    """The step with one sentence that a person understands."""
    step = _explained(step, blocked_by, is_chosen, baseline if is_shared else None, why_unready)
    if not step.left_to_baseline.is_empty and not is_shared:
        so_far = "nothing changed" if step.explanation == _NOTHING else step.explanation
        follows = f"{_ranges(step.left_to_baseline)} follows when `{baseline}` has it"
        step = replace(step, explanation=f"{so_far}; {follows}")
    if not step.questions:
        return step
    ending = "no data is touched" if step.action == "metadata" else step.explanation
    return replace(step, explanation=f"{_questions(step)}; {ending}")


def _explained(
    step: Step, blocked_by: tuple[NodeName, ...], is_chosen: bool, shared_with: str | None, why_unready: str | None
) -> Step:
    if step.action == "wait" and why_unready is not None:
        return replace(step, explanation=f"waits: {why_unready}{_waits(step).removeprefix(', rest waits')}")
    if step.action == "blocked" and why_unready is not None and not blocked_by:
        return replace(step, explanation=f"blocked: {why_unready}")
    return replace(step, explanation=_sentence(step, blocked_by, is_chosen, shared_with))


def _questions(step: Step) -> str:
    """How many audits have to be asked about what is there, and about which time."""
    number = len({id(audit) for question in step.questions for audit in question.audits})
    time = Intervals.of(question.interval for question in step.questions if question.interval is not None)
    over = "the whole table" if time.is_empty else _ranges(time)
    why = "audits changed" if step.change == "metadata" else "audits were not asked yet"
    return f"{why}: {number} to ask over {over}"


def _because(step: Step) -> str:
    match step.reason:
        case "upstream_changed":
            return f"`{step.cause}` above it changed" if step.cause else "a model above it changed"
        case "upstream_rewritten":
            is_recorded = not step.redone.is_empty or not step.certain.is_empty
            if not (step.unfollowed.is_recorded if step.unfollowed else is_recorded):
                return f"`{step.cause}` is computed again, as far as that comes out different"
            return f"intervals of `{step.cause}` that it reads came out different"
        case "source_changed":
            return (
                f"nobody can tell whether `{step.cause}` changed since the last build"
                if step.cause
                else "what it reads, or the time that it asks for, may have changed since the last build"
            )
        case "query_changed" if step.kind == "SEED":
            return "its file changed"
        case reason:
            return _BECAUSE.get(reason, "it changed")


def _sentence(step: Step, blocked_by: tuple[NodeName, ...], is_chosen: bool, shared_with: str | None) -> str:
    match step.action:
        case "blocked":
            names = ", ".join(f"`{name}`" for name in blocked_by)
            return f"blocked: stale upstreams are not selected: {names}; add them or use `--include-stale-upstreams`"
        case "seed_and_build" if step.seed is not None:
            return f"gets a copy of its own, which begins with what it holds now, because {_because(step)}"
        case "seed_and_build" if step.continues is not None:
            going_on = "goes on with the rows that it holds now"
            return f"{going_on}, because {_because(step)} and its history is kept{_left_out(step)}{_waits(step)}"
        case "build" | "seed_and_build":
            return f"built because {_because(step)}{_again(step)}{_left_out(step)}{_waits(step)}"
        case "reuse":
            if step.reason == "first_run":
                return "this version is already built, so only the pointer moves"
            return f"{_because(step)}; this version is already built, so only the pointer moves"
        case "metadata":
            if step.kind == "EMBEDDED":
                return f"{_because(step)}; it has no table, its query is put into the models that read it"
            return "only metadata changed; no data is touched"
        case "wait" if step.next_tick is not None:
            return f"waits for its cron: next tick {step.next_tick}; `{step.cause}` above it changed"
        case "wait":
            return f"waits{_waits(step).removeprefix(', rest waits')}"
        case _:
            if step.unfollowed is not None:
                return f"left as it is, although {_because(step)}: {step.unfollowed.why}"
            if not is_chosen:
                return "not selected" + ("" if step.reason == "unchanged" else f", although {_because(step)}")
            if shared_with is not None:
                shared = f"shared with the baseline `{shared_with}`"
                if step.left_to_baseline.is_empty:
                    return f"{shared} as it is"
                return f"{shared}, which alone writes it and lacks {_ranges(step.left_to_baseline)}"
            if step.next_tick is not None:
                return f"nothing is known to have changed; waits for its cron: next tick {step.next_tick}"
            if not step.left_out.is_empty:
                return f"nothing to do within the bounds of this command, which leave out {_ranges(step.left_out)}"
            return _NOTHING


def _again(step: Step) -> str:
    if step.again.is_empty:
        return ""
    return (
        f"; what it reads for {_ranges(step.again)} is put in again by its keys: rows that vanished above stay, and "
        "rows with the same keys that later runs brought are replaced"
    )


def _left_out(step: Step) -> str:
    if step.left_out.is_empty:
        return ""
    return f"; the bounds of this command leave out {_ranges(step.left_out)}"


def _ranges(intervals: Intervals) -> str:
    first, *others = intervals
    return f"{first} and {len(others)} more range{'s' if len(others) > 1 else ''}" if others else str(first)


def _waits(step: Step) -> str:
    if not step.waiting_for:
        return ""
    held: dict[str, list[Waiting]] = {}
    for waiting in step.waiting_for:
        if is_signal(waiting):
            held.setdefault(waiting.name, []).append(waiting)
    parts = [f"`{waiting.name}` to cover {waiting.interval}" for waiting in step.waiting_for if not is_signal(waiting)]
    for name, stretches in held.items():
        more = f" and {len(stretches) - 1} more ranges" if len(stretches) > 1 else ""
        parts.append(f"signal `{name.removeprefix(SIGNAL)}` to release {stretches[0].interval}{more}")
    return f", rest waits for {' and '.join(parts)}"
