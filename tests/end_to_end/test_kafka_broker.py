"""Changes in a real broker of Kafka: order, tombstones, acknowledgement, transactions, idempotence.

``tests/watcher/test_kafka.py`` has the faults that only librdkafka's mock cluster can make.
"""

from __future__ import annotations

import gc
import json
import threading
from typing import Any

import pytest
from fixtures.commands import run_watch_to
from fixtures.kafka import balances, load_client, read_records, values_of
from fixtures.kafka_broker import Broker
from fixtures.queue_records import account_changes, assert_in_order, assert_tells_the_truth
from fixtures.singers import address_of, write_singers
from fixtures.watcher_threads import run_without_error
from fixtures.writing import SingersWriter, run_beside
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from watcher import Watcher
from watcher.envelopes import make_envelope
from watcher.model.errors import DeliveryError, SinkUnavailableError
from watcher.process.failpoints import VARIABLE
from watcher.settings.destinations import KafkaDestination
from watcher.settings.secret_values import hide_all
from watcher.sinks.kafka import KafkaSink
from watcher.sinks.queues import open_queue

pytestmark = [pytest.mark.xdist_group("kafka_broker")]
TABLE = "AccountBalance"


def make_sink(broker: Broker, topic: str, transactional_id: str | None = None) -> KafkaSink:
    queue = KafkaDestination((broker.address,), topic)
    return KafkaSink(queue, make_envelope("plain"), {}, transactional_id)


def make_watcher(database: Database, broker: Broker, topic: str, **more: Any) -> Watcher:
    delivery = {"to": f"kafka://{broker.address}/{topic}", **more.pop("delivery", {})}
    options: dict[str, Any] = {"start": "earliest", "interval": "20ms"} | more
    watcher = Watcher(
        database=str(address_of(database)),
        tables=["Singers"],
        consumer="to-kafka",
        delivery=delivery,
        **options,
    )
    watcher.deliver_to(open_queue(watcher.config))
    return watcher


@pytest.mark.parametrize("transactional", [False, True])
def test_every_key_keeps_its_order_and_its_partition(
    singers: Database, broker: Broker, transactional: bool
) -> None:
    topic = f"order-{transactional}"
    broker.create_topic(topic)
    writer = SingersWriter(singers, seed=3, keys=20)
    kafka = {"kafka": {"transactional": transactional}}
    watcher = make_watcher(singers, broker, topic, delivery=kafka)
    with run_beside(writer.write, 0.005) as begun, run_without_error(watcher):
        assert begun.wait(60)
        while len(writer.newest()) < 20:
            begun.wait(0.01)
    make_watcher(singers, broker, topic, delivery=kafka).run_once()
    records = read_records(broker, topic)
    assert_tells_the_truth(values_of(records), writer)
    assert_in_order(values_of(records))
    assert len({(record.key, record.partition) for record in records}) == 20


def test_a_deleted_row_leaves_a_tombstone_for_compaction(singers: Database, broker: Broker) -> None:
    broker.create_topic("tombstones", cleanup_policy="compact")
    singers.update_ddl(
        ["CREATE CHANGE STREAM S FOR Singers OPTIONS (value_capture_type = 'NEW_ROW')"]
    ).result(60)
    stream = {"capture": "change-stream", "stream": {"name": "S"}, "start": "latest"}
    envelope = {"envelope": "debezium"}
    make_watcher(singers, broker, "tombstones", delivery=envelope, **stream).run_once()
    write_singers(singers, range(3), "name")
    with singers.batch() as batch:
        batch.delete("Singers", KeySet(keys=[(1,)]))
    make_watcher(singers, broker, "tombstones", delivery=envelope, **stream).run_once()
    records = read_records(broker, "tombstones")
    (tombstone,) = [record for record in records if record.value is None]
    same = [record for record in records if record.key == tombstone.key]
    assert [json.loads(r.value)["op"] if r.value else None for r in same] == ["c", "d", None]
    assert len({record.partition for record in same}) == 1
    assert len(records) == 5


