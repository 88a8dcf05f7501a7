"""Whole projects on disk: what loads, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.errors import (
    BadConfigValue,
    BadName,
    BadSchedule,
    BadSeed,
    DefinitionError,
    DependencyCycle,
    DuplicateName,
    EmptyProject,
    NoProject,
    SyntaxProblem,
    UnknownColumn,
    UnknownConfigKey,
    UnknownKind,
    UnknownMacro,
    UnknownProperty,
    UnreadableFile,
)
from lamina.graph.model import SeedBody
from lamina.project import load
from lamina.project.discover import discover, find_root
from lamina.project.files import FileProject
from tests.project.conftest import NOW

VIEW = "MODEL (name {}, kind VIEW);\nSELECT 1 AS x\n"


def place(error) -> tuple[str | None, int | None]:
    return error.location.file, error.location.line


def test_models_and_seeds_of_any_depth_are_found(project):
    folder = project(
        {
            "models/a.sql": "MODEL (); SELECT id FROM shop.people",
            "models/deep/er/b.sql": "MODEL (name other.b); SELECT id FROM a",
            "models/.hidden/c.sql": "nonsense",
            "models/__pycache__/d.sql": "nonsense",
            "models/notes.txt": "nonsense",
            "seeds/people.csv": "id,name\n1,Ada\n",
        }
    )
    graph = folder.graph()
    assert list(graph.models) == ["shop.people", "shop.a", "other.b"]
    assert graph.models["other.b"].location.file == "models/deep/er/b.sql"


def test_files_come_in_the_same_order_everywhere(project):
    folder = project({f"models/{name}.sql": VIEW.format(name) for name in ("b", "a", "Z", "x/a")})
    assert [file.path for file in discover(folder.root).sql_models] == [
        "models/Z.sql",
        "models/a.sql",
        "models/b.sql",
        "models/x/a.sql",
    ]


def test_the_root_is_the_nearest_folder_with_a_configuration(project, tmp_path):
    folder = project({"models/x/a.sql": VIEW.format("a")})
    assert find_root(folder.root / "models" / "x") == folder.root.resolve()
    with pytest.raises(NoProject):
        find_root(tmp_path)
    with pytest.raises(NoProject):
        find_root(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("files", "expected", "file", "line"),
    [
        ({}, EmptyProject, "lamina.yaml", None),
        ({"models/a.sql": "MODEL (name a, enabled false); SELECT 1 AS x"}, EmptyProject, "lamina.yaml", None),
        ({"models/helper.py": "x = 1\n"}, EmptyProject, "lamina.yaml", None),
        ({"lamina.yaml": "name: shop\nmodde: x\n"}, UnknownConfigKey, "lamina.yaml", 2),
        ({"lamina.yaml": b"name: \xff\n"}, UnreadableFile, "lamina.yaml", 1),
        ({"models/a.sql": VIEW.format("s.x"), "models/b.sql": VIEW.format("s.X")}, DuplicateName, "models/b.sql", 1),
        ({"models/x.sql": VIEW.format("x"), "seeds/x.csv": "a\n1\n"}, DuplicateName, "seeds/x.csv", 1),
        (
            {"models/a.sql": "MODEL (name a); SELECT x FROM b", "models/b.sql": "MODEL (name b); SELECT x FROM a"},
            DependencyCycle,
            "models/a.sql",
            1,
        ),
        ({"models/a.sql": "MODEL (\n  name a,\n  kind FULLE\n);\nSELECT 1 AS x"}, UnknownKind, "models/a.sql", 3),
        ({"models/a.sql": "MODEL (\n  name a,\n  owneri b\n);\nSELECT 1 AS x"}, UnknownProperty, "models/a.sql", 3),
        ({"models/a.sql": "MODEL (name a);\nSELECT\n  @strt_ds AS x"}, UnknownMacro, "models/a.sql", 3),
        ({"models/a.sql": "MODEL (name a);\nSELECT 1 FROM WHERE y"}, SyntaxProblem, "models/a.sql", 2),
        ({"models/a.sql": ""}, SyntaxProblem, "models/a.sql", 1),
        (
            {"models/a.sql": "MODEL (name a);\nSELECT 1 AS x -- \xff".encode("latin-1")},
            UnreadableFile,
            "models/a.sql",
            2,
        ),
        ({"models/a b.sql": "MODEL (kind VIEW); SELECT 1 AS x"}, BadName, "models/a b.sql", 1),
        ({"models/a.sql": "MODEL (\n  name `a'b`.c\n); SELECT 1 AS x"}, BadName, "models/a.sql", 2),
        ({"models/a.sql": "MODEL (\n  name a.`ünï`\n); SELECT 1 AS x"}, BadName, "models/a.sql", 2),
        ({"models/a.sql": "MODEL (name a.`b; DROP TABLE c`); SELECT 1 AS x"}, BadName, "models/a.sql", 1),
        ({"seeds/my data.csv": "a\n1\n"}, BadName, "seeds/my data.csv", 1),
        (
            {"models/a.sql": "MODEL (\n  name a,\n  start '2024-02-01',\n  end '2024-01-01'\n);\nSELECT 1 AS x"},
            BadSchedule,
            "models/a.sql",
            4,
        ),
        (
            {"models/a.sql": "MODEL (\n name a,\n kind INCREMENTAL_BY_TIME_RANGE (time_column ds)\n);\nSELECT 1 AS x"},
            DefinitionError,
            "models/a.sql",
            3,
        ),
        (
            {
                "models/a.sql": "MODEL (\n name a,\n kind INCREMENTAL_BY_TIME_RANGE (time_column ds)\n);\n"
                "SELECT CAST(x AS DOUBLE) AS ds FROM t"
            },
            DefinitionError,
            "models/a.sql",
            3,
        ),
        ({"models/a.sql": "MODEL (name a, kind SEED (path '../seeds/none.csv'))"}, BadSeed, "models/a.sql", 1),
        ({"seeds/a.csv": ""}, BadSeed, "seeds/a.csv", 1),
        ({"seeds/a.csv": "x,,y\n"}, BadSeed, "seeds/a.csv", 1),
        ({"seeds/a.csv": "x,X\n"}, BadSeed, "seeds/a.csv", 1),
        (
            {"lamina.yaml": "name: shop\ndefaults:\n  kind: [1]\n", "models/a.sql": VIEW.format("a")},
            BadConfigValue,
            "lamina.yaml",
            3,
        ),
    ],
)
def test_bad_input_is_one_error_with_its_place(project, files, expected, file, line):
    error = project(files).problem()
    assert type(error) is expected
    assert place(error) == (file, line)
    assert error.exit_code == 2


def test_problems_of_all_files_come_together_and_in_order(project):
    folder = project(
        {
            "models/a.sql": "MODEL (name a, owneri b);\nSELECT 1 AS x",
            "models/b.sql": "MODEL (name b, kind FULLE);\nSELECT 1 AS x",
            "models/c.py": "from lamina import model\nraise ValueError('no')\n",
            "models/d.sql": VIEW.format("d"),
            "sources/s.yml": "- name: a.b\n  columnz: {}\n",
            "seeds/e.csv": "",
        }
    )
    found = folder.problems()
    assert [error.location.file for error in found] == [
        "models/a.sql",
        "models/b.sql",
        "models/c.py",
        "seeds/e.csv",
        "sources/s.yml",
    ]


def test_a_folder_instead_of_a_file_is_refused(project):
    folder = project({"models/a.sql": VIEW.format("a")})
    (folder.root / "lamina.yaml").unlink()
    (folder.root / "lamina.yaml").mkdir()
    assert isinstance(folder.problem(), UnreadableFile)


def test_a_seed_may_be_declared_with_types(project):
    folder = project(
        {
            "seeds/people.csv": "id;name\n1;Ada\n",
            "models/staging/p.sql": """MODEL (
              name shop.p,
              kind SEED (path '../../seeds/people.csv', csv_settings (delimiter = ';')),
              columns (id INT, name STRING)
            )""",
        }
    )
    graph = folder.graph()
    assert list(graph.models) == ["shop.p"]
    model = graph.models["shop.p"]
    assert isinstance(model.body, SeedBody)
    assert (model.type, model.body.path) == ("seed", "seeds/people.csv")
    assert folder.open().seed_text("seeds/people.csv") == "id;name\n1;Ada\n"


def test_the_root_of_the_project_can_be_named_in_a_path(project):
    folder = project({"data/x.csv": "a,b\n1,2\n", "models/m/x.sql": "MODEL (kind SEED (path '$root/data/x.csv'))"})
    model = folder.graph().models["shop.x"]
    assert model.body.path == "data/x.csv"
    assert [column.name for column in model.columns] == ["a", "b"]


def test_a_seed_is_its_content(project):
    folder = project({"seeds/x.csv": "a\n1\n"})
    before = folder.graph().models["shop.x"].body.content_hash
    folder.write({"seeds/x.csv": "a\n2\n"})
    after = folder.graph().models["shop.x"].body.content_hash
    assert before != after
    folder.write({"seeds/x.csv": "a\n1\n"})
    assert folder.graph().models["shop.x"].body.content_hash == before


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"seeds/x.csv": "a,b\n1,2\n3\n\n4,5,6\n"}, [(BadSeed, "1 field,", 3), (BadSeed, "3 fields", 5)]),
        ({"seeds/x.csv": 'a,b\n1,"2\n3"\n4,"5\n'}, [(BadSeed, "cannot be read", 4)]),
        ({"seeds/x.csv": b"a,b\n1,2\n\xe4,2\n"}, [(UnreadableFile, "byte 8 cannot be decoded", 3)]),
        ({"seeds/x.csv": b"\xef\xbb\xbfa,b\n1,\xff\n"}, [(UnreadableFile, "byte 9 cannot be decoded", 2)]),
        (
            {
                "data/x.csv": "a;b\n1;2\n|3;4|;5\n6;7;8\n",
                "models/x.sql": "MODEL (name x, kind SEED (path '../data/x.csv', csv_settings (delimiter = ';', "
                "quotechar = '|')), columns (a text, b int))",
            },
            [(BadSeed, "line 4 of seed `data/x.csv` has 3 fields, the header has 2", 4)],
        ),
        (
            {
                "data/x.csv": "a\nä\n",
                "models/x.sql": "MODEL (name x, kind SEED (path '../data/x.csv', csv_settings (encoding = 'ascii')), "
                "columns (a text))",
            },
            [(UnreadableFile, "is not ASCII text", 2)],
        ),
        (
            {
                "data/x.csv": "a\n1\n",
                "models/x.sql": "MODEL (name x, kind SEED (path '../data/x.csv', csv_settings (encoding = 'nope')), "
                "columns (a text))",
            },
            [(UnreadableFile, "there is no encoding `nope`", 1)],
        ),
    ],
)
def test_rows_of_a_seed_that_cannot_be_loaded_are_found_with_their_lines(project, files, expected):
    folder = project(files)
    for _ in range(2):
        found = folder.problems()
        assert [(type(each), each.location.line) for each in found] == [(kind, line) for kind, _, line in expected]
        assert all(words in each.message for each, (_, words, _) in zip(found, expected, strict=True))
    if "seeds/x.csv" in files:
        folder.write({"seeds/x.csv": "a,b\n1,2\n"})
        folder.graph()


def test_rows_of_seeds_are_wrong_beside_everything_else(project):
    folder = project(
        {
            "seeds/x.csv": "a,b\n1\n",
            "models/m.sql": "MODEL (name m);\nSELECT a, c FROM x",
            "models/n.sql": "MODEL (name n);\nSELECT FROM x",
        }
    )
    assert [type(each) for each in folder.problems()] == [UnknownColumn, SyntaxProblem, BadSeed]


def test_of_a_large_seed_only_the_beginning_is_looked_at(project, monkeypatch):
    monkeypatch.setattr(load, "_CHECKED_BYTES", 20)
    folder = project({"seeds/x.csv": "a,b\n" + "1,ää\n" * 3 + "broken\n"})
    folder.graph()
    folder.write({"seeds/x.csv": "a,b\n1\n" + "1,ä\n" * 10})
    assert [each.location.line for each in folder.problems()] == [2]
    folder.write({"seeds/x.csv": 'a,b\n1,"ä\nä' + "ä" * 10 + '"\n'})
    folder.graph()


def test_rows_of_a_seed_are_read_once(project, monkeypatch):
    folder = project({"seeds/x.csv": "a,b\n1,2\n", "models/m.sql": "MODEL (name m);\nSELECT a FROM x"})
    folder.graph()
    monkeypatch.setattr(load, "problems_in", None)
    folder.write({"models/m.sql": "MODEL (name m);\nSELECT b FROM x"})
    folder.graph()


def test_missing_columns_of_declared_tables_and_seeds_are_found(project):
    folder = project(
        {
            "sources/raw.yml": "sources:\n- name: raw.o\n  columns: {id: int, item: string}\n",
            "seeds/people.csv": "id,name\n1,Ada\n",
            "models/m.sql": "MODEL (name m);\nSELECT\n  o.itm,\n  p.naem\nFROM raw.o JOIN people AS p ON o.id = p.id",
        }
    )
    found = folder.problems()
    assert [(type(each), place(each)) for each in found] == [
        (UnknownColumn, ("models/m.sql", 3)),
        (UnknownColumn, ("models/m.sql", 4)),
    ]
    assert "declare it in `sources/raw.yml`" in found[0].hint
    assert found[1].hint == "did you mean `name`?"


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("code string, nam string", "`nam` declared but not in the file; `Name` in the file but not declared"),
        ("code string", "`Name` in the file but not declared"),
        ("CODE string, name string, zz int", "`zz` declared but not in the file"),
    ],
)
def test_a_seed_without_the_columns_that_its_model_declares_is_found(project, columns, said):
    model = f"MODEL (name c, kind SEED (path '../seeds/c.csv'), columns ({columns}));"
    folder = project({"models/c.sql": model, "seeds/c.csv": "code,Name\nDE,x\n"})
    problem = folder.problem()
    assert (type(problem), problem.location.file, problem.location.line) == (BadSeed, "seeds/c.csv", 1)
    assert problem.message.endswith(said)
    folder.write({"seeds/c.csv": ""})
    assert folder.problem().message == "`seeds/c.csv` is empty"
    folder.write({"seeds/c.csv": " code , NAME\nDE,x\n"})
    folder.write({"models/c.sql": model.replace(columns, "name string, CODE string")})
    assert list(folder.graph().models) == ["shop.c"]


def test_a_seed_in_another_encoding_is_read_as_declared(project):
    folder = project(
        {
            "seeds/x.csv": "a\r\nä\r\n".encode("latin-1"),
            "models/x.sql": "MODEL (kind SEED (path '../seeds/x.csv', csv_settings (encoding = 'latin-1')))",
        }
    )
    opened = folder.open()
    with pytest.raises(UnreadableFile):
        opened.seed_text("seeds/x.csv")
    opened.graph(NOW)
    assert opened.seed_text("seeds/x.csv") == "a\r\nä\r\n"


def test_lines_of_a_seed_that_end_in_their_own_way_have_columns(project):
    kind = "SEED (path '../seeds/x.csv', csv_settings (lineterminator = '|'))"
    folder = project({"models/x.sql": f"MODEL (name shop.x, kind {kind})", "seeds/x.csv": "a,b|1,2|"})
    assert [column.name for column in folder.graph().models["shop.x"].columns] == ["a", "b"]


def test_sources_are_read_in_all_their_forms(project):
    folder = project(
        {
            "models/a.sql": "MODEL (name a); SELECT * FROM raw.orders",
            "external_models.yaml": "- name: raw.orders\n  description: from the till\n"
            "  columns: {id: INT, at: TIMESTAMP}\n",
            "sources/more.yml": """
