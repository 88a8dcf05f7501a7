"""Hooks in files: what is captured of them, when they count, and what is refused."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import pytest

from lamina.identity.fingerprint import versions_of
from lamina.state.codec import model_document

HEAD = "from lamina import hook\n\n"
NOTE = HEAD + "@hook\ndef note(context, what='x', often=1):\n    pass\n"


def model(header: str, kind: str = "FULL") -> str:
    return f"MODEL (name a, kind {kind}, {header});\nSELECT 1 AS x"


def hooks(body: str) -> str:
    return HEAD + textwrap.dedent(body)


def test_hooks_are_captured_in_order_with_their_values_and_modules(project):
    folder = project(
        {
            "python/hooks.py": hooks(
                """
                from helpers.words import loud

                @hook
                def note(context, what):
                    print(loud(what))

                @hook("Other")
                def another(context):
                    pass
                """
            ),
            "helpers/words.py": "def loud(text):\n    return text.upper()\n",
            "models/a.sql": model("pre_hooks [note(what := 'a'), other], post_hooks (NOTE(what := 'b'))"),
        }
    )
    found = folder.graph().models["shop.a"]

    assert [(call.name, dict(call.values)) for call in found.pre_hooks] == [("note", {"what": "a"}), ("other", {})]
    assert [(call.name, dict(call.values)) for call in found.post_hooks] == [("note", {"what": "b"})]
    assert [call.code.function for call in found.pre_hooks] == ["note", "another"]
    assert [module.path for module in found.pre_hooks[0].code.modules] == ["helpers/words.py", "python/hooks.py"]
    assert model_document.read(model_document.write(found)) == found


def test_a_python_model_names_hooks_in_its_decorator(project):
    folder = project(
        {
            "python/hooks.py": NOTE,
            "models/p.py": hooks(
                """
                from lamina import model

                @model("shop.p", columns={"x": "int"}, pre_hooks=["note"], post_hooks=[("note", {"often": 2})])
                def p(context, start, end, execution_time, **kwargs):
                    return None
                """
            ),
        }
    )
    found = folder.graph().models["shop.p"]

    assert [dict(call.values) for call in (*found.pre_hooks, *found.post_hooks)] == [{}, {"often": 2}]


CHANGES: dict[str, Mapping[str, str]] = {
    "its code": {"python/hooks.py": NOTE.replace("pass", "print(what)")},
    "its arguments": {"models/a.sql": model("pre_hooks [note(what := 'b')]")},
    "its place": {"models/a.sql": model("post_hooks [note(what := 'a')]")},
    "its absence": {"models/a.sql": model("tags [x]")},
}


@pytest.mark.parametrize("files", CHANGES.values(), ids=CHANGES)
def test_what_changes_a_hook_changes_the_version(project, files: Mapping[str, str]):
    folder = project({"python/hooks.py": NOTE, "models/a.sql": model("pre_hooks [note(what := 'a')]")})
    before = versions_of(folder.graph())["shop.a"]
    assert versions_of(folder.graph())["shop.a"] == before
    folder.write(files)
    assert versions_of(folder.graph())["shop.a"] != before


def test_a_helper_behind_a_hook_counts_and_a_comment_does_not(project):
    folder = project(
        {
            "python/hooks.py": hooks("from helpers import n\n\n@hook\ndef note(context):\n    print(n)\n"),
            "helpers.py": "n = 1\n",
            "models/a.sql": model("pre_hooks [note]"),
        }
    )
    before = versions_of(folder.graph())["shop.a"]
    folder.write({"helpers.py": "# one\nn = 1\n"})
    assert versions_of(folder.graph())["shop.a"] == before
    folder.write({"helpers.py": "n = 2\n"})
    assert versions_of(folder.graph())["shop.a"] != before


def test_what_no_model_names_is_not_even_run(project):
    folder = project({"python/hooks.py": "raise RuntimeError('too early')\n", "models/a.sql": model("tags [x]")})
    folder.graph()
    folder.write({"models/a.sql": model("pre_hooks [note]")})
    (problem,) = folder.problems()
    assert "too early" in problem.message
    assert problem.location.file == "python/hooks.py"


WRONG = {
    "there is no hook `notes`": ("pre_hooks [notes]", NOTE, "did you mean `note`?"),
    "there is no hook `other`": ("post_hooks [other]", "", "`@hook()` above `def other(context)`"),
    "hook `note` has no argument `whta`": ("pre_hooks [note(whta := 1)]", NOTE, "did you mean `what`?"),
    "`context` of hook `note` is given by Lamina": ("pre_hooks [note(context := 1)]", NOTE, "leave the argument out"),
    "hook `note` needs the argument `what`": (
        "pre_hooks [note]",
        HEAD + "@hook\ndef note(context, what):\n    pass\n",
        "note(what := …)",
    ),
    "hook `note` has no parameter for the batch it is called for": (
        "pre_hooks [note]",
        HEAD + "@hook\ndef note():\n    pass\n",
        "def note(context, …)",
    ),
    "hook `note` is asynchronous": (
        "pre_hooks [note]",
        HEAD + "@hook\nasync def note(context):\n    pass\n",
        "write `def`",
    ),
    "`note(what)` depends on `@start_ds`": ("pre_hooks [note(what := @start_ds)]", NOTE, "first parameter"),
}


@pytest.mark.parametrize(("message", "case"), WRONG.items(), ids=WRONG)
def test_what_is_wrong_is_said_with_its_place(project, message: str, case: tuple[str, str, str]):
    header, code, hint = case
    folder = project({"python/hooks.py": code or "pass\n", "models/a.sql": model(header)})
    (problem,) = folder.problems()
    assert message in problem.message
    assert hint in problem.hint
    assert problem.location.file in {"models/a.sql", "python/hooks.py"}
    assert problem.location.line


def test_an_embedded_model_has_no_batches_for_hooks(project):
    folder = project({"python/hooks.py": NOTE, "models/a.sql": model("pre_hooks [note]", kind="EMBEDDED")})
    (problem,) = folder.problems()
    assert "no hook runs around them" in problem.message
