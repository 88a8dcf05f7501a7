"""Spark's exceptions in Lamina's words; nothing else translates them.

What kind of failure it is comes from the class and the error condition. Failures of the file system and lost executors
carry none: they are told by the operating system's own words (`os.strerror`), by names of Java's exception classes and
by Hadoop's fixed texts.
"""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import AnalysisException, ParseException, PySparkException, PythonException

from lamina.errors import (
    AnalysisFailed,
    Cancelled,
    LaminaError,
    QueryFailed,
    StatementUnanswered,
    TransientFailure,
    WarehouseUnwritable,
)
from lamina.spark.retried import retried_as
from lamina.sql.places import place_of

if TYPE_CHECKING:
    from lamina.errors import Location
    from lamina.sql.fragment import Fragment

SparkFailure = (PySparkException, Py4JError, OSError)
"""What PySpark lets out; gRPC's own errors are `OSError`s of neither kind and found by name."""

Found = TypeVar("Found", bound=LaminaError)

_CANCELLED = frozenset({"OPERATION_CANCELED", "INTERRUPTED", "SPARK_JOB_CANCELLED", "JOB_CANCELLED"})
_VAGUE = ("_LEGACY_ERROR", "TASK_WRITE_FAILED", "FAILED_", "INTERNAL_ERROR")
_CONNECTION_CLASSES = frozenset(
    {"RpcError", "_InactiveRpcError", "_MultiThreadedRendezvous", "SparkConnectGrpcException", "RetriesExceeded"}
)
_SYSTEM_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EROFS)
_HADOOP_REFUSALS = {
    "AccessControlException": "access denied",
    "AccessDeniedException": "access denied",
    "ParentNotDirectoryException": "a file is where a folder should be",
}
_PLACE_REFUSED = re.compile(
    r"(?:Mkdirs failed to create|Unable to create database path|Failed to create database)"
    r" '?(?:file:/*(?=/))?([^\s',]+)"
)
_CLASS_PREFIX = re.compile(r"^(?:[\w$]+\.)+[\w$]*(?:Exception|Error)\s*:\s*")
_CONDITION_PREFIX = re.compile(r"^\s*\[([A-Z][A-Z0-9_.]+)\]\s*")
_CAUSE = re.compile(r"^Caused by: (.*)$", re.MULTILINE)
_TAIL = re.compile(r"\s*SQLSTATE: \w+.*$", re.DOTALL)
_PARSE_PLACE = re.compile(r"\(line (\d+), pos (\d+)\)")
_NO_TABLE = "TABLE_OR_VIEW_NOT_FOUND"
_NEWLINE = "\n"
_LONGEST = 500


def is_failure_of_spark(error: BaseException) -> bool:
    """Whether the exception comes from Spark or from the way to it."""
    return isinstance(error, SparkFailure) or bool(_CONNECTION_CLASSES & _class_names(error))


def condition_of(error: BaseException) -> str | None:
    """The error condition that says most: that of the innermost cause which has one."""
    found = _innermost(error)
    return found[0] if found else None


def summary_of(error: BaseException) -> str:
    """What happened, in one or two sentences of Spark's own, without stack traces."""
    found = _innermost(error)
    return _shorten(found[1] if found else _text_of(error))


def translate(
    error: BaseException,
    doing: str,
    *,
    is_cancelled: bool = False,
    query: str | None = None,
    written: Fragment | None = None,
) -> LaminaError:
    """The Lamina error for a failure while `doing` something.

    `query` is the SQL that was sent and `written` what it was made of, to say where Spark found something wrong.
    """
    if isinstance(error, LaminaError):
        return error
    condition = condition_of(error)
    if is_cancelled or condition in _CANCELLED:
        return Cancelled(f"{doing} was cancelled")
    if isinstance(error, PythonException):
        return QueryFailed(
            f"{doing} failed in Python code that runs on Spark: {_last_python_line(_chain(error)[0][0])}"
        )
    words = _words_of(error, condition)
    retried = retried_as(condition, words)
    if retried is not None or is_connection_lost(error):
        happened = retried.happened if retried is not None else "lost its connection to Spark"
        return TransientFailure(
            f"{doing} {happened}: {summary_of(error)}",
            hint="run the command again; what is finished is not repeated",
        )
    refusal = _system_refusal(words)
    if refusal:
        return WarehouseUnwritable(
            f"{doing} could not write to the warehouse: {refusal}",
            hint="free space or give write access to the warehouse folder, then run the command again",
        )
    found = _find_place(error, query) if query is not None else None
    location = place_of(written, query, found[0]) if found and query is not None and written is not None else None
    what = f"{summary_of(error)}{_shown_place(condition, found, None if location else query)}"
    if isinstance(error, AnalysisException):
        verb = "cannot be parsed by Spark" if isinstance(error, ParseException) else "was refused by Spark"
        refused = AnalysisFailed(f"{doing} {verb}: {what}", location=location)
        refused.missing_table = _asked_for(error) if condition == _NO_TABLE else None
        return refused
    return QueryFailed(f"{doing} failed: {what}", location=location)


def translate_statement(error: BaseException, doing: str) -> LaminaError:
    """Like `translate`, for a catalog statement: one whose answer was lost may still land."""
    condition = condition_of(error)
    retried = retried_as(condition, _words_of(error, condition))
    if is_connection_lost(error) or condition in _CANCELLED or (retried is not None and retried.is_unanswered):
        return StatementUnanswered(
            f"{doing} got no answer from Spark: {summary_of(error)}",
            hint="run the command again; it looks at what was done before it goes on",
        )
    return translate(error, doing)


