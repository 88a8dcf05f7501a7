from __future__ import annotations

from pathlib import Path

import pytest

from lamina.bootstrap import open_store
from lamina.errors import BadConfigValue, NotYetSupported
from lamina.state.memory import MemoryStateStore
from lamina.state.postgres import PostgresBackend
from lamina.state.store import SqlStateStore

PROJECT = Path("/project")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///.lamina/state.db", "/project/.lamina/state.db"),
        ("sqlite:////var/lib/state.db", "/var/lib/state.db"),
        ("SQLITE:///a b?c#d.db", "/project/a b?c#d.db"),
    ],
)
def test_paths_of_sqlite_files_start_at_the_project(url, path):
    store = open_store(url, PROJECT)
    assert isinstance(store, SqlStateStore)
    assert store._backend._path == Path(path)


@pytest.mark.parametrize("url", ["postgresql://ada@db/books", "postgres://db/books", "postgresql+psycopg://db/books"])
def test_postgresql_is_spoken_to_through_psycopg(url):
    store = open_store(url, PROJECT)
    assert store._backend._url.drivername == "postgresql+psycopg"
    store.close()


def test_memory_needs_no_place():
    assert isinstance(open_store("memory:", PROJECT), MemoryStateStore)


@pytest.mark.parametrize("url", ["duckdb:///state.duckdb", "warehouse", "warehouse:"])
def test_stores_that_come_later_say_so(url):
    with pytest.raises(NotYetSupported, match="not supported yet") as error:
        open_store(url, PROJECT)
    assert "sqlite:///" in error.value.hint


@pytest.mark.parametrize(
    "url", ["", "state.db", "sqlite:", "sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:state.db"]
)
def test_an_address_that_names_no_store_is_refused(url):
    with pytest.raises(BadConfigValue) as error:
        open_store(url, PROJECT)
    assert "sqlite:///<path>" in error.value.hint


@pytest.mark.parametrize("url", ["postgresqll://ada:sesame@db/books", "mysql://ada:sesame@db/books"])
def test_an_unknown_store_is_refused_without_showing_the_password(url):
    with pytest.raises(BadConfigValue, match="not a state store") as error:
        open_store(url, PROJECT)
    assert "sesame" not in str(error.value)


def test_a_misspelled_store_is_met_with_the_nearest_one():
    with pytest.raises(BadConfigValue) as error:
        open_store("postgresqll://db/books", PROJECT)
    assert "Did you mean `postgresql`?" in error.value.hint


@pytest.mark.parametrize("url", ["postgresql://ada:ses@me@db/books", "postgresql://ada:x@me/w:o#r?d@db:5432/books"])
def test_a_password_that_ends_early_is_refused_before_its_end_is_taken_for_a_host(url):
    with pytest.raises(BadConfigValue) as error:
        open_store(url, PROJECT)
    assert "me" not in str(error.value).replace("`postgresql://user@host:5432/database`", "").replace("name", "")
    assert "%40" in error.value.hint


@pytest.mark.parametrize(
    "place", ["postgresql://ada:{}@db/books", "postgresql://ada@db/books?password={}&sslpassword={}"]
)
def test_what_a_server_says_is_shown_without_passwords(place):
    backend = PostgresBackend(place.format("ses%40me", "ses%40me"))
    said = backend._without_secrets("no user ada:ses@me, not with ses%40me")
    assert said == "no user ada:***, not with ***"


def test_an_at_sign_in_a_parameter_is_no_password():
    PostgresBackend("postgresql://ada:x@db/books?application_name=a@b")


def test_a_broken_postgresql_address_is_refused_without_showing_the_password():
    with pytest.raises(BadConfigValue) as error:
        open_store("postgresql://ada:sesame@db:port/books", PROJECT)
    assert "sesame" not in str(error.value)
    assert error.value.__cause__ is None
