"""Records in a schema registry's wire format, read by Confluent's own deserializers."""

from __future__ import annotations

import base64
import json
import logging
import math
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fixtures.certificates import Certificate
from fixtures.documented import DATABASE
from fixtures.everything import rows, write, write_nanoseconds
from fixtures.kafka import MockCluster, read_records
from fixtures.queue_records import account_changes
from fixtures.registered_records import RegistryReader, show_row
from fixtures.schema_registry import BREAK, RegistryServer
from fixtures.server import CreateDatabase
from fixtures.singers import address_of, write_singers
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.keyset import KeySet
from google.protobuf.message import Message

from spanner_schema.model.schema import Dialect
from watcher import Watcher
from watcher.envelopes import ENVELOPES
from watcher.envelopes.record_schemas import SchemaEnvelope
from watcher.model.change import Change, Operation
from watcher.model.errors import (
    ConfigurationError,
    DeliveryError,
    EnvelopeError,
    SinkUnavailableError,
    UnavailableError,
)
from watcher.runners.preflight import check_queue
from watcher.settings.watcher import parse_watch_config
from watcher.sinks import registered
from watcher.sinks.dead_letters import read_dead_letters
from watcher.sinks.kafka import KafkaSink
from watcher.sinks.queues import open_queue
from watcher.sinks.refusals import RefusedChangesError
from watcher.sinks.retries import DeliveryPolicy, RetryingSink

pytest.importorskip("authlib", reason="needs the extra [registry]")
pytest.importorskip("fastavro", reason="needs the extra [avro]")

TABLE = "AccountBalance"
IMPATIENT = {"max.retries": 0, "timeout": 5}
REGISTERED = [name for name, kind in ENVELOPES.items() if issubclass(kind, SchemaEnvelope)]


def configure(
    cluster: MockCluster | None, registry: RegistryServer | str, **more: Any
) -> dict[str, Any]:
    """The settings of a delivery."""
    brokers = "127.0.0.1:1" if cluster is None else cluster.address
    address = registry if isinstance(registry, str) else registry.address
    kafka = {"schema_registry": address, "schema_registry_properties": IMPATIENT}
    delivery = {"to": f"kafka://{brokers}", "envelope": "plain-avro"}
    given = {"kafka": kafka | more["kafka"]} if "kafka" in more else {"kafka": kafka}
    return delivery | more | given


def open_sink(cluster: MockCluster, registry: RegistryServer | str, **more: Any) -> KafkaSink:
    """The sink of a watcher of one table."""
    values = {"database": f"spanner://{DATABASE}", "tables": [TABLE], "consumer": "c"}
    config = parse_watch_config(values | {"delivery": configure(cluster, registry, **more)})
    sink = open_queue(config)
    assert isinstance(sink, KafkaSink)
    return sink


def run_once(database: Database, cluster: MockCluster, registry: Any, **more: Any) -> None:
    """A watcher delivers all there is, or raises."""
    values: dict[str, Any] = {"tables": more.pop("tables", ["Singers"])}
    for name in ("table", "capture", "nanoseconds"):
        if name in more:
            values[name] = more.pop(name)
    watcher = Watcher(
        database=str(address_of(database)),
        consumer="to-kafka",
        start="earliest",
        delivery=configure(cluster, registry, **more),
        **values,
    )
    watcher.deliver_to(open_queue(watcher.config))
    watcher.run_once()


def deliver(sink: KafkaSink, *changes: Change) -> None:
    for change in changes:
        sink.write_change(change)
    sink.flush()


# What readers get.


@pytest.mark.both_dialects
def test_a_reader_gets_every_type_as_it_was_written(
    everything: Database, cluster: MockCluster, registry: RegistryServer
) -> None:
    cluster.create_topic("Everything", partitions=1)
    dialect = everything.database_dialect
    truth = rows(Dialect.POSTGRESQL if dialect.name == "POSTGRESQL" else Dialect.GOOGLESQL)
    write(everything, truth)
    run_once(everything, cluster, registry, tables=["Everything"])
    read = list(RegistryReader(registry.address).read_avro(read_records(cluster, "Everything")))
    assert len(read) == len(truth)
    by_id = {row["Id"]: row for row in truth}
    for key, value in read:
        row = by_id[key["Id"]]
        assert value["key"] == key == {"Id": row["Id"]}
        for name, cell in row.items():
            assert same(value["values"][name], cell, name), (name, value["values"][name], cell)


