"""`lamina.yaml` as text; no files."""

from __future__ import annotations

import pytest

from lamina.errors import (
    BadConfigValue,
    ConfigError,
    LaminaError,
    MissingEnvironmentVariable,
    UnknownConfigKey,
    UnknownName,
)
from lamina.project.configuration.read import read_config
from lamina.project.configuration.secrets import Secret, redact_url
from lamina.project.configuration.variables import mistaken_variables


def problems_of(content: str, **arguments: object) -> list[LaminaError]:
    with pytest.raises(LaminaError) as caught:
        read_config(content, **arguments)  # type: ignore[arg-type]
    return list(caught.value.problems)


def test_a_name_is_enough():
    config = read_config("name: shop\n")
    settings = config.settings()
    assert (settings.name, settings.mode, settings.target, settings.schema) == ("shop", "virtual", "prod", "shop")
    assert settings.unsuffixed_environment == "prod"
    assert config.target.spark.master == "local[*]"
    assert config.target.state.reveal() == "sqlite:///.lamina/state.db"


def test_everything_the_design_shows_can_be_written():
    config = read_config(
        """
name: shop
mode: virtual
spark: {master: "local[2]", config: {spark.sql.shuffle.partitions: 4}}
state: sqlite:///.lamina/state.db
defaults: {start: 2024-01-01, cron: "@daily", table_format: parquet}
targets: {dev: {schema: dev, reuse_from: prod}, prod: {schema: prod}}
variables: {region: eu, Factor: 2}
"""
    )
    assert config.target.name == "dev"
    assert config.target.reuse_from == "prod"
    assert config.settings().default_start == "2024-01-01"
    assert config.variables == {"region": "eu", "factor": 2}
    assert config.target.spark.revealed_config() == {"spark.sql.shuffle.partitions": 4}


def test_the_target_can_be_chosen():
    content = "name: shop\ntargets: {dev: {schema: a}, prod: {schema: b}}\ndefault_target: prod\n"
    assert read_config(content).target.schema == "b"
    assert read_config(content, target="dev").target.schema == "a"
    with pytest.raises(UnknownName, match="no target `prd`") as caught:
        read_config(content, target="prd")
    assert caught.value.hint == "did you mean `prod`?"


def test_an_unknown_key_comes_with_its_place_and_the_nearest_key():
    (problem,) = problems_of("name: shop\nspark:\n  mastr: local\n")
    assert isinstance(problem, UnknownConfigKey)
    assert problem.hint == "did you mean `master`?"
    assert (problem.location.file, problem.location.line, problem.location.column) == ("lamina.yaml", 3, 3)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("name: shop\nmode: sideways\n", 2),
        ("name: shop\nconcurrency: many\n", 2),
        ("name: shop\nconcurrency: 0\n", 2),
        ("name: shop\nstrict_sources: perhaps\n", 2),
        ("name: shop\nspark: [1]\n", 2),
        ("name: [shop]\n", 1),
        ("name: 'my shop'\n", 1),
        ("name: shöp\n", 1),
        ("name: 'x; DROP TABLE y'\n", 1),
        ("mode: virtual\n", 1),
        ("name: shop\nstate: mysql://x\n", 2),
        ("name: shop\nspark: {master: local, remote: 'sc://x'}\n", 2),
        ("name: shop\nspark: {remote: 'http://x'}\n", 2),
        ("name: shop\ntargets: {lamina: {schema: x}}\n", 2),
        ("name: shop\nunsuffixed_environment: lamina\n", 2),
        ("name: shop\ndefault_target: dev\n", 2),
        ("name: shop\ntargets:\n  dev: {schema: x, reuse_from: prd}\n  prod: {schema: y}\n", 3),
        ("name: shop\nreplay_on_change: backwards\n", 2),
        ("name: shop\nvariables: {'a-b': 1}\n", 2),
        ("name: shop\nvariables: {a: 1, A: 1}\n", 2),
        ("name: shop\ndefaults: {on_additive_change: maybe}\n", 2),
    ],
)
def test_a_wrong_value_is_refused_where_it_stands(content: str, line: int):
    (problem,) = problems_of(content)
    assert type(problem) is BadConfigValue
    assert problem.location is not None
    assert (problem.location.file, problem.location.line) == ("lamina.yaml", line)


@pytest.mark.parametrize("content", ["", "# nothing\n", "- a\n", "name: [\n", "name: a\nname: b\n", "a: &x [*x]\n"])
def test_what_is_no_mapping_is_refused(content: str):
    (problem,) = problems_of(content)
    assert type(problem) is ConfigError


