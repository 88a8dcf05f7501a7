"""The audits that every project has, as Spark SQL.

Each is a query over `THIS_MODEL` that gives the failing rows, or one row that tells what was found where the audit is
about the table as a whole. A value that is NULL passes unless the audit is about NULL, and rows for which `condition`
does not hold are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamina.errors import BadAudit
from lamina.sql.header.audit_arguments import AuditArguments, column_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lamina.errors import Location

THIS_MODEL = "__lamina_this_model"
"""The name under which the query of an audit reads the rows it is about."""

NON_BLOCKING = "_non_blocking"
"""What is behind the name of the copy of an audit that warns instead of stopping."""

_CONDITION = "condition"

# Java's `$` also matches before a line break at the end, `\z` does not. A raw string means the same whatever the
# session says about escapes.
_UUID = r"r'^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\z'"
_URL = r"r'^(https?|ftp)://[^\s/$.?#]\S*\z'"
_EMAIL = r"r'^[A-Za-z0-9.!#$%&*+/=?^_{|}~\x27\x60-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+\z'"
_HTTP_METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinAudit:
    """What a built-in audit takes, and the query it makes of that; `columns` are the arguments that name columns."""

    name: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    columns: tuple[str, ...]
    build: Callable[[AuditArguments], str]
    """The query for arguments of which none is missing and none unknown. Raises `BadAudit`."""

    def named_columns(self, arguments: AuditArguments) -> tuple[str, ...]:
        """The columns that the arguments name; expressions are not looked into."""
        texts = (text for name in self.columns if arguments.has(name) for text in arguments.columns(name))
        return tuple(name for text in texts if (name := column_name(text)) is not None)


def find_builtin(name: str) -> tuple[BuiltinAudit, bool] | None:
    """The audit of that name, and whether a failure stops the model unless something else is said."""
    if name in BUILTIN_AUDITS:
        return BUILTIN_AUDITS[name], True
    base = name.removesuffix(NON_BLOCKING)
    return (BUILTIN_AUDITS[base], False) if base != name and base in BUILTIN_AUDITS else None


def builtin_arguments(
    audit: str, texts: Mapping[str, str], dialect: str, location: Location | None = None
) -> AuditArguments:
    """The arguments of a call, to be given to `build`."""
    return AuditArguments(audit=audit, texts=texts, dialect=dialect, location=location)


# --- parts of queries -------------------------------------------------------------------------------------------------
def _where(*rules: str) -> str:
    return f" WHERE {' AND '.join(rules)}" if rules else ""


def _condition(arguments: AuditArguments) -> tuple[str, ...]:
    return (arguments.condition(_CONDITION),) if arguments.has(_CONDITION) else ()


def _rows(arguments: AuditArguments, rule: str) -> str:
    """The rows for which a rule holds."""
    return f"SELECT * FROM {THIS_MODEL}{_where(f'({rule})', *_condition(arguments))}"


def _rows_by(arguments: AuditArguments, computed: Mapping[str, str], rule: str, beside: str = "") -> str:
    """The rows for which a rule over computed columns holds, without these."""
    listed = ", ".join(f"{expression} AS {name}" for name, expression in computed.items())
    # A structure of all columns keeps what was computed out of the result, whatever the columns are called.
    inner = f"SELECT struct(*) AS _row, {listed} FROM {THIS_MODEL}{_where(*_condition(arguments))}"
    return f"SELECT _row.* FROM ({inner}) AS _rows{beside} WHERE {rule}"


def _figures(arguments: AuditArguments, computed: Mapping[str, str], rule: str) -> str:
    """One row of figures about the whole table, when a rule over them holds."""
    listed = ", ".join(f"{expression} AS {name}" for name, expression in computed.items())
    inner = f"SELECT {listed} FROM {THIS_MODEL}{_where(*_condition(arguments))}"
    return f"SELECT * FROM ({inner}) AS _figures WHERE {rule}"


def _outside(arguments: AuditArguments, value: str) -> str:
    """That a value is not between `min_v` and `max_v`, of which one may be missing."""
    inclusive = arguments.flag("inclusive", True)
    below, above = ("<", ">") if inclusive else ("<=", ">=")
    rules: list[str] = []
    for name, sign in (("min_v", below), ("max_v", above)):
        if arguments.has(name):
            rules.append(f"{value} {sign} ({arguments.value(name)})")
    if not rules:
        raise BadAudit(
            f"audit `{arguments.audit}` needs `min_v`, `max_v` or both",
            hint=f"write `{arguments.audit}(…, min_v := 0)`",
            location=arguments.location,
        )
    return " OR ".join(rules)


def _any(rules: tuple[str, ...]) -> str:
    return " OR ".join(rules)


# --- rows -------------------------------------------------------------------------------------------------------------
def _not_null(arguments: AuditArguments) -> str:
    return _rows(arguments, _any(tuple(f"{column} IS NULL" for column in arguments.columns("columns"))))


def _unique_values(arguments: AuditArguments) -> str:
    columns = arguments.columns("columns")
    ranks = {
        f"_rank_{number}": f"row_number() OVER (PARTITION BY {column} ORDER BY {column})"
        for number, column in enumerate(columns, start=1)
    }
    return _rows_by(arguments, ranks, _any(tuple(f"{rank} > 1" for rank in ranks)))


def _unique_combination(arguments: AuditArguments) -> str:
    columns = arguments.columns("columns")
    listed = ", ".join(
        column if column_name(column) else f"{column} AS _expression_{number}"
        for number, column in enumerate(columns, start=1)
    )
    where = _where(*_condition(arguments))
    return (
        f"SELECT {listed}, count(*) AS _row_count FROM {THIS_MODEL}{where} "
        f"GROUP BY {', '.join(columns)} HAVING count(*) > 1"
    )


def _accepted_values(arguments: AuditArguments) -> str:
    column = arguments.column("column")
    # NOT IN a list that holds NULL is never true, so nothing could fail.
    accepted = [value for value in arguments.values("is_in") if value.lower() != "null"]
    return _rows(arguments, f"{column} NOT IN ({', '.join(accepted)})" if accepted else f"{column} IS NOT NULL")


def _not_accepted_values(arguments: AuditArguments) -> str:
    column = arguments.column("column")
    values = arguments.values("is_in")
    refused = [value for value in values if value.lower() != "null"]
    rules = [f"{column} IN ({', '.join(refused)})"] if refused else []
    return _rows(arguments, _any((*rules, *([f"{column} IS NULL"] if len(refused) < len(values) else []))))


def _forall(arguments: AuditArguments) -> str:
    return _rows(arguments, _any(tuple(f"NOT {criterion}" for criterion in arguments.conditions("criteria"))))


def _accepted_range(arguments: AuditArguments) -> str:
    return _rows(arguments, _outside(arguments, arguments.column("column")))


def _not_empty_string(arguments: AuditArguments) -> str:
    return _rows(arguments, f"{arguments.column('column')} = ''")


def _string_length_between(arguments: AuditArguments) -> str:
    return _rows(arguments, _outside(arguments, _length(arguments)))


def _string_length_equal(arguments: AuditArguments) -> str:
    return _rows(arguments, f"{_length(arguments)} <> ({arguments.value('v')})")


def _length(arguments: AuditArguments) -> str:
    return f"char_length({_text(arguments)})"


def _text(arguments: AuditArguments) -> str:
    return f"CAST({arguments.column('column')} AS STRING)"


def _matching(pattern: str) -> Callable[[AuditArguments], str]:
    return lambda arguments: _rows(arguments, f"NOT {_text(arguments)} RLIKE {pattern}")


def _patterns(sign: str, *, must_match: bool) -> Callable[[AuditArguments], str]:
    def build(arguments: AuditArguments) -> str:
        text = _text(arguments)
        matches = _any(tuple(f"{text} {sign} ({pattern})" for pattern in arguments.values("patterns")))
        return _rows(arguments, f"NOT ({matches})" if must_match else matches)

    return build


def _valid_http_method(arguments: AuditArguments) -> str:
    methods = ", ".join(f"'{method}'" for method in _HTTP_METHODS)
    return _rows(arguments, f"{_text(arguments)} NOT IN ({methods})")


def _sequential_values(arguments: AuditArguments) -> str:
    column = arguments.column("column")
    step = arguments.value("interval") if arguments.has("interval") else "1"
    computed = {"_value": column, "_previous": f"lag({column}) OVER (ORDER BY {column})"}
    return _rows_by(arguments, computed, f"_value <> _previous + ({step})")


def _mutually_exclusive_ranges(arguments: AuditArguments) -> str:
    lower, upper = arguments.column("lower_bound_column"), arguments.column("upper_bound_column")
    window = f"OVER ({arguments.partition('partition_clause')}ORDER BY {lower}, {upper})"
    computed = {
        "_lower": lower,
        "_upper": upper,
        "_next": f"lead({lower}) {window}",
        "_has_next": f"lead(true) {window}",
    }
    # A bound that is NULL is open: such a range overlaps with whatever lies on that side of it.
    overlaps = "_has_next AND (_upper IS NULL OR _next IS NULL OR _upper > _next)"
    return _rows_by(arguments, computed, f"_lower > _upper OR ({overlaps})")


def _z_score(arguments: AuditArguments) -> str:
    column = arguments.column("column")
    figures = f"SELECT avg({column}) AS _mean, stddev({column}) AS _deviation"
    statistics = f"({figures} FROM {THIS_MODEL}{_where(*_condition(arguments))}) AS _statistics"
    rule = f"abs((_value - _mean) / nullif(_deviation, 0)) > ({arguments.value('threshold')})"
    return _rows_by(arguments, {"_value": column}, rule, f" CROSS JOIN {statistics}")


# --- figures ----------------------------------------------------------------------------------------------------------
def _number_of_rows(arguments: AuditArguments) -> str:
    return _figures(arguments, {"row_count": "count(*)"}, f"row_count <= ({arguments.value('threshold')})")


def _at_least_one(arguments: AuditArguments) -> str:
    counts = {"row_count": "count(*)", "value_count": f"count({arguments.column('column')})"}
    return _figures(arguments, counts, "row_count > 0 AND value_count = 0")


def _not_constant(arguments: AuditArguments) -> str:
    distinct = f"count(DISTINCT {arguments.column('column')})"
    return _figures(arguments, {"distinct_values": distinct}, "distinct_values <= 1")


def _not_null_proportion(arguments: AuditArguments) -> str:
    counts = {"row_count": "count(*)", "value_count": f"count({arguments.column('column')})"}
    return _figures(arguments, counts, f"value_count <= row_count * ({arguments.value('threshold')})")


def _stddev_in_range(arguments: AuditArguments) -> str:
    deviation = {"standard_deviation": f"stddev({arguments.column('column')})"}
    return _figures(arguments, deviation, _outside(arguments, "standard_deviation"))


def _mean_in_range(arguments: AuditArguments) -> str:
    return _figures(arguments, {"mean": f"avg({arguments.column('column')})"}, _outside(arguments, "mean"))


def _kl_divergence(arguments: AuditArguments) -> str:
    """What it costs to take the target's distribution for the source's, without end where a value is never there."""
    shares = []
    for name in ("source_column", "target_column"):
        column = arguments.column(name)
        where = _where(f"{column} IS NOT NULL", *_condition(arguments))
        counted = f"SELECT {column} AS _value, count(*) AS _count FROM {THIS_MODEL}{where} GROUP BY {column}"
        shares.append(f"(SELECT _value, _count / sum(_count) OVER () AS _share FROM ({counted}) AS _counted)")
    source, target = shares
    cost = (
        "CASE WHEN _target._share IS NULL THEN CAST('Infinity' AS DOUBLE) ELSE ln(_source._share / _target._share) END"
    )
    return (
        f"SELECT * FROM (SELECT sum(_source._share * {cost}) AS kl_divergence FROM {source} AS _source "
        f"LEFT JOIN {target} AS _target ON _source._value = _target._value) AS _figures "
        f"WHERE kl_divergence > ({arguments.value('threshold')})"
    )


def _chi_square(arguments: AuditArguments) -> str:
    """Pearson's statistic of two columns, against the value above which they count as dependent."""
    one, other = arguments.column("column_a"), arguments.column("column_b")
    where = _where(f"{one} IS NOT NULL", f"{other} IS NOT NULL", *_condition(arguments))
    # Doubles, because products of three counts do not fit into a whole number.
    observed = (
        f"SELECT {one} AS _a, {other} AS _b, CAST(count(*) AS DOUBLE) AS _count "
        f"FROM {THIS_MODEL}{where} GROUP BY {one}, {other}"
    )
    totals = (
        "SELECT _a, _b, _count, sum(_count) OVER (PARTITION BY _a) AS _total_a, "
        f"sum(_count) OVER (PARTITION BY _b) AS _total_b, sum(_count) OVER () AS _total FROM ({observed}) AS _observed"
    )
    # The sum over pairs that occur equals the usual one over all pairs: a pair that does not occur adds nothing here.
    figures = (
        "SELECT (count(DISTINCT _a) - 1) * (count(DISTINCT _b) - 1) AS degrees_of_freedom, "
        f"sum(_count * _count * _total / (_total_a * _total_b)) - max(_total) AS chi_square FROM ({totals}) AS _totals"
    )
    sign = "<=" if arguments.flag("dependent", True) else ">"
    return f"SELECT * FROM ({figures}) AS _figures WHERE chi_square {sign} ({arguments.value('critical_value')})"