def same(read: Any, written: Any, name: str) -> bool:
    """Equal, as Avro's readers show the type of a column."""
    if isinstance(written, list):
        return len(read) == len(written) and all(
            same(*both, name) for both in zip(read, written, strict=True)
        )
    if isinstance(written, float) and math.isnan(written):
        return isinstance(read, float) and math.isnan(read)
    if name.startswith("Uu") and written is not None:
        return bool(str(read) == written)
    if name.startswith("Nu") and isinstance(read, str):
        return bool(
            Decimal(read) == written
        )  # PostgreSQL's has any number of digits, so it is text
    if name.startswith("Js") and written is not None:
        return bool(json.loads(read) == json.loads(written))
    return type(read) is type(written) and bool(read == written)


def test_nanoseconds_are_refused_or_text(
    everything: Database, cluster: MockCluster, registry: RegistryServer
) -> None:
    cluster.create_topic("Everything", partitions=1)
    write_nanoseconds(everything, 7)
    exact = {"tables": ["Everything"], "nanoseconds": "string"}
    with pytest.raises(EnvelopeError, match=r"finer than microseconds.*'plain'"):
        run_once(everything, cluster, registry, **exact)
    run_once(everything, cluster, registry, envelope_options={"timestamps": "iso"}, **exact)
    ((_, value),) = RegistryReader(registry.address).read_avro(read_records(cluster, "Everything"))
    assert value["values"]["Ti"] == "2026-01-02T03:04:05.123456789Z"
    assert value["values"]["Tis"] == ["2026-01-02T03:04:05.123456789Z", None]


@pytest.mark.parametrize("count", [3, 300])
def test_plain_records_keep_to_the_json_schema_of_their_table(
    everything: Database, cluster: MockCluster, registry: RegistryServer, count: int
) -> None:
    """Batches of 256 and more are encoded by column."""
    cluster.create_topic("Everything", partitions=1)
    truth = rows()
    write(everything, [truth[n % len(truth)] | {"Id": n} for n in range(count)])
    run_once(everything, cluster, registry, tables=["Everything"], envelope="plain")
    reader = RegistryReader(registry.address)
    values = list(reader.read_values(read_records(cluster, "Everything"), "json"))
    assert sorted(value["values"]["Id"] for value in values) == list(range(count))
    schema = registry.schema_of("Everything-value")
    assert schema["properties"]["values"]["properties"]["Nu"] == {"type": ["string", "null"]}
    assert not schema["properties"]["values"]["additionalProperties"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"int64": "text", "numeric": "number", "timestamps": "nanos", "bytes_as": "hex"},
        {"json_columns": "nested", "timestamps": "millis"},
    ],
)
def test_options_of_plain_are_in_its_json_schema(
    everything: Database, cluster: MockCluster, registry: RegistryServer, options: dict[str, str]
) -> None:
    cluster.create_topic("Everything", partitions=1)
    write(everything, rows())
    run_once(
        everything,
        cluster,
        registry,
        tables=["Everything"],
        envelope="plain",
        envelope_options=options,
    )
    reader = RegistryReader(registry.address)
    assert len(list(reader.read_values(read_records(cluster, "Everything"), "json"))) == 40


def get_kind(envelope: str) -> str:
    """The kind of its schemas, as ``RegistryReader`` calls it."""
    return {"plain": "json", "plain-protobuf": "protobuf"}.get(envelope, "avro")


def name_source(value: Any) -> Any:
    """The table of Debezium's event."""
    return value.get("source", {}).get("table")


