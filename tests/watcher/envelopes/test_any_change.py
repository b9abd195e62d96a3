"""What passes the check of an envelope is delivered whole, and every record keeps to its schema."""

from __future__ import annotations

import io
import json
import math
import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import fastavro
import pytest
from fixtures.any_change import CHOICES, changes
from fixtures.documented import ORDERS, change_of
from fixtures.protobuf_files import compile_message
from fixtures.written_by_row import last_row, write_by_row
from hypothesis import assume, given, note
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator

from spanner_schema.model.column_types import Type, TypeCode
from watcher.envelopes import Envelope, Known, encode, make_envelope
from watcher.envelopes.avro import event_schema
from watcher.envelopes.datastream import DatastreamAvro
from watcher.envelopes.debezium_avro import DebeziumAvro
from watcher.envelopes.plain import Plain
from watcher.envelopes.plain_avro import PlainAvro
from watcher.envelopes.plain_protobuf import PlainProtobuf
from watcher.envelopes.schema_files import schema_text
from watcher.model.change import Change, Operation, Shape, Value
from watcher.model.errors import ConfigurationError, EnvelopeError

KEYED = ("debezium", "ydb-debezium")


@cache
def validator(name: str) -> Draft202012Validator:
    schema = json.loads(schema_text(name))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def assert_keeps_to_schema(name: str, key: bytes | None, value: bytes | None) -> None:
    if name in KEYED:
        assert key is not None
        validator(f"{name}-key.json").validate(json.loads(key))
    if value is not None:
        validator(f"{name}.json").validate(json.loads(value))


@given(drawn=changes())
def test_what_passes_the_check_is_delivered_and_keeps_to_the_schema(
    drawn: tuple[Change, Known],
) -> None:
    change, known = drawn
    for name, options in CHOICES:
        chosen = make_envelope(name, options)
        if not is_allowed(chosen, known):
            continue
        note(f"{name} {options}")
        messages = list(encode([change], chosen))
        assert messages == list(encode([change], chosen))
        tombstone = name.startswith("debezium") and options.get("tombstones", True)
        more = 1 if tombstone and change.operation is Operation.DELETE else 0
        assert [value is None for _, value in messages] == [False] + [True] * more
        if not chosen.binary:
            for key, value in messages:
                assert_keeps_to_schema(name, key, value)


@given(drawn=changes())
def test_each_format_is_written_as_value_by_value(drawn: tuple[Change, Known]) -> None:
    change, _ = drawn
    for name, options in CHOICES:
        chosen = make_envelope(name, options)
        if chosen.binary:
            continue
        note(f"{name} {options}")
        try:
            expected = write_by_row(change, chosen)
        except EnvelopeError as error:
            with pytest.raises(EnvelopeError, match=f"^{re.escape(str(error))} "):
                chosen.encode(change)
        else:
            assert chosen.encode(change) == expected


def is_allowed(chosen: Envelope, known: Known) -> bool:
    """True when the capture can fill the envelope."""
    try:
        chosen.check(known)
    except ConfigurationError:
        return False
    return True


@given(drawn=changes())
def test_a_row_is_whole_or_refused_even_without_the_check(drawn: tuple[Change, Known]) -> None:
    change, _ = drawn
    columns = {name for name, _ in change.shape.columns}
    for record in encode_or_refuse(change, "datastream", {}):
        assert set(record["payload"]) == columns
    for record in encode_or_refuse(change, "debezium", {}):
        assert all(
            row is None or set(row) == columns for row in (record["before"], record["after"])
        )
    for record in encode_or_refuse(change, "ydb", {"mode": "NEW_AND_OLD_IMAGES"}):
        existed = change.operation in (Operation.UPDATE, Operation.DELETE)
        assert ("newImage" in record, "oldImage" in record) == ("update" in record, existed)
        for name in {"newImage", "oldImage"} & set(record):
            assert set(record[name]) == columns - set(change.shape.primary_key)


def encode_or_refuse(change: Change, name: str, options: dict[str, object]) -> list[Any]:
    """The record of a change; none when it is refused."""
    try:
        return [json.loads(next(encode([change], make_envelope(name, options)))[1] or b"")]
    except EnvelopeError:
        return []


