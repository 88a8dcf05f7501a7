"""The composition root: the one place that names concrete adapters, reads the clock and the process's surroundings.

Adapters are imported when they are chosen, so that the command line starts fast and a missing PySpark is a readable
error.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import sys
import time
import uuid
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import assert_never

from lamina.errors import LaminaError, SparkMissing
from lamina.graph.formats import TABLE_FORMATS
from lamina.graph.sealing import hide_in, without_values
from lamina.timeline.interval import Instant
from lamina.timeline.parse import parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lamina.app.application import Application
    from lamina.app.late_application import LateApplication
    from lamina.app.looking.querying import Querying
    from lamina.app.ports.bundle import Ports
    from lamina.app.ports.engine import (
        AnalysisOutcome,
        AnalysisRequest,
        AuditFinding,
        AuditRequest,
        Engine,
        ExternalTable,
        GenerationRequest,
        HideView,
        Landing,
        QueryResult,
        ShowView,
        StatementsRequest,
        WriteRequest,
        Written,
    )
    from lamina.app.ports.events import Emit
    from lamina.app.ports.loaded import Owner
    from lamina.app.ports.machine import Reach, Standing
    from lamina.app.ports.project import Question
    from lamina.app.ports.published import Head, Publish
    from lamina.app.ports.state import StateStore
    from lamina.graph.formats import TableFormat
    from lamina.graph.model import Column, PythonModule
    from lamina.graph.names import NodeName
    from lamina.identity.naming import PhysicalName
    from lamina.project.configuration.values import Config
    from lamina.timeline.interval import Intervals

STOP_VARIABLE = "LAMINA_STOP_AT"
"""For tests: `kill:write.decided` or `stop:write.decided:2` ends or halts the process at that (n-th) kill point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenOptions:
    """How a project is opened; `session` is a Spark session of the caller's own."""

    directory: Path | None = None
    target: str | None = None
    debug: bool = False
    session: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One thing `doctor` looked at."""

    name: str
    status: str
    detail: str
    fix: str | None = None


class SystemClock:
    """The machine's clock."""

    def now(self) -> Instant:
        """The current instant."""
        return Instant.of(datetime.now(timezone.utc))

    def elapsed(self) -> float:
        """Seconds since some moment, time asleep included where the system tells."""
        boot_time = getattr(time, "CLOCK_BOOTTIME", None)
        return time.clock_gettime(boot_time) if boot_time is not None else time.monotonic()


class SystemProcesses:
    """The processes that this one can see, told apart as Linux does it.

    A process is known by the boot, the name spaces (containers on one machine share its boot, and each counts its own
    processes), its number, and the moment of its start, because numbers are given again. What runs in another name
    space or on another machine cannot be seen from here, and is never called gone.
    """

    def identify(self, process: int) -> str | None:
        """See `Processes.identify`."""
        place, found = _process_place(), _process_state(process)
        return f"{place} {process} {found[1]}" if place is not None and found is not None else None

    def is_gone(self, identity: str) -> bool:
        """See `Processes.is_gone`."""
        place, _, rest = identity.rpartition(" ")
        place, _, number = place.rpartition(" ")
        if not number.isdecimal() or place != _process_place():
            return False
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        found = _process_state(int(number))
        # One that was killed and whose end nobody has asked for yet still has its number.
        return found is not None and (found[0] in "ZX" or found[1] != rest)


def _boot() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def _process_place() -> str | None:
    """Within which numbers and starts of processes mean the same; `None` where that cannot be told."""
    boot = _boot()
    try:
        spaces = [str(Path("/proc/self/ns", sort).readlink()) for sort in ("pid", "time")]
        # A `/proc` of another name space numbers processes otherwise.
        is_own = str(Path("/proc/self").readlink()) == str(os.getpid())
    except OSError:
        return None
    return " ".join([boot, *spaces]) if boot and is_own else None


