"""Changes in Pub/Sub, as a server of its protocol receives them, and faults of that server."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from fixtures.commands import run_watch_to
from fixtures.envelope_examples import EXAMPLES, Options, example_change
from fixtures.pubsub import PublisherServer
from fixtures.queue_records import account_changes, assert_in_order, assert_tells_the_truth
from fixtures.singers import address_of, write_singers
from fixtures.watcher_threads import run_without_error
from fixtures.writing import SingersWriter, run_beside
from google.cloud.spanner_v1.database import Database

from watcher import Watcher
from watcher.envelopes import make_envelope
from watcher.model.change import Operation
from watcher.model.errors import DeliveryError, SinkUnavailableError
from watcher.process.failpoints import VARIABLE
from watcher.settings.destinations import PubSubDestination, PubSubOptions
from watcher.sinks.dead_letters import read_dead_letters
from watcher.sinks.pubsub import PubSubSink, wait_for
from watcher.sinks.pubsub_messages import format_version
from watcher.sinks.queues import open_queue
from watcher.sinks.refusals import RefusedChangesError
from watcher.sinks.retries import DeliveryPolicy, RetryingSink

SINGERS_TOPIC = "projects/p-1/topics/Singers"
ACCOUNTS_TOPIC = "projects/p-1/topics/AccountBalance"
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


def make_sink(envelope: str = "plain", options: Options | None = None, **more: Any) -> PubSubSink:
    destination = PubSubDestination("p-1")
    return PubSubSink(destination, make_envelope(envelope, options), PubSubOptions(**more))


def make_watcher(database: Database, **delivery: Any) -> Watcher:
    watcher = Watcher(
        database=str(address_of(database)),
        tables=["Singers"],
        consumer="to-pubsub",
        start="earliest",
        interval="20ms",
        delivery={"to": "pubsub://p-1"} | delivery,
    )
    watcher.deliver_to(open_queue(watcher.config))
    return watcher


def data_of(server: PublisherServer, topic: str) -> list[bytes]:
    return [message.data for message in server.published.get(topic, [])]


def balances(server: PublisherServer) -> list[int]:
    return [json.loads(data)["values"]["Balance"] for data in data_of(server, ACCOUNTS_TOPIC)]


# What arrives.


@pytest.mark.both_dialects
@pytest.mark.parametrize("groups", [0, 4])
def test_a_subscriber_sees_what_was_written_in_order_per_key(
    singers: Database, pubsub: PublisherServer, groups: int
) -> None:
    writer = SingersWriter(singers, seed=1, keys=20)
    watcher = make_watcher(singers, pubsub={"ordering_groups": groups})
    with run_beside(writer.write, 0.01) as begun, run_without_error(watcher):
        assert begun.wait(60)
        while len(writer.newest()) < 20:
            begun.wait(0.01)
    make_watcher(singers, pubsub={"ordering_groups": groups}).run_once()
    assert_tells_the_truth(data_of(pubsub, SINGERS_TOPIC), writer)
    assert_in_order(data_of(pubsub, SINGERS_TOPIC))
    messages = pubsub.published[SINGERS_TOPIC]
    assert len({(m.attributes["key"], m.ordering_key) for m in messages}) == 20
    assert len({message.ordering_key for message in messages}) <= (groups or 20)
    for message in messages:
        change = json.loads(message.data)
        assert dict(message.attributes) == {
            "id": change["id"],
            "table": "Singers",
            "operation": "UPSERT",
            "commit_timestamp": change["commit_timestamp"],
            "version": change["commit_timestamp"],
            "key": json.dumps(list(change["key"].values())),
        }


def test_the_version_of_a_row_is_greater_for_a_newer_one() -> None:
    (change,) = account_changes(1)
    assert change.origin is not None
    newer = [
        replace(change, origin=replace(change.origin, mod_number=9)),
        replace(change, origin=replace(change.origin, mod_number=10)),
        replace(change, origin=replace(change.origin, record_sequence="00000009")),
        replace(change, origin=replace(change.origin, record_sequence="00000010")),
        replace(change, commit_timestamp=change.commit_timestamp + 1),
    ]
    versions = [format_version(each) for each in (change, *newer)]
    assert versions == sorted(set(versions))


def test_a_reader_drops_what_pubsub_has_stored_late_by_its_version(
    pubsub: PublisherServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pub/Sub has no fence: a request that was given up is stored behind newer messages."""
    monkeypatch.setattr(f"{wait_for.__module__}.wait_for", lambda *_: wait_for(_[0], 0.5))
    sink = make_sink()
    first, second, third = account_changes(3, keys=1)
    sink.write_change(first)
    sink.flush()
    pubsub.gate.clear()
    pubsub.held_back_max = 1
    sink.write_change(second)
    with pytest.raises(SinkUnavailableError):
        sink.flush()
    sink.discard()
    for change in (second, third):
        sink.write_change(change)
        sink.flush()
    pubsub.gate.set()
    messages = pubsub.published[ACCOUNTS_TOPIC]
    while len(messages) < 4:
        threading.Event().wait(0.01)
    assert [balance_of(message) for message in messages] == [0, 1, 2, 1]
    assert len({message.ordering_key for message in messages}) == 1
    newest, seen = "", []
    for message in messages:
        if message.attributes["version"] >= newest:
            newest = message.attributes["version"]
            seen.append(balance_of(message))
    assert seen == [0, 1, 2]


