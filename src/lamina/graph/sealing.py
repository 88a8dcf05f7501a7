"""Values that come from the environment: where they stand in a model, the name of their variable stands in state.

A model that is loaded from files has them in clear, because macros and queries are made with them. What is recorded of
it holds `${ENV:NAME}` in their places and a keyed digest of each. It is put together again, to the letter, by whoever
has the same values; with others it is refused.
"""

from __future__ import annotations

import hmac
import json
import re
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lamina.errors import EnvironmentChanged, LaminaError, Location, MisplacedSecret, MissingEnvironmentVariable
from lamina.graph.model import EnvironmentValue

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from lamina.graph.model import AuditCall, FunctionCall, Model

# Where users write what queries, code and people are given. Everywhere else a value is a name or a setting that
# planning works with, and cannot be kept from anybody who sees the plan.
_OPEN_FIELDS = (
    "body",
    "audits",
    "standalone_audits",
    "source_audits",
    "signals",
    "pre_hooks",
    "post_hooks",
    "physical_properties",
    "virtual_properties",
    "session_properties",
    "description",
    "owner",
    "grains",
    "tags",
    "stamp",
    "further",
)
SECRET = re.compile(r"\$\{SECRET:([^}]*)\}")
"""A secret by its name, which is all that is ever known of it but where it is used."""
_SHOWN_FIELDS = tuple(name for name in _OPEN_FIELDS if name not in {"pre_hooks", "post_hooks"})
LONG = 8
"""Values from this length on are looked for in the properties of kinds too, whose words shorter ones may be part of."""
_SEALED = "-- sealed: "
_MARK = re.compile(r"\$\{ENV:(?:(:)|([^}|]*)(?:\|(\w+))?\})")
_SHORT = {0: "\\0", 8: "\\b", 9: "\\t", 10: "\\n", 13: "\\r", ord("\\"): "\\\\"}
_AS_LITERAL = {code: f"\\{code:03o}" for code in (*range(32), 127)} | _SHORT | {ord("'"): "\\'"}
# How a value may stand in a text: as it is, as literals and names are written, and without blanks around or between.
# The names are recorded, so a new way to write gets a new name.
_SPELLINGS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        "": lambda value: value,
        "quoted": lambda value: value.replace("'", "''"),
        "escaped": lambda value: value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n"),
        "json": lambda value: value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"),
        "lower": lambda value: value.lower(),
        "upper": lambda value: value.upper(),
        "literal": lambda value: value.translate(_AS_LITERAL),
        "plain": lambda value: value.replace("\\", "\\\\").replace("'", "\\'"),
        "doubled": lambda value: value.translate(_SHORT | {ord("'"): "''"}),
        "text": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
        "stripped": lambda value: value.strip(),
        "joined": lambda value: " ".join(value.split()),
    }
)
# A value may be SQL, of which canonical texts keep the literals and nothing else as they are.
_PART = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_NUMBERED = re.compile(r"part(\d+)")


def _spelled(value: str) -> dict[str, str]:
    """What may stand in a text for a value, by the name of how it is written."""
    found = {name: spell(value) for name, spell in _SPELLINGS.items()}
    found |= {f"part{number}": part for number, part in enumerate(_parts(value)) if len(part) >= LONG}
    # What is left without blanks may be a word like any other.
    return {name: text for name, text in found.items() if text and len(text) >= min(len(value), LONG)}


def _parts(value: str) -> list[str]:
    return [first or second for first, second in _PART.findall(value)]


def _spell(value: str, spelling: str) -> str:
    numbered = _NUMBERED.fullmatch(spelling)
    return _parts(value)[int(numbered[1])] if numbered else _SPELLINGS[spelling](value)


