"""Addresses of Connect servers hold tokens, which nobody gets to see."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

import pytest

from lamina.errors import LaminaError
from lamina.spark.engine import SparkEngine
from lamina.spark.sessions.embedded import SparkSettings
from lamina.spark.sessions.reachable import hide_secrets, without_secrets


@pytest.mark.parametrize(
    ("remote", "shown"),
    [
        ("sc://host:15002", "sc://host:15002"),
        ("sc://host:15002/", "sc://host:15002"),
        ("sc://host:15002/;token=sesame;x=y", "sc://host:15002"),
        ("sc://host:15002;token=sesame", "sc://host:15002"),
        ("sc://host/;token=ses@me;user_id=a", "sc://host"),
        ("sc://host?token=sesame", "sc://host"),
        ("sc://ann:sesame@host:15002/;x=y", "sc://host:15002"),
        ("sc://ann:ses/ame@host:15002", "sc://***"),
        ("sc://[::1]:15002/;token=sesame", "sc://[::1]:15002"),
        ("token=sesame", "sc://***"),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(remote: str, shown: str) -> None:
    assert without_secrets(remote) == shown


def test_texts_of_others_are_shown_without_it() -> None:
    remote = "sc://host:15002/;token=ses%2Fame;x-key=abcd"
    said = f"`{remote}`: token=ses%2Fame, or ses/ame; x-key is abcd"
    shown = hide_secrets(said, remote)
    assert "ame" not in shown
    assert "abcd" not in shown
    assert "host:15002" in shown


@pytest.mark.parametrize(
    "remote",
    [
        "sc://127.0.0.1:1/;token=sesame;x=y",
        "sc://127.0.0.1:1;token=sesame",
        "sc://127.0.0.1:sesame/;token=sesame",
    ],
)
def test_no_failure_shows_a_token(remote: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _check_failure(remote, tmp_path, caplog)


@pytest.mark.parametrize("remote", ["sc://host:1/path;token=sesame", "sc://ann:sesame@host:1/;x=y"])
def test_what_pyspark_says_about_an_address_is_not_repeated(
    remote: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        def remote(self, address: str) -> Refusing:
            self.address = address
            return self

        def create(self) -> None:
            try:
                raise ValueError(self.address)
            except ValueError as error:
                raise RuntimeError(f"Invalid URL for Spark Connect: {self.address}") from error

    monkeypatch.setattr("lamina.spark.sessions.session.check_server", lambda _remote: None)
    monkeypatch.setattr("lamina.spark.sessions.session.SparkSession", type("SparkSession", (), {"builder": Refusing()}))
    _check_failure(remote, tmp_path, caplog)


def _check_failure(remote: str, home: Path, caplog: pytest.LogCaptureFixture) -> None:
    events: list[object] = []
    engine = SparkEngine(SparkSettings(home=home, remote=remote), events.append, lambda _name: None)
    with caplog.at_level(logging.DEBUG), pytest.raises(LaminaError) as caught:
        engine.prepare("test")
    everything = "".join(traceback.format_exception(caught.value)) + str(caught.value.to_dict()) + repr(events)
    assert "sesame" not in everything + caplog.text
    assert "sesame" not in repr(engine._sessions._settings)
