"""The Spark that Lamina starts itself: one JVM per process, with its catalog and warehouse in the project."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lamina.app.ports.events import SparkStarted, SparkStarting
from lamina.app.ports.machine import Standing
from lamina.errors import FormatMissing, LaminaError, SparkStartFailed, WarehouseUnwritable
from lamina.graph.formats import TABLE_FORMATS
from lamina.spark.errors import summary_of
from lamina.spark.sessions.catalog_lock import CatalogLock
from lamina.spark.sessions.format_settings import format_settings, own_iceberg
from lamina.spark.sessions.format_versions import KNOWN_JARS
from lamina.spark.sessions.jar_cache import check_jars, fetching, is_fetched
from lamina.spark.sessions.java import check_java
from lamina.spark.sessions.launch import launch
from lamina.spark.sessions.logs import OUTPUT_LOG, SPARK_LOG, quiet_python_loggers, write_log4j_settings
from lamina.spark.sessions.own_catalog import is_own, names_another_metastore, settings_in_force
from lamina.spark.sessions.reachable import check_master
from lamina.spark.sessions.substitution import AS_WRITTEN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.app.ports.events import Emit

_STOP_SECONDS = 30
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

PRUNE_ALL_THE_SAME = ("spark.sql.hive.metastorePartitionPruningFallbackOnException", "true")
"""Derby reads the partition values of all tables as dates when one table is asked for a date, and fails over the first
that is none. Spark then lists the partitions and looks through them itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """How Spark is reached: a Connect server at `remote`, else a JVM started here for `master`.

    `home` is the project's `.lamina` folder; warehouse, metastore and logs lie in it unless said otherwise. `config`
    holds any `spark.*` setting and wins over Lamina's own, the session's time zone and substitution apart. With
    `patience`, waiting for another process that uses the embedded catalog ends after so many seconds.
    """

    home: Path
    master: str | None = None
    remote: str | None = field(default=None, repr=False)
    config: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    app_name: str = "lamina"
    warehouse: Path | None = None
    metastore: Path | None = None
    logs: Path | None = None
    formats: frozenset[str] = frozenset()
    """Table formats that need packages."""
    patience: float | None = None
    shared_warehouse: bool = False
    """Whether local folders are the same on every machine of the cluster."""

    @property
    def warehouse_folder(self) -> Path:
        return (self.warehouse or self.home / "warehouse").absolute()

    @property
    def metastore_folder(self) -> Path:
        return (self.metastore or self.home / "metastore").absolute()

    @property
    def log_folder(self) -> Path:
        return (self.logs or self.home / "logs").absolute()

    @property
    def jar_cache(self) -> Path:
        """Where packages of table formats are kept once they are fetched: one place for all projects of a user."""
        given = os.environ.get("XDG_CACHE_HOME")
        cache = Path(given) if given else Path.home() / ".cache"
        return cache / "lamina" / "jars"

    @property
    def has_embedded_catalog(self) -> bool:
        """Whether Lamina makes the catalog: a JVM is started here, and nothing that is known now names another one."""
        return self.remote is None and not names_another_metastore(self.config)

    @property
    def metastore_address(self) -> str:
        """Of Lamina's own metastore."""
        return f"jdbc:derby:;databaseName={self.metastore_folder};create=true"


def spark_config(settings: SparkSettings) -> dict[str, str]:
    """Every setting the JVM is started with."""
    master = settings.master or "local[*]"
    java_options = [f"-Dlog4j2.configurationFile={(settings.log_folder / 'log4j2.properties').as_uri()}"]
    config = {
        "spark.master": master,
        "spark.app.name": settings.app_name,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.scheduler.mode": "FAIR",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.catalogImplementation": "hive",
        PRUNE_ALL_THE_SAME[0]: PRUNE_ALL_THE_SAME[1],
        "spark.sql.warehouse.dir": str(settings.warehouse_folder),
    }
    if master.startswith("local"):
        # Two hundred shuffle partitions are made for clusters; here they only cost time.
        config["spark.sql.shuffle.partitions"] = str(min(8, os.cpu_count() or 2))
        config["spark.driver.host"] = "127.0.0.1"
        config["spark.driver.bindAddress"] = "127.0.0.1"
        config["spark.driver.memory"] = "2g"
    if settings.has_embedded_catalog:
        scratch = settings.home.absolute() / "tmp"
        config["spark.hadoop.javax.jdo.option.ConnectionURL"] = settings.metastore_address
        config["spark.hadoop.hive.exec.scratchdir"] = str(scratch / "hive")
        config["spark.hadoop.hive.exec.local.scratchdir"] = str(scratch / "hive-local")
        java_options.append(f"-Dderby.system.home={settings.home.absolute()}")
        java_options.append(f"-Dderby.stream.error.file={settings.log_folder / 'derby.log'}")
    given = {"spark.master": master, **{key: _text(value) for key, value in settings.config.items()}}
    config.update(given)
    config.update(
        format_settings(
            settings.formats,
            pyspark.__version__,
            settings.home.absolute(),
            given,
            jar_cache=settings.jar_cache,
            has_own_catalog=settings.has_embedded_catalog,
        )
    )
    options = [_quoted(option) for option in java_options]
    own_options = config.get(_JAVA_OPTIONS)
    config[_JAVA_OPTIONS] = " ".join([*options, own_options] if own_options else options)
    config["spark.sql.session.timeZone"] = "UTC"
    config.update([AS_WRITTEN])
    return config


