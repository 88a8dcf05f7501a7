"""Files registered as tables, on fakes: which names are refused before Spark is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.app.looking.register_source import RegisteredSource
from lamina.app.requests import RegisterRequest
from lamina.errors import EmptyProject, LaminaError, NameTaken, UsageError
from tests.kit.app import Place, Process, january, reading
from tests.kit.engine import COLUMNS
from tests.kit.models import instant


def place() -> Place:
    return Place(reading("shop.a", "raw.a"), sources={"raw.a": january(1)})


def register(process: Process, name: str, file_format: str = "parquet", path: str = "/data/x") -> RegisteredSource:
    request = RegisterRequest(now=instant("2024-01-05"), name=name, path=path, format=file_format)
    return process.application().register_source(request)


def test_a_new_table_is_registered_with_its_columns():
    process = place().process()
    found = register(process, "Raw.`Orders`")
    assert (found.table.name, found.columns) == ("raw.orders", COLUMNS)
    assert found.to_dict()["source"]["name"] == "raw.orders"


@pytest.mark.parametrize("name", ["shop.a", "shop.b", "shop__dev.b", "shop__lamina.b", "orders", "a.b.c", "raw.a b"])
def test_names_that_are_not_ones_own_are_refused_without_spark(name: str):
    process = place().process()
    with pytest.raises(LaminaError) as caught:
        register(process, name)
    assert caught.value.exit_code == 2
    assert not process.engine.calls


def test_a_schema_of_a_model_that_was_only_built_belongs_to_lamina_too():
    here = Place(reading("mart.a", "raw.a"), sources={"raw.a": january(1)})
    here.process().build("2024-01-05")
    here.project.problem = EmptyProject("there is no model")
    with pytest.raises(UsageError, match="belongs to Lamina"):
        register(here.process(), "mart__dev.b")
    assert register(here.process(), "raw.b").table.name == "raw.b"


def test_an_unknown_format_comes_with_the_nearest():
    with pytest.raises(UsageError) as caught:
        register(place().process(), "raw.b", "parqet")
    assert caught.value.hint == "did you mean `parquet`?"


def test_what_the_catalog_has_is_left_alone():
    with pytest.raises(NameTaken):
        register(place().process(), "raw.a")


def test_a_query_that_would_make_a_table_is_told_what_makes_one():
    here = place()
    with pytest.raises(LaminaError) as caught:
        here.process().application().query(
            "CREATE TABLE raw.x USING csv LOCATION '/x'", environment=None, now=instant("2024-01-05"), limit=None
        )
    assert "`lamina source register`" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("data/x", str(Path("data/x").absolute())),
        ("/data/x", "/data/x"),
        ("s3a://b/x", "s3a://b/x"),
        ("file:/x", "file:/x"),
        ("hdfs:/x y", "hdfs:/x y"),
    ],
)
def test_a_path_counts_from_the_folder_of_the_command(path: str, found: str):
    assert register(place().process(), "raw.new", path=path).table.path == found
