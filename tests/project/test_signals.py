"""Signals in files: what is captured of them, and what is refused."""

from __future__ import annotations

import textwrap

import pytest

from lamina.app.ports.project import Question
from lamina.errors import LaminaError
from lamina.identity.fingerprint import versions_of
from lamina.project.python.recorded_signals import ask_recorded_signal
from lamina.state.codec import model_document
from lamina.timeline.grain import Grain
from lamina.timeline.interval import Interval, Intervals
from lamina.timeline.units import Units
from tests.kit.models import instant, ranges

HEAD = "from lamina import signal\n\n"
READY = HEAD + "@signal()\ndef ready(batch, hours=1, region='eu'):\n    return hours > 2\n"


def model(signals: str, name: str = "a") -> str:
    return (
        f"MODEL (\n  name {name},\n  kind INCREMENTAL_BY_TIME_RANGE (time_column ds),\n  signals ({signals})\n);\n"
        "SELECT ds FROM raw.t WHERE ds BETWEEN @start_ds AND @end_ds"
    )


def signals(body: str) -> str:
    return HEAD + textwrap.dedent(body)


def ask(recorded, start: str = "2024-01-01", end: str = "2024-01-04") -> Intervals:
    """What the first signal of a model answers about these days, after the model was stored and read back."""
    again = model_document.read(model_document.write(recorded))
    interval = Interval(instant(start), instant(end))
    return ask_recorded_signal(
        Question(
            node=again.name,
            call=again.signals[0],
            units=Units(Grain.DAY, interval),
            now=instant("2024-01-04"),
            session=lambda: None,
        )
    )


def place(error: LaminaError) -> tuple[str | None, int | None]:
    assert error.location is not None
    return error.location.file, error.location.line


# --- what is captured -------------------------------------------------------------------------------------------------
def test_a_signal_is_captured_with_the_modules_it_needs(project):
    folder = project(
        {
            "signals/ready.py": signals(
                """
                from helpers.clock import hours_needed

                @signal
                def ready(batch, hours):
                    return hours >= hours_needed()
                """
            ),
            "helpers/clock.py": "def hours_needed():\n    return 3\n",
            "models/a.sql": model("ready(hours := 3)"),
        }
    )
    (call,) = folder.graph().models["shop.a"].signals

    assert (call.name, dict(call.arguments), dict(call.values)) == ("ready", {"hours": "3"}, {"hours": 3})
    assert (call.code.module, call.code.function) == ("signals.ready", "ready")
    assert [module.path for module in call.code.modules] == ["helpers/clock.py", "signals/ready.py"]


def test_a_recorded_signal_is_asked_without_its_files(project):
    folder = project(
        {
            "signals/ready.py": signals(
                """
                @signal()
                def ready(batch):
                    from helpers import enough  # only when it is asked

                    return batch[: enough()]
                """
            ),
            "helpers.py": "def enough():\n    return 2\n",
            "models/a.sql": model("ready"),
        }
    )
    found = folder.graph().models["shop.a"]
    (folder.root / "signals/ready.py").unlink()
    (folder.root / "helpers.py").unlink()

    assert ask(found) == ranges(("2024-01-01", "2024-01-03"))


def test_a_signal_may_have_another_name_than_its_function(project):
    folder = project(
        {
            "signals/s.py": signals("@signal('Landed')\ndef check(batch):\n    return True\n"),
            "models/a.sql": model("LANDED"),
        }
    )

    assert ask(folder.graph().models["shop.a"]) == ranges(("2024-01-01", "2024-01-04"))


def test_arguments_in_sql_become_values_of_python(project):
    folder = project(
        {
            "lamina.yaml": "name: shop\nvariables: {region: eu, shops: [1, 2]}\n",
            "signals/s.py": signals("@signal()\ndef ready(batch, **arguments):\n    return True\n"),
            "models/a.sql": model(
                "ready(a := 3, b = -1.5, c := 'it''s', d := true, e := null, f := (1, 'x'), g := @region,"
                " h := @shops, i := word, j := (k := 1), l := @{region}_west)"
            ),
        }
    )
    (call,) = folder.graph().models["shop.a"].signals

    assert dict(call.values) == {
        "a": 3,
        "b": -1.5,
        "c": "it's",
        "d": True,
        "e": None,
        "f": [1, "x"],
        "g": "eu",
        "h": [1, 2],
        "i": "word",
        "j": {"k": 1},
        "l": "eu_west",
    }


