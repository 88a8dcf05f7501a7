"""The macros that steer expansion: definitions, conditions, loops, values and templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import SqlglotError

from lamina.errors import UnknownMacro
from lamina.sql.macros.call import NOTHING, Items, Signature, nearest
from lamina.sql.macros.parse import parse
from lamina.sql.macros.query_macros import SQL_MACROS
from lamina.sql.macros.scalars import NotConstant
from lamina.sql.macros.text import is_blank, join, shortened, text_of, wrap
from lamina.sql.macros.values import list_items, literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lamina.sql.macros.call import Argument, Call, Lambda, Result
    from lamina.sql.macros.text import Rope

_VARIABLE = Signature(names=("name", "default"), required=1)


def _def(call: Call) -> Result:
    if len(call.positional) != 2 or call.named:
        raise call.fail(
            "takes a name and a value", f"write `{call.shown}(name, value)` or `{call.shown}(name, x -> expression)`"
        )
    name, value = call.positional
    if name.end != name.start + 1 or not name.source.tokens[name.start].is_word:
        raise call.fail(f"needs a plain name, got `{name.text}`", location=name.location)
    call.engine.define(name.text.lower(), value, call.names)
    return NOTHING


def _if(call: Call) -> Result:
    bound = call.bind(Signature(names=("condition", "value", "otherwise"), required=2))
    holds = call.engine.holds(bound["condition"])
    value, otherwise = bound["value"], bound.get("otherwise")
    used, unused = (value, otherwise) if holds else (otherwise, value)
    if unused is not None:
        call.engine.check_names(unused)
    return call.engine.result(used) if used is not None else NOTHING


def _lambda_of(call: Call, argument: Argument) -> Lambda:
    function = call.engine.read_lambda(argument)
    if function is None:
        raise call.fail(
            f"needs a lambda like `x -> x + 1`, got `{shortened(argument.text)}`", location=argument.location
        )
    return function


def _apply_to_item(call: Call, function: Lambda, item: Rope) -> Rope:
    values = [item] if len(function.parameters) == 1 else call.engine.split_tuple(item)
    return call.engine.apply(function, values, call.location)


def _each(call: Call) -> Result:
    bound = call.bind(Signature(names=("items", "lambda"), required=2))
    function = _lambda_of(call, bound["lambda"])
    results = [_apply_to_item(call, function, item) for item in call.engine.items(bound["items"])]
    return Items(ropes=tuple(rope for rope in results if not is_blank(rope)))


def _is_null(rope: Rope) -> bool:
    return text_of(rope).strip().upper() == "NULL"


def _reduce(call: Call) -> Result:
    bound = call.bind(Signature(names=("items", "lambda"), required=2))
    function = _lambda_of(call, bound["lambda"])
    items = call.engine.items(bound["items"])
    if not items:
        return NOTHING
    total = items[0]
    for item in items[1:]:
        total = call.engine.apply(function, [total, item], call.location)
    return total


def _filter(call: Call) -> Result:
    bound = call.bind(Signature(names=("items", "lambda"), required=2))
    function = _lambda_of(call, bound["lambda"])
    kept = [item for item in call.engine.items(bound["items"]) if _holds(call, function, item)]
    return Items(ropes=tuple(kept))


def _holds(call: Call, function: Lambda, item: Rope) -> bool:
    return call.engine.holds_text(_apply_to_item(call, function, item), function.body)


def _eval(call: Call) -> Result:
    bound = call.bind(Signature(names=("expression",), required=1))
    value = call.engine.evaluate(bound["expression"])
    dialect = call.engine.dialect
    try:
        if isinstance(value, list):
            return Items(ropes=tuple(call.make(item) for item in list_items(value, dialect)))
        return call.make(literal(value, dialect))
    except NotConstant as error:
        raise call.fail(f"has no value that can be written: {error}") from error


def _sql(call: Call) -> Result:
    bound = call.bind(Signature(names=("text", "type"), required=1))
    argument = bound["text"]
    token = argument.source.tokens[argument.start]
    if argument.end == argument.start + 1 and token.is_string:
        text = token.value
    else:
        value = call.engine.evaluate(argument)
        text = "" if value is None else str(value)
    # What is left of the macros is expanded in the next step, where a list can be gone through.
    filled = call.engine.fill_template(text, call.source, call.index, call.names, keeps_lists=True)
    return call.engine.expand_made(filled, call)


def _name_of(call: Call, argument: Argument) -> str:
    if argument.end == argument.start + 1 and argument.source.tokens[argument.start].is_word:
        return argument.text.lower()
    name = call.engine.evaluate(argument)
    if not isinstance(name, str):
        raise call.fail(
            f"needs the name of a variable in quotes, got `{shortened(argument.text)}`", location=argument.location
        )
    return name.lower()


def _value_or_default(call: Call, name: str, default: Argument | None, known: Mapping[str, object]) -> Result:
    if default is not None:
        return call.engine.result(default)
    raise UnknownMacro(
        f"`{call.shown}` asks for the variable `{name}`, which is not defined",
        hint=nearest(name, known) or f"define it, or give a default: `{call.shown}('{name}', value)`",
        location=call.location,
    )


def _written(call: Call, value: object) -> Result:
    if isinstance(value, (list, tuple)):
        return Items(ropes=tuple(call.make(item) for item in list_items(value, call.engine.dialect)))
    return call.make(literal(value, call.engine.dialect))


def _var(call: Call) -> Result:
    bound = call.bind(_VARIABLE)
    name = _name_of(call, bound["name"])
    is_known, value = call.engine.variable(name)
    if is_known:
        return _written(call, value)
    return _value_or_default(call, name, bound.get("default"), call.engine.scope.variables)


def _blueprint_var(call: Call) -> Result:
    bound = call.bind(_VARIABLE)
    name = _name_of(call, bound["name"])
    scope = call.engine.scope
    if name in scope.locals:
        return call.engine.expand_made(scope.locals[name], call)
    if name in scope.blueprint:
        return _written(call, scope.blueprint[name])
    return _value_or_default(call, name, bound.get("default"), {**scope.locals, **scope.blueprint})


def _connecting(word: str) -> Callable[[Call], Result]:
    def connect(call: Call) -> Result:
        call.bind(Signature(takes_rest=True))
        ropes: list[Rope] = []
        for argument in call.positional:
            result = call.engine.result(argument)
            ropes.extend(result.ropes if isinstance(result, Items) else (result,))
        kept = [rope for rope in ropes if not is_blank(rope) and not _is_null(rope)]
        if not kept:
            return call.make("TRUE")
        if word == "AND" and len(kept) > 1:
            kept = [wrap(rope, "(", ")") if _is_or(text_of(rope), call.engine.dialect) else rope for rope in kept]
        return join(kept, f" {word} ")

    return connect


def _is_or(text: str, dialect: str) -> bool:
    try:
        return isinstance(parse(text, dialect), exp.Or)
    except SqlglotError:
        return False


BUILTINS: Mapping[str, Callable[[Call], Result]] = {
    "def": _def,
    "if": _if,
    "each": _each,
    "reduce": _reduce,
    "filter": _filter,
    "eval": _eval,
    "sql": _sql,
    "var": _var,
    "blueprint_var": _blueprint_var,
    "and": _connecting("AND"),
    "or": _connecting("OR"),
    **SQL_MACROS,
}
