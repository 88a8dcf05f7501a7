"""A Spark Connect server on loopback that lives as long as the tests."""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import time
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from lamina.spark.sessions.format_settings import ICEBERG_CATALOG

# A server lives for minutes, and its statements are many, small and seldom alike: thorough compilation by the JVM pays,
# writing and compiling a program for each statement does not.
_FOR_SECONDS = "-XX:TieredStopAtLevel=1"
_SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def start_server(folder: Path, config: dict[str, str]) -> str:
    """Start a server with its catalog and files in a folder; answers its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        # A metastore inside of Spark begins anew in every thread of a server: that alone were half of what it does.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "America/New_York",
        **_SMALL,
        **config,
    }
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for key, value in config.items():
        command += ["--conf", f"{key}={value}"]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "spark-internal"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            env={**os.environ, "SPARK_SUBMIT_OPTS": os.environ.get("SPARK_SUBMIT_OPTS", "").replace(_FOR_SECONDS, "")},
        )
    # Registered before any client: PySpark's clients call their server once more at exit and would wait for it long.
    atexit.register(_end, server)
    _wait_for(port, server, folder / "server.log")
    return f"sc://127.0.0.1:{port}"


def reader(remote: str, *catalogs: str) -> SparkSession:
    """A session that sees tables as they are now.

    By default a session keeps tables of Iceberg as they were when it last read them, which is what servers of tests
    have too: nothing that Lamina does may depend on another setting.
    """
    session: SparkSession = SparkSession.builder.remote(remote).create()
    for catalog in (ICEBERG_CATALOG, *catalogs):
        session.conf.set(f"spark.sql.catalog.{catalog}.cache-enabled", "false")
    return session


def _end(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    server.wait(30)


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if server.poll() is not None:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise RuntimeError(f"the Connect server did not start:\n{log.read_text(errors='replace')[-4000:]}")
