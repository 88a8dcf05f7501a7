"""A macro call cut out of the text: its arguments, and what a macro may ask of the expander."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from lamina.errors import MacroError
from lamina.near_names import did_you_mean
from lamina.sql.macros.text import Rope, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lamina.errors import Location
    from lamina.sql.macros.scalars import Value
    from lamina.sql.macros.scope import MacroScope
    from lamina.sql.macros.text import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A result of several texts, written with commas between them."""

    ropes: tuple[Rope, ...]


Result = Rope | Items
NOTHING: Rope = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names that are visible at a place: parameters of lambdas around it, and definitions made before it."""

    parameters: Mapping[str, Rope] = field(default_factory=lambda: MappingProxyType({}))
    definitions: dict[str, Definition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """A range of tokens, not expanded yet, with the names it may use."""

    source: Source
    start: int
    end: int
    names: Names

    @property
    def text(self) -> str:
        """The argument as the user wrote it."""
        return self.source.text(self.start, self.end)

    @property
    def location(self) -> Location:
        """Where the argument begins."""
        return self.source.location(self.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lambda:
    """`x -> body` or `(a, b) -> body`."""

    parameters: tuple[str, ...]
    body: Argument


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What `@DEF` gave a name: a value or a function."""

    name: str
    value: Argument | Lambda


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """The arguments a built-in macro takes: `names` by position or name, then `rest` by position, `options` by name."""

    names: tuple[str, ...] = ()
    required: int = 0
    takes_rest: bool = False
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = [name if index < self.required else f"[{name}]" for index, name in enumerate(self.names)]
        rest = ["..."] if self.takes_rest else []
        return ", ".join([*names, *rest, *(f"[{option} := value]" for option in self.options)])


class Engine(Protocol):
    """What built-in and Python macros ask of the expander."""

    scope: MacroScope
    dialect: str

    def render(self, argument: Argument) -> Rope:
        """The argument with its macros expanded."""
        ...

    def result(self, argument: Argument) -> Result:
        """The argument expanded, a list staying a list; stops the macro when something inside it is wrong."""
        ...

    def decide(self, text: str) -> str:
        """A text with time variables replaced by values; the expansion then depends on the interval."""
        ...

    def evaluate(self, argument: Argument) -> Value:
        """The value of the argument; raises `MacroError` when it has none before the query runs."""
        ...

    def holds(self, argument: Argument) -> bool:
        """Whether the argument is a condition that is true; raises `MacroError` when it is not a condition."""
        ...

    def holds_text(self, rope: Rope, argument: Argument) -> bool:
        """Whether a text that came out of the argument is true."""
        ...

    def items(self, argument: Argument) -> list[Rope]:
        """The items of a list, or the argument itself as the only item."""
        ...

    def split_tuple(self, rope: Rope) -> list[Rope]:
        """The parts of `(a, b)`; a text without brackets is its only part."""
        ...

    def read_lambda(self, argument: Argument) -> Lambda | None:
        """The lambda an argument spells, if it does."""
        ...

    def apply(self, function: Lambda, values: Sequence[Rope], location: Location) -> Rope:
        """The body of a lambda with its parameters replaced."""
        ...

    def expand_made(self, text: str, call: Call) -> Rope:
        """Text that a macro made, with the macros in it expanded."""
        ...

    def fill_template(self, text: str, source: Source, index: int, names: Names, *, keeps_lists: bool = False) -> str:
        """Text with `@name` and `@{name}` replaced by bare values, but for lists with `keeps_lists`."""
        ...

    def variable(self, name: str) -> tuple[bool, object]:
        """Whether a user variable exists, and its value."""
        ...

    def stage(self) -> str:
        """What the text is expanded for; the text then depends on it."""
        ...

    def columns(self, relation: str) -> Mapping[str, str] | None:
        """Columns and types of a relation; `None` where they are not known."""
        ...

    def define(self, name: str, value: Argument, names: Names) -> None:
        """Make a name visible to everything behind it."""
        ...

    def check_names(self, argument: Argument) -> None:
        """Report unknown names in text that is not used this time."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One `@name(...)` in the text."""

    name: str
    source: Source
    index: int
    end: int
    positional: tuple[Argument, ...]
    named: Mapping[str, Argument]
    names: Names
    engine: Engine

    @property
    def shown(self) -> str:
        """The macro as the user spelled it."""
        return f"@{self.source.raw(self.index + 1)}"

    @property
    def location(self) -> Location:
        """Where the call was written."""
        return self.source.location(self.index)

    def fail(self, message: str, hint: str | None = None, location: Location | None = None) -> MacroError:
        """An error about this call, to be raised."""
        return MacroError(f"`{self.shown}` {message}", hint=hint, location=location or self.location)

    def make(self, text: str) -> Rope:
        """Text that stands for this call."""
        return self.source.make(text, self.index)

    def text(self, argument: Argument) -> str:
        """An argument expanded to text."""
        return text_of(self.engine.render(argument)).strip()

    def bind(self, signature: Signature) -> dict[str, Argument]:
        """The arguments by name; raises `MacroError` when they do not fit."""
        usage = f"write `{self.shown}({signature})`"
        if len(self.positional) > len(signature.names) and not signature.takes_rest:
            raise self.fail(f"takes at most {len(signature.names)} arguments, got {len(self.positional)}", usage)
        bound = dict(zip(signature.names, self.positional, strict=False))
        for name, argument in self.named.items():
            if name in bound:
                raise self.fail(f"got `{name}` twice", usage, argument.location)
            if name not in signature.names and name not in signature.options:
                known = [*signature.names, *signature.options]
                raise self.fail(f"has no argument `{name}`", nearest(name, known) or usage, argument.location)
            bound[name] = argument
        missing = [name for name in signature.names[: signature.required] if name not in bound]
        if missing:
            raise self.fail(f"lacks the argument `{missing[0]}`", usage)
        return bound


def nearest(name: str, known: Iterable[str], prefix: str = "") -> str | None:
    """A hint naming the closest of the known names, if one is close."""
    return did_you_mean(name, known, prefix=prefix)