# --- all of them ------------------------------------------------------------------------------------------------------
_COLUMN_ARGUMENTS = frozenset(
    {
        "column",
        "columns",
        "lower_bound_column",
        "upper_bound_column",
        "source_column",
        "target_column",
        "column_a",
        "column_b",
    }
)


def _audit(
    name: str, build: Callable[[AuditArguments], str], *required: str, optional: tuple[str, ...] = (_CONDITION,)
) -> BuiltinAudit:
    columns = tuple(argument for argument in required if argument in _COLUMN_ARGUMENTS)
    return BuiltinAudit(name=name, required=required, optional=optional, columns=columns, build=build)


_RANGE = ("min_v", "max_v", "inclusive", _CONDITION)
_ALL = (
    _audit("not_null", _not_null, "columns"),
    _audit("unique_values", _unique_values, "columns"),
    _audit("unique_combination_of_columns", _unique_combination, "columns"),
    _audit("accepted_values", _accepted_values, "column", "is_in"),
    _audit("not_accepted_values", _not_accepted_values, "column", "is_in"),
    _audit("number_of_rows", _number_of_rows, "threshold"),
    _audit("forall", _forall, "criteria"),
    _audit("accepted_range", _accepted_range, "column", optional=_RANGE),
    _audit("at_least_one", _at_least_one, "column"),
    _audit("not_constant", _not_constant, "column"),
    _audit("not_empty_string", _not_empty_string, "column"),
    _audit("not_null_proportion", _not_null_proportion, "column", "threshold"),
    _audit("sequential_values", _sequential_values, "column", optional=("interval", _CONDITION)),
    _audit(
        "mutually_exclusive_ranges",
        _mutually_exclusive_ranges,
        "lower_bound_column",
        "upper_bound_column",
        optional=("partition_clause", _CONDITION),
    ),
    _audit("valid_uuid", _matching(_UUID), "column"),
    _audit("valid_url", _matching(_URL), "column"),
    _audit("valid_email", _matching(_EMAIL), "column"),
    _audit("valid_http_method", _valid_http_method, "column"),
    _audit("match_regex_pattern_list", _patterns("RLIKE", must_match=True), "column", "patterns"),
    _audit("not_match_regex_pattern_list", _patterns("RLIKE", must_match=False), "column", "patterns"),
    _audit("match_like_pattern_list", _patterns("LIKE", must_match=True), "column", "patterns"),
    _audit("not_match_like_pattern_list", _patterns("LIKE", must_match=False), "column", "patterns"),
    _audit("string_length_between", _string_length_between, "column", optional=_RANGE),
    _audit("string_length_equal", _string_length_equal, "column", "v"),
    _audit("stddev_in_range", _stddev_in_range, "column", optional=_RANGE),
    _audit("mean_in_range", _mean_in_range, "column", optional=_RANGE),
    _audit("z_score", _z_score, "column", "threshold"),
    _audit("kl_divergence", _kl_divergence, "source_column", "target_column", "threshold"),
    _audit("chi_square", _chi_square, "column_a", "column_b", "critical_value", optional=("dependent", _CONDITION)),
)
BUILTIN_AUDITS: Mapping[str, BuiltinAudit] = MappingProxyType({audit.name: audit for audit in _ALL})
"""Every built-in audit by name; each also exists with `_non_blocking` behind its name."""
