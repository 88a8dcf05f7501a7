"""Every error a user can meet, with a stable code.

    LaminaError
    ├── UsageError            LAM-USE-*    the command was called wrongly                      exit 2
    ├── OutputFailed          LAM-OUT-*    what a command answers cannot be written            exit 1
    ├── InvalidProject        LAM-PROJ-*   the files cannot be turned into a project           exit 2
    │   ├── ConfigError       LAM-CFG-*    lamina.yaml
    │   ├── SyntaxProblem     LAM-SQL-*    a header, a query or a macro cannot be read
    │   ├── DefinitionError   LAM-DEF-*    a model, seed or source says something impossible
    │   └── GraphError        LAM-GRAPH-*  names and dependencies
    ├── PlanError             LAM-PLAN-*   the plan cannot be made or applied as asked         exit 1
    ├── StateError            LAM-STATE-*  the state store                                     exit 1
    └── EngineError           LAM-SPARK-*  Spark, the catalog or the files                     exit 1

A class is one code. `Problems` bundles several of them so that a user sees everything wrong at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where a user wrote something; lines and columns count from one."""

    file: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        parts = [self.file or "<input>"]
        if self.line is not None:
            parts.append(str(self.line))
            if self.column is not None:
                parts.append(str(self.column))
        return ":".join(parts)


class LaminaError(Exception):
    """Base of all errors; knows what happened, where, and what to do next."""

    code: ClassVar[str] = "LAM-000"
    exit_code: ClassVar[int] = 1
    is_retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        location: Location | None = None,
        node: str | None = None,
        interval: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.location = location
        self.node = node
        self.interval = interval

    @property
    def problems(self) -> tuple[LaminaError, ...]:
        """The single errors this one stands for."""
        return (self,)

    @property
    def errors(self) -> list[dict[str, Any]]:
        """What `--json` prints for this error."""
        return [problem.to_dict() for problem in self.problems]

    def to_dict(self) -> dict[str, Any]:
        """One entry of the JSON error list."""
        location = self.location or Location()
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "file": location.file,
            "line": location.line,
            "column": location.column,
            "node": self.node,
            "interval": list(self.interval) if self.interval else None,
        }

    def __str__(self) -> str:
        where = f" ({self.location})" if self.location else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{self.code}: {self.message}{where}{hint}"


class Problems(LaminaError):
    """Several errors found together."""

    code = "LAM-MANY"

    def __init__(self, problems: Sequence[LaminaError]) -> None:
        self._problems = tuple(problems)
        first = next(iter(self._problems), None)
        super().__init__(
            "; ".join(dict.fromkeys(problem.message for problem in self._problems)),
            hint=first.hint if first is not None else None,
            location=first.location if first is not None else None,
            node=first.node if first is not None else None,
        )

    @property
    def problems(self) -> tuple[LaminaError, ...]:
        """The single errors, in the order they were found."""
        return self._problems

    @property
    def exit_code(self) -> int:  # type: ignore[override]  # depends on the errors inside
        """The most severe exit code of the bundled errors."""
        return max((problem.exit_code for problem in self._problems), default=1)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self._problems)


def raise_all(problems: Iterable[LaminaError]) -> None:
    """Raise nothing, the only problem, or all of them as one error."""
    found = tuple(problems)
    if len(found) == 1:
        raise found[0]
    if found:
        raise Problems(found)


# --- usage ---
class UsageError(LaminaError):
    """The command was called with something that cannot work."""

    code = "LAM-USE-001"
    exit_code = 2


class UnknownName(UsageError):
    """A model, selector or environment name matches nothing."""

    code = "LAM-USE-002"


class BadTime(UsageError):
    """A time or time range cannot be read or is empty."""

    code = "LAM-USE-003"


class NoProject(UsageError):
    """No `lamina.yaml` here or in a parent folder."""

    code = "LAM-USE-004"


class OutputFailed(LaminaError):
    """The result of a command cannot be written to where its output goes."""

    code = "LAM-OUT-001"


# --- project ---
class InvalidProject(LaminaError):
    """The project's files cannot be turned into a project."""

    code = "LAM-PROJ-001"
    exit_code = 2


class UnreadableFile(InvalidProject):
    """A project file cannot be read or decoded."""

    code = "LAM-PROJ-002"


class EmptyProject(InvalidProject):
    """The project defines no model and no seed."""

    code = "LAM-PROJ-003"


class ConfigError(InvalidProject):
    """`lamina.yaml` is not readable as configuration."""

    code = "LAM-CFG-001"


