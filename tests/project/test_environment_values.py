"""Values of the environment get into queries, and nowhere else: not into state, the cache, or what is shown."""

from __future__ import annotations

import sqlite3
import traceback
from pathlib import Path

import pytest

from lamina.app.ports.engine import BatchTime, Hooks
from lamina.app.ports.loaded import LoadRequest
from lamina.bootstrap import open_store
from lamina.errors import LaminaError
from lamina.graph.model import FunctionCall, FunctionCode, PythonModule
from lamina.graph.names import NodeName
from lamina.graph.sealing import Marks, sealed, unsealed, without_values
from lamina.project.files import FileProject
from lamina.project.python.macros import load_recorded_macros
from lamina.spark.python.hooks import run_hooks
from tests.kit import first_form
from tests.kit.app import Killed, Place, january
from tests.kit.first_form import BUILT, FILES, STATE, put_state, write_files

CANARY = 'canary-it\'s "4711" \\ there'
CANARIES = {"SHOP_REGION": "eu", "SHOP_MARK": CANARY}
NEXT = "2024-01-05T01:00:00Z"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    write_files(folder)
    return folder


def opened(root: Path, **environ: str) -> Place:
    place = Place(sources={"raw.orders": january(31)})
    place.project = FileProject(root, environ={**CANARIES, **environ})  # type: ignore[assignment]
    place.store = open_store(STATE, root)  # type: ignore[assignment]
    return place


def with_environ(place: Place, root: Path, environ: dict[str, str]) -> Place:
    place.project = FileProject(root, environ=environ)  # type: ignore[assignment]
    return place


@pytest.fixture
def built(root: Path) -> Place:
    place = opened(root)
    assert place.process(compute=plain_rows).build(BUILT).status == "succeeded"
    return place


def files_with(root: Path, text: str) -> list[str]:
    wanted = {text, text.lower(), text.upper(), text.replace("'", "''"), text.encode("unicode_escape").decode()}
    found = []
    for file in sorted(root.rglob("*")):
        if file.is_file():
            content = file.read_bytes()
            found += [str(file.relative_to(root)) for each in wanted if each.encode() in content]
    return found


def plain_rows(node: str, interval: object, sql: str) -> list[tuple[str, str]]:
    return [("2024-01-02" if interval is not None else "all", node)]


def reasons(report) -> dict[str, str]:
    return {str(step.node): step.reason for step in report.plan.steps if step.has_work}


# --- where values lie -------------------------------------------------------------------------------------------------
def test_no_file_of_the_project_holds_a_value(built: Place, root: Path):
    assert built.process(compute=plain_rows).run(NEXT).status == "succeeded"
    built.process().plan(NEXT)
    built.store.close()
    assert files_with(root, "canary-it") == []
    assert files_with(root, "4711") == []
    with sqlite3.connect(root / ".lamina" / "state.db") as connection:
        texts = [text for (text,) in connection.execute("SELECT model FROM lamina_definitions")]
    connection.close()
    assert sum("${ENV:SHOP_MARK" in text for text in texts) >= 5


def test_outcomes_of_audits_are_recorded_without_values(root: Path):
    (root / "audits" / "marked.sql").write_text("AUDIT (name marked);\nSELECT * FROM @this_model WHERE x = @of\n")
    query = FILES["models/orders.sql"].replace("marked)", "marked(of := @mark))")
    (root / "models" / "orders.sql").write_text(query)
    place = opened(root)
    assert place.process(compute=plain_rows).build(BUILT).status == "succeeded"
    assert place.process(compute=plain_rows).run(NEXT).status == "succeeded"
    calls = {result.call for run in place.store.history() for audits in run.audits for result in audits.results}
    assert any("${ENV:SHOP_MARK}" in call for call in calls)
    place.store.close()
    assert files_with(root, "canary-it") == []


# A view, and what is said about it, made with a value; another one reaches it through an embedded model.
SEEN = """MODEL (
  name shop.seen, kind VIEW, description 'seen with @{mark}', column_descriptions (m = @mark)
);
SELECT ds, @mark AS m FROM shop.totals
"""
TOLD = """MODEL (name shop.told, kind FULL, column_descriptions (x = @mark));
SELECT ds, x FROM shop.orders
"""
BESIDE = "MODEL (name shop.beside, kind VIEW);\nSELECT ds, x FROM shop.within\n"


