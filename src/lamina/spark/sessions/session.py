"""Everything in which classic and Connect sessions differ: starting, new sessions, cancelling, ending."""

from __future__ import annotations

import atexit
import threading
import time
import traceback
import warnings
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lamina.app.ports.events import SparkStarted, SparkStarting
from lamina.app.ports.machine import Standing
from lamina.errors import Cancelled, EngineError, SparkStartFailed
from lamina.graph.formats import TABLE_FORMATS
from lamina.spark.errors import condition_of, summary_of
from lamina.spark.sessions.embedded import PRUNE_ALL_THE_SAME, EmbeddedSpark, SparkSettings
from lamina.spark.sessions.format_settings import check_session, find_iceberg_catalog, iceberg_catalogs
from lamina.spark.sessions.logs import quiet_python_loggers
from lamina.spark.sessions.pins import UNCHECKED
from lamina.spark.sessions.places import connection_key, remember_place
from lamina.spark.sessions.reachable import check_server, hide_secrets, without_secrets
from lamina.spark.sessions.substitution import AS_WRITTEN, SUBSTITUTION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame

    from lamina.app.ports.events import Emit
    from lamina.graph.kinds import Setting

__all__ = ["Sessions", "SparkSettings", "is_connect", "physical_plan"]

_TAG_LENGTH = 200
_INTERRUPT_SECONDS = 0.5
_UNANSWERED_SECONDS = 5.0
_FAREWELL_SECONDS = 5
_FORMATS_FILE = "formats"
_DEFAULT_CATALOG, _SPARK_CATALOG = "spark.sql.defaultCatalog", "spark_catalog"


