"""Lines of the formats that the kit reads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from conformance.changes import UNKNOWN, Change
from conformance.formats import FORMATS, UnreadableLineError, parse_line

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "conformance.md").read_text()
AT = 1_769_860_800_123_456
TIME = "2026-01-31T12:00:00.123456Z"


def read(value: object, name: str) -> Change:
    (change,) = parse_line(json.dumps(value).encode(), name)
    return change


def test_the_documented_line_is_read() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert read(json.loads(text), "plain") == Change(
        table="Entries",
        key=(3, 1),
        at=AT,
        operation="UPDATE",
        new="b7/0",
        old="a1/0",
        transaction="MTIz",
        id="9f8c",
        window=(AT - 1_123_456, AT + 876_544),
    )


def test_only_table_key_and_commit_timestamp_are_required() -> None:
    line: dict[str, Any] = {"table": "Events", "key": ["a"], "commit_timestamp": TIME}
    assert read(line, "plain") == Change("Events", ("a",), AT, "UPSERT")
    for name in line:
        rest = {key: value for key, value in line.items() if key != name}
        with pytest.raises(UnreadableLineError, match=name):
            read(rest, "plain")


def test_keys_are_in_the_tables_order_and_numbers_may_be_texts() -> None:
    key = {"EntryId": "1", "Id": "3"}
    line = {"table": "Entries", "key": key, "commit_timestamp": TIME}
    assert read(line, "plain").key == (3, 1)


def test_a_delete_has_no_new_version() -> None:
    line = {"table": "Events", "key": ["a"], "commit_timestamp": TIME, "operation": "DELETE"}
    assert read(line, "plain").new is None


def test_events_of_debezium_are_read_with_and_without_schema() -> None:
    event = {
        "before": {"Id": 3, "Version": "a"},
        "after": {"Id": 3, "Version": "b"},
        "source": {"table": "Accounts", "ts_us": AT, "server_transaction_id": "t"},
        "op": "u",
    }
    expected = Change("Accounts", (3,), AT, "UPDATE", "b", "a", "t")
    assert read(event, "debezium") == expected
    assert read({"schema": {}, "payload": event}, "debezium") == expected
    deleted = event | {"after": None, "op": "d"}
    assert read(deleted, "debezium") == Change("Accounts", (3,), AT, "DELETE", None, "a", "t")
    assert parse_line(b"null", "debezium") == []


def test_records_of_a_change_stream_have_a_change_for_each_mod() -> None:
    mods = [
        {"keys": {"Name": name}, "new_values": {"Version": name}, "old_values": {}}
        for name in ("a", "b")
    ]
    record = {
        "table_name": "Events",
        "commit_timestamp": TIME,
        "server_transaction_id": "t",
        "mod_type": "INSERT",
        "mods": mods,
    }
    changes = parse_line(json.dumps({"data_change_record": record}).encode(), "change-stream")
    assert changes == [
        Change("Events", (name,), AT, "INSERT", name, None, "t") for name in ("a", "b")
    ]
    assert parse_line(b'{"heartbeat_record": {}}', "change-stream") == []


def test_events_of_datastream_are_read() -> None:
    event = {
        "uuid": "u",
        "sort_keys": [AT, "t", "0", 0],
        "source_metadata": {
            "table": "Entries",
            "is_deleted": False,
            "change_type": "INSERT",
            "tx_id": "t",
        },
        "payload": {"Id": "3", "EntryId": "1", "Version": "a"},
    }
    expected = Change("Entries", (3, 1), AT, "INSERT", "a", UNKNOWN, "t", "u")
    assert read(event, "datastream") == expected


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize("text", [b"Traceback:", b"[]", b'{"table": 1', b"7"])
def test_what_is_no_change_is_unreadable(name: str, text: bytes) -> None:
    with pytest.raises(UnreadableLineError):
        parse_line(text, name)
