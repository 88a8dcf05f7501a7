"""Statements behind a model's view, as files and decorators give them."""

from __future__ import annotations

import pytest

from lamina.errors import DefinitionError, LaminaError, SyntaxProblem
from lamina.graph.kinds import Seed
from lamina.identity.fingerprint import version_of

BLOCK = "ON_VIRTUAL_UPDATE_BEGIN; {}; ON_VIRTUAL_UPDATE_END;"
GRANT = "GRANT SELECT ON VIEW @this_model TO r"


def texts(model) -> list[str]:
    return [statement.expanded for statement in model.body.on_virtual_update]


def test_a_seed_keeps_its_statements_and_its_content(project):
    folder = project(
        {
            "seeds/codes.csv": "id\n1\n",
            "models/codes.sql": "MODEL (name shop.codes, kind SEED (path '$root/seeds/codes.csv'));"
            + BLOCK.format(GRANT),
        }
    )
    (found,) = folder.graph().models.values()
    assert isinstance(found.kind, Seed)
    assert texts(found) == [GRANT]
    assert found.body.content_hash


def test_defaults_of_the_project_come_first_for_every_sort_of_model(project):
    folder = project(
        {
            "lamina.yaml": "name: shop\ndefaults: {on_virtual_update: ['COMMENT ON TABLE @this_model IS @team']}\n"
            "variables: {team: us}\n",
            "seeds/bare.csv": "id\n1\n",
            "models/a.sql": "MODEL (name shop.a); SELECT 1 AS id; " + BLOCK.format(GRANT),
            "models/b.py": 'from lamina import model\n@model("shop.b", columns={"id": "int"}, '
            f'on_virtual_update=["{GRANT}"])\ndef b(context, **kwargs): ...\n',
        }
    )
    models = folder.graph().models
    default = "COMMENT ON TABLE @this_model IS 'us'"
    assert texts(models["shop.a"]) == [default, GRANT]
    assert texts(models["shop.b"]) == [default, GRANT]
    assert texts(models["shop.bare"]) == [default]


def test_they_are_metadata_and_never_build_anything_again(project):
    folder = project({"models/a.sql": "MODEL (name shop.a); SELECT 1 AS id"})
    before = version_of(folder.graph().models["shop.a"], {})
    folder.write({"models/a.sql": "MODEL (name shop.a); SELECT 1 AS id; " + BLOCK.format(GRANT)})
    after = version_of(folder.graph().models["shop.a"], {})
    assert before.version == after.version
    assert before.definition_id != after.definition_id


@pytest.mark.parametrize(
    ("text", "sort", "line"),
    [
        ("SELECT 1 AS id;\n" + BLOCK.format("DELETE FROM x WHERE ds = @start_ds"), DefinitionError, 2),
        ("SELECT 1 AS id;\n" + BLOCK.format("INSERT INTO x SELECT @broken"), SyntaxProblem, 2),
    ],
)
def test_what_cannot_be_run_is_refused_where_it_is_written(project, text, sort, line):
    macro = 'from lamina import macro\n@macro()\ndef broken(evaluator):\n    return "(\'"\n'
    folder = project(
        {"models/a.sql": f"MODEL (name shop.a); {text}".replace("@broken", "@broken()"), "macros/m.py": macro}
    )
    problem = folder.problem()
    assert isinstance(problem, sort)
    assert problem.location.line == line


def test_no_statement_stands_around_a_seed(project):
    folder = project(
        {
            "seeds/codes.csv": "id\n1\n",
            "models/codes.sql": "MODEL (name shop.codes, kind SEED (path '$root/seeds/codes.csv'));\nSET x = 1;",
        }
    )
    problem = folder.problem()
    assert isinstance(problem, LaminaError)
    assert "no statement can stand before or after it" in problem.message
    assert "ON_VIRTUAL_UPDATE_BEGIN" in (problem.hint or "")
