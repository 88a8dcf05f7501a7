"""Whatever lies in the files of a project: it is a graph, or problems with codes and places, and nothing else.

`LAMINA_FUZZ=5000` tries that many examples of each instead of a few.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lamina.errors import LaminaError
from lamina.project.files import FileProject
from lamina.timeline.interval import Instant

NOW = Instant.parse_iso("2024-03-01T00:00:00Z")
EXAMPLES = sorted((Path(__file__).parents[1] / "fixtures" / "seed_examples").glob("*.sql"))
TEXTS = [path.read_text() for path in EXAMPLES]
OK = "MODEL (name shop.ok, kind FULL);\nSELECT 1 AS id, DATE '2024-01-01' AS ds, 'x' AS name\n"
CONFIG = """name: shop
default_target: dev
concurrency: 2
spark: {master: "local[2]", config: {spark.sql.shuffle.partitions: 2}}
defaults: {kind: VIEW, cron: "@daily", start: 2024-01-01, audits: [not_null(columns := id)]}
targets:
  dev: {schema: shop_dev, variables: {region: eu}}
  prod: {spark: {remote: "sc://host:15002"}, reuse_from: dev}
variables: {region: eu, days: [1, 2], is_on: true}
"""
SOURCES = """sources:
  - name: raw.orders
    columns: {id: int, at: {type: timestamp, description: when}}
    audits: [not_null(columns := id)]
  - name: raw
    tables: [{name: items, columns: [{name: id, type: "array<struct<a: int>>"}]}]
"""
MACRO = """from lamina import macro, model, signal

@macro()
def m(evaluator, x: int, *rest: str, **named: list):
    return [f"{x}", evaluator.var("region"), None]

@signal()
def s(batch, hours=1, context=None):
    return hours > 2

@model("shop.p", kind={"name": "FULL"}, columns={"id": "int"}, depends_on=["shop.ok"], audits=["not_null"])
def p(context, start, end, execution_time, **kwargs):
    return context.table("shop.ok")
"""
CSV = 'id,name,ds\n1,"a, ""b""",2024-01-01\n2,,\n'

