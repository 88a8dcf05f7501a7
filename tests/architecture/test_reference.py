"""The reference pages say what the code does."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

from lamina import errors
from lamina.project.configuration.read import STATE_SCHEMES, WAREHOUSE_STATE
from lamina.project.files import FileProject
from lamina.timeline.interval import Instant
from tools import config_reference, macro_reference, model_reference, reference

CODED = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.LaminaError) and kind is not errors.LaminaError
]


@pytest.mark.parametrize("name", sorted(reference.pages()))
def test_a_generated_page_is_current(name: str):
    page = reference.REFERENCE / name

    assert page.is_file(), "run `make docs`"
    assert page.read_text(encoding="utf-8") == reference.pages()[name], "run `make docs`"


def test_every_error_has_a_code_of_its_own():
    codes = [kind.code for kind in CODED]

    assert sorted(codes) == sorted(set(codes))


def test_every_error_says_what_it_means():
    assert [kind.__name__ for kind in CODED if not kind.__doc__] == []


WORDS = [
    (config_reference, "FILE", "concurrency"),
    (config_reference, "SPARK", "shared_warehouse"),
    (config_reference, "TARGET", "schema"),
    (config_reference, "DEFAULTS", "pre_statements"),
    (model_reference, "MODEL", "cron"),
    (model_reference, "KINDS_TOLD", "FULL"),
    (model_reference, "KIND", "lookback"),
    (model_reference, "CSV", "encoding"),
    (model_reference, "CONTEXT", "table"),
    (macro_reference, "TIMES", "ds"),
    (macro_reference, "VARIABLES", "this_model"),
    (macro_reference, "FUNCTIONS", "star"),
    (macro_reference, "EVALUATOR", "var"),
]


@pytest.mark.parametrize(("page", "words", "key"), WORDS, ids=lambda value: getattr(value, "__name__", value))
def test_a_key_that_nobody_has_described_stops_its_page(
    monkeypatch: pytest.MonkeyPatch, page: ModuleType, words: str, key: str
):
    # In a mapping of its own: a key that is put back would stand last.
    monkeypatch.setattr(page, words, {name: text for name, text in getattr(page, words).items() if name != key})
    with pytest.raises((LookupError, ValueError)):
        page.page()


@pytest.mark.parametrize(("page", "words", "key"), WORDS, ids=lambda value: getattr(value, "__name__", value))
def test_a_description_of_a_key_that_is_gone_stops_its_page(
    monkeypatch: pytest.MonkeyPatch, page: ModuleType, words: str, key: str
):
    known = getattr(page, words)
    monkeypatch.setattr(page, words, {**known, "gone": known[key]})
    with pytest.raises(LookupError):
        page.page()


def test_every_key_stands_on_its_page_with_its_value_and_default():
    text = config_reference.page()
    assert "| `concurrency` | whole number | `4` |" in text
    assert "| `mode` | `virtual` or `direct` | `virtual` |" in text
    assert "| `name` | text | required |" in text
    for key in model_reference.PROPERTIES:
        assert f"| `{key}` |" in model_reference.page()
    assert "| `time_column` | required |" in model_reference.page()


def test_the_addresses_of_states_are_those_that_are_read():
    assert set(config_reference.STATES) == {*STATE_SCHEMES, WAREHOUSE_STATE}


def test_the_project_that_the_pages_show_loads(tmp_path: Path):
    pages = {name: (reference.REFERENCE / name).read_text(encoding="utf-8") for name in reference.pages()}
    (yaml,) = re.findall(r"```yaml\n(.*?)```", pages["configuration.md"], re.DOTALL)
    (tmp_path / "lamina.yaml").write_text(yaml, encoding="utf-8")
    sql = re.findall(r"```sql\n(.*?)```", pages["models.md"], re.DOTALL)
    python = re.findall(r"```python\n# (\S+)\n(.*?)```", pages["models.md"] + pages["macros.md"], re.DOTALL)
    files = {"models/a.sql": sql[0], "models/b.sql": sql[1], "seeds/countries.csv": "code;name\nde;Germany\n"}
    query = "SELECT 1 AS id, @cents(2) AS amount, @execution_date AS order_date, @execution_date AS ds"
    files |= {"models/orders.sql": f"MODEL (name shop.orders); {query}"}
    for name, content in (*files.items(), *python):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")

    graph = FileProject(tmp_path, target="prod").graph(Instant.parse_iso("2024-01-05"))

    assert set(graph.models) == {"shop.daily_revenue", "shop.countries", "shop.clean", "shop.orders"}
