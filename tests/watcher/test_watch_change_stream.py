"""``capture = "change-stream"`` in ``Watcher``: as with polling, by a word in the configuration."""

from __future__ import annotations

import json
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from fixtures.server import connect, spawn
from fixtures.singers import address_of
from fixtures.versions import (
    TABLES,
    Writes,
    row_of,
    set_partition_mode,
    versions_by_row,
    with_each_mode,
)
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from typer.testing import CliRunner

from watcher import Change, Operation, Watcher
from watcher.captures import StreamRows
from watcher.captures.change_stream import record_columns
from watcher.captures.changes import iterate_changes
from watcher.captures.streamed_tables import StreamedTables
from watcher.cli import app
from watcher.consumers.positions import MemoryPositions, Position, SpannerPositions
from watcher.envelopes import encode, make_envelope
from watcher.model.errors import ConfigurationError, NotWatchableError
from watcher.model.window import BEGINNING
from watcher.runners.delivery.instance import Instance
from watcher.runners.delivery.push import PushDelivery
from watcher.runners.preflight import check
from watcher.runners.watcher_run.table_resolver import TableResolver
from watcher.settings.watcher import parse_watch_config
from watcher.sinks.functions import CallbackSink
from watcher.spanner import resumption
from watcher.spanner.queries import QueryClient

pytestmark = pytest.mark.both_dialects

STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW_AND_OLD_VALUES')"


def options(database: Database, **more: object) -> dict[str, Any]:
    return {
        "database": str(address_of(database)),
        "tables": ["T", "U"],
        "capture": "change-stream",
        "consumer": "c",
        "interval": "20ms",
    } | more


def deliver(database: Database, **more: object) -> list[Change]:
    """What one run delivers of what is there."""
    changes: list[Change] = []
    watcher = Watcher(**options(database, **more))
    watcher.on_change(changes.append)
    watcher.run_once()
    return changes


@pytest.fixture
def mode() -> str:
    """The partition mode of the stream; some tests are run with each."""
    return "IMMUTABLE_KEY_RANGE"


@pytest.fixture
def database(create_database: Callable[..., Database], mode: str) -> Database:
    return create_database(*TABLES, set_partition_mode(STREAM, mode))


@with_each_mode
def test_every_version_comes_with_deletes_and_old_values(database: Database) -> None:
    assert deliver(database) == []
    writes = Writes(database, 1)
    writes.write(50)
    assert versions_by_row(deliver(database)) == writes.truth
    assert deliver(database) == []


@with_each_mode
def test_it_goes_on_while_writes_come(database: Database) -> None:
    deliver(database)
    writes = Writes(database, 2)
    changes: list[Change] = []
    arrived = threading.Event()
    watcher = Watcher(**options(database))

    @watcher.on_change
    def collect(change: Change) -> None:
        changes.append(change)
        if change.key["Id"] == "last":
            arrived.set()

    thread = threading.Thread(target=watcher.run)
    thread.start()
    writes.write(60)
    with database.batch() as batch:
        batch.insert("U", ["Id", "Version"], [("last", 0)])
    assert arrived.wait(60)
    watcher.stop()
    thread.join(60)
    changes.pop(next(n for n, change in enumerate(changes) if change.key["Id"] == "last"))
    assert versions_by_row(changes) == writes.truth


@with_each_mode
def test_whole_tables_come_before_their_changes_without_gap_or_overlap(database: Database) -> None:
    writes = Writes(database, 3)
    writes.write(30)
    there = {row: versions[-1] for row, versions in writes.truth.items()}
    living = {row: version.value for row, version in there.items() if version.value is not None}
    first = deliver(database, backfill=["*"], backfill_rows=3)
    assert {change.operation for change in first} == {Operation.READ}
    assert {row_of(c): (c.new_values or {})["Version"] for c in first} == living
    before = {row: len(versions) for row, versions in writes.truth.items()}
    writes.write(30)
    expected = {row: each[before.get(row, 0) :] for row, each in writes.truth.items()}
    assert versions_by_row(deliver(database)) == {
        row: each for row, each in expected.items() if each
    }


@with_each_mode
def test_transactions_come_whole_and_in_order(database: Database) -> None:
    deliver(database)
    writes = Writes(database, 4)
    writes.write(40)
    transactions: list[tuple[Change, ...]] = []
    watcher = Watcher(**options(database, transactions=True, max_rows=10))
    watcher.on_transaction(transactions.append)
    watcher.run_once()
    assert [frozenset(map(row_of, changes)) for changes in transactions] == writes.transactions
    for changes in transactions:
        assert len({c.origin.transaction_id for c in changes if c.origin is not None}) == 1


