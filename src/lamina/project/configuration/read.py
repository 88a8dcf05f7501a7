"""`lamina.yaml`: read, overridden from the environment, checked, and turned into values."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from lamina.errors import (
    BadConfigValue,
    ConfigError,
    LaminaError,
    Location,
    MisplacedSecret,
    MissingEnvironmentVariable,
    UnknownConfigKey,
    UnknownName,
    raise_all,
)
from lamina.graph.sealing import SECRET
from lamina.identity.naming import RESERVED_ENVIRONMENT
from lamina.near_names import near_names
from lamina.project.configuration.secrets import Secret, is_sensitive, redact_url
from lamina.project.configuration.shape import (
    DEFAULT_STATE,
    DEFAULT_TARGET,
    ConfigFile,
    SparkSection,
    TargetSection,
    expectation,
    is_branch,
    known_keys,
)
from lamina.project.configuration.values import (
    ENVIRONMENT_PREFIX,
    TARGET_VARIABLE,
    Config,
    EnvironmentUse,
    SparkSettings,
    Target,
)
from lamina.project.discover import CONFIG_FILE
from lamina.project.yaml.text import BadYaml, read_yaml, read_yaml_value
from lamina.reading.without_effect import REUSE, no_effect, no_effect_yet
from lamina.sql.names import LONGEST_SCHEMA_NAME, check_catalog_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lamina.graph.dag import Notice
    from lamina.graph.model import VariableValue
    from lamina.project.yaml.places import YamlPath, YamlText

WAREHOUSE_STATE = "warehouse"
STATE_SCHEMES = ("sqlite", "postgresql", "duckdb")
_REUSE = "every target builds its own tables; in another environment of one target, `--env NAME` shares them"
_OF_LATER = {
    "reuse_from": _REUSE,
    "reuse_hard_copy": _REUSE,
    "defer_sources_to": "sources are read where the target itself has them",
}
_OF_OTHERS = (
    ("optimize_query", "queries are sent as they are written", False),
    ("formatting", "nothing reformats files here", None),
)
_INTERPOLATION = re.compile(r"\$\{ENV:([^}]*)\}")
_PLACEHOLDER = re.compile(r"\$\{(?:ENV|SECRET):")
_BEHIND_PLACE = re.compile(r"[/;?#&]")
_REPLAY = re.compile(r"forward|full|bounded-[1-9][0-9]*[mhdw]")


def read_config(
    content: str,
    *,
    target: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read the text of a project's configuration for one target; all problems at once.

    `overrides` maps dotted keys such as `spark.master` to values and wins over `LAMINA__SPARK__MASTER` of `environ`,
    which wins over the file. Without `target`, `LAMINA_TARGET` of `environ` names it, and else the file.
    """
    try:
        text = read_yaml(content, CONFIG_FILE)
    except BadYaml as error:
        raise ConfigError(error.message, hint=error.hint, location=error.location) from None
    if text.value is None:
        raise ConfigError(
            f"`{CONFIG_FILE}` is empty",
            hint="give the project a name: `name: shop`",
            location=Location(file=CONFIG_FILE, line=1, column=1),
        )
    if not isinstance(text.value, dict):
        raise ConfigError(
            f"`{CONFIG_FILE}` must hold keys and values, not a {type(text.value).__name__}",
            hint="start with `name: shop`",
            location=text.location(()),
        )
    loader = _Loader(text, environ or {}, overrides or {})
    return loader.load(target, (environ or {}).get(TARGET_VARIABLE))