def is_connection_lost(error: BaseException) -> bool:
    """Whether the JVM or the server did not answer."""
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return True
    if isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError):
        return True
    names = _class_names(error)
    if "SparkConnectGrpcException" in names:
        # The base class of everything the server answers, and itself when it did not answer.
        return type(error).__name__ == "SparkConnectGrpcException" and condition_of(error) is None
    return bool(_CONNECTION_CLASSES & names)


def at(error: Found, location: Location, node: str, interval: tuple[str, str] | None = None) -> Found:
    """The same error, with the place it belongs to where it does not know one."""
    error.location = error.location or location
    error.node = error.node or node
    error.interval = error.interval or interval
    return error


# --- reading exceptions -----------------------------------------------------------------------------------------------
def _innermost(error: BaseException) -> tuple[str, str] | None:
    """Condition and message of the innermost cause that has a condition."""
    found: tuple[str, str] | None = None
    for message, condition in _chain(error):
        prefixed = _CONDITION_PREFIX.match(_CLASS_PREFIX.sub("", message))
        named = condition or (prefixed[1] if prefixed else None)
        if named is not None:
            found = named, message
    return found


def _chain(error: BaseException) -> list[tuple[str, str | None]]:
    """Message and condition of the exception and its causes, outermost first."""
    if isinstance(error, Py4JJavaError):
        chain: list[tuple[str, str | None]] = []
        cause = error.java_exception
        while cause is not None and len(chain) < 20:
            chain.append((str(cause.toString()), None))
            cause = cause.getCause()
        return chain
    outer = (str(error).split("\n\nJVM stacktrace:", 1)[0], None)
    if not isinstance(error, PySparkException):
        return [outer]
    # Neither kind of session says what the cause was, other than in the stack trace.
    trace = getattr(error, "_stackTrace", None) or getattr(error, "_stacktrace", None) or ""
    causes = [(match[1], None) for match in _CAUSE.finditer(trace)]
    return [(outer[0], error.getCondition()), *causes]


def _text_of(error: BaseException) -> str:
    """Every message on the way to the innermost cause."""
    return "\n".join(message for message, _ in _chain(error))


def _words_of(error: BaseException, condition: str | None) -> str:
    """What may be searched for names: words decide only where no condition does, as others may come out of the data."""
    return _text_of(error) if condition is None or condition.startswith(_VAGUE) else ""


def _shorten(text: str) -> str:
    text = _CLASS_PREFIX.sub("", text.strip().split("\n\nJVM stacktrace:", 1)[0])
    text = _TAIL.sub("", _CONDITION_PREFIX.sub("", text)).strip()
    first = " ".join(line.strip() for line in text.split("\n\n", 1)[0].splitlines()[:4])
    first = first.rstrip(".").strip()
    return first if len(first) <= _LONGEST else first[:_LONGEST] + "…"


def _find_place(error: BaseException, query: str) -> tuple[int, str] | None:
    """Offset and text of the part of the SQL that Spark is not content with."""
    for context in (error.getQueryContext() if isinstance(error, PySparkException) else []) or []:
        if context.contextType().name != "SQL" or context.startIndex() < 0 or context.objectType():
            continue
        offset, fragment = context.startIndex(), context.fragment()
        if not query.startswith(fragment, offset):
            # What was sent may name older versions of tables besides.
            offset = query.find(fragment)
        if offset >= 0:
            return offset, fragment
    # Of a text that cannot be parsed only the message says where.
    parsed = _PARSE_PLACE.search(str(error)) if isinstance(error, ParseException) else None
    if parsed is None:
        return None
    lines = query.splitlines(keepends=True)
    offset = sum(len(line) for line in lines[: int(parsed[1]) - 1]) + int(parsed[2])
    return offset, query[offset:].split(maxsplit=1)[0] if query[offset:].strip() else ""


def _shown_place(condition: str | None, found: tuple[int, str] | None, query: str | None) -> str:
    """Condition and part of the query, in parentheses: what a reader looks up or looks at."""
    parts = [condition] if condition else []
    if found is not None:
        line = f"line {query[: found[0]].count(_NEWLINE) + 1} of the SQL sent, " if query is not None else ""
        parts.append(f"{line}at `{one_line(found[1])}`")
    return f" ({', '.join(parts)})" if parts else ""


def _asked_for(error: AnalysisException) -> str:
    """The table that is not there, as `schema.table`."""
    name = (error.getMessageParameters() or {}).get("relationName", "")
    return name.replace("`", "").lower().removeprefix("spark_catalog.")


def one_line(text: str) -> str:
    """The text on one line, cut where it gets long."""
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:80] + "…"


def _system_refusal(text: str) -> str | None:
    for number in _SYSTEM_ERRORS:
        words = os.strerror(number)
        if words in text:
            return words.lower()
    place = _PLACE_REFUSED.search(text)
    if place is not None:
        return f"`{place[1]}` cannot be made"
    return next((said for words, said in _HADOOP_REFUSALS.items() if words in text), None)


def _last_python_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def _class_names(error: BaseException) -> set[str]:
    return {cls.__name__ for cls in type(error).__mro__}
