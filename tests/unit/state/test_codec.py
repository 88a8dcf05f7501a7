from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import StateError, StateTooNew
from lamina.graph.kinds import KINDS, Full
from lamina.graph.model import Model
from lamina.state import codec
from lamina.state.codec import (
    BODY,
    KIND,
    PUBLISH,
    Record,
    Union,
    attempt_document,
    intervals_document,
    model_document,
    owner_document,
    pointers_document,
    publish_document,
    read_partition,
    shape_document,
    write_partition,
)
from lamina.state.lazy import LazyDocument, LazyMapping
from lamina.state.shapes import shape_of, with_shape
from lamina.timeline.interval import Intervals
from tests.kit import state as kit


@given(kit.models)
def test_a_model_survives_being_stored(model):
    assert model_document.read(model_document.write(model)) == model


@given(kit.publishes)
def test_a_publish_survives_being_stored(publish):
    found = publish_document.read(publish_document.write(publish))
    assert with_shape(found, shape_of(publish)) == publish


@given(kit.attempts)
def test_an_attempt_survives_being_stored(attempt):
    found = attempt_document.read(attempt_document.write(attempt))
    if attempt.publish is not None:
        found = replace(found, publish=with_shape(found.publish, shape_of(attempt.publish)))
    assert found == attempt


@given(kit.shapes, kit.owners, kit.pointers)
def test_shapes_owners_and_pointers_survive_being_stored(shape, owner, pointers):
    assert shape_document.read(shape_document.write(shape)) == shape
    assert owner_document.read(owner_document.write(owner)) == owner
    assert pointers_document.read(pointers_document.write(pointers)) == pointers
    assert LazyDocument(pointers_document.write(pointers), pointers_document.read) == pointers
    assert pointers == LazyDocument(pointers_document.write(pointers), pointers_document.read)


@given(st.lists(kit.intervals, max_size=5))
def test_sets_of_intervals_survive_being_stored(intervals):
    covered = Intervals.of(intervals)
    assert intervals_document.read(intervals_document.write(covered)) == covered


@given(kit.partition_keys, kit.partition_keys)
def test_partition_keys_are_equal_exactly_when_their_texts_are(one, other):
    assert read_partition(write_partition(one)) == one
    assert (one == other) == (write_partition(one) == write_partition(other))


@given(kit.models)
def test_stored_text_is_plain_ascii(model):
    assert model_document.write(model).isascii()


def every_record() -> list[Record]:
    found = [value for value in vars(codec).values() if isinstance(value, Record)]
    unions = [value for value in vars(codec).values() if isinstance(value, Union)]
    return found + [record for union in unions for record in union.records.values()]


@pytest.mark.parametrize("record", every_record(), ids=lambda record: record.cls.__name__)
def test_every_field_of_a_stored_class_is_stored(record):
    assert list(record.fields) == [field.name for field in fields(record.cls) if field.compare]


def test_every_kind_body_and_publish_can_be_stored():
    assert {record.cls for record in KIND.records.values()} == set(KINDS)
    assert set(BODY.records) == {"sql", "python", "seed"}
    assert set(PUBLISH.records) == {
        "add_partitions",
        "switch_generation",
        "set_view",
        "commit_rows",
        "write_through",
        "fast_forward",
    }


def test_tags_and_fields_stay_what_they_are():
    data = json.loads(model_document.write(kit.model()))
    assert data["v"] == 1
    assert data["is"] == "model"
    assert data["d"]["kind"] == {"is": "full"}
    assert data["d"]["body"]["is"] == "sql"
    assert data["d"]["grain"] == "day"


def test_a_definition_written_before_a_field_existed_takes_its_default():
    model = kit.model()
    data = json.loads(model_document.write(model))
    required = {"name", "kind", "body", "reads", "location"}
    data["d"] = {name: value for name, value in data["d"].items() if name in required}
    bare = Model(name=model.name, kind=Full(), body=model.body, reads=(), location=model.location)
    assert model_document.read(json.dumps(data)) == bare


def test_an_audit_written_before_its_query_was_recorded_can_be_read():
    data = json.loads(model_document.write(kit.model()))
    data["d"]["audits"] = [{"name": "not_null", "arguments": {"columns": "id"}}]
    (audit,) = model_document.read(json.dumps(data)).audits
    assert (audit.name, dict(audit.arguments)) == ("not_null", {"columns": "id"})
    assert (audit.code, audit.is_blocking, audit.is_skipped) == (None, True, False)


def test_defaults_are_written_out_so_that_they_may_change_later():
    data = json.loads(model_document.write(kit.model()))
    assert data["d"]["cron"] == "@daily"
    assert data["d"].keys() == {field.name for field in fields(Model)}


def test_a_document_of_a_newer_format_is_refused_by_its_number():
    data = json.loads(model_document.write(kit.model()))
    data["v"] = 7
    with pytest.raises(StateTooNew, match="format 7"):
        model_document.read(json.dumps(data))


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "no json",
        "[]",
        "null",
        "{}",
        '{"v":1,"is":"model","d":{}}',
        '{"v":1,"is":"model","d":[]}',
        '{"v":1,"is":"owner","d":{}}',
        '{"v":"1","is":"model","d":{}}',
    ],
)
def test_a_damaged_document_is_a_state_error(damage):
    with pytest.raises(StateError, match="cannot be read"):
        model_document.read(damage)


def test_an_unknown_field_or_tag_is_a_state_error():
    data = json.loads(model_document.write(kit.model()))
    data["d"]["surprise"] = 1
    with pytest.raises(StateError, match="surprise"):
        model_document.read(json.dumps(data))
    data = json.loads(model_document.write(kit.model()))
    data["d"]["kind"] = {"is": "quantum"}
    with pytest.raises(StateError, match="quantum"):
        model_document.read(json.dumps(data))


def test_a_time_outside_the_calendar_is_a_state_error():
    with pytest.raises(StateError, match="cannot be read"):
        intervals_document.read('{"v":1,"is":"intervals","d":[[0,99999999999999999999]]}')


def test_definitions_are_decoded_when_they_are_asked_for():
    asked: list[str] = []

    def read(text: str) -> str:
        asked.append(text)
        return text.upper()

    found = LazyMapping({"a": "x", "b": "y"}, read)
    assert list(found) == ["a", "b"]
    assert len(found) == 2
    assert "a" in found
    assert "c" not in found
    assert asked == []
    assert (found["b"], found["b"], found.get("c")) == ("Y", "Y", None)
    assert asked == ["y"]
    assert found == {"a": "X", "b": "Y"}


def test_a_changed_model_is_another_document():
    model = kit.model()
    assert model_document.write(model) != model_document.write(replace(model, tags=("daily",)))
