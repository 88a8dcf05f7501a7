"""Reads `kind X (...)` into one of the kinds."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, cast

from lamina.errors import BadPropertyValue, BadSchedule, DefinitionError, LaminaError, UnknownKind
from lamina.graph.kinds import (
    TIMES_OF_VALIDITY,
    CsvSettings,
    Custom,
    Embedded,
    External,
    Full,
    IncrementalByPartition,
    IncrementalByTimeRange,
    IncrementalByUniqueKey,
    IncrementalPolicy,
    IncrementalUnmanaged,
    Kind,
    Managed,
    ScdType2ByColumn,
    ScdType2ByTime,
    Seed,
    TimeColumn,
    View,
)
from lamina.near_names import near_names
from lamina.reading.properties import Block
from lamina.sql.header.values import Items, KindValue, Pair, Property, Text, Word, as_items, name_of, text_of
from lamina.sql.time_formats import dialect_time_format
from lamina.timeline.cron import Schedule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.graph.kinds import SchemaChange

_POLICY = (
    "forward_only",
    "disable_restatement",
    "on_destructive_change",
    "on_additive_change",
    "auto_restatement_cron",
    "auto_restatement_intervals",
)
_SCD = (
    "unique_key",
    "valid_from_name",
    "valid_to_name",
    "time_data_type",
    "invalidate_hard_deletes",
    "batch_size",
    "updated_at_name",
)
PROPERTIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "FULL": (),
        "VIEW": ("materialized",),
        "EMBEDDED": (),
        "SEED": ("path", "batch_size", "csv_settings"),
        "EXTERNAL": (),
        "INCREMENTAL_BY_TIME_RANGE": (
            "time_column",
            "batch_size",
            "batch_concurrency",
            "lookback",
            "partition_by_time_column",
            *_POLICY,
        ),
        "INCREMENTAL_BY_UNIQUE_KEY": (
            "unique_key",
            "when_matched",
            "merge_filter",
            "order_by",
            "batch_size",
            "batch_concurrency",
            "lookback",
            *_POLICY,
        ),
        "INCREMENTAL_BY_PARTITION": _POLICY,
        "INCREMENTAL_UNMANAGED": ("insert_overwrite", *_POLICY),
        "SCD_TYPE_2_BY_TIME": (*_SCD, "updated_at_as_valid_from", *_POLICY),
        "SCD_TYPE_2_BY_COLUMN": (*_SCD, "columns", "execution_time_as_valid_from", *_POLICY),
        "CUSTOM": (
            "materialization",
            "materialization_properties",
            "batch_size",
            "batch_concurrency",
            "lookback",
            *_POLICY,
        ),
        "MANAGED": (),
    }
)
"""Every kind with the properties it takes."""

_ALIASES = {"SCD_TYPE_2": "SCD_TYPE_2_BY_TIME"}
_CHANGES = ("error", "warn", "allow", "ignore")
_UNBATCHED = "it runs its query once and appends what it gives; remove the property"
_HINTS = {
    "INCREMENTAL_UNMANAGED": {"batch_size": _UNBATCHED, "batch_concurrency": _UNBATCHED},
}
CSV_KEYS = (
    "delimiter",
    "quotechar",
    "doublequote",
    "escapechar",
    "skipinitialspace",
    "lineterminator",
    "encoding",
    "na_values",
    "keep_default_na",
)

# Longest first: `yyyy` before `yy`, `HH24` before `HH`.
_FORMAT_TOKENS = (
    ("yyyy", "%Y"),
    ("YYYY", "%Y"),
    ("HH24", "%H"),
    ("SSSSSS", "%f"),
    ("yy", "%y"),
    ("MM", "%m"),
    ("dd", "%d"),
    ("DD", "%d"),
    ("HH", "%H"),
    ("mm", "%M"),
    ("MI", "%M"),
    ("ss", "%S"),
    ("SS", "%S"),
)
_FORMAT_PIECE = re.compile("|".join(token for token, _ in _FORMAT_TOKENS) + r"|'([^']*)'|[^A-Za-z%]")


def read_kind(
    value: KindValue, dialect: str, problems: list[LaminaError], defaults: Mapping[str, str | int] | None = None
) -> Kind | None:
    """The kind with its properties; None when something is wrong, which is then among the problems.

    `defaults` are the project's for `on_destructive_change`, `on_additive_change` and `batch_concurrency`.
    """
    name = _ALIASES.get(value.name, value.name)
    if name not in PROPERTIES:
        near = near_names(name, PROPERTIES)
        listed = ", ".join(f"`{known}`" for known in PROPERTIES)
        problems.append(
            UnknownKind(
                f"there is no kind `{value.name}`",
                hint=f"did you mean `{near[0]}`? The kinds are {listed}" if near else f"the kinds are {listed}",
                location=value.location,
            )
        )
        return None
    found: list[LaminaError] = []
    block = Block.of(f"kind `{name}`", value.properties, value.location, dialect, found)
    block.check_keys(PROPERTIES[name], _HINTS.get(name))
    kind = _READERS[name](block, defaults or {})
    problems.extend(found)
    return None if found else kind


def _required(block: Block, key: str, example: str) -> None:
    value = block.value(key)
    is_given = value is not None and bool(as_items(value))
    if not is_given and not any(each.location == block.place(key) for each in block.problems):
        block.problems.append(
            DefinitionError(
                f"{block.title} needs `{key}`", hint=f"add `{key} {example}` to the kind", location=block.location
            )
        )


def _policy(
    block: Block,
    defaults: Mapping[str, str | int],
    *,
    forward_only: bool = False,
    disable_restatement: bool = False,
) -> IncrementalPolicy:
    cron = block.text("auto_restatement_cron")
    if cron is not None:
        try:
            Schedule.parse(cron)
        except LaminaError as error:
            place = block.place("auto_restatement_cron")
            block.problems.append(BadSchedule(error.message, hint=error.hint, location=place))
    own_forward = block.boolean("forward_only")
    own_disable = block.boolean("disable_restatement")
    return IncrementalPolicy(
        forward_only=forward_only if own_forward is None else own_forward,
        disable_restatement=disable_restatement if own_disable is None else own_disable,
        on_destructive_change=_change(block, "on_destructive_change", defaults, "error"),
        on_additive_change=_change(block, "on_additive_change", defaults, "allow"),
        auto_restatement_cron=cron,
        auto_restatement_intervals=block.integer("auto_restatement_intervals"),
    )


def _change(
    block: Block, key: str, defaults: Mapping[str, str | int], fallback: Literal["error", "allow"]
) -> SchemaChange:
    return cast("SchemaChange", block.choice(key, _CHANGES) or defaults.get(key) or fallback)


def _full(_block: Block, _defaults: Mapping[str, str | int]) -> Kind:
    return Full()


def _view(block: Block, _defaults: Mapping[str, str | int]) -> Kind:
    return View(materialized=block.boolean("materialized") or False)


def _embedded(_block: Block, _defaults: Mapping[str, str | int]) -> Kind:
    return Embedded()


def _external(_block: Block, _defaults: Mapping[str, str | int]) -> Kind:
    return External()


def _managed(_block: Block, _defaults: Mapping[str, str | int]) -> Kind:
    return Managed()


def _seed(block: Block, _defaults: Mapping[str, str | int]) -> Kind:
    _required(block, "path", "'../seeds/file.csv'")
    value = block.value("path")
    # Backslashes separate folders here; as escapes they would be gone from the value.
    path = (value.raw if isinstance(value, Text) else block.text("path") or "").replace("\\", "/")
    return Seed(path=path, batch_size=block.integer("batch_size") or 1000, csv_settings=_csv_settings(block))


def _csv_settings(block: Block) -> CsvSettings:
    value = block.value("csv_settings")
    if value is None:
        return CsvSettings()
    inner = Block(
        title="`csv_settings`", properties={}, location=value.location, dialect=block.dialect, problems=block.problems
    )
    pairs: dict[str, Pair] = {}
    for item in as_items(value):
        if isinstance(item, Pair):
            pairs[item.key.lower()] = item
        else:
            block.refuse("csv_settings", "a list of `key = value`", value=item)
    inner.properties = {key: _as_property(pair) for key, pair in pairs.items()}
    inner.check_keys(CSV_KEYS)
    by_column: dict[str, tuple[str, ...]] = {}
    missing: list[str] = []
    na_values = inner.value("na_values")
    for item in as_items(na_values) if na_values is not None else ():
        if isinstance(item, Pair):
            by_column[item.key.lower()] = tuple(text_of(each) or "" for each in as_items(item.value))
        else:
            missing.append(text_of(item) or "")
    doublequote, keep = inner.boolean("doublequote"), inner.boolean("keep_default_na")
    return CsvSettings(
        delimiter=_character(inner, "delimiter") or ",",
        quotechar=_character(inner, "quotechar") or '"',
        doublequote=True if doublequote is None else doublequote,
        escapechar=_character(inner, "escapechar"),
        skipinitialspace=inner.boolean("skipinitialspace") or False,
        lineterminator=_line_end(inner),
        encoding=inner.text("encoding") or "utf-8",
        na_values=tuple(missing),
        na_values_by_column=MappingProxyType(by_column),
        keep_default_na=True if keep is None else keep,
    )


def _as_property(pair: Pair) -> Property:
    return Property(key=pair.key.lower(), value=pair.value, location=pair.location)


def _line_end(block: Block) -> str | None:
    """The character that ends a line, None for the usual ends, which are all understood."""
    text = block.text("lineterminator")
    usual = {"\n", "\r\n", "\r", "\\n", "\\r\\n", "\\r"}
    return None if text is None or text in usual else _character(block, "lineterminator")


def _character(block: Block, key: str) -> str | None:
    text = block.text(key)
    if text is None:
        return None
    text = {"\\t": "\t"}.get(text, text)
    if len(text) != 1:
        block.refuse(key, "one character")
        return None
    return text


def _by_time_range(block: Block, defaults: Mapping[str, str | int]) -> Kind:
    _required(block, "time_column", "column_name")
    by_time = block.boolean("partition_by_time_column")
    return IncrementalByTimeRange(
        time_column=_time_column(block),
        batch_size=block.integer("batch_size"),
        batch_concurrency=_batch_concurrency(block, defaults),
        lookback=block.integer("lookback", least=0) or 0,
        partition_by_time_column=True if by_time is None else by_time,
        policy=_policy(block, defaults),
    )


def _batch_concurrency(block: Block, defaults: Mapping[str, str | int]) -> int | None:
    default = defaults.get("batch_concurrency")
    return block.integer("batch_concurrency") or (default if isinstance(default, int) else None)


def _time_column(block: Block) -> TimeColumn:
    value = block.value("time_column")
    if value is None:
        return TimeColumn(name="")
    items = as_items(value)
    name = name_of(items[0]) if items else None
    is_plain = name is not None and (not isinstance(items[0], Word) or len(items[0].parts) == 1)
    if name is None or not is_plain or len(items) > 2 or any(isinstance(item, Items) for item in items):
        block.refuse("time_column", "a column, or a column and a format", hint="write `(ds, '%Y-%m-%d')`")
        return TimeColumn(name="")
    if len(items) == 1:
        return TimeColumn(name=name)
    written = items[1].value if isinstance(items[1], Text) else None
    if written is None:
        block.refuse("time_column", "a column and a quoted format", hint="write `(ds, '%Y-%m-%d')`")
        return TimeColumn(name=name)
    form = dialect_time_format(written, block.dialect) or strftime_format(written)
    if form is None:
        block.problems.append(
            BadPropertyValue(f"`{written}` is not a time format", hint="write `'%Y-%m-%d'`", location=items[1].location)
        )
    return TimeColumn(name=name, format=form)


def strftime_format(written: str) -> str | None:
    """A time format with percent signs; patterns such as `yyyy-MM-dd` are translated, None when that is impossible.

    >>> strftime_format("yyyy-MM-dd HH:mm")
    '%Y-%m-%d %H:%M'
    """
    if "%" in written:
        return written
    tokens = dict(_FORMAT_TOKENS)
    position, pieces = 0, ""
    while position < len(written):
        piece = _FORMAT_PIECE.match(written, position)
        if piece is None:
            return None
        pieces += tokens.get(piece[0], piece[1] if piece[1] is not None else piece[0])
        position = piece.end()
    return pieces if "%" in pieces else None


def _by_unique_key(block: Block, defaults: Mapping[str, str | int]) -> Kind:
    _required(block, "unique_key", "column_name")
    concurrency = block.integer("batch_concurrency")
    if concurrency is not None and concurrency != 1:
        block.refuse("batch_concurrency", "1 for this kind: its batches build on each other")
    return IncrementalByUniqueKey(
        unique_key=block.expressions("unique_key"),
        when_matched=block.merge_clauses("when_matched"),
        merge_filter=block.late_sql("merge_filter"),
        order_by=block.orderings("order_by"),
        batch_size=block.integer("batch_size"),
        lookback=block.integer("lookback", least=0) or 0,
        policy=_policy(block, defaults),
    )


def _by_partition(block: Block, defaults: Mapping[str, str | int]) -> Kind:
    if block.has("forward_only"):
        block.problems.append(
            DefinitionError(
                f"{block.title} is always forward-only; `forward_only` cannot be set",
                hint="remove `forward_only`",
                location=block.place("forward_only"),
            )
        )
    return IncrementalByPartition(policy=_policy(block, defaults, forward_only=True))


def _unmanaged(block: Block, defaults: Mapping[str, str | int]) -> Kind:
    return IncrementalUnmanaged(
        insert_overwrite=block.boolean("insert_overwrite") or False,
        policy=_policy(block, defaults, forward_only=True, disable_restatement=True),
    )


def _validity(block: Block) -> tuple[str, str]:
    """The names of the two columns of validity."""
    valid_from = block.name("valid_from_name") or "valid_from"
    valid_to = block.name("valid_to_name") or "valid_to"
    if valid_from.lower() == valid_to.lower():
        key = "valid_to_name" if block.has("valid_to_name") else "valid_from_name"
        block.refuse(key, "another name than that of the other column of validity")
    return valid_from, valid_to


def _time_data_type(block: Block) -> str:
    found = block.type("time_data_type") or "timestamp"
    if found not in TIMES_OF_VALIDITY:
        block.refuse("time_data_type", f"one of {', '.join(f'`{known}`' for known in TIMES_OF_VALIDITY)}")
    return found


def _scd_by_time(block: Block, defaults: Mapping[str, str | int]) -> Kind:
    _required(block, "unique_key", "column_name")
    valid_from, valid_to = _validity(block)
    return ScdType2ByTime(
        unique_key=block.expressions("unique_key"),
        valid_from_name=valid_from,
        valid_to_name=valid_to,
        time_data_type=_time_data_type(block),
        invalidate_hard_deletes=block.boolean("invalidate_hard_deletes") or False,
        updated_at_name=block.name("updated_at_name") or "updated_at",
        updated_at_as_valid_from=block.boolean("updated_at_as_valid_from") or False,
        batch_size=block.integer("batch_size"),
        policy=_policy(block, defaults, forward_only=True, disable_restatement=True),
    )


def _scd_by_column(block: Block, defaults: Mapping[str, str | int]) -> Kind:
    _required(block, "unique_key", "column_name")
    _required(block, "columns", "[column_name]")
    value = block.value("columns")
    is_every = value is not None and [text_of(item) for item in as_items(value)] == ["*"]
    valid_from, valid_to = _validity(block)
    return ScdType2ByColumn(
        unique_key=block.expressions("unique_key"),
        columns=() if is_every else block.names("columns"),
        valid_from_name=valid_from,
        valid_to_name=valid_to,
        time_data_type=_time_data_type(block),
        invalidate_hard_deletes=block.boolean("invalidate_hard_deletes") or False,
        execution_time_as_valid_from=block.boolean("execution_time_as_valid_from") or False,
        updated_at_name=block.name("updated_at_name"),
        batch_size=block.integer("batch_size"),
        policy=_policy(block, defaults, forward_only=True, disable_restatement=True),
    )


def _custom(block: Block, defaults: Mapping[str, str | int]) -> Kind:
    _required(block, "materialization", "'name'")
    return Custom(
        materialization=block.text("materialization") or "",
        materialization_properties=block.settings("materialization_properties"),
        batch_size=block.integer("batch_size"),
        batch_concurrency=_batch_concurrency(block, defaults),
        lookback=block.integer("lookback", least=0) or 0,
        policy=_policy(block, defaults),
    )


_READERS = MappingProxyType(
    {
        "FULL": _full,
        "VIEW": _view,
        "EMBEDDED": _embedded,
        "SEED": _seed,
        "EXTERNAL": _external,
        "INCREMENTAL_BY_TIME_RANGE": _by_time_range,
        "INCREMENTAL_BY_UNIQUE_KEY": _by_unique_key,
        "INCREMENTAL_BY_PARTITION": _by_partition,
        "INCREMENTAL_UNMANAGED": _unmanaged,
        "SCD_TYPE_2_BY_TIME": _scd_by_time,
        "SCD_TYPE_2_BY_COLUMN": _scd_by_column,
        "CUSTOM": _custom,
        "MANAGED": _managed,
    }
)