class Marks:
    """Puts the names of variables into the places of their values, and back."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        by_spelling: dict[str, str] = {}
        for name, value in values.items():
            for spelling, text in _spelled(value).items():
                mark = f"{name}|{spelling}" if spelling else name
                by_spelling.setdefault(text, f"${{ENV:{mark}}}")
        by_spelling.setdefault("${ENV:", "${ENV::")
        self._marks = by_spelling
        longest_first = sorted(by_spelling, key=len, reverse=True)
        self._found = re.compile("|".join(map(re.escape, longest_first)))

    def hide(self, text: str) -> str:
        """The text without values."""
        return self._found.sub(lambda found: self._marks[found.group()], text)

    def show(self, text: str) -> str:
        """The text that `hide` was given."""
        return _MARK.sub(self._value, text)

    def _value(self, found: re.Match[str]) -> str:
        is_escape, name, spelling = found.groups()
        if is_escape:
            return "${ENV:"
        return _spell(self._values[name], spelling or "") if name in self._values else found.group()


def names_marked(text: str) -> frozenset[str]:
    """The variables whose values a hidden text lacks."""
    return frozenset(found.group(2) for found in _MARK.finditer(text) if found.group(2))


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A value with all its texts changed; places in files stay."""
    if isinstance(value, str):
        return change(value)
    if value is None or isinstance(value, bool | int | float | Enum | Location):
        return value
    if isinstance(value, tuple):
        return tuple(with_texts(item, change) for item in value)
    if isinstance(value, list):
        return [with_texts(item, change) for item in value]
    if isinstance(value, frozenset | set):
        return frozenset(with_texts(item, change) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        new = {field.name: with_texts(getattr(value, field.name), change) for field in fields(value) if field.init}
        is_same = all(new[name] is getattr(value, name) or new[name] == getattr(value, name) for name in new)
        return value if is_same and not _has_hidden_fields(value) else replace(value, **new)
    if hasattr(value, "items"):
        made = {with_texts(key, change): with_texts(item, change) for key, item in value.items()}
        return made if isinstance(value, dict) else MappingProxyType(made)
    return value


def _has_hidden_fields(value: Any) -> bool:
    """Whether equal values of this sort may differ."""
    return any(not field.compare for field in fields(value))


def holds_any(value: Any, values: Collection[str]) -> bool:
    """Whether some text in a value holds one of these values, in any spelling."""
    if not any(values):
        return False
    found: list[bool] = []
    marks = Marks({str(number): each for number, each in enumerate(values)})

    def look(text: str) -> str:
        if names_marked(marks.hide(text)):
            found.append(True)
        return text

    with_texts(value, look)
    return bool(found)


def _changed(model: Model, change: Callable[[str], str], change_long: Callable[[str], str]) -> Model:
    new = {name: with_texts(getattr(model, name), change) for name in _OPEN_FIELDS}
    new["columns"] = model.columns and tuple(
        replace(column, comment=column.comment and change(column.comment)) for column in model.columns
    )
    return replace(model, kind=with_texts(model.kind, change_long), **new)


def _long(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if len(value) >= LONG}


def with_environment(model: Model, values: Mapping[str, str]) -> Model:
    """The model, knowing which of these values stand in it."""
    seen: set[str] = set()

    def look(marks: Marks) -> Callable[[str], str]:
        def in_text(text: str) -> str:
            seen.update(names_marked(marks.hide(text)))
            return text

        return in_text

    _changed(model, look(Marks(values)), look(Marks(_long(values))))
    found = tuple(EnvironmentValue(name=name, value=values[name]) for name in sorted(seen))
    return _with_shown(replace(model, environment=found)) if found else model


def _with_shown(model: Model) -> Model:
    """The model with arguments of audits that people may see: these are recorded with outcomes."""
    values = values_in([model])

    def shown(call: AuditCall) -> AuditCall:
        texts = {key: without_values(text, values) for key, text in call.arguments.items()}
        return replace(call, shown=texts) if texts != dict(call.arguments) else call

    by_source = {name: tuple(map(shown, calls)) for name, calls in model.source_audits.items()}
    return replace(
        model,
        audits=tuple(map(shown, model.audits)),
        standalone_audits=tuple(map(shown, model.standalone_audits)),
        source_audits=MappingProxyType(by_source),
    )


def digest_of(value: EnvironmentValue, key: bytes) -> str:
    """What a value may be compared by, without being told."""
    if value.value is None:
        return value.digest or ""
    return hmac.digest(key, f"{value.name}\0{value.value}".encode(), "sha256").hex()[:32]


def sealed(model: Model, key: bytes) -> Model:
    """The model as it is recorded: names of variables for values, and digests that only the key's owner can make."""
    known = {each.name: each.value for each in model.environment if each.value is not None}
    if not known:
        return model
    hidden = _changed(model, Marks(known).hide, Marks(_long(known)).hide)
    digests = tuple(EnvironmentValue(name=each.name, digest=digest_of(each, key)) for each in model.environment)
    return replace(hidden, environment=digests)


def unsealed(model: Model, environ: Mapping[str, str], key: bytes) -> Model:
    """The recorded model with its values in their places.

    Raises `MissingEnvironmentVariable` or `EnvironmentChanged` where the environment has not the values of then.
    """
    digests = {each.name: each.digest for each in model.environment if each.digest is not None}
    values = _values_of_then(digests, environ, key, model.name, model.location)
    if not values:
        return model
    shown = _changed(model, Marks(values).show, Marks(_long(values)).show)
    found = tuple(EnvironmentValue(name=name, value=value) for name, value in values.items())
    return _with_shown(replace(shown, environment=found))


def _values_of_then(
    digests: Mapping[str, str], environ: Mapping[str, str], key: bytes, node: str, location: Location | None
) -> dict[str, str]:
    """The values of these variables, which must be those that digests were made of."""
    for name, digest in digests.items():
        if name not in environ:
            raise MissingEnvironmentVariable(
                f"environment variable `{name}` is not set, and `{node}` was recorded with it",
                hint=f"set it to what it was when `{node}` was built: `export {name}=…`",
                location=location,
                node=node,
            )
        if not hmac.compare_digest(digest_of(EnvironmentValue(name=name, value=environ[name]), key), digest):
            raise EnvironmentChanged(
                f"environment variable `{name}` has another value than when `{node}` was built",
                hint=f"set `{name}` to the value of then, or build with the new one, which computes `{node}`"
                " anew where its rows depend on it",
                location=location,
                node=node,
            )
    return {name: environ[name] for name in digests}


def sealed_text(text: str, models: Iterable[Model], key: bytes) -> str:
    """A text made with values of these models as it is recorded: as it is, unless some of them occur in it."""
    known = {each.name: each.value for model in models for each in model.environment if each.value is not None}
    hidden = Marks(known).hide(text)
    names = sorted(names_marked(hidden) & known.keys())
    if not names:
        return text
    digests = {name: digest_of(EnvironmentValue(name=name, value=known[name]), key) for name in names}
    return _SEALED + json.dumps([hidden, digests], ensure_ascii=False)


def unsealed_text(text: str, environ: Mapping[str, str], key: bytes, node: str) -> str:
    """The text that `sealed_text` was given; raises what `unsealed` raises. `node` is what it was recorded for."""
    if not text.startswith(_SEALED):
        return text
    hidden, digests = json.loads(text.removeprefix(_SEALED))
    return Marks(_values_of_then(digests, environ, key, node, None)).show(hidden)


def told(model: Model, text: str) -> str:
    """A text about the model for everybody who looks at its table: with names of variables for their values."""
    return without_values(text, values_in([model]))


def without_values(text: str, values: Mapping[str, str]) -> str:
    """A text for people, with what stands for values in their places; `values` has them by what stands for them.

    Short values are only told from other text where they stand by themselves.
    """
    for mark, value in sorted(values.items(), key=lambda item: -len(item[1])):
        # Messages are made of single lines, or of one line of several.
        lines = {line.strip() for line in value.splitlines() if len(line.strip()) >= LONG}
        for spelling in sorted({*_spelled(value).values(), *lines}, key=len, reverse=True):
            found = r"\s+".join(map(re.escape, spelling.split()))
            if found:
                found = found if len(spelling) >= LONG else rf"(?<!\w){found}(?!\w)"
                text = re.sub(found, mark.replace("\\", r"\\"), text)
    return text


def values_in(models: Iterable[Model]) -> dict[str, str]:
    """What models have from the environment, by what stands for it."""
    return {f"${{ENV:{each.name}}}": each.value for model in models for each in model.environment if each.value}


def hide_in(error: LaminaError, values: Mapping[str, str]) -> None:
    """Take values out of the words of an error."""
    for problem in {id(each): each for each in (error, *error.problems)}.values():
        problem.message = without_values(problem.message, values)
        problem.hint = without_values(problem.hint, values) if problem.hint else problem.hint


@contextmanager
def values_hidden(models: Callable[[], Iterable[Model]]) -> Iterator[None]:
    """What fails inside tells no values of the environment that these models have."""
    try:
        yield
    except LaminaError as error:
        hide_in(error, values_in(models()))
        raise


class Seal:
    """Keeps the values of one model's environment out of its hashes; a digest of each that occurs counts instead."""

    def __init__(self, model: Model, key: bytes) -> None:
        known = {each.name: each.value for each in model.environment if each.value is not None}
        self._marks = Marks(known) if known else None
        self._digests = {each.name: digest_of(each, key) for each in model.environment}

    def of(self, plain: Any) -> tuple[Any, ...]:
        """Plain values without those of the environment, and the digests of these."""
        names: set[str] = set()

        def hide(text: str) -> str:
            hidden = self._marks.hide(text) if self._marks is not None else text
            names.update(names_marked(hidden))
            return hidden

        hidden = with_texts(plain, hide)
        digests = tuple((name, self._digests[name]) for name in sorted(names & self._digests.keys()))
        return (hidden, digests) if digests else tuple(plain)


def misplaced_secrets(model: Model) -> tuple[MisplacedSecret, ...]:
    """The secrets in what a query of the model is made with, or what belongs to it; in hooks they are welcome."""
    found: set[str] = set()

    def look(text: str) -> str:
        found.update(SECRET.findall(text))
        return text

    with_texts((model.kind, *(getattr(model, name) for name in _SHOWN_FIELDS)), look)
    return tuple(
        MisplacedSecret(
            f"`${{SECRET:{name}}}` gets into `{model.name}`, where its value would be shown and recorded",
            hint="secrets belong in `spark`, `state` and hooks; what a query, its variables or properties are made"
            f" with is `${{ENV:{name}}}`, of which a digest is recorded",
            location=model.location,
            node=model.name,
        )
        for name in sorted(found)
    )


def secrets_of(calls: Iterable[FunctionCall]) -> frozenset[str]:
    """The secrets that arguments and variables of hooks name."""
    found: set[str] = set()

    def look(text: str) -> str:
        found.update(SECRET.findall(text))
        return text

    for call in calls:
        with_texts((call.values, call.code.variables if call.code is not None else None), look)
    return frozenset(found)


def with_secrets(calls: tuple[FunctionCall, ...], environ: Mapping[str, str]) -> tuple[FunctionCall, ...]:
    """Calls of hooks with the secrets that their arguments and variables name; for the call alone."""
    return tuple(_with_secrets(call, environ) for call in calls)


def _with_secrets(call: FunctionCall, environ: Mapping[str, str]) -> FunctionCall:
    def reveal(found: re.Match[str]) -> str:
        name = found.group(1)
        if name not in environ:
            raise MissingEnvironmentVariable(
                f"environment variable `{name}` is not set, but hook `{call.name}` needs it",
                hint=f"set it: `export {name}=…`",
                location=call.location,
            )
        return environ[name]

    def change(text: str) -> str:
        return SECRET.sub(reveal, text)

    code = call.code
    if code is not None:
        code = replace(code, variables=with_texts(code.variables, change))
    return replace(call, values=with_texts(call.values, change), code=code)
