"""Starting a JVM without showing its settings to everybody on the machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lamina.spark.sessions import launch as launching
from tests.kit.told import told
from tests.spark.launched import CONFIG

ARGUMENTS = "PYSPARK_SUBMIT_ARGS"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What PySpark was told, and what stood in the file of settings at that moment."""
    found: list[tuple[str, str]] = []

    def start(conf: object, _popen: object) -> str:
        assert conf is None
        words = os.environ[ARGUMENTS].split()
        file = Path(words[words.index("--properties-file") + 1])
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700
        found.append((os.environ[ARGUMENTS].replace(str(file), "FILE"), file.read_text(encoding="utf-8")))
        return "gateway"

    monkeypatch.setattr(launching, "launch_gateway", start)
    monkeypatch.delenv(ARGUMENTS, raising=False)
    return found


def test_settings_are_in_a_file_that_goes(started: list[tuple[str, str]]) -> None:
    assert launching.launch({"spark.a": "b c"}, {}) == "gateway"
    assert started == [("--properties-file FILE --load-spark-defaults pyspark-shell", "spark.a=b c\n")]
    assert ARGUMENTS not in os.environ


def test_what_the_user_tells_spark_submit_stays(
    started: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = tmp_path / "own.conf"
    own.write_text("spark.a=theirs\nspark.own=1")
    for given in (
        "--conf spark.x=1 pyspark-shell",
        f"--properties-file {own} pyspark-shell",
        f"--properties-file={own} pyspark-shell",
    ):
        monkeypatch.setenv(ARGUMENTS, given)
        launching.launch({"spark.a": "ours"}, {})
        assert os.environ[ARGUMENTS] == given
    assert started == [
        ("--properties-file FILE --load-spark-defaults --conf spark.x=1 pyspark-shell", "spark.a=ours\n"),
        ("--properties-file FILE pyspark-shell", "spark.a=theirs\nspark.own=1\nspark.a=ours\n"),
        ("--properties-file FILE pyspark-shell", "spark.a=theirs\nspark.own=1\nspark.a=ours\n"),
    ]


def test_nothing_stays_behind_when_the_start_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(_conf: object, _popen: object) -> None:
        raise RuntimeError

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(launching, "launch_gateway", fail)
    monkeypatch.delenv(ARGUMENTS, raising=False)
    with pytest.raises(RuntimeError):
        launching.launch({"spark.a": "b"}, {})
    assert list(tmp_path.iterdir()) == []
    assert ARGUMENTS not in os.environ


def test_java_reads_every_text_as_it_was(tmp_path: Path) -> None:
    settings = {
        "spark.a": "",
        "spark.b": " two ",
        "spark.c=:#! d": "#!=: \\ \t\r\n\f ü √ 𝄞 ${env:PATH}",
        "#spark": "C:\\new\\u0041",
    }
    (tmp_path / "it.properties").write_text(launching.properties_text(settings), encoding="ascii")
    program = """
    import java.nio.file.*; import java.util.*;
    class Read { public static void main(String[] a) throws Exception {
        Properties p = new Properties();
        try (var in = Files.newInputStream(Path.of(a[0]))) { p.load(in); }
        var out = new java.io.PrintStream(System.out, true, "UTF-8");
        for (String k : new TreeSet<>(p.stringPropertyNames())) out.print(k + "\\0" + p.getProperty(k) + "\\0");
    } }
    """
    (tmp_path / "Read.java").write_text(program, encoding="utf-8")
    java = str(Path(os.environ["JAVA_HOME"], "bin", "java")) if os.environ.get("JAVA_HOME") else "java"
    answer = subprocess.run(
        [java, str(tmp_path / "Read.java"), str(tmp_path / "it.properties")], capture_output=True, check=True
    )
    parts = answer.stdout.decode().split("\0")[:-1]
    assert dict(zip(parts[::2], parts[1::2], strict=True)) == settings


# --- a real one -------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return told("-m", "tests.spark.launched", str(tmp_path_factory.mktemp("a place %41")), "local[1]")


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="command lines are read from /proc")
def test_no_command_line_shows_a_setting_and_spark_has_all_of_them(seen: Any) -> None:
    assert seen["launched"] >= 1
    assert seen["shown"] == []
    assert seen["rows"] == [1]
    assert {**seen["had"], "spark.driver.extraJavaOptions": ""} == {**CONFIG, "spark.driver.extraJavaOptions": ""}
    assert seen["had"]["spark.driver.extraJavaOptions"].endswith(CONFIG["spark.driver.extraJavaOptions"])
    assert seen["properties"] == ["sesame street", 'a "b\\c']


def test_nothing_of_it_stays_anywhere(seen: Any) -> None:
    assert seen["left"] == []
    assert set(seen["modes"]) == {"0o600"}
    assert seen["arguments"] is None
    assert not seen["logged"]
