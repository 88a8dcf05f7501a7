"""Single properties of a MODEL header, each read into its type."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.errors import BadSchedule, LaminaError
from lamina.graph.kinds import Full, IncrementalByTimeRange
from lamina.reading.drafts import WrittenReference
from lamina.reading.properties import Block
from lamina.sql.header.values import Items, Text, Word, as_items, sql_of, text_of
from lamina.sql.names import is_plain_identifier, make_table_name, quote
from lamina.sql.types import columns_in
from lamina.timeline.cron import Schedule
from lamina.timeline.grain import Grain
from lamina.timeline.interval import Instant
from lamina.timeline.parse import parse_duration, parse_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.graph.kinds import Kind, Setting
    from lamina.sql.header.values import Property, Value

FURTHER = (
    "project",
    "references",
    "grants",
    "grants_target_layer",
    "gateway",
    "physical_version",
    "optimize_query",
    "formatting",
    "ignored_rules",
    "virtual_environment_mode",
    "retention",
)
"""Properties that are kept as text."""

_REPLAY = re.compile(r"forward|full|bounded-[1-9][0-9]*[mhdw]")


def read_schedule(block: Block) -> tuple[str, str, Grain, bool]:
    """Cron, its zone, the grain of intervals, and whether unfinished ones may be computed."""
    cron = block.text("cron") or "@daily"
    cron_tz = block.text("cron_tz") or "UTC"
    allow_partials = block.boolean("allow_partials") or False
    key = "cron"
    try:
        Schedule.parse(cron)
        key = "cron_tz"
        schedule_grain = Schedule.parse(cron, cron_tz).grain()
    except LaminaError as error:
        place = block.place(key if block.has(key) else "cron")
        block.problems.append(BadSchedule(error.message, hint=error.hint, location=place))
        return cron, cron_tz, Grain.DAY, allow_partials
    unit = block.text("interval_unit")
    if unit is None:
        return cron, cron_tz, schedule_grain, allow_partials
    try:
        grain = Grain.from_name(unit)
    except LaminaError as error:
        block.problems.append(BadSchedule(error.message, hint=error.hint, location=block.place("interval_unit")))
        return cron, cron_tz, schedule_grain, allow_partials
    if grain.is_coarser_than(schedule_grain) and not allow_partials:
        block.problems.append(
            BadSchedule(
                f"`interval_unit` {grain.value} is longer than the time between two ticks of cron `{cron}`",
                hint=f"use `{schedule_grain.value}` or a shorter unit, or set `allow_partials true`",
                location=block.place("interval_unit"),
            )
        )
    return cron, cron_tz, grain, allow_partials


def read_time(block: Block, key: str) -> str | None:
    """The text of a time that can be read; words such as `yesterday` get their meaning later."""
    text = block.text(key)
    if text is None:
        return None
    try:
        parse_time(text, relative_to=Instant(0))
    except LaminaError as error:
        block.problems.append(BadSchedule(error.message, hint=error.hint, location=block.place(key)))
        return None
    return text


def read_grains(block: Block) -> tuple[str, ...]:
    """The keys of the table, `grain` or `grains`."""
    if block.has("grain") and block.has("grains"):
        block.contradict("both `grain` and `grains` are given", "keep one of them", "grains")
    single, several = block.value("grain"), block.value("grains")
    if single is not None:
        return (_grain_text(single),)
    return tuple(_grain_text(item) for item in as_items(several)) if several is not None else ()


def read_partitions(block: Block, kind: Kind) -> tuple[str, ...]:
    """Partition expressions, the time column in front where the kind adds it."""
    given = block.column_expressions("partitioned_by")
    if not isinstance(kind, IncrementalByTimeRange) or not kind.partition_by_time_column:
        return given
    time_column = kind.time_column.name.lower()
    if not time_column or any(time_column in {c.lower() for c in columns_in(text)} for text in given):
        return given
    return (_as_expression(kind.time_column.name), *given)


def _as_expression(name: str) -> str:
    """A column's name where an expression is expected: in backticks if it could be read as something else."""
    try:
        is_itself = is_plain_identifier(name) and columns_in(name) == (name,)
    except LaminaError:
        is_itself = False
    return name if is_itself else quote(name)


def read_settings(
    block: Block, defaults: Mapping[str, Property], key: str, old_key: str | None = None
) -> Mapping[str, Setting]:
    """A map of the header over that of the project; NULL takes a key out."""
    if old_key is not None and block.has(key) and block.has(old_key):
        block.contradict(f"both `{key}` and `{old_key}` are given", f"keep `{key}`", old_key)
    own = block.settings(key) or (block.settings(old_key) if old_key else {})
    inherited: Mapping[str, Setting] = {}
    if key in defaults:
        block = Block.of("defaults", (defaults[key],), block.location, block.dialect, block.problems)
        inherited = block.settings(key)
    merged = {**inherited, **own}
    return MappingProxyType({name: value for name, value in merged.items() if value is not None})


def read_replay(block: Block) -> str | None:
    """How much history a change reprocesses."""
    if block.has("replay_on_change") and block.has("query_change_backfill"):
        block.contradict(
            "both `replay_on_change` and `query_change_backfill` are given",
            "keep `replay_on_change`",
            "query_change_backfill",
        )
    key = "replay_on_change" if block.has("replay_on_change") else "query_change_backfill"
    text = block.text(key)
    if text is None:
        return None
    if not _REPLAY.fullmatch(text.lower()):
        block.refuse(key, "`forward`, `full` or `bounded-14d`")
        return None
    return text.lower()


def read_run_despite_unchanged(block: Block, kind: Kind) -> str | None:
    """`always` or a duration."""
    text = block.text("run_despite_unchanged")
    if text is None:
        return None
    if not isinstance(kind, Full):
        block.contradict(
            f"`run_despite_unchanged` has no meaning for kind `{kind.name}`",
            "only tables that are computed whole, of kind `FULL`, can have it",
            "run_despite_unchanged",
        )
    if text.lower() == "always":
        return "always"
    try:
        parse_duration(text)
    except LaminaError:
        block.refuse("run_despite_unchanged", "`always` or a duration such as `24h`")
    return text.lower()


def read_further(block: Block) -> dict[str, str]:
    """Properties that are understood but have no effect on data, as text."""
    block.choice("virtual_environment_mode", ("full", "dev_only"))
    block.choice("grants_target_layer", ("all", "physical", "virtual"))
    block.boolean("optimize_query")
    block.boolean("formatting")
    found: dict[str, str] = {}
    for key in FURTHER:
        value = block.value(key)
        if value is not None:
            found[key] = text_of(value) or sql_of(value)
    return found


def read_depends_on(block: Block) -> tuple[WrittenReference, ...]:
    """Tables that are read though the query does not name them."""
    value = block.value("depends_on")
    found: list[WrittenReference] = []
    for item in as_items(value) if value is not None else ():
        parts = item.parts if isinstance(item, Word) else tuple((text_of(item) or "").split("."))
        if isinstance(item, Word | Text) and all(parts) and len(parts) <= 3:
            found.append(WrittenReference(name=make_table_name(parts), location=item.location))
        else:
            block.refuse("depends_on", "the name of a model or a list of them", value=item)
    return tuple(found)


def _grain_text(value: Value) -> str:
    """A grain of one column by its name, of several as `(a, b)`."""
    if isinstance(value, Items):
        texts = [sql_of(item) for item in value.values]
        return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
    return sql_of(value)