@pytest.mark.parametrize("envelope", REGISTERED)
def test_tombstones_have_the_key_of_their_row_and_no_value(
    cluster: MockCluster, registry: RegistryServer, envelope: str
) -> None:
    cluster.create_topic(TABLE, partitions=1)
    (change,) = account_changes(1)
    deleted = replace(
        change, operation=Operation.DELETE, new_values=None, old_values=change.new_values
    )
    sink = open_sink(cluster, registry, envelope=envelope, kafka={"tombstones": True})
    deliver(sink, change, deleted)
    first, event, tombstone = read_records(cluster, TABLE)
    assert first.key == event.key == tombstone.key
    assert tombstone.value is None
    for value in RegistryReader(registry.address).read_values([first, event], get_kind(envelope)):
        if envelope == "plain-protobuf":
            assert value.table == TABLE
        else:
            assert TABLE in (value.get("table"), value.get("object"), name_source(value))
    if envelope == "plain-avro":
        (_, gone), (_, nothing) = RegistryReader(registry.address).read_avro([event, tombstone])
        assert gone["values"] is None
        assert gone["old_values"]["Balance"] == 0
        assert nothing is None


def test_keys_that_are_texts_have_no_schema(cluster: MockCluster, registry: RegistryServer) -> None:
    cluster.create_topic(TABLE, partitions=1)
    (change,) = account_changes(1)
    deliver(open_sink(cluster, registry, envelope="plain-avro", kafka={"text_keys": True}), change)
    (record,) = read_records(cluster, TABLE)
    assert (record.key or b"").decode() == str(next(iter(change.key.values())))
    assert list(registry.versions) == [f"{TABLE}-value"]


def test_a_new_column_is_a_new_version_and_both_can_be_read(
    singers: Database, cluster: MockCluster, registry: RegistryServer
) -> None:
    registry.levels[None] = "FULL_TRANSITIVE"
    cluster.create_topic("Singers", partitions=1)
    write_singers(singers, range(2), "before")
    run_once(singers, cluster, registry)
    singers.update_ddl(["ALTER TABLE Singers ADD COLUMN Age INT64"]).result(30)
    with singers.batch() as batch:
        batch.update("Singers", ("SingerId", "Age"), [(1, 40)])
    run_once(singers, cluster, registry)
    singers.update_ddl(["ALTER TABLE Singers DROP COLUMN Age"]).result(30)
    with singers.batch() as batch:
        batch.update("Singers", ("SingerId", "LastName"), [(1, "after")])
    run_once(singers, cluster, registry)
    records = read_records(cluster, "Singers")
    read = [value["values"] for _, value in RegistryReader(registry.address).read_avro(records)]
    assert ["Age" in row for row in read] == [False, False, True, False]
    assert [row["LastName"] for row in read] == ["before", "before", "before", "after"]
    # The last one has the schema of the first again.
    assert [len(ids) for ids in registry.versions.values()] == [1, 2]


@pytest.mark.both_dialects
@pytest.mark.parametrize("envelope", ["plain-protobuf", "debezium-avro"])
def test_confluents_reader_gets_every_type_of_any_format(
    everything: Database, cluster: MockCluster, registry: RegistryServer, envelope: str
) -> None:
    cluster.create_topic("Everything", partitions=1)
    dialect = everything.database_dialect
    truth = rows(Dialect.POSTGRESQL if dialect.name == "POSTGRESQL" else Dialect.GOOGLESQL)
    write(everything, truth)
    run_once(everything, cluster, registry, tables=["Everything"], envelope=envelope)
    records = read_records(cluster, "Everything")
    reader, by_id = RegistryReader(registry.address), {row["Id"]: row for row in truth}
    read = list(reader.read_values(records, get_kind(envelope)))
    assert len(read) == len(truth)
    for value in read:
        shown, row = show_row(value), by_id[show_row(value)["Id"]]
        for name, cell in row.items():
            found = shown.get(name)
            assert same_text(show_cell(found), cell, name), (name, found, cell)


def show_cell(cell: Any) -> Any:
    """A cell of Protobuf as one of Avro."""
    if isinstance(cell, Message) and cell.DESCRIPTOR.name == "Timestamp":
        return cell.ToDatetime(UTC)  # type: ignore[attr-defined]
    if isinstance(cell, Message):
        return [
            show_cell(each.value) if each.HasField("value") else None
            for each in cell.elements  # type: ignore[attr-defined]
        ]
    return cell


