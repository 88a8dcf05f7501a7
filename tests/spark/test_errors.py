"""Spark's exceptions in Lamina's words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import AnalysisException, ParseException, PySparkException, SparkRuntimeException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException, UnknownException

from lamina.errors import (
    AnalysisFailed,
    Cancelled,
    LaminaError,
    Location,
    QueryFailed,
    StatementUnanswered,
    TransientFailure,
    WarehouseUnwritable,
)
from lamina.spark.errors import is_failure_of_spark, translate, translate_statement
from lamina.sql.fragment import Fragment


class Answered(UnknownException):
    """An answer of a Connect server, with what it says about causes."""

    def __init__(self, message: str, condition: str | None = None, trace: str | None = None) -> None:
        super().__init__(message, errorClass=condition, messageParameters={}, server_stacktrace=trace)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Answered("x", "OPERATION_CANCELED"), Cancelled),
        (Answered("Job 5 was cancelled", "SPARK_JOB_CANCELLED"), Cancelled),
        (Answered("[CAST_INVALID_INPUT] The value 'No space left on device'", "CAST_INVALID_INPUT"), QueryFailed),
        (Answered("Job aborted: ExecutorLostFailure (executor 1 exited)"), TransientFailure),
        (Answered("gone", "INVALID_HANDLE.SESSION_CLOSED"), TransientFailure),
        (SparkConnectGrpcException("failed to connect"), TransientFailure),
        (Py4JNetworkError("Answer from Java side is empty"), TransientFailure),
        (ConnectionRefusedError("refused"), TransientFailure),
        (Answered("failed", None, "x\nCaused by: java.io.IOException: No space left on device\n"), WarehouseUnwritable),
        (Answered("java.io.FileNotFoundException: /x (Permission denied)"), WarehouseUnwritable),
        (Answered("org.apache.hadoop.security.AccessControlException: no"), WarehouseUnwritable),
        (Answered("(java.io.IOException) Mkdirs failed to create file:/x"), WarehouseUnwritable),
        (Answered("failed", None, "x\nCaused by: java.io.IOException: File too large\n"), WarehouseUnwritable),
        (
            Answered("x", "_LEGACY_ERROR_TEMP_3065", "\nCaused by: ERROR XJ041: Failed to create database '/m', see"),
            WarehouseUnwritable,
        ),
        (Answered("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012", "DIVIDE_BY_ZERO"), QueryFailed),
        (Answered("x", "DELTA_CONCURRENT_APPEND.WITHOUT_HINT"), TransientFailure),
        (Answered("x", "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"), TransientFailure),
        # Somebody else used the number of this very write: it is looked for, not repeated.
        (Answered("x", "DELTA_CONCURRENT_TRANSACTION"), QueryFailed),
        (Answered("(org.apache.iceberg.exceptions.CommitFailedException) Cannot commit"), TransientFailure),
        (
            Answered("failed", "TASK_WRITE_FAILED", "\nCaused by: c.S3Exception: (Service: S3, Status Code: 503, x)\n"),
            TransientFailure,
        ),
        (Answered("[CAST_INVALID_INPUT] The value 'Status Code: 503'", "CAST_INVALID_INPUT"), QueryFailed),
        (Answered("failed", None, "\nCaused by: java.net.SocketTimeoutException: Read timed out\n"), TransientFailure),
        (Answered("MetaException(message:Could not connect to meta store using any URI)"), TransientFailure),
        (Answered("no method named isServerBusy"), QueryFailed),
    ],
)
def test_a_failure_is_told_by_its_class_and_condition(error: Exception, expected: type[LaminaError]) -> None:
    assert is_failure_of_spark(error)
    assert type(translate(error, "the query")) is expected


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Mkdirs failed to create file:/shop/w/part (exists=false, cwd=file:/shop)", "/shop/w/part"),
        ("Unable to create database path file:///shop/w/a.db, failed to create database a", "/shop/w/a.db"),
        ("Failed to create database '/shop/.lamina/metastore', see the next exception", "/shop/.lamina/metastore"),
        ("Mkdirs failed to create hdfs://names/w/part (exists=false)", "hdfs://names/w/part"),
    ],
)
def test_a_place_that_cannot_be_made_is_named(text: str, place: str) -> None:
    assert translate(Answered(text), "it").message == f"it could not write to the warehouse: `{place}` cannot be made"


def test_a_catalog_statement_without_an_answer_may_still_land() -> None:
    lost = SparkConnectGrpcException("Socket closed")
    assert type(translate_statement(lost, "adding partitions")) is StatementUnanswered
    assert type(translate_statement(Py4JNetworkError("gone"), "adding partitions")) is StatementUnanswered
    refused = Answered("[DIVIDE_BY_ZERO] x", "DIVIDE_BY_ZERO")
    assert type(translate_statement(refused, "adding partitions")) is QueryFailed


def test_a_catalog_statement_that_was_refused_for_the_moment_is_repeated() -> None:
    for refused in (Answered("x", "DELTA_CONCURRENT_DELETE_READ"), Answered("S3Exception: SlowDown")):
        assert type(translate_statement(refused, "adding partitions")) is TransientFailure
    for late in ("java.net.SocketTimeoutException: Read timed out", "org.apache.thrift.transport.TTransportException"):
        assert type(translate_statement(Answered(late), "adding partitions")) is StatementUnanswered


def test_what_was_cancelled_is_cancelled_whatever_it_says() -> None:
    assert type(translate(Answered("anything"), "the query", is_cancelled=True)) is Cancelled


def test_messages_are_short_and_without_stack_traces() -> None:
    trace = "\n\nJVM stacktrace:\norg.apache.spark.X\n\tat org.apache.Y"
    error = Answered(
        "[SOME_CONDITION] It went wrong.\nSomewhere. SQLSTATE: 12345; line 1 pos 2" + trace, "SOME_CONDITION"
    )
    assert translate(error, "the query").message == "the query failed: It went wrong. Somewhere (SOME_CONDITION)"


class Placed(AnalysisException):
    """A refusal that says which part of a query it is about."""

    def __init__(self, fragment: str, start: int, condition: str = "SOME_CONDITION", view: str = "", **parameters: str):
        super().__init__("it went wrong")
        self._about = SimpleNamespace(
            contextType=lambda: SimpleNamespace(name="SQL"),
            startIndex=lambda: start,
            fragment=lambda: fragment,
            objectType=lambda: view,
        )
        self._named, self._parameters = condition, parameters

    def getCondition(self) -> str:  # noqa: N802  # as PySpark calls it
        return self._named

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802  # as PySpark calls it
        return self._parameters

    def getQueryContext(self) -> list[Any]:  # noqa: N802  # as PySpark calls it
        return [self._about]


WRITTEN = Fragment(text="SELECT\n  a,\n  @f(b)\nFROM t", location=Location(file="models/m.sql", line=4, column=1))
SENT = "SELECT * FROM (\nSELECT\n  a,\n  f(b)\nFROM `g`.`t`\n) WHERE x"


def test_what_spark_refuses_is_told_where_it_is_written() -> None:
    error = translate(Placed("a", SENT.index("a,")), "it", query=SENT, written=WRITTEN)
    assert error.location == Location(file="models/m.sql", line=5, column=3)
    assert error.message == "it was refused by Spark: it went wrong (SOME_CONDITION, at `a`)"
    # The names of older versions of tables were added on the way.
    error = translate(Placed("f(b)", SENT.index("f(b)") + 20), "it", query=SENT, written=WRITTEN)
    assert error.location is not None
    assert error.location.line == 6


def test_without_what_it_was_made_of_the_lines_of_the_sql_are_counted() -> None:
    error = translate(Placed("a", SENT.index("a,")), "it", query=SENT)
    assert error.location is None
    assert "line 3 of the SQL sent, at `a`" in error.message


def test_the_text_of_a_view_is_not_taken_for_the_query() -> None:
    error = translate(Placed("a", 7, view="VIEW"), "it", query=SENT, written=WRITTEN)
    assert error.location is None


def test_a_query_that_cannot_be_parsed_is_told_by_its_line() -> None:
    refused = ParseException(
        "[PARSE_SYNTAX_ERROR] Syntax error at or near 'f'. SQLSTATE: 42601 (line 4, pos 2)\n\n== SQL =="
    )
    error = translate(refused, "it", query=SENT, written=WRITTEN)
    assert error.location == Location(file="models/m.sql", line=6, column=4)


def test_a_table_that_is_not_there_is_named() -> None:
    refused = Placed("t", SENT.index("`t`"), "TABLE_OR_VIEW_NOT_FOUND", relationName="`spark_catalog`.`raw`.`Orders`")
    error = translate(refused, "it", query=SENT, written=WRITTEN)
    assert isinstance(error, AnalysisFailed)
    assert error.missing_table == "raw.orders"


def test_refusals_of_pyspark_itself_are_failures_too() -> None:
    for error in (PySparkException("x"), AnalysisException("x"), SparkRuntimeException("x")):
        assert is_failure_of_spark(error)
    assert isinstance(translate(AnalysisException("x"), "the query"), AnalysisFailed)
    assert is_failure_of_spark(grpc.RpcError())
    assert not is_failure_of_spark(ValueError("x"))