def test_names_of_arguments_ignore_case(project):
    folder = project(
        {
            "signals/s.py": signals("@signal()\ndef ready(batch, maxLag):\n    return maxLag == 2\n"),
            "models/a.sql": model("ready(MAXLAG := 2)"),
        }
    )

    assert ask(folder.graph().models["shop.a"]) == ranges(("2024-01-01", "2024-01-04"))


def test_a_python_model_has_signals_too(project):
    folder = project(
        {
            "signals/s.py": READY,
            "models/p.py": textwrap.dedent(
                """
                from lamina import model

                @model(
                    "shop.p",
                    kind={"name": "INCREMENTAL_BY_TIME_RANGE", "time_column": "ds"},
                    columns={"ds": "date"},
                    signals=[("ready", {"hours": 3})],
                )
                def execute(context, start, end, execution_time, **kwargs):
                    return None
                """
            ),
        }
    )

    assert ask(folder.graph().models["shop.p"]) == ranges(("2024-01-01", "2024-01-04"))


def test_only_the_variables_that_the_code_asks_for_are_recorded(project):
    folder = project(
        {
            "lamina.yaml": "name: shop\nvariables: {lag: 2, other: 3}\n",
            "signals/s.py": signals("@signal()\ndef ready(batch, context):\n    return batch[: context.var('lag')]\n"),
            "models/a.sql": model("ready"),
        }
    )
    found = folder.graph().models["shop.a"]

    assert dict(found.signals[0].code.variables) == {"lag": 2}
    assert ask(found) == ranges(("2024-01-01", "2024-01-03"))


def test_a_model_whose_macros_need_columns_keeps_its_signals(project):
    star = "MODEL (\n  name b,\n  kind INCREMENTAL_BY_TIME_RANGE (time_column ds),\n  signals (ready)\n);\n"
    folder = project(
        {
            "signals/s.py": READY,
            "models/a.sql": "MODEL (name a); SELECT CAST(ds AS DATE) AS ds, x FROM raw.t",
            "models/b.sql": star + "SELECT @STAR(a) FROM a WHERE ds BETWEEN @start_ds AND @end_ds",
        }
    )

    assert folder.graph().models["shop.b"].signals[0].code is not None


# --- identity and cache -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "change",
    [
        {"signals/s.py": READY.replace("> 2", "> 3")},
        {"models/a.sql": model("ready(hours := 4)")},
        {"models/a.sql": model("ready, ready")},
    ],
)
def test_a_changed_signal_is_metadata(project, change):
    folder = project({"signals/s.py": READY, "models/a.sql": model("ready")})
    before = versions_of(folder.graph())["shop.a"]
    folder.write(change)
    after = versions_of(folder.graph())["shop.a"]

    assert after.version == before.version
    assert after.fingerprint.metadata != before.fingerprint.metadata
    assert after.definition_id != before.definition_id


@pytest.mark.parametrize(
    "change",
    [
        {"signals/s.py": READY.replace("hours > 2", "hours > 2  # enough")},
        {"models/a.sql": "\n\n" + model("ready")},
    ],
)
def test_how_a_signal_is_written_does_not_matter(project, change):
    folder = project({"signals/s.py": READY, "models/a.sql": model("ready")})
    before = versions_of(folder.graph())["shop.a"]
    folder.write(change)

    assert versions_of(folder.graph())["shop.a"].definition_id == before.definition_id


def test_an_edit_of_a_signal_or_its_helper_is_seen_and_reads_no_model_again(project):
    code = signals("from helpers import limit\n\n@signal()\ndef ready(batch):\n    return batch[:limit]\n")
    folder = project({"signals/s.py": code, "helpers.py": "limit = 1\n", "models/a.sql": model("ready")})
    assert ask(folder.graph().models["shop.a"]) == ranges(("2024-01-01", "2024-01-02"))

    folder.write({"helpers.py": "limit = 2\n"})
    opened = folder.open()
    found = opened.graph(instant("2024-03-01")).models["shop.a"]
    assert ask(found) == ranges(("2024-01-01", "2024-01-03"))
    assert opened.figures.read == ()

    folder.write({"signals/s.py": code.replace("[:limit]", "[limit:]")})
    assert ask(folder.graph().models["shop.a"]) == ranges(("2024-01-03", "2024-01-04"))
    (folder.root / "signals/s.py").unlink()
    assert folder.problem().code == "LAM-DEF-006"


