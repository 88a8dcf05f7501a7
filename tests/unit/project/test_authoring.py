"""Decorators record while a project loads and do nothing anywhere else."""

from __future__ import annotations

from contextvars import copy_context

import pytest

import lamina
from lamina.authoring import recording


def test_outside_a_load_a_decorator_changes_nothing():
    @lamina.model("a.b", kind="FULL", columns={"x": "int"})
    def execute(context, start, end, execution_time, **kwargs):
        return 1

    @lamina.macro
    def plain(evaluator):
        return "1"

    assert execute(None, None, None, None) == 1
    assert plain(None) == "1"


def test_a_load_records_what_is_declared():
    with recording() as registry:

        @lamina.model("a.b", kind="FULL", owner="ann")
        def execute(context):
            return 1

    (declaration,) = registry.declarations
    assert (declaration.type, declaration.name) == ("model", "a.b")
    assert declaration.function is execute
    assert declaration.arguments == {"is_sql": False, "kind": "FULL", "owner": "ann"}
    assert declaration.file == __file__
    assert declaration.line == execute.__code__.co_firstlineno


@pytest.mark.parametrize("name", ["macro", "signal", "loader", "task", "asset", "check", "hook"])
def test_parentheses_and_names_are_optional(name):
    decorator = getattr(lamina, name)
    with recording() as registry:

        @decorator
        def one():
            return 1

        @decorator()
        def two():
            return 2

        @decorator("three")
        def other():
            return 3

    assert [(each.type, each.name, each.function()) for each in registry.declarations] == [
        (name, None, 1),
        (name, None, 2),
        (name, "three", 3),
    ]


def test_loads_do_not_see_each_other():
    with recording() as outer:
        with recording() as inner:
            lamina.macro("x")(lambda evaluator: "1")
        assert len(inner.declarations) == 1
        assert outer.declarations == ()
    with recording() as first:
        copy_context().run(lambda: lamina.macro("y")(lambda evaluator: "1"))
    assert len(first.declarations) == 1
    lamina.macro("z")(lambda evaluator: "1")
    assert len(first.declarations) == 1