@given(drawn=changes())
def test_the_payload_of_an_avro_event_is_the_row(drawn: tuple[Change, Known]) -> None:
    change, known = drawn
    avro = DatastreamAvro()
    assume(is_allowed(avro, known))
    schema = fastavro.parse_schema(event_schema(change.shape))
    ((_, value),) = encode([change], avro)
    assert value is not None
    event: Any = fastavro.schemaless_reader(io.BytesIO(value), schema, None)
    file = io.BytesIO(avro.container(change.shape, [change, change]))
    # NaN is not equal to itself: compare what is written of it.
    assert repr(list(fastavro.reader(file))) == repr([event, event])
    written = json.loads(next(encode([change], make_envelope("datastream")))[1] or b"")
    for name in ("stream_name", "read_method", "object", "schema_key", "uuid", "sort_keys"):
        assert event[name] == written[name]
    assert event["source_metadata"] == written["source_metadata"]
    types = dict(change.shape.columns)
    row = last_row(change)
    assert set(event["payload"]) == set(types)
    for name, cell in event["payload"].items():
        assert same(normalize_avro(cell, types[name]), normal(row[name], types[name])), name


@pytest.mark.parametrize("timestamps", ["micros", "iso"])
@given(drawn=changes())
def test_the_rows_of_a_plain_avro_record_are_those_of_the_change(
    timestamps: str, drawn: tuple[Change, Known]
) -> None:
    change, known = drawn
    chosen = make_envelope("plain-avro", {"timestamps": timestamps})
    assume(is_allowed(chosen, known))
    assert isinstance(chosen, PlainAvro)
    schemas = chosen.describe_schemas(change.database, change.shape)
    assert schemas.key is not None
    ((key, value),) = encode([change], chosen)
    read_key = read_datum(key, schemas.key.schema)
    record = read_datum(value, schemas.value.schema)
    types = dict(change.shape.columns)
    new = None if change.new_values is None else dict(change.key) | dict(change.new_values)
    old = old_row_of(change)
    for read, row in ((read_key, change.key), (record["values"], new), (record["old_values"], old)):
        assert (read is None) == (row is None)
        for name, cell in (read or {}).items():
            shown = normalize_avro(cell, types[name])
            if timestamps == "iso":
                shown = normal(shown, types[name])  # type: ignore[arg-type]
            assert same(shown, normal((row or {})[name], types[name])), name
    assert repr(record["key"]) == repr(read_key)
    assert (record["transaction"] is None) == (change.origin is None)


def read_datum(datum: bytes | None, schema: Any) -> Any:
    """A datum, read by the schema that a registry would have."""
    return fastavro.schemaless_reader(io.BytesIO(datum or b""), schema, None)


def old_row_of(change: Change) -> dict[str, Value] | None:
    """The whole row before a change, where a capture of whole rows knows it."""
    old = change.old_values
    if old is None or change.operation not in (Operation.UPDATE, Operation.DELETE):
        return None
    return dict(change.key) | dict(change.new_values or {}) | dict(old)


@given(drawn=changes())
def test_the_rows_of_a_plain_protobuf_record_are_those_of_the_change(
    drawn: tuple[Change, Known],
) -> None:
    change, known = drawn
    chosen = make_envelope("plain-protobuf")
    assume(is_allowed(chosen, known))
    assert isinstance(chosen, PlainProtobuf)
    schemas = chosen.describe_schemas(change.database, change.shape)
    assert schemas.key is not None
    ((key, value),) = encode([change], chosen)
    read_key = compile_message(schemas.key.text).FromString(key or b"")
    record: Any = compile_message(schemas.value.text).FromString(value or b"")
    new = None if change.new_values is None else dict(change.key) | dict(change.new_values)
    read = {name: getattr(record, name) for name in ("key", "values", "old_values")}
    for name, row in (("key", change.key), ("values", new), ("old_values", old_row_of(change))):
        assert record.HasField(name) == (row is not None)
        if row is not None:
            assert_holds_row(read[name], row, change.shape)
    assert read_key.SerializeToString() == record.key.SerializeToString()
    assert record.commit_timestamp.ToMicroseconds() == change.commit_timestamp
    assert record.window.end.ToMicroseconds() == change.window.end
    assert record.HasField("transaction") == (change.origin is not None)
    assert record.HasField("shard") == (change.shard_id is not None)


