"""Columns of external tables on fakes: which are asked for, what is kept, and what a failure leaves."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.app.looking.source_columns import SourceColumnsReport
from lamina.app.requests import SourceColumnsRequest
from lamina.errors import EngineError, LaminaError, UnknownName
from lamina.graph.model import Column, Source
from lamina.graph.names import NodeName
from tests.kit.app import Place, Process, january, reading
from tests.kit.engine import COLUMNS, Fault
from tests.kit.models import instant

KNOWN = (Column(name="ds", type="timestamp", comment="when"),)


def place() -> Place:
    """Models over a table that is not declared, one without columns and one with; and one table that nobody reads."""
    made = Place(
        reading("shop.a", "raw.a", "raw.b"),
        reading("shop.b", "shop.a", "raw.c"),
        sources={name: january(1) for name in ("raw.a", "raw.b", "raw.c", "raw.d")},
    )
    for name, columns in (("raw.b", None), ("raw.c", KNOWN), ("raw.d", None)):
        made.project.declared[NodeName(name)] = Source(name=NodeName(name), columns=columns, is_declared=True)
    return made


def ask(process: Process, *names: str, **options: Any) -> SourceColumnsReport:
    return process.application().source_columns(SourceColumnsRequest(now=instant("2024-01-05"), names=names, **options))


def statuses(report: SourceColumnsReport) -> dict[str, str]:
    return {str(table.name): table.status for table in report.tables}


def test_tables_that_models_read_and_whose_columns_are_unknown_are_written():
    here = place()
    report = ask(here.process())
    assert statuses(report) == {"raw.a": "written", "raw.b": "written"}
    assert report.exit_code == 0
    assert {name: source.columns for name, source in here.project.declared.items()} == {
        "raw.a": COLUMNS,
        "raw.b": COLUMNS,
        "raw.c": KNOWN,
        "raw.d": None,
    }


def test_again_there_is_nothing_to_do_and_spark_does_not_start():
    here = place()
    ask(here.process())
    process = here.process()
    report = ask(process)
    assert report.status == "nothing_to_do"
    assert not process.engine.calls


def test_all_of_them_can_be_looked_at_and_descriptions_stay():
    here = place()
    report = ask(here.process(), is_all=True)
    assert statuses(report) == {"raw.a": "written", "raw.b": "written", "raw.c": "written"}
    assert here.project.declared[NodeName("raw.c")].columns == (
        Column(name="ds", type="timestamp", comment="when"),
        Column(name="x", type="string"),
    )
    assert set(statuses(ask(here.process(), is_all=True)).values()) == {"unchanged"}


def test_tables_can_be_named_also_when_nobody_reads_them():
    here = place()
    assert statuses(ask(here.process(), "RAW.D", "`raw`.c")) == {"raw.d": "written", "raw.c": "written"}
    with pytest.raises(UnknownName, match=r"rwa\.d") as caught:
        ask(here.process(), "rwa.d")
    assert caught.value.hint == "did you mean `raw.d`?"


def test_a_check_writes_nothing_and_fails_when_something_would_be_written():
    here = place()
    report = ask(here.process(), is_check=True)
    assert statuses(report) == {"raw.a": "outdated", "raw.b": "outdated"}
    assert (report.status, report.exit_code) == ("failed", 1)
    assert NodeName("raw.a") not in here.project.declared
    ask(here.process())
    assert ask(here.process(), is_check=True).exit_code == 0


def test_a_table_that_cannot_be_read_is_named_and_the_others_are_written():
    here = place()
    del here.catalog.sources["raw.a"]
    report = ask(here.process())
    assert statuses(report) == {"raw.a": "failed", "raw.b": "written"}
    assert report.exit_code == 1
    (error,) = report.errors
    assert error.node == "raw.a"
    document = report.to_dict()
    assert [row["error"] and row["error"]["node"] for row in document["sources"]] == ["raw.a", None]
    assert document["sources"][1]["columns"][1] == {"name": "x", "type": "string", "description": None}


def test_a_spark_that_does_not_answer_is_an_error_of_the_command():
    process = place().process()
    process.engine.faults = [Fault("prepare", EngineError("no Spark"))]
    with pytest.raises(LaminaError, match="no Spark"):
        ask(process)