def test_keys_with_nothing_behind_them_are_not_given():
    content = "name: shop\nvariables:\nspark:\n  master:\ntargets:\n  dev:\ndefaults:\n  start:\n"
    config = read_config(content)
    assert (config.target.name, config.target.spark.master) == ("dev", "local[*]")
    assert config.variables == {}
    assert read_config("name: shop\nvariables: {a: null}\n").variables == {"a": None}


def test_a_file_that_explodes_is_refused():
    levels = "".join(f"l{n}: &l{n} [{', '.join(['*l' + str(n - 1)] * 9)}]\n" for n in range(1, 9))
    (problem,) = problems_of(f"l0: &l0 [a]\n{levels}")
    assert type(problem) is ConfigError


def test_all_problems_come_together():
    found = problems_of("name: shop\nmoode: x\nconcurrency: many\nstate: ${ENV:NOWHERE}\n")
    assert [type(problem) for problem in found] == [MissingEnvironmentVariable, BadConfigValue, UnknownConfigKey]
    assert [problem.location.line for problem in found if problem.location] == [4, 3, 2]


def test_targets_that_keep_models_in_one_place_are_refused():
    (problem,) = problems_of("name: shop\ntargets:\n  dev: {schema: a}\n  prod: {schema: A}\n")
    assert type(problem) is BadConfigValue
    assert "`dev` and `prod`" in problem.message
    assert problem.location is not None
    assert problem.location.line == 4


def test_targets_of_two_warehouses_may_share_names():
    config = read_config("name: shop\ntargets: {dev: {}, prod: {spark: {remote: 'sc://prod:15002'}}}\n")
    assert config.targets["prod"].spark.master is None


def test_the_environment_is_interpolated():
    config = read_config("name: shop\nstate: postgresql://ann:${ENV:PW}@db/x\n", environ={"PW": "s3cret"})
    assert config.target.state.reveal() == "postgresql://ann:s3cret@db/x"
    (problem,) = problems_of("name: shop\nvariables:\n  a: ${ENV:PW}\n")
    assert isinstance(problem, MissingEnvironmentVariable)
    assert problem.location is not None
    assert problem.location.line == 3


def test_environment_variables_override_any_key():
    environ = {
        "LAMINA__SPARK__MASTER": "local[3]",
        "LAMINA__CONCURRENCY": "9",
        "LAMINA__VARIABLES__REGION": "us",
        "LAMINA__DEFAULTS__CRON": "@hourly",
        "LAMINA__TARGETS__DEV__SCHEMA": "elsewhere",
    }
    content = "name: shop\ntargets: {Dev: {schema: dev}}\nvariables: {Region: eu}\n"
    config = read_config(content, environ=environ)
    assert config.target.spark.master == "local[3]"
    assert config.concurrency == 9
    assert config.variables == {"region": "us"}
    assert config.defaults == {"cron": "@hourly"}
    assert config.target.schema == "elsewhere"
    assert read_config(content, environ=environ, overrides={"concurrency": 2}).concurrency == 2


TARGETS = "name: shop\ndefault_target: dev\ntargets: {dev: {schema: a}, prod: {schema: b}, other: {schema: c}}\n"


@pytest.mark.parametrize(
    ("option", "variable", "chosen"),
    [
        (None, None, "dev"),
        (None, "", "dev"),
        (None, "prod", "prod"),
        ("other", "prod", "other"),
        ("other", "none", "other"),
    ],
)
def test_an_option_wins_over_the_variable_and_that_over_the_file(option, variable, chosen):
    environ = {} if variable is None else {"LAMINA_TARGET": variable}
    assert read_config(TARGETS, target=option, environ=environ).target.name == chosen


