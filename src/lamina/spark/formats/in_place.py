"""Changes of tables that are shown: carrying them out, and keeping them from landing."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from lamina.app.ports.engine import Landing
from lamina.app.ports.published import CommitRows, FastForward, WriteThrough
from lamina.errors import EngineError, FilesRewritten, PublishRefused, StatementUnanswered
from lamina.spark.errors import is_failure_of_spark, translate_statement
from lamina.spark.formats.delta import commit, fence
from lamina.spark.formats.iceberg import (
    ancestry,
    drop_branch_text,
    fast_forward_text,
    is_landed_text,
    lineage,
    reference_text,
    snapshots_text,
    way_from,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from lamina.app.ports.published import InPlace
    from lamina.spark.catalog.catalog import Catalog
    from lamina.spark.sessions.session import Sessions

Found = TypeVar("Found")
_HINT = "something other than Lamina changed the table or restricts it; mend that and run the command again"


class InPlaceChanges:
    """Changes of tables that keep a history, in sessions that nothing interrupts."""

    def __init__(self, sessions: Sessions, catalog: Catalog) -> None:
        self._sessions, self._catalog = sessions, catalog

    def publish(self, publish: InPlace) -> int | None:
        """Carry a change out; done twice it is the same. Answers the table's version that holds it."""
        match publish:
            case CommitRows():
                root = self._catalog.location_of(publish.physical.rpartition(".")[0])
                return self._refusable(publish, lambda session: commit(session, publish, root))
            case FastForward():
                snapshot = self._move_forward(publish)
                self._sessions.refresh(publish.generation)
                return snapshot
            case WriteThrough():
                raise EngineError(f"the change of `{publish.generation}` can only be made by the batch itself")
            case _:
                raise TypeError(publish)

    def retract(self, publish: InPlace) -> Landing | None:
        """Keep a change from landing any more; answers where it is if it had landed before."""
        match publish:
            case CommitRows() | WriteThrough():
                return self._apart(publish, lambda session: fence(session, publish))
            case FastForward():
                text = drop_branch_text(publish.generation, publish.branch)
                self._catalog.execute(text, f"forgetting branch `{publish.branch}`")
                return Landing(snapshot=publish.head.snapshot) if self._is_landed(publish) else None
            case _:
                raise TypeError(publish)

    def _move_forward(self, publish: FastForward) -> int | None:
        try:
            self._catalog.execute(fast_forward_text(publish), f"showing new rows of `{publish.physical}`")
        except StatementUnanswered:
            raise
        except EngineError as error:
            if not self._is_landed(publish):
                if error.is_retryable:
                    raise
                if self._may_be_rewritten(publish):
                    raise FilesRewritten(
                        f"files of `{publish.generation}` were rewritten while new rows were written for it",
                        hint="run the command again; it writes them once more",
                    ) from error
                raise PublishRefused(error.message, hint=_HINT) from error
        if publish.former is not None:
            text = drop_branch_text(publish.generation, publish.former)
            self._catalog.execute(text, f"forgetting branch `{publish.former}`")
        return publish.head.snapshot

    def _is_landed(self, publish: FastForward) -> bool:
        return bool(self._catalog.read(is_landed_text(publish), f"looking at the history of `{publish.generation}`"))

    def _may_be_rewritten(self, publish: FastForward) -> bool:
        """Whether the table may hold the rows that the branch was made from, in other files.

        The next try makes sure of it where that cannot be told any more.
        """
        doing = f"looking at the history of `{publish.generation}`"
        made_from = ancestry(self._catalog.read(snapshots_text(publish.generation), doing))
        main = self._catalog.read(reference_text(publish.generation, "main"), doing)
        if not main:
            return False
        return way_from(made_from, main[0][0], lineage(made_from, publish.head.snapshot)) != "changed"

    def _refusable(self, publish: InPlace, work: Callable[[SparkSession], int | None]) -> int | None:
        try:
            return self._apart(publish, work)
        except StatementUnanswered:
            raise
        except EngineError as error:
            if error.is_retryable:
                raise
            raise PublishRefused(error.message, hint=_HINT) from error

    def _apart(self, publish: InPlace, work: Callable[[SparkSession], Found]) -> Found:
        with self._sessions.apart() as session:
            try:
                return work(session)
            except Exception as error:
                if not is_failure_of_spark(error):
                    raise
                raise translate_statement(error, f"showing new rows of `{publish.physical}`") from error