def with_views(root: Path) -> Path:
    for name, text in {"seen": SEEN, "told": TOLD, "beside": BESIDE}.items():
        (root / "models" / f"{name}.sql").write_text(text)
    return root


def view_text(place: Place, name: str) -> str:
    heads = place.store.load(LoadRequest(all_environments=True, facts_of_pointers=False)).revisions["prod"].places
    return str(place.catalog.versions[heads[NodeName(name)]])


def test_views_and_comments_are_recorded_without_values(root: Path):
    place = opened(with_views(root))
    assert place.process(compute=plain_rows).build(BUILT).status == "succeeded"
    assert "canary-it" in view_text(place, "shop.seen")
    assert "canary-it" in view_text(place, "shop.beside")
    place.store.close()
    assert files_with(root, "canary-it") == []


@pytest.mark.parametrize("point", ["write.decided", "write.published"])
def test_a_view_that_was_decided_is_shown_with_its_value_by_whoever_comes_next(root: Path, point: str):
    place = opened(with_views(root))
    assert place.process(compute=plain_rows).build(BUILT).status == "succeeded"
    (root / "models" / "seen.sql").write_text(SEEN.replace("SELECT ds,", "SELECT ds, 1 AS one,"))
    with pytest.raises(Killed):
        place.dying(point, compute=plain_rows).build(BUILT)
    with sqlite3.connect(root / ".lamina" / "state.db") as state:
        state.execute("UPDATE lamina_leases SET expires_at = 0 WHERE status = 'held'")
    with_environ(place, root, {**CANARIES, "SHOP_MARK": "otherwise, and long"})
    if point == "write.decided":
        # Nobody is shown a view that is made with another value than the one that was decided.
        with pytest.raises(LaminaError) as caught:
            place.process(compute=plain_rows).build(BUILT, select=("shop.plain",))
        assert {problem.code for problem in caught.value.problems} == {"LAM-CFG-005"}
        assert "canary" not in str(caught.value)
    with_environ(place, root, CANARIES)
    assert place.process(compute=plain_rows).build(BUILT).status == "succeeded"
    assert "1 AS one" in view_text(place, "shop.seen")
    assert "canary-it" in view_text(place, "shop.seen")


def test_queries_get_the_value(built: Place):
    seen: list[str] = []
    process = built.process()
    plain = process.engine.compute
    process.engine.compute = lambda node, at, sql: (seen.append(sql), plain(node, at, sql))[1]
    assert process.run(NEXT).status == "succeeded"
    totals = [sql for sql in seen if "AS `mark`" in sql or "AS mark" in sql]
    assert totals
    assert all("canary-it" in sql and "${ENV" not in sql for sql in totals)


def test_statements_behind_views_get_the_value_and_wait_for_it(root: Path):
    text = FILES["models/shown.sql"].replace("TO @mark", "TO @who")
    (root / "models" / "shown.sql").write_text(text)
    config = FILES["lamina.yaml"].replace("  plain: 7", "  plain: 7\n  who: ${ENV:WHO}")
    (root / "lamina.yaml").write_text(config)
    place = with_environ(opened(root), root, {**CANARIES, "WHO": "canary_readers"})
    assert place.build(BUILT).status == "succeeded"
    assert [sql for sql in place.catalog.executed if "canary_readers" in sql]
    place.store.close()
    assert files_with(root, "canary_readers") == []


def test_every_definition_comes_back_to_the_letter(root: Path):
    project = FileProject(root, environ=CANARIES)
    graph = project.graph(Place().clock.now())
    assert sum(bool(model.environment) for model in graph.models.values()) >= 5
    for model in graph.models.values():
        recorded = sealed(model, b"key")
        assert "canary" not in repr(recorded)
        assert repr(unsealed(recorded, CANARIES, b"key")) == repr(model)
        assert unsealed(recorded, CANARIES, b"key") == model


@pytest.mark.parametrize(
    "text",
    ["eu revenue europe", "${ENV:A} and ${ENV::A}", "it''s", "EU Eu eu", "a\\'b", "", "${ENV:", "$${ENV:A}eu}", "{eu}"],
)
@pytest.mark.parametrize("values", [{"A": "eu"}, {"A": "eu", "B": "e"}, {"A": "it's"}, {"A": ""}, {"A": "ENV"}])
def test_hiding_loses_nothing(text: str, values: dict[str, str]):
    marks = Marks(values)
    assert marks.show(marks.hide(text)) == text