class UnknownConfigKey(ConfigError):
    """A key that Lamina does not know."""

    code = "LAM-CFG-002"


class BadConfigValue(ConfigError):
    """A value of the wrong type or outside its choices."""

    code = "LAM-CFG-003"


class MissingEnvironmentVariable(ConfigError):
    """`${ENV:NAME}` names a variable that is not set."""

    code = "LAM-CFG-004"


class EnvironmentChanged(ConfigError):
    """A value that a recorded definition takes from the environment is not what it was when it was recorded."""

    code = "LAM-CFG-005"


class MisplacedSecret(ConfigError):
    """`${SECRET:NAME}` stands where a query, its properties or what belongs to it would show the value."""

    code = "LAM-CFG-006"


class SyntaxProblem(InvalidProject):
    """A header, query or statement cannot be parsed."""

    code = "LAM-SQL-001"


class UnknownProperty(SyntaxProblem):
    """A property that the block does not have."""

    code = "LAM-SQL-002"


class UnknownKind(SyntaxProblem):
    """A model kind that does not exist."""

    code = "LAM-SQL-003"


class BadPropertyValue(SyntaxProblem):
    """A property's value has the wrong form."""

    code = "LAM-SQL-004"


class MacroError(SyntaxProblem):
    """A macro failed or was called wrongly."""

    code = "LAM-SQL-005"


class UnknownMacro(MacroError):
    """A macro or variable that nothing defines."""

    code = "LAM-SQL-006"


class DefinitionError(InvalidProject):
    """A definition contradicts itself or lacks something."""

    code = "LAM-DEF-001"


class BadName(DefinitionError):
    """A name that the catalog cannot hold."""

    code = "LAM-DEF-002"


class BadSeed(DefinitionError):
    """A CSV file that cannot be loaded as declared."""

    code = "LAM-DEF-003"


class BadPythonModel(DefinitionError):
    """A Python file that cannot be imported or a decorator used wrongly."""

    code = "LAM-DEF-004"


class BadSchedule(DefinitionError):
    """A cron, interval unit, start or end that cannot be used."""

    code = "LAM-DEF-005"


class BadSignal(DefinitionError):
    """A signal that does not exist, is called wrongly, or cannot be called at all."""

    code = "LAM-DEF-006"


class BadHook(DefinitionError):
    """A hook that does not exist, is called wrongly, or cannot be called at all."""

    code = "LAM-DEF-008"


class BadAudit(DefinitionError):
    """An audit that does not exist, is called wrongly, or reads what is not there when it runs."""

    code = "LAM-DEF-007"


class GraphError(InvalidProject):
    """Names or dependencies do not make a graph."""

    code = "LAM-GRAPH-001"


class DuplicateName(GraphError):
    """Two definitions share one name."""

    code = "LAM-GRAPH-002"


class DependencyCycle(GraphError):
    """Models that depend on each other in a cycle."""

    code = "LAM-GRAPH-003"


class AmbiguousName(GraphError):
    """A reference that fits several models."""

    code = "LAM-GRAPH-004"


class UndeclaredSource(GraphError):
    """A table that nothing defines, under `strict_sources`."""

    code = "LAM-GRAPH-005"


class UnknownColumn(GraphError):
    """A query asks a table for a column that it certainly does not have."""

    code = "LAM-GRAPH-006"


# --- planning and applying ---
class PlanError(LaminaError):
    """The plan cannot be made as asked."""

    code = "LAM-PLAN-001"


class NotYetSupported(PlanError):
    """Understood, but this release cannot carry it out."""

    code = "LAM-PLAN-002"


class PlanOutdated(PlanError):
    """What the plan was made from has changed meanwhile."""

    code = "LAM-PLAN-003"


class UnknownEnvironment(PlanError):
    """An environment that does not exist."""

    code = "LAM-PLAN-004"
    exit_code = 2


class EnvironmentDetached(PlanError):
    """The environment is detached; nothing may change it."""

    code = "LAM-PLAN-005"


class StaleUpstreams(PlanError):
    """Selected models have stale upstreams that were not selected."""

    code = "LAM-PLAN-006"


class BatchFailed(PlanError):
    """A batch of a model failed."""

    code = "LAM-PLAN-007"


class BadModelResult(PlanError):
    """A model returned something that cannot be stored as declared."""

    code = "LAM-PLAN-008"


class AuditFailed(PlanError):
    """A blocking audit found rows; `results` says how all audits of the batch came out."""

    code = "LAM-PLAN-009"
    results: tuple[Any, ...] = ()


class SignalFailed(PlanError):
    """A signal raised, or its answer says nothing about the intervals it was asked about."""

    code = "LAM-PLAN-010"


