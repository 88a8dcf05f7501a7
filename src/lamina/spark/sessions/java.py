"""Whether a Java that Spark can use is there, asked before a session is started."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from lamina.errors import JavaMissing

OLDEST_JAVA = 17

_INSTALL = (
    f"install Java {OLDEST_JAVA} or newer (Debian and Ubuntu: `apt install openjdk-17-jre-headless`; "
    "macOS: `brew install openjdk@17`), or point `JAVA_HOME` at one"
)


def check_java() -> int:
    """Answer the version of the Java that Spark would use; raise `JavaMissing` when it cannot use it.

    Looks where Spark looks: `JAVA_HOME` when it is set, else `java` on the PATH.
    """
    home = os.environ.get("JAVA_HOME", "")
    command = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if command is None:
        raise JavaMissing("Java was not found, and Spark cannot run without it", hint=_INSTALL)
    if home and not os.access(command, os.X_OK):
        raise JavaMissing(
            f"`JAVA_HOME` is `{home}`, which holds no `bin/java`",
            hint=f"unset `JAVA_HOME` or point it at Java {OLDEST_JAVA} or newer",
        )
    version = _version_of(command)
    if version is None:
        raise JavaMissing(f"`{command}` does not answer `-version`", hint=_INSTALL)
    if version < OLDEST_JAVA:
        raise JavaMissing(f"`{command}` is Java {version}, and Spark needs Java {OLDEST_JAVA} or newer", hint=_INSTALL)
    return version


def _version_of(command: str) -> int | None:
    """The major version; Java 8 and older call it `1.8`."""
    try:
        answer = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(found[1]) if answer.returncode == 0 and found else None