def same_text(read: Any, written: Any, name: str) -> bool:
    """As ``same``, where times, dates and decimals may be texts."""
    if isinstance(written, list) and read is not None:
        return len(read) == len(written) and all(
            same_text(*both, name) for both in zip(read, written, strict=True)
        )
    if isinstance(read, str) and isinstance(written, datetime):
        return datetime.fromisoformat(read) == written
    if isinstance(read, str) and isinstance(written, date):
        return date.fromisoformat(read) == written
    return same(read, written, name)


@pytest.mark.parametrize("envelope", ["plain-protobuf", "debezium-avro"])
def test_columns_may_come_and_go_and_may_not_change_their_type(
    singers: Database, cluster: MockCluster, registry: RegistryServer, envelope: str
) -> None:
    registry.levels[None] = "FULL_TRANSITIVE"
    cluster.create_topic("Singers", partitions=1)
    write_singers(singers, range(2), "before")
    run_once(singers, cluster, registry, envelope=envelope)
    for change, column, cell in (
        ("ADD COLUMN Age INT64", "Age", 40),
        ("DROP COLUMN Age", "LastName", "after"),
        ("ADD COLUMN Age STRING(9)", "Age", "old"),
    ):
        singers.update_ddl([f"ALTER TABLE Singers {change}"]).result(30)
        with singers.batch() as batch:
            batch.update("Singers", ("SingerId", column), [(1, cell)])
        if column == "Age" and cell == "old":
            with pytest.raises(RefusedChangesError, match=r"'Singers-value'.*\(FULL_TRANSITIVE\)"):
                run_once(singers, cluster, registry, envelope=envelope)
        else:
            run_once(singers, cluster, registry, envelope=envelope)
    reader = RegistryReader(registry.address)
    read = list(reader.read_values(read_records(cluster, "Singers"), get_kind(envelope)))
    shown = [show_row(each) for each in read]
    assert [row.get("Age") for row in shown] == [None, None, 40, None]
    assert shown[-1]["LastName"] == "after"


STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = '{}')"
NAMES = "CREATE TABLE T (Id INT64, Name STRING(MAX), Age INT64) PRIMARY KEY (Id)"


def stream_once(
    database: Database, cluster: MockCluster, registry: RegistryServer, envelope: str
) -> None:
    """As ``run_once``, of a change stream, from its last position or from now on."""
    watcher = Watcher(
        database=str(address_of(database)),
        tables=["T"],
        capture="change-stream",
        consumer="to-kafka",
        delivery=configure(cluster, registry, envelope=envelope),
    )
    watcher.deliver_to(open_queue(watcher.config))
    watcher.run_once()


def test_changes_of_a_stream_have_one_schema_and_both_rows(
    create_database: CreateDatabase, cluster: MockCluster, registry: RegistryServer
) -> None:
    cluster.create_topic("T", partitions=1)
    database = create_database(NAMES, STREAM.format("NEW_ROW_AND_OLD_VALUES"))
    stream_once(database, cluster, registry, "plain-avro")
    before = {"Id": 1, "Name": "before", "Age": None}
    with database.batch() as batch:
        batch.insert("T", list(before), [list(before.values())])
    with database.batch() as batch:
        batch.update("T", ("Id", "Name"), [(1, "after")])
    with database.batch() as batch:
        batch.delete("T", KeySet(keys=[(1,)]))
    stream_once(database, cluster, registry, "plain-avro")
    records = read_records(cluster, "T")
    read = [value for _, value in RegistryReader(registry.address).read_avro(records)]
    after = before | {"Name": "after"}
    assert [(value["operation"], value["old_values"], value["values"]) for value in read] == [
        ("INSERT", None, before),
        ("UPDATE", before, after),
        ("DELETE", after, None),
    ]
    assert all(value["transaction"]["sequence"] == "00000000" for value in read)
    assert [len(ids) for ids in registry.versions.values()] == [1, 1]