def assert_holds_row(message: Any, row: Mapping[str, Value], shape: Shape) -> None:
    """A message has each cell of a row; one that is NULL is not there."""
    for name, type_ in shape.columns:
        if name in row:
            assert message.HasField(name) == (row[name] is not None), name
            if row[name] is not None:
                shown = normalize_protobuf(getattr(message, name), type_)
                assert same(shown, normal(row[name], type_)), name


def normalize_protobuf(cell: Any, type_: Type) -> object:
    """A decoded cell of Protobuf, for comparison."""
    if type_.element is not None:
        return [
            normalize_protobuf(each.value, type_.element) if each.HasField("value") else None
            for each in cell.elements
        ]
    if type_.code is TypeCode.TIMESTAMP:
        moment = datetime(1970, 1, 1) + timedelta(seconds=cell.seconds)
        text = moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
        return text, f"{cell.nanos:09}".rstrip("0")
    return normalize_text(cell, type_)


def normalize_text(cell: Any, type_: Type) -> object:
    """A cell of a format that has texts of NUMERIC, DATE and JSON, for comparison."""
    if type_.code is TypeCode.NUMERIC:
        return Decimal(cell)
    if type_.code is TypeCode.DATE:
        return date.fromisoformat(cell)
    return json.loads(cell) if type_.code is TypeCode.JSON else cell


@given(drawn=changes())
def test_a_debezium_event_in_avro_is_the_one_in_json(drawn: tuple[Change, Known]) -> None:
    change, known = drawn
    chosen = make_envelope("debezium-avro", {"low_watermark": True})
    assume(is_allowed(chosen, known))
    assert isinstance(chosen, DebeziumAvro)
    schemas = chosen.describe_schemas(change.database, change.shape)
    assert schemas.key is not None
    (key, value), *tombstones = encode([change], chosen)
    assert tombstones == [(key, None)] * (change.operation is Operation.DELETE)
    event = read_datum(value, schemas.value.schema)
    written = json.loads(
        next(encode([change], make_envelope("debezium", {"low_watermark": True})))[1] or b""
    )
    for shown, told in ((event, written), (event["source"], written["source"])):
        for name in shown.keys() - {"before", "after", "source"}:
            fits = not isinstance(told[name], int) or told[name] < 2**63
            assert shown[name] == (told[name] if fits else None)
    read_key = read_datum(key, schemas.key.schema)
    new = dict(change.key) | dict(change.new_values or {})
    after = None if change.operation is Operation.DELETE else new
    rows = [(read_key, change.key), (event["after"], after), (event["before"], old_row_of(change))]
    types = dict(change.shape.columns)
    for read, row in rows:
        assert (read is None) == (row is None)
        for name, cell in (read or {}).items():
            shown = normalize_connect(cell, types[name])
            assert same(shown, normal((row or {})[name], types[name])), name


def normalize_connect(cell: Any, type_: Type) -> object:
    """A decoded cell of Debezium's Avro, for comparison."""
    if cell is None:
        return None
    if type_.element is not None:
        return [normalize_connect(each, type_.element) for each in cell]
    if type_.code is TypeCode.TIMESTAMP:
        return normal(cell, type_)
    return normalize_text(cell, type_)


@pytest.mark.parametrize("options", [o for name, o in CHOICES if name == "plain"], ids=str)
@given(drawn=changes())
def test_a_plain_record_keeps_to_the_schema_of_its_table(
    options: dict[str, Any], drawn: tuple[Change, Known]
) -> None:
    change, _ = drawn
    chosen = make_envelope("plain", options)
    assert isinstance(chosen, Plain)
    schema: Any = chosen.describe_schemas(change.database, change.shape).value.schema
    Draft7Validator.check_schema(schema)
    (message,) = chosen.encode(change)
    record = json.loads(message.value or b"")
    Draft7Validator(schema).validate(record)
    record["values"]["no column"] = 1
    assert not Draft7Validator(schema).is_valid(record)


