"""Changes as entries of streams of a real Redis, and faults on the way there."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from fixtures.queue_records import (
    assert_tells_the_truth,
    make_queue_watcher,
    name_changes,
    write_accounts,
    write_through_a_kill,
)
from fixtures.redis_server import RedisServer
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
from watcher.settings.destinations import RedisDestination, RedisOptions
from watcher.settings.watcher import parse_watch_config
from watcher.sinks.queues import open_queue
from watcher.sinks.redis import RedisSink
from watcher.sinks.sink_check import check_sink

DATABASE = "projects/my-project/instances/my-instance/databases/my-database"
ACCOUNTS = "AccountBalance"


def open_sink(
    server: RedisServer, envelope: str = "plain", consumer: str = "mine", **options: Any
) -> RedisSink:
    place = RedisDestination("127.0.0.1", server.port, server.database)
    made = make_envelope(envelope)
    sink = RedisSink(place, made, RedisOptions(**options), DATABASE, consumer)
    sink.open()
    return sink


@pytest.mark.essential
@pytest.mark.both_dialects
def test_a_stream_tells_what_was_written(singers: Database, redis_server: RedisServer) -> None:
    writer = SingersWriter(singers, seed=1, keys=20)
    for _ in range(3):
        for _ in range(10):
            writer.write()
        make_queue_watcher(singers, redis_server.address("cdc.{table}"), "to-redis").run_once()
    (stream,) = [key.decode() for key in redis_server.client.keys("cdc.*")]
    entries = redis_server.entries(stream)
    assert_tells_the_truth([entry["value"] for entry in entries], writer)
    assert {entry["table"] for entry in entries} == {stream.removeprefix("cdc.").encode()}
    assert len(redis_server.ids(stream)) == len(set(redis_server.ids(stream)))


def test_large_batches_are_encoded_by_column(singers: Database, redis_server: RedisServer) -> None:
    write_singers(singers, range(600), "many")
    make_queue_watcher(singers, redis_server.address("cdc.{table}"), "to-redis").run_once()
    assert len(set(redis_server.ids("cdc.Singers"))) == 600


def test_a_stream_keeps_the_promises(redis_server: RedisServer) -> None:
    check_sink(lambda: open_sink(redis_server), lambda: redis_server.ids("Checked"))


def test_a_window_that_comes_again_is_not_there_twice(redis_server: RedisServer) -> None:
    with closing(open_sink(redis_server)) as sink:
        write_accounts(sink, 0, 5)
        sink.flush()
        write_accounts(sink, 5, 8)
        sink.flush()
        write_accounts(sink, 5, 10)  # its position was not saved: it comes again, and is longer
        sink.flush()
    with closing(open_sink(redis_server)) as sink:
        write_accounts(sink, 5, 12)
        sink.flush()
    assert redis_server.ids(ACCOUNTS) == name_changes(0, 12)


@pytest.mark.parametrize(
    "place", ["before-redis-exec", "after-redis-exec", "after-delivery-before-position"]
)
def test_a_kill_loses_and_doubles_nothing(
    singers: Database, redis_server: RedisServer, place: str
) -> None:
    write_through_a_kill(singers, redis_server.address(), place)
    ids = redis_server.ids("Singers")
    assert len(ids) == len(set(ids)) == 30


def test_an_instance_that_was_replaced_writes_nothing(redis_server: RedisServer) -> None:
    with closing(open_sink(redis_server)) as frozen:
        write_accounts(frozen, 0, 3)
        with closing(open_sink(redis_server)) as newer:
            with pytest.raises(LeaseLostError, match="another instance of consumer 'mine'"):
                frozen.flush()
            write_accounts(newer, 0, 4)
            newer.flush()
    assert redis_server.ids(ACCOUNTS) == name_changes(0, 4)


def test_an_epoch_that_changes_within_a_window_is_seen(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_sink(redis_server)) as frozen:
        write_accounts(frozen, 0, 3)
        find = frozen._find_written
        others: list[RedisSink] = []

        def take_over(pipe: Any) -> set[str | None]:
            others.append(open_sink(redis_server))
            return find(pipe)

        monkeypatch.setattr(frozen, "_find_written", take_over)
        with pytest.raises(LeaseLostError):
            frozen.flush()
        others[0].close()
    assert redis_server.ids(ACCOUNTS) == []


def test_a_connection_that_is_cut_is_made_anew(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_sink(redis_server)) as sink:
        find = sink._find_written

        def cut(pipe: Any) -> set[str | None]:
            found = find(pipe)
            redis_server.client.client_kill_filter(_type="normal", skipme=True)
            return found

        write_accounts(sink, 0, 3)
        monkeypatch.setattr(sink, "_find_written", cut)
        with pytest.raises(SinkUnavailableError, match="did not take a window"):
            sink.flush()
        monkeypatch.undo()
        sink.discard()
        write_accounts(sink, 0, 3)
        sink.flush()
    assert redis_server.ids(ACCOUNTS) == name_changes(0, 3)


def test_a_key_that_is_no_stream_is_named(redis_server: RedisServer) -> None:
    redis_server.client.set(ACCOUNTS, "text")
    with closing(open_sink(redis_server)) as sink:
        write_accounts(sink, 0, 1)
        with pytest.raises(DeliveryError, match="is a string and no stream"):
            sink.flush()


def test_a_stream_keeps_about_so_many_entries(redis_server: RedisServer) -> None:
    with closing(open_sink(redis_server, entries_max=100)) as sink:
        write_accounts(sink, 0, 1_000)
        sink.flush()
    assert len(redis_server.ids(ACCOUNTS)) < 400


def test_barriers_and_tombstones_are_entries(redis_server: RedisServer) -> None:
    config = parse_watch_config(
        {
            "database": DATABASE,
            "consumer": "mine",
            "tables": [ACCOUNTS],
            "delivery": {
                "to": redis_server.address(),
                "envelope": "ydb",
                "envelope_options": {"virtual_timestamps": True, "barriers": True},
            },
        }
    )
    sink = open_queue(config)
    assert isinstance(sink, RedisSink)
    sink.open()
    write_accounts(sink, 0, 2)
    sink.resolved(1_700_000_000_000_000)
    sink.flush()
    sink.close()
    *_, barrier = redis_server.entries(ACCOUNTS)
    assert "id" not in barrier
    assert b"resolved" in barrier["value"]
    assert redis_server.client.hget(f"spanner-watcher:{DATABASE}:mine", "position")


def test_a_server_that_does_not_answer_is_named_with_exit_code_3() -> None:
    given = {"database": DATABASE, "consumer": "mine"}
    delivery = {"to": "redis://me@127.0.0.1:1", "redis": {"password": "s3cret", "timeout": "2s"}}
    with pytest.raises(UnavailableError, match=r"redis://127\.0\.0\.1:1/0 does not") as caught:
        open_queue(parse_watch_config(given | {"delivery": delivery}))
    assert caught.value.exit_code == 3
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"consumer": None}, "needs 'consumer'"),
        ({"parts": 2}, "has one writer for each consumer"),
        ({"delivery": {"to": "redis://me:pw@h"}}, "has a password, which everybody"),
        ({"delivery": {"to": "redis://h?password=pw"}}, "unknown parameter 'password'"),
        ({"delivery": {"to": "redis://h?stream=a%20b"}}, "does not allow a topic 'a b'"),
        ({"delivery": {"to": "redis:h"}}, "write redis://HOST:PORT/DATABASE"),
        ({"delivery": {"to": "redis://h/x"}}, "write redis://HOST:PORT/DATABASE"),
    ],
)
def test_what_does_not_work_with_redis_is_refused(options: dict[str, Any], words: str) -> None:
    values: dict[str, Any] = {"database": DATABASE, "consumer": "mine", **options}
    values["delivery"] = {"to": "redis://h"} | options.get("delivery", {})
    with pytest.raises(ConfigurationError, match=words):
        parse_watch_config(values)


def test_a_user_without_rights_ends_the_watcher(redis_server: RedisServer) -> None:
    redis_server.client.acl_setuser(
        "reader",
        enabled=True,
        passwords=["+pw"],
        commands=["+@all", "-xadd"],
        keys=["*"],
    )
    place = RedisDestination("127.0.0.1", redis_server.port, redis_server.database, user="reader")
    options = RedisOptions(password="pw")
    sink = RedisSink(place, make_envelope("plain"), options, DATABASE, "mine")
    try:
        sink.open()
        write_accounts(sink, 0, 1)
        with pytest.raises(DeliveryError, match="give it the rights"):
            sink.flush()
    finally:
        sink.close()
        redis_server.client.acl_deluser("reader")