def balance_of(message: Any) -> int:
    balance: int = json.loads(message.data)["values"]["Balance"]
    return balance


@pytest.mark.parametrize(("name", "options"), [*EXAMPLES, ("datastream-avro", {})])
def test_every_envelope_arrives_as_it_is_encoded(
    pubsub: PublisherServer, name: str, options: Options
) -> None:
    if name == "datastream-avro":
        pytest.importorskip("fastavro", reason="needs the extra [avro]")
    sink = make_sink(name, options, ordering_groups=1)
    changes = [example_change(), *account_changes(20)]
    for change in changes:
        sink.write_change(change)
    sink.flush()
    envelope = make_envelope(name, options)
    expected = [message.value for change in changes for message in envelope.encode(change)]
    assert data_of(pubsub, ACCOUNTS_TOPIC) == expected


def test_a_deleted_row_leaves_a_tombstone(pubsub: PublisherServer) -> None:
    (change,) = account_changes(1)
    sink = make_sink("debezium")
    sink.write_change(replace(change, operation=Operation.DELETE, new_values=None))
    sink.flush()
    event, tombstone = pubsub.published[ACCOUNTS_TOPIC]
    assert json.loads(event.data)["op"] == "d"
    assert "tombstone" not in event.attributes
    assert (tombstone.data, tombstone.attributes["tombstone"]) == (b"", "true")
    assert tombstone.ordering_key == event.ordering_key


def test_a_key_that_is_too_long_for_pubsub_has_an_ordering_key_of_its_own(
    pubsub: PublisherServer,
) -> None:
    sink = make_sink(ordering_groups=0)
    first, second = account_changes(2)
    for change in (first, second):
        sink.write_change(replace(change, key={"AccountId": "ü" * 2_000 + change.id}))
    sink.flush()
    messages = pubsub.published[ACCOUNTS_TOPIC]
    assert len({message.ordering_key for message in messages}) == 2
    assert all(len(message.ordering_key.encode()) <= 1_024 for message in messages)
    assert all("key" not in message.attributes for message in messages)


# What fails.


def run_watch(database: Database, **environment: str) -> int:
    return run_watch_to("pubsub://p-1", database, **environment).returncode


@pytest.mark.both_dialects
def test_nothing_is_lost_when_it_is_killed_between_acknowledgement_and_position(
    singers: Database, pubsub: PublisherServer
) -> None:
    write_singers(singers, range(20), "first")
    assert run_watch(singers, **{VARIABLE: "after-delivery-before-position"}) == -9
    assert len(data_of(pubsub, SINGERS_TOPIC)) == 20, "the position is saved afterwards"
    write_singers(singers, range(5), "second")
    assert run_watch(singers) == 0
    changes = [json.loads(data) for data in data_of(pubsub, SINGERS_TOPIC)]
    names = {change["key"]["SingerId"]: change["values"]["LastName"] for change in changes}
    assert names == {key: "second" if key < 5 else "first" for key in range(20)}
    assert_in_order(data_of(pubsub, SINGERS_TOPIC))


