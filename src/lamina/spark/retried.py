"""Which failures pass by themselves: the one list of what is tried again, and why that does no harm.

`docs/guides/production.md` shows the same list to users; a test keeps the two alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """One sort of failure: the words that tell it, what happened, and why it is tried again."""

    conditions: tuple[str, ...] = ()
    """Error conditions of Spark and Delta, with everything below them."""
    names: tuple[str, ...] = ()
    """Classes of exceptions and fixed texts, for failures without a condition that says anything."""
    happened: str
    """What happened, after the name of what was being done."""
    why: str
    is_unanswered: bool = False
    """Whether a statement that failed so may still land: then it is looked for before anything is done again."""

    @property
    def told_by(self) -> tuple[str, ...]:
        """Everything that tells it."""
        return (*self.conditions, *self.names)


RETRIED = (
    Retried(
        conditions=(
            "DELTA_CONCURRENT_APPEND",
            "DELTA_CONCURRENT_DELETE_DELETE",
            "DELTA_CONCURRENT_DELETE_READ",
            "DELTA_CONCURRENT_WRITE",
            "DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
            "DELTA_METADATA_CHANGED",
            "DELTA_PROTOCOL_CHANGED",
        ),
        happened="met another change of the same table",
        why="Delta refused the transaction as a whole, for instance because of an OPTIMIZE; its number was not used",
    ),
    Retried(
        names=("CommitFailedException",),
        happened="met another change of the same table",
        why="Iceberg refused the commit as a whole, and a batch is written to a branch that nobody reads",
    ),
    Retried(
        conditions=("FAILED_READ_FILE.FILE_NOT_EXIST",),
        happened="read files that were replaced meanwhile",
        why="the next try looks at the table anew",
    ),
    Retried(
        names=(
            "SlowDown",
            "AWSServiceThrottledException",
            "ThrottlingException",
            "ThrottledException",
            "TooManyRequestsException",
            "RequestLimitExceeded",
            "ProvisionedThroughputExceededException",
            "ServiceUnavailableException",
            "ServerBusy",
            "Status Code: 429",
            "Status Code: 503",
            "429 Too Many Requests",
            "503 Service Unavailable",
        ),
        happened="was told to slow down by the object store or the catalog",
        why="the request was not carried out, and the pause between tries is what was asked for",
    ),
    Retried(
        names=(
            "SocketTimeoutException",
            "ConnectTimeoutException",
            "ApiCallTimeoutException",
            "ApiCallAttemptTimeoutException",
            "TTransportException",
            "Could not connect to meta store",
            "NoHttpResponseException",
            "java.net.SocketException",
            "StandbyException",
            "RetriableException",
            "CommitStateUnknownException",
        ),
        happened="waited in vain for the object store or the catalog",
        why="rows are written aside, so a batch that got no answer is done anew",
        is_unanswered=True,
    ),
    Retried(
        conditions=(
            "RETRIES_EXCEEDED",
            "INVALID_HANDLE.SESSION_NOT_FOUND",
            "INVALID_HANDLE.SESSION_CLOSED",
            "INVALID_HANDLE.SESSION_CHANGED",
            "INVALID_HANDLE.OPERATION_NOT_FOUND",
            "INVALID_HANDLE.OPERATION_ABANDONED",
        ),
        happened="lost its connection to Spark",
        why="rows are written aside, so a batch that got no answer is done anew",
        is_unanswered=True,
    ),
    Retried(
        conditions=("UNABLE_TO_ACQUIRE_MEMORY",),
        names=("ExecutorLostFailure", "FetchFailed", "SparkContext was shut down", "java.net.ConnectException"),
        happened="lost an executor or found none that could do it",
        why="executors come back, and nothing of a failed job is used",
    ),
)


def retried_as(condition: str | None, words: str) -> Retried | None:
    """How a failure is tried again; None when it would only fail once more. `words` is what may be searched."""
    found = [one for one in RETRIED if any(_is_below(condition, name) for name in one.conditions)]
    found += [one for one in RETRIED if any(_has_name(words, name) for name in one.names)]
    return found[0] if found else None


def _is_below(condition: str | None, name: str) -> bool:
    return condition is not None and f"{condition}.".startswith(f"{name}.")


def _has_name(words: str, name: str) -> bool:
    return name in words and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", words) is not None
