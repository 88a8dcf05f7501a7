"""Unit tests in `tests/`: read and checked, not run yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lamina.errors import ConfigError, LaminaError, raise_all
from lamina.project.yaml.checked import Checked
from lamina.project.yaml.text import BadYaml, read_yaml
from lamina.reading.without_effect import UNIT_TESTS, no_effect_yet
from lamina.timeline.interval import Instant
from lamina.timeline.parse import parse_time

if TYPE_CHECKING:
    from lamina.graph.dag import Notice
    from lamina.project.yaml.places import YamlPath

_KEYS = (
    "model",
    "description",
    "inputs",
    "outputs",
    "vars",
    "partial",
    "existing",
    "gateway",
    "schema",
)
_ROWS_KEYS = ("columns", "rows", "format", "csv_settings", "path", "query")
_OUTPUTS_KEYS = ("query", "ctes", "rows", "partial")
_TIMES = ("start", "end", "execution_time")
_FORMATS = ("yaml", "csv")


def read_unit_tests(content: str, file: str) -> tuple[Notice, ...]:
    """A warning for every test of one file; raises everything wrong with the file at once."""
    try:
        text = read_yaml(content, file)
    except BadYaml as error:
        raise ConfigError(error.message, hint=error.hint, location=error.location) from None
    problems: list[LaminaError] = []
    checked = Checked(text, problems)
    tests: Mapping[str, Any] = {}
    if text.value is not None:
        tests = checked.mapping(text.value, ()) or {}
    for name, test in tests.items():
        _check_test(test, (name,), checked)
    raise_all(problems)
    return tuple(
        no_effect_yet(
            UNIT_TESTS, f"unit test `{name}`", "unit tests are not run by this release", text.key_location((name,))
        )
        for name in tests
    )


def _check_test(value: Any, path: YamlPath, checked: Checked) -> None:
    test = checked.mapping(value, path)
    if test is None:
        return
    name = path[0]
    checked.keys(test, path, _KEYS, f"test `{name}`")
    for key, example in (("model", "`model: shop.orders`"), ("outputs", "`outputs: {query: [{id: 1}]}`")):
        if test.get(key) is None:
            checked.contradict(path, f"test `{name}` needs `{key}`", f"add {example}")
    for key in ("model", "description", "gateway", "schema"):
        if test.get(key) is not None:
            checked.text(test[key], (*path, key))
    if test.get("partial") is not None:
        checked.boolean(test["partial"], (*path, "partial"))
    for key, check in (
        ("inputs", _check_inputs),
        ("outputs", _check_outputs),
        ("vars", _check_vars),
        ("existing", _check_existing),
    ):
        given = test.get(key)
        mapping = checked.mapping(given, (*path, key)) if given is not None else None
        if mapping is not None:
            check(mapping, (*path, key), checked)


def _check_inputs(inputs: Mapping[str, Any], path: YamlPath, checked: Checked) -> None:
    for name, given in inputs.items():
        # One without rows is computed by the model of that name.
        if given is not None:
            _check_rows(given, (*path, name), checked, keys=_ROWS_KEYS, what=f"input `{name}`")


def _check_outputs(outputs: Mapping[str, Any], path: YamlPath, checked: Checked) -> None:
    checked.keys(outputs, path, _OUTPUTS_KEYS, "`outputs`")
    if outputs.get("partial") is not None:
        checked.boolean(outputs["partial"], (*path, "partial"))
    if all(outputs.get(key) is None for key in ("query", "ctes", "rows")) and set(outputs) <= set(_OUTPUTS_KEYS):
        checked.contradict(path, "`outputs` names no rows", "add `query:` with the rows that are expected")
    keys = (*_ROWS_KEYS, "partial")
    if outputs.get("query") is not None:
        _check_rows(outputs["query"], (*path, "query"), checked, keys=keys, what="`query` of `outputs`")
    if outputs.get("rows") is not None:
        _check_list(outputs["rows"], (*path, "rows"), checked)
    ctes = checked.mapping(outputs["ctes"], (*path, "ctes")) if outputs.get("ctes") is not None else None
    for name, given in (ctes or {}).items():
        _check_rows(given, (*path, "ctes", name), checked, keys=keys, what=f"`{name}` of `ctes`")


def _check_existing(existing: Mapping[str, Any], path: YamlPath, checked: Checked) -> None:
    _check_rows(existing, path, checked, keys=_ROWS_KEYS, what="`existing`")


def _check_vars(variables: Mapping[str, Any], path: YamlPath, checked: Checked) -> None:
    for name, value in variables.items():
        if name.lower() not in _TIMES or value is None:
            continue
        try:
            parse_time(str(value), relative_to=Instant(0))
        except LaminaError as error:
            checked.refuse((*path, name), "a time", value, hint=error.hint)


def _check_rows(value: Any, path: YamlPath, checked: Checked, *, keys: tuple[str, ...], what: str) -> None:
    """Rows as a list, or a mapping that says more about them."""
    if isinstance(value, list):
        _check_list(value, path, checked)
        return
    entry = checked.mapping(value, path)
    if entry is None:
        return
    checked.keys(entry, path, keys, what)
    given = {key: item for key, item in entry.items() if item is not None}
    if "partial" in given:
        checked.boolean(given["partial"], (*path, "partial"))
    form = checked.choice(given["format"], (*path, "format"), _FORMATS) if "format" in given else "yaml"
    if "columns" in given:
        _check_columns(given["columns"], (*path, "columns"), checked)
    if "csv_settings" in given:
        checked.mapping(given["csv_settings"], (*path, "csv_settings"))
    for key in ("path", "query"):
        if key in given:
            checked.text(given[key], (*path, key))
    sources = [key for key in ("query", "rows", "path") if key in given]
    if len(sources) > 1:
        first, second = sources[:2]
        checked.contradict(
            (*path, second), f"{what} has both `{first}` and `{second}`", "keep the one that gives its rows"
        )
    if "rows" in given and form == "csv":
        checked.text(given["rows"], (*path, "rows"))
    elif "rows" in given:
        _check_list(given["rows"], (*path, "rows"), checked)


def _check_list(value: Any, path: YamlPath, checked: Checked) -> None:
    if not isinstance(value, list):
        checked.refuse(path, "a list of rows", value, hint="write each as `- {id: 1, name: Ada}`")
        return
    for number, row in enumerate(value):
        if not isinstance(row, Mapping):
            checked.refuse((*path, number), "a list of rows, each a mapping of columns to values", row)


def _check_columns(value: Any, path: YamlPath, checked: Checked) -> None:
    for name, written in (checked.mapping(value, path) or {}).items():
        checked.text(written, (*path, name))