@pytest.mark.parametrize(
    "value",
    [
        "canary\tof a tab",
        "canary\r\nof lines\r\n",
        "\x00\x01\x1b canary \x7f",
        "it's \\ a 'canary'",
        "  canary  ",
        '`canary` "canary"',
        "kö canary \u2028",
        "a = 'some canary' AND b > 1",
    ],
)
@pytest.mark.parametrize("dialect", ["spark", "mysql", "postgres"])
def test_a_value_is_found_however_it_is_written(root: Path, value: str, dialect: str):
    header = (
        f"MODEL (name shop.plain, kind FULL, dialect {dialect}, description 'of @mark', session_properties (a=@mark), "
        "grain @mark, column_descriptions (x = @mark));"
    )
    (root / "models" / "plain.sql").write_text(f"{header}\nSELECT ds, x, @mark AS m FROM raw.orders WHERE ds <> @mark")
    (root / "models" / "filtered.sql").write_text(
        f"MODEL (name shop.filtered, kind FULL, dialect {dialect});\nSELECT ds, 'of @{{mark}}' AS x FROM raw.orders"
    )
    if "AND" in value:
        (root / "models" / "filtered.sql").write_text(
            f"MODEL (name shop.filtered, kind FULL, dialect {dialect});\nSELECT ds, x FROM raw.orders WHERE @SQL(@mark)"
        )
    environ = {**CANARIES, "SHOP_MARK": value}
    graph = FileProject(root, environ=environ).graph(Place().clock.now())
    for name in ("shop.plain", "shop.filtered", "shop.totals", "shop.people"):
        recorded = sealed(graph.models[name], b"key")
        assert "canary" not in repr(recorded)
        assert unsealed(recorded, environ, b"key") == graph.models[name]


