"""Changes in Kafka, read back by a consumer: librdkafka's mock cluster, and faults in it."""

from __future__ import annotations

import base64
import json
import logging
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fixtures.commands import run_watch_to
from fixtures.envelope_examples import EXAMPLES, Options, example_change
from fixtures.kafka import MockCluster, balances, read_records, values_of
from fixtures.queue_records import account_changes, assert_in_order, assert_tells_the_truth
from fixtures.singers import address_of, write_singers
from fixtures.watcher_threads import run_without_error
from fixtures.writing import SingersWriter, run_beside
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.column_types import Type, TypeCode
from watcher import Watcher
from watcher.envelopes import make_envelope
from watcher.model.change import Change, Operation, Shape, Value
from watcher.model.errors import (
    ConfigurationError,
    DeliveryError,
    EnvelopeError,
    SinkUnavailableError,
    UnavailableError,
)
from watcher.process.failpoints import VARIABLE
from watcher.settings.destinations import KafkaDestination
from watcher.settings.destinations.kafka import KafkaOptions
from watcher.settings.secret_values import hide_all
from watcher.sinks.dead_letters import read_dead_letters
from watcher.sinks.kafka import KafkaSink
from watcher.sinks.queues import open_queue
from watcher.sinks.refusals import RefusedChangesError
from watcher.sinks.retries import DeliveryPolicy, RetryingSink

TABLE = "AccountBalance"
IMPATIENT = {"message.timeout.ms": 1_500, "reconnect.backoff.max.ms": 100}
"""Properties with which a test does not wait long for an outage, nor for its end."""


def destination(cluster: MockCluster, topic: str = "{table}") -> KafkaDestination:
    return KafkaDestination(tuple(cluster.address.split(",")), topic)


def make_sink(
    cluster: MockCluster, envelope: str = "plain", transactional_id: str | None = None, **more: Any
) -> KafkaSink:
    properties = hide_all({name.replace("_", "."): value for name, value in more.items()})
    return KafkaSink(destination(cluster), make_envelope(envelope), properties, transactional_id)


def make_watcher(database: Database, cluster: MockCluster, **delivery: Any) -> Watcher:
    to = {"to": f"kafka://{cluster.address}"}
    watcher = Watcher(
        database=str(address_of(database)),
        tables=["Singers"],
        consumer="to-kafka",
        start="earliest",
        interval="20ms",
        delivery=to | delivery,
    )
    watcher.deliver_to(open_queue(watcher.config))
    return watcher


# What arrives.


@pytest.mark.both_dialects
@pytest.mark.parametrize("transactional", [False, True])
def test_a_consumer_reads_what_was_written_in_order_per_key(
    singers: Database, cluster: MockCluster, transactional: bool
) -> None:
    cluster.create_topic("Singers")
    writer = SingersWriter(singers, seed=1, keys=20)
    watcher = make_watcher(singers, cluster, kafka={"transactional": transactional})
    with run_beside(writer.write, 0.005) as begun, run_without_error(watcher):
        assert begun.wait(60)
        while len(writer.newest()) < 20:
            begun.wait(0.01)
    make_watcher(singers, cluster).run_once()
    records = read_records(cluster, "Singers")
    assert_tells_the_truth(values_of(records), writer)
    assert_in_order(values_of(records))
    assert len({(record.key, record.partition) for record in records}) == 20
    assert {record.key for record in records} == {b"[%d]" % key for key in range(20)}
    assert all(json.loads(r.value or b"")["id"].encode() == r.headers["id"] for r in records)


@pytest.mark.parametrize(("name", "options"), [*EXAMPLES, ("datastream-avro", {})])
def test_every_envelope_arrives_as_it_is_encoded(
    cluster: MockCluster, name: str, options: Options
) -> None:
    if name == "datastream-avro":
        pytest.importorskip("fastavro", reason="needs the extra [avro]")
    cluster.create_topic(f"of.{TABLE}", partitions=1)
    changes = [example_change(), *account_changes(20)]
    envelope = make_envelope(name, options)
    sink = KafkaSink(destination(cluster, "of.{table}"), envelope)
    for change in changes:
        sink.write_change(change)
    sink.flush()
    messages = [message for change in changes for message in envelope.encode(change)]
    expected = [(m.key, m.value, dict(m.headers)) for m in messages]
    records = read_records(cluster, f"of.{TABLE}")
    assert [(record.key, record.value, record.headers) for record in records] == expected