@pytest.mark.parametrize("envelope", REGISTERED)
def test_captures_with_only_some_columns_are_refused(
    create_database: CreateDatabase, registry: RegistryServer, cluster: MockCluster, envelope: str
) -> None:
    database = create_database(NAMES, STREAM.format("NEW_VALUES"))
    with pytest.raises(ConfigurationError, match="NEW_ROW_AND_OLD_VALUES"):
        stream_once(database, cluster, registry, envelope)


def test_schemas_are_asked_for_once(
    singers: Database, cluster: MockCluster, registry: RegistryServer
) -> None:
    cluster.create_topic("Singers", partitions=1)
    write_singers(singers, range(400), "name")
    run_once(singers, cluster, registry)
    posts = [path for method, path in registry.calls if method == "POST"]
    assert sorted(posts) == ["/subjects/Singers-key/versions", "/subjects/Singers-value/versions"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("topic", {"cdc.AccountBalance-key", "cdc.AccountBalance-value"}),
        ("record", {"db1.AccountBalance.Key", "db1.AccountBalance.Value"}),
        (
            "topic-record",
            {
                "cdc.AccountBalance-db1.AccountBalance.Key",
                "cdc.AccountBalance-db1.AccountBalance.Value",
            },
        ),
    ],
)
def test_subjects_are_named_as_confluents_serializers_name_them(
    cluster: MockCluster, registry: RegistryServer, names: str, expected: set[str]
) -> None:
    cluster.create_topic(f"cdc.{TABLE}", partitions=1)
    to = f"kafka://{cluster.address}/cdc.{{table}}"
    sink = open_sink(cluster, registry, to=to, kafka={"subject_names": names})
    deliver(sink, *account_changes(1))
    assert {subject for subject, ids in registry.versions.items() if ids} == expected


def test_rows_of_two_tables_in_a_topic_have_two_keys(
    cluster: MockCluster, registry: RegistryServer
) -> None:
    cluster.create_topic("all", partitions=1)
    to = f"kafka://{cluster.address}/all"
    (change,) = account_changes(1)
    other = replace(change, shape=replace(change.shape, table="app.Other"))
    sink = open_sink(cluster, registry, to=to, kafka={"subject_names": "topic-record"})
    deliver(sink, change, other)
    one, two = read_records(cluster, "all")
    assert one.key != two.key
    read = list(RegistryReader(registry.address).read_avro([one, two]))
    assert [value["table"] for _, value in read] == [TABLE, "app.Other"]
    assert "all-db1.app.Other.Value" in registry.versions


# What the registry refuses.


def retype(change: Change) -> Change:
    """The same row, its balance as a text: Avro does not read one as the other."""
    columns = tuple(
        (name, type_ if name != "Balance" else dict(change.shape.columns)["AccountId"])
        for name, type_ in change.shape.columns
    )
    return replace(
        change,
        id=f"{change.id}-retyped",
        shape=replace(change.shape, columns=columns),
        new_values={"Balance": "many"},
    )


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("skip", [False, True])
def test_an_incompatible_schema_is_refused_with_its_subject_and_rule(
    cluster: MockCluster,
    registry: RegistryServer,
    tmp_path: Path,
    skip: bool,
    transactional: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registered, "REFUSAL_SECONDS", math.inf)
    cluster.create_topic(TABLE, partitions=1)
    registry.levels[f"{TABLE}-value"] = "FULL"
    one, two, three, four = account_changes(4)
    sink = open_sink(cluster, registry, kafka={"transactional": transactional})
    letters = tmp_path / "dead.jsonl"
    retrying = RetryingSink(sink, DeliveryPolicy(dead_letters=letters if skip else None))
    retrying.write_change(one)
    refused = [retype(two), retype(three)]
    expected = rf"subject '{TABLE}-value'.*\(FULL\).*set another compatibility"
    if not skip:
        with pytest.raises(RefusedChangesError, match=expected) as raised:
            retrying.write_change(refused[0])
        assert raised.value.exit_code == 9
        return
    for each in refused:
        retrying.write_change(each)
    retrying.write_change(four)
    retrying.flush()
    found = list(read_dead_letters(letters))
    assert [each["id"] for each in found] == [each.id for each in refused]
    assert all("FULL" in str(each["error"]) for each in found)
    read = RegistryReader(registry.address).read_avro(read_records(cluster, TABLE))
    assert [value["id"] for _, value in read] == [one.id, four.id]
    asked = [path for method, path in registry.calls if method == "POST" and "value" in path]
    assert len(asked) == 2, "the second change is refused by the answer about the first"