@with_each_mode
def test_a_long_backlog_comes_in_windows(database: Database) -> None:
    deliver(database)
    writes = Writes(database, 5)
    writes.write(80)
    windows: set[object] = set()
    rows: list[int] = []
    watcher = Watcher(**options(database, max_rows=20))

    @watcher.on_batch
    def note_window(batch: object) -> None:
        assert isinstance(batch, StreamRows)
        windows.add(batch.window)
        rows.append(batch.batch.num_rows)

    watcher.run_once()
    assert sum(rows) == sum(len(versions) for versions in writes.truth.values())


@pytest.mark.parametrize("whole_rows", [False, True])
def test_what_is_printed(create_database: Callable[..., Database], whole_rows: bool) -> None:
    database = create_database(*TABLES, "CREATE CHANGE STREAM S FOR T")
    more = {"tables": ["T"], "stream": {"name": "S", "whole_rows": whole_rows}}
    deliver(database, **more)
    with database.batch() as batch:
        batch.insert("T", ["Id", "Version", "Text"], [(1, 1, "a")])
    with database.batch() as batch:
        batch.update("T", ["Id", "Version"], [(1, 2)])
    with database.batch() as batch:
        batch.delete("T", KeySet(keys=[[1]]))
    messages = encode(deliver(database, **more), make_envelope("plain"))
    printed = [json.loads(value or b"") for _, value in messages]
    updated = {"Id": 1, "Version": 2} | ({"Text": "a"} if whole_rows else {})
    assert [(each["operation"], each["values"], each["old_values"]) for each in printed] == [
        ("INSERT", {"Id": 1, "Version": 1, "Text": "a"}, {}),
        ("UPDATE", updated, {"Version": 1}),
        ("DELETE", {"Id": 1}, {"Version": 2, "Text": "a"}),
    ]
    assert all(each["transaction"]["id"] for each in printed)


@with_each_mode
def test_only_some_operations(database: Database) -> None:
    deliver(database)
    writes = Writes(database, 6)
    writes.write(40)
    changes = deliver(database, stream={"operations": ["DELETE"]})
    deletes = {
        row: [v for v in versions if v.operation is Operation.DELETE]
        for row, versions in writes.truth.items()
    }
    assert versions_by_row(changes) == {row: each for row, each in deletes.items() if each}


@with_each_mode
def test_check_says_whether_the_stream_can_be_read(database: Database) -> None:
    findings = list(check(parse_watch_config(options(database))))
    assert all(finding.ok for finding in findings)
    assert "change stream S" in [finding.name for finding in findings]
    wrong = list(check(parse_watch_config(options(database, stream={"name": "X"}))))
    assert next(f.detail for f in wrong if f.name == "change stream").endswith("X; it has: S")


@with_each_mode
def test_the_command_line_reads_a_stream(database: Database) -> None:
    command = ["watch", "-d", str(address_of(database)), "-t", "T", "--stream", "S"]
    again = [*command, "--consumer", "cli", "--once"]
    assert CliRunner().invoke(app, again).exit_code == 0
    writes = Writes(database, 9)
    writes.write(20)
    result = CliRunner().invoke(app, again)
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    counts = Counter((each["key"]["Id"], each["operation"]) for each in lines)
    assert counts == Counter(
        (row[1], str(version.operation))
        for row, versions in writes.truth.items()
        for version in versions
        if row[0] == "T"
    )


def test_what_does_not_go_together_is_refused(database: Database) -> None:
    with pytest.raises(ConfigurationError, match="Spanner itself deletes the records"):
        parse_watch_config(options(database, clearing={"every": "1s"}))
    with pytest.raises(ConfigurationError, match=r"\[stream\] needs capture = 'change-stream'"):
        parse_watch_config(options(database, capture="auto", stream={"name": "S"}))
    with pytest.raises(ConfigurationError, match="'earliest' does not work with a change stream"):
        parse_watch_config(options(database, start="earliest"))
    with pytest.raises(NotWatchableError, match="no change stream X; it has: S"):
        deliver(database, stream={"name": "X"})


