from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.timeline.interval import Instant, Interval
from lamina.timeline.macro_times import TimeValue, time_values

at = Instant.parse_iso

DAY = Interval(at("2024-01-01"), at("2024-01-02"))
EXECUTION = at("2024-01-05T06:07:08")
SUFFIXES = {"dt", "dtntz", "date", "ds", "ts", "tstz", "epoch", "millis", "hour"}


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        ("start_dt", "timestamp", "2024-01-01 00:00:00+00:00"),
        ("start_dtntz", "timestamp_ntz", "2024-01-01 00:00:00"),
        ("start_date", "date", "2024-01-01"),
        ("start_ds", "string", "2024-01-01"),
        ("start_ts", "string", "2024-01-01 00:00:00"),
        ("start_tstz", "string", "2024-01-01 00:00:00+00:00"),
        ("start_epoch", "float", 1704067200.0),
        ("start_millis", "int", 1704067200000),
        ("start_hour", "int", 0),
        ("end_dt", "timestamp", "2024-01-01 23:59:59.999999+00:00"),
        ("end_dtntz", "timestamp_ntz", "2024-01-01 23:59:59.999999"),
        ("end_date", "date", "2024-01-01"),
        ("end_ds", "string", "2024-01-01"),
        ("end_ts", "string", "2024-01-01 23:59:59.999999"),
        ("end_tstz", "string", "2024-01-01 23:59:59.999999+00:00"),
        ("end_epoch", "float", 1704153599.999),
        ("end_millis", "int", 1704153599999),
        ("end_hour", "int", 23),
        ("execution_dt", "timestamp", "2024-01-05 06:07:08+00:00"),
        ("execution_ds", "string", "2024-01-05"),
        ("execution_ts", "string", "2024-01-05 06:07:08"),
        ("execution_tstz", "string", "2024-01-05 06:07:08+00:00"),
        ("execution_epoch", "float", 1704434828.0),
        ("execution_millis", "int", 1704434828000),
        ("execution_hour", "int", 6),
    ],
)
def test_every_variable_has_its_exact_value(name: str, kind: str, value: str | float) -> None:
    found = time_values(DAY, EXECUTION)[name]
    assert (found.kind, found.value, type(found.value)) == (kind, value, type(value))


def test_latest_is_another_name_for_execution() -> None:
    values = time_values(DAY, EXECUTION)
    assert all(values[f"latest_{suffix}"] == values[f"execution_{suffix}"] for suffix in SUFFIXES)


def test_there_is_a_variable_for_every_prefix_and_suffix() -> None:
    prefixes = {"start", "end", "execution", "latest"}
    assert set(time_values(DAY, EXECUTION)) == {f"{prefix}_{suffix}" for prefix in prefixes for suffix in SUFFIXES}


def test_without_an_interval_there_is_no_start_and_no_end() -> None:
    assert set(time_values(None, EXECUTION)) == {
        f"{p}_{suffix}" for p in ("execution", "latest") for suffix in SUFFIXES
    }


def test_a_batch_of_many_units_reaches_from_its_first_to_its_last() -> None:
    values = time_values(Interval(at("2024-02-28"), at("2024-03-02")), EXECUTION)
    assert (values["start_ds"].value, values["end_ds"].value) == ("2024-02-28", "2024-03-01")


def test_the_values_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        time_values(DAY, EXECUTION)["start_ds"] = TimeValue(kind="string", value="")  # type: ignore[index]


@given(st.integers(-(10**13), 10**13), st.integers(1, 10**12), st.integers(-(10**12), 10**13))
def test_a_moment_is_between_start_and_end_exactly_when_it_is_inside(start: int, length: int, offset: int) -> None:
    """Also before 1970, and on milliseconds wherever the edges lie on one."""
    interval = Interval(Instant(start * 1000), Instant((start + length) * 1000))
    moment = Instant(start * 1000 + offset)
    inside, asked = time_values(interval, EXECUTION), time_values(None, moment)

    def is_between(suffix: str) -> bool:
        names = (inside[f"start_{suffix}"], asked[f"execution_{suffix}"], inside[f"end_{suffix}"])
        low, value, high = (at(item.value).micros if isinstance(item.value, str) else item.value for item in names)
        return low <= value <= high

    for suffix in ("dt", "dtntz", "ts", "tstz", "millis"):
        assert is_between(suffix) == interval.contains(moment)
