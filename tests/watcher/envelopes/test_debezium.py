"""Events as Debezium's connector for Spanner writes them: fields, order, schemas and tombstones."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from fixtures.any_batch import batch_of
from fixtures.documented import change_of, micros

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures.changes import iterate_changes
from watcher.envelopes import encode, make_envelope
from watcher.envelopes.batches import encode_batch
from watcher.envelopes.debezium_source import FIELDS, SourceField
from watcher.envelopes.leaves import ID, MOD_NUMBER, Field
from watcher.envelopes.schema_files import schema_text
from watcher.model.change import Change, Operation, Shape, Value, ValueCapture
from watcher.model.errors import EnvelopeError

DATABASE = "projects/p1/instances/i1/databases/d1"
SHAPE = Shape(
    "Everything",
    (
        ("Id", Type(TypeCode.INT64)),
        ("Flag", Type(TypeCode.BOOL)),
        ("Small", Type(TypeCode.FLOAT32)),
        ("Real", Type(TypeCode.FLOAT64)),
        ("Price", Type(TypeCode.NUMERIC)),
        ("Name", Type(TypeCode.STRING)),
        ("Picture", Type(TypeCode.BYTES)),
        ("Born", Type(TypeCode.DATE)),
        ("At", Type(TypeCode.TIMESTAMP)),
        ("Document", Type(TypeCode.JSON)),
        ("Uuid", Type(TypeCode.UUID)),
        ("Tags", Type(TypeCode.ARRAY, element=Type(TypeCode.STRING))),
    ),
    ("Id",),
)
UUID = "123e4567-e89b-12d3-a456-426614174000"
NEW: dict[str, Value] = {
    "Flag": True,
    "Small": 0.5,
    "Real": float("inf"),
    "Price": Decimal("12345678901234567890.123456789"),
    "Name": "Ünï",
    "Picture": b"\x00\xff",
    "Born": date(1970, 9, 24),
    "At": "2022-09-27T12:30:00.123456789Z",
    "Document": '{"a":[1,null]}',
    "Uuid": UUID,
    "Tags": ["x", None],
}
SHOWN = {
    "Id": 7,
    "Flag": True,
    "Small": 0.5,
    "Real": "Infinity",
    "Price": "12345678901234567890.123456789",
    "Name": "Ünï",
    "Picture": "AP8=",
    "Born": "1970-09-24",
    "At": "2022-09-27T12:30:00.123456789Z",
    "Document": '{"a":[1,null]}',
    "Uuid": UUID,
    "Tags": ["x", None],
}
AT, READ = micros("2022-09-27T12:30:00.123456Z"), micros("2022-09-27T12:30:02.000001Z")
# The fields of the connector's own structures, in their order.
ENVELOPE_FIELDS = ["before", "after", "source", "op", "ts_ms", "ts_us", "ts_ns", "transaction"]
SOURCE_FIELDS = [
    "version",
    "connector",
    "name",
    "ts_ms",
    "snapshot",
    "db",
    "sequence",
    "ts_us",
    "ts_ns",
    "project_id",
    "instance_id",
    "database_id",
    "change_stream_name",
    "table",
    "server_transaction_id",
    "low_watermark",
    "read_at_timestamp",
    "number_records_in_transaction",
    "transaction_tag",
    "system_transaction",
    "value_capture_type",
    "partition_token",
    "mod_number",
    "is_last_record_in_transaction_in_partition",
    "number_of_partitions_in_transaction",
]


def change(
    operation: Operation,
    new: dict[str, Value] | None,
    old: dict[str, Value] | None,
    captured: ValueCapture = ValueCapture.NEW_ROW_AND_OLD_VALUES,
) -> Change:
    return change_of(
        SHAPE, operation, AT, {"Id": 7}, new, old, captured, read_at=READ, sequence="00000012"
    )


def event(given: Change, **options: object) -> Any:
    return json.loads(next(encode([given], make_envelope("debezium", options)))[1] or b"")


def test_an_insert_has_every_field_of_the_connector_in_its_order() -> None:
    payload = event(change(Operation.INSERT, NEW, {}), name="c", stream="s")
    assert list(payload) == ENVELOPE_FIELDS
    assert list(payload["source"]) == SOURCE_FIELDS
    assert (payload["op"], payload["before"], payload["after"]) == ("c", None, SHOWN)
    assert payload["transaction"] is None
    assert (payload["ts_ms"], payload["ts_us"], payload["ts_ns"]) == (
        READ // 1000,
        READ,
        READ * 1000,
    )
    version = payload["source"].pop("version")
    assert isinstance(version, str)
    assert payload["source"] == {
        "connector": "spanner",
        "name": "c",
        "ts_ms": AT // 1000,
        "snapshot": "false",
        "db": "db1",
        "sequence": "12",
        "ts_us": AT,
        "ts_ns": AT * 1000,
        "project_id": "p1",
        "instance_id": "i1",
        "database_id": "db1",
        "change_stream_name": "s",
        "table": "Everything",
        "server_transaction_id": "6329047911",
        "low_watermark": None,
        "read_at_timestamp": READ // 1000,
        "number_records_in_transaction": 1,
        "transaction_tag": "",
        "system_transaction": False,
        "value_capture_type": "NEW_ROW_AND_OLD_VALUES",
        "partition_token": "",
        "mod_number": 0,
        "is_last_record_in_transaction_in_partition": True,
        "number_of_partitions_in_transaction": 1,
    }


def test_an_update_has_both_rows_whole_where_the_capture_knows_them() -> None:
    given = change(Operation.UPDATE, NEW, {"Name": "old", "Tags": None})
    payload = event(given, before="required")
    assert payload["op"] == "u"
    assert payload["before"] == SHOWN | {"Name": "old", "Tags": None}
    assert payload["after"] == SHOWN
    assert event(given, before="never")["before"] is None


def test_a_delete_is_followed_by_the_tombstone_of_its_key() -> None:
    given = change(Operation.DELETE, None, NEW)
    (key, value), (tombstone, nothing) = encode([given], make_envelope("debezium"))
    payload = json.loads(value or b"")
    assert (payload["op"], payload["before"], payload["after"]) == ("d", SHOWN, None)
    assert (tombstone, nothing) == (key, None)
    assert json.loads(key or b"") == {"Id": 7}
    assert len(list(encode([given], make_envelope("debezium", {"tombstones": False})))) == 1


def test_what_the_row_was_before_is_never_made_up() -> None:
    given = change(Operation.UPDATE, NEW, None, ValueCapture.NEW_ROW)
    assert event(given)["before"] is None
    with pytest.raises(EnvelopeError, match="does not have the row before"):
        event(given, before="required")
    some = change(Operation.UPDATE, {"Flag": True}, None, ValueCapture.NEW_VALUES)
    with pytest.raises(EnvelopeError, match="has only some of the row's values"):
        event(some)
    assert event(some, partial="omit")["after"] == {"Id": 7, "Flag": True}


def test_a_row_of_a_backfill_is_read() -> None:
    given = replace(change(Operation.READ, NEW, None, ValueCapture.NEW_ROW), origin=None)
    payload = event(given, low_watermark=True)
    assert (payload["op"], payload["before"], payload["after"]) == ("r", None, SHOWN)
    assert payload["source"]["snapshot"] == "true"
    assert payload["source"]["low_watermark"] == 0
    assert payload["source"]["server_transaction_id"] is None


def test_schemas_say_what_the_payload_holds() -> None:
    given = change(Operation.INSERT, NEW, {})
    ((key, value),) = encode([given], make_envelope("debezium", {"with_schema": True, "name": "c"}))
    message, keyed = json.loads(value or b""), json.loads(key or b"")
    assert message["payload"] == event(given, name="c")
    schema = message["schema"]
    assert (schema["name"], schema["version"]) == ("c.Everything.Envelope", 2)
    fields = {field["field"]: field for field in schema["fields"]}
    assert list(fields) == ENVELOPE_FIELDS
    assert fields["before"]["fields"] == fields["after"]["fields"]
    assert (fields["before"]["name"], fields["before"]["optional"]) == ("Everything.Value", True)
    assert [field["field"] for field in fields["source"]["fields"]] == SOURCE_FIELDS
    assert fields["source"]["name"] == "com.google.spanner.connector.Source"
    assert fields["source"]["version"] == 1
    columns = {field["field"]: field for field in fields["after"]["fields"]}
    types = "int64 boolean float double string string bytes string string string string array"
    assert [column["type"] for column in columns.values()] == types.split()
    assert [name for name, column in columns.items() if not column["optional"]] == ["Id"]
    assert columns["Uuid"]["name"] == "io.debezium.data.Uuid"
    assert columns["Tags"]["items"] == {"type": "string", "optional": True}
    assert keyed == {
        "schema": {
            "type": "struct",
            "fields": [{"type": "int64", "optional": False, "field": "Id"}],
            "optional": False,
            "name": "Everything.Key",
        },
        "payload": {"Id": 7},
    }


# Each field of ``source`` stands once.


def test_the_schema_has_the_fields_of_source() -> None:
    described = json.loads(schema_text("debezium.json"))["$defs"]["payload"]["properties"]["source"]
    names = [field.name for field in FIELDS]
    assert list(described["properties"]) == described["required"] == names


@pytest.mark.parametrize("value", [MOD_NUMBER, ID])
def test_a_field_that_is_added_has_no_value_of_another_change(
    monkeypatch: pytest.MonkeyPatch, value: Field
) -> None:
    added = (*FIELDS, SourceField("added", "string", True, lambda _: value))
    monkeypatch.setattr("watcher.envelopes.debezium.FIELDS", added)
    chosen = make_envelope("debezium", {"name": "with a field that is added"})
    rows = batch_of(Type(TypeCode.INT64), ["1", "2"])
    changes = list(iterate_changes(rows, DATABASE))
    sources = [json.loads(chosen.encode(each)[0].value or b"")["source"] for each in changes]
    texts = encode_batch(rows, DATABASE, chosen).column("value").to_pylist()
    assert [json.loads(text)["source"] for text in texts] == sources
    assert sources[0]["added"] != sources[1]["added"]