class PromotionRefused(PlanError):
    """What an environment shows is not fit to be shown by another one."""

    code = "LAM-PLAN-011"


class CatalogUnfit(PlanError):
    """The catalog that a model's name begins with cannot hold what the model needs."""

    code = "LAM-PLAN-012"


class HistoryLost(PlanError):
    """A command would take history from readers that they have now."""

    code = "LAM-PLAN-013"


# --- state ---
class StateError(LaminaError):
    """The state store cannot be used."""

    code = "LAM-STATE-001"


class StateTooNew(StateError):
    """The state was written by a newer Lamina."""

    code = "LAM-STATE-002"


class StateUnwritable(StateError):
    """The state store cannot be written."""

    code = "LAM-STATE-003"


class StateMissing(StateError):
    """Tables that Lamina made are there, and the state that knows them is not."""

    code = "LAM-STATE-008"


class DefinitionAltered(StateError):
    """A recorded definition is not the one that was recorded under its id; it is not run."""

    code = "LAM-STATE-009"


class CommitRefused(StateError):
    """Something a commit required is no longer true."""

    code = "LAM-STATE-004"


class LeaseLost(CommitRefused):
    """The lease was taken by another command."""

    code = "LAM-STATE-005"


class LeaseHeld(StateError):
    """Another command holds the lease."""

    code = "LAM-STATE-006"
    is_retryable = True
    seconds_left: float | None = None
    """After which it may be taken, unless whoever holds it still runs."""


class NoAnswer(StateError):
    """The store did not answer; whether the commit landed is unknown."""

    code = "LAM-STATE-007"


# --- Spark ---
class EngineError(LaminaError):
    """Spark could not do what was asked."""

    code = "LAM-SPARK-001"


class SparkMissing(EngineError):
    """PySpark is not installed."""

    code = "LAM-SPARK-002"


class JavaMissing(EngineError):
    """Java is missing, too old, or `JAVA_HOME` is wrong."""

    code = "LAM-SPARK-003"


class SparkStartFailed(EngineError):
    """The Spark session did not start."""

    code = "LAM-SPARK-004"


class AnalysisFailed(EngineError):
    """Spark refused a query: unknown column, table or type mismatch."""

    code = "LAM-SPARK-005"
    missing_table: str | None = None
    """The table that is not there, if that is why: its name in lower case, parts joined with dots."""


class QueryFailed(EngineError):
    """A query failed while running."""

    code = "LAM-SPARK-006"


class WarehouseUnwritable(EngineError):
    """The warehouse cannot be written: permissions or a full disk."""

    code = "LAM-SPARK-007"


class UnsharedWarehouse(EngineError):
    """Tables would lie on a local disk, and Spark's executors run on other machines."""

    code = "LAM-SPARK-021"


class RowsMissing(EngineError):
    """A batch was written, and the warehouse does not hold all of its rows; nothing of it is shown."""

    code = "LAM-SPARK-022"


class StorageMissing(EngineError):
    """Rows that are recorded are not where they lay: a folder, a table or a file of theirs is gone."""

    code = "LAM-SPARK-023"


class TransientFailure(EngineError):
    """A failure that is likely to pass: lost executor, connection, time-out."""

    code = "LAM-SPARK-008"
    is_retryable = True


class StatementUnanswered(EngineError):
    """A catalog statement got no answer and may still land."""

    code = "LAM-SPARK-009"


class PublishRefused(EngineError):
    """A table refuses a change for good: something other than Lamina changed or restricts it."""

    code = "LAM-SPARK-013"


class FilesRewritten(PublishRefused):
    """Files of a table were rewritten while a batch was written beside them; the batch is done again."""

    code = "LAM-SPARK-017"
    is_retryable = True


class FormatMissing(EngineError):
    """Spark does not have what a table format needs."""

    code = "LAM-SPARK-014"


class CatalogBusy(EngineError):
    """Another process holds the embedded catalog."""

    code = "LAM-SPARK-010"


class Cancelled(EngineError):
    """The work was cancelled."""

    code = "LAM-SPARK-011"
    exit_code = 130


class NameTaken(EngineError):
    """Something that Lamina did not make stands where one of its tables or views belongs."""

    code = "LAM-SPARK-012"


class HookFailed(EngineError):
    """A hook of a model raised an exception; nothing of the batch is shown."""

    code = "LAM-SPARK-016"


class StatementsFailed(EngineError):
    """A statement that follows an environment's view failed; the views show the new versions already."""

    code = "LAM-SPARK-015"