@pytest.mark.parametrize("mode", ["MUTABLE_KEY_RANGE"])
def test_queries_that_must_have_an_end_are_not_kept_open(database: Database) -> None:
    with pytest.raises(ConfigurationError, match="S has partition_mode = 'MUTABLE_KEY_RANGE'"):
        deliver(database, stream={"push": True})
    with pytest.raises(ConfigurationError, match=r"remove stream\.push or stream\.placements"):
        parse_watch_config(options(database, stream={"push": True, "placements": ["a"]}))


# Queries that stay open.


class Pushed:
    """A watcher with open queries in a thread; changes as they come, each once."""

    def __init__(self, database: Database, **more: object) -> None:
        self.changes: list[Change] = []
        self._arrived = threading.Condition()
        self.watcher = Watcher(**options(database, stream={"push": True}, **more))
        self.watcher.on_change(self._take)
        self._raised: list[BaseException] = []
        self._thread = threading.Thread(target=self._run)

    def _take(self, change: Change) -> None:
        with self._arrived:
            self.changes.append(change)
            self._arrived.notify_all()

    def _run(self) -> None:
        try:
            self.watcher.run()
        except Exception as error:  # noqa: BLE001 (handed to the test)
            self._raised.append(error)

    def __enter__(self) -> Pushed:
        self._thread.start()
        return self

    def wait(self, count: int, before: Sequence[Change] = ()) -> list[Change]:
        """Until so many different changes have come, with those from before."""
        with self._arrived:
            assert self._arrived.wait_for(
                lambda: len(drop_repeated([*before, *self.changes])) >= count, 60
            )
            return drop_repeated([*before, *self.changes])

    def __exit__(self, *_: object) -> None:
        self.watcher.stop()
        self._thread.join(60)
        assert not self._raised


def drop_repeated(changes: Sequence[Change]) -> list[Change]:
    """The changes without those that came again."""
    return list({change.id: change for change in changes}.values())


def versions(writes: Writes) -> int:
    return sum(len(each) for each in writes.truth.values())


def test_open_queries_deliver_every_version_while_partitions_move() -> None:
    with spawn(change_stream_churn_seconds=0.1) as server:
        database = connect(server.address).database("push", ddl_statements=[*TABLES, STREAM])
        database.create().result(60)
        deliver(database)
        writes = Writes(database, 21)
        with Pushed(database) as pushed:
            for _ in range(4):
                writes.write(30)
                changes = pushed.wait(versions(writes))
            assert len(changes) == len(pushed.changes)
        writes.write(20)
        with Pushed(database) as again:
            again.wait(1)
            writes.write(20)
            everything = again.wait(versions(writes), changes)
            assert versions_by_row(everything) == writes.truth
        # What is above the watermark when it stops comes again, and nothing else.
        repeated = {change.id for change in deliver(database)}
        assert repeated <= {change.id for change in everything}


def test_open_queries_outlive_a_server_that_breaks_them(
    database: Database, faults: Callable[..., None]
) -> None:
    deliver(database)
    writes = Writes(database, 22)
    faults(unavailable_after_rows=3)
    with Pushed(database) as pushed:
        writes.write(60)
        assert versions_by_row(pushed.wait(versions(writes))) == writes.truth
        assert len(drop_repeated(pushed.changes)) == len(pushed.changes)


def test_open_queries_go_on_when_their_deadline_passes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumption, "STREAM_SECONDS", 2.0)
    deliver(database)
    writes = Writes(database, 24)
    with Pushed(database, metrics={"port": 0}) as pushed:
        writes.write(20)
        pushed.wait(versions(writes))
        wait_for_restarts(pushed.watcher, 2)
        writes.write(20)
        assert versions_by_row(pushed.wait(versions(writes))) == writes.truth
    assert len(drop_repeated(pushed.changes)) == len(pushed.changes)
    labels = {"consumer": "c", "kind": "DeadlineExceeded"}
    sample = pushed.watcher.metrics.registry.get_sample_value
    assert sample("spanner_watcher_errors_total", labels) is None


def wait_for_restarts(watcher: Watcher, count: int) -> None:
    """Returns when so many streams were taken up again, or after a minute."""
    sample, until = watcher.metrics.registry.get_sample_value, time.monotonic() + 60
    while (sample("spanner_watcher_stream_restarts", {"consumer": "c"}) or 0) < count:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_open_queries_end_when_they_are_drained(database: Database) -> None:
    deliver(database)
    writes = Writes(database, 23)
    writes.write(20)
    pushed = Pushed(database)
    with pushed:
        pushed.wait(1)
        pushed.watcher.drain()
        pushed._thread.join(60)
    assert versions_by_row(pushed.changes) == writes.truth
    assert deliver(database) == []


