"""The shape of `lamina.yaml`: which keys exist and what each may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lamina.project.yaml.places import YamlPath

DEFAULT_STATE = "sqlite:///.lamina/state.db"
DEFAULT_TARGET = "prod"


def _as_text(value: object) -> object:
    """Numbers stand for the text they were written as."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


_Text = Annotated[str, BeforeValidator(_as_text)]
_Change = Literal["error", "warn", "allow", "ignore"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SparkSection(_Section):
    """How to reach Spark."""

    master: _Text | None = None
    remote: _Text | None = None
    config: dict[str, str | int | float | bool] = Field(default_factory=dict)
    shared_warehouse: bool = False


class DefaultsSection(_Section):
    """What MODEL headers say when they say nothing."""

    kind: _Text | dict[str, Any] | None = None
    dialect: _Text | None = None
    cron: _Text | None = None
    cron_tz: _Text | None = None
    owner: _Text | None = None
    start: _Text | None = None
    table_format: _Text | None = None
    storage_format: _Text | None = None
    seed_copy: _Text | None = None
    on_destructive_change: _Change | None = None
    on_additive_change: _Change | None = None
    physical_properties: dict[str, Any] | None = None
    virtual_properties: dict[str, Any] | None = None
    session_properties: dict[str, Any] | None = None
    audits: list[Any] | None = None
    optimize_query: bool | None = None
    allow_partials: bool | None = None
    interval_unit: _Text | None = None
    enabled: bool | None = None
    formatting: bool | None = None
    batch_concurrency: int | None = Field(default=None, ge=1)
    pre_statements: list[_Text] | None = None
    post_statements: list[_Text] | None = None
    on_virtual_update: list[_Text] | None = None


class TargetSection(_Section):
    """Where tables live."""

    # The key in the file is `schema`, a name pydantic's own models already use.
    base_schema: _Text | None = Field(default=None, alias="schema")
    schema_suffix: _Text = ""
    reuse_from: _Text | None = None
    reuse_hard_copy: bool = False
    defer_sources_to: _Text | None = None
    spark: SparkSection | None = None
    state: _Text | None = None
    variables: dict[str, Any] = Field(default_factory=dict)


class ConfigFile(_Section):
    """The whole file."""

    name: _Text
    mode: Literal["virtual", "direct"] = "virtual"
    spark: SparkSection = Field(default_factory=SparkSection)
    state: _Text = DEFAULT_STATE
    defaults: DefaultsSection = Field(default_factory=DefaultsSection)
    targets: dict[str, TargetSection | None] = Field(default_factory=dict)
    default_target: _Text | None = None
    variables: dict[str, Any] = Field(default_factory=dict)
    unsuffixed_environment: _Text = DEFAULT_TARGET
    strict_sources: bool = False
    replay_on_change: _Text = "full"
    concurrency: int = Field(default=4, ge=1)


_EXPECTATIONS = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "`true` or `false`",
    "bool_parsing": "`true` or `false`",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "list_type": "a list",
}


def expectation(fault: Mapping[str, Any]) -> str:
    match fault["type"]:
        case "literal_error":
            return str(fault["ctx"]["expected"]).replace("'", "`")
        case "greater_than_equal":
            return f"at least {fault['ctx']['ge']}"
        case known if known in _EXPECTATIONS:
            return _EXPECTATIONS[known]
        case _:
            return "of another form: " + str(fault["msg"]).lower()


def is_branch(part: str | int, raw: Any, loc: tuple[str | int, ...]) -> bool:
    """Whether a part of pydantic's path names a branch of a union rather than a key of the file."""
    if part not in {"str", "int", "float", "bool", "function-before[_as_text(), str]"} and not str(part).startswith(
        ("function-", "dict[")
    ):
        return False
    here = raw
    for step in loc[: loc.index(part)]:
        here = here.get(step) if isinstance(here, dict) else None
    return not (isinstance(here, dict) and part in here)


def known_keys(path: YamlPath) -> tuple[str, ...]:
    """The keys that the section at the path may have."""
    section: type[BaseModel] | None = ConfigFile
    for part in path:
        if section is None:
            return ()
        found = next((info for key, info in _fields(section) if key == part), None)
        section = next(_sections_in(found.annotation), None) if found is not None else section
    return tuple(key for key, _ in _fields(section)) if section else ()


def setting_paths(section: type[BaseModel] = ConfigFile) -> Iterator[tuple[str, ...]]:
    """Every key that has a fixed place in the file, with the keys above it."""
    for key, info in _fields(section):
        yield (key,)
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield from ((key, *rest) for rest in setting_paths(info.annotation))


def _fields(section: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    for name, info in section.model_fields.items():
        yield info.alias or name, info


def _sections_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _sections_in(argument)