def test_an_outage_is_two_log_lines_and_loses_nothing(
    singers: Database,
    pubsub: PublisherServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Longer than the client itself tries: windows fail, and are delivered again in their order."""
    monkeypatch.setattr("watcher.sinks.pubsub.RETRY_SECONDS_MAX", 1.0)
    writer = SingersWriter(singers, seed=2, keys=10)
    watcher = make_watcher(singers)
    errors: list[str] = []
    watcher.metrics.count_error = errors.append  # type: ignore[assignment]
    with caplog.at_level(logging.WARNING), run_beside(writer.write, 0.02) as begun:
        assert begun.wait(60)
        with run_without_error(watcher):
            while not pubsub.published:
                begun.wait(0.05)
            pubsub.stop()
            arrived = pubsub.requests
            while len(errors) < 2:
                threading.Event().wait(0.05)
            pubsub.start()
            while pubsub.requests == arrived or "answers again" not in caplog.text:
                threading.Event().wait(0.05)
    make_watcher(singers).run_once()
    assert set(errors) == {"SinkUnavailableError"}
    assert_tells_the_truth(data_of(pubsub, SINGERS_TOPIC), writer)
    lines = [r.getMessage() for r in caplog.records if "pubsub://" in r.getMessage()]
    assert len(lines) == 2, lines
    assert "does not answer; retrying until it does" in lines[0]
    assert "answers again after" in lines[1]


def test_lost_answers_repeat_changes_and_change_no_order(pubsub: PublisherServer) -> None:
    pubsub.lost_answers = 3
    pubsub.failures = [UNAVAILABLE] * 2
    sink = make_sink(ordering_groups=2)
    for change in account_changes(200):
        sink.write_change(change)
    sink.flush()
    assert set(balances(pubsub)) == set(range(200))
    newest = {balance % 10: balance for balance in balances(pubsub)}
    assert newest == {key: 190 + key for key in range(10)}


def test_a_window_that_was_not_acknowledged_is_published_again_by_a_new_client(
    pubsub: PublisherServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watcher.sinks.pubsub.RETRY_SECONDS_MAX", 0.0)
    pubsub.failures = [UNAVAILABLE]
    sink = make_sink(ordering_groups=1)
    changes = account_changes(50)

    def write_all() -> None:
        for change in changes:
            sink.write_change(change)
        sink.flush()

    with pytest.raises(SinkUnavailableError, match=r"not acknowledge everything: .*UNAVAILABLE"):
        write_all()
    sink.discard()
    write_all()
    assert balances(pubsub)[-50:] == list(range(50))


def test_what_waits_for_an_acknowledgement_is_bounded(pubsub: PublisherServer) -> None:
    pubsub.gate.clear()
    sink = make_sink(messages_max=10)
    taken: list[int] = []
    full = threading.Event()

    def write() -> None:
        for number, change in enumerate(account_changes(30)):
            if number == 10:
                full.set()
            sink.write_change(change)
            taken.append(number)
        sink.flush()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    assert full.wait(60)
    thread.join(0.5)
    assert len(taken) == 10
    pubsub.gate.set()
    thread.join(60)
    assert sorted(balances(pubsub)) == list(range(30))


# What is refused.


@pytest.mark.parametrize("groups", [0, 1])
def test_refused_changes_go_to_the_dead_letters_and_the_others_arrive_in_order(
    pubsub: PublisherServer, tmp_path: Path, groups: int
) -> None:
    """The request of a refused message has others, and its key is paused until it is resumed."""
    letters = tmp_path / "dead.jsonl"
    changes = account_changes(300)
    (message,) = make_envelope("plain").encode(changes[25])
    pubsub.refused_data.add(message.value or b"")
    sink = make_sink(ordering_groups=groups)
    retrying = RetryingSink(sink, DeliveryPolicy(dead_letters=letters))
    for change in changes:
        retrying.write_change(change)
    retrying.flush()
    assert [letter["id"] for letter in read_dead_letters(letters)] == ["change-25"]
    assert sorted(balances(pubsub)) == [number for number in range(300) if number != 25]
    assert_in_order(data_of(pubsub, ACCOUNTS_TOPIC))
    (more,) = account_changes(1)
    retrying.write_change(replace(more, key=changes[25].key))
    retrying.flush()
    assert len(balances(pubsub)) == 300


def test_a_refused_change_is_named_with_its_table_and_key(pubsub: PublisherServer) -> None:
    (change,) = account_changes(1)
    (message,) = make_envelope("plain").encode(change)
    pubsub.refused_data.add(message.value or b"")
    retrying = RetryingSink(make_sink(), DeliveryPolicy())
    retrying.write_change(change)
    with pytest.raises(DeliveryError) as raised:
        retrying.flush()
    for word in ("change-0", "AccountBalance", "Id0", "a message is refused"):
        assert word in str(raised.value)


def test_a_change_that_is_too_large_is_refused(pubsub: PublisherServer) -> None:
    (change,) = account_changes(1)
    large = replace(change, new_values={"LastUpdate": "x" * 11_000_000, "Balance": 1})
    with pytest.raises(RefusedChangesError, match="takes at most 10 MB"):
        make_sink().write_change(large)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (grpc.StatusCode.NOT_FOUND, "there is no topic projects/p-1/topics/AccountBalance"),
        (grpc.StatusCode.PERMISSION_DENIED, "grant roles/pubsub.publisher"),
        (grpc.StatusCode.FAILED_PRECONDITION, "a fault on request"),
    ],
)
def test_a_topic_that_cannot_be_written_ends_the_watcher_and_skips_nothing(
    pubsub: PublisherServer, tmp_path: Path, code: grpc.StatusCode, words: str
) -> None:
    pubsub.failures = [code]
    letters = tmp_path / "dead.jsonl"
    retrying = RetryingSink(make_sink(), DeliveryPolicy(dead_letters=letters))
    retrying.write_change(account_changes(1)[0])
    with pytest.raises(DeliveryError, match=words) as raised:
        retrying.flush()
    assert not isinstance(raised.value, RefusedChangesError)
    assert not letters.exists()
