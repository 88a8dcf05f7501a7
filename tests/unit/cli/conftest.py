"""The command line on a fake application."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from lamina.cli.main import cli
from tests.unit.cli.fake_application import FakeApplication, FakeServices, Shop

Lamina = Callable[..., Result]


@pytest.fixture
def services() -> FakeServices:
    return FakeServices()


@pytest.fixture
def application(services: FakeServices) -> FakeApplication:
    return services.application


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def lamina(services: FakeServices, monkeypatch: pytest.MonkeyPatch) -> Lamina:
    """Calls the command line as a program would: no terminal, no colour, no fixed width."""
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)

    def call(*words: str, **settings: object) -> Result:
        return CliRunner().invoke(cli, list(words), obj=services.as_services(), **settings)

    return call