def _process_state(process: int) -> tuple[str, str] | None:
    """The state of a process, a letter, and its start in ticks since the boot."""
    try:
        text = Path("/proc", str(process), "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name, in parentheses, may hold anything.
    fields = text.rpartition(")")[2].split()
    return fields[0], fields[19]


def parse_execution_time(text: str | None) -> Instant:
    """The moment a command works at: given, or now."""
    now = SystemClock().now()
    return now if text is None else parse_time(text, relative_to=now).instant


def find_project(options: OpenOptions) -> Path:
    """The project's folder: the one given or the nearest parent with a `lamina.yaml`."""
    from lamina.project.discover import find_root

    return find_root(options.directory or Path.cwd())


def log_folder(options: OpenOptions) -> Path | None:
    """Where logs of the project go; `None` outside a project."""
    try:
        return find_project(options) / ".lamina" / "logs"
    except LaminaError:
        return None


def open_application(options: OpenOptions, emit: Emit) -> LateApplication:
    """The use cases bound to one project. Nothing of Spark is imported or started, and what writes when it is used."""
    from lamina.app.late_application import LateApplication
    from lamina.app.ports.bundle import Ports
    from lamina.project.files import FileProject
    from lamina.project.private import keep_private
    from lamina.spark.sessions.places import LocalFolders, connection_key

    root = find_project(options)
    project = FileProject(root, target=options.target, environ=os.environ)
    mistaken = project.mistaken_variables()
    if mistaken:
        from lamina.app.ports.events import VariableIgnored

        for name, hint in mistaken.items():
            emit(VariableIgnored(name=name, hint=hint))
    config = project.config()
    keep_private(root, is_passable=any(target.spark.shared_warehouse for target in config.targets.values()))
    clock, processes = SystemClock(), SystemProcesses()
    reach, spark = _reach_from(os.environ), _spark_config(config)
    connection = connection_key(config.target.spark.remote, spark)
    ports = Ports(
        project=project,
        store=_store_of(config, root),
        engine=LazyEngine(root, config, emit, reach, options.session),
        clock=clock,
        emit=emit,
        reach=reach,
        owner=_owner(clock, processes),
        processes=processes,
        load_macros=_load_macros,
        ask_signal=lambda question: _ask_signal(question, config.environment.hidden),
        folders=LocalFolders(root / ".lamina", connection, spark.get("spark.sql.warehouse.dir")),
    )
    return LateApplication(ports, _querying, _writing)


def _load_macros(modules: tuple[PythonModule, ...]) -> Mapping[str, Callable[..., object]]:
    from lamina.project.python.macros import load_recorded_macros

    return load_recorded_macros(modules)


def _ask_signal(question: Question, hidden: Mapping[str, str]) -> Intervals:
    from lamina.project.python.recorded_signals import ask_recorded_signal

    try:
        return ask_recorded_signal(question)
    except LaminaError as error:
        hide_in(error, hidden)
        raise


def _querying(ports: Ports) -> Querying:
    from lamina.app.looking.querying import Querying

    return Querying(ports)


def _writing(ports: Ports) -> Application:
    from lamina.app.application import Application

    return Application(ports, new_run_id=lambda: uuid.uuid4().hex[:12])


def _store_of(config: Config, root: Path) -> StateStore:
    """The store that the configuration names; what is wrong with its address is told where it is written."""
    try:
        return open_store(config.target.state.reveal(), root)
    except LaminaError as error:
        keys = config.text.keys
        places = (keys.get(path) for path in (("targets", config.target.name, "state"), ("state",)))
        location = next((place for place in places if place is not None), None)
        for problem in error.problems:
            problem.location = problem.location or location
        raise


def open_store(url: str, base: Path) -> StateStore:
    """The state store at an address; nothing is read or made yet. Relative paths of SQLite files start at `base`."""
    from lamina.state.address import InMemory, PostgresDatabase, SqliteFile, read_address

    address = read_address(url, base)
    if isinstance(address, InMemory):
        from lamina.state.memory import MemoryStateStore

        return MemoryStateStore()
    from lamina.state.store import SqlStateStore

    match address:
        case SqliteFile():
            from lamina.state.sqlite import SqliteBackend

            return SqlStateStore(SqliteBackend(address.path))
        case PostgresDatabase():
            from lamina.state.postgres import PostgresBackend

            return SqlStateStore(PostgresBackend(address.url))
        case _:
            assert_never(address)


def init_project(directory: Path, template: str, table_format: str) -> tuple[str, ...]:
    """Create a project; answers the files made."""
    from lamina.project.scaffold import create_project

    return create_project(directory, template=template, table_format=table_format)


def _owner(clock: SystemClock, processes: SystemProcesses) -> Owner:
    from lamina.app.ports.loaded import Owner

    identity = processes.identify(os.getpid())
    command = next((word for word in sys.argv[1:] if not word.startswith("-")), "python")
    return Owner(
        host=socket.gethostname(),
        boot=_boot() or "unknown",
        process=os.getpid(),
        command=command,
        started_at=clock.now(),
        processes=(identity,) if identity is not None else (),
    )


def _reach_from(environ: Mapping[str, str]) -> Reach:
    """What happens at kill points: nothing, unless a test asked for an end there."""
    wanted = environ.get(STOP_VARIABLE)
    if not wanted:
        return _go_on
    how, _, rest = wanted.partition(":")
    place, _, count = rest.partition(":")
    left = [int(count or 1)]

    def stop_at(name: str) -> None:
        if name == place:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL if how == "kill" else signal.SIGSTOP)

    return stop_at


