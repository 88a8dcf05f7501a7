"""Writes docs/reference/macros.md: every variable and function of macros in SQL."""

# ruff: noqa: E501  # what is said of a key is one line of a table
from __future__ import annotations

import inspect

from lamina.sql.macros.control import BUILTINS
from lamina.sql.macros.expander import PREDEFINED
from lamina.sql.macros.gates import GATES
from lamina.sql.macros.python_macros import MacroEvaluator
from lamina.sql.macros.times import TIME_NAMES
from tools.documented import NOTICE, documented, table

HEAD = f"""\
# Macros

{NOTICE}

Macros stand in queries, in statements around them, in audits and in most properties of headers. `@name` is a variable,
`@name(...)` a function, `@{{name}}` a variable inside of a name. An unknown one is an error that names the nearest.
`lamina render MODEL` shows what becomes of them.

## Time

A variable is one of `@start_…`, `@end_…` and `@execution_…`, with one of these endings. `@start_…` and `@end_…` are the
first and the last moment of the interval that is computed, `@execution_…` the moment that the command works at;
`@latest_…` is another name of the latter. All of it is UTC. Their values are no part of a model's version.
"""
TIMES = {
    "dt": "A timestamp.",
    "dtntz": "A timestamp without time zone.",
    "date": "A date.",
    "ds": "Text: `'2024-01-31'`.",
    "ts": "Text: `'2024-01-31 06:00:00'`.",
    "tstz": "Text: `'2024-01-31 06:00:00+00:00'`.",
    "epoch": "Seconds since 1970.",
    "millis": "Milliseconds since 1970.",
    "hour": "The hour of the day, from 0 to 23.",
}
VARIABLES = {
    "this_model": "The table of the model itself; in audits the rows that are looked at.",
    "runtime_stage": "What the text is expanded for, such as `'loading'` or `'evaluating'`.",
    "model_kind_name": "The kind of the model, such as `'FULL'`.",
}
OWN = """\
Beside these there are the `variables` of [lamina.yaml](configuration.md), of the target, of the model's blueprint, and
what `@DEF` defines; of one name the nearest counts.
"""
FUNCTIONS = {
    "def": "`@DEF(name, value)`, above the query: defines a variable; with `x -> …` a function.",
    "if": "`@IF(condition, value, otherwise)`: one of the two, or nothing. The condition is evaluated without Spark.",
    "each": "`@EACH(items, x -> …)`: what becomes of each item, joined by commas.",
    "reduce": "`@REDUCE(items, (x, y) -> …)`: all items put together, two at a time.",
    "filter": "`@FILTER(items, x -> condition)`: the items for which the condition holds.",
    "eval": "`@EVAL(expression)`: its value, computed without Spark.",
    "sql": "`@SQL('text')`: the text as SQL, with `@name` inside filled in.",
    "var": "`@VAR('name', default)`: a variable by a name that is computed, or the default.",
    "blueprint_var": "`@BLUEPRINT_VAR('name', default)`: the same of the blueprint alone.",
    "and": "`@AND(a, b, …)`: the conditions joined; empty ones are left out.",
    "or": "`@OR(a, b, …)`: the same with OR.",
    "star": "`@STAR(relation, alias, exclude := [a], prefix := 'p_', suffix := '_s')`: the relation's columns.",
    "union": "`@UNION('all', a, b, …)`: the rows of several relations, over the columns that they share; or `'distinct'`.",
    "pivot": "`@PIVOT(column, ['a', 'b'], agg := 'SUM', then_value := x)`: one aggregated column for each value.",
    "deduplicate": "`@DEDUPLICATE(relation, [key], ['at DESC'])`: the first row of each key in that order.",
    "date_spine": "`@DATE_SPINE('day', '2024-01-01', '2024-12-31')`: a row for each day, week, month, quarter or year.",
    "generate_surrogate_key": "`@GENERATE_SURROGATE_KEY(a, b, hash_function := 'SHA256')`: one text for several columns.",
    "safe_add": "`@SAFE_ADD(a, b, …)`: the sum, NULL counting as 0; NULL when all are.",
    "safe_sub": "`@SAFE_SUB(a, b, …)`: the difference, in the same way.",
    "safe_div": "`@SAFE_DIV(a, b)`: the quotient, NULL where the divisor is 0.",
    "haversine_distance": "`@HAVERSINE_DISTANCE(lat1, lon1, lat2, lon2, 'km')`: the distance on a globe; `'mi'` if not said.",
}
GATE_TEXT = """\
## Clauses that come and go

`@WHERE(condition) x = 1` keeps the clause behind it where the condition holds, and leaves it out where not:
"""
PYTHON_TEXT = """\
## Macros in Python

A function in `macros/*.py` is called by its name, in any case:

```python
# macros/money.py
from lamina import macro


@macro()
def cents(evaluator, column):
    return f"CAST({column} * 100 AS BIGINT)"
```

It gets the evaluator first, then what is written in the call as sqlglot expressions, and returns SQL text, a list of such
texts, or `None` for nothing. Its code belongs to the versions of the models that call it, unless it is declared with
`@macro(metadata_only=True)`. `evaluator` has:
"""
EVALUATOR = {
    "blueprint_var": "`blueprint_var(name, default)`: a variable of the blueprint.",
    "columns_to_types": "`columns_to_types(relation)`: its columns with their types.",
    "dialect": "The dialect in which returned texts are read.",
    "evaluate": "`evaluate(expression)`: the value of an expression without columns.",
    "locals": "Variables of the blueprint and arguments of an audit, by name.",
    "model_kind_name": "The kind of the model.",
    "parse_one": "`parse_one(text)`: SQL as an expression.",
    "runtime_stage": "What the text is expanded for.",
    "this_model": "The table of the model as SQL.",
    "var": "`var(name, default)`: a variable.",
}


def page() -> str:
    """The whole page."""
    endings = sorted({name.partition("_")[2] for name in TIME_NAMES}, key=list(TIMES).index)
    lines = [HEAD, *table(("ending", "gives"), _rows(documented(endings, TIMES, "times"), "@start_"))]
    lines += [
        "## Other variables",
        "",
        *table(("variable", "is"), _rows(documented(sorted(PREDEFINED), VARIABLES, "variables"), "@")),
    ]
    lines += [
        OWN,
        "## Functions",
        "",
        *table(("function", "gives"), _rows(documented(BUILTINS, FUNCTIONS, "functions"), "@", upper=True)),
    ]
    lines += [
        GATE_TEXT,
        *table(
            ("gate", "clause"), ((f"`@{name.upper()}(condition)`", f"`{clause}`") for name, clause in GATES.items())
        ),
    ]
    public = [name for name, _ in inspect.getmembers(MacroEvaluator) if not name.startswith("_")]
    lines += [PYTHON_TEXT, *table(("name", "is"), _rows(documented(public, EVALUATOR, "evaluator"), "evaluator."))]
    return "\n".join(lines).rstrip() + "\n"


def _rows(told: list[tuple[str, str]], prefix: str, *, upper: bool = False) -> list[tuple[str, str]]:
    return [(f"`{prefix}{name.upper() if upper else name}`", text) for name, text in told]