def test_a_deleted_row_leaves_a_tombstone(cluster: MockCluster) -> None:
    cluster.create_topic(TABLE)
    (change,) = account_changes(1)
    deleted = replace(change, operation=Operation.DELETE, new_values=None)
    sink = make_sink(cluster, "debezium")
    sink.write_change(deleted)
    sink.flush()
    event, tombstone = read_records(cluster, TABLE)
    assert json.loads(event.value or b"")["op"] == "d"
    assert tombstone.value is None
    assert (event.key, event.partition) == (tombstone.key, tombstone.partition)


@pytest.mark.parametrize("name", ["plain", "debezium", "cloudevents"])
def test_headers_say_what_a_message_is_and_tombstones_follow_deletes(
    singers: Database, cluster: MockCluster, name: str
) -> None:
    """A batch of this size is encoded by column where messages have no such headers."""
    cluster.create_topic("Singers", partitions=1)
    write_singers(singers, range(300), "name")
    with singers.batch() as batch:
        batch.update("Singers", ("SingerId", "LastName"), [(7, "gone")])
    kafka = {"headers": True, "tombstones": True}
    watcher = make_watcher(singers, cluster, envelope=name, kafka=kafka)
    watcher.run_once()
    records = read_records(cluster, "Singers")
    assert len(records) == 300
    for record in records:
        assert record.headers["table"] == b"Singers"
        assert record.headers["operation"] == b"UPSERT"
        assert record.headers["commit_timestamp"].endswith(b"Z")
        assert "transaction_id" not in record.headers
    assert len({record.headers["schema_version"] for record in records}) == 1
    (change,) = account_changes(1)
    deleted = replace(change, operation=Operation.DELETE, new_values=None)
    envelope = watcher.config.delivery.kafka.wrap(make_envelope(name))
    event, tombstone = envelope.encode(deleted)
    assert event.value is not None
    assert (tombstone.key, tombstone.value) == (event.key, None)
    assert dict(tombstone.headers)["operation"] == b"DELETE"
    assert len(envelope.encode(change)) == 1


@pytest.mark.parametrize("name", ["plain", "debezium", "cloudevents", "plain-avro"])
def test_keys_are_plain_texts_where_readers_want_them(name: str) -> None:
    (change,) = account_changes(1)
    kafka = KafkaOptions(text_keys=True, tombstones=True)
    envelope = kafka.wrap(make_envelope(name, {"tombstones": False} if name == "debezium" else {}))
    types = {"Id": Type(TypeCode.INT64), "Name": Type(TypeCode.STRING)}
    cases: list[tuple[dict[str, Value], bytes]] = [
        ({"Id": 7}, b"7"),
        ({"Name": 'B"ern'}, b'B"ern'),
        ({"Id": 7, "Name": "a"}, b'[7,"a"]'),
    ]
    for keys, text in cases:
        columns = tuple((column, types[column]) for column in keys)
        shape = Shape(TABLE, columns, tuple(keys))
        deleted = replace(
            change,
            shape=shape,
            key=keys,
            operation=Operation.DELETE,
            new_values=None,
            old_values=None,
        )
        messages = envelope.encode(deleted)
        assert [message.key for message in messages] == [text, text]
        assert messages[-1].value is None


def test_no_two_rows_have_one_plain_text_as_their_key() -> None:
    (change,) = account_changes(1)
    envelope = KafkaOptions(text_keys=True).wrap(make_envelope("plain", {}))

    def write_key(code: TypeCode, key: Value) -> bytes | None:
        shape = Shape(TABLE, (("Id", Type(code)),), ("Id",))
        return envelope.encode(replace(change, shape=shape, key={"Id": key}, new_values={}))[0].key

    null = base64.b64decode("null")
    for code, text in ((TypeCode.STRING, "null"), (TypeCode.BYTES, null)):
        assert write_key(code, text) == b"null"
        with pytest.raises(EnvelopeError, match=f"the key Id of {TABLE} is NULL"):
            write_key(code, None)
    assert write_key(TypeCode.INT64, None) == b"null"


