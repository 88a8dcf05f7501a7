"""A Spark that is started with settings nobody else may read, and what others could see of them meanwhile."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from pathlib import Path

from pyspark import SparkContext

from lamina.spark.engine import SparkEngine
from lamina.spark.sessions.embedded import SparkSettings
from tests.kit.told import tell

PASSWORD = "ses me\\street '\"=:#!ü√𝄞"
CONFIG = {
    "spark.hadoop.my.password": PASSWORD,
    "spark.my.token": "street-of-sesame",
    "spark.driver.extraJavaOptions": '-Dmy.trust=\'sesame street\' -Dmy.other="a \\"b\\\\c" -XX:+UseSerialGC',
}


def command_lines() -> set[str]:
    """Of all processes there are."""
    found = set()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.add(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


def main(place: str, master: str) -> None:
    folder = Path(place)
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None
    over, lines, modes = threading.Event(), set(), set()

    def watch() -> None:
        while not over.wait(0.02):
            lines.update(command_lines())
            modes.update(oct(file.stat().st_mode & 0o777) for file in folder.glob("lamina-*/*") if file.exists())

    watching = threading.Thread(target=watch)
    watching.start()
    engine = SparkEngine(
        SparkSettings(home=folder / ".lamina", master=master, config=CONFIG), lambda _event: None, lambda _name: None
    )
    try:
        engine.prepare("test")
        row = engine.query("SELECT 1", limit=None).rows[0]
    finally:
        over.set()
        watching.join()
    jvm = SparkContext._jvm
    assert jvm is not None
    conf = SparkContext._active_spark_context.getConf()  # type: ignore[union-attr]
    seen = {
        "rows": list(row),
        "had": {key: conf.get(key) for key in CONFIG},
        "properties": [jvm.java.lang.System.getProperty(name) for name in ("my.trust", "my.other")],
        "shown": [line for line in lines if "sesame" in line or "ses me" in line or "my.token" in line],
        "launched": sum("org.apache.spark.deploy.SparkSubmit" in line for line in lines),
        "left": [path.name for path in folder.glob("lamina-*")],
        "modes": sorted(modes),
        "arguments": os.environ.get("PYSPARK_SUBMIT_ARGS"),
    }
    engine.close()
    files = [file for file in (folder / ".lamina" / "logs").glob("*") if file.is_file()]
    logs = "".join(file.read_text(errors="replace") for file in files)
    tell({**seen, "logged": "sesame" in logs or "ses me" in logs})


if __name__ == "__main__":
    main(*sys.argv[1:])