@dataclass(slots=True)
class _Running:
    """The JVM of this process and how many engines use it."""

    settings: SparkSettings
    session: SparkSession
    gateway: Any
    lock: CatalogLock | None
    standing: Standing
    users: int = 1


class EmbeddedSpark:
    """Starts the JVM when first asked, shares it between engines of one project, and ends it with the last of them."""

    _running: _Running | None = None
    _guard = threading.Lock()

    def __init__(self, settings: SparkSettings, emit: Emit) -> None:
        self._settings, self._emit = settings, emit
        self._is_user = False

    def start(self, command: str, cancelled: threading.Event) -> SparkSession:
        """Answer the session, started if need be; with the embedded catalog, its lock is held from here on."""
        with EmbeddedSpark._guard:
            running = EmbeddedSpark._running
            if running is None:
                running = EmbeddedSpark._running = self._launch(command, cancelled)
                self._is_user = True
            elif running.settings != self._settings:
                raise SparkStartFailed(
                    _why_not(running.settings, self._settings),
                    hint="close that project first, or hand its session in: `Project.open(path, spark=spark)`",
                )
            elif not self._is_user:
                running.users += 1
                self._is_user = True
            return running.session

    def standing(self) -> Standing:
        """By what others can tell that this process and its JVM are gone."""
        with EmbeddedSpark._guard:
            running = EmbeddedSpark._running
            return running.standing if running is not None and self._is_user else Standing()

    def stop(self) -> None:
        """Stop using the JVM; the last user ends it and gives the catalog's lock back."""
        with EmbeddedSpark._guard:
            running = EmbeddedSpark._running
            if running is None or not self._is_user:
                return
            self._is_user = False
            running.users -= 1
            if running.users == 0:
                EmbeddedSpark._running = None
                _end(running)

    def _launch(self, command: str, cancelled: threading.Event) -> _Running:
        settings = self._settings
        if SparkContext._active_spark_context is not None:  # noqa: SLF001  # PySpark has no public way to ask
            raise SparkStartFailed(
                "a Spark session that Lamina did not start runs in this process, and there can be only one",
                hint="hand it in: `Project.open(path, spark=spark)`",
            )
        check_java()
        check_master(settings.master or "")
        _make_folders(settings)
        lock: CatalogLock | None = None
        if settings.has_embedded_catalog:
            lock = CatalogLock(settings.home.absolute() / "spark.lock")
            lock.acquire(command, self._emit, cancelled, settings.patience)
        try:
            return self._open(lock, command, cancelled)
        except BaseException:
            if lock is not None:
                lock.release()
            raise

    def _open(self, lock: CatalogLock | None, command: str, cancelled: threading.Event) -> _Running:
        settings = self._settings
        config = spark_config(settings)
        with_formats = [TABLE_FORMATS[name].title for name in sorted(settings.formats)]
        place = f"Spark on {settings.master or 'local[*]'}"
        if with_formats:
            fetched = "" if is_fetched(config) else ", which is fetched once"
            place += f" with {' and '.join(with_formats)}{fetched}"
        self._emit(SparkStarting(detail=place))
        begun = time.monotonic()
        gateway: Any = None
        try:
            write_log4j_settings(settings.log_folder)
            quiet_python_loggers(settings.log_folder)
            if config["spark.master"].startswith("local"):
                # Python functions of models must run on this interpreter, not on the first `python3` of the PATH.
                os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            conf = SparkConf(loadDefaults=False).setAll(list(config.items()))
            with (settings.log_folder / OUTPUT_LOG).open("ab") as output:
                pass_fds = () if lock is None or lock.descriptor is None else (lock.descriptor,)
                streams = {"stdout": output, "stderr": output, "pass_fds": pass_fds}
                with fetching(config, command, self._emit, cancelled):
                    gateway = launch(config, streams, settings.config.get(_JAVA_OPTIONS))
                    # Its packages are on its class path by now, and nothing of them is loaded.
                    check_jars(gateway.jvm.java.lang.System.getProperty("spark.jars") or "", KNOWN_JARS)
            session = SparkSession(_context_without_signal_handler(gateway, conf))
        except LaminaError:
            _forget(gateway)
            raise
        except (OSError, PySparkException, Py4JError, RuntimeError) as error:
            # What a Java exception says is asked of the JVM, so before that is ended.
            failed = _start_failed(settings, error)
            _forget(gateway)
            raise failed from error
        self._emit(SparkStarted(version=session.version, seconds=time.monotonic() - begun))
        return _Running(
            settings=settings,
            session=session,
            gateway=gateway,
            lock=lock,
            standing=_standing(settings, session, gateway, lock),
        )


