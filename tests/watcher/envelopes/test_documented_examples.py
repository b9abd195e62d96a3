"""Every record equals, field by field, the example of the document that describes its format."""

from __future__ import annotations

import json

import pytest
from fixtures.documented import (
    DATASTREAM_EVENTS,
    STREAM_NAME,
    YDB_ERASE,
    YDB_IMAGES,
    YDB_STEP,
    YDB_TIMES,
    YDB_UPDATE,
    assert_shows,
    datastream_changes,
    micros,
    parse_record,
    transfer,
    ydb_erase_change,
    ydb_images_change,
    ydb_times_change,
    ydb_update_change,
)

from watcher.envelopes import make_envelope
from watcher.model.change import Change


def test_an_insert_an_update_and_a_delete_are_the_events_of_datastream() -> None:
    datastream = make_envelope("datastream", {"stream_name": STREAM_NAME})
    for change, example in zip(datastream_changes(), DATASTREAM_EVENTS, strict=True):
        (message,) = datastream.encode(change)
        event = parse_record(message.value)
        assert_shows(event, example)
        assert isinstance(event, dict)
        assert list(event["payload"]) == ["THIS_IS_MY_PK", "FIELD1", "FIELD2"]
        assert event["read_method"] == "cdc"


@pytest.mark.parametrize(
    ("mode", "change", "example"),
    [
        ("UPDATES", ydb_update_change(), YDB_UPDATE),
        ("UPDATES", ydb_erase_change(), YDB_ERASE),
        ("NEW_AND_OLD_IMAGES", ydb_images_change(), YDB_IMAGES),
    ],
)
def test_a_record_of_ydb_is_the_one_of_its_documentation(
    mode: str, change: Change, example: str
) -> None:
    (message,) = make_envelope("ydb", {"mode": mode}).encode(change)
    assert message.value == json.dumps(json.loads(example), separators=(",", ":")).encode()


def test_a_record_of_ydb_with_a_virtual_timestamp_has_a_number_for_its_transaction() -> None:
    """YDB's own number of a transaction cannot be had: ours is another for each transaction."""
    ydb = make_envelope("ydb", {"mode": "UPDATES", "virtual_timestamps": True})
    (message,) = ydb.encode(ydb_times_change())
    record, example = parse_record(message.value), json.loads(YDB_TIMES)
    assert isinstance(record, dict)
    step, transaction = record.pop("ts")
    del example["ts"]
    assert record == example
    assert step == YDB_STEP
    assert 0 <= transaction < 2**53


@pytest.mark.parametrize(("change", "example"), transfer())
def test_the_bank_transfer_is_the_records_of_the_change_stream_document(
    change: Change, example: dict[str, object]
) -> None:
    (message,) = make_envelope("change-stream").encode(change)
    assert parse_record(message.value) == example


def test_a_heartbeat_is_the_record_of_the_change_stream_document() -> None:
    (message,) = make_envelope("change-stream").encode_resolved(
        micros("2022-09-27T12:35:00.312486Z")
    )
    assert parse_record(message.value) == {
        "heartbeat_record": {"timestamp": "2022-09-27T12:35:00.312486Z"}
    }