sources:
  - name: crm
    tables:
      - name: users
        columns: [{name: id, type: bigint, description: the key}]
        freshness: {strategy: column, type: timestamp, column: updated_at}
  - {schema: web, table: hits, audits: [{name: not_null, columns: [id]}]}
""",
        }
    )
    graph = folder.graph()
    assert [(column.name, column.type) for column in graph.models["shop.a"].columns] == [("id", None), ("at", None)]
    assert graph.sources["raw.orders"].columns[0].type == "int"
    assert graph.sources["raw.orders"].description == "from the till"
    assert [notice.code for notice in graph.warnings] == ["LAM-WARN-041"]


def test_keys_beside_the_sources_of_a_file_are_checked(project):
    yaml = "version: 2\nsources: [{name: raw.t}]\nexposures: []\nsource: [{name: raw.u}]\n"
    problems = project({"models/a.sql": "MODEL (name a); SELECT 1 AS x", "sources/s.yml": yaml}).problems()
    assert [(problem.code, problem.location.line) for problem in problems] == [("LAM-CFG-002", 3), ("LAM-CFG-002", 4)]
    assert problems[1].hint == "did you mean `sources`?"


@pytest.mark.parametrize("columns", ["{id: int, ID: string}", "[id, ID]", "[{name: id}, {name: ID}]"])
def test_a_source_cannot_have_a_column_twice(project, columns):
    yaml = f"- name: raw.t\n  columns: {columns}\n"
    problem = project({"models/a.sql": "MODEL (name a); SELECT id FROM raw.t", "sources/s.yml": yaml}).problem()
    assert (problem.code, problem.location.file, problem.location.line) == ("LAM-CFG-003", "sources/s.yml", 2)
    assert "`id` and `ID`" in problem.message


def test_a_source_without_a_name_is_told_by_its_place_in_the_list(project):
    yaml = "sources:\n- name: raw.t\n- columns: {id: INT}\n"
    error = project({"models/a.sql": "MODEL (name a); SELECT 1 AS x", "sources/s.yml": yaml}).problem()
    assert error.message == "entry 2 of `sources` has no `name`"
    assert (error.location.file, error.location.line) == ("sources/s.yml", 3)


def test_strict_sources_make_warnings_errors(project):
    folder = project({"models/a.sql": "MODEL (name a); SELECT x FROM raw.t"})
    assert [notice.code for notice in folder.graph().warnings] == ["LAM-WARN-001"]
    assert folder.problem(environ={"LAMINA__STRICT_SOURCES": "true"}).code == "LAM-GRAPH-005"


def test_macros_of_the_project_are_used(project):
    folder = project(
        {
            "macros/money.py": "from lamina import macro\nfrom macros.rates import RATE\n\n"
            "@macro()\ndef euros(evaluator, cents):\n    return f'{cents} / {RATE}'\n",
            "macros/rates.py": "RATE = 100\n",
            "models/a.sql": "MODEL (name a); SELECT @EUROS(x) AS x FROM raw.t",
        }
    )
    body = folder.graph().models["shop.a"].body
    assert body.query.expanded == "SELECT x / 100 AS x FROM raw.t"
    assert [module.name for module in body.macros.modules] == ["macros.money", "macros.rates"]


def test_a_broken_macro_file_is_the_only_problem(project):
    folder = project(
        {
            "macros/money.py": "from lamina import macro\n\n\n1 / 0\n",
            "models/a.sql": "MODEL (name a); SELECT @euros(x) AS x FROM raw.t",
        }
    )
    error = folder.problem()
    assert (error.code, *place(error)) == ("LAM-DEF-004", "macros/money.py", 4)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("FUL", "LAM-SQL-003"),
        ("{name: FULL, foo: 1}", "LAM-SQL-002"),
        ("{name: INCREMENTAL_BY_TIME_RANGE, time_column: ds, batch_size: 0}", "LAM-SQL-004"),
    ],
)
def test_a_default_kind_is_checked_when_every_model_names_its_own(project, kind, code):
    config = f"name: shop\ndefaults:\n  kind: {kind}\n"
    problem = project({"lamina.yaml": config, "models/a.sql": "MODEL (name a, kind FULL); SELECT 1 AS x"}).problem()
    assert (problem.code, problem.location.file, problem.location.line) == (code, "lamina.yaml", 3)


def test_an_unknown_default_dialect_is_one_error_where_it_is_written(project):
    models = {f"models/{name}.sql": "MODEL (kind FULL); SELECT 1 AS x" for name in "abc"}
    problem = project({"lamina.yaml": "name: shop\ndefaults:\n  dialect: sprak\n", **models}).problem()
    assert (problem.location.file, problem.location.line) == ("lamina.yaml", 3)
    assert problem.hint == "Did you mean `spark`?"


def test_variables_and_defaults_of_the_configuration_are_used(project):
    folder = project(
        {
            "lamina.yaml": "name: shop\nvariables: {region: eu}\n"
            "defaults: {cron: '@hourly', kind: FULL, start: 2024-01-01}\n",
            "models/a.sql": "MODEL (name a); SELECT @region AS region",
        }
    )
    model = folder.graph().models["shop.a"]
    assert (model.kind.name, model.cron, model.start) == ("FULL", "@hourly", "2024-01-01")
    assert model.body.query.expanded == "SELECT 'eu' AS region"
    assert folder.open().settings().default_start == "2024-01-01"


def test_targets_that_give_models_the_same_names_are_refused(project):
    files = {
        "lamina.yaml": "name: shop\ntargets:\n  dev: {schema: dev}\n  prod: {schema: prod}\n",
        "models/a.sql": VIEW.format("a"),
    }
    folder = project(files)
    assert list(folder.graph(target="dev").models) == ["dev.a"]
    assert list(folder.graph(target="prod").models) == ["prod.a"]
    folder.write({"models/b.sql": VIEW.format("raw.b")})
    error = folder.problem()
    assert type(error) is BadConfigValue
    assert place(error) == ("lamina.yaml", 4)
    folder.write(
        {"lamina.yaml": "name: shop\ntargets:\n  dev: {schema: dev, schema_suffix: _dev}\n  prod: {schema: prod}\n"}
    )
    assert set(folder.graph(target="dev").models) == {"dev.a", "raw_dev.b"}


def test_a_project_that_cannot_be_written_to_loads_without_a_cache(project):
    folder = project({"models/a.sql": VIEW.format("a")})
    # A file where the folder should be makes every write fail, for any user.
    (folder.root / ".lamina").write_text("")
    assert list(folder.graph().models) == ["shop.a"]
    assert list(folder.graph().models) == ["shop.a"]


def test_a_link_back_to_a_folder_is_followed_once(project):
    folder = project({"models/x/a.sql": VIEW.format("a")})
    Path(folder.root / "models" / "x" / "again").symlink_to(folder.root / "models", target_is_directory=True)
    assert list(folder.graph().models) == ["shop.a"]


def test_a_kept_configuration_is_that_of_the_target_that_a_variable_names(tmp_path: Path):
    (tmp_path / "lamina.yaml").write_text("name: shop\ntargets: {dev: {schema: a}, prod: {schema: b}}\n")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "m.sql").write_text("MODEL (name m, kind FULL); SELECT 1 AS x")

    def schema(**environ: str) -> str:
        project = FileProject(tmp_path, environ=environ)
        project.graph(NOW)
        return project.settings().schema

    assert [schema(), schema(LAMINA_TARGET="prod"), schema(), schema(LAMINA_TARGET="prod")] == ["a", "b", "a", "b"]


def test_variables_that_look_like_settings_are_found_without_reading_more_than_they_need(tmp_path: Path):
    (tmp_path / "lamina.yaml").write_text("name: shop\nvariables: {x: '${ENV:LAMINA_STATE}'}\n")
    environ = {"LAMINA_STATE": "1", "LAMINA_SPARK_REMOTE": "sc://x"}
    found = FileProject(tmp_path, environ=environ).mistaken_variables()
    assert found == {"LAMINA_SPARK_REMOTE": "did you mean `LAMINA__SPARK__REMOTE`?"}
