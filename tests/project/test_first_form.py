"""State that was recorded before identity had a number goes on as it is: nothing is built again, nothing is renamed."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from lamina.app.ports.loaded import LoadRequest
from lamina.bootstrap import open_store
from lamina.identity import fingerprint
from lamina.identity.forms import first, former
from lamina.identity.version import form_of
from lamina.project.files import FileProject
from tests.kit.app import Place, january
from tests.kit.first_form import BUILT, ENVIRON, FILES, STATE, build_everything, put_state, write_files

NEXT = "2024-01-05T01:00:00Z"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    write_files(folder)
    return folder


def opened(root: Path) -> Place:
    place = Place(sources={"raw.orders": january(31)})
    place.project = FileProject(root, environ=ENVIRON)  # type: ignore[assignment]
    place.store = open_store(STATE, root)  # type: ignore[assignment]
    return place


@pytest.fixture
def recorded(root: Path) -> Place:
    """The state that an older Lamina left behind; its tables cannot be looked at from here."""
    put_state(root)
    place = opened(root)
    place.catalog.is_far_away = True
    return place


@pytest.fixture
def built(root: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The same, by an older Lamina that is put in the place of this one, and with tables."""
    place = opened(root)
    with monkeypatch.context() as older:
        older.setattr("lamina.app.planning.identify.versions_of", lambda graph, _key: first_versions(graph))
        older.setattr("lamina.app.planning.identify.undecided", lambda *_: {})
        older.setattr("lamina.app.building.apply_plan.sealed", lambda model, _key: model)
        older.setattr("lamina.app.building.apply_plan.made_with", lambda: None)
        build_everything(place)
    return place


def first_versions(graph):
    found = {}
    for name, model in graph.models.items():
        found[name] = first.version_of(model, found)
    return found


@pytest.fixture
def another_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """A form in use that calls every node something else, as a finer one would."""
    plain = fingerprint.query_hash
    monkeypatch.setattr(
        fingerprint, "query_hash", lambda model, seal=None: fingerprint.digest("another form", plain(model, seal))
    )


def work(report) -> dict[str, str]:
    return {str(step.node): step.action for step in report.plan.steps if step.has_work}


def places(place: Place, environment: str = "prod") -> dict[str, tuple[str, str | None]]:
    revision = place.store.load(LoadRequest(environments=(environment,))).revisions[environment]
    return {str(name): (str(pointer.version), pointer.physical) for name, pointer in revision.pointers.items()}


def change(root: Path, file: str, old: str, new: str) -> None:
    assert old in FILES[file]
    (root / file).write_text(FILES[file].replace(old, new))
    later = (root / file).stat().st_mtime + 10
    os.utime(root / file, (later, later))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every history, under the form in use and under one that renames everything."""
    if "form" in metafunc.fixturenames:
        metafunc.parametrize("form", ["in use", "another"])


@pytest.fixture
def _form(form: str, request: pytest.FixtureRequest) -> None:
    if form == "another":
        request.getfixturevalue("another_form")


# --- the first form is what it was ------------------------------------------------------------------------------------
def test_the_recorded_state_is_what_the_first_form_makes_of_the_files(recorded: Place, built: Place):
    loaded = recorded.store.load(LoadRequest(environments=("prod",)))
    graph = recorded.project.graph(BUILT and recorded.clock.now())
    made = first_versions(graph)
    shown = loaded.revisions["prod"].pointers
    assert {name: (each.version, each.definition_id) for name, each in made.items()} == {
        name: (pointer.version, pointer.definition_id) for name, pointer in shown.items()
    }
    for facts in loaded.facts.values():
        assert facts.fingerprint == made[facts.node].fingerprint


def test_a_field_that_kinds_are_given_later_does_not_change_the_first_form(recorded: Place):
    graph = recorded.project.graph(recorded.clock.now())
    known = set(first._FIELDS)
    assert {type(model.kind).__name__ for model in graph.models.values()} - known <= {"Full", "Embedded"}
    assert list(former.FORMER) == [1]


COMMENTED = """MODEL (name shop.plain, kind FULL, column_descriptions (x = 'the x'));
SELECT
  -- above
  ds,
  x -- beside