def test_plain_texts_are_no_keys_of_several_tables(singers: Database, cluster: MockCluster) -> None:
    with pytest.raises(ConfigurationError, match="rows of several tables the same key"):
        Watcher(
            database=str(address_of(singers)),
            tables=["*"],
            consumer="me",
            delivery={"to": f"kafka://{cluster.address}/all", "kafka": {"text_keys": True}},
        )


def test_barriers_come_in_every_partition_after_what_they_resolve(cluster: MockCluster) -> None:
    cluster.create_topic(TABLE, partitions=3)
    ydb = make_envelope("ydb", {"virtual_timestamps": True, "barriers": True})
    sink = KafkaSink(destination(cluster), ydb)
    changes = account_changes(20)
    for change in changes:
        sink.write_change(change)
    sink.resolved(changes[-1].commit_timestamp)
    sink.flush()
    records = read_records(cluster, TABLE)
    for partition in range(3):
        *rest, last = [record for record in records if record.partition == partition]
        assert "resolved" in json.loads(last.value or b"")
        assert all("resolved" not in json.loads(record.value or b"") for record in rest)


# What fails.


def run_watch(database: Database, cluster: MockCluster, **environment: str) -> int:
    return run_watch_to(f"kafka://{cluster.address}/changes", database, **environment).returncode


@pytest.mark.both_dialects
def test_nothing_is_lost_when_it_is_killed_between_acknowledgement_and_position(
    singers: Database, cluster: MockCluster
) -> None:
    cluster.create_topic("changes")
    write_singers(singers, range(20), "first")
    assert run_watch(singers, cluster, **{VARIABLE: "after-delivery-before-position"}) == -9
    before = {record.headers["id"] for record in read_records(cluster, "changes")}
    assert len(before) == 20, "the position is saved after the acknowledgement"
    write_singers(singers, range(5), "second")
    assert run_watch(singers, cluster) == 0
    records = read_records(cluster, "changes")
    names = {r.key: json.loads(r.value or b"")["values"]["LastName"] for r in records}
    expected = {b"[%d]" % key: "second" if key < 5 else "first" for key in range(20)}
    assert names == expected
    assert_in_order(values_of(records))
    assert run_watch(singers, cluster) == 0
    assert len(read_records(cluster, "changes")) == len(records)