def _go_on(_name: str) -> None:
    """Nothing stops here."""


def _spark_config(config: Config) -> dict[str, str]:
    """The settings that Spark is started with."""
    return {key: str(value) for key, value in config.target.spark.revealed_config().items()}


class Hiding:
    """A port of which the errors tell no values of the environment: Spark repeats whole queries in its own."""

    def __init__(self, port: object, hidden: Mapping[str, str]) -> None:
        self._port, self._hidden = port, hidden

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found) or not self._hidden:
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            try:
                answer = found(*arguments, **options)
            except LaminaError as error:
                hide_in(error, self._hidden)
                raise
            for one in answer if isinstance(answer, tuple) else ():
                outcome = getattr(one, "error", None)
                if isinstance(outcome, LaminaError):
                    hide_in(outcome, self._hidden)
            return answer

        return call


def hide_values(options: OpenOptions, text: str) -> str:
    """A text for people without what the project has from the environment, as far as its configuration can be read."""
    try:
        config = _config_of(options)
    except LaminaError:
        return text
    return without_values(text, config.environment.hidden)


def _config_of(options: OpenOptions) -> Config:
    from lamina.project.files import FileProject

    return FileProject(find_project(options), target=options.target, environ=os.environ).config()


class LazyEngine:
    """The Spark engine, imported and made when something first needs it."""

    def __init__(self, root: Path, config: Config, emit: Emit, reach: Reach, session: Any) -> None:
        self._root, self._config, self._emit, self._reach, self._session = root, config, emit, reach, session
        self._made: Engine | None = None

    def _engine(self) -> Engine:
        if self._made is None:
            if importlib.util.find_spec("pyspark") is None:
                raise SparkMissing(
                    "PySpark is not installed in this Python environment",
                    hint="`pip install 'lamina[spark]'` installs it; on a cluster use the Python that Spark came with",
                )
            from lamina.spark.engine import SparkEngine
            from lamina.spark.sessions.embedded import SparkSettings

            spark = self._config.target.spark
            settings = SparkSettings(
                home=self._root / ".lamina",
                master=spark.master,
                remote=spark.remote,
                config=_spark_config(self._config),
                app_name=f"lamina {self._config.name}",
                shared_warehouse=spark.shared_warehouse,
            )
            made = SparkEngine(settings, self._emit, self._reach, session=self._session)
            self._made = cast("Engine", Hiding(made, self._config.environment.hidden))
        return self._made

    def prepare(
        self, owner_command: str, formats: frozenset[str], catalogs: Mapping[str, frozenset[str]] | None = None
    ) -> Standing:
        """See `Engine.prepare`."""
        return self._engine().prepare(owner_command, formats, catalogs)

    def placed(self, generation: str, table_format: TableFormat) -> str:
        """See `Engine.placed`."""
        return generation if table_format.is_built_in else self._engine().placed(generation, table_format)

    def analyse(self, requests: Sequence[AnalysisRequest]) -> tuple[AnalysisOutcome, ...]:
        """See `Engine.analyse`."""
        return self._engine().analyse(requests)

    def write(self, request: WriteRequest) -> Written:
        """See `Engine.write`."""
        return self._engine().write(request)

    def audit(self, request: AuditRequest) -> tuple[AuditFinding, ...]:
        """See `Engine.audit`."""
        return self._engine().audit(request)

    def create_generation(self, request: GenerationRequest) -> int | None:
        """See `Engine.create_generation`."""
        return self._engine().create_generation(request)

    def absent(self, schema: str, folders: Sequence[str]) -> str | None:
        """See `Engine.absent`."""
        return self._engine().absent(schema, folders)

    def left_behind(self, names: Sequence[PhysicalName]) -> tuple[PhysicalName, ...]:
        """See `Engine.left_behind`."""
        return self._engine().left_behind(names)

    def missing_files(self, table_format: TableFormat, heads: Sequence[Head]) -> Mapping[PhysicalName, tuple[str, ...]]:
        """See `Engine.missing_files`."""
        return self._engine().missing_files(table_format, heads)

    def publish(self, publish: Publish) -> int | None:
        """See `Engine.publish`."""
        return self._engine().publish(publish)

    def retract(self, publish: Publish) -> Landing | None:
        """See `Engine.retract`."""
        return self._engine().retract(publish)

    def published(self, names: Sequence[PhysicalName]) -> Mapping[PhysicalName, str | None]:
        """See `Engine.published`."""
        return self._engine().published(names)

    def show(self, views: Sequence[ShowView | HideView]) -> int:
        """See `Engine.show`."""
        return self._engine().show(views)

    def execute(self, request: StatementsRequest) -> None:
        """See `Engine.execute`."""
        self._engine().execute(request)

    def describe(self, tables: Sequence[NodeName]) -> tuple[AnalysisOutcome, ...]:
        """See `Engine.describe`."""
        return self._engine().describe(tables)

    def register(self, table: ExternalTable) -> tuple[Column, ...]:
        """See `Engine.register`."""
        return self._engine().register(table)

    def query(self, sql: str, *, limit: int | None) -> QueryResult:
        """See `Engine.query`."""
        return self._engine().query(sql, limit=limit)

    def frame(self, sql: str) -> Any:
        """See `Engine.frame`."""
        return self._engine().frame(sql)

    def cancel(self) -> None:
        """See `Engine.cancel`; nothing runs before the engine is made."""
        if self._made is not None:
            self._made.cancel()

    def close(self) -> None:
        """See `Engine.close`."""
        if self._made is not None:
            self._made.close()