FROM raw.orders
"""


@pytest.fixture
def read_otherwise(root: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The same, by an older Lamina that did not find the comments of a query where this one finds them."""
    (root / "models/plain.sql").write_text(COMMENTED)
    place = opened(root)
    with monkeypatch.context() as older:
        older.setattr("lamina.sql.query._projection_comments", lambda *_: {})
        older.setattr("lamina.app.planning.identify.versions_of", lambda graph, _key: first_versions(graph))
        older.setattr("lamina.app.planning.identify.undecided", lambda *_: {})
        older.setattr("lamina.app.building.apply_plan.sealed", lambda model, _key: model)
        older.setattr("lamina.app.building.apply_plan.made_with", lambda: None)
        build_everything(place)
    shutil.rmtree(root / ".lamina" / "cache")
    place.project = FileProject(root, environ=ENVIRON)  # type: ignore[assignment]
    return place


def test_comments_that_are_read_otherwise_now_are_no_change(read_otherwise: Place, root: Path):
    before = places(read_otherwise)
    for environment in (None, "dev"):
        plan = read_otherwise.process().plan(BUILT, environment)
        assert {str(step.node): step.action for step in plan.plan.steps if step.action != "skip"} == {}
        assert read_otherwise.build(BUILT, environment).status == "nothing_to_do"
    assert places(read_otherwise) == before
    (comment,) = (model for name, model in read_otherwise.project.graph(BUILT).models.items() if name == "shop.plain")
    assert [column.comment for column in comment.columns] == ["above", "the x"]


@pytest.mark.parametrize(
    ("old", "new"), [("'the x'", "'another x'"), ("-- above", "-- edited"), (", kind", ", owner ann, kind")]
)
def test_what_else_is_said_of_such_a_model_counts(read_otherwise: Place, root: Path, old: str, new: str):
    (root / "models/plain.sql").write_text(COMMENTED.replace(old, new))
    plan = read_otherwise.process().plan(BUILT)
    assert {str(step.node): step.action for step in plan.plan.steps if step.action != "skip"} == {
        "shop.plain": "metadata"
    }


# --- state of before --------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("_form")
def test_nothing_is_to_be_done_and_nothing_is_renamed(recorded: Place, form: str):
    before = places(recorded), places(recorded, "dev")
    for environment in (None, "dev"):
        process = recorded.process()
        assert work(process.plan(BUILT, environment)) == {}
        assert process.build(BUILT, environment).status == "nothing_to_do"
        assert not process.engine.writes
    assert (places(recorded), places(recorded, "dev")) == before
    assert recorded.run(BUILT).status == "nothing_to_do"


@pytest.mark.usefixtures("_form")
def test_a_new_environment_shares_what_is_there(recorded: Place, form: str):
    assert work(recorded.process().plan(BUILT, "feature")) == {}


@pytest.mark.usefixtures("_form")
def test_once_built_the_former_form_is_not_asked_again(recorded: Place, form: str, monkeypatch: pytest.MonkeyPatch):
    for environment in (None, "dev"):
        recorded.build(BUILT, environment)

    def refuse(*_: object) -> None:
        raise AssertionError("asked again")

    monkeypatch.setattr("lamina.app.planning.identify.former_versions", refuse)
    recorded.store.close()
    recorded.store = open_store(STATE, recorded.project.root)  # type: ignore[assignment]
    for environment in (None, "dev", "feature"):
        assert work(recorded.process().plan(BUILT, environment)) == {}