def _standing(settings: SparkSettings, session: SparkSession, gateway: Any, lock: CatalogLock | None) -> Standing:
    catalog = None
    if lock is not None and is_own(settings_in_force(session), settings.metastore_address, own_iceberg(settings.home)):
        catalog = lock.identity
    process = gateway.proc
    return Standing(catalog=catalog, processes=(process.pid,) if process else (), is_carried=process is None)


def _why_not(running: SparkSettings, wanted: SparkSettings) -> str:
    if replace(running, formats=wanted.formats) == wanted:
        missing = ", ".join(TABLE_FORMATS[name].title for name in sorted(wanted.formats - running.formats))
        return f"Spark already runs in this process for another opened project, without {missing}"
    return "Spark already runs in this process with the settings of another project"


def _context_without_signal_handler(gateway: Any, conf: SparkConf) -> SparkContext:
    """A context that leaves SIGINT alone: PySpark's handler would cancel jobs behind the back of whoever catches it."""
    if threading.current_thread() is not threading.main_thread():
        return SparkContext(gateway=gateway, conf=conf)
    before = signal.getsignal(signal.SIGINT)
    try:
        return SparkContext(gateway=gateway, conf=conf)
    finally:
        signal.signal(signal.SIGINT, before)


def _end(running: _Running) -> None:
    try:
        # A JVM that is already gone cannot be stopped, and need not be.
        with suppress(PySparkException, Py4JError, OSError):
            running.session.stop()
    finally:
        _forget(running.gateway)
        if running.lock is not None:
            running.lock.release()


def _forget(gateway: Any) -> None:
    """End the JVM and have PySpark forget it, so that another can be started in this process."""
    if gateway is None:
        return
    with suppress(Py4JError, OSError):
        gateway.shutdown()
    process = gateway.proc
    if process is not None:
        # The gateway ends when its standard input is closed.
        process.stdin.close()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
    SparkContext._gateway = None  # noqa: SLF001  # PySpark has no public way to start again in one process
    SparkContext._jvm = None  # noqa: SLF001


def _make_folders(settings: SparkSettings) -> None:
    home = settings.home.absolute()
    # Workers of another user pass through the folder to a warehouse that they share, and to nothing else in it.
    folders = {home: 0o711 if settings.shared_warehouse else 0o700, settings.log_folder: 0o700}
    if settings.has_embedded_catalog:
        warehouse = _local_warehouse(settings)
        is_own = home in warehouse.parents and not settings.shared_warehouse
        folders.setdefault(warehouse, 0o700 if is_own else 0o777)
        folders.setdefault(settings.metastore_folder.parent, 0o700)
    for folder, mode in folders.items():
        try:
            folder.mkdir(mode=mode, parents=True, exist_ok=True)
            probe = folder / f".write-test-{os.getpid()}"
            probe.write_bytes(b"x")
            probe.unlink()
        except OSError as error:
            raise WarehouseUnwritable(
                f"the folder `{folder}` cannot be written: {error.strerror}",
                hint="free space or make the folder writable, then run the command again",
            ) from error


def _local_warehouse(settings: SparkSettings) -> Path:
    """The folder of the warehouse, or Lamina's own where the tables lie on no disk of this machine."""
    configured = spark_config(settings)["spark.sql.warehouse.dir"]
    address = urlsplit(configured)
    if address.scheme == "file":
        return Path(unquote(address.path))
    return settings.warehouse_folder if address.scheme else Path(configured).absolute()


def _start_failed(settings: SparkSettings, error: BaseException) -> SparkStartFailed | FormatMissing:
    try:
        what = summary_of(error)
    except (OSError, Py4JError):
        what = "its JVM ended"
    if settings.formats and "gateway" in str(error).lower():
        # Packages are fetched before the JVM answers, and whatever goes wrong there ends it.
        titles = " and ".join(TABLE_FORMATS[name].title for name in sorted(settings.formats))
        return FormatMissing(
            f"Spark did not start with {titles}: its packages could not be fetched, or do not fit",
            hint=f"`{settings.log_folder / OUTPUT_LOG}` says which; check the way to the package repository, and that "
            "no local Maven repository holds only a description (`.pom`) of a package named there",
        )
    return SparkStartFailed(
        f"Spark did not start: {what or type(error).__name__}",
        hint=f"`{settings.log_folder / OUTPUT_LOG}` and `{settings.log_folder / SPARK_LOG}` say more",
    )


def _quoted(option: str) -> str:
    """One Java option as Spark's launcher splits them."""
    if not any(character in option for character in " \"'\\"):
        return option
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _below(folder: str | None, name: str) -> str | None:
    return str(Path(folder, name)) if folder else None