@pytest.mark.parametrize("name", ["plain", "datastream", "debezium", "ydb"])
@given(drawn=changes())
def test_nothing_is_lost_in_the_cells_of_json(name: str, drawn: tuple[Change, Known]) -> None:
    change, known = drawn
    chosen = make_envelope(name)
    assume(is_allowed(chosen, known))
    record = json.loads(next(encode([change], chosen))[1] or b"")
    readers: dict[str, Callable[[], tuple[Any, Any]]] = {
        "plain": lambda: (dict(change.key) | dict(change.new_values or {}), record["values"]),
        "datastream": lambda: (last_row(change), record["payload"]),
        "debezium": lambda: (dict(change.key) | dict(change.new_values or {}), record["after"]),
        "ydb": lambda: (dict(change.new_values or {}), record.get("newImage")),
    }
    row, shown = readers[name]()
    if shown is None:
        assert change.operation is Operation.DELETE
        return
    nested = name in ("datastream", "ydb")
    types = dict(change.shape.columns)
    assert list(shown) == [column for column, _ in change.shape.columns if column in row]
    for column, cell in shown.items():
        assert same(
            normalize_json(cell, types[column], nested), normal(row[column], types[column])
        ), column


def normal(value: Value, type_: Type) -> object:
    """A cell for comparison: JSON parsed, TIMESTAMP as (seconds, digits)."""
    if value is None:
        return None
    if isinstance(value, list | tuple) and type_.element is not None:
        return [normal(item, type_.element) for item in value]
    if type_.code is TypeCode.JSON and isinstance(value, str):
        return json.loads(value)
    if type_.code is TypeCode.TIMESTAMP and isinstance(value, str):
        whole, _, fraction = value.removesuffix("Z").partition(".")
        return whole, fraction.rstrip("0")
    return value


def normalize_avro(cell: Any, type_: Type) -> object:
    """A decoded cell of Avro, for comparison."""
    if isinstance(cell, list) and type_.element is not None:
        return [normalize_avro(item, type_.element) for item in cell]
    if isinstance(cell, datetime):
        text = cell.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
        return text, f"{cell.microsecond:06}".rstrip("0")
    if type_.code is TypeCode.UUID and cell is not None:
        return str(cell)
    if type_.code is TypeCode.JSON and cell is not None:
        return json.loads(cell)
    return cell


def normalize_json(cell: Any, type_: Type, nested: bool) -> object:
    """A cell of a JSON record, for comparison. ``nested``: a JSON column stands in it as JSON."""
    if cell is None:
        return None
    if type_.element is not None:
        return [normalize_json(item, type_.element, nested) for item in cell]
    if type_.code is TypeCode.INT64:
        return int(cell)
    if type_.code in (TypeCode.FLOAT32, TypeCode.FLOAT64):
        return float(cell)
    if type_.code is TypeCode.NUMERIC:
        assert isinstance(cell, str)
        return Decimal(cell)
    if type_.code is TypeCode.BYTES:
        return b64decode(cell)
    if type_.code is TypeCode.DATE:
        return date.fromisoformat(cell)
    if type_.code is TypeCode.TIMESTAMP:
        return normal(cell, type_)
    if type_.code is TypeCode.JSON:
        return cell if nested else json.loads(cell)
    return cell


def same(one: object, other: object) -> bool:
    """Equal, with NaN equal to itself."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return one == other


@given(numbers=st.lists(st.integers(0, 10**17), min_size=2, max_size=2, unique=True))
def test_barriers_of_ydb_divide_the_records_before_from_those_after(numbers: list[int]) -> None:
    ydb = make_envelope("ydb", {"virtual_timestamps": True, "barriers": True})
    early, late = sorted(numbers)
    stamps = [
        json.loads(
            ydb.encode(change_of(ORDERS, Operation.INSERT, at, {"Id": 1}, {}, {}))[0].value or b""
        )["ts"]
        for at in (early, late)
    ]
    (barrier,) = ydb.encode_resolved(early)
    assert stamps[0] < json.loads(barrier.value or b"")["resolved"] <= stamps[1]
    validator("ydb.json").validate(json.loads(barrier.value or b""))