def test_a_refusal_is_not_the_answer_for_ever(
    cluster: MockCluster, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registered, "REFUSAL_SECONDS", 0.0)
    cluster.create_topic(TABLE, partitions=1)
    one, two = account_changes(2)
    sink = open_sink(cluster, registry)
    deliver(sink, one)
    with pytest.raises(RefusedChangesError, match=r"\(BACKWARD\)"):
        sink.write_change(retype(two))
    registry.levels[f"{TABLE}-value"] = "NONE"
    deliver(sink, retype(two))
    read = RegistryReader(registry.address).read_avro(read_records(cluster, TABLE))
    assert [value["values"]["Balance"] for _, value in read] == [0, "many"]


def test_a_watcher_stops_before_an_incompatible_change_and_goes_on_when_it_is_allowed(
    singers: Database, cluster: MockCluster, registry: RegistryServer
) -> None:
    cluster.create_topic("Singers", partitions=1)
    write_singers(singers, range(2), "name")
    run_once(singers, cluster, registry)
    for statement in ("DROP COLUMN LastName", "ADD COLUMN LastName INT64"):
        singers.update_ddl([f"ALTER TABLE Singers {statement}"]).result(30)
    with singers.batch() as batch:
        batch.update("Singers", ("SingerId", "LastName"), [(1, 40)])
    for _ in range(2):
        with pytest.raises(RefusedChangesError, match=r"'Singers-value'.*\(BACKWARD\)"):
            run_once(singers, cluster, registry)
    registry.levels["Singers-value"] = "NONE"
    run_once(singers, cluster, registry)
    read = RegistryReader(registry.address).read_avro(read_records(cluster, "Singers"))
    assert [value["values"]["LastName"] for _, value in read] == ["name", "name", 40]


def test_without_registration_a_missing_schema_stops_and_names_its_subject(
    cluster: MockCluster, registry: RegistryServer
) -> None:
    cluster.create_topic(TABLE, partitions=1)
    (change,) = account_changes(1)
    only = {"auto_register": False}
    sink = open_sink(cluster, registry, kafka=only)
    with pytest.raises(DeliveryError, match=rf"subject '{TABLE}-key'.*register it"):
        sink.write_change(change)
    assert not any(registry.versions.values())
    deliver(open_sink(cluster, registry), change)
    deliver(sink, change)
    read = RegistryReader(registry.address).read_avro(read_records(cluster, TABLE))
    assert len(list(read)) == 2


@pytest.mark.parametrize("envelope", [name for name in REGISTERED if name != "plain"])
@pytest.mark.parametrize("name", ["a-b", "Größe", "1st"])
def test_a_column_whose_name_the_format_does_not_allow_is_refused(
    cluster: MockCluster, registry: RegistryServer, envelope: str, name: str
) -> None:
    cluster.create_topic(TABLE, partitions=1)
    (change,) = account_changes(1)
    columns = (*change.shape.columns, (name, change.shape.columns[0][1]))
    named = replace(
        change,
        shape=replace(change.shape, columns=columns),
        new_values={"Balance": 1, "LastUpdate": None, name: "x"},
    )
    sink = open_sink(cluster, registry, envelope=envelope)
    with pytest.raises(EnvelopeError, match=r"(Avro|Protobuf) does not allow a column name"):
        sink.write_change(named)
    assert not any(registry.versions.values())


# What a registry does that is not there, or not well.


def test_a_registry_that_does_not_answer_is_found_at_the_start(cluster: MockCluster) -> None:
    silent = RegistryServer()
    silent.close()
    with pytest.raises(UnavailableError, match=rf"{silent.address} does not answer") as raised:
        open_sink(cluster, silent)
    assert raised.value.exit_code == 3
    values = {"database": f"spanner://{DATABASE}", "tables": [TABLE]}
    config = parse_watch_config(values | {"delivery": configure(cluster, silent)})
    finding = check_queue(config)
    assert not finding.ok
    assert silent.address in finding.detail


