"""`lamina source columns`: what is asked of the application, and how its answer is told."""

from __future__ import annotations

import json

import pytest

from lamina.app.looking.register_source import RegisteredSource
from lamina.app.looking.source_columns import SourceColumnsReport, TableColumns
from lamina.app.ports.engine import ExternalTable
from lamina.app.requests import RegisterRequest, SourceColumnsRequest
from lamina.errors import AnalysisFailed
from lamina.graph.model import Column
from lamina.graph.names import NodeName
from tests.kit.models import instant
from tests.unit.cli.conftest import Lamina
from tests.unit.cli.fake_application import FakeApplication

ORDERS = TableColumns(
    name=NodeName("raw.orders"),
    status="written",
    file="sources/raw.yml",
    columns=(Column(name="id", type="bigint", comment="the key"),),
)
MISSING = TableColumns(name=NodeName("raw.gone"), status="failed", error=AnalysisFailed("there is no `raw.gone`"))


def test_names_and_flags_reach_the_application(lamina: Lamina, application: FakeApplication):
    application.columns = SourceColumnsReport(tables=())
    answer = lamina("source", "columns", "raw.orders", "raw.b", "--check")
    assert answer.exit_code == 0
    assert "Nothing to do" in answer.stdout
    assert application.requests == [
        SourceColumnsRequest(now=instant("2024-01-08"), names=("raw.orders", "raw.b"), is_check=True)
    ]


def test_tables_and_failures_are_told(lamina: Lamina, application: FakeApplication):
    application.columns = SourceColumnsReport(tables=(ORDERS, MISSING))
    answer = lamina("source", "columns", "--all")
    assert answer.exit_code == 1
    assert "raw.orders" in answer.stdout
    assert "1 table written" in answer.stdout
    assert "there is no `raw.gone`" in answer.stderr


def test_the_document_holds_every_table(lamina: Lamina, application: FakeApplication):
    application.columns = SourceColumnsReport(tables=(ORDERS, MISSING))
    answer = lamina("source", "columns", "--json")
    document = json.loads(answer.stdout)
    assert (document["schema_version"], document["command"], document["status"]) == (1, "source columns", "failed")
    assert document["sources"][0] == {
        "name": "raw.orders",
        "status": "written",
        "file": "sources/raw.yml",
        "columns": [{"name": "id", "type": "bigint", "description": "the key"}],
        "error": None,
    }
    assert document["sources"][1]["error"]["code"] == "LAM-SPARK-005"


def test_names_and_all_exclude_each_other(lamina: Lamina):
    assert lamina("source", "columns", "raw.orders", "--all").exit_code == 2


REGISTERED = RegisteredSource(
    table=ExternalTable(name="raw.orders", path="/data/orders", format="csv"),
    columns=(Column(name="id", type="bigint"),),
)


def test_a_table_is_registered_as_asked(lamina: Lamina, application: FakeApplication):
    application.registered = REGISTERED
    words = ("--path", "s3a://b/orders", "--format", "csv", "--option", "header=true", "--option", "sep==")
    answer = lamina("source", "register", "raw.orders", *words)
    assert answer.exit_code == 0
    assert application.requests == [
        RegisterRequest(
            now=instant("2024-01-08"),
            name="raw.orders",
            path="s3a://b/orders",
            format="csv",
            options=(("header", "true"), ("sep", "=")),
        )
    ]
    assert "registered raw.orders: csv at /data/orders" in answer.stdout
    assert "lamina query 'SELECT * FROM raw.orders'" in answer.stdout


def test_a_registered_table_is_a_document(lamina: Lamina, application: FakeApplication):
    application.registered = REGISTERED
    answer = lamina("source", "register", "raw.orders", "--path", "data", "--format", "parquet", "--json")
    assert json.loads(answer.stdout)["source"]["columns"] == [{"name": "id", "type": "bigint"}]


@pytest.mark.parametrize("words", [("--option", "header"), ("--option", "=x"), ("--format", "xls")])
def test_what_cannot_be_registered_is_wrong_usage(lamina: Lamina, words: tuple[str, ...]):
    given = ("--path", "x", *(() if "--format" in words else ("--format", "csv")), *words)
    assert lamina("source", "register", "raw.x", *given).exit_code == 2