class _Loader:
    """One reading of the file; collects problems on the way."""

    def __init__(self, text: YamlText, environ: Mapping[str, str], overrides: Mapping[str, Any]) -> None:
        self._text = text
        self._problems: list[LaminaError] = []
        self._origins: dict[YamlPath, str] = {}
        self._hidden: set[YamlPath] = set()
        self._environ = environ
        self._named: dict[YamlPath, frozenset[str]] = {}
        self._unshown: dict[YamlPath, frozenset[str]] = {}
        self._secret: set[str] = set()
        self._secrets: set[str] = set()
        raw = self._interpolate(text.value, (), environ)
        for variable in sorted(environ):
            if variable.startswith(ENVIRONMENT_PREFIX):
                path = tuple(variable.removeprefix(ENVIRONMENT_PREFIX).split("__"))
                self._override(raw, path, read_yaml_value(environ[variable]), f"environment variable `{variable}`")
        for key, value in overrides.items():
            self._override(raw, tuple(key.split(".")), value, f"override `{key}`")
        self._raw = raw

    def load(self, target: str | None, variable: str | None) -> Config:
        file = self._validate()
        raise_all(self._problems)
        if file is None:
            raise ConfigError(f"`{CONFIG_FILE}` cannot be used", location=self._text.location(()))
        self._check(file)
        raise_all(self._problems)
        targets = _targets(file, frozenset(self._secret))
        self._check_targets_differ(targets)
        raise_all(self._problems)
        chosen = self._choose(file, targets, target, variable)
        section = file.targets.get(chosen.name)
        return Config(
            name=file.name,
            mode=file.mode,
            target=chosen,
            targets=MappingProxyType(targets),
            unsuffixed_environment=file.unsuffixed_environment,
            strict_sources=file.strict_sources,
            replay_on_change=file.replay_on_change,
            concurrency=file.concurrency,
            defaults=MappingProxyType(
                {key: value for key, value in file.defaults.model_dump().items() if value is not None}
            ),
            variables=MappingProxyType(_lower_keys(file.variables) | _lower_keys(section.variables if section else {})),
            text=self._text,
            environment=self._environment_use(file, chosen.name),
            notices=tuple(self._notices(file)),
        )

    def _notices(self, file: ConfigFile) -> Iterator[Notice]:
        """What the file says that nothing acts on."""
        for name, section in file.targets.items():
            given = section or TargetSection()
            for key, why in _OF_LATER.items():
                if getattr(given, key):
                    path = ("targets", name, key)
                    place = self._key_location(path)
                    yield no_effect_yet(REUSE, f"`{_dotted(path)}`{self._origin(path)}", why, place)
        for key, why, unless in _OF_OTHERS:
            value = getattr(file.defaults, key)
            if value is not None and value is not unless:
                default: YamlPath = ("defaults", key)
                yield no_effect(f"`{_dotted(default)}`{self._origin(default)}", why, self._key_location(default))

    # --- where values come from ---
    def _interpolate(self, value: Any, path: YamlPath, environ: Mapping[str, str]) -> Any:
        if isinstance(value, dict):
            return {key: self._interpolate(item, (*path, key), environ) for key, item in value.items()}
        if isinstance(value, list):
            return [self._interpolate(item, (*path, index), environ) for index, item in enumerate(value)]
        if not isinstance(value, str) or not _PLACEHOLDER.search(value):
            return value
        self._hidden.add(path)
        value = self._reveal(value, path, environ)
        self._named[path] = frozenset(_INTERPOLATION.findall(value))
        if _section(path) in {"spark", "state"}:
            shown = _for_people(path, _INTERPOLATION.sub(r"<\1>", value))
            self._unshown[path] = frozenset(name for name in self._named[path] if f"<{name}>" not in shown)
        for name in _INTERPOLATION.findall(value):
            if name not in environ:
                self._problems.append(self._not_set(name, path))
        return _INTERPOLATION.sub(lambda found: environ.get(found.group(1), ""), value)

    def _reveal(self, value: str, path: YamlPath, environ: Mapping[str, str]) -> str:
        """The value with secrets in it where only connections are made with it; variables keep them by name."""
        names = SECRET.findall(value)
        self._secrets.update(names)
        if not names or _section(path) == "variables":
            return value
        if _section(path) not in {"spark", "state"}:
            self._problems.append(
                MisplacedSecret(
                    f"`${{SECRET:{names[0]}}}` cannot stand in `{_dotted(path)}`, where its value would be shown",
                    hint="secrets belong in `spark`, `state`, and variables that only hooks ask for; what queries are"
                    f" made with is `${{ENV:{names[0]}}}`",
                    location=self._text.location(path),
                )
            )
        self._problems.extend(self._not_set(name, path) for name in names if name not in environ)
        self._secret.add(str(path[-1]))
        return SECRET.sub(lambda found: environ.get(found.group(1), ""), value)

    def _in_connections(self) -> dict[str, str]:
        """Values that make up the part of a connection or Spark setting which is not for people."""
        found: dict[str, str] = {}
        for path, names in self._unshown.items():
            if not self._given_by(path):
                found |= {name: self._environ[name] for name in names if name in self._environ}
        return found

    def _not_set(self, name: str, path: YamlPath) -> MissingEnvironmentVariable:
        return MissingEnvironmentVariable(
            f"environment variable `{name}` is not set, but `{_dotted(path)}` needs it",
            hint=f"set it: `export {name}=…`",
            location=self._text.location(path),
        )

    def _environment_use(self, file: ConfigFile, target: str) -> EnvironmentUse:
        """What of variables and defaults comes from the environment, for one target."""
        section = file.targets.get(target)
        own = {name.lower() for name in (section.variables if section else {})}
        in_variables: dict[str, frozenset[str]] = {}
        in_defaults: frozenset[str] = frozenset()
        for path, names in self._named.items():
            if self._given_by(path):
                continue
            if path[0] == "variables" and str(path[1]).lower() not in own:
                name = str(path[1]).lower()
                in_variables[name] = in_variables.get(name, frozenset()) | names
            elif path[0] == "targets" and path[1:3] == (target, "variables"):
                name = str(path[3]).lower()
                in_variables[name] = in_variables.get(name, frozenset()) | names
            elif path[0] == "defaults":
                in_defaults |= names
        used = in_defaults.union(*in_variables.values())
        values = {name: self._environ[name] for name in sorted(used) if name in self._environ}
        hidden = {f"${{ENV:{name}}}": value for name, value in (values | self._in_connections()).items()}
        hidden |= {f"${{SECRET:{name}}}": self._environ[name] for name in self._secrets if name in self._environ}
        return EnvironmentUse(
            values=MappingProxyType(values),
            hidden=MappingProxyType({mark: value for mark, value in hidden.items() if value}),
            in_variables=MappingProxyType(in_variables),
            in_defaults=in_defaults,
        )

    def _override(self, raw: dict[str, Any], path: tuple[str, ...], value: Any, origin: str) -> None:
        """Put a value in its place; a key is found whatever its case and is lower case when it is new."""
        here: Any = raw
        used: YamlPath = ()
        for number, part in enumerate(path):
            key = next((known for known in here if str(known).lower() == part.lower()), part.lower())
            used = (*used, key)
            if number == len(path) - 1:
                here[key] = value
            elif not isinstance(here.get(key), dict):
                here[key] = {}
            here = here[key]
        self._origins[used] = origin
        self._hidden.add(used)

    # --- checks ---
    def _validate(self) -> ConfigFile | None:
        try:
            return ConfigFile.model_validate(_without_empty(self._raw))
        except ValidationError as error:
            seen: set[YamlPath] = set()
            for fault in error.errors(include_url=False, include_context=True):
                path = tuple(part for part in fault["loc"] if not is_branch(part, self._raw, fault["loc"]))
                if path not in seen:
                    seen.add(path)
                    self._problems.append(self._translate(path, dict(fault)))
            return None

    def _translate(self, path: YamlPath, fault: Mapping[str, Any]) -> LaminaError:
        if fault["type"] == "extra_forbidden":
            known = known_keys(path[:-1])
            near = near_names(str(path[-1]), known)
            inside = f" in `{_dotted(path[:-1])}`" if len(path) > 1 else ""
            choices = f"the keys here are {', '.join(f'`{key}`' for key in sorted(known))}"
            return UnknownConfigKey(
                f"unknown key `{path[-1]}`{inside}{self._origin(path)}",
                hint=f"did you mean `{near[0]}`?" if near else choices,
                location=self._key_location(path),
            )
        if fault["type"] == "missing":
            return BadConfigValue(
                f"`{_dotted(path)}` is missing",
                hint=f"add `{path[-1]}: …` to `{CONFIG_FILE}`",
                location=self._text.location(path[:-1]),
            )
        return self._bad(path, expectation(fault))

    def _bad(self, path: YamlPath, expected: str, *, hint: str | None = None) -> BadConfigValue:
        shown = "" if self._is_hidden(path) else f", not `{_shorten(self._value_at(path))}`"
        return BadConfigValue(
            f"`{_dotted(path)}`{self._origin(path)} must be {expected}{shown}",
            hint=hint,
            location=self._key_location(path) if self._value_at(path) is None else self._value_location(path),
        )

    def _check(self, file: ConfigFile) -> None:
        self._check_schema_name(("name",), file.name)
        self._check_environment_name(("unsuffixed_environment",), file.unsuffixed_environment)
        self._check_spark(("spark",), file.spark)
        self._check_state(("state",), file.state)
        self._check_variables(("variables",), file.variables)
        if not _REPLAY.fullmatch(file.replay_on_change):
            self._problems.append(self._bad(("replay_on_change",), "`forward`, `full` or `bounded-14d`"))
        for name, section in file.targets.items():
            path = ("targets", name)
            self._check_environment_name(path, name)
            if section is not None:
                self._check_target(path, name, section, file)
        if file.default_target is not None and file.default_target not in (file.targets or {DEFAULT_TARGET: None}):
            self._problems.append(self._unknown_target(("default_target",), file.default_target, file.targets))

    def _check_target(self, path: YamlPath, name: str, section: TargetSection, file: ConfigFile) -> None:
        if section.base_schema is not None:
            self._check_schema_name((*path, "schema"), section.base_schema)
        if section.schema_suffix:
            self._check_schema_name((*path, "schema_suffix"), section.schema_suffix)
        if section.spark is not None:
            self._check_spark((*path, "spark"), section.spark)
        if section.state is not None:
            self._check_state((*path, "state"), section.state)
        self._check_variables((*path, "variables"), section.variables)
        for key, other in (("reuse_from", section.reuse_from), ("defer_sources_to", section.defer_sources_to)):
            if other is not None and other not in file.targets:
                self._problems.append(self._unknown_target((*path, key), other, file.targets))
            if other == name:
                self._problems.append(self._bad((*path, key), "another target"))

    def _unknown_target(self, path: YamlPath, name: str, targets: Iterable[str]) -> BadConfigValue:
        known = tuple(targets) or (DEFAULT_TARGET,)
        near = near_names(name, known)
        choices = ", ".join(f"`{target}`" for target in known)
        return self._bad(path, f"one of the targets {choices}", hint=f"did you mean `{near[0]}`?" if near else None)

    def _check_schema_name(self, path: YamlPath, name: str) -> None:
        reason = check_catalog_name(name, longest=LONGEST_SCHEMA_NAME)
        if reason is not None:
            self._problems.append(
                self._bad(path, f"usable in the name of a schema: {reason}", hint="use letters, digits and underscores")
            )

    def _check_environment_name(self, path: YamlPath, name: str) -> None:
        if name.lower() == RESERVED_ENVIRONMENT:
            self._problems.append(
                self._bad(path, "another name: `lamina` is kept for the physical tables", hint="choose another name")
            )
        else:
            self._check_schema_name(path, name)

    def _check_spark(self, path: YamlPath, section: SparkSection) -> None:
        if section.master is not None and section.remote is not None:
            self._problems.append(
                BadConfigValue(
                    f"`{_dotted(path)}` has both `master` and `remote`",
                    hint="keep `remote` for Spark Connect, or `master` for a session of your own",
                    location=self._key_location((*path, "remote")),
                )
            )
        if section.remote is not None and not section.remote.startswith("sc://"):
            self._problems.append(self._bad((*path, "remote"), "a Spark Connect address such as `sc://host:15002`"))

    def _check_state(self, path: YamlPath, state: str) -> None:
        scheme = re.split(r"[+:]", state, maxsplit=1)[0]
        if state != WAREHOUSE_STATE and (scheme not in STATE_SCHEMES or "://" not in state):
            self._problems.append(
                BadConfigValue(
                    f"`{_dotted(path)}`{self._origin(path)} is not an address of a state store",
                    hint=f"write `{DEFAULT_STATE}`, `postgresql://…`, `duckdb:///…` or `{WAREHOUSE_STATE}`",
                    location=self._value_location(path),
                )
            )

    def _check_variables(self, path: YamlPath, variables: Mapping[str, Any]) -> None:
        seen: dict[str, str] = {}
        for name in variables:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                self._problems.append(
                    BadConfigValue(
                        f"`{name}` cannot be the name of a variable",
                        hint="use letters, digits and underscores",
                        location=self._key_location((*path, name)),
                    )
                )
            if name.lower() in seen:
                self._problems.append(
                    BadConfigValue(
                        f"variables `{seen[name.lower()]}` and `{name}` are the same: case does not count",
                        hint="rename one of them",
                        location=self._key_location((*path, name)),
                    )
                )
            seen[name.lower()] = name

    def _check_targets_differ(self, targets: Mapping[str, Target]) -> None:
        seen: dict[object, str] = {}
        for name, target in targets.items():
            place = (target.schema.lower(), target.warehouse())
            if place in seen:
                self._problems.append(
                    BadConfigValue(
                        f"targets `{seen[place]}` and `{name}` both keep their models in schema `{target.schema}`",
                        hint=f"give one of them a schema of its own: `schema: {target.schema}_{name}`",
                        location=self._key_location(("targets", name)),
                    )
                )
            seen.setdefault(place, name)

    def _choose(
        self, file: ConfigFile, targets: Mapping[str, Target], wanted: str | None, variable: str | None
    ) -> Target:
        name = wanted or variable or file.default_target or next(iter(targets))
        if name in targets:
            return targets[name]
        near = near_names(name, targets)
        choices = ", ".join(f"`{known}`" for known in targets)
        origin = f", which environment variable `{TARGET_VARIABLE}` names" if variable and not wanted else ""
        raise UnknownName(
            f"`{CONFIG_FILE}` has no target `{name}`{origin}",
            hint=f"did you mean `{near[0]}`?" if near else f"the targets are {choices}",
        )

    # --- showing places and values ---
    def _origin(self, path: YamlPath) -> str:
        given = self._given_by(path)
        return f" (from {given})" if given else ""

    def _given_by(self, path: YamlPath) -> str | None:
        return next((origin for known, origin in self._origins.items() if path[: len(known)] == known), None)

    def _key_location(self, path: YamlPath) -> Location | None:
        return None if self._given_by(path) else self._text.key_location(path)

    def _value_location(self, path: YamlPath) -> Location | None:
        return None if self._given_by(path) else self._text.location(path)

    def _is_hidden(self, path: YamlPath) -> bool:
        is_secret = path[-1:] in {("state",), ("remote",)} or any(is_sensitive(str(part)) for part in path)
        return is_secret or path in self._hidden or isinstance(self._value_at(path), dict | list)

    def _value_at(self, path: YamlPath) -> Any:
        here: Any = self._raw
        for part in path:
            if isinstance(here, dict):
                here = here.get(part)
            elif isinstance(here, list) and isinstance(part, int) and part < len(here):
                here = here[part]
            else:
                return None
        return here


