"""Values as JSON text that can hold nothing but values, and back.

Which classes there are is said by those who pack, and what their fields hold by the classes themselves. Reading makes
objects of these classes and of nothing else, calls no code of theirs, and checks every field: text that others have
written can be refused, and can say what is not so, and that is all it can do.

The text has a table for every type: rows are objects, columns are fields. Objects are numbered through all tables, and
a column of objects names them by number, so that what is shared is written once, nothing is nested deeply, and a
thousand models are read by a few loops in C.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from itertools import islice, repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SCALARS = {"str": str, "int": int, "float": float, "bool": bool, "None": type(None)}
_ROW_BITS = 40
_ROWS = (1 << _ROW_BITS) - 1
_PLAIN = frozenset(_SCALARS.values())
_FAILURES = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


class CannotBePacked(TypeError):
    """A value is of a type that nobody has named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spec:
    """What a field may hold: plain values of these types, objects of these tables, or whatever JSON can say."""

    scalars: frozenset[type] = frozenset()
    tables: tuple[str, ...] = ()
    is_data: bool = False

    @property
    def is_mixed(self) -> bool:
        """Whether objects stand beside plain values other than None, which counts as an object there."""
        return bool(self.tables) and not self.scalars <= {type(None)}


class Shapes:
    """The classes that values are made of.

    `aliases` are names that annotations use for other types; one that means `object` is for what JSON can say.
    """

    def __init__(self, classes: Iterable[type], aliases: Mapping[str, str]) -> None:
        self._classes = {cls.__name__: cls for cls in classes}
        self._aliases = dict(aliases)
        self._specs: dict[str, _Spec] = {}
        self._tables: dict[str, _Table] = {}

    def extended(self, classes: Iterable[type], aliases: Mapping[str, str]) -> Shapes:
        """These classes and further ones."""
        return Shapes((*self._classes.values(), *classes), {**self._aliases, **aliases})

    def spec(self, annotation: str) -> _Spec:
        """What an annotation allows; raises `CannotBePacked` where it names a class that is not here."""
        if annotation not in self._specs:
            found = [self._single(part) for part in _split(annotation, "|")]
            self._specs[annotation] = _Spec(
                scalars=frozenset().union(*(each.scalars for each in found)),
                tables=tuple(dict.fromkeys(table for each in found for table in each.tables)),
                is_data=any(each.is_data for each in found),
            )
        return self._specs[annotation]

    def _single(self, annotation: str) -> _Spec:
        if annotation in self._aliases:
            return self.spec(self._aliases[annotation])
        if annotation in _SCALARS:
            return _Spec(scalars=frozenset((_SCALARS[annotation],)))
        if annotation in {"object", "Any"}:
            return _Spec(is_data=True)
        if annotation.startswith("Literal["):
            return _Spec(scalars=frozenset((str,)))
        if annotation in self._classes or annotation.partition("[")[0] in {"tuple", "frozenset", "Mapping"}:
            return _Spec(tables=(annotation,))
        raise CannotBePacked(f"`{annotation}` is not among the classes that can be packed")

    def table(self, name: str) -> _Table:
        """The table of one type; raises `CannotBePacked` when there is none of this name."""
        if name not in self._tables:
            self._tables[name] = self._new_table(name)
        return self._tables[name]

    def _new_table(self, name: str) -> _Table:
        cls = self._classes.get(name)
        if cls is not None and issubclass(cls, Enum):
            return _EnumTable(name, cls)
        if cls is not None and is_dataclass(cls):
            return _RecordTable(name, cls, tuple((each.name, self.spec(str(each.type))) for each in fields(cls)))
        outer, _, inner = name.removesuffix("]").partition("[")
        parts = [part for part in _split(inner, ",") if part != "..."]
        specs = tuple(self.spec(part) for part in parts)
        if outer == "Mapping" and len(specs) == 2:
            return _MappingTable(name, specs)
        if outer == "frozenset" or (outer == "tuple" and inner.endswith("...")):
            return _SequenceTable(name, specs, frozenset if outer == "frozenset" else tuple)
        if outer == "tuple":
            return _PairTable(name, specs)
        raise CannotBePacked(f"`{name}` is no type that can be packed")

    def pack(self, value: object, annotation: str) -> str:
        """The text of a value of the annotated type; raises `CannotBePacked`."""
        return _Writer(self).write(value, self.spec(annotation))

    def unpack(self, text: str | bytes, annotation: str) -> Any:
        """The value of `pack`; None where the text is anything else."""
        try:
            return _read(self, json.loads(text), self.spec(annotation))
        except _FAILURES:
            return None


