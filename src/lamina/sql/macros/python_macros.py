"""Calling Python macros: arguments from SQL to the types a function asks for, and its result back to SQL."""

from __future__ import annotations

import inspect
import types
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from sqlglot import exp
from sqlglot.errors import SqlglotError

from lamina.errors import LaminaError
from lamina.sql.macros.call import NOTHING, Items
from lamina.sql.macros.parse import parse, restore_symbols
from lamina.sql.macros.scalars import NotConstant
from lamina.sql.macros.text import first_line, shortened, text_of
from lamina.sql.macros.times import placeholder
from lamina.sql.macros.values import literal, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lamina.sql.macros.call import Argument, Call, Engine, Result
    from lamina.sql.macros.text import Rope

_UNIONS = frozenset({Union, types.UnionType})
_LISTS = {list: list, tuple: tuple, set: set, frozenset: frozenset}
_MISSING = object()


class MacroEvaluator:
    """The first argument of a Python macro: variables, columns and circumstances of the expansion."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def dialect(self) -> str:
        """The dialect of the model; texts that are returned are read in it."""
        return self._engine.dialect

    @property
    def runtime_stage(self) -> str:
        """What the text is expanded for: `loading`, `evaluating` and so on."""
        return self._engine.stage()

    @property
    def model_kind_name(self) -> str | None:
        """The kind of the model, where there is one."""
        return self._engine.scope.model_kind

    @property
    def this_model(self) -> str:
        """The table of the model as SQL text; a placeholder until it is known."""
        return self._engine.scope.this_model or placeholder("this_model")

    @property
    def locals(self) -> dict[str, object]:
        """Blueprint variables and arguments of the model or audit, by name."""
        scope = self._engine.scope
        return {**scope.blueprint, **scope.locals}

    def var(self, name: str, default: object = None) -> object:
        """The value of a user variable, or the default."""
        is_known, value = self._engine.variable(name)
        return value if is_known else default

    def blueprint_var(self, name: str, default: object = None) -> object:
        """The value of a blueprint variable, or the default."""
        return self.locals.get(name.lower(), default)

    def columns_to_types(self, model: str | exp.Expr) -> dict[str, exp.DataType]:
        """Columns of a relation and their types; one stand-in column while columns are not looked up yet."""
        name = model if isinstance(model, str) else ".".join(part.name for part in exp.to_table(model.sql()).parts)
        columns = self._engine.columns(name)
        if columns is None and self._engine.scope.columns_of is not None:
            raise ValueError(f"the columns of `{name}` are not known")
        if columns is None:
            return {"__columns_not_known_yet__": exp.DataType.build("unknown")}
        return {column: exp.DataType.build(type_ or "unknown", dialect="spark") for column, type_ in columns.items()}

    def parse_one(self, sql: str) -> exp.Expr:
        """SQL text of the model's dialect as an expression."""
        return parse(sql, self.dialect)

    def evaluate(self, expression: exp.Expr) -> object:
        """The value of an expression without columns."""
        return value_of(expression)


def call_python(call: Call, function: Callable[..., object]) -> Result:
    """Call a Python macro and turn what it returns into SQL text."""
    positional = [_parse(call, argument) for argument in call.positional]
    named = {name: _parse(call, argument) for name, argument in call.named.items()}
    bound = _bind(call, function, positional, named)
    try:
        returned = function(*bound.args, **bound.kwargs)
    except LaminaError:
        raise
    except Exception as error:
        raise call.fail(
            f"failed: {type(error).__name__}: {first_line(error)}", hint=f"look at {_written_at(function, error)}"
        ) from error
    try:
        return _result(call, returned)
    except (LaminaError, KeyboardInterrupt):
        raise
    except BaseException as error:  # methods of what a macro returns are code of the user too
        raise call.fail(
            f"returned a value of type {type(returned).__name__} that cannot be written as SQL: "
            f"{type(error).__name__}: {first_line(error)}"
        ) from error