def test_a_macro_that_fails_late_does_not_tell_a_value(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tests.kit.app.no_macros", load_recorded_macros)
    (root / "macros" / "late.py").write_text(
        "from lamina import macro\n\n@macro()\ndef late(evaluator, day):\n"
        "    if str(day) >= \"'2024-01-02\":\n        raise ValueError('oops ' + evaluator.var('mark'))\n"
        "    return day\n"
    )
    (root / "models" / "orders.sql").write_text(
        "MODEL (name shop.orders, kind INCREMENTAL_BY_TIME_RANGE (time_column ds, batch_size 1));\n"
        "SELECT ds, x FROM raw.orders WHERE ds >= @late(@start_ds) AND ds <> @late(@end_ds) AND x <> @mark\n"
    )
    place = opened(root)
    report = place.process(compute=plain_rows).build(BUILT)
    assert report.status == "failed"
    error = next(node["error"] for node in report.to_dict()["nodes"] if node["name"] == "shop.orders")
    assert error["message"] == "`@late` failed: ValueError: oops ${ENV:SHOP_MARK}"
    assert (error["file"], error["line"]) == ("models/orders.sql", 2)
    place.store.close()
    assert files_with(root, "canary-it") == []


def test_values_of_several_lines_are_hidden_in_messages_of_one():
    value = "-----BEGIN\ncanary\tpem\r\nx='\\\"\nlast canary\n"
    said = ("oh -----BEGIN canary\tpem x='\\\" last canary (WHY)", "first: -----BEGIN", f"all: {value}.", f"{value!r}")
    for each in said:
        hidden = without_values(each, {"${ENV:PEM}": value})
        assert "${ENV:PEM}" in hidden
        assert "canary" not in hidden
        assert "BEGIN" not in hidden


# --- what a value decides ---------------------------------------------------------------------------------------------
def test_the_same_values_plan_as_unchanged(built: Place):
    assert built.build(BUILT).status == "nothing_to_do"
    assert built.run(BUILT).status == "nothing_to_do"
    assert built.build(BUILT, "dev").status == "succeeded"
    assert built.build(BUILT, "dev").status == "nothing_to_do"


def test_another_value_reaches_what_is_made_with_it_and_nothing_else(built: Place, root: Path):
    with_environ(built, root, {**CANARIES, "SHOP_REGION": "us"})
    found = reasons(built.process().plan(BUILT))
    assert found.pop("shop.totals") == "query_changed"
    assert found.pop("shop.often") == "query_changed"
    assert found == {"shop.shown": "upstream_changed"}
    assert built.build(BUILT).status == "succeeded"
    assert built.build(BUILT).status == "nothing_to_do"


def test_versions_tell_nothing_about_values_to_those_without_the_key(root: Path):
    from lamina.identity.fingerprint import versions_of

    graph = FileProject(root, environ=CANARIES).graph(Place().clock.now())
    first, second = versions_of(graph, b"one"), versions_of(graph, b"two")
    marked = {name for name, model in graph.models.items() if model.environment}
    for name in marked:
        assert first[name].definition_id != second[name].definition_id
    assert first["shop.plain"] == second["shop.plain"]


def test_a_run_with_another_value_is_refused(built: Place, root: Path):
    with_environ(built, root, {**CANARIES, "SHOP_MARK": "otherwise"})
    with pytest.raises(LaminaError) as caught:
        built.run(NEXT)
    problems = caught.value.problems
    assert {problem.code for problem in problems} == {"LAM-CFG-005"}
    assert all("SHOP_MARK" in problem.message and problem.location.file for problem in problems)
    assert "otherwise" not in str(caught.value)
    assert "canary" not in str(caught.value)


def test_a_run_without_the_variable_says_what_to_set(built: Place, root: Path):
    project = FileProject(root, environ=CANARIES)
    project.settings()
    project._environ = {"SHOP_REGION": "eu"}
    built.project = project  # type: ignore[assignment]
    with pytest.raises(LaminaError) as caught:
        built.run(NEXT)
    assert {problem.code for problem in caught.value.problems} == {"LAM-CFG-004"}


def test_what_is_recorded_can_be_shown_without_the_value(built: Place):
    text = (
        built.process()
        .application()
        .render("shop.totals", start=None, end=None, now=built.clock.now(), environment="prod")
    )
    assert "canary" not in text
    assert "${ENV:SHOP_MARK" in text


# --- state of before --------------------------------------------------------------------------------------------------
def test_state_that_holds_values_in_clear_plans_as_unchanged(root: Path):
    put_state(root)
    place = with_environ(opened(root), root, first_form.ENVIRON)
    place.catalog.is_far_away = True
    assert place.build(BUILT).status == "nothing_to_do"
    with_environ(place, root, {**first_form.ENVIRON, "SHOP_MARK": "rotated"})
    assert "shop.totals" in reasons(place.process().plan(BUILT))
    assert "shop.plain" not in reasons(place.process().plan(BUILT))


# --- secrets ----------------------------------------------------------------------------------------------------------
def configured(root: Path, **changes: str) -> None:
    text = FILES["lamina.yaml"]
    for old, new in changes.items():
        text = text.replace("${ENV:" + old + "}", new)
    (root / "lamina.yaml").write_text(text)


def test_a_secret_in_what_a_query_is_made_with_is_an_error(root: Path):
    configured(root, SHOP_MARK="${SECRET:SHOP_MARK}")
    with pytest.raises(LaminaError) as caught:
        FileProject(root, environ=CANARIES).graph(Place().clock.now())
    problems = caught.value.problems
    assert {problem.code for problem in problems} == {"LAM-CFG-006"}
    assert {"models/totals.sql", "models/people.py"} <= {problem.location.file for problem in problems}
    assert all("${ENV:SHOP_MARK}" in problem.hint for problem in problems)


def test_a_secret_in_defaults_is_an_error_with_its_line(root: Path):
    (root / "lamina.yaml").write_text(FILES["lamina.yaml"] + "\n")
    text = FILES["lamina.yaml"].replace("  start: 2024-01-01", "  start: 2024-01-01\n  owner: ${SECRET:WHO}")
    (root / "lamina.yaml").write_text(text)
    with pytest.raises(LaminaError) as caught:
        FileProject(root, environ={**CANARIES, "WHO": "ann"}).settings()
    (problem,) = caught.value.problems
    assert (problem.code, problem.location.line) == ("LAM-CFG-006", 8)


def test_connections_and_spark_settings_take_secrets(root: Path):
    text = FILES["lamina.yaml"].replace("targets: {prod: {}}", "spark: {config: {spark.x.key: '${SECRET:TOKEN}'}}")
    (root / "lamina.yaml").write_text(text)
    config = FileProject(root, environ={**CANARIES, "TOKEN": "hush-hush"}).config()
    assert config.target.spark.revealed_config()["spark.x.key"] == "hush-hush"
    with pytest.raises(LaminaError) as caught:
        FileProject(root, environ=CANARIES).config()
    assert caught.value.problems[0].code == "LAM-CFG-004"


def test_what_is_secret_in_connections_is_hidden_wherever_it_turns_up(root: Path):
    settings = """spark:
  remote: sc://${ENV:HOST}:15002/;x-key=${ENV:KEY}
  config: {a.url: "jdbc:x://${ENV:HOST}/d?user=ann&password=${ENV:WORD}", a.secret.key: "${ENV:OTHER}", a.b: "${ENV:B}"}
state: postgresql://ann:${ENV:STORE}@${ENV:HOST}/d
"""
    (root / "lamina.yaml").write_text(FILES["lamina.yaml"].replace("targets: {prod: {}}\n", settings))
    environ = {**CANARIES, "HOST": "db.local", "KEY": "k", "WORD": "w&x=1", "OTHER": "o", "STORE": "s", "B": "plain"}
    hidden = FileProject(root, environ=environ).config().environment.hidden
    assert set(hidden) == {f"${{ENV:{name}}}" for name in ("SHOP_REGION", "SHOP_MARK", "KEY", "WORD", "OTHER", "STORE")}


def test_hooks_are_recorded_with_the_names_of_secrets(root: Path):
    from lamina.graph.sealing import with_secrets

    text = FILES["lamina.yaml"].replace("  plain: 7", "  plain: 7\n  token: ${SECRET:TOKEN}")
    (root / "lamina.yaml").write_text(text)
    (root / "python").mkdir()
    (root / "python" / "call.py").write_text(
        "from lamina import hook\n\n@hook()\ndef call(context, key):\n    context.var('token')\n"
    )
    query = FILES["models/plain.sql"].replace("kind FULL", "kind FULL, pre_hooks (call(key := 'a ${SECRET:TOKEN}'))")
    (root / "models" / "plain.sql").write_text(query)
    place = with_environ(opened(root), root, {**CANARIES, "TOKEN": "hush-hush"})
    assert place.build(BUILT).status == "succeeded"
    with_environ(place, root, {**CANARIES, "TOKEN": "rotated"})
    assert place.build(BUILT).status == "nothing_to_do"
    loaded = place.store.load(LoadRequest(environments=("prod",), definitions_of_pointers=True))
    hooks = loaded.definitions[loaded.revisions["prod"].pointers["shop.plain"].definition_id].pre_hooks
    (call,) = with_secrets(hooks, {"TOKEN": "hush-hush"})
    assert call.values["key"] == "a hush-hush"
    assert call.code.variables["token"] == "hush-hush"
    with pytest.raises(LaminaError) as caught:
        with_secrets(hooks, {})
    assert caught.value.code == "LAM-CFG-004"
    place.store.close()
    assert files_with(root, "hush-hush") == []


def test_a_hook_is_called_with_the_secret_and_its_error_does_not_tell_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TOKEN", "hush-hush")
    source = "def call(context, key):\n    raise ValueError(f'{key} {context.var(\"token\")}')\n"
    code = FunctionCode(
        module="python.call",
        function="call",
        modules=(PythonModule(name="python.call", path="python/call.py", source=source),),
        variables={"token": "${SECRET:TOKEN}"},
    )
    calls = (FunctionCall(name="call", values={"key": "key=${SECRET:TOKEN}"}, code=code),)
    hooks = Hooks(before=calls, after=(), time=BatchTime(interval=None, execution=Place().clock.now()))
    with pytest.raises(LaminaError) as caught:
        run_hooks(None, calls, hooks, "shop.plain")  # type: ignore[arg-type]  # the hook does not look at the session
    assert "key=${SECRET:TOKEN} ${SECRET:TOKEN}" in caught.value.message
    assert "hush" not in "".join(traceback.format_exception(caught.value))


# --- recorded definitions are what their ids say ----------------------------------------------------------------------
def altered(root: Path, node: str) -> None:
    with sqlite3.connect(root / ".lamina" / "state.db") as connection:
        rows = connection.execute("SELECT definition_id, model FROM lamina_definitions").fetchall()
        for id_, text in rows:
            if f'"name":"{node}"' in text:
                new = text.replace("SELECT ds, x", "SELECT ds, secret AS x").replace(
                    'withColumn(\\"m', 'withColumn(\\"n'
                )
                assert new != text
                connection.execute("UPDATE lamina_definitions SET model = ? WHERE definition_id = ?", (new, id_))
    connection.close()


@pytest.mark.parametrize("node", ["shop.plain", "shop.totals", "shop.within", "shop.people"])
def test_a_definition_that_was_altered_is_not_run(built: Place, root: Path, node: str):
    built.store.close()
    altered(root, node)
    built.store = open_store(STATE, root)  # type: ignore[assignment]
    process = built.process()
    with pytest.raises(LaminaError) as caught:
        process.run(NEXT)
    (problem,) = caught.value.problems
    assert (problem.code, problem.node) == ("LAM-STATE-009", node)
    assert not process.engine.writes


@pytest.mark.parametrize("node", ["orders", "totals", "often", "joined", "plain", "shown"])
def test_what_is_recorded_can_be_shown_with_other_values_of_now(built: Place, root: Path, node: str):
    with_environ(built, root, {"SHOP_REGION": "us", "SHOP_MARK": "another"})
    application = built.process().application()
    text = application.render(f"shop.{node}", start=None, end=None, now=built.clock.now(), environment="prod")
    assert "another" not in text
    assert "canary" not in text


def test_a_definition_that_was_altered_is_not_rendered_either(built: Place, root: Path):
    built.store.close()
    altered(root, "shop.totals")
    built.store = open_store(STATE, root)  # type: ignore[assignment]
    application = built.process().application()
    with pytest.raises(LaminaError) as caught:
        application.render("shop.totals", start=None, end=None, now=built.clock.now(), environment="prod")
    assert caught.value.code == "LAM-STATE-009"


@pytest.mark.parametrize("made_with", ["Python 3.99, sqlglot 99.0", None])
def test_what_another_parser_or_an_older_lamina_recorded_is_not_compared(
    root: Path, monkeypatch: pytest.MonkeyPatch, made_with: str | None
):
    place = opened(root)
    with monkeypatch.context() as other:
        other.setattr("lamina.app.building.apply_plan.made_with", lambda: made_with)
        assert place.process(compute=plain_rows).build(BUILT).status == "succeeded"
    place.store.close()
    altered(root, "shop.totals")
    place.store = open_store(STATE, root)  # type: ignore[assignment]
    assert place.process(compute=plain_rows).run(NEXT).status == "succeeded"


# --- what is shown ----------------------------------------------------------------------------------------------------
def test_render_and_errors_show_names(root: Path):
    from lamina.bootstrap import Hiding
    from lamina.errors import QueryFailed

    place = opened(root)
    text = place.process().application().render("shop.totals", start=None, end=None, now=place.clock.now())
    assert "canary" not in text
    assert "'${ENV:SHOP_REGION}'" in text
    hidden = place.project.config().environment.hidden  # type: ignore[attr-defined]

    class Failing:
        def query(self) -> None:
            raise QueryFailed(f"no column {CANARY} in Europe but in eu", hint=f"see {CANARY.upper()}")

    with pytest.raises(LaminaError) as caught:
        Hiding(Failing(), hidden).query()
    assert caught.value.message == "no column ${ENV:SHOP_MARK} in Europe but in ${ENV:SHOP_REGION}"
    assert caught.value.hint == "see ${ENV:SHOP_MARK}"


def test_what_the_command_line_reports_has_no_values(root: Path, monkeypatch: pytest.MonkeyPatch):
    from lamina.bootstrap import OpenOptions, hide_values

    monkeypatch.setenv("SHOP_MARK", CANARY)
    monkeypatch.setenv("SHOP_REGION", "eu")
    options = OpenOptions(directory=root)
    assert hide_values(options, f"Traceback: {CANARY!r} and {CANARY}").count("canary") <= 1
    assert hide_values(options, f"in europe: {CANARY}") == "in europe: ${ENV:SHOP_MARK}"
    assert hide_values(OpenOptions(directory=root / "nowhere"), "as it is") == "as it is"


def test_files_that_have_no_value_are_still_remembered(root: Path):
    FileProject(root, environ=CANARIES).graph(Place().clock.now())
    again = FileProject(root, environ=CANARIES)
    again.graph(Place().clock.now())
    assert "models/plain.sql" not in again.figures.read
    assert "models/totals.sql" in again.figures.read