@with_each_mode
def test_a_table_that_is_made_while_the_watcher_is_down_is_watched_from_its_first_row(
    create_database: Callable[..., Database],
    mode: str,
) -> None:
    database = create_database(*TABLES, set_partition_mode("CREATE CHANGE STREAM S FOR ALL", mode))
    deliver(database, tables=["*"])
    database.update_ddl(["CREATE TABLE Later (Id INT64) PRIMARY KEY (Id)"]).result(60)
    with database.batch() as batch:
        batch.insert("Later", ["Id"], [(1,)])
    assert [(change.table, change.key) for change in deliver(database, tables=["*"])] == [
        ("Later", {"Id": 1})
    ]


def test_a_table_that_is_gone_does_not_send_the_next_one_back(
    create_database: Callable[..., Database],
) -> None:
    """Its position stays, and grows older than what the stream keeps."""
    database = create_database(*TABLES, "CREATE CHANGE STREAM S FOR ALL")
    deliver(database, tables=["*"])
    SpannerPositions(database).save(Position("c", "Gone", BEGINNING + 1), None)
    assert deliver(database, tables=["*"]) == []
    database.update_ddl(["CREATE TABLE Later (Id INT64) PRIMARY KEY (Id)"]).result(60)
    with database.batch() as batch:
        batch.insert("Later", ["Id"], [(1,)])
    assert [change.key for change in deliver(database, tables=["*"])] == [{"Id": 1}]


@pytest.mark.parametrize("refresh", [0, 1])
@with_each_mode
def test_a_table_that_comes_later_is_watched_from_its_first_row(
    create_database: Callable[..., Database], refresh: int, mode: str
) -> None:
    """Also when windows pass before its schema is looked at."""
    database = create_database(*TABLES, set_partition_mode("CREATE CHANGE STREAM S FOR ALL", mode))
    changes: list[Change] = []
    arrived = threading.Event()
    watcher = Watcher(**options(database, tables=["*"], refresh=refresh))

    @watcher.on_change
    def collect(change: Change) -> None:
        changes.append(change)
        if change.table == "Later" and change.key["Id"] == 2:
            arrived.set()

    deliver(database, tables=["*"])
    thread = threading.Thread(target=watcher.run)
    thread.start()
    database.update_ddl(["CREATE TABLE Later (Id INT64) PRIMARY KEY (Id)"]).result(60)
    for key in (1, 2):
        with database.batch() as batch:
            batch.insert("Later", ["Id"], [(key,)])
    assert arrived.wait(60)
    watcher.stop()
    thread.join(60)
    assert sorted(str(c.key["Id"]) for c in changes if c.table == "Later") == ["1", "2"]


@pytest.mark.parametrize("few_bytes", [0, 1 << 40], ids=["by column", "record by record"])
def test_what_was_delivered_above_the_watermark_does_not_come_again_when_queries_are_reopened(
    database: Database, monkeypatch: pytest.MonkeyPatch, few_bytes: int
) -> None:
    monkeypatch.setattr(record_columns, "FEW_BYTES", few_bytes)
    source = TableResolver(parse_watch_config(options(database))).resolve_latest().source
    assert isinstance(source, StreamedTables)
    positions, changes = MemoryPositions(), list[Change]()
    start = QueryClient(address_of(database)).fetch_read_timestamp()
    for table in source.tables:
        positions.save(Position("c", table, start), None)
    sink = CallbackSink(lambda rows: changes.extend(iterate_changes(rows, "")))
    push = PushDelivery(source, positions, Instance("c", None, lambda: None), sink, 0.1)
    until = time.monotonic() + 60

    def poll_until(key: int) -> None:
        while not any(change.key == {"Id": key} for change in changes):
            assert time.monotonic() < until
            push.poll()

    def insert(key: int) -> None:
        with database.batch() as batch:
            batch.insert("T", ("Id",), [(key,)])

    insert(1)
    poll_until(1)
    monkeypatch.setattr("watcher.runners.delivery.push.SAVE_SECONDS", math.inf)
    insert(2)
    poll_until(2)
    saved = positions.load_all("c")["T"]
    push.replace_source(source)
    insert(3)
    poll_until(3)
    push.close()
    assert saved < changes[1].commit_timestamp
    assert [change.key["Id"] for change in changes] == [1, 2, 3]
