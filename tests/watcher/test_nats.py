"""Changes as messages of a real NATS JetStream, and faults on the way there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from fixtures.nats_server import NatsServer
from fixtures.queue_records import (
    account_changes,
    assert_tells_the_truth,
    make_queue_watcher,
    name_changes,
    write_accounts,
    write_through_a_kill,
)
from fixtures.singers import write_singers
from fixtures.writing import SingersWriter
from google.cloud.spanner_v1.database import Database

from watcher.envelopes import make_envelope
from watcher.model.errors import (
    ConfigurationError,
    DeliveryError,
    LeaseLostError,
    SinkUnavailableError,
    UnavailableError,
)
from watcher.settings.destinations import NatsDestination, NatsOptions
from watcher.settings.watcher import parse_watch_config
from watcher.sinks.nats import NatsSink
from watcher.sinks.nats_streams import Posted
from watcher.sinks.queues import open_queue
from watcher.sinks.refusals import RefusedChangesError
from watcher.sinks.sink_check import check_sink

DATABASE = "projects/my-project/instances/my-instance/databases/my-database"
WRITER = f"{DATABASE}:mine"


def open_sink(
    server: NatsServer,
    envelope: str = "plain",
    writer: str = WRITER,
    user: str | None = None,
    topic: str = "cdc.{table}",
    **options: Any,
) -> NatsSink:
    place = NatsDestination((f"127.0.0.1:{server.port}",), topic, user)
    sink = NatsSink(place, make_envelope(envelope), NatsOptions(**options), writer)
    sink.connect()
    sink.open()
    return sink


@pytest.mark.essential
@pytest.mark.both_dialects
def test_a_stream_tells_what_was_written(singers: Database, nats_server: NatsServer) -> None:
    writer = SingersWriter(singers, seed=1, keys=20)
    for _ in range(3):
        for _ in range(10):
            writer.write()
        make_queue_watcher(singers, nats_server.address(), "to-nats").run_once()
    messages = nats_server.read("CDC")
    assert_tells_the_truth([each.data for each in messages], writer)
    (subject,) = {each.subject for each in messages}
    assert {f"cdc.{each.headers['table']}" for each in messages} == {subject}
    ids = [each.headers["Nats-Msg-Id"] for each in messages]
    assert ids == [each.headers["id"] for each in messages]
    assert len(ids) == len(set(ids))


def test_large_batches_are_encoded_by_column(singers: Database, nats_server: NatsServer) -> None:
    write_singers(singers, range(600), "many")
    make_queue_watcher(singers, nats_server.address(), "to-nats").run_once()
    assert len(set(nats_server.ids("CDC"))) == 600


def test_a_stream_keeps_the_promises(nats_server: NatsServer) -> None:
    check_sink(lambda: open_sink(nats_server), lambda: nats_server.ids("CDC"))


def test_a_window_that_comes_again_after_the_servers_own_memory_of_ids_is_not_there_twice(
    nats_server: NatsServer,
) -> None:
    nats_server.add_stream("CDC", "cdc.>", duplicate_window=0.1)
    with closing(open_sink(nats_server)) as sink:
        write_accounts(sink, 0, 5)
        sink.flush()
        write_accounts(sink, 5, 8)
        sink.flush()
        write_accounts(sink, 5, 10)  # its position was not saved: it comes again, and is longer
        sink.flush()
    forget(nats_server)
    for _ in range(2):
        with closing(open_sink(nats_server)) as sink:
            write_accounts(sink, 5, 12)
            sink.flush()
        forget(nats_server)
    assert nats_server.ids("CDC") == name_changes(0, 12)


def forget(server: NatsServer) -> None:
    """Returns when the server takes an id again that it had."""

    async def ask(streams: Any) -> None:
        await streams.delete_stream("OTHER") if await has(streams, "OTHER") else None
        await streams.add_stream(name="OTHER", subjects=["other"], duplicate_window=0.1)
        for _ in range(1_000):
            answer = await streams.publish("other", b"", headers={"Nats-Msg-Id": "once"})
            if answer.seq == 2:
                return
        raise AssertionError("the server forgets nothing")

    server.ask(ask)


async def has(streams: Any, name: str) -> bool:
    return name in [each.config.name for each in await streams.streams_info()]


@pytest.mark.parametrize(
    "place", ["before-nats-window", "after-nats-window", "after-delivery-before-position"]
)
def test_a_kill_loses_and_doubles_nothing(
    singers: Database, nats_server: NatsServer, place: str
) -> None:
    nats_server.add_stream("CDC", "cdc.>", duplicate_window=0.1)
    write_through_a_kill(singers, nats_server.address(), place)
    ids = nats_server.ids("CDC")
    assert len(ids) == len(set(ids)) == 30


@pytest.mark.parametrize("stored", [0, 1, 3, 5])
def test_a_window_of_which_a_part_was_stored_is_completed(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch, stored: int
) -> None:
    """The connection ends in the middle, before or after the answer."""
    nats_server.add_stream("CDC", "cdc.>", duplicate_window=0.1)
    with closing(open_sink(nats_server)) as sink:
        write_accounts(sink, 0, 2)
        sink.flush()
        post = sink._streams.post

        def break_off(messages: Sequence[Posted]) -> None:
            post(messages[:stored])
            raise ConnectionResetError("cut")

        monkeypatch.setattr(sink._streams, "post", break_off)
        write_accounts(sink, 2, 7)
        with pytest.raises(SinkUnavailableError, match="did not take a window"):
            sink.flush()
        monkeypatch.undo()
        forget(nats_server)
        sink.discard()
        write_accounts(sink, 2, 9)
        sink.flush()
    assert nats_server.ids("CDC") == name_changes(0, 9)


def test_what_is_lost_lets_nothing_behind_it_in(nats_server: NatsServer) -> None:
    """A message that never arrived, in the middle of a window."""
    with closing(open_sink(nats_server)) as sink:
        write_accounts(sink, 0, 5)
        post = sink._streams.post
        sink._streams.post = lambda messages: post([*messages[:2], *messages[3:]])  # type: ignore[method-assign]
        with pytest.raises(SinkUnavailableError, match="wrong last sequence"):
            sink.flush()
        assert nats_server.ids("CDC") == name_changes(0, 2)
        sink._streams.post = post  # type: ignore[method-assign]
        sink.discard()
        write_accounts(sink, 0, 5)
        sink.flush()
    assert nats_server.ids("CDC") == name_changes(0, 5)


def test_an_instance_that_was_replaced_writes_nothing(nats_server: NatsServer) -> None:
    with closing(open_sink(nats_server)) as frozen:
        write_accounts(frozen, 0, 2)
        frozen.flush()
        write_accounts(frozen, 2, 4)
        with closing(open_sink(nats_server)) as newer:
            write_accounts(newer, 2, 5)
            newer.flush()
            with pytest.raises(LeaseLostError, match="another instance writes to the stream 'CDC'"):
                frozen.flush()
            write_accounts(newer, 5, 6)
            newer.flush()
    assert nats_server.ids("CDC") == name_changes(0, 6)


def test_what_a_predecessor_had_on_its_way_is_found(nats_server: NatsServer) -> None:
    with closing(open_sink(nats_server)) as before:
        write_accounts(before, 0, 2)
        before.flush()
        with closing(open_sink(nats_server)) as newer:
            write_accounts(newer, 2, 5)
            read = newer._read_end

            def read_end(stream: str) -> Any:
                end = read(stream)
                write_accounts(before, 2, 4)
                before.flush()
                return end

            newer._read_end = read_end  # type: ignore[method-assign]
            with pytest.raises(SinkUnavailableError, match="wrong last sequence"):
                newer.flush()
            newer._read_end = read  # type: ignore[method-assign]
            newer.discard()
            write_accounts(newer, 2, 5)
            newer.flush()
    assert nats_server.ids("CDC") == name_changes(0, 5)


def test_a_server_that_was_killed_gets_the_window_again(nats_server: NatsServer) -> None:
    with closing(open_sink(nats_server, timeout="5s")) as sink:
        write_accounts(sink, 0, 3)
        sink.flush()
        nats_server.kill()
        write_accounts(sink, 3, 6)
        with pytest.raises(SinkUnavailableError):
            sink.flush()
        nats_server.start()
        sink.discard()
        write_accounts(sink, 3, 6)
        sink.flush()
    assert nats_server.ids("CDC") == name_changes(0, 6)


def test_tables_may_have_streams_of_their_own(nats_server: NatsServer, singers: Database) -> None:
    nats_server.add_stream("CDC", "cdc.Singers")
    nats_server.add_stream("ALBUMS", "cdc.Albums")
    write_singers(singers, range(3), "name")
    make_queue_watcher(singers, nats_server.address(), "to-nats").run_once()
    assert len(nats_server.ids("CDC")) == 3
    assert nats_server.ids("ALBUMS") == []


def test_a_subject_without_a_stream_is_named(nats_server: NatsServer) -> None:
    with closing(open_sink(nats_server, topic="nobody.{table}")) as sink:
        write_accounts(sink, 0, 1)
        with pytest.raises(DeliveryError, match=r"no stream of .* has the subject 'nobody.Acc"):
            sink.flush()


def test_a_stream_that_others_write_to_is_refused(nats_server: NatsServer) -> None:
    nats_server.ask(lambda streams: streams.publish("cdc.other", b"hello"))
    with closing(open_sink(nats_server)) as sink:
        write_accounts(sink, 0, 1)
        with pytest.raises(DeliveryError, match="give each consumer a stream of its own"):
            sink.flush()
    with closing(open_sink(nats_server, writer="another")) as sink:
        nats_server.add_stream("CDC", "cdc.>")
        write_accounts(sink, 0, 1)
        sink.flush()
    with closing(open_sink(nats_server)) as sink:
        write_accounts(sink, 0, 1)
        with pytest.raises(DeliveryError, match=r"another writer \(another\)"):
            sink.flush()


def test_a_user_without_rights_ends_the_watcher(nats_server: NatsServer) -> None:
    nats_server.add_stream("FORBIDDEN", "forbidden.>")
    options: dict[str, Any] = {"user": "reader", "password": "pw"}
    with closing(open_sink(nats_server, topic="forbidden.{table}", **options)) as sink:
        write_accounts(sink, 0, 1)
        with pytest.raises(DeliveryError, match="give it the rights"):
            sink.flush()


def test_a_change_that_is_too_large_is_refused_and_the_others_arrive(
    nats_server: NatsServer,
) -> None:
    from dataclasses import replace

    small, large = account_changes(2)
    large = replace(large, key={"AccountId": "x" * 100_000})
    with closing(open_sink(nats_server)) as sink:
        sink.write_change(small)
        with pytest.raises(RefusedChangesError, match=r"takes 100000 \(max_payload\)"):
            sink.write_change(large)
        sink.flush()
    assert nats_server.ids("CDC") == [small.id]


def test_barriers_and_tombstones_are_messages(nats_server: NatsServer) -> None:
    from dataclasses import replace

    from watcher.model.change import Operation

    (change,) = account_changes(1)
    gone = replace(change, operation=Operation.DELETE, new_values=None, id="gone")
    with closing(open_sink(nats_server, "debezium")) as sink:
        sink.write_change(gone)
        sink.flush()
    event, tombstone = nats_server.read("CDC")
    assert event.headers["key"] == tombstone.headers["key"]
    assert tombstone.headers["tombstone"] == "true"
    assert tombstone.data == b""
    place = NatsDestination((f"127.0.0.1:{nats_server.port}",), "cdc.{table}")
    barriers = make_envelope("ydb", {"virtual_timestamps": True, "barriers": True})
    with closing(NatsSink(place, barriers, NatsOptions(), WRITER)) as sink:
        write_accounts(sink, 0, 2)
        sink.resolved(1_700_000_000_000_000)
        sink.flush()
    *_, barrier = nats_server.read("CDC")
    assert "id" not in barrier.headers
    assert b"resolved" in barrier.data


def test_a_server_that_does_not_answer_is_named_with_exit_code_3() -> None:
    given = {"database": DATABASE, "consumer": "mine"}
    delivery = {"to": "nats://me@127.0.0.1:1/cdc", "nats": {"password": "s3cret", "timeout": "2s"}}
    with pytest.raises(UnavailableError, match=r"nats://127\.0\.0\.1:1 does not") as caught:
        open_queue(parse_watch_config(given | {"delivery": delivery}))
    assert caught.value.exit_code == 3
    assert "s3cret" not in str(caught.value)


def test_a_wrong_password_is_found_at_the_start(nats_server: NatsServer) -> None:
    with pytest.raises(UnavailableError, match=r"check delivery.to, the user") as caught:
        open_sink(nats_server, user="reader", password="geheim")
    assert "geheim" not in str(caught.value)


def test_an_authority_of_the_users_own_is_believed(nats_with_tls: NatsServer) -> None:
    with pytest.raises(UnavailableError, match=r"certificate|TLS|tls"):
        open_sink(nats_with_tls, tls=True)
    assert nats_with_tls.certificate is not None
    trusted = str(nats_with_tls.certificate.certificate)
    with closing(open_sink(nats_with_tls, tls=True, ca_certificate=trusted)) as sink:
        write_accounts(sink, 0, 2)
        sink.flush()
    assert nats_with_tls.ids("CDC") == name_changes(0, 2)


def test_a_server_without_tls_gets_nothing_where_it_is_demanded(nats_server: NatsServer) -> None:
    for options in ({}, {"user": "writer", "password": "pw"}):
        with pytest.raises(UnavailableError, match="the server does not speak TLS"):
            open_sink(nats_server, tls=True, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"consumer": None}, "needs 'consumer'"),
        ({"parts": 2}, "has one writer for each consumer"),
        ({"delivery": {"to": "nats://me:pw@h/x"}}, "has a password, which everybody"),
        ({"delivery": {"to": "nats://h/a..b"}}, "does not allow a topic 'a..b'"),
        ({"delivery": {"to": "nats://h/cdc.>"}}, "does not allow a topic 'cdc.>'"),
        ({"delivery": {"to": "nats:h"}}, "write nats://HOST:PORT"),
        ({"delivery": {"nats": {"password": "p", "credentials": "c"}}}, "remove one of them"),
        ({"delivery": {"nats": {"ca_certificate": "c"}}}, "needs tls = true"),
    ],
)
def test_what_does_not_work_with_nats_is_refused(options: dict[str, Any], words: str) -> None:
    values: dict[str, Any] = {"database": DATABASE, "consumer": "mine", **options}
    values["delivery"] = {"to": "nats://h/x"} | options.get("delivery", {})
    with pytest.raises(ConfigurationError, match=words):
        parse_watch_config(values)
