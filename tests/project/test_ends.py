"""Code of a project that would end the process: a problem of its file, never the end of the command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from click.testing import CliRunner

from lamina.cli.main import cli
from lamina.errors import Location, MacroError
from lamina.graph.model import PythonModule
from lamina.project.python.macros import load_recorded_macros
from lamina.sql.fragment import Fragment
from lamina.sql.macros.expand import expand
from lamina.sql.macros.scope import MacroScope

ENDS = {
    "exit": ("import sys", "sys.exit(0)", "SystemExit"),
    "raise": ("", "raise SystemExit", "SystemExit"),
    "builtin": ("", "raise SystemExit(0)", "SystemExit"),
    "at once": ("import os", "os._exit(0)", "SystemExit"),
    "at once, by name": ("from os import _exit", "_exit(0)", "SystemExit"),
    "interrupt": ("", "raise KeyboardInterrupt", "KeyboardInterrupt"),
    "own": ("class Own(BaseException): pass", "raise Own('x')", "Own"),
    "generator": ("", "raise GeneratorExit", "GeneratorExit"),
    "recursion": ("def deep(): return deep()", "deep()", "RecursionError"),
    "mute": ("class Mute(Exception):\n    def __str__(self): raise SystemExit", "raise Mute", "Mute"),
    "harmless": (
        "from lamina.errors import LaminaError\nclass Harmless(LaminaError): exit_code = 0",
        "raise Harmless('x')",
        "Harmless",
    ),
}
MODEL = "MODEL (name shop.a, kind FULL);\nSELECT {0} AS id\n"
FILES = {
    "a macro": ("macros/m.py", "@macro()\ndef m(evaluator):\n    {0}\n", "@m()"),
    "a macro's file": ("macros/m.py", "{0}\n", "1"),
    "an annotation": ("macros/m.py", "@macro()\ndef m(evaluator, x: 'stop()'):\n    {0}\n", "@m(1)"),
    "a model's file": ("models/m.py", "{0}\n", "1"),
    "a signal's file": ("signals/s.py", "{0}\n", "1"),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("place", FILES)
def test_an_end_in_loaded_code_is_a_problem_of_its_file(project, place: str, end: str):
    (head, stop, name), (path, body, used) = ENDS[end], FILES[place]
    code = f"{head}\nfrom lamina import macro\n\ndef stop():\n    {stop}\n\n{body.format('stop()')}"
    problem = project({path: code, "models/a.sql": MODEL.format(used)}).problem()

    assert name in problem.message
    assert path in f"{problem.location} {problem.hint}"
    assert problem.location is not None
    assert problem.location.line is not None


def test_an_end_in_a_file_of_hooks_is_a_problem_of_it(project):
    hook = "MODEL (name shop.a, kind FULL, pre_hooks (h));\nSELECT 1 AS id\n"
    problem = project({"python/h.py": "\nimport sys\nsys.exit(0)\n", "models/a.sql": hook}).problem()

    assert problem.location.file == "python/h.py"
    assert problem.location.line == 3


def test_a_macro_that_ends_in_an_audit_is_a_problem_of_the_audit(project):
    folder = project(
        {
            "macros/m.py": "from lamina import macro\n@macro()\ndef m(evaluator):\n    exit()\n",
            "audits/bad.sql": "AUDIT (name bad);\nSELECT * FROM @this_model WHERE @m();\n",
            "models/a.sql": "MODEL (name shop.a, kind FULL, audits (bad));\nSELECT 1 AS id\n",
        }
    )
    problem = folder.problem()

    assert "SystemExit" in problem.message
    assert "macros/m.py" in str(problem.hint)
    assert problem.location.file == "audits/bad.sql"


@pytest.mark.parametrize("decorator", ["macro", "signal", "model", "hook"])
@pytest.mark.parametrize("use", ["@{0}(5)\ndef f(x): pass", "{0}('a')(5)", "{0}()([])"])
def test_decorators_that_are_used_wrongly_are_problems_of_their_line(project, decorator: str, use: str):
    folder = {"macro": "macros", "model": "models", "signal": "signals", "hook": "python"}[decorator]
    code = f"from lamina import {decorator}\n\n{use.format(decorator)}\n"
    model = f"MODEL (name shop.a, kind FULL{', pre_hooks (h)' * (decorator == 'hook')});\nSELECT 1 AS id\n"
    problem = project({f"{folder}/f.py": code, "models/a.sql": model}).problem()

    assert f"`@{decorator}`" in problem.message
    assert (problem.location.file, problem.location.line) == (f"{folder}/f.py", 3)


@pytest.mark.parametrize("end", ENDS)
def test_the_command_says_what_ended_and_is_no_success(project, monkeypatch, end: str):
    head, stop, name = ENDS[end]
    code = f"{head}\nfrom lamina import macro\n\n@macro()\ndef m(evaluator):\n    {stop}\n"
    folder = project({"macros/m.py": code, "models/a.sql": MODEL.format("@m()")})
    monkeypatch.chdir(folder.root)

    answer = CliRunner().invoke(cli, ["plan", "dev"])

    assert answer.exit_code == 2
    assert name in answer.stderr
    assert "macros/m.py" in answer.stderr
    assert "defect" not in answer.stderr


def test_a_recorded_macro_that_ends_is_a_failure_of_its_own():
    source = "from lamina import macro\n\n@macro()\ndef m(evaluator):\n    exit(0)\n"
    module = PythonModule(name="macros.m", path="macros/m.py", source=source)
    functions = load_recorded_macros((module,))

    with pytest.raises(MacroError, match="SystemExit") as caught:
        expand(Fragment(text="SELECT @m()", location=Location(file="a.sql", line=3)), MacroScope(functions=functions))

    assert "`macros/m.py` line 5" in caught.value.hint
    assert caught.value.location.line == 3


def test_ctrl_c_while_a_macro_runs_interrupts(project):
    code = """
        import pathlib, sys, time
        from lamina import macro

        @macro()
        def m(evaluator):
            pathlib.Path("reached").touch()
            try:
                time.sleep(60)
            except KeyboardInterrupt:
                sys.exit(0)
        """
    folder = project({"macros/m.py": textwrap.dedent(code), "models/a.sql": MODEL.format("@m()")})
    command = [sys.executable, "-m", "lamina", "plan", "dev"]
    running = subprocess.Popen(command, cwd=folder.root, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not (folder.root / "reached").exists() and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(running.pid, signal.SIGINT)
    _, told = running.communicate(timeout=60)

    assert running.returncode == 130
    assert "interrupted" in told