@pytest.mark.usefixtures("_form")
def test_only_what_was_changed_meanwhile_is_built(built: Place, root: Path, form: str):
    before = places(built)
    change(root, "models/joined.sql", "SELECT ds, x", "SELECT ds, upper(x) AS x")
    process = built.process()
    plan = process.plan(BUILT)
    assert set(work(plan)) == {"shop.joined"}
    (step,) = (step for step in plan.plan.steps if step.node == "shop.joined")
    assert step.reason == "query_changed"
    assert process.build(BUILT).status == "succeeded"
    assert {node for node, _ in process.engine.writes} == {"shop.joined"}
    after = places(built)
    assert {name for name in after if after[name] != before[name]} == {"shop.joined"}
    assert built.build(BUILT).status == "nothing_to_do"
    assert work(built.process().plan(BUILT, "dev")) == {}
    assert built.build(BUILT, "dev").status == "succeeded"
    assert places(built, "dev") == after


@pytest.mark.usefixtures("_form")
def test_what_is_reached_by_a_change_is_built_and_says_why(built: Place, root: Path, form: str):
    change(root, "models/orders.sql", "@lowered(x) AS x", "x AS x")
    reasons = {str(step.node): step.reason for step in built.process().plan(BUILT).plan.steps if step.has_work}
    assert reasons.pop("shop.orders") == "query_changed"
    assert set(reasons.values()) == {"upstream_changed"}
    assert {"shop.plain", "shop.names"}.isdisjoint(reasons)


@pytest.mark.usefixtures("_form")
def test_other_metadata_is_recorded_and_nothing_is_built(built: Place, root: Path, form: str):
    change(root, "models/totals.sql", "owner ann", "owner bob")
    before = places(built)
    process = built.process()
    assert work(process.plan(BUILT)) == {}
    assert process.build(BUILT).status == "succeeded"
    assert not process.engine.writes
    assert places(built) == before
    pointers = built.store.load(LoadRequest(environments=("prod",))).revisions["prod"].pointers
    assert {str(name) for name, each in pointers.items() if form_of(each.definition_id) == 2} == {"shop.totals"}
    assert built.build(BUILT).status == "nothing_to_do"
    # What nobody has asked about in this environment is known by its own words.
    (root / "models/totals.sql").write_text(FILES["models/totals.sql"])
    assert built.build(BUILT, "dev").status == "nothing_to_do"
    assert built.build(BUILT).status == "succeeded"
    assert built.build(BUILT).status == "nothing_to_do"


@pytest.mark.usefixtures("_form")
def test_runs_and_restatements_go_on_in_the_same_tables(built: Place, form: str):
    before = places(built)
    assert built.build(BUILT).status == "nothing_to_do"
    assert built.run(NEXT).status == "succeeded"
    assert built.build(NEXT, restate=("shop.orders",)).status == "succeeded"
    assert places(built) == before
    assert built.build(NEXT).status == "nothing_to_do"
    assert built.build(NEXT, "dev", restate=("shop.orders",)).status == "succeeded"
    versions = {name: version for name, (version, _) in places(built, "dev").items()}
    assert versions == {name: version for name, (version, _) in before.items()}
    assert places(built) == before
    assert built.build(NEXT, "dev").status == "nothing_to_do"


@pytest.mark.usefixtures("_form")
def test_a_change_that_is_taken_back_is_the_old_version_again(built: Place, root: Path, form: str):
    before = places(built)
    change(root, "models/joined.sql", "SELECT ds, x", "SELECT ds, upper(x) AS x")
    built.build(BUILT)
    (root / "models/joined.sql").write_text(FILES["models/joined.sql"])
    process = built.process()
    assert process.build(BUILT).status == "succeeded"
    assert not process.engine.writes
    assert places(built) == before


def test_render_names_the_tables_that_are_there(recorded: Place, another_form: None):
    text = recorded.process().application().render("shop.totals", start=None, end=None, now=recorded.clock.now())
    assert places(recorded)["shop.orders"][1].rpartition(".")[2] in text


def test_a_store_is_brought_over_and_gets_a_key(recorded: Place, root: Path):
    key = recorded.store.seal_key
    assert key is not None
    assert len(key) == 32
    recorded.store.close()
    assert open_store(STATE, root).seal_key == key
    with sqlite3.connect(root / ".lamina" / "state.db") as connection:
        assert connection.execute("SELECT count(*) FROM lamina_identities").fetchone() == (0,)
    connection.close()