def test_an_unchanged_project_does_not_import_its_signals(project, capsys):
    folder = project({"signals/s.py": "print('imported')\n" + READY, "models/a.sql": model("ready")})
    folder.graph()
    assert capsys.readouterr().err == "imported\n"
    folder.graph()
    assert capsys.readouterr().err == ""


# --- what is refused --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("written", "said", "hint"),
    [
        ("readyy", "there is no signal `readyy`", "did you mean `ready`?"),
        ("other", "there is no signal `other`", "the project has `ready`"),
        ("ready(hour := 1)", "signal `ready` has no argument `hour`", "did you mean `hours`?"),
        ("ready(zzz := 1)", "signal `ready` has no argument `zzz`", "it takes `hours`, `region`"),
        ("ready(batch := 1)", "`batch` of signal `ready` is given by Lamina", "leave the argument out"),
        ("needs", "signal `needs` needs the argument `days`", "write `needs(days := …)`"),
    ],
)
def test_an_unknown_signal_or_argument_is_found_where_it_is_written(project, written, said, hint):
    more = "\n@signal()\ndef needs(batch, context, *, days):\n    return True\n" if "needs" in written else ""
    folder = project({"signals/s.py": READY + more, "models/a.sql": model(written)})
    error = folder.problem()

    assert (error.code, error.message, error.hint, *place(error)) == ("LAM-DEF-006", said, hint, "models/a.sql", 4)


def test_without_signals_the_way_to_the_first_is_shown(project):
    folder = project({"models/a.sql": model("ready")})

    assert "`signals/`" in folder.problem().hint


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("DATE '2024-01-01'", "LAM-SQL-004"),
        ("1 + 2", "LAM-SQL-004"),
        ("@start_ds", "LAM-SQL-004"),
        ("@no", "LAM-SQL-006"),
    ],
)
def test_an_argument_that_is_no_value_is_refused(project, value, code):
    folder = project({"signals/s.py": READY, "models/a.sql": model(f"ready(hours := {value})")})
    error = folder.problem()

    assert (error.code, *place(error)) == (code, "models/a.sql", 4)


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("@signal()\ndef ready():\n    return True\n", 3),
        ("@signal()\ndef ready(*, batch):\n    return True\n", 3),
        ("@signal()\ndef ready(batch, hours, /):\n    return True\n", 3),
        ("@signal()\nasync def ready(batch):\n    return True\n", 3),
        ("ready = signal()(lambda batch: True)\n", 3),
    ],
)
def test_a_function_that_cannot_be_asked_is_refused(project, body, line):
    folder = project({"signals/s.py": HEAD + body, "models/a.sql": model("ready")})
    error = folder.problem()

    assert (error.code, *place(error)) == ("LAM-DEF-006", "signals/s.py", line)


def test_two_signals_of_one_name_are_refused(project):
    folder = project({"signals/s.py": READY, "signals/t.py": READY, "models/a.sql": model("ready")})
    error = folder.problem()

    assert (error.code, *place(error)) == ("LAM-GRAPH-002", "signals/t.py", 3)


@pytest.mark.parametrize(("content", "line"), [("def (\n", 1), ("\n1 / 0\n", 2)])
def test_a_broken_signal_file_is_the_only_problem(project, content, line):
    folder = project({"signals/s.py": content, "models/a.sql": model("ready")})
    error = folder.problem()

    assert (error.code, *place(error)) == ("LAM-DEF-004", "signals/s.py", line)


def test_everything_wrong_with_signals_is_said_at_once(project):
    folder = project(
        {"signals/s.py": READY, "models/a.sql": model("readyy, ready(x := 1)"), "models/b.sql": model("other", "b")}
    )

    assert [place(error)[0] for error in folder.problems()] == ["models/a.sql", "models/a.sql", "models/b.sql"]
