"""Where Spark's, Hive's and PySpark's own log lines go: into files, never to the user's terminal."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark.logger import PySparkLogger

if TYPE_CHECKING:
    from pathlib import Path

SPARK_LOG = "spark.log"
"""What Spark and Hive log."""

OUTPUT_LOG = "spark-output.log"
"""What the JVM and its launcher print before and beside that."""

_QUERY_CONTEXT_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_PYTHON_LOGGERS = ("pyspark", "py4j")

_LOG4J = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {file}
appender.file.filePattern = {file}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSS'Z'}}{{UTC}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


def write_log4j_settings(folder: Path) -> Path:
    """Write the configuration that sends Spark's log lines into the folder; answer its path."""
    # Log4j reads the file as properties, where a backslash and `${` mean something.
    target = str(folder / SPARK_LOG).replace("\\", "\\\\").replace("$", "$$")
    settings = folder / "log4j2.properties"
    # Made before Spark opens them: failures quote what is in tables.
    for log in (settings, folder / SPARK_LOG, folder / OUTPUT_LOG):
        log.touch(mode=0o600)
    settings.write_text(_LOG4J.format(file=target), encoding="utf-8")
    return settings


def quiet_python_loggers(folder: Path | None) -> None:
    """Send what PySpark itself logs in this process into the folder, or nowhere."""
    for name in _QUERY_CONTEXT_LOGGERS:
        # They repeat every exception that PySpark raises; only its own class takes the keywords they are called with.
        _redirect(PySparkLogger.getLogger(name), logging.NullHandler())
    for name in _PYTHON_LOGGERS:
        handler = logging.FileHandler(folder / OUTPUT_LOG, encoding="utf-8", delay=True) if folder else None
        _redirect(logging.getLogger(name), handler or logging.NullHandler())


def _redirect(logger: logging.Logger, handler: logging.Handler) -> None:
    for former in logger.handlers[:]:
        logger.removeHandler(former)
        former.close()
    logger.addHandler(handler)
    logger.propagate = False