def diagnose(options: OpenOptions, emit: Emit = lambda _event: None) -> tuple[Diagnosis, ...]:
    """Look at everything a project needs; each fault comes with its fix. What takes long is announced."""
    found = [_diagnose_python(), _diagnose_java(options), *_diagnose_pyspark()]
    is_spark_ready = all(diagnosis.status != "fault" for diagnosis in found)
    try:
        root = find_project(options)
    except LaminaError as error:
        return (*found, Diagnosis(name="project", status="fault", detail=error.message, fix=error.hint))
    try:
        application = open_application(options, emit)
    except LaminaError as error:
        return (*found, *(_fault("project", problem) for problem in error.problems))
    try:
        found.extend(_diagnose_project(application, root))
        found.append(_diagnose_state(application))
        found.append(_diagnose_folder(root))
        found.extend(_diagnose_storage(application))
        if is_spark_ready:
            found.extend(_diagnose_session(application))
    finally:
        application.close()
    return tuple(found)


def _fault(name: str, error: LaminaError) -> Diagnosis:
    where = f" ({error.location})" if error.location else ""
    return Diagnosis(name=name, status="fault", detail=f"{error.message}{where}", fix=error.hint)


def _diagnose_python() -> Diagnosis:
    return Diagnosis(name="python", status="ok", detail=sys.version.split()[0])


def _is_reached_over_connect(options: OpenOptions) -> bool:
    from lamina.project.files import FileProject

    try:
        project = FileProject(find_project(options), target=options.target, environ=os.environ)
        return project.config().target.spark.remote is not None
    except LaminaError:
        # What is wrong with the project is said where the project is looked at.
        return False


def _diagnose_java(options: OpenOptions) -> Diagnosis:
    if _is_reached_over_connect(options):
        return Diagnosis(name="java", status="ok", detail="not needed here, because Spark is reached over Connect")
    if importlib.util.find_spec("pyspark") is None:
        return Diagnosis(name="java", status="warning", detail="not looked at, because PySpark is not installed")
    from lamina.spark.sessions.java import check_java

    try:
        return Diagnosis(name="java", status="ok", detail=f"Java {check_java()}")
    except LaminaError as error:
        return _fault("java", error)