def _written_at(function: Callable[..., object], error: Exception) -> str:
    """The file and line of the macro's own code that raised."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    file = code.co_filename if code else "<unknown>"
    line = code.co_firstlineno if code else 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"`{file}` line {line}"


# --- arguments -------------------------------------------------------------------------------------------------------
def _parse(call: Call, argument: Argument) -> exp.Expr:
    result = call.engine.result(argument)
    if isinstance(result, Items):
        return exp.Array(expressions=[_parse_text(call, text_of(rope), argument) for rope in result.ropes])
    return _parse_text(call, text_of(result), argument)


def _parse_text(call: Call, text: str, argument: Argument) -> exp.Expr:
    decided = call.engine.decide(text)
    if not decided:
        return exp.Null()
    try:
        return parse(decided, call.engine.dialect)
    except SqlglotError as error:
        raise call.fail(
            f"got an argument that is not SQL: `{shortened(argument.text)}`: {first_line(error)}",
            location=argument.location,
        ) from error


def _bind(
    call: Call, function: Callable[..., object], positional: list[exp.Expr], named: Mapping[str, exp.Expr]
) -> inspect.BoundArguments:
    """The arguments in the shape and types of the function."""
    signature = inspect.signature(function)
    shown = ", ".join(_shown(parameter) for parameter in list(signature.parameters.values())[1:])
    try:
        bound = signature.bind(MacroEvaluator(call.engine), *positional, **named)
    except TypeError as error:
        raise call.fail(f"cannot be called like this: {first_line(error)}", f"it takes ({shown})") from error
    hints = _type_hints(function)
    evaluator_name = next(iter(signature.parameters))
    for name, value in bound.arguments.items():
        wanted = hints.get(name)
        if name == evaluator_name or wanted is None:
            continue
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            bound.arguments[name] = tuple(_coerced(call, name, item, wanted) for item in value)
        elif kind is inspect.Parameter.VAR_KEYWORD:
            bound.arguments[name] = {key: _coerced(call, key, item, wanted) for key, item in value.items()}
        else:
            bound.arguments[name] = _coerced(call, name, value, wanted)
    return bound


def _shown(parameter: inspect.Parameter) -> str:
    """A parameter as it stands in the source, annotations kept as text included."""
    annotation = parameter.annotation
    return str(parameter).replace(repr(annotation), annotation) if isinstance(annotation, str) else str(parameter)


def _type_hints(function: Callable[..., object]) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except (NameError, TypeError, AttributeError):
        # Names imported for type checkers only do not exist here; such arguments arrive as expressions.
        return {}


def _coerced(call: Call, name: str, value: exp.Expr, wanted: object) -> object:
    found = _coerce(value, wanted, call.engine.dialect)
    if found is _MISSING:
        shown = getattr(wanted, "__name__", None) if get_origin(wanted) is None else None
        text = value.sql(call.engine.dialect)
        location = call.named[name].location if name in call.named else call.location
        raise call.fail(f"needs {shown or wanted} for `{name}`, got `{shortened(text)}`", location=location)
    return found


def _coerce(value: exp.Expr, wanted: object, dialect: str) -> object:
    """The value in the wanted type, or `_MISSING` when it does not fit."""
    origin = get_origin(wanted)
    if wanted in (Any, object, inspect.Parameter.empty) or isinstance(wanted, TypeVar):
        return value
    if origin in _UNIONS:
        return next(
            (found for one in get_args(wanted) if (found := _coerce(value, one, dialect)) is not _MISSING), _MISSING
        )
    if wanted in (None, type(None)):
        return None if isinstance(value, exp.Null) else _MISSING
    if origin is Literal:
        choices = {str(choice): choice for choice in get_args(wanted)}
        return choices.get(_as_text(value, dialect), _MISSING)
    if (origin or wanted) in _LISTS:
        return _coerce_list(value, wanted, dialect)
    if isinstance(wanted, type) and issubclass(wanted, exp.Expr):
        return _coerce_expression(value, wanted, dialect)
    if wanted is str:
        return _as_text(value, dialect)
    if wanted in (int, float, bool, date, Decimal):
        return _coerce_scalar(value, wanted)
    return value


def _as_text(value: exp.Expr, dialect: str) -> str:
    if isinstance(value, exp.Literal) or (isinstance(value, exp.Column) and not value.table):
        return value.name
    return value.sql(dialect)


def _coerce_scalar(value: exp.Expr, wanted: object) -> object:
    try:
        found = value_of(value)
    except NotConstant:
        return _MISSING
    if wanted is bool:
        return found if isinstance(found, bool) else _MISSING
    if isinstance(found, bool) or found is None:
        return _MISSING
    if wanted is int:
        return found if isinstance(found, int) else _MISSING
    if wanted in (float, Decimal):
        return wanted(str(found)) if isinstance(found, (int, float)) else _MISSING
    if isinstance(found, str):
        try:
            return date(*map(int, found[:10].split("-")))
        except (ValueError, TypeError, OverflowError):
            return _MISSING
    return found if isinstance(found, date) else _MISSING


def _coerce_list(value: exp.Expr, wanted: object, dialect: str) -> object:
    items = value.expressions if isinstance(value, (exp.Array, exp.Tuple)) else [value.unnest()]
    origin, arguments = get_origin(wanted) or wanted, get_args(wanted)
    make = _LISTS[origin]  # type: ignore[index]  # the caller looked it up
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        if len(arguments) != len(items):
            return _MISSING
        found = [_coerce(item, one, dialect) for item, one in zip(items, arguments, strict=True)]
    else:
        found = [_coerce(item, arguments[0] if arguments else Any, dialect) for item in items]
    return _MISSING if any(item is _MISSING for item in found) else make(found)


def _coerce_expression(value: exp.Expr, wanted: type[exp.Expr], dialect: str) -> object:
    if isinstance(value, wanted):
        return value
    text = _as_text(value, dialect)
    try:
        if wanted is exp.Table:
            return exp.to_table(text, dialect=dialect)
        if wanted is exp.Identifier:
            return exp.to_identifier(text)
        if wanted is exp.DataType:
            return exp.DataType.build(text, dialect=dialect)
        if isinstance(value, exp.Literal) and value.is_string:
            parsed = parse(text, dialect)
            return parsed if isinstance(parsed, wanted) else _MISSING
    except (SqlglotError, ValueError):
        return _MISSING
    return _MISSING


# --- results ---------------------------------------------------------------------------------------------------------
def _result(call: Call, returned: object) -> Result:
    if isinstance(returned, (list, tuple)):
        return Items(ropes=tuple(_rope(call, item) for item in returned))
    return _rope(call, returned)


def _rope(call: Call, returned: object) -> Rope:
    dialect = call.engine.dialect
    if returned is None:
        return NOTHING
    if isinstance(returned, str):
        return call.engine.expand_made(restore_symbols(returned), call)
    if isinstance(returned, exp.Expr):
        return call.engine.expand_made(restore_symbols(_sql_of(returned, dialect)), call)
    if isinstance(returned, (bool, int, float, Decimal, date)):
        return call.make(literal(returned, dialect))
    if isinstance(returned, (list, tuple)):
        parts = [text_of(_rope(call, item)) for item in returned]
        return call.make(f"({', '.join(part for part in parts if part.strip())})")
    raise call.fail(
        f"returned {type(returned).__name__}, which is not SQL",
        hint="return text, an expression, a number, a list of these, or None",
    )


def _sql_of(expression: exp.Expr, dialect: str) -> str:
    """An expression as text, with the variables that the macro itself parsed written as macros again."""

    def restore(node: exp.Expr) -> exp.Expr:
        is_name = isinstance(node, exp.Parameter) and isinstance(node.this, exp.Var)
        return exp.Var(this=f"@{node.name}") if is_name else node

    return expression.transform(restore).sql(dialect)