def _section(path: YamlPath) -> str | int:
    """The section that a value belongs to, for the project or for one target."""
    return path[2] if path[0] == "targets" and len(path) > 2 else path[0]


def _for_people(path: YamlPath, value: str) -> str:
    """What may be seen of a connection or a Spark setting."""
    if is_sensitive(str(path[-1])):
        return ""
    if path[-1] == "remote":
        return _BEHIND_PLACE.split(value.partition("://")[2], maxsplit=1)[0].rpartition("@")[2]
    return redact_url(value)


def _targets(file: ConfigFile, secret: frozenset[str]) -> dict[str, Target]:
    """Every target with what it inherits from the project; `secret` names Spark settings that hold secrets."""
    sections = file.targets or {DEFAULT_TARGET: None}
    return {name: _target(name, section or TargetSection(), file, secret) for name, section in sections.items()}


def _target(name: str, section: TargetSection, file: ConfigFile, secret: frozenset[str]) -> Target:
    spark = section.spark or SparkSection()
    own_place = spark.master is not None or spark.remote is not None
    place = spark if own_place else file.spark
    master = place.master or (None if place.remote else "local[*]")
    config = dict(file.spark.config) | dict(spark.config)
    return Target(
        name=name,
        schema=(section.base_schema or file.name).lower(),
        schema_suffix=section.schema_suffix.lower(),
        spark=SparkSettings(
            master=master,
            remote=place.remote,
            config=MappingProxyType(
                {
                    key: Secret(str(value)) if key in secret or is_sensitive(key) else value
                    for key, value in config.items()
                }
            ),
            shared_warehouse=place.shared_warehouse,
        ),
        state=Secret(section.state or file.state),
        reuse_from=section.reuse_from,
        reuse_hard_copy=section.reuse_hard_copy,
    )


def _without_empty(raw: dict[str, Any]) -> dict[str, Any]:
    """The file without sections and keys that have nothing behind them; in variables nothing is a value."""
    found: dict[str, Any] = {}
    for key, value in raw.items():
        if key == "targets" and isinstance(value, dict):
            # A target may have nothing of its own.
            found[key] = {
                name: _without_empty(section) if isinstance(section, dict) else section or {}
                for name, section in value.items()
            }
        elif isinstance(value, dict) and key != "variables":
            found[key] = _without_empty(value)
        elif value is not None:
            found[key] = value
    return found


def _dotted(path: YamlPath) -> str:
    return ".".join(str(part) for part in path)


def _shorten(value: Any) -> str:
    text = str(value).replace("`", "'")
    return text if len(text) <= 60 else f"{text[:57]}…"


def _lower_keys(variables: Mapping[str, Any]) -> dict[str, VariableValue]:
    return {name.lower(): value for name, value in variables.items()}