def _diagnose_pyspark() -> tuple[Diagnosis, ...]:
    if importlib.util.find_spec("pyspark") is None:
        install = "`pip install 'lamina[spark]'`"
        return (Diagnosis(name="pyspark", status="fault", detail="PySpark is not installed", fix=install),)
    from importlib.metadata import version

    from lamina.spark.sessions.format_versions import is_supported

    installed = version("pyspark")
    state = "ok" if is_supported(installed) else "warning"
    fix = None if state == "ok" else "install a PySpark from 4.0 up to, not including, 4.4"
    formats = [_diagnose_format(one, installed) for one in TABLE_FORMATS.values()]
    return (Diagnosis(name="pyspark", status=state, detail=installed, fix=fix), *formats)


def _diagnose_format(table_format: TableFormat, installed: str) -> Diagnosis:
    from lamina.spark.sessions.format_settings import package_of

    name = f"format {table_format.name}"
    if table_format.is_built_in:
        return Diagnosis(name=name, status="ok", detail="built in")
    try:
        package = package_of(table_format.name, installed)
    except LaminaError as error:
        return Diagnosis(name=name, status="warning", detail=error.message, fix=error.hint)
    return Diagnosis(name=name, status="ok", detail=f"`{package}`, fetched when a model first needs it")


def _diagnose_project(application: LateApplication, root: Path) -> list[Diagnosis]:
    try:
        graph = application.graph(SystemClock().now())
    except LaminaError as error:
        return [_fault("project", problem) for problem in error.problems]
    settings = application.settings()
    models = f"{len(graph.models)} model{'' if len(graph.models) == 1 else 's'}"
    detail = f"`{settings.name}` in {root}: {models}, target `{settings.target}`"
    found = [Diagnosis(name="project", status="ok", detail=detail)]
    found.extend(Diagnosis(name="project", status="warning", detail=notice.message) for notice in graph.warnings)
    return found


def _diagnose_state(application: LateApplication) -> Diagnosis:
    try:
        environments = application.environments()
    except LaminaError as error:
        return _fault("state", error)
    return Diagnosis(name="state", status="ok", detail=f"answers; {len(environments)} environments recorded")


def _diagnose_storage(application: LateApplication) -> list[Diagnosis]:
    """Whether recorded rows are where they were, as far as their folders are on this machine."""
    try:
        problems = application.missing_rows(SystemClock().now())
    except LaminaError as error:
        return [_fault("tables", problem) for problem in error.problems]
    if not problems:
        return [Diagnosis(name="tables", status="ok", detail="every folder that is recorded and can be seen is there")]
    return [_fault("tables", problem) for problem in problems]


def _diagnose_folder(root: Path) -> Diagnosis:
    folder = root / ".lamina"
    nearest = folder if folder.exists() else root
    if os.access(nearest, os.W_OK):
        return Diagnosis(name="folder", status="ok", detail=f"{folder} can be written")
    fix = f"`chmod u+w {nearest}`, or copy the project to a folder you own"
    return Diagnosis(name="folder", status="fault", detail=f"{folder} cannot be written", fix=fix)


def _diagnose_session(application: LateApplication) -> list[Diagnosis]:
    begun = time.monotonic()
    try:
        version, formats = application.start_spark(SystemClock().now())
    except LaminaError as error:
        return [_fault("spark session", error)]
    seconds, answer = time.monotonic() - begun, _diagnose_files(application)
    added = f" with {' and '.join(TABLE_FORMATS[name].title for name in sorted(formats))}" if formats else ""
    return [
        Diagnosis(name="spark session", status="ok", detail=f"Spark {version}{added} answers after {seconds:.0f} s"),
        *answer,
    ]


def _diagnose_files(application: LateApplication) -> list[Diagnosis]:
    """Whether tables miss files that other tables lent them."""
    try:
        problems = application.missing_files()
    except LaminaError as error:
        return [_fault("files", problem) for problem in error.problems]
    return [_fault("files", problem) for problem in problems]
