"""Spark's replacing of `${…}` in every text that it parses, which is off but for what a model's author wrote.

By default `${env:NAME}` in a statement becomes what the driver's environment holds, wherever it stands: in a partition
value, a comment, a literal. Such texts come from rows and from people who must not read that.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from lamina.errors import EngineError
from lamina.spark.statements import setting_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from lamina.graph.kinds import Setting

SUBSTITUTION = "spark.sql.variable.substitute"
AS_WRITTEN = (SUBSTITUTION, "false")

_REFERENCE = re.compile(r"\$\{\S+?\}")
_VIEW = "lamina_substituted"


@contextmanager
def substituting(session: SparkSession, settings: Mapping[str, Setting]) -> Iterator[None]:
    """What is parsed inside is the author's own text, treated as the model's settings say."""
    if SUBSTITUTION not in settings:
        yield
        return
    session.conf.set(SUBSTITUTION, setting_text(settings[SUBSTITUTION]))
    try:
        yield
    finally:
        session.conf.set(*AS_WRITTEN)


def parsed(frame: DataFrame, settings: Mapping[str, Setting]) -> DataFrame:
    """The same rows, their texts parsed here and now; a Connect server parses them whenever rows are asked for."""
    session: Any = frame.sparkSession
    if SUBSTITUTION not in settings or isinstance(session, SparkSession):
        return frame
    frame.createOrReplaceTempView(_VIEW)
    return session.table(_VIEW)  # type: ignore[no-any-return]  # sessions of both kinds


def frame_as_written(root: Any, sql: str, apart: Callable[[], AbstractContextManager[Any]]) -> DataFrame:
    """A DataFrame of the root session as its text says; a session that was handed in may replace `${…}`, and stays so.

    The text is parsed in a session `apart`, and means what it means in the root.
    """
    if not _REFERENCE.search(sql) or root.conf.get(SUBSTITUTION, "true").lower() != "true":
        return root.sql(sql)  # type: ignore[no-any-return]  # sessions of both kinds
    if not isinstance(root, SparkSession):
        raise EngineError(
            "the query holds `${…}`, which the Spark Connect session that was handed in would replace",
            hint=f"set `{SUBSTITUTION}` to false in that session, or fetch the rows with `lamina query`",
        )
    jvm: Any = root._jvm  # noqa: SLF001  # PySpark has no public way to parse a text and do no more
    with apart() as session:
        plan = _parse(jvm, session._jsparkSession, sql)  # noqa: SLF001
    rows = jvm.org.apache.spark.sql.classic.Dataset.ofRows(root._jsparkSession, plan)  # noqa: SLF001
    return DataFrame(rows, root)


def _parse(jvm: Any, session: Any, sql: str) -> Any:
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    # The settings that hold for parsing are those of the thread's session.
    sessions.setActiveSession(session)
    try:
        return session.sessionState().sqlParser().parsePlan(sql)
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()
