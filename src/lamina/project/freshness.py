"""`freshness:` of an external table: how to tell whether its data changed, and how old it may be."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.project.yaml.checked import Checked
    from lamina.project.yaml.places import YamlPath

_KEYS = ("strategy", "type", "column", "query", "filter", "lag_tolerance", "age")
_STRATEGIES = ("column", "sql", "adapter")
_TYPES = ("timestamp", "integer", "string")
_AGES = ("warn_after", "error_after")
_EXAMPLES = {"type": "`type: timestamp`", "column": "`column: updated_at`", "query": "`query: SELECT max(x) FROM …`"}
# Which of the keys that say how to look each strategy needs; any other one that has an owner means nothing to it.
_NEEDS = {"column": ("type", "column"), "sql": ("type", "query"), "adapter": ()}
_MAY_HAVE = {"column": ("filter",), "sql": (), "adapter": ()}
_NAME = re.compile(r"`[^`]+`|[^\W\d]\w*")
_OWNED = ("type", "column", "query", "filter")


def check_freshness(value: Any, path: YamlPath, checked: Checked) -> None:
    """Report everything wrong with a `freshness:` block."""
    entry = checked.mapping(value, path)
    if entry is None:
        return
    checked.keys(entry, path, _KEYS, "`freshness`")
    given = {key: item for key, item in entry.items() if item is not None}
    for key in ("query", "filter"):
        if key in given:
            checked.text(given[key], (*path, key))
    if "column" in given:
        _check_column(given["column"], (*path, "column"), checked)
    kind = checked.choice(given["type"], (*path, "type"), _TYPES) if "type" in given else None
    _check_strategy(given, path, checked)
    if "lag_tolerance" in given:
        checked.duration(given["lag_tolerance"], (*path, "lag_tolerance"))
        if kind in {"integer", "string"} or given.get("strategy") == "adapter":
            checked.contradict(
                (*path, "lag_tolerance"),
                "`lag_tolerance` is for times, and what is observed here is none",
                "remove it, or observe a time: `type: timestamp`",
            )
    if "age" in given:
        _check_age(given["age"], (*path, "age"), checked)


def _check_strategy(given: Mapping[str, Any], path: YamlPath, checked: Checked) -> None:
    if "strategy" not in given:
        checked.contradict(path, "`freshness` needs a `strategy`", "add `strategy: column`, `sql` or `adapter`")
        return
    strategy = checked.choice(given["strategy"], (*path, "strategy"), _STRATEGIES)
    if strategy is None:
        return
    for key in _NEEDS[strategy]:
        if key not in given:
            checked.contradict(
                (*path, "strategy"), f"strategy `{strategy}` of `freshness` needs `{key}`", f"add {_EXAMPLES[key]}"
            )
    for key in _OWNED:
        if key in given and key not in (*_NEEDS[strategy], *_MAY_HAVE[strategy]):
            checked.contradict(
                (*path, key), f"`{key}` means nothing to strategy `{strategy}` of `freshness`", f"remove `{key}`"
            )


def _check_column(value: Any, path: YamlPath, checked: Checked) -> None:
    written = checked.text(value, path)
    if written is None:
        return
    if not _NAME.fullmatch(written.strip()):
        checked.refuse(path, "the name of a column", value, hint="`strategy: sql` takes a query")


def _check_age(value: Any, path: YamlPath, checked: Checked) -> None:
    entry = checked.mapping(value, path)
    if entry is None:
        return
    checked.keys(entry, path, _AGES, "`age`")
    found = {key: checked.duration(entry[key], (*path, key)) for key in _AGES if entry.get(key) is not None}
    if not found and all(key in _AGES for key in entry):
        checked.contradict(path, "`age` says nothing", "write `age: {warn_after: 1d, error_after: 2d}`")
    warn, error = found.get("warn_after"), found.get("error_after")
    if warn is not None and error is not None and warn > error:
        checked.contradict(
            (*path, "warn_after"), "`warn_after` is longer than `error_after`", "warn before it is an error"
        )