def test_an_unknown_target_says_that_the_variable_names_it():
    with pytest.raises(UnknownName, match="environment variable `LAMINA_TARGET`") as caught:
        read_config(TARGETS, environ={"LAMINA_TARGET": "prd"})
    assert caught.value.hint == "did you mean `prod`?"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("LAMINA_STATE", "did you mean `LAMINA__STATE`?"),
        ("LAMINA_SPARK_MASTER", "did you mean `LAMINA__SPARK__MASTER`?"),
        ("LAMINA_SPARK__MASTER", "did you mean `LAMINA__SPARK__MASTER`?"),
        ("LAMINA_DEFAULTS_CRON", "did you mean `LAMINA__DEFAULTS__CRON`?"),
        ("LAMINA_CONCURENCY", "did you mean `LAMINA__CONCURRENCY`?"),
        ("LAMINA_TARGETT", "did you mean `LAMINA_TARGET`?"),
        ("lamina_target", "did you mean `LAMINA_TARGET`?"),
        ("LAMINA_ENV", "say it with `--env`"),
        ("LAMINA_EXECUTION_TIME", "say it with `--execution-time`"),
    ],
)
def test_a_variable_that_looks_like_a_setting_is_told(name, hint):
    assert mistaken_variables([name, "HOME"], "name: shop") == {name: hint}
    assert mistaken_variables([name], f"state: ${{ENV:{name}}}") == {}


def test_variables_that_mean_something_or_resemble_nothing_are_left_alone():
    ours = ("LAMINA_TARGET", "LAMINA__STATE", "LAMINA_STOP_AT", "LAMINA_ALL_FAULTS", "LAMINA_REQUIRE_FORMATS")
    ours += ("LAMINA_REQUIRE_SERVICES", "LAMINA_STRESS_SECONDS", "LAMINA_STRESS_SEED", "LAMINA_TEST_ENGINE")
    ours += ("LAMINA_TEST_REMOTE", "LAMINA_UPDATE_GOLDEN", "LAMINA_ARGUMENTS", "LAMINA_HOME", "LAMINA_DB_PASSWORD")
    assert mistaken_variables([*ours, "TARGET", "STATE"], "name: shop") == {}


def test_a_wrong_override_names_its_variable():
    (problem,) = problems_of("name: shop\n", environ={"LAMINA__CONCURENCY": "2"})
    assert isinstance(problem, UnknownConfigKey)
    assert "`LAMINA__CONCURENCY`" in problem.message
    assert problem.hint == "did you mean `concurrency`?"
    assert problem.location is None


def test_secrets_are_not_shown():
    content = """
name: shop
state: postgresql://ann:hunter2@db/x
spark: {config: {spark.hadoop.fs.s3a.secret.key: hunter2, spark.ui.enabled: false}}
"""
    config = read_config(content)
    assert "hunter2" not in repr(config)
    assert str(config.target.state) == "postgresql://ann:***@db/x"
    assert config.target.spark.revealed_config()["spark.hadoop.fs.s3a.secret.key"] == "hunter2"
    assert repr(Secret("abc")) == "Secret('***')"
    assert redact_url("a://b?token=x") == "a://b?token=***"


@pytest.mark.parametrize("password", [f"s3{between}same" for between in ("", "@", "/", ":", "#", "?", "%40", ";")])
@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:{}@db:5432/x",
        "postgresql://ann@corp:{}@db/x?sslmode=require",
        "postgresql://db/x?user=ann&password={}&sslmode=require",
        "postgresql://db/x?sslpassword={}",
        "jdbc:postgresql://db/x?PASSWORD={}&user=ann",
        "jdbc:sqlserver://db:1433;user=sa;password={};encrypt=true",
        "jdbc:mysql://(host=db,password={},user=ann)/x",
        "jdbc:oracle:thin:scott/{}@//db:1521/x",
        "sc://db:15002/;token={};x=y",
        "https://db/x?sv=1&sig={}",
    ],
)
def test_no_password_is_seen_in_an_address(url: str, password: str) -> None:
    shown = redact_url(url.format(password))
    assert "s3" not in shown
    assert "same" not in shown
    assert "db" in shown or "@" in password
    assert "***" in shown


@pytest.mark.parametrize(
    "url", ["postgresql://ann@db:5432/x", "sqlite:///a.db", "spark://a:7077,b:7077", "x://h?e=a@b.c"]
)
def test_an_address_without_a_password_is_shown_as_it_is(url: str) -> None:
    assert redact_url(url) == url


def test_a_wrong_spark_address_is_not_shown() -> None:
    (problem,) = problems_of("name: shop\nspark: {remote: 'http://host:15002/;token=sesame'}\n")
    assert "sesame" not in str(problem)
    config = read_config("name: shop\nspark: {remote: 'sc://host:15002/;token=sesame'}\n")
    assert "sesame" not in repr(config)


def test_a_wrong_secret_is_not_shown_in_the_message():
    (problem,) = problems_of("name: shop\nspark: {config: {my.password: [hunter2]}}\n")
    assert "hunter2" not in str(problem)
