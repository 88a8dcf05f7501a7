"""Calling Python models: what they are given, what they may return, what they may not do."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from lamina.app.user_code import call_fenced
from lamina.authoring import bind_model
from lamina.errors import BadModelResult, Location
from lamina.graph.model import KnowsVariables
from lamina.near_names import near_names
from lamina.spark.python.recorded_modules import RecordedModules, raised_by
from lamina.spark.rows.local import make_frame
from lamina.spark.rows.pandas_rows import is_pandas, pandas_columns, pandas_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lamina.app.ports.engine import PythonQuery
    from lamina.graph.model import Column, VariableValue

_SET_BY_FORMATS = ("spark.databricks.delta.", "spark.sql.parquet.fieldId.")
"""Settings that a table format changes in a session by itself, when its tables are read or written."""
_FENCE_HINT = "use DataFrames; settings of a model belong in `session_properties`"


class ModelContext(KnowsVariables):
    """What a Python model is called with first."""

    def __init__(
        self, session: SparkSession, tables: Mapping[str, str], variables: Mapping[str, VariableValue]
    ) -> None:
        super().__init__(variables)
        self.spark = session
        """The task's own Spark session, in UTC."""
        self._tables = {_plain(name): relation for name, relation in tables.items()}

    def table(self, name: str) -> DataFrame:
        """The rows of a model or source that this model declares as a dependency."""
        return self.spark.sql(f"SELECT * FROM {self._relation(name)}")

    def resolve_table(self, name: str) -> str:
        """Spark SQL that stands for a table of the environment, to be put into a query."""
        return self._relation(name)

    def _relation(self, name: str) -> str:
        relation = self._tables.get(_plain(name))
        if relation is None:
            near = near_names(_plain(name), self._tables)
            raise BadModelResult(
                f"`{name}` is not a table this model depends on",
                hint=f"did you mean `{near[0]}`?" if near else "name it in `depends_on` of the model",
            )
        return relation


def run_model(session: SparkSession, query: PythonQuery, declared: Sequence[Column] | None, name: str) -> DataFrame:
    """The rows that a Python model returns or yields, as one DataFrame.

    Raises `BadModelResult`, with file and line of the user's code, for anything that is not rows, for an exception,
    and for a model that changed the session.
    """
    modules = RecordedModules.of(query.body.modules)
    before = _session_state(session)
    try:
        function, result, pieces = call_fenced(partial(_called, session, modules, query, name))
    except Exception as error:
        hint = "correct the model's code; the line is where it was last seen"
        raise raised_by(error, modules, f"model `{name}`", BadModelResult, hint) from error
    after = _session_state(session)
    if before != after:
        raise BadModelResult(
            f"model `{name}` changed the Spark session: {_difference(before, after)}", hint=_FENCE_HINT
        )
    location = Location(file=function.__code__.co_filename, line=function.__code__.co_firstlineno)
    frames = [_frame(session, piece, declared, name, location) for piece in pieces]
    if not frames and declared and inspect.isgenerator(result):
        # A generator that yields nothing says that there are no rows.
        return make_frame(session, [], declared)
    if not frames:
        raise _nothing(name, location)
    union = frames[0]
    for frame in frames[1:]:
        union = union.unionByName(frame)
    return union


def _called(
    session: SparkSession, modules: RecordedModules, query: PythonQuery, name: str
) -> tuple[Callable[..., Any], Any, list[Any]]:
    """The model's function, its result, and everything that came out of that."""
    function = _function(modules, query, name)
    context = ModelContext(session, query.tables, query.variables)
    time = query.time
    given = (context, time.first, time.last, time.execution.to_datetime())
    call = bind_model(function, given, query.variables)
    result = function(*call.args, **call.kwargs)
    return function, result, list(_pieces(result))


def _function(modules: RecordedModules, query: PythonQuery, name: str) -> Callable[..., Any]:
    found = getattr(modules.load(query.body.module), query.body.function, None)
    if not inspect.isfunction(found):
        raise BadModelResult(f"model `{name}`: `{query.body.function}` is not a function of `{query.body.module}`")
    return found


def _pieces(result: Any) -> Iterator[Any]:
    """What was returned, or everything that was yielded."""
    if inspect.isgenerator(result):
        yield from result
    elif result is not None:
        yield result


def _frame(
    session: SparkSession, piece: Any, declared: Sequence[Column] | None, name: str, location: Location
) -> DataFrame:
    if _is_dataframe(piece):
        return piece  # type: ignore[no-any-return]  # checked by the line above
    if is_pandas(piece):
        columns = pandas_columns(piece, declared, name, location)
        try:
            return make_frame(session, pandas_rows(piece), columns)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise BadModelResult(
                f"model `{name}` returned a pandas DataFrame with a value that does not fit its column: {error}",
                hint="declare fitting types in `columns`",
                location=location,
            ) from error
    if piece is None:
        raise _nothing(name, location)
    raise BadModelResult(
        f"model `{name}` returned a `{type(piece).__module__}.{type(piece).__qualname__}`, not a DataFrame",
        hint="return or yield PySpark or pandas DataFrames",
        location=location,
    )


def _is_dataframe(value: Any) -> bool:
    """Connect's DataFrame is a class of its own on older Spark."""
    return isinstance(value, DataFrame) or type(value).__module__.startswith("pyspark.sql.connect.dataframe")


def _nothing(name: str, location: Location) -> BadModelResult:
    return BadModelResult(
        f"model `{name}` returned nothing",
        hint="return a DataFrame; one without rows is fine, as in `df.limit(0)`",
        location=location,
    )


# --- the fence --------------------------------------------------------------------------------------------------------
def _session_state(session: SparkSession) -> dict[str, str]:
    """Everything of a session that a model could change and another query would feel."""
    settings = session.conf.getAll.items()
    state = {f"setting `{key}`": value for key, value in settings if not key.startswith(_SET_BY_FORMATS)}
    # Asked without a query, which would be a job.
    state["current catalog"] = session.catalog.currentCatalog()
    state["current schema"] = session.catalog.currentDatabase()
    # Views of the session itself are listed in every schema, and here with nothing but views that all sessions share.
    for row in session.sql("SHOW VIEWS IN global_temp").collect():
        if not row.namespace:
            state[f"temporary view `{row.viewName}`"] = "exists"
    return state


def _difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    changed = [what for what in sorted({*before, *after}) if before.get(what) != after.get(what)]
    return ", ".join(changed)


def _plain(name: str) -> str:
    return name.replace("`", "").replace('"', "").lower()
