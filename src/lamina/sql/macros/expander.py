"""Finding macros in a text and replacing them by their results."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from lamina.errors import LaminaError, MacroError
from lamina.sql.fragment import Fragment
from lamina.sql.macros.call import NOTHING, Argument, Call, Definition, Items, Lambda, Names
from lamina.sql.macros.control import BUILTINS
from lamina.sql.macros.gates import GATES, clause_end, join_kinds_before
from lamina.sql.macros.parse import parse
from lamina.sql.macros.python_macros import call_python
from lamina.sql.macros.quoted import QuotedVariable, fill_quoted, is_table_as_text, names_table, quoted_part
from lamina.sql.macros.scalars import NotConstant, is_true
from lamina.sql.macros.shapes import (
    argument_end,
    glued_end,
    is_plain_name,
    is_sign,
    macro_end,
)
from lamina.sql.macros.splice import Piece, assemble, place, place_items, tidy
from lamina.sql.macros.text import Source, as_name, cut, is_blank, join, shortened, text_of
from lamina.sql.macros.times import TIME_NAMES, default_times, placeholder, substitute_times
from lamina.sql.macros.unknown import KnownNames
from lamina.sql.macros.values import evaluate, list_items, literal, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lamina.errors import Location
    from lamina.sql.macros.call import Result
    from lamina.sql.macros.scalars import Value
    from lamina.sql.macros.scope import MacroScope
    from lamina.sql.macros.text import Rope

_DEEPEST = 40
_DEEPEST_CALL = 50
# What one text may be expanded to: lists in lists and definitions that name others twice grow beyond any memory.
_MOST_EXPANSIONS = 20_000
_MOST_CHARACTERS = 5_000_000
_TEMPLATE_NAME = re.compile(r"@\{([^\W\d]\w*)\}|@([^\W\d]\w*)(?!\w*\()")
_LEFT = re.compile(r"@([^\W\d]\w*)(\()?")
_BARE = re.compile(r"\w+")
PREDEFINED = frozenset({"this_model", "runtime_stage", "model_kind_name"})
"""Variables that every text has, beside those of time."""


class _Spoiled(Exception):
    """A macro cannot be computed because of problems inside it, which are already collected."""


class _Exhausted(MacroError):
    """The expansion is larger than it may be; nothing else of it is looked at."""


@contextmanager
def _constant(argument: Argument) -> Iterator[None]:
    """Say which argument it was that has no value."""
    try:
        yield
    except NotConstant as error:
        raise MacroError(
            f"`{shortened(argument.text)}` cannot be evaluated before the query runs: {error}",
            hint="compare macro variables and literals only; text is written in single quotes",
            location=argument.location,
        ) from error


class Expander:
    """One expansion: collects problems and what was used along the way."""

    def __init__(self, scope: MacroScope, dialect: str) -> None:
        self.scope = scope
        self.dialect = dialect
        self.problems: list[LaminaError] = []
        self.variables_used: set[str] = set()
        self.macros_used: set[str] = set()
        self.times_used: set[str] = set()
        self.columns_used: set[str] = set()
        self.is_time_dependent = False
        self._depth = 0
        self._call_depth = 0
        self._expansions = 0
        self._characters = 0
        self._asked_for: set[str] = set()
        self._times = scope.times if scope.times is not None else default_times(dialect)

    def expand(self, fragment: Fragment) -> Rope:
        """A whole fragment, with time variables left as placeholders; problems are collected, not raised."""
        names = Names(definitions={})
        for definition in self.scope.definitions:
            self._expand_all(Source(definition), names)
        return self._expand_all(Source(fragment), names)

    def _expand_all(self, source: Source, names: Names) -> Rope:
        self._asked_for |= {
            source.tokens[index + 2].value.lower()
            for index, token in enumerate(source.tokens[:-2])
            if token.upper in {"VAR", "BLUEPRINT_VAR"} and source.tokens[index + 2].is_string
        }
        pieces = self._pieces(source, 0, len(source.tokens), names)
        return assemble(source, pieces, 0, len(source.fragment.text))

    # --- what macros ask for -----------------------------------------------------------------------------------------
    def render(self, argument: Argument) -> Rope:
        """The argument with its macros expanded."""
        if argument.start >= argument.end:
            return NOTHING
        source = argument.source
        pieces = self._pieces(source, argument.start, argument.end, argument.names)
        return assemble(source, pieces, source.tokens[argument.start].start, source.tokens[argument.end - 1].end)

    def result(self, argument: Argument) -> Result:
        """The argument expanded, a list staying a list; stops the macro when something inside it is wrong."""
        before = len(self.problems)
        result = self._sole_result(argument)
        if result is None:
            result = self.render(argument)
        if len(self.problems) > before:
            raise _Spoiled
        return result

    def decide(self, text: str) -> str:
        """A text with time variables replaced by values because a macro has to know them."""
        decided = substitute_times(text.strip(), self.dialect, self._times)
        self.is_time_dependent = self.is_time_dependent or decided != text.strip()
        return decided

    def evaluate(self, argument: Argument) -> Value:
        """The value of the argument; raises `MacroError` when it has none before the query runs."""
        result = self.result(argument)
        if isinstance(result, Items):
            return [self._evaluate_text(rope, argument) for rope in result.ropes]
        return self._evaluate_text(result, argument)

    def holds(self, argument: Argument) -> bool:
        """Whether the argument is a condition that is true; raises `MacroError` when it is not a condition."""
        with _constant(argument):
            return is_true(self.evaluate(argument))

    def holds_text(self, rope: Rope, argument: Argument) -> bool:
        """Whether a text that came out of the argument is true."""
        with _constant(argument):
            return is_true(self._evaluate_text(rope, argument))

    def _evaluate_text(self, rope: Rope, argument: Argument) -> Value:
        text = self.decide(text_of(rope))
        with _constant(argument):
            return evaluate(text, self.dialect) if text else None

    def items(self, argument: Argument) -> list[Rope]:
        """The items of a list, or the argument itself as the only item."""
        result = self.result(argument)
        if isinstance(result, Items):
            found = [rope for rope in result.ropes if not is_blank(rope)]
        else:
            found = self.split_tuple(result)
        self._check_limits(argument.location, more=len(found))
        return found

    def split_tuple(self, rope: Rope) -> list[Rope]:
        """The parts of `(a, b)`; a text without brackets is its only part."""
        text = text_of(rope)
        if not text.strip():
            return []
        inner = Source(Fragment(text=text, location=rope[0].location_at(0), dialect=self.dialect))
        start, end = 0, len(inner.tokens)
        if inner.raw(0).upper() == "ARRAY":
            start = 1
        if inner.raw(start) in {"(", "["} and inner.closes.get(start) == end - 1:
            start, end = start + 1, end - 1
        else:
            start = 0
        ranges = inner.split(start, end)
        return [
            cut(rope, inner.tokens[first].start, inner.tokens[last - 1].end) for first, last in ranges if first < last
        ]

    def read_lambda(self, argument: Argument) -> Lambda | None:
        """The lambda an argument spells, if it does."""
        source, start = argument.source, argument.start
        if start >= argument.end:
            return None
        arrow = source.closes.get(start, start) + 1
        if source.raw(arrow) != "->" or arrow >= argument.end:
            return None
        inside = source.tokens[start:arrow]
        names = tuple(token.raw.lower() for token in inside if token.is_word)
        return Lambda(parameters=names, body=replace(argument, start=arrow + 1))

    def apply(self, function: Lambda, values: Sequence[Rope], location: Location) -> Rope:
        """The body of a lambda with its parameters replaced."""
        if len(values) != len(function.parameters):
            shown = ", ".join(function.parameters)
            raise MacroError(f"the lambda takes ({shown}), got {len(values)} values", location=location)
        self._counted(Items(ropes=tuple(values)), location)
        names = function.body.names
        parameters = {**names.parameters, **dict(zip(function.parameters, values, strict=True))}
        self._descend(location)
        try:
            result = self.result(replace(function.body, names=replace(names, parameters=parameters)))
        finally:
            self._depth -= 1
        return join(result.ropes, ", ") if isinstance(result, Items) else result

    def expand_made(self, text: str, call: Call) -> Rope:
        """Text that a macro made, with the macros in it expanded."""
        return self._expand_text(text, call.source, call.index, call.names)

    def _expand_text(self, text: str, source: Source, index: int, names: Names) -> Rope:
        self._spend(len(text), source.location(index))
        if "@" not in text:
            return source.make(text.strip(), index)
        fragment = Fragment(text=text.strip(), location=source.location(index), dialect=self.dialect)
        made = Source(fragment, anchor=source.origin(source.tokens[index].start))
        self._descend(source.location(index))
        try:
            return self._expand_all(made, replace(names, parameters=MappingProxyType({})))
        finally:
            self._depth -= 1

    def _descend(self, location: Location) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            self._depth -= 1
            raise _Exhausted(
                "the macros here call each other without end",
                hint="look for a definition or macro whose result names itself",
                location=location,
            )

    def _counted(self, result: Result, location: Location) -> Result:
        ropes = result.ropes if isinstance(result, Items) else (result,)
        self._spend(sum(len(chunk.text) for rope in ropes for chunk in rope), location)
        return result

    def _spend(self, characters: int, location: Location) -> None:
        """Count one expansion, and the characters that go into it or come out of it."""
        self._expansions += 1
        self._characters += characters
        self._check_limits(location)

    def _check_limits(self, location: Location, more: int = 0) -> None:
        is_often = self._expansions + more > _MOST_EXPANSIONS
        if is_often or self._characters > _MOST_CHARACTERS:
            limit = f"{_MOST_EXPANSIONS} expansions" if is_often else f"{_MOST_CHARACTERS} characters"
            raise _Exhausted(
                f"the macros here make more than {limit}",
                hint="look for lists inside lists, and for definitions that use others many times",
                location=location,
            )

    def fill_template(self, text: str, source: Source, index: int, names: Names, *, keeps_lists: bool = False) -> str:
        """Text with `@name` and `@{name}` replaced by bare values.

        A `@name` that is unknown stays, and so does one that is a list with `keeps_lists`.
        """

        def fill(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            result = self._lookup(name.lower(), names, source, index)
            if result is None:
                if match[1]:
                    raise self._known(names).unknown_variable(name, source.location(index))
                return match[0]
            if isinstance(result, Items) and keeps_lists:
                return match[0]
            ropes = result.ropes if isinstance(result, Items) else (result,)
            return ", ".join(self._bare(text_of(rope)) for rope in ropes)

        return _TEMPLATE_NAME.sub(fill, text)

    def variable(self, name: str) -> tuple[bool, object]:
        """Whether a user variable exists, and its value."""
        key = name.lower()
        if key not in self.scope.variables:
            return False, None
        self.variables_used.add(key)
        return True, self.scope.variables[key]

    def stage(self) -> str:
        """What the text is expanded for; it then has to be expanded again when the model runs."""
        self.is_time_dependent = True
        return self.scope.stage

    def columns(self, relation: str) -> Mapping[str, str] | None:
        """Columns and types of a relation; `None` where they are not known."""
        self.columns_used.add(relation)
        return self.scope.columns_of(relation) if self.scope.columns_of else None

    def define(self, name: str, value: Argument, names: Names) -> None:
        """Make a name visible to everything behind it; its value sees the definitions before it."""
        value = replace(value, names=replace(names, definitions=dict(names.definitions)))
        names.definitions[name] = Definition(name=name, value=self.read_lambda(value) or value)

    # --- walking over the tokens -------------------------------------------------------------------------------------
    def _pieces(self, source: Source, start: int, end: int, names: Names) -> list[Piece]:
        pieces: list[Piece] = []
        index = start
        while index < end:
            is_plain = index not in source.marked and not names.parameters
            piece = Piece(start=index, end=index + 1) if is_plain else self._piece(source, index, end, names, pieces)
            pieces.append(piece)
            index = piece.end
        tidy(source, pieces)
        return pieces

    def _piece(self, source: Source, index: int, end: int, names: Names, before: list[Piece]) -> Piece:
        token = source.tokens[index]
        glued = glued_end(source, index, end)
        try:
            if glued > index:
                return Piece(start=index, end=glued, rope=self._name(source, index, glued, names))
            if is_sign(source, index):
                return self._macro(source, index, end, names, before)
            if "@" in token.raw and (token.is_quoted_name or is_table_as_text(source, index)):
                return Piece(start=index, end=index + 1, rope=self._quoted_name(source, index, names))
            if "@" in token.raw and token.type is TokenType.HINT:
                return Piece(start=index, end=index + 1, rope=self._hint(source, index, names))
            if token.raw.lower() in names.parameters and is_plain_name(source, index):
                return self._parameter(source, index, end, names)
        except _Spoiled:
            return Piece(start=index, end=macro_end(source, index, end), rope=NOTHING)
        except _Exhausted:
            raise
        except LaminaError as error:
            for problem in error.problems:
                problem.location = problem.location or source.location(index)
            self.problems.extend(error.problems)
            return Piece(start=index, end=macro_end(source, index, end), rope=NOTHING)
        return Piece(start=index, end=index + 1)

    def _parameter(self, source: Source, index: int, end: int, names: Names) -> Piece:
        name = source.raw(index).lower()
        if source.raw(index + 1) == "->":
            # A lambda of the query itself hides the parameter of the same name in its body.
            stop = argument_end(source, index, end)
            hidden = {key: rope for key, rope in names.parameters.items() if key != name}
            body = Argument(source=source, start=index + 2, end=stop, names=replace(names, parameters=hidden))
            head = source.copy(source.tokens[index].start, source.tokens[index + 1].end)
            return Piece(start=index, end=stop, rope=join([head, self.render(body)], " "))
        rope = self._place(names.parameters[name], source, index, index + 1)
        return Piece(start=index, end=index + 1, rope=rope)

    def _macro(self, source: Source, index: int, end: int, names: Names, before: list[Piece]) -> Piece:
        target = source.tokens[index + 1]
        if target.is_string:
            text = self.fill_template(target.value, source, index, names)
            return Piece(start=index, end=index + 2, rope=source.make(literal(text, self.dialect), index))
        name = target.raw.lower()
        is_call = source.raw(index + 2) == "(" and index + 2 < end
        if is_call and not source.touches(index + 2):
            is_call = name not in self._known(names).variables
        if not is_call:
            result = self._lookup(name, names, source, index)
            if result is None:
                raise self._known(names).unknown_variable(target.raw, source.location(index))
            return Piece(start=index, end=index + 2, rope=self._place(result, source, index, index + 2))
        call = self._read_call(source, index, names)
        if name in GATES and name not in self.scope.functions and name not in names.definitions:
            return self._gate(call, end, before)
        return Piece(start=index, end=call.end, rope=self._place(self._call(call), source, index, call.end))

    def _read_call(self, source: Source, index: int, names: Names) -> Call:
        close = source.closes.get(index + 2)
        if close is None:
            raise MacroError(
                f"the bracket of `@{source.raw(index + 1)}(` is never closed", location=source.location(index)
            )
        positional: list[Argument] = []
        named: dict[str, Argument] = {}
        shown = f"@{source.raw(index + 1)}"
        for start, end in source.split(index + 3, close):
            if start >= end:
                raise MacroError(f"`{shown}` has an empty argument", location=source.location(start))
            if source.raw(start + 1) == ":=":
                key = source.raw(start).lower()
                if key in named:
                    raise MacroError(f"`{shown}` got `{key}` twice", location=source.location(start))
                named[key] = Argument(source=source, start=start + 2, end=end, names=names)
            elif named:
                raise MacroError(
                    f"`{shown}` has a positional argument behind a named one",
                    hint="put arguments without `:=` first",
                    location=source.location(start),
                )
            else:
                positional.append(Argument(source=source, start=start, end=end, names=names))
        return Call(
            name=source.raw(index + 1).lower(),
            source=source,
            index=index,
            end=close + 1,
            positional=tuple(positional),
            named=named,
            names=names,
            engine=self,
        )

    def _call(self, call: Call) -> Result:
        if self._call_depth == _DEEPEST_CALL:
            raise call.fail(f"is nested more than {_DEEPEST_CALL} macros deep", "take parts out into `@DEF`")
        self._call_depth += 1
        try:
            result = self._called(call)
        finally:
            self._call_depth -= 1
        return self._counted(result, call.location)

    def _called(self, call: Call) -> Result:
        definition = call.names.definitions.get(call.name)
        if definition is not None:
            return self._call_definition(call, definition)
        function = self.scope.functions.get(call.name)
        if function is not None:
            self.macros_used.add(call.name)
            return call_python(call, function)
        builtin = BUILTINS.get(call.name)
        if builtin is None:
            raise self._known(call.names).unknown_function(call.source.raw(call.index + 1), call.location)
        return builtin(call)

    def _call_definition(self, call: Call, definition: Definition) -> Rope:
        if not isinstance(definition.value, Lambda):
            raise call.fail("is a value, not a function", f"write `{call.shown}` without brackets")
        parameters = definition.value.parameters
        values = [self.render(argument) for argument in call.positional]
        missing = parameters[len(values) :]
        if set(missing) != set(call.named) or len(values) > len(parameters):
            raise call.fail(f"takes ({', '.join(parameters)}), got {len(values) + len(call.named)} arguments")
        values += [self.render(call.named[name]) for name in missing]
        return self.apply(definition.value, values, call.location)

    def _gate(self, call: Call, end: int, before: list[Piece]) -> Piece:
        if len(call.positional) != 1 or call.named:
            raise call.fail("takes one condition", f"write `{call.shown}(condition) ...`")
        if self.holds(call.positional[0]):
            return Piece(start=call.index, end=call.end, rope=call.make(GATES[call.name]))
        stop = clause_end(call.source, call.name, call.end, end)
        self.check_names(Argument(source=call.source, start=call.end, end=stop, names=call.names))
        if call.name == "join":
            first = join_kinds_before(call.source, call.index, 0)
            for piece in before:
                piece.is_dropped = piece.is_dropped or piece.start >= first
        return Piece(start=call.index, end=stop, rope=NOTHING)

    # --- names and values --------------------------------------------------------------------------------------------
    def _lookup(self, name: str, names: Names, source: Source, index: int) -> Result | None:
        """What a variable stands for, or `None` when nothing defines it."""
        if name in names.parameters:
            return names.parameters[name]
        if name in names.definitions:
            return self._defined(names.definitions[name], source.location(index))
        if name in self.scope.locals:
            return self._expand_text(self.scope.locals[name], source, index, Names())
        if name in self.scope.blueprint:
            return self._written(self.scope.blueprint[name], source, index)
        if name in TIME_NAMES:
            self.times_used.add(name)
            return source.make(placeholder(name), index)
        if name in PREDEFINED:
            return source.make(self._predefined(name), index)
        is_known, value = self.variable(name)
        return self._written(value, source, index) if is_known else None

    def _predefined(self, name: str) -> str:
        if name == "this_model":
            return self.scope.this_model or placeholder(name)
        return literal(self.stage() if name == "runtime_stage" else self.scope.model_kind, self.dialect)

    def _defined(self, definition: Definition, location: Location) -> Result:
        value = definition.value
        if isinstance(value, Lambda):
            raise MacroError(
                f"`@{definition.name}` is a function",
                hint=f"call it: `@{definition.name}({', '.join(value.parameters)})`",
                location=location,
            )
        self._descend(value.location)
        try:
            result = self._sole_result(value)
            return self._counted(self.render(value) if result is None else result, location)
        finally:
            self._depth -= 1

    def _written(self, value: object, source: Source, index: int) -> Result:
        if isinstance(value, (list, tuple)):
            return Items(ropes=tuple(source.make(item, index) for item in list_items(value, self.dialect)))
        return source.make(literal(value, self.dialect), index)

    def _sole_result(self, argument: Argument) -> Result | None:
        """The result of the one macro an argument consists of, so that lists stay lists; `None` for anything else."""
        source, start = argument.source, argument.start
        if start >= argument.end or not is_sign(source, start) or source.raw(start + 1) == "{":
            return None
        if source.tokens[start + 1].is_string:
            return None
        if argument.end == start + 2:
            return self._lookup(source.raw(start + 1).lower(), argument.names, source, start)
        if source.raw(start + 2) != "(" or source.closes.get(start + 2) != argument.end - 1:
            return None
        if source.raw(start + 1).lower() in GATES:
            return None
        return self._call(self._read_call(source, start, argument.names))

    def _name(self, source: Source, start: int, end: int, names: Names) -> Rope:
        """Adjacent words and variables joined to one identifier."""
        parts: list[str] = []
        index = start
        while index < end:
            if source.raw(index) != "@":
                parts.append(source.raw(index))
                index += 1
                continue
            is_braced = source.raw(index + 1) == "{"
            parts.append(self._interpolated(source, index, index + (2 if is_braced else 1), names))
            index += 4 if is_braced else 2
        text = "".join(parts)
        is_function = source.raw(end) == "(" and source.touches(end)
        if not text or is_function or (len(parts) == 1 and text.isdigit()):
            return source.make(text, start)
        return source.make(as_name(text, self.dialect, is_path=len(parts) == 1), start)

    def _interpolated(self, source: Source, sign: int, index: int, names: Names) -> str:
        result = self._lookup(source.raw(index).lower(), names, source, sign)
        if result is None:
            raise self._known(names).unknown_variable(source.raw(index), source.location(sign))
        if isinstance(result, Items):
            raise MacroError(
                f"`@{source.raw(index)}` is a list and cannot be part of a name",
                hint="go through it with `@EACH`",
                location=source.location(sign),
            )
        return self._bare(text_of(result))

    def _quoted_name(self, source: Source, index: int, names: Names) -> Rope:
        """A quoted identifier with the variables in it filled in; an `@` that means none is part of the name."""
        written = source.raw(index)

        def fill(found: QuotedVariable) -> str:
            if found.name == "this_model":
                raise MacroError(
                    "`@this_model` is a whole table and cannot be part of a quoted name",
                    hint="write it without the quotes",
                    location=source.location(index),
                )
            result = self._lookup(found.name, names, source, index)
            if isinstance(result, Items):
                raise MacroError(
                    f"`@{found.shown}` is a list and cannot be part of a name",
                    hint="go through it with `@EACH`",
                    location=source.location(index),
                )
            if result is not None:
                return quoted_part(self._bare(text_of(result)), source.dialect)
            if found.is_braced or (not found.may_begin_folder and names_table(source, index)):
                raise self._known(names).unknown_variable(found.shown, source.location(index))
            return found.text

        filled = fill_quoted(written, fill)
        if len(filled) == len("``"):
            raise MacroError(
                f"`{written.strip('`')}` leaves nothing of the name",
                hint="give the variable a value",
                location=source.location(index),
            )
        return source.make(filled, index)

    def _hint(self, source: Source, index: int, names: Names) -> Rope:
        """A hint for the optimizer with the variables in it filled in."""
        filled = self.fill_template(source.raw(index), source, index, names)
        left = _LEFT.search(filled)
        if left is not None and left[2]:
            raise MacroError(
                f"`@{left[1]}` is called in a hint, where only variables can stand",
                hint="give its result a name with `@DEF`",
                location=source.location(index),
            )
        if left is not None:
            raise self._known(names).unknown_variable(left[1], source.location(index))
        return source.make(filled, index)

    def _bare(self, text: str) -> str:
        """A value without its quotes: the content of a string, the name of a column, a date as text."""
        decided = self.decide(text.strip())
        if _BARE.fullmatch(decided):
            return decided
        try:
            expression = parse(decided, self.dialect)
        except SqlglotError:
            return decided
        if isinstance(expression, exp.Column) and not expression.table:
            return expression.name
        try:
            value = value_of(expression)
        except NotConstant:
            return decided
        return decided if isinstance(value, (list, float)) or value is None else str(value)

    def _place(self, result: Result, source: Source, start: int, end: int) -> Rope:
        """A result written the way its neighbours need it."""
        if isinstance(result, Items):
            return place_items(result.ropes, source, start, end)
        return place(result, source, start, end, self._bare)

    # --- unknown names -----------------------------------------------------------------------------------------------
    def check_names(self, argument: Argument) -> None:
        """Report unknown names in text that is not used this time."""
        self.problems.extend(self._known(argument.names).problems_in(argument, self._asked_for))

    def _known(self, names: Names) -> KnownNames:
        scope = self.scope
        own = {*names.parameters, *scope.locals, *scope.blueprint, *scope.variables}
        defined = {name: isinstance(definition.value, Lambda) for name, definition in names.definitions.items()}
        functions = {name: name.upper() for name in (*BUILTINS, *GATES)}
        functions |= {name: name for name in (*scope.functions, *(name for name in defined if defined[name]))}
        values = {name for name, is_function in defined.items() if not is_function}
        return KnownNames(variables=frozenset(own | values) | TIME_NAMES | PREDEFINED, functions=functions)