@pytest.mark.parametrize("transactional", [False, True])
def test_an_outage_is_two_log_lines_and_loses_nothing(
    singers: Database,
    cluster: MockCluster,
    transactional: bool,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Longer than the client itself tries: windows fail, and are delivered again in their order."""
    for name in ("TRANSACTION_SECONDS_MAX", "ABORT_SECONDS_MAX"):
        monkeypatch.setattr(f"watcher.sinks.kafka.{name}", 2.0)
    cluster.create_topic("Singers")
    writer = SingersWriter(singers, seed=2, keys=10)
    kafka = {"properties": IMPATIENT, "transactional": transactional}
    watcher = make_watcher(singers, cluster, kafka=kafka)
    errors: list[str] = []
    watcher.metrics.count_error = errors.append  # type: ignore[assignment]
    with caplog.at_level(logging.WARNING), run_beside(writer.write, 0.01) as begun:
        assert begun.wait(60)
        with run_without_error(watcher):
            while not read_records(cluster, "Singers"):
                pass
            cluster.go_down()
            while len(errors) < 2:
                threading.Event().wait(0.05)
            cluster.come_back()
            arrived = len(read_records(cluster, "Singers"))
            while len(read_records(cluster, "Singers")) == arrived:
                pass
    make_watcher(singers, cluster).run_once()
    assert set(errors) == {"SinkUnavailableError"}
    assert_tells_the_truth(values_of(read_records(cluster, "Singers")), writer)
    lines = [r.getMessage() for r in caplog.records if "kafka://" in r.getMessage()]
    assert len(lines) == 2, lines
    assert "does not answer; retrying until it does" in lines[0]
    assert "answers again after" in lines[1]


def test_a_broker_that_refuses_for_a_while_changes_no_order(cluster: MockCluster) -> None:
    cluster.create_topic(TABLE)
    sink = make_sink(cluster, batch_num_messages=7)
    cluster.refuse_produce_requests(*["NOT_LEADER_FOR_PARTITION"] * 5)
    for change in account_changes(200):
        sink.write_change(change)
    sink.flush()
    records = read_records(cluster, TABLE)
    assert sorted(balances(records)) == list(range(200))
    assert_in_order(values_of(records))


def deliver(sink: KafkaSink, changes: list[Change]) -> None:
    """As a watcher does: a window that was not acknowledged comes again."""
    while True:
        try:
            for change in changes:
                sink.write_change(change)
            return sink.flush()
        except SinkUnavailableError:
            sink.discard()


def test_what_waits_for_an_acknowledgement_is_bounded(cluster: MockCluster) -> None:
    cluster.create_topic(TABLE)
    bounds = IMPATIENT | {"queue.buffering.max.messages": 10, "linger.ms": 0}
    sink = KafkaSink(destination(cluster), make_envelope("plain"), hide_all(bounds))
    changes, taken = account_changes(100), list[Change]()
    sink.write_change(changes[0])
    sink.flush()
    cluster.go_down()
    with pytest.raises(SinkUnavailableError):  # noqa: PT012
        for change in changes[1:]:
            sink.write_change(change)
            taken.append(change)
    assert len(taken) == 10
    sink.discard()
    cluster.come_back()
    cluster.slow_down(20)
    deliver(sink, changes[1:])
    # Of the ten that were taken, some may have been sent when they were discarded.
    came_last = list(dict.fromkeys(reversed(balances(read_records(cluster, TABLE)))))[::-1]
    assert set(came_last) == set(range(100))
    for key in range(10):
        mine = [balance for balance in came_last if balance % 10 == key]
        assert mine == sorted(mine)


def test_what_was_discarded_comes_before_what_is_written_again(cluster: MockCluster) -> None:
    cluster.create_topic(TABLE)
    cluster.slow_down(50)
    sink = make_sink(cluster, linger_ms=0, batch_num_messages=1)
    changes = account_changes(30, keys=1)
    for change in changes:
        sink.write_change(change)
    sink.discard()
    for change in changes:
        sink.write_change(change)
    sink.flush()
    assert balances(read_records(cluster, TABLE))[-30:] == list(range(30))


# What is refused.


def large(change: Change) -> Change:
    return replace(change, new_values={**(change.new_values or {}), "LastUpdate": "x" * 20_000})


SMALL: dict[str, Any] = {"message_max_bytes": 10_000}


def test_a_change_that_is_too_large_is_named_with_its_table_and_key(cluster: MockCluster) -> None:
    cluster.create_topic(TABLE)
    retrying = RetryingSink(make_sink(cluster, **SMALL), DeliveryPolicy())
    with pytest.raises(DeliveryError) as raised:
        retrying.write_change(large(account_changes(1)[0]))
    for word in ("change-0", TABLE, "Id0", "MSG_SIZE_TOO_LARGE", "message.max.bytes"):
        assert word in str(raised.value)


def test_refused_changes_go_to_the_dead_letters_and_the_others_arrive(
    cluster: MockCluster, tmp_path: Path
) -> None:
    cluster.create_topic(TABLE)
    letters, skipped = tmp_path / "dead.jsonl", list[int]()
    sink = make_sink(cluster, **SMALL)
    policy = DeliveryPolicy(dead_letters=letters)
    retrying = RetryingSink(sink, policy, on_skip=lambda: skipped.append(1))
    changes = account_changes(10)
    for number, change in enumerate(changes):
        retrying.write_change(large(change) if number in (3, 7) else change)
    retrying.flush()
    assert [letter["id"] for letter in read_dead_letters(letters)] == ["change-3", "change-7"]
    assert len(skipped) == 2
    assert sorted(balances(read_records(cluster, TABLE))) == [0, 1, 2, 4, 5, 6, 8, 9]


def test_what_the_broker_refuses_goes_to_the_dead_letters(
    cluster: MockCluster, tmp_path: Path
) -> None:
    cluster.create_topic(TABLE, partitions=1)
    letters = tmp_path / "dead.jsonl"
    sink = make_sink(cluster, linger_ms=0, batch_num_messages=1)
    retrying = RetryingSink(sink, DeliveryPolicy(dead_letters=letters))
    first, second = account_changes(2)
    cluster.refuse_produce_requests("MSG_SIZE_TOO_LARGE")
    retrying.write_change(first)
    retrying.flush()
    retrying.write_change(second)
    retrying.flush()
    assert [letter["id"] for letter in read_dead_letters(letters)] == [first.id]
    assert balances(read_records(cluster, TABLE)) == [1]


def test_a_transaction_that_has_a_refused_change_is_delivered_again_without_it(
    cluster: MockCluster, tmp_path: Path
) -> None:
    cluster.create_topic(TABLE, partitions=1)
    letters = tmp_path / "dead.jsonl"
    sink = make_sink(cluster, transactional_id="one", linger_ms=0, batch_num_messages=1)
    retrying = RetryingSink(sink, DeliveryPolicy(dead_letters=letters))
    changes = account_changes(3)
    cluster.refuse_produce_requests("MSG_SIZE_TOO_LARGE")
    retrying.write_change(changes[0])
    with pytest.raises(SinkUnavailableError, match="without 1 refused"):
        retrying.flush()
    retrying.discard()
    for change in changes:
        retrying.write_change(change)
    retrying.flush()
    assert [letter["id"] for letter in read_dead_letters(letters)] == [changes[0].id]
    assert balances(read_records(cluster, TABLE)) == [1, 2]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("UNKNOWN_TOPIC_OR_PART", "has no topic 'AccountBalance': create it"),
        ("TOPIC_AUTHORIZATION_FAILED", "allow the principal to DESCRIBE and WRITE"),
    ],
)
def test_a_topic_that_cannot_be_written_ends_the_watcher_and_skips_nothing(
    cluster: MockCluster, tmp_path: Path, error: str, words: str
) -> None:
    cluster.refuse_topic(TABLE, error)
    letters = tmp_path / "dead.jsonl"
    retrying = RetryingSink(make_sink(cluster), DeliveryPolicy(dead_letters=letters))
    with pytest.raises(DeliveryError, match=words) as raised:
        retrying.write_change(account_changes(1)[0])
    assert not isinstance(raised.value, RefusedChangesError)
    assert not letters.exists()


def test_brokers_that_do_not_answer_are_an_error_at_once() -> None:
    sink = KafkaSink(KafkaDestination(("127.0.0.1:1",)), make_envelope("plain"))
    with pytest.raises(UnavailableError, match=r"no broker of kafka://127\.0\.0\.1:1 answers"):
        sink.connect(seconds=1)


def test_wrong_properties_are_refused_before_anything_starts() -> None:
    queue = KafkaDestination(("127.0.0.1:1",))
    with pytest.raises(ConfigurationError, match=r"kafka.properties.*lingr"):
        KafkaSink(queue, make_envelope("plain"), hide_all({"lingr.ms": 1}))


def test_an_instance_that_was_replaced_cannot_commit_any_more(cluster: MockCluster) -> None:
    """The brokers say so to a producer whose transactional id another one has taken over."""
    cluster.create_topic(TABLE)
    first, second = account_changes(2)
    sink = make_sink(cluster, transactional_id="one")
    sink.write_change(first)
    sink.flush()
    sink.write_change(second)
    cluster.refuse_commits("INVALID_PRODUCER_EPOCH")
    with pytest.raises(DeliveryError, match=r"another producer has taken over .* 'one'"):
        sink.flush()
    sink.discard()
