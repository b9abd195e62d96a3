"""Records of real writes, through a change stream: those of the documents, field by field."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from fixtures.documented import (
    TRANSFER_TAG,
    YDB_ERASE,
    YDB_IMAGES,
    YDB_UPDATE,
    account_record,
    assert_shows,
    datastream_example,
)
from fixtures.singers import address_of
from fixtures.versions import set_partition_mode, with_each_mode
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeySet
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from watcher import Watcher
from watcher.envelopes import order
from watcher.envelopes.lines import JsonLines
from watcher.model.errors import ConfigurationError
from watcher.runners.preflight import check
from watcher.settings.watcher import WatchConfig, parse_watch_config
from watcher.sinks.lines import Lines

Create = Callable[..., Database]
SAMPLE = """CREATE TABLE SAMPLE (
  THIS_IS_MY_PK INT64, FIELD1 STRING(MAX), FIELD2 STRING(MAX) NOT NULL
) PRIMARY KEY (THIS_IS_MY_PK)"""
ACCOUNTS = """CREATE TABLE AccountBalance (
  AccountId STRING(MAX), LastUpdate TIMESTAMP OPTIONS (allow_commit_timestamp = true), Balance INT64
) PRIMARY KEY (AccountId)"""
LOREM = """CREATE TABLE Lorem (
  Id INT64, Name STRING(MAX), payload STRING(MAX), date DATE
) PRIMARY KEY (Id, Name)"""
IMAGES = """CREATE TABLE Images (
  A INT64, B INT64, C INT64, textColumn STRING(MAX), intColumn INT64, boolColumn BOOL
) PRIMARY KEY (A, B, C)"""


def stream(captured: str, mode: str = "IMMUTABLE_KEY_RANGE") -> str:
    created = f"CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = '{captured}')"
    return set_partition_mode(created, mode)


def config_of(
    database: Database, table: str, envelope: str, options: dict[str, object], **more: object
) -> WatchConfig:
    return parse_watch_config(
        {
            "database": str(address_of(database)),
            "tables": [table],
            "capture": "change-stream",
            "consumer": "c",
            "delivery": {"envelope": envelope, "envelope_options": options},
        }
        | more
    )


def lines(config: WatchConfig) -> list[Any]:
    """What one run writes of what is there."""
    file = io.StringIO()
    watcher = Watcher(config)
    watcher.deliver_to(Lines(file, JsonLines(config.format)))
    watcher.run_once()
    return [json.loads(line) for line in file.getvalue().splitlines()]


def begin(config: WatchConfig) -> None:
    """Registers the consumer: the changes from here on are its own."""
    assert [line for line in lines(config) if "heartbeat_record" not in line] == []


def write_sample(database: Database) -> None:
    columns = ("THIS_IS_MY_PK", "FIELD1", "FIELD2")
    with database.batch() as batch:
        batch.insert("SAMPLE", columns, [(1231535353, "foo", "TLV")])
    with database.batch() as batch:
        batch.update("SAMPLE", columns[:2], [(1231535353, None)])
    with database.batch() as batch:
        batch.delete("SAMPLE", KeySet(keys=[[1231535353]]))


@with_each_mode
def test_three_writes_are_the_three_events_of_datastream(
    create_database: Create, mode: str
) -> None:
    database = create_database(SAMPLE, stream("NEW_ROW_AND_OLD_VALUES", mode))
    config = config_of(database, "SAMPLE", "datastream", {"stream_name": "s"})
    begin(config)
    write_sample(database)
    events = lines(config)
    for event, (kind, field1) in zip(
        events, [("INSERT", "foo"), ("UPDATE", None), ("DELETE", None)], strict=True
    ):
        example = datastream_example(
            kind, field1, event["source_timestamp"], event["read_timestamp"]
        )
        metadata = example["source_metadata"]
        assert isinstance(metadata, dict)
        metadata |= {"database": database.database_id, "schema": ""}
        assert_shows(event, example | {"stream_name": "s"})
        assert event["source_timestamp"] <= event["read_timestamp"]
    assert [event["sort_keys"] for event in events] == sorted(e["sort_keys"] for e in events)
    assert len({event["uuid"] for event in events}) == 3


@with_each_mode
def test_three_writes_are_four_messages_of_debezium(create_database: Create, mode: str) -> None:
    database = create_database(SAMPLE, stream("NEW_ROW_AND_OLD_VALUES", mode))
    options: dict[str, object] = {"before": "required", "with_schema": True}
    config = config_of(database, "SAMPLE", "debezium", options, stream={"name": "S"})
    begin(config)
    write_sample(database)
    messages = lines(config)
    foo = {"THIS_IS_MY_PK": 1231535353, "FIELD1": "foo", "FIELD2": "TLV"}
    gone = foo | {"FIELD1": None}
    payloads = [line["value"]["payload"] for line in messages[:3]]
    assert [(p["op"], p["before"], p["after"]) for p in payloads] == [
        ("c", None, foo),
        ("u", foo, gone),
        ("d", gone, None),
    ]
    assert {p["source"]["change_stream_name"] for p in payloads} == {"S"}
    assert messages[3]["value"] is None
    assert [line["key"]["payload"] for line in messages] == [{"THIS_IS_MY_PK": 1231535353}] * 4
    pairs = [(json.dumps(f["key"]).encode(), json.dumps(f["value"]).encode()) for f in messages[:3]]
    assert order.select_newest(pairs, "debezium") == pairs[2:]


@with_each_mode
@pytest.mark.parametrize("captured", ["OLD_AND_NEW_VALUES", "NEW_ROW_AND_OLD_VALUES"])
def test_a_bank_transfer_is_the_two_records_of_the_document(
    create_database: Create, captured: str, mode: str
) -> None:
    database = create_database(ACCOUNTS, stream(captured, mode))
    columns = ("AccountId", "LastUpdate", "Balance")
    with database.batch() as batch:
        rows = [("Id1", COMMIT_TIMESTAMP, 1500), ("Id2", COMMIT_TIMESTAMP, 1500)]
        batch.insert("AccountBalance", columns, rows)
    config = config_of(database, "AccountBalance", "change-stream", {})
    begin(config)

    def transfer(transaction: Transaction) -> None:
        changed = [("Id1", COMMIT_TIMESTAMP, 1000), ("Id2", COMMIT_TIMESTAMP, 2000)]
        transaction.update("AccountBalance", columns, changed)

    database.run_in_transaction(transfer, transaction_tag=TRANSFER_TAG)
    records = [line["data_change_record"] for line in lines(config) if "data_change_record" in line]
    assert sorted(r["mods"][0]["keys"]["AccountId"] for r in records) == ["Id1", "Id2"]
    for record in records:
        (mod,) = record["mods"]
        account = mod["keys"]["AccountId"]
        at, before = record["commit_timestamp"], mod["old_values"]["LastUpdate"]
        assert before < at
        new = {"LastUpdate": at, "Balance": {"Id1": 1000, "Id2": 2000}[account]}
        old = {"LastUpdate": before, "Balance": 1500}
        example: Any = account_record(account, new, old, captured)["data_change_record"]
        # What is the server's to choose: times, ids, and on how many partitions the rows are.
        for name in ("commit_timestamp", "record_sequence", "server_transaction_id"):
            example[name] = record[name]
        for name in ("records", "partitions"):
            example[f"number_of_{name}_in_transaction"] = record[f"number_of_{name}_in_transaction"]
        last = "is_last_record_in_transaction_in_partition"
        assert record | {last: True} == example


@with_each_mode
def test_writes_are_the_records_of_ydb(create_database: Create, mode: str) -> None:
    database = create_database(LOREM, IMAGES, stream("NEW_ROW_AND_OLD_VALUES", mode))
    with database.batch() as batch:
        batch.insert("Lorem", ("Id", "Name"), [(1, "one"), (2, "two")])
        columns = ("A", "B", "C", "textColumn", "intColumn", "boolColumn")
        batch.insert("Images", columns, [(1, 2, 3, None, 100, False)])
    both: dict[str, object] = {"mode": "NEW_AND_OLD_IMAGES"}
    updates = config_of(database, "Lorem", "ydb", {"mode": "UPDATES"}, consumer="updates")
    images = config_of(database, "Images", "ydb", both, consumer="images")
    begin(updates)
    begin(images)
    with database.batch() as batch:
        row = (1, "one", "lorem ipsum", "2022-02-22")
        batch.update("Lorem", ("Id", "Name", "payload", "date"), [row])
        batch.update("Images", columns, [(1, 2, 3, "value1", 101, True)])
    with database.batch() as batch:
        batch.delete("Lorem", KeySet(keys=[[2, "two"]]))
    # They are two rows, so that either may come first.
    records = sorted(lines(updates), key=lambda record: str(record["key"]))
    assert records == [json.loads(YDB_UPDATE), json.loads(YDB_ERASE)]
    assert lines(images) == [json.loads(YDB_IMAGES)]


@pytest.mark.parametrize(
    ("captured", "envelope", "options", "words"),
    [
        ("NEW_VALUES", "datastream", {}, "use value_capture_type NEW_ROW_AND_OLD_VALUES"),
        ("NEW_ROW", "datastream", {}, "also of a delete"),
        ("NEW_VALUES", "debezium", {}, "use value_capture_type NEW_ROW or"),
        ("NEW_ROW", "debezium", {"before": "required"}, "does not know the row before a change"),
        ("NEW_ROW", "ydb", {"mode": "UPDATES"}, "does not know which did: use NEW_IMAGE"),
        ("OLD_AND_NEW_VALUES", "ydb", {"mode": "OLD_IMAGE"}, "NEW_ROW_AND_OLD_VALUES"),
    ],
)
def test_what_the_stream_does_not_capture_is_refused_at_the_start_and_by_check(
    create_database: Create, captured: str, envelope: str, options: dict[str, object], words: str
) -> None:
    database = create_database(SAMPLE, stream(captured))
    config = config_of(database, "SAMPLE", envelope, options)
    failed = [finding for finding in check(config) if not finding.ok]
    assert [words in finding.detail for finding in failed] == [True]
    with pytest.raises(ConfigurationError) as raised:
        lines(config)
    assert words in str(raised.value)


def test_whole_rows_fill_what_the_stream_does_not_capture(create_database: Create) -> None:
    database = create_database(SAMPLE, stream("NEW_VALUES"))
    config = config_of(database, "SAMPLE", "debezium", {}, stream={"whole_rows": True})
    begin(config)
    write_sample(database)
    events = [line["value"] for line in lines(config)]
    assert [event and event["op"] for event in events] == ["c", "u", "d", None]
    assert events[1]["after"] == {"THIS_IS_MY_PK": 1231535353, "FIELD1": None, "FIELD2": "TLV"}
    assert [event["before"] for event in events[:3]] == [None, None, None]
