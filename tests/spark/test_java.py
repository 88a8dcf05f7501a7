"""Java is looked at before Spark is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.errors import JavaMissing
from lamina.spark.sessions.java import check_java


def fake_java(folder: Path, version: str, code: int = 0) -> Path:
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nexit {code}\n")
    command.chmod(0o755)
    return folder


def test_the_java_of_this_machine_is_good_enough() -> None:
    assert check_java() >= 17


def test_missing_java_is_one_sentence_with_a_fix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissing, match="Java was not found") as caught:
        check_java()
    assert "install Java 17" in str(caught.value.hint)


def test_a_wrong_java_home_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaMissing, match=r"`JAVA_HOME` is .* which holds no `bin/java`"):
        check_java()


@pytest.mark.parametrize(("version", "said"), [("1.8.0_402", "Java 8"), ("11.0.2", "Java 11")])
def test_an_old_java_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, said: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, version)))
    with pytest.raises(JavaMissing, match=f"{said}, and Spark needs Java 17 or newer"):
        check_java()


def test_a_java_that_does_not_run_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "17", code=1)))
    with pytest.raises(JavaMissing, match="does not answer"):
        check_java()
