"""Starting the JVM: what it is told goes through a file, because everybody on a machine can read command lines."""

from __future__ import annotations

import os
import shlex
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.java_gateway import launch_gateway

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_FILE = "--properties-file"
_DEFAULTS = "--load-spark-defaults"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_ESCAPED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
_SPECIAL_IN_KEYS = " :=#!"


def launch(config: Mapping[str, str], popen: Mapping[str, Any], java_options: str | None = None) -> Any:
    """A gateway to a new JVM with these settings; `java_options` are those in `config` that the user gave."""
    start: Any = launch_gateway
    with tempfile.TemporaryDirectory(prefix="lamina-") as folder:
        # Folder and files are for their owner alone; both are gone when the JVM answers, which has read them by then.
        told = _without_values(config, java_options, Path(folder))
        with _arguments(told, Path(folder, "spark.properties")):
            return start(None, dict(popen))


@contextmanager
def _arguments(config: Mapping[str, str], file: Path) -> Iterator[None]:
    """What PySpark hands to Spark's launcher names the file; what the user hands over there wins, as ever."""
    given = os.environ.get(_ARGUMENTS)
    words = [part for word in shlex.split(given or "pyspark-shell") for part in _option_and_value(word)]
    former = ""
    if _FILE in words[:-1]:
        place = words.index(_FILE) + 1
        former, words[place] = Path(words[place]).read_text(encoding="utf-8") + "\n", str(file)
    else:
        # A file named keeps Spark from reading its own, unless told.
        words = [_FILE, str(file), *([] if _DEFAULTS in words else [_DEFAULTS]), *words]
    _write(file, former + properties_text(config))
    os.environ[_ARGUMENTS] = shlex.join(words)
    try:
        yield
    finally:
        if given is None:
            del os.environ[_ARGUMENTS]
        else:
            os.environ[_ARGUMENTS] = given


def _option_and_value(word: str) -> list[str]:
    return word.split("=", 1) if word.startswith(f"{_FILE}=") else [word]


def _without_values(config: Mapping[str, str], java_options: str | None, folder: Path) -> dict[str, str]:
    """The settings with the user's system properties (`-Dname=value`) in a file that Java itself reads."""
    told = dict(config)
    options = _words(java_options or "")
    properties = [option for option in options if option.startswith("-D")]
    if not properties or java_options is None:
        return told
    file = folder / "java.options"
    _write(file, "".join(f"{_quoted(option)}\n" for option in properties))
    others = [_quoted(option) for option in options if not option.startswith("-D")]
    own = told[_JAVA_OPTIONS].removesuffix(java_options)
    told[_JAVA_OPTIONS] = own + " ".join([*others, _quoted(f"@{file}")])
    return told


def _words(options: str) -> list[str]:
    try:
        return shlex.split(options)
    except ValueError:
        # Spark says what is wrong with it.
        return []


def _quoted(option: str) -> str:
    """One Java option, as Spark's launcher and Java's own files split them."""
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'


def properties_text(config: Mapping[str, str]) -> str:
    """Settings as a file of Java properties."""
    return "".join(f"{_property(key, _SPECIAL_IN_KEYS)}={_property(value)}\n" for key, value in config.items())


def _property(text: str, special: str = "") -> str:
    escaped = "".join(f"\\{letter}" if letter in special else _ESCAPED.get(letter, letter) for letter in text)
    # Blanks in front of a value are part of it only behind a backslash.
    escaped = f"\\{escaped}" if escaped.startswith(" ") else escaped
    plain = (letter if " " <= letter <= "~" else _in_hexadecimal(letter) for letter in escaped)
    return "".join(plain)


def _in_hexadecimal(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _write(file: Path, text: str) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
        opened.write(text)