def _split(annotation: str, mark: str) -> list[str]:
    """The parts of an annotation between marks that stand outside brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(annotation):
        depth += (letter == "[") - (letter == "]")
        if letter == mark and not depth:
            parts.append(annotation[start:place])
            start = place + 1
    return [part.strip() for part in (*parts, annotation[start:])]


# --- tables -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Table(ABC):
    """How objects of one type become columns, and columns objects."""

    name: str

    def inner(self) -> tuple[_Spec, ...]:
        """What must be there before the objects can be made."""
        return ()

    @abstractmethod
    def cells(self, value: Any, writer: _Writer) -> Sequence[Any]:
        """What is added to each column; raises `CannotBePacked` when the value is of another type."""

    @abstractmethod
    def start(self) -> list[list[Any]]:
        """The columns without rows."""

    def add(self, columns: list[list[Any]], cells: Sequence[Any]) -> None:
        """Add a row."""
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell)

    @abstractmethod
    def specs(self) -> tuple[_Spec, ...]:
        """What the columns hold as they are written; the first one has a cell for every row."""

    def blank(self, count: int) -> list[Any]:
        """The objects, where they can be made before their content is known."""
        return [None] * count

    @abstractmethod
    def fill(self, objects: list[Any], columns: list[Any]) -> Iterable[Any]:
        """The objects with the content of the columns."""


_NUMBER = _Spec(scalars=frozenset((int,)))


@dataclass(frozen=True, slots=True)
class _RecordTable(_Table):
    cls: type
    pairs: tuple[tuple[str, _Spec], ...]

    def cells(self, value: Any, writer: _Writer) -> Sequence[Any]:
        if type(value) is not self.cls:
            raise CannotBePacked(f"{type(value)} is not `{self.name}`")
        # The first column only counts, so that a class without fields has rows too. Most fields are plain.
        cells: list[Any] = [0]
        for name, spec in self.pairs:
            item = getattr(value, name)
            cells.append(item if type(item) in spec.scalars else writer.cell(item, spec))
        return cells

    def start(self) -> list[list[Any]]:
        return [[] for _ in range(len(self.pairs) + 1)]

    def specs(self) -> tuple[_Spec, ...]:
        return (_NUMBER, *(spec for _, spec in self.pairs))

    def blank(self, count: int) -> list[Any]:
        return list(map(object.__new__, repeat(self.cls, count)))

    def fill(self, objects: list[Any], columns: list[Any]) -> Iterable[Any]:
        for (name, _), values in zip(self.pairs, columns[1:], strict=True):
            if type(values) is list and len(values) != len(objects):
                raise ValueError("columns are not of one length")
            deque(map(getattr(self.cls, name).__set__, objects, values), maxlen=0)
        return objects


@dataclass(frozen=True, slots=True)
class _EnumTable(_Table):
    cls: type[Enum]

    def cells(self, value: Any, writer: _Writer) -> Sequence[Any]:  # noqa: ARG002  # the shape of all tables
        if type(value) is not self.cls:
            raise CannotBePacked(f"{type(value)} is not `{self.name}`")
        return [value.value]

    def start(self) -> list[list[Any]]:
        return [[]]

    def specs(self) -> tuple[_Spec, ...]:
        return (_Spec(scalars=frozenset(type(member.value) for member in self.cls)),)

    def fill(self, objects: list[Any], columns: list[Any]) -> Iterable[Any]:  # noqa: ARG002  # the shape of all tables
        return map(self.cls, columns[0])


@dataclass(frozen=True, slots=True)
class _PairTable(_Table):
    """Tuples of one length, with a column for each place."""

    columns: tuple[_Spec, ...]

    def inner(self) -> tuple[_Spec, ...]:
        return self.columns

    def cells(self, value: Any, writer: _Writer) -> Sequence[Any]:
        if type(value) is not tuple or len(value) != len(self.columns):
            raise CannotBePacked(f"{type(value)} is not `{self.name}`")
        return [writer.cell(item, spec) for item, spec in zip(value, self.columns, strict=True)]

    def start(self) -> list[list[Any]]:
        return [[] for _ in self.columns]

    def specs(self) -> tuple[_Spec, ...]:
        return self.columns

    def fill(self, objects: list[Any], columns: list[Any]) -> Iterable[Any]:  # noqa: ARG002  # the shape of all tables
        return zip(*columns, strict=True)


@dataclass(frozen=True, slots=True)
class _SequenceTable(_Table):
    """Tuples of any length: one column says how long each is, the other holds the items of all."""

    items: tuple[_Spec, ...]
    make: type[tuple[Any, ...] | frozenset[Any]]

    def inner(self) -> tuple[_Spec, ...]:
        return self.items

    def cells(self, value: Any, writer: _Writer) -> Sequence[Any]:
        if type(value) is not self.make:
            raise CannotBePacked(f"{type(value)} is not `{self.name}`")
        # Sets have no order that stays.
        items = sorted(value) if self.make is frozenset else value
        return [writer.cell(item, self.items[0]) for item in items]

    def start(self) -> list[list[Any]]:
        return [[], []]

    def add(self, columns: list[list[Any]], cells: Sequence[Any]) -> None:
        columns[0].append(len(cells))
        columns[1].extend(cells)

    def specs(self) -> tuple[_Spec, ...]:
        return (_NUMBER, *self.items)

    def fill(self, objects: list[Any], columns: list[Any]) -> Iterable[Any]:  # noqa: ARG002  # the shape of all tables
        lengths, items = columns
        _check_lengths(lengths, len(items))
        rest = iter(items)
        return [self.make(islice(rest, length)) for length in lengths]


@dataclass(frozen=True, slots=True)
class _MappingTable(_Table):
    """Read-only mappings: how long each is, and the keys and values of all."""

    items: tuple[_Spec, ...]

    def inner(self) -> tuple[_Spec, ...]:
        return self.items

    def cells(self, value: Any, writer: _Writer) -> Sequence[Any]:
        if not isinstance(value, Mapping):
            raise CannotBePacked(f"{type(value)} is not `{self.name}`")
        key, item = self.items
        return [(writer.cell(each, key), writer.cell(content, item)) for each, content in value.items()]

    def start(self) -> list[list[Any]]:
        return [[], [], []]

    def add(self, columns: list[list[Any]], cells: Sequence[Any]) -> None:
        columns[0].append(len(cells))
        columns[1].extend(key for key, _ in cells)
        columns[2].extend(item for _, item in cells)

    def specs(self) -> tuple[_Spec, ...]:
        return (_NUMBER, *self.items)

    def fill(self, objects: list[Any], columns: list[Any]) -> Iterable[Any]:  # noqa: ARG002  # the shape of all tables
        lengths, keys, items = columns
        _check_lengths(lengths, len(keys))
        rest = zip(keys, items, strict=True)
        return [MappingProxyType(dict(islice(rest, length))) for length in lengths]


def _check_lengths(lengths: Sequence[int], count: int) -> None:
    # The items of all are a list, so that no length is believed that is not in the text.
    if sum(lengths) != count or min(lengths, default=0) < 0:
        raise ValueError("a table is not as long as it says")


# --- writing ----------------------------------------------------------------------------------------------------------
class _Writer:
    """Collects the tables of one value; an object that is met again is named by its number."""

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self._numbers: dict[str, int] = {}
        self._tables: list[tuple[_Table, list[list[Any]]]] = []
        self._known: dict[tuple[str, int], int] = {}
        self._counts: list[int] = []
        # What is read off a value on the way must live as long as its number.
        self._kept: list[object] = []

    def write(self, value: object, spec: _Spec) -> str:
        root = self.cell(value, spec)
        starts, total = [], 1
        for count in self._counts:
            starts.append(total)
            total += count

        def number(code: int | None) -> int:
            return 0 if code is None else starts[code >> _ROW_BITS] + (code & _ROWS)

        def told(column: list[Any], spec: _Spec) -> Any:
            if spec.is_mixed:
                return [[number(cell[0])] if type(cell) is list else cell for cell in column]
            return list(map(number, column)) if spec.tables else column

        tables = []
        for table, columns in self._tables:
            written = [told(column, each) for column, each in zip(columns, table.specs(), strict=True)]
            if isinstance(table, _RecordTable):
                written[1:] = map(_shortened, written[1:], table.specs()[1:])
            tables.append([table.name, written])
        return json.dumps([told([root], spec), tables], separators=(",", ":"))

    def cell(self, value: Any, spec: _Spec) -> Any:
        """What stands for a value in a column: itself, or a code for its table and row."""
        if spec.is_data:
            _check_data(value)
            return value
        if type(value) in spec.scalars:
            return value
        # Among several tables it is that of the class; the types of a single one are checked there.
        name = spec.tables[0] if len(spec.tables) == 1 else type(value).__name__
        if name not in spec.tables:
            raise CannotBePacked(f"{type(value)} has no place here")
        key = (name, id(value))
        code = self._known.get(key)
        if code is None:
            code = self._known[key] = self._row(value, name)
        return [code] if spec.is_mixed else code

    def _row(self, value: Any, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._tables)
            table = self._shapes.table(name)
            self._tables.append((table, table.start()))
            self._counts.append(0)
        table, columns = self._tables[number]
        cells = table.cells(value, self)
        table.add(columns, cells)
        code = number << _ROW_BITS | self._counts[number]
        self._counts[number] += 1
        self._kept.append(value)
        return code


def _check_data(value: object) -> None:
    """Refuse what JSON would bring back as something else."""
    if type(value) is list:
        for item in value:
            _check_data(item)
    elif type(value) is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise CannotBePacked(f"the key {key!r} is no text")
            _check_data(item)
    elif type(value) not in _PLAIN:
        raise CannotBePacked(f"{type(value)} is no plain value")


def _shortened(column: list[Any], spec: _Spec) -> object:
    """A column in which all is the same, as most properties are, without repeating it."""
    if len(column) < 2 or spec.is_data or spec.is_mixed:
        return column
    first = column[0]
    is_same = all(cell is first or (type(cell) is type(first) and cell == first) for cell in column)
    return {"same": first} if is_same else column


# --- reading ----------------------------------------------------------------------------------------------------------
def _read(shapes: Shapes, data: Any, root_spec: _Spec) -> Any:
    root, written = data
    reader = _Reader(shapes, [(shapes.table(name), columns) for name, columns in written])
    return reader.column(root, root_spec)[0]


class _Reader:
    """Makes the objects of all tables: records without content first, then what is made of others, then content."""

    def __init__(self, shapes: Shapes, tables: list[tuple[_Table, list[Any]]]) -> None:
        self._shapes = shapes
        self._tables = {table.name: (table, columns) for table, columns in tables}
        if len(self._tables) != len(tables):
            raise ValueError("a table is there twice")
        self._objects: list[Any] = [None]
        self._owners: list[int] = [0]
        self._starts: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        for number, (table, columns) in enumerate(tables, start=1):
            blank = table.blank(len(columns[0]))
            self._starts[table.name], self._numbers[table.name] = len(self._objects), number
            self._objects.extend(blank)
            self._owners.extend(repeat(number, len(blank)))
        self._made: set[str] = set()
        for table, _ in sorted(tables, key=lambda each: isinstance(each[0], _RecordTable)):
            self._make(table.name)

    def _make(self, name: str) -> None:
        if name in self._made or name not in self._tables:
            return
        self._made.add(name)
        table, columns = self._tables[name]
        for spec in table.inner():
            for each in spec.tables:
                if not isinstance(self._shapes.table(each), _RecordTable):
                    self._make(each)
        start, count = self._starts[name], len(columns[0])
        content = [
            repeat(self.column([each["same"]], spec)[0], count) if type(each) is dict else self.column(each, spec)
            for each, spec in zip(columns, table.specs(), strict=True)
        ]
        self._objects[start : start + count] = table.fill(self._objects[start : start + count], content)

    def column(self, column: Any, spec: _Spec) -> list[Any]:
        """What the cells of a column stand for; each of them is of a type that the column may hold."""
        if type(column) is not list:
            raise TypeError("a column is no list")
        if spec.is_data:
            return column
        if spec.is_mixed:
            objects, plain = _Spec(tables=spec.tables), _Spec(scalars=spec.scalars)
            return [(self.column(c, objects) if type(c) is list else self.column([c], plain))[0] for c in column]
        if not spec.tables:
            if not set(map(type, column)) <= spec.scalars:
                raise TypeError("a plain value of another type")
            return column
        allowed = {self._numbers[name] for name in spec.tables if name in self._numbers}
        if spec.scalars:
            allowed.add(0)
        if not set(map(self._owners.__getitem__, column)) <= allowed:
            raise TypeError("an object of another type")
        return list(map(self._objects.__getitem__, column))
