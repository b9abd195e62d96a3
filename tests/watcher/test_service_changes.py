"""What a consumer does while its instance is scaled, its database backed up, dropped or restored,
and while others use up the readers of a partition."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from zlib import crc32

import pytest
from fixtures.backups import back_up, restore
from fixtures.consumers import options, singers_of, write
from fixtures.pace import allow
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, make_watchable
from fixtures.watcher_threads import ChangeCollector, run_in_thread, run_without_error
from google.cloud.spanner_v1 import ExecuteSqlRequest
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.instance import Instance

from emulator.limits import PARTITION_READERS_MAX
from watcher import Watcher
from watcher.captures import statements
from watcher.captures.change_stream.lineage import Lineage
from watcher.captures.change_stream.record_values import ChildPartition, DataRecord
from watcher.captures.change_stream.records import decode_records
from watcher.model.errors import DatabaseNotFoundError
from watcher.spanner.queries import QueryClient
from watcher.spanner.requests import build_read_only, build_statement
from watcher.spanner.sessions import get_shared_session

STREAM = "CREATE CHANGE STREAM Everything FOR Singers"
CAPTURES: dict[str, dict[str, Any]] = {
    "poll": {},
    "change-stream": {"capture": "change-stream", "stream": {"name": "Everything"}},
    "push": {"capture": "change-stream", "stream": {"name": "Everything", "push": True}},
}
SECONDS_MAX = 60
HEARTBEAT_MILLISECONDS = 1_000
each_capture = pytest.mark.parametrize("capture", CAPTURES)


@pytest.fixture
def own(instance: Instance, request: pytest.FixtureRequest) -> Iterator[Database]:
    """A database that a test drops or restores."""
    name = f"restored-{crc32(request.node.name.encode())}"
    database: Database = instance.database(name, ddl_statements=[SINGERS, STREAM])
    database.create().result(30)
    make_watchable(database)
    yield database
    if database.exists():
        database.drop()


@pytest.fixture
def singers(create_database: CreateDatabase) -> Database:
    database: Database = create_database(SINGERS, STREAM)
    make_watchable(database)
    return database


def make_watcher(database: Database, capture: str, seen: Any, **more: object) -> Watcher:
    watcher = Watcher(
        **options(database, consumer="orders", start="latest") | CAPTURES[capture] | more
    )
    watcher.on_change(seen)
    return watcher


def find_lines(caplog: pytest.LogCaptureFixture, text: str) -> list[str]:
    return [each.getMessage() for each in caplog.records if text in each.getMessage()]


def wait_for(caplog: pytest.LogCaptureFixture, text: str) -> None:
    until = time.monotonic() + allow(SECONDS_MAX)
    while not find_lines(caplog, text):
        assert time.monotonic() < until, caplog.text
        time.sleep(0.05)


@contextmanager
def run_from_start(watcher: Watcher) -> Iterator[None]:
    """The watcher in a thread, once it has begun."""
    began = threading.Event()
    watcher.on_start(lambda _start: began.set())
    with run_without_error(watcher):
        assert began.wait(allow(SECONDS_MAX))
        yield


def wait_for_key(seen: ChangeCollector, key: int) -> None:
    seen.wait_until(lambda: any(change.key["SingerId"] == key for change in seen.changes))


@each_capture
def test_a_watcher_goes_on_while_its_instance_is_scaled_and_backed_up(
    singers: Database,
    instance: Instance,
    faults: Callable[..., None],
    capture: str,
) -> None:
    seen = ChangeCollector()
    with run_from_start(make_watcher(singers, capture, seen)):
        write(singers, 1)
        wait_for_key(seen, 1)
        for units in (3_000, 1_000):
            instance.processing_units = units
            instance.update().result(30)
            faults(unavailable_call_probability=0.3, seed=units)
            write(singers, units)
            wait_for_key(seen, units)
            faults()
        back_up(singers)
        write(singers, 2)
        wait_for_key(seen, 2)
    assert {change.key["SingerId"] for change in seen.changes} == {1, 3_000, 1_000, 2}


@each_capture
def test_a_watcher_whose_database_is_dropped_ends_with_one_line(
    own: Database, caplog: pytest.LogCaptureFixture, capture: str
) -> None:
    watcher = make_watcher(own, capture, lambda _: own.drop())
    began = threading.Event()
    watcher.on_start(lambda _start: began.set())
    with run_in_thread(watcher) as raised:
        assert began.wait(allow(SECONDS_MAX))
        write(own, 1)
        wait_for(caplog, "stopping")
    assert [type(error) for error in raised] == [DatabaseNotFoundError]
    (line,) = find_lines(caplog, "stopping")
    assert "does not exist" in line
    assert "check its name" in line


def run_once(database: Database, **more: object) -> list[object]:
    """The keys that one run delivers."""
    seen = ChangeCollector()
    make_watcher(database, "poll", seen, **more).run_once()
    return [change.key["SingerId"] for change in seen.changes]


def test_a_poller_of_a_restored_database_goes_on_with_what_is_written_since(
    own: Database, create_database: CreateDatabase
) -> None:
    elsewhere = {"positions": {"database": str(address_of(create_database()))}}
    write(own, 1)
    backup = back_up(own)
    write(own, 2)
    assert set(run_once(own, start="earliest", **elsewhere)) == {1, 2}
    own.drop()
    restored = restore(own, backup.name, own.database_id)
    assert singers_of(restored).keys() == {1}
    assert run_once(restored, **elsewhere) == []
    write(restored, 3)
    assert run_once(restored, **elsewhere) == [3]


# The readers of a partition.


def open_readers(database: Database, start: int) -> list[Any]:
    """As many open queries as a partition takes, of the partition that has the last change."""
    address = address_of(database)
    stream, session = QueryClient(address).stream, get_shared_session(address)
    token = find_token(database, start)
    statement = statements.read_change_stream(
        "Everything", start, None, token, HEARTBEAT_MILLISECONDS, stream.sql, False
    )
    sent = build_statement(statement, stream.sql)
    request = ExecuteSqlRequest(
        session=session.name,
        sql=sent.sql,
        params=sent.params,
        param_types=sent.param_types,
        transaction={"single_use": {"read_only": build_read_only(None)}},
    )
    calls = []
    for _ in range(PARTITION_READERS_MAX):
        metadata = session.build_metadata(session.name)
        calls.append(session.execute(request, metadata=metadata, timeout=SECONDS_MAX))
        next(iter(calls[-1]))
    return calls


def find_token(database: Database, at: int) -> str:
    """The partition with a record at a timestamp."""
    stream = QueryClient(address_of(database)).stream

    def read(token: str | None) -> Iterator[Any]:
        statement = statements.read_change_stream(
            "Everything", at, at, token, HEARTBEAT_MILLISECONDS, stream.sql, False
        )
        return decode_records(stream.query(statement, None, with_stats=False))

    lineage = Lineage(at)
    for record in read(None):
        if isinstance(record, ChildPartition):
            lineage.announce(record)
    while (place := lineage.take_next()) is not None:
        if any(isinstance(record, DataRecord) for record in read(place.token)):
            return place.token
    raise AssertionError("no partition has the change")


def test_a_partition_without_room_for_a_reader_is_waited_for(
    singers: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "watcher")
    seen = ChangeCollector()
    watcher = make_watcher(singers, "change-stream", seen, metrics={"port": 0})
    watcher.run_once()
    calls = open_readers(singers, write(singers, 1))
    with run_without_error(watcher):
        wait_for(caplog, "refuses a call, retrying it: 429 The change stream partition has 20")
        for call in calls:
            call.cancel()
        wait_for_key(seen, 1)
    assert find_lines(caplog, "takes the call after")
    sample = watcher.metrics.registry.get_sample_value
    assert (sample("spanner_watcher_failed_calls", {"consumer": "orders"}) or 0) > 0


def test_a_database_has_no_eleventh_stream(create_database: CreateDatabase) -> None:
    streams = [f"CREATE CHANGE STREAM S{number} FOR Singers()" for number in range(10)]
    database = create_database(SINGERS, *streams)
    with pytest.raises(Exception, match=r"limit 10\) has been reached"):
        database.update_ddl(["CREATE CHANGE STREAM S10 FOR Singers()"]).result(30)
