"""`lamina.yaml` as values, and which of them may be kept beside the project."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lamina.app.ports.project import ProjectSettings
from lamina.graph.catalogs import read_catalogs
from lamina.graph.sealing import LONG
from lamina.project.configuration.secrets import Secret, is_sensitive, redact_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lamina.graph.dag import Notice
    from lamina.graph.kinds import Setting
    from lamina.graph.model import VariableValue
    from lamina.project.yaml.places import YamlText

ENVIRONMENT_PREFIX = "LAMINA__"
TARGET_VARIABLE = "LAMINA_TARGET"
# A warehouse is told apart by these; two masters of one catalog see the same tables.
_CATALOG_SETTINGS = ("spark.sql.catalog", "spark.sql.warehouse", "spark.hadoop.hive", "spark.hadoop.javax.jdo")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """How to reach Spark: exactly one of `master` and `remote`."""

    master: str | None = None
    remote: str | None = field(default=None, repr=False)
    config: Mapping[str, Setting | Secret] = field(default_factory=lambda: MappingProxyType({}))
    shared_warehouse: bool = False
    """Whether local folders are the same on every machine of the cluster."""

    def revealed_config(self) -> dict[str, Setting]:
        """The configuration with secrets in clear, for the session alone."""
        return {key: value.reveal() if isinstance(value, Secret) else value for key, value in self.config.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where tables live: a Spark connection, a base schema and a state store."""

    name: str
    schema: str
    schema_suffix: str
    spark: SparkSettings
    state: Secret
    reuse_from: str | None = None
    reuse_hard_copy: bool = False

    def warehouse(self) -> object:
        """Equal for targets that see the same tables."""
        catalog = {key: value for key, value in self.spark.config.items() if key.startswith(_CATALOG_SETTINGS)}
        return self.spark.remote, tuple(sorted((key, str(value)) for key, value in catalog.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentUse:
    """Values of `${ENV:NAME}` by name, and where the names stand: in which variables, and in the defaults of models."""

    values: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    in_variables: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    in_defaults: frozenset[str] = frozenset()
    hidden: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """Everything that must not be shown, by what is shown instead: the same values, and secrets."""

    def distinctive(self) -> tuple[str, ...]:
        """The values that are not likely to be part of other words."""
        return tuple(value for value in self.values.values() if len(value) >= LONG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything `lamina.yaml` says, for one target."""

    name: str
    mode: str
    target: Target
    targets: Mapping[str, Target]
    unsuffixed_environment: str
    strict_sources: bool
    replay_on_change: str
    concurrency: int
    defaults: Mapping[str, Any]
    """Defaults of MODEL properties as plain values, only those that are given."""
    variables: Mapping[str, VariableValue]
    text: YamlText = field(repr=False, compare=False)
    notices: tuple[Notice, ...] = ()
    """What the file says that nothing acts on."""
    environment: EnvironmentUse = field(default_factory=EnvironmentUse, repr=False)
    """What of variables and defaults comes from the environment."""

    def settings(self) -> ProjectSettings:
        """What the use cases need."""
        return ProjectSettings(
            name=self.name,
            mode=self.mode,
            target=self.target.name,
            schema=self.target.schema,
            unsuffixed_environment=self.unsuffixed_environment,
            default_start=self.defaults.get("start"),
            concurrency=self.concurrency,
            schema_suffix=self.target.schema_suffix,
            replay_on_change=self.replay_on_change.lower(),
            variables=self.variables,
            catalogs=read_catalogs({key: str(value) for key, value in self.target.spark.config.items()}),
        )


def may_be_kept(content: str, environ: Iterable[str]) -> bool:
    """Whether what a `lamina.yaml` says depends on nothing else and holds nothing that looks like a secret.

    Only then a copy of it may be written to disk: what comes from the environment is often a secret, and the file may
    be readable by fewer people than what Lamina writes.
    """
    if any(variable.startswith(ENVIRONMENT_PREFIX) for variable in environ):
        return False
    # Behind a backslash any word may be spelled.
    return not (
        "${ENV:" in content
        or "${SECRET:" in content
        or "\\" in content
        or is_sensitive(content)
        or redact_url(content) != content
    )
