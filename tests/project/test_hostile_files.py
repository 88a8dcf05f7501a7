"""Files nested or written so badly that readers give up: errors with places, never a failure of Python itself."""

from __future__ import annotations

import pytest

DEEP = 5000
FINE = "MODEL (name shop.a, kind FULL);\nSELECT 1 AS id\n"
QUERIES = {
    "brackets": "(" * DEEP + "1" + ")" * DEEP,
    "brackets never closed": "(" * DEEP,
    "cases": "CASE WHEN 1 THEN " * DEEP + "1" + " END" * DEEP,
    "types": "CAST(1 AS " + "ARRAY<" * DEEP + "INT" + ">" * DEEP + ") AS x",
    "negations": "NOT " * DEEP + "1",
    "minus": "- " * DEEP + "1",
    "tables": "1 FROM " + "FROM " * DEEP + "a",
    "joins": "1 AS x FROM shop.ok" + " JOIN shop.ok" * DEEP,
    "lambdas": "f(" + "x -> " * DEEP + "1) AS x",
    "intervals": "INTERVAL " * DEEP + "1 DAY",
    "a chain": "1" + " + 1" * 6000,
    "subqueries": "* FROM " + "(SELECT * FROM " * DEEP + "a" + ")" * DEEP,
    "macros": "@IF(TRUE, " * 150 + "1" + ")" * 150,
    "a string": "'x",
    "a name": "`x",
    "a comment": "1 /* x",
}


@pytest.mark.parametrize("name", QUERIES)
def test_deep_and_broken_queries_are_problems_with_their_place(project, name: str):
    query = f"MODEL (name shop.a, kind FULL);\nSELECT {QUERIES[name]}"
    problems = project({"models/ok.sql": FINE.replace("shop.a", "shop.ok"), "models/a.sql": query}).problems()

    assert {problem.code for problem in problems} <= {"LAM-SQL-001", "LAM-SQL-005"}
    assert all(problem.location.file == "models/a.sql" and problem.location.line for problem in problems)


PYTHON = {
    "brackets": "x = " + "(" * DEEP + "1" + ")" * DEEP,
    "minus": "x = " + "-" * 100_000 + "1",
    "a chain": "x = 1" + "+1" * 20_000,
    "calls": "x = a" + "()" * 20_000,
    "blocks": "".join(" " * depth + "if 1:\n" for depth in range(300)) + " " * 300 + "pass",
    "nothing": "x = '\0'",
}


@pytest.mark.parametrize("name", PYTHON)
@pytest.mark.parametrize("file", ["models/p.py", "macros/p.py", "signals/p.py", "helper.py"])
def test_deep_python_files_are_problems_with_their_place(project, file: str, name: str):
    files = {"models/a.sql": FINE, "models/uses.py": "x = 1" if file != "helper.py" else "import helper"}
    problem = project({**files, file: PYTHON[name]}).problem()

    assert problem.code == "LAM-DEF-004"
    assert problem.location.file == file
    assert problem.location.line


YAML = {
    "lists": ("variables: {x: " + "[" * DEEP + "]" * DEEP + "}", 2),
    "mappings": ("variables: " + "{a: " * DEEP + "1" + "}" * DEEP, 2),
    "never closed": ("variables: {x: " + "[" * DEEP, 2),
    "lines": ("variables:\n" + "".join(" " * (depth + 1) + "a:\n" for depth in range(300)), 52),
    "aliases": (
        "a: &a0 [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)),
        None,
    ),
    "an alias of itself": ("variables: {x: &a [*a]}", 2),
    "binary": ("variables: {x: !!binary aGVsbG8=}", 2),
    "binary that is none": ("variables: {x: !!binary é}", 2),
    "an object": ("variables: !!python/object/apply:os.getcwd []", 2),
    "a tag": ("variables: {x: !own 1}", 2),
    "no truth": ("variables: {x: !!bool x}", 2),
    "no number": ("variables: {x: !!int x}", 2),
    "digits": ("variables: {x: " + "9" * 5000 + "}", 2),
    "hexadecimal digits": ("variables: {x: 0x" + "f" * 5000 + "}", 2),
    "sixties": ("variables: {x: 1" + ":59" * 3000 + "}", 2),
    "sixties and a half": ("variables: {x: 1" + ":59" * 3000 + ".5}", 2),
    "keys": ("? [a]\n: 1", 2),
    "a number as a key": ("1: 2", 2),
    "the same key": ("mode: virtual\nmode: direct", 3),
    "merging": ("<<: 5", 2),
    "nothing": ("mode: virt\0ual", None),
    "more documents": ("---\nname: b", None),
}


@pytest.mark.parametrize("name", YAML)
def test_hostile_configuration_is_a_problem_with_its_place(project, name: str):
    text, line = YAML[name]
    problems = project({"lamina.yaml": f"name: shop\n{text}\n", "models/a.sql": FINE}).problems()

    assert {problem.code[:7] for problem in problems} == {"LAM-CFG"}
    assert problems[0].location.file == "lamina.yaml"
    assert line is None or problems[0].location.line == line


@pytest.mark.parametrize("name", ["lists", "mappings", "never closed", "binary", "digits", "an object", "keys"])
@pytest.mark.parametrize("file", ["sources/s.yml", "external_models.yaml"])
def test_hostile_sources_are_problems_with_their_place(project, file: str, name: str):
    problems = project({file: f"{YAML[name][0]}\n", "models/a.sql": FINE}).problems()

    assert all(problem.location.file == file and problem.location.line for problem in problems)


@pytest.mark.parametrize(
    ("encoding", "is_fine"), [("utf-16", False), ("utf-32", False), ("latin-1", False), ("utf-8-sig", True)]
)
def test_files_in_other_encodings_are_problems_of_these_files(project, encoding: str, is_fine: bool):
    files = {"models/a.sql": FINE + "-- é", "macros/m.py": "x = 'é'\n", "sources/s.yml": "[] # é\n"}
    folder = project({name: text.encode(encoding) for name, text in files.items()})

    if is_fine:
        assert folder.graph().models
    else:
        assert {problem.location.file for problem in folder.problems()} == set(files)


def test_types_of_sources_are_nested_so_deep_and_no_deeper(project):
    columns = "- name: raw.t\n  columns: {{a: '{0}'}}\n"
    fine, deep = (columns.format("array<" * depth + "int" + ">" * depth) for depth in (99, 101))

    assert project({"sources/s.yml": fine, "models/a.sql": FINE}).graph()
    problem = project({"sources/s.yml": deep, "models/a.sql": FINE}).problem()
    assert (problem.location.file, problem.location.line) == ("sources/s.yml", 2)
