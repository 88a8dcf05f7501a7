"""Writes docs/reference/configuration.md: every key of lamina.yaml."""

# ruff: noqa: E501  # what is said of a key is one line of a table
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from lamina.project.configuration.shape import ConfigFile, DefaultsSection, SparkSection, TargetSection
from lamina.reading.model_header import PROPERTIES
from tools.documented import NOTICE, documented, table, value

if TYPE_CHECKING:
    from collections.abc import Mapping

HEAD = f"""\
# lamina.yaml

{NOTICE}

The only file that a project must have. Only `name` is required. An unknown key is an error that names the nearest one.

```yaml
name: shop
spark: {{master: "local[*]"}}
state: sqlite:///.lamina/state.db
defaults: {{start: 2024-01-01, cron: "@daily", table_format: parquet}}
targets: {{dev: {{schema: shop_dev, schema_suffix: _dev}}, prod: {{}}}}
default_target: dev
variables: {{region: eu}}
```

"""
FILE = {
    "name": "The project's name. It is also the schema of models whose names have one part.",
    "mode": "`virtual`: versions under views. `direct`, tables at their own names, is not carried out by this release.",
    "spark": "How to reach Spark; see below.",
    "state": "Where Lamina keeps what it knows; see below.",
    "defaults": "What MODEL headers say when they say nothing; see below.",
    "targets": "Places where tables live, by name; see below. Without any there is one, `prod`.",
    "default_target": "The target of commands that name none. Without it: the first one.",
    "variables": 'Values of `@name` in SQL and of `context.var("name")` in Python. Case does not count.',
    "unsuffixed_environment": "The environment whose views lie at the models' own names, without `__<environment>`.",
    "strict_sources": "Whether a table that nothing defines or declares is an error instead of a warning.",
    "replay_on_change": "`full`, `forward` or such as `bounded-14d`. This release always rebuilds in full.",
    "concurrency": "How many batches run at once where `--concurrency` does not say it.",
}
SPARK = {
    "master": "The master of a session of Lamina's own, such as `spark://host:7077`. Default: `local[*]`.",
    "remote": "A Spark Connect server, such as `sc://host:15002`. Excludes `master`.",
    "config": "Any settings of Spark, by their full names. Those of a target are added to those of the project.",
    "shared_warehouse": "Says that local folders are the same on every machine of the cluster.",
}
TARGET = {
    "schema": "The schema of models whose names have one part. Default: the project's name.",
    "schema_suffix": "Is appended to every schema that models name. Two targets of one warehouse need different ones of both.",
    "reuse_from": "Another target whose tables are taken over. Belongs to `mode: direct`.",
    "reuse_hard_copy": "Whether such tables are copied instead of cloned. Belongs to `mode: direct`.",
    "defer_sources_to": "Another target whose sources are read. Has no effect yet.",
    "spark": "As above; `master` or `remote` here replace both of the project.",
    "state": "As above; default: the project's.",
    "variables": "Are put over the project's, name by name.",
}
DEFAULTS = {
    "kind": "The kind of models that name none: a name, or a mapping with `name` and the kind's properties.",
    "physical_properties": "Merged with the model's own, property by property.",
    "virtual_properties": "Merged with the model's own, property by property.",
    "session_properties": "Merged with the model's own, property by property.",
    "audits": "Asked of every model beside its own audits.",
    "on_destructive_change": "The default of this property of incremental kinds.",
    "on_additive_change": "The default of this property of incremental kinds.",
    "batch_concurrency": "The default of this property of kinds that have it.",
    "pre_statements": "Run before the query of every SQL model, in front of its own.",
    "post_statements": "Run after the query of every SQL model, in front of its own.",
    "on_virtual_update": "Run behind the view of every model, in front of its own.",
    "seed_copy": "`always` gives every version files of its own where it begins as a copy of another.",
}
_SAME = "What models say that do not say it; see [properties](models.md#properties)."
STATES = {
    "sqlite": ("`sqlite:///.lamina/state.db`", "A file; relative paths start at the project. For one machine."),
    "postgresql": (
        "`postgresql://user:${ENV:PASSWORD}@host/database`",
        "A PostgreSQL database: for several machines. Needs `lamina[postgres]`.",
    ),
    "duckdb": ("`duckdb:///state.duckdb`", "Not supported yet."),
    "warehouse": ("`warehouse`", "Not supported yet."),
}
VARIABLES = """\
## Environment variables

| variable | sets |
|---|---|
| `LAMINA_TARGET` | the target; `--target` wins over it, and it over `default_target` |
| `LAMINA__A__B` | the key `a.b`, such as `LAMINA__SPARK__MASTER`; wins over the file |

Values of `LAMINA__…` are read as YAML. `${ENV:NAME}` inside a value of the file is replaced by the variable `NAME`,
which must be set. A variable such as `LAMINA_SPARK_MASTER`, which sets nothing and looks as if it did, is told by every
command.
"""


def page() -> str:
    """The whole page."""
    lines = [HEAD, "## Keys", "", *_section(ConfigFile, FILE, "lamina.yaml")]
    lines += ["## `spark`", "", *_section(SparkSection, SPARK, "spark")]
    lines += ["## `state`", "", "The address of a state store:", ""]
    lines += table(("address", "meaning"), STATES.values())
    lines += ["## `targets`", "", *_section(TargetSection, TARGET, "targets")]
    lines += [
        "Two targets must not keep their models in the same schema of the same warehouse. Environments belong to a",
        "target, and nothing is promoted from one target to another.",
        "",
    ]
    own = {key: _SAME for key, _ in _fields(DefaultsSection) if key in PROPERTIES} | DEFAULTS
    lines += ["## `defaults`", "", *_section(DefaultsSection, own, "defaults"), VARIABLES]
    return "\n".join(lines).rstrip() + "\n"


def _section(section: type[BaseModel], words: Mapping[str, str], where: str) -> list[str]:
    fields = dict(_fields(section))
    rows = [
        (f"`{key}`", _type(fields[key].annotation), _default(fields[key]), text)
        for key, text in documented(fields, words, where)
    ]
    return table(("key", "value", "default", "meaning"), rows)


def _fields(section: type[BaseModel]) -> list[tuple[str, Any]]:
    return [(info.alias or name, info) for name, info in section.model_fields.items()]


def _default(info: Any) -> str:
    if info.is_required():
        return "required"
    return "" if info.default in (PydanticUndefined, None) else value(info.default)


def _type(annotation: Any) -> str:
    """The kind of value in a user's words."""
    if get_origin(annotation) is Literal:
        return " or ".join(f"`{choice}`" for choice in get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "mapping"
    names = {
        str: "text",
        int: "whole number",
        bool: "`true` or `false`",
        dict: "mapping",
        list: "list",
        float: "number",
    }
    origin = get_origin(annotation) or annotation
    if origin in names:
        return names[origin]
    if hasattr(annotation, "__metadata__"):
        return _type(annotation.__origin__)
    parts = [_type(each) for each in get_args(annotation) if each is not type(None)]
    return " or ".join(dict.fromkeys(parts))