@pytest.mark.parametrize(
    ("status", "envelope", "count"),
    [
        (BREAK, "plain-avro", 5),
        (429, "datastream-avro", 5),
        (503, "plain", 5),
        (503, "plain-protobuf", 5),
        (BREAK, "debezium-avro", 300),
        (500, "plain", 300),
        (500, "plain-avro", 300),
    ],
)
def test_an_outage_delivers_the_window_again_and_loses_nothing(
    singers: Database,
    cluster: MockCluster,
    registry: RegistryServer,
    status: int,
    envelope: str,
    count: int,
) -> None:
    """Batches of 256 and more are encoded by column."""
    cluster.create_topic("Singers", partitions=1)
    write_singers(singers, range(count), "name")
    failed = 0

    def fail(method: str, _: str) -> int | None:
        nonlocal failed
        failed += method == "POST"
        return status if method == "POST" and failed < 2 else None

    registry.fail = fail
    run_once(singers, cluster, registry, envelope=envelope)
    assert failed >= 2
    records = read_records(cluster, "Singers")
    read = RegistryReader(registry.address).read_values(records, get_kind(envelope))
    assert {show_row(value)["SingerId"] for value in read} == set(range(count))


def test_a_call_without_an_answer_in_time_is_an_outage(
    cluster: MockCluster, registry: RegistryServer
) -> None:
    cluster.create_topic(TABLE, partitions=1)
    patience = {"schema_registry_properties": IMPATIENT | {"timeout": 0.05}}
    sink = open_sink(cluster, registry, kafka=patience)
    (change,) = account_changes(1)
    registry.open.clear()
    with pytest.raises(SinkUnavailableError, match="does not answer"):
        sink.write_change(change)
    registry.open.set()
    sink.discard()
    deliver(sink, change)
    assert len(read_records(cluster, TABLE)) == 1


@pytest.mark.parametrize("status", [200, 302, 400, 404])
def test_a_server_that_is_not_a_registry_is_named(
    cluster: MockCluster, registry: RegistryServer, status: int
) -> None:
    registry.fail = lambda method, _path: status if method == "POST" or status != 200 else None
    (change,) = account_changes(1)
    with pytest.raises(DeliveryError, match=r"does not do what is asked.*ccompat|gave no id"):
        open_sink(cluster, registry).write_change(change)