def is_connect(session: SparkSession) -> bool:
    """Whether the session talks to a Connect server."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def physical_plan(rows: DataFrame) -> str:
    """How Spark would compute the rows, before anything is known of how many there are; its own way only prints it."""
    frame: Any = rows
    if is_connect(rows.sparkSession):
        return str(frame._explain_string())  # noqa: SLF001
    return str(frame._jdf.queryExecution().executedPlan().toString())  # noqa: SLF001


class Sessions:
    """Owns the way to Spark: the root session and the isolated sessions derived from it.

    Tasks work in sessions of their own, in UTC; one that a task may have changed is not used again. Catalog statements
    go through a session that `interrupt` leaves alone, so that a publish that was decided can be carried out.
    """

    def __init__(self, settings: SparkSettings, emit: Emit, handed_in: SparkSession | None = None) -> None:
        self._settings, self._emit = settings, emit
        self._handed_in = handed_in
        self._root = handed_in
        self._embedded: EmbeddedSpark | None = None
        self._catalog: SparkSession | None = None
        # Two locks: starting may take long, and `interrupt` must get through meanwhile.
        self._starting = threading.RLock()
        self._guard = threading.Lock()
        self._idle: list[SparkSession] = []
        self._busy: dict[int, tuple[SparkSession, int]] = {}
        self._stop_waiting = threading.Event()
        self._cancellations = 0
        self._is_stopped = False
        self._command = "session"
        self._in_force: dict[str, str] | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether `interrupt` was called since the last `prepare`: no task goes on, and none begins."""
        return self._is_stopped

    def prepare(self, command: str, formats: frozenset[str] = frozenset(), *, named: bool = False) -> Standing:
        """Start Spark if need be; answer by what others can tell that it has ended.

        Formats that were needed once in a project are had from then on. A Spark of our own that runs without one of
        them is ended and started anew.

        A session remembers which files a table had when it first read it. Tables that others write must be looked at
        anew by every command, so sessions are not used beyond one.
        """
        self._command, self._is_stopped = command, False
        if self._handed_in is not None:
            _check_handed_in(self._handed_in)
            # Its current schema may be another one by now.
            self.forget_catalog()
        if self._is_own:
            self._have(formats)
        elif formats:
            check_session(formats, self.settings_in_force(), self.root().version, named=named)
        self.root()
        with self._guard:
            idle, self._idle = self._idle, []
        for session in idle:
            _discard(session)
        return self._embedded.standing() if self._embedded is not None else Standing()

    @property
    def shares_disks(self) -> bool:
        """Whether every machine of the cluster is said to see the same folders."""
        return self._settings.shared_warehouse

    def remember_place(self, schema: str, location: str) -> None:
        """Keep where a schema's tables lie; a Connect server may mean a disk of another machine."""
        if not is_connect(self.root()):
            connection = connection_key(self._settings.remote, self._settings.config)
            remember_place(self._settings.home, connection, schema, location)

    @property
    def _is_own(self) -> bool:
        """Whether Spark is started here."""
        return self._handed_in is None and self._settings.remote is None

    def _have(self, formats: frozenset[str]) -> None:
        wanted = formats | self._settings.formats | _remembered_formats(self._settings.home)
        if wanted == self._settings.formats:
            return
        if self._embedded is not None:
            self.close()
        self._settings = replace(self._settings, formats=wanted)
        self.root()
        _remember_formats(self._settings.home, wanted)

    def settings_in_force(self) -> dict[str, str]:
        """The settings of the session, those it was started with included."""
        with self._starting:
            if self._in_force is None:
                rows = self.root().sql("SET").collect()
                self._in_force = {str(row[0]): str(row[1]) for row in rows}
            return self._in_force

    def iceberg_catalog(self) -> str:
        """The catalog that holds Iceberg tables."""
        found = find_iceberg_catalog(self.settings_in_force())
        if found is None:
            raise EngineError(
                "the Spark session has no single catalog for Iceberg tables",
                hint="name one catalog of class `org.apache.iceberg.spark.SparkCatalog` in `spark.config`; among "
                "several, `spark.sql.defaultCatalog` chooses",
            )
        return found

    @contextmanager
    def apart(self) -> Iterator[SparkSession]:
        """A session for one change of a table that was decided: `interrupt` leaves it alone."""
        session = self._derive()
        try:
            yield session
        finally:
            _discard(session)

    def catalog(self) -> SparkSession:
        """The session for catalog statements; may be used by several threads."""
        with self._starting:
            if self._catalog is None:
                session = self._derive()
                # Spark adds partitions in portions of a hundred; only one portion makes the statement atomic.
                session.conf.set("spark.sql.addPartitionInBatch.size", "1000000")
                self._catalog = session
            return self._catalog

    def forget_catalog(self) -> None:
        """Make the next catalog statement use a new session, because this one did not answer."""
        with self._starting:
            if self._catalog is not None:
                _discard(self._catalog)
            self._catalog = None

    @contextmanager
    def task(self, label: str, settings: Mapping[str, Setting], *, may_change: bool = True) -> Iterator[SparkSession]:
        """A session for one task, with the task's own settings; `label` is seen on its jobs.

        `may_change` says whether what runs in it could leave something behind. Nothing is substituted in it, whatever
        the settings say: see `substituting`.
        """
        is_clean = not settings and not may_change
        session = self._take(is_clean, label)
        has_succeeded = False
        try:
            self._configure(session, settings)
            if SUBSTITUTION in settings:
                session.conf.set(*AS_WRITTEN)
            session.addTag(label.replace(",", ";")[:_TAG_LENGTH])
            _describe_jobs(session, label)
            yield session
            session.clearTags()
            has_succeeded = True
        finally:
            with suppress(Py4JError, OSError):
                _describe_jobs(session, None)
            self._give_back(session, is_clean and has_succeeded)

    def interrupt(self) -> None:
        """Stop every job of every task in progress, and waiting for the catalog; no task begins until `prepare`.

        On a Connect server a job may outlive this: Spark 4.1 interrupts each operation only once, and the compiler of
        generated code takes an interrupt for a failure to compile and goes on without; and a shuffle begins its job in
        a thread of its own, which may be after the interrupt. Nobody waits for such a job nor uses what it computes.
        """
        with self._guard:
            self._cancellations += 1
            self._is_stopped = True
            self._stop_waiting.set()
        # Aside, because a server that is gone would keep the caller waiting.
        interrupting = threading.Thread(target=self._keep_interrupting, name="lamina-cancel", daemon=True)
        interrupting.start()
        interrupting.join(_INTERRUPT_SECONDS)

    def _keep_interrupting(self) -> None:
        """Interrupt again and again: a task may have been just about to start its next job.

        A Connect server that does not answer has lost the interrupt. Releasing the session there ends what waits here.
        """
        begun = time.monotonic()
        while sessions := self._cancelled():
            is_unanswered = time.monotonic() - begun > _UNANSWERED_SECONDS
            for session in sessions:
                if is_unanswered and is_connect(session):
                    _release(session.client)
                    continue
                # A session that has just ended, or a server that is gone, has nothing left to stop.
                with suppress(Exception):
                    session.interruptAll()
            time.sleep(_INTERRUPT_SECONDS)

    def _cancelled(self) -> list[Any]:
        """The sessions of the tasks in progress that began before the last cancellation."""
        with self._guard:
            return [session for session, began in self._busy.values() if began < self._cancellations]

    def close(self) -> None:
        """Let go of everything made here; a session handed in stays as it is."""
        with self._starting, self._guard:
            made = [*self._idle, *(session for session, _ in self._busy.values())]
            made += [self._catalog] if self._catalog is not None else []
            if self._embedded is None and self._root is not None and self._root is not self._handed_in:
                made.append(self._root)
            farewells = [_discard(session) for session in made]
            self._idle, self._busy, self._catalog = [], {}, None
            if self._embedded is not None:
                self._embedded.stop()
                self._embedded = None
            self._root, self._in_force = self._handed_in, None
        for farewell in farewells:
            if farewell is not None:
                farewell.join(_FAREWELL_SECONDS)

    # --- starting -----------------------------------------------------------------------------------------------------
    def root(self) -> SparkSession:
        """The session that others are derived from, started when it is first needed."""
        with self._starting:
            if self._root is None:
                self._stop_waiting.clear()
                self._root = self._connect() if self._settings.remote else self._launch()
            return self._root

    def _launch(self) -> SparkSession:
        embedded = EmbeddedSpark(self._settings, self._emit)
        session = embedded.start(self._command, self._stop_waiting)
        self._embedded = embedded
        return session

    def _connect(self) -> SparkSession:
        remote = self._settings.remote or ""
        self._emit(SparkStarting(detail=f"Spark Connect at {without_secrets(remote)}"))
        quiet_python_loggers(None)
        begun = time.monotonic()
        check_server(remote)
        try:
            session: SparkSession = SparkSession.builder.remote(remote).create()
            version = session.version
            session.conf.set(*AS_WRITTEN)
        except ImportError as error:
            raise SparkStartFailed(
                "the packages that Spark Connect needs are not installed",
                hint="install them: `pip install 'lamina[connect]'`",
            ) from error
        except Exception as error:
            # What the library says may repeat the address, and so may what it was caused by.
            said = "".join(traceback.format_exception(error))
            failed = SparkStartFailed(
                f"no Spark Connect server answers at `{without_secrets(remote)}`: "
                f"{hide_secrets(summary_of(error), remote)}",
                hint="check the address and that the server runs",
            )
            if hide_secrets(said, remote) != said:
                raise failed from None
            raise failed from error
        self._emit(SparkStarted(version=version, seconds=time.monotonic() - begun))
        return session

    def refresh(self, table: str) -> None:
        """Have a session that was handed in read a table anew: by default it keeps Iceberg tables as they were."""
        if self._handed_in is None:
            return
        catalog = "" if table.count(".") > 1 else f"{self.settings_in_force().get(_DEFAULT_CATALOG, _SPARK_CATALOG)}."
        # Its owner sees what was published a little later then.
        with suppress(PySparkException):
            self._handed_in.sql(f"REFRESH TABLE {catalog}{table}")

    # --- derived sessions ---------------------------------------------------------------------------------------------
    def _take(self, is_clean: bool, label: str) -> SparkSession:
        with self._guard:
            session = self._idle.pop() if is_clean and self._idle else None
        session = session or self._derive()
        with self._guard:
            is_stopped = self._is_stopped
            if not is_stopped:
                self._busy[id(session)] = (session, self._cancellations)
        if is_stopped:
            _discard(session)
            raise Cancelled(f"{label}: not begun, because the command was stopped")
        return session

    def _give_back(self, session: SparkSession, is_clean: bool) -> None:
        with self._guard:
            _, began = self._busy.pop(id(session), (session, -1))
            is_reusable = is_clean and began == self._cancellations
            if is_reusable:
                self._idle.append(session)
        if not is_reusable:
            _discard(session)

    def _derive(self) -> SparkSession:
        root = self.root()
        if not is_connect(root):
            session = root.newSession()
            if root is self._handed_in:
                _copy_settings(root, session)
        else:
            # What is still on its way when a session ends is of no interest to anyone.
            warnings.filterwarnings("ignore", message="ReleaseExecute failed")
            clone = getattr(root, "cloneSession", None)
            session = clone() if clone else SparkSession.builder.remote(self._settings.remote or "").create()
        if not self._is_own:
            # By default a session keeps Iceberg tables as they were when it last read them, and misses what others
            # have written since. Catalogs are made when a session first uses them.
            for catalog in iceberg_catalogs(self.settings_in_force()):
                session.conf.set(f"spark.sql.catalog.{catalog}.cache-enabled", "false")
        if root is self._handed_in:
            _use_schema_of(root, session, self.settings_in_force().get(_DEFAULT_CATALOG, _SPARK_CATALOG))
        if is_connect(session) and root is not self._handed_in:
            self._configure(session, self._settings.config)
        session.conf.set("spark.sql.session.timeZone", "UTC")
        session.conf.set(*PRUNE_ALL_THE_SAME)
        session.conf.set(*UNCHECKED)
        session.conf.set(*AS_WRITTEN)
        return session

    def _configure(self, session: SparkSession, settings: Mapping[str, Setting]) -> None:
        for key, value in settings.items():
            try:
                session.conf.set(key, str(value).lower() if isinstance(value, bool) else str(value))
            except PySparkException as error:
                raise EngineError(
                    f"the setting `{key}` cannot be changed for one model or one connection: {condition_of(error)}",
                    hint="set it under `spark.config` of a Spark that Lamina starts, or where that Spark is started",
                ) from error
        if settings:
            session.conf.set("spark.sql.session.timeZone", "UTC")


