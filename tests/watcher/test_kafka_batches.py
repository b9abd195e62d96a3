"""Batches that are encoded by column and handed to Kafka message by message."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fixtures.any_change import CHOICES, DATABASE
from fixtures.browser import wait_until
from fixtures.kafka import MockCluster, load_client, read_records

from benchmarks.kafka_sink import make_rows
from benchmarks.reads.shaped_rows import make_polled_rows, make_streamed_rows
from watcher.captures import Changed, TableRows
from watcher.captures.changes import iterate_changes
from watcher.envelopes import make_envelope
from watcher.envelopes.message import Envelope, Message
from watcher.envelopes.plain_avro import PlainAvro
from watcher.envelopes.templates import JsonEnvelope
from watcher.model.change import ValueCapture
from watcher.model.errors import EnvelopeError, SinkUnavailableError
from watcher.settings.destinations import KafkaDestination
from watcher.settings.secret_values import hide_all
from watcher.sinks import retries
from watcher.sinks.contract import EachChange
from watcher.sinks.dead_letters import read_dead_letters
from watcher.sinks.kafka import KafkaSink
from watcher.sinks.retries import DeliveryPolicy, RetryingSink
from watcher.sinks.whole_batches import choose_each

ROWS = 300
LARGE = (3, 7, ROWS - 1)
TOPIC = "all"
CLIENT: Any = load_client()


def make_sink(
    cluster: MockCluster,
    envelope: Envelope,
    letters: Path | None = None,
    transactional_id: str | None = None,
    **more: int,
) -> EachChange:
    """A sink of one topic with one partition, in which messages of 10,000 bytes are refused."""
    cluster.create_topic(TOPIC, partitions=1)
    destination = KafkaDestination(tuple(cluster.address.split(",")), TOPIC)
    properties = hide_all(
        {"message.max.bytes": 10_000} | {n.replace("_", "."): v for n, v in more.items()}
    )
    sink = KafkaSink(destination, envelope, properties, transactional_id)
    policy = DeliveryPolicy(dead_letters=letters)
    return choose_each(RetryingSink(sink, policy), sink, DATABASE)


def refuse_single_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails where a batch is written change by change."""
    monkeypatch.delattr(retries.RetryingSink, "write_change")


def encode(rows: Changed, envelope: Envelope) -> list[Message] | None:
    """The messages, change by change; None where one is refused."""
    try:
        return [m for c in iterate_changes(rows, DATABASE) for m in envelope.encode(c)]
    except EnvelopeError:
        return None


class SlowReports(CLIENT.Producer):  # type: ignore[misc]
    """Its first message spoils the transaction before there is a second one, and is not reported
    yet to whoever looks without waiting."""

    first = True

    def produce(self, *message: object, **more: object) -> None:
        super().produce(*message, **more)
        if SlowReports.first:
            SlowReports.first = False
            wait_until(self.is_spoilt, "the transaction is spoilt")

    def is_spoilt(self) -> bool:
        """What is refused of a message that nobody may send."""
        with pytest.raises(CLIENT.KafkaException) as refused:
            super().produce(TOPIC, b"x" * 20_000)
        spoilt: bool = refused.value.args[0].code() == CLIENT.KafkaError._STATE
        return spoilt

    def poll(self, timeout: float = -1) -> int:
        reported: int = super().poll(timeout) if timeout else 0
        return reported


@pytest.mark.parametrize("captured", [None, ValueCapture.NEW_ROW_AND_OLD_VALUES])
@pytest.mark.parametrize(("name", "options"), CHOICES)
def test_messages_of_a_batch_arrive_as_they_are_encoded_one_by_one(
    cluster: MockCluster,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    options: dict[str, object],
    captured: ValueCapture | None,
) -> None:
    rows = make_polled_rows(ROWS) if captured is None else make_streamed_rows(ROWS, captured)
    envelope = make_envelope(name, options)
    expected = encode(rows, envelope)
    by_column = JsonEnvelope if captured else (JsonEnvelope, PlainAvro)
    if expected is None or not isinstance(envelope, by_column):
        return
    sink = make_sink(cluster, envelope)
    refuse_single_changes(monkeypatch)
    sink.write(rows)
    sink.flush()
    records = [(r.key, r.value, r.headers) for r in read_records(cluster, TOPIC)]
    assert records == [(m.key, m.value, dict(m.headers)) for m in expected]


def make_rows_with_large_ones() -> TableRows:
    """Rows of which some are too large."""
    rows = make_rows(0, ROWS)
    names = [f"{'x' * 20_000 if n in LARGE else n}" for n in range(ROWS)]
    place = rows.batch.schema.get_field_index("FirstName")
    return replace(rows, batch=rows.batch.set_column(place, "FirstName", pa.array(names)))


def read_keys(cluster: MockCluster) -> list[int]:
    return [int((r.key or b"")[1:-1]) for r in read_records(cluster, TOPIC)]


def test_refused_rows_of_a_batch_go_to_the_dead_letters_and_the_others_arrive(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    letters, rows = tmp_path / "dead.jsonl", make_rows_with_large_ones()
    sink = make_sink(cluster, make_envelope("plain"), letters)
    refuse_single_changes(monkeypatch)
    sink.write(rows)
    sink.flush()
    changes = list(iterate_changes(rows, DATABASE))
    refused = list(read_dead_letters(letters))
    assert [letter["id"] for letter in refused] == [changes[place].id for place in LARGE]
    assert [letter["key"] for letter in refused] == [{"SingerId": place} for place in LARGE]
    assert read_keys(cluster) == [n for n in range(ROWS) if n not in LARGE]


@pytest.mark.parametrize("producer", [CLIENT.Producer, SlowReports])
def test_a_transaction_with_a_row_that_the_broker_refuses_comes_again_without_it(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, producer: type[object]
) -> None:
    monkeypatch.setattr(CLIENT, "Producer", producer)
    letters, rows = tmp_path / "dead.jsonl", make_rows(0, ROWS)
    one_by_one = {"linger_ms": 0, "batch_num_messages": 1}
    sink = make_sink(cluster, make_envelope("plain"), letters, "one", **one_by_one)
    cluster.refuse_produce_requests("MSG_SIZE_TOO_LARGE")
    with pytest.raises(SinkUnavailableError, match=r"without \d+ refused"):  # noqa: PT012
        sink.write(rows)  # it may be known before the last row is taken
        sink.flush()
    sink.discard()
    sink.write(rows)
    sink.flush()
    refused = {letter["key"]["SingerId"] for letter in read_dead_letters(letters)}
    assert refused != set()
    assert read_keys(cluster) == [n for n in range(ROWS) if n not in refused]