def test_the_position_is_saved_after_the_acknowledgement(singers: Database, broker: Broker) -> None:
    broker.create_topic("killed")
    to = f"kafka://{broker.address}/killed"
    write_singers(singers, range(20), "first")
    killed = run_watch_to(to, singers, **{VARIABLE: "after-delivery-before-position"})
    assert killed.returncode == -9
    before = read_records(broker, "killed")
    assert len(before) == 20
    assert run_watch_to(to, singers).returncode == 0
    records = read_records(broker, "killed")
    assert len(records) == 40
    assert {r.headers["id"] for r in records} == {r.headers["id"] for r in before}
    assert run_watch_to(to, singers).returncode == 0
    assert len(read_records(broker, "killed")) == 40


def read_uncommitted(broker: Broker, topic: str, count: int) -> list[bytes]:
    """The first values of a topic, also of transactions that were aborted."""
    consumer = load_client().Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": "uncommitted",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_uncommitted",
        }
    )
    consumer.subscribe([topic])
    try:
        messages = consumer.consume(count, timeout=60)
        return [message.value() for message in messages]
    finally:
        consumer.close()


def test_a_window_that_was_aborted_is_never_seen(broker: Broker) -> None:
    broker.create_topic("aborted", partitions=1)
    sink = make_sink(broker, "aborted", "aborts")
    first, second = account_changes(40)[:20], account_changes(40)[20:]
    for change in first:
        sink.write_change(change)
    assert len(read_uncommitted(broker, "aborted", 20)) == 20
    sink.discard()
    for change in second:
        sink.write_change(change)
    sink.flush()
    assert balances(read_records(broker, "aborted")) == list(range(20, 40))


def test_the_broker_fences_an_instance_that_was_replaced(broker: Broker) -> None:
    broker.create_topic("fenced", partitions=1)
    old, new = make_sink(broker, "fenced", "fences"), make_sink(broker, "fenced", "fences")
    first, second, third = account_changes(3)
    old.write_change(first)
    old.flush()
    old.write_change(second)
    new.write_change(third)
    new.flush()
    with pytest.raises(DeliveryError, match=r"another producer has taken over .* 'fences'"):
        old.flush()
    old.discard()
    assert balances(read_records(broker, "fenced")) == [0, 2]


def test_a_broker_that_is_killed_and_comes_back_has_everything_once_and_in_order(
    broker: Broker,
) -> None:
    """The client sends again what was not acknowledged; the broker knows what it has."""
    broker.create_topic("restarted")
    sink = make_sink(broker, "restarted")
    changes = account_changes(4_000)
    sink.write_change(changes[0])
    sink.flush()
    half = threading.Event()

    def restart() -> None:
        half.wait()
        broker.kill()
        broker.start_again()

    restarting = threading.Thread(target=restart)
    restarting.start()
    for number, change in enumerate(changes[1:]):
        sink.write_change(change)
        if number == 2_000:
            half.set()
    restarting.join()
    sink.flush()
    records = read_records(broker, "restarted")
    assert sorted(balances(records)) == list(range(4_000))
    assert_in_order(values_of(records))


@pytest.mark.parametrize("transactional_id", [None, "late"])
def test_a_request_that_arrives_late_brings_no_older_version(
    broker: Broker, transactional_id: str | None
) -> None:
    """The client has given it up, and the window was delivered again, and newer versions."""
    topic = f"late-{transactional_id}"
    broker.create_topic(topic, partitions=1)
    queue = KafkaDestination((broker.network.address,), topic)
    patience: dict[str, int] = {"message.timeout.ms": 3_000}
    if transactional_id is not None:
        patience |= {"transaction.timeout.ms": 3_000, "socket.timeout.ms": 3_000}
    sink = KafkaSink(queue, make_envelope("plain"), hide_all(patience), transactional_id)
    first, second, third = account_changes(3, keys=1)
    sink.write_change(first)
    sink.flush()
    broker.network.stall()
    attempts = 0
    while True:
        attempts += 1
        try:
            sink.write_change(second)
            sink.flush()
            break
        except SinkUnavailableError:
            sink.discard()
    assert attempts > 1, "the client waits until it is answered"
    sink.write_change(third)
    sink.flush()
    del sink
    gc.collect()  # its connections end
    broker.network.heal()
    assert balances(read_records(broker, topic)) == [0, 1, 2]
