"""The Python API: the use cases without the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lamina.app.requests import AuditsRequest, PlanRequest, PromoteRequest, RegisterRequest, SourceColumnsRequest
from lamina.bootstrap import OpenOptions, open_application, parse_execution_time
from lamina.errors import UsageError
from lamina.planning.inputs import Flags

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from lamina.app.auditing.environment import AuditsReport
    from lamina.app.building.repair import RepairReport
    from lamina.app.environments.promote import PromoteReport
    from lamina.app.late_application import LateApplication
    from lamina.app.looking.register_source import RegisteredSource
    from lamina.app.looking.source_columns import SourceColumnsReport
    from lamina.app.ports.events import Event
    from lamina.app.report import Report
    from lamina.environments.pointers import Revision


def _ignore(_event: Event) -> None:
    """Nobody watches."""


class Environment:
    """An environment as recorded."""

    def __init__(self, revision: Revision, checkpoints: tuple[Revision, ...], baseline: str) -> None:
        self._revision, self._checkpoints, self._baseline = revision, checkpoints, baseline

    def to_dict(self) -> dict[str, Any]:
        """What `lamina env show --json` prints."""
        revision = self._revision
        return {
            "schema_version": 1,
            "name": revision.environment,
            "status": revision.status,
            "baseline": self._baseline,
            "revision": revision.number,
            "pointers": {
                str(name): {"version": pointer.version, "physical_table": pointer.physical}
                for name, pointer in sorted(revision.pointers.items())
            },
            "checkpoints": [
                {
                    "id": checkpoint.number,
                    "created_at": checkpoint.created_at.isoformat() if checkpoint.created_at else None,
                }
                for checkpoint in self._checkpoints
            ],
        }


class Project:
    """A project opened for work; use it as a context manager or call `close`."""

    def __init__(self, application: LateApplication) -> None:
        self._application = application

    @classmethod
    def open(cls, path: str | Path = ".", *, spark: SparkSession | None = None, target: str | None = None) -> Project:
        """Read the project at `path` anew. A session handed in is used as it is and never stopped."""
        options = OpenOptions(directory=Path(path), target=target, session=spark)
        return cls(open_application(options, _ignore))

    def plan(self, env: str | None = None, *, execution_time: str | None = None, **flags: Any) -> Report:
        """What `build` would do; `.to_dict()` is what `--json` prints."""
        return self._application.plan(_request("plan", env, execution_time, flags))

    def build(self, env: str | None = None, *, execution_time: str | None = None, **flags: Any) -> Report:
        """Make the environment match the project; failed models are in the report, they do not raise.

        `reset` loses the history of the models it names; `yes=True` says that this is meant.
        """
        is_agreed = bool(flags.pop("yes", False))
        if flags.get("reset") and not is_agreed:
            raise UsageError(
                "`reset` begins from scratch, and the history of these models is lost", hint="add `yes=True` if so"
            )
        return self._application.build(_request("build", env, execution_time, flags))

    def run(self, env: str | None = None, *, execution_time: str | None = None, **flags: Any) -> Report:
        """Process what has become due with the recorded code."""
        return self._application.run(_request("run", env, execution_time, flags))

    def query(self, sql: str, env: str | None = None, *, execution_time: str | None = None) -> DataFrame:
        """A PySpark DataFrame of a query whose names mean models of the environment."""
        frame: DataFrame = self._application.frame(sql, environment=env, now=parse_execution_time(execution_time))
        return frame

    def promote(
        self, source: str, destination: str, *, execution_time: str | None = None, **flags: Any
    ) -> PromoteReport:
        """Let `destination` show what `source` shows; raises what stands in the way."""
        known = {"select", "include_stale_upstreams", "allow_partial", "allow_gaps"}
        _check_keywords(flags, known)
        values = {**flags, "select": _texts(flags.get("select", ()))}
        now = parse_execution_time(execution_time)
        return self._application.promote(
            PromoteRequest(source=source.lower(), destination=destination.lower(), now=now, **values)
        )

    def audit(self, env: str | None = None, *, execution_time: str | None = None, **flags: Any) -> AuditsReport:
        """Ask the audits of an environment about what is built; failures are in the report, they do not raise."""
        _check_keywords(flags, {"select", "exclude", "start", "end", "concurrency"})
        values = {**flags, **{name: _texts(flags.get(name, ())) for name in ("select", "exclude")}}
        now = parse_execution_time(execution_time)
        return self._application.audit(AuditsRequest(environment=env, now=now, **values))

    def state_repair(self, env: str | None = None, *, execution_time: str | None = None) -> RepairReport:
        """Compute rows that are gone again and set views right; what cannot be is in the report, it does not raise."""
        return self._application.repair(env, parse_execution_time(execution_time))

    def source_columns(
        self, *names: str, all: bool = False, check: bool = False, execution_time: str | None = None
    ) -> SourceColumnsReport:
        """Write the columns of external tables into the project's files; tables that fail are in the report."""
        now = parse_execution_time(execution_time)
        return self._application.source_columns(SourceColumnsRequest(now=now, names=names, is_all=all, is_check=check))

    def source_register(
        self,
        name: str,
        *,
        path: str,
        format: str,  # the name of the flag
        option: Mapping[str, str] | None = None,
        execution_time: str | None = None,
    ) -> RegisteredSource:
        """Have the catalog know files as a table that models can read; raises what stands in the way."""
        now, options = parse_execution_time(execution_time), tuple((option or {}).items())
        return self._application.register_source(
            RegisterRequest(now=now, name=name, path=path, format=format, options=options)
        )

    def environment(self, name: str | None = None) -> Environment:
        """An environment's pointers and checkpoints."""
        revision, checkpoints = self._application.environment(name)
        return Environment(revision, checkpoints, self._application.settings().baseline)

    def close(self) -> None:
        """Let go of Spark and state."""
        self._application.close()

    def __enter__(self) -> Project:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_PACE = ("concurrency", "fail_fast", "skip_audits")
_LISTS = ("select", "exclude", "restate", "reset", "breaking", "non_breaking")


def _request(command: str, env: str | None, execution_time: str | None, flags: dict[str, Any]) -> PlanRequest:
    _check_keywords(flags, {*Flags.__dataclass_fields__, *_PACE})
    values = {name: value for name, value in flags.items() if name not in _PACE and value is not None}
    for name in _LISTS:
        if name in values:
            values[name] = _texts(values[name])
    return PlanRequest(
        command=command,
        now=parse_execution_time(execution_time),
        environment=env,
        flags=Flags(**values),
        concurrency=flags.get("concurrency"),
        is_fail_fast=bool(flags.get("fail_fast", False)),
        skips_audits=bool(flags.get("skip_audits", False)),
    )


def _check_keywords(flags: dict[str, Any], known: set[str]) -> None:
    unknown = sorted(set(flags) - known)
    if unknown:
        raise UsageError(
            f"unknown keyword{'s' if len(unknown) > 1 else ''} {', '.join(f'`{name}`' for name in unknown)}",
            hint=f"known: {', '.join(sorted(known))}",
        )


def _texts(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