def test_credentials_are_sent_and_never_shown(
    cluster: MockCluster,
    registry: RegistryServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    cluster.create_topic(TABLE, partitions=1)
    registry.authorization = f"Basic {base64.b64encode(b'watcher:geheim').decode()}"
    file = tmp_path / "registry"
    for secret in ("watcher:geheim", "watcher:falsch"):
        file.write_text(secret)
        properties = IMPATIENT | {"basic.auth.user.info": {"file": str(file)}}
        kafka = {"schema_registry_properties": properties}
        if secret.endswith("geheim"):
            sink = open_sink(cluster, registry, kafka=kafka)
            deliver(sink, *account_changes(1))
        else:
            with pytest.raises(DeliveryError, match="does not allow this") as raised:
                open_sink(cluster, registry, kafka=kafka)
            assert "falsch" not in f"{raised.getrepr(chain=True)}".replace('"watcher:falsch"', "")
    assert "geheim" not in caplog.text
    assert "falsch" not in caplog.text


def test_an_authority_of_the_users_own_is_believed(
    cluster: MockCluster, server_certificate: Certificate
) -> None:
    cluster.create_topic(TABLE, partitions=1)
    server = RegistryServer(server_certificate)
    with pytest.raises(UnavailableError, match="certificate"):
        open_sink(cluster, server)
    location = {"ssl.ca.location": str(server_certificate.certificate)}
    properties = {"schema_registry_properties": IMPATIENT | location}
    deliver(open_sink(cluster, server, kafka=properties), *account_changes(1))
    reader = RegistryReader(server.address, **location)
    assert len(list(reader.read_avro(read_records(cluster, TABLE)))) == 1
    server.close()


# Settings.

SETTINGS: list[tuple[dict[str, Any], str]] = [
    (
        {"envelope": "debezium"},
        "'debezium' has no schemas.*plain, plain-avro, plain-protobuf, data",
    ),
    ({"envelope": "cloudevents"}, "'cloudevents' has no schemas"),
    ({"kafka": {"schema_registry": "ftp://x"}}, "'ftp://x' is not an address of a registry"),
    ({"kafka": {"schema_registry": "http://u:geheim@x"}}, "this is not an address"),
    ({"kafka": {"schema_registry": "u:geheim@x"}}, "this is not an address"),
    ({"kafka": {"schema_registry": None}}, "schema_registry_properties needs schema_registry"),
    ({"kafka": {"schema_registry_properties": {"url": "x"}}}, "'url' cannot be set"),
    ({"kafka": {"subject_names": "table"}}, "subject_names"),
    ({"to": "pubsub://my-project"}, r"\[delivery.kafka\] needs to = 'kafka://"),
    ({"envelope_options": {"namespace": "1-x"}}, "namespace"),
]


@pytest.mark.parametrize(("delivery", "expected"), SETTINGS)
def test_wrong_settings_are_refused(delivery: dict[str, Any], expected: str) -> None:
    values = configure(None, "http://127.0.0.1:1", **delivery)
    with pytest.raises(ConfigurationError, match=expected) as raised:
        parse_watch_config(
            {"database": f"spanner://{DATABASE}", "tables": [TABLE], "delivery": values}
        )
    assert "geheim" not in str(raised.value)


@pytest.mark.parametrize(
    ("envelope", "names", "topic", "allowed"),
    [
        ("plain-avro", "topic", "{table}", True),
        ("plain-avro", "topic", "all", False),
        ("plain-avro", "topic-record", "all", True),
        ("plain-avro", "record", "all", True),
        ("plain", "record", "all", True),
        ("plain", "topic", "all", False),
        ("plain-protobuf", "topic-record", "all", True),
        ("plain-protobuf", "topic", "all", False),
        ("debezium-avro", "record", "all", True),
        ("debezium-avro", "topic", "all", False),
        ("datastream-avro", "topic", "{table}", True),
        ("datastream-avro", "topic-record", "all", False),
        ("datastream-avro", "record", "{table}", False),
    ],
)
def test_schemas_of_two_tables_do_not_share_a_subject(
    envelope: str, names: str, topic: str, allowed: bool
) -> None:
    delivery = configure(
        None,
        "http://127.0.0.1:1",
        envelope=envelope,
        to=f"kafka://127.0.0.1:1/{topic}",
        kafka={"subject_names": names},
    )
    values = {"database": f"spanner://{DATABASE}", "tables": ["A", "B"], "delivery": delivery}
    if allowed:
        parse_watch_config(values)
    else:
        with pytest.raises(ConfigurationError, match="would have one subject"):
            parse_watch_config(values)


@pytest.mark.parametrize("to", ["-", "kafka://127.0.0.1:1", "pubsub://my-project"])
def test_records_whose_schemas_nobody_finds_are_refused(to: str) -> None:
    values = {
        "database": f"spanner://{DATABASE}",
        "tables": [TABLE],
        "delivery": {"to": to, "envelope": "plain-avro"},
    }
    with pytest.raises(ConfigurationError, match=r"'plain-avro' needs .*schema_registry"):
        parse_watch_config(values)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"max.retries": "geheim"}, "max.retries must be a number"),
        ({"basic.auth.user.info": "geheim"}, "username"),
        ({"no.such": "geheim"}, "no.such"),
        ({"ssl.ca.location": "/no/such/geheim"}, "schema_registry_properties"),
    ],
)
def test_wrong_properties_are_refused_without_their_values(
    cluster: MockCluster, properties: dict[str, str], expected: str
) -> None:
    with pytest.raises(ConfigurationError, match=expected) as raised:
        open_sink(cluster, "http://127.0.0.1:1", kafka={"schema_registry_properties": properties})
    assert "geheim" not in str(raised.value)