tries = settings(
    max_examples=int(os.environ.get("LAMINA_FUZZ", "30")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)

odd = st.sampled_from(
    [
        *"()[]{}'\"`;,.:@$#*-+/\\|<>=!%&~^?_ \n\t\0\x01\x1b\ufeff\u200b\u00a0\u202e\u2028",
        *("😀", "é", "ı", "İ", "ß", "٣", "0", "1", "-1", "9" * 30, "1e999", "0x1f", "NULL", "null", ".nan", "a" * 300),
        *("((((", "))))", "[[[[", "{{{{", "}}", "--", "/*", "*/", ":=", "->", "::", "@@", "@{", "$$", "\r\n", "\r"),
        *("@start_ds", "@m(1)", "@IF(", "@EACH(", "@EVAL(", "@DEF(a, 1);", "@x", "@{region}", "@this_model", "x -> x"),
        *(
            "MODEL (",
            "AUDIT (name a);",
            "SELECT",
            "FROM shop.ok",
            "WITH",
            "UNION ALL",
            "CASE WHEN",
            "END",
            "JOIN",
            "NOT ",
        ),
        *(
            "name",
            "kind",
            "cron",
            "columns",
            "audits",
            "VIEW",
            "FULL",
            "SEED",
            "time_column ds",
            "unique_key id",
            "(id, ds)",
        ),
        *(
            "!!binary aGk=",
            "!!python/object:x",
            "&a ",
            "*a",
            "<<: *a",
            "? ",
            "- ",
            "---",
            "...",
            "|",
            ">",
            "%YAML 1.1",
            "~",
        ),
        *("def ", "lambda: ", "import os", "raise ", "class X: ", "return ", "yield ", "async ", "await ", "\\u0000"),
    ]
)
words = st.one_of(odd, st.text(max_size=8))


@st.composite
def mutated(draw: st.DrawFn, texts: list[str]) -> str:
    """A text with some pieces taken out, put in, doubled or replaced by those of another."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 25)))
        way = draw(st.sampled_from(["take", "put", "double", "many", "other"]))
        put = {
            "take": "",
            "put": draw(words),
            "double": text[start:end] * 2,
            "many": draw(words) * draw(st.sampled_from([3, 60, 400])),
            "other": draw(st.sampled_from(texts))[start : end + 20],
        }[way]
        text = text[:start] + put + text[end if way in {"take", "put", "other"} else start :]
    return text


values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6), st.sampled_from(["eu", "FULL"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["name", "kind", "columns", "type", "a", "x y", "1"]), inner, max_size=3),
    ),
    max_leaves=6,
)
PROPERTIES = (
    *("name", "kind", "cron", "cron_tz", "start", "end", "owner", "tags", "grain", "references", "dialect", "audits"),
    *("columns", "column_descriptions", "partitioned_by", "clustered_by", "physical_properties", "session_properties"),
    *("virtual_properties", "description", "enabled", "signals", "pre_hooks", "post_hooks", "blueprints", "stamp"),
    *("interval_unit", "depends_on", "table_format", "allow_partials", "optimize_query", "when_matched", "path"),
    *("kind INCREMENTAL_BY_TIME_RANGE", "kind INCREMENTAL_BY_UNIQUE_KEY", "kind SCD_TYPE_2_BY_COLUMN", "kind SEED"),
)
header_values = st.one_of(
    words,
    st.lists(words, max_size=4).map(" ".join),
    st.lists(words, max_size=3).map(lambda parts: f"({', '.join(parts)})"),
    st.lists(words, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
    st.tuples(words, words).map(lambda pair: f"({pair[0]} = {pair[1]})"),
    st.sampled_from(
        ["'1 day ago'", "'@daily'", "5", "TRUE", "not_null(columns := (id))", "(time_column ds)", "(a int)"]
    ),
)


def check(files: Mapping[str, str | bytes]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for name, content in {"lamina.yaml": "name: shop\n", "models/ok.sql": OK, **files}.items():
            place = root / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
        for problem in problems_of(root):
            assert problem.code.startswith("LAM-")
            assert problem.code != "LAM-000"
            assert problem.location is not None or problem.code == "LAM-PROJ-003", problem
            assert "defect" not in problem.message


def problems_of(root: Path) -> tuple[LaminaError, ...]:
    try:
        FileProject(root).graph(NOW)
    except LaminaError as error:
        return error.problems or (error,)
    return ()


@tries
@given(mutated(TEXTS))
def test_examples_with_mistakes(text: str) -> None:
    check({"models/a.sql": text})


@tries
@given(st.lists(st.tuples(st.sampled_from(PROPERTIES), header_values), max_size=4), words)
def test_headers(properties: list[tuple[str, str]], name: str) -> None:
    inside = ", ".join(f"{key} {value}" for key, value in properties)
    check({"models/a.sql": f"MODEL (name shop.{name}, {inside});\nSELECT 1 AS id, @start_ds AS ds\n"})


@tries
@given(st.lists(words, max_size=12).map(" ".join))
def test_queries_and_macros(text: str) -> None:
    check({"models/a.sql": f"MODEL (name shop.a, kind FULL);\nSELECT {text}\n", "macros/m.py": MACRO})


@tries
@given(mutated([CONFIG]), mutated([SOURCES]), st.sampled_from(["sources/s.yml", "external_models.yaml"]))
def test_configuration_and_sources_with_mistakes(config: str, sources: str, file: str) -> None:
    check({file: sources})
    check({"lamina.yaml": config})


@tries
@given(values, st.sampled_from(["variables", "defaults", "targets", "spark", "state", "name", "default_target"]))
def test_configuration_of_any_shape(value: object, key: str) -> None:
    # JSON, but for what it has no numbers for, is YAML.
    written = json.dumps(value).replace("NaN", ".nan").replace("-Infinity", "-.inf").replace("Infinity", ".inf")
    check({"lamina.yaml": f"name: shop\n{key}: {written}\n"})
    check({"sources/s.yml": written})
    check({"lamina.yaml": f"name: shop\ndefaults: {{kind: {written}, audits: {written}, tags: {written}}}\n"})


@tries
@given(mutated([MACRO]), st.sampled_from(["macros/m.py", "signals/m.py", "models/m.py", "python/m.py"]))
def test_python_files_with_mistakes(text: str, file: str) -> None:
    check({file: text, "models/a.sql": "MODEL (name shop.a, kind FULL);\nSELECT @m(1) AS x\n"})


@tries
@given(values, st.sampled_from([*PROPERTIES[:30], "depends_on", "function"]))
def test_arguments_of_python_models(value: object, key: str) -> None:
    code = f"from lamina import model\nnan = inf = 1e999\n\n@model('shop.p', **{{{key!r}: {value!r}}})\n"
    check({"models/p.py": f"{code}def p(context, **kwargs):\n    pass\n"})


@tries
@given(st.one_of(mutated([CSV]), st.binary(max_size=60)), header_values)
def test_seeds(content: str | bytes, setting: str) -> None:
    check({"seeds/s.csv": content})
    header = f"MODEL (name shop.s, kind SEED (path '../seeds/s.csv', csv_settings (delimiter {setting})));\n"
    check({"seeds/s.csv": content, "models/s.sql": header})


@tries
@given(words.filter(lambda text: "/" not in text and "\0" not in text and len(text.encode("utf-8", "replace")) < 200))
def test_names_of_files(name: str) -> None:
    name = name.encode("utf-8", "ignore").decode().strip(".") or "x"
    files = {"seeds/{}.csv": "id\n1\n", "models/{}.sql": "SELECT 1 AS id", "models/{}.py": "x = 1\n"}
    check({path.format(name): text for path, text in files.items()})