def _copy_settings(root: SparkSession, session: SparkSession) -> None:
    """Give a derived session what somebody has set in theirs since it was started; the rest it has anyway."""
    had = session.conf.getAll
    for key, value in root.conf.getAll.items():
        if had.get(key) != value:
            # What cannot be changed any more was not changed there either.
            with suppress(PySparkException):
                session.conf.set(key, value)


def _check_handed_in(session: SparkSession) -> None:
    """Other sessions are made from it; in older versions there is no way to make one without the server's address."""
    if is_connect(session) and not hasattr(session, "cloneSession"):
        raise EngineError(
            "a session of Spark Connect can be handed in from PySpark 4.1 on",
            hint="install a newer PySpark, or hand in no session and name its server as `spark.remote` in lamina.yaml",
        )


def _use_schema_of(root: SparkSession, session: SparkSession, default: str) -> None:
    """Have names without a schema mean in a derived session what they mean in somebody's own.

    Names with a schema and without a catalog, as Lamina's own statements have them, mean the default catalog's. So a
    schema of another catalog is not taken along.
    """
    if root.catalog.currentCatalog() != default:
        if session.catalog.currentCatalog() != default:
            session.catalog.setCurrentCatalog(default)
        return
    schema = root.catalog.currentDatabase()
    if session.catalog.currentDatabase() != schema:
        # It may be gone by now, which is no matter to those who do not use it.
        with suppress(PySparkException):
            session.catalog.setCurrentDatabase(schema)


def _remembered_formats(home: Path) -> frozenset[str]:
    """The formats that tables of the project have been written in before, by whatever command."""
    try:
        names = (home / _FORMATS_FILE).read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError):
        return frozenset()
    return frozenset(names) & TABLE_FORMATS.keys()


def _remember_formats(home: Path, formats: frozenset[str]) -> None:
    # Whoever asks for them has to name them again; nothing is lost.
    with suppress(OSError):
        (home / _FORMATS_FILE).write_text("\n".join(sorted(formats)) + "\n", encoding="ascii")


def _describe_jobs(session: Any, description: str | None) -> None:
    """What this thread's jobs are called in Spark's own pages; on Connect their tag is all they have."""
    if not is_connect(session):
        session.sparkContext.setLocalProperty("spark.job.description", description)


class _NoClient:
    """Stands in for the client of a session that is finished."""

    def close(self) -> None:
        """Nothing is open."""


def _discard(session: Any) -> threading.Thread | None:
    """Forget a derived session. On Connect the server keeps it until told, which happens aside and may take long.

    The client is taken away first. A session that still has one closes it when it is collected as garbage, with a lock
    that its own thread may hold at that moment; and `stop` may end a whole local server.
    """
    if not is_connect(session):
        return None
    client = session.client
    session._client = _NoClient()  # noqa: SLF001  # there is no public way to let go of a client
    # What PySpark would do at exit for a session that is over: call its server, for ten minutes if that is gone.
    at_exit = getattr(client, "_cleanup_ml_cache", None)
    if at_exit is not None:
        atexit.unregister(at_exit)
    farewell = threading.Thread(target=_release, args=(client,), name="lamina-release", daemon=True)
    farewell.start()
    return farewell


def _release(client: Any) -> None:
    # gRPC raises classes of its own, and a session that is lost needs no farewell.
    with suppress(Exception):
        client.release_session()
