"""A watcher that reads a stream by its placements: every version of every row, however rows and
partitions move, against the truth of who wrote it."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.placements import (
    DDL,
    PARTITIONS,
    PLACEMENTS,
    STREAM,
    PlacedWrites,
    add_partitions,
    in_commit_order,
    placed_versions,
)
from fixtures.server import connect, spawn
from fixtures.singers import address_of, fetch_now
from fixtures.versions import PARTITION_MODES, with_each_mode
from google.cloud.spanner_v1.database import Database

from emulator.process import ServerProcess
from watcher import Change, Watcher
from watcher.captures.change_stream import (
    ChangeStreamCapture,
    find_stream,
    iterate_stream_changes,
    use_placements,
)
from watcher.captures.change_stream.placements import choose_function
from watcher.model.errors import StreamNotFoundError
from watcher.model.window import Window
from watcher.runners.spark.resolution import resolve_scan
from watcher.settings.spark_parsing import parse_source_options
from watcher.spanner.queries import QueryClient
from watcher.tables.discovery import read_schema

IMMUTABLE, MUTABLE = PARTITION_MODES
CHURN_SECONDS = 0.1


def deliver(database: Database, *placements: str, **more: object) -> list[Change]:
    """What one run delivers of what is there."""
    changes: list[Change] = []
    values: dict[str, Any] = {
        "database": str(address_of(database)),
        "tables": ["T", "C", "U"],
        "capture": "change-stream",
        "consumer": "c",
        "stream": {"name": "S", "placements": list(placements)},
    }
    watcher = Watcher(**(values | more))
    watcher.on_change(changes.append)
    watcher.run_once()
    return changes


def capture_of(database: Database, *placements: str) -> ChangeStreamCapture:
    queries = QueryClient(address_of(database))
    stream = find_stream(read_schema(database), "S", (), database.name)
    return ChangeStreamCapture(queries, use_placements(queries.stream, stream, placements))


@pytest.fixture
def churning(
    create_placed_database: Callable[..., Database], faults: Callable[..., None]
) -> Callable[[str, int], Database]:
    """Makes a database whose stream's partitions change all the time."""

    def create(mode: str, seed: int) -> Database:
        faults(change_stream_churn_seconds=CHURN_SECONDS, seed=seed)
        return create_placed_database(*DDL, STREAM.format(mode))

    return create


@with_each_mode
@pytest.mark.parametrize("seed", range(3))
def test_every_version_is_delivered_once_while_rows_and_partitions_move(
    churning: Callable[[str, int], Database], mode: str, seed: int
) -> None:
    database, choice = churning(mode, seed), random.Random(seed)
    assert deliver(database, *PLACEMENTS) == []
    writes = PlacedWrites(database, seed)
    changes: list[Change] = []
    for _ in range(6):
        writes.write(choice.randint(1, 25))
        changes += deliver(database, *PLACEMENTS, max_rows=choice.choice([15, 10_000]))
    assert writes.moves > 20
    assert in_commit_order(placed_versions(changes)) == writes.truth
    assert len({change.id for change in changes}) == len(changes)


@pytest.mark.parametrize("seed", range(4))
def test_the_versions_of_a_row_that_moves_come_in_order(
    churning: Callable[[str, int], Database], seed: int
) -> None:
    database = churning(MUTABLE, seed)
    deliver(database, *PLACEMENTS)
    writes = PlacedWrites(database, seed, returns=True)
    writes.write(120)
    assert writes.moves > 20
    assert placed_versions(deliver(database, *PLACEMENTS)) == writes.truth


@with_each_mode
def test_transactions_are_whole_and_in_order_across_placements(
    churning: Callable[[str, int], Database], mode: str
) -> None:
    database = churning(mode, 9)
    deliver(database, *PLACEMENTS)
    writes = PlacedWrites(database, 9)
    writes.write(80)
    changes = deliver(database, *PLACEMENTS, transactions=True)
    assert placed_versions(changes) == writes.truth
    stamps = [change.commit_timestamp for change in changes]
    assert stamps == sorted(stamps)


@with_each_mode
def test_only_the_placements_that_are_named_are_read(
    churning: Callable[[str, int], Database], mode: str
) -> None:
    database = churning(mode, 6)
    assert deliver(database, "us") == []
    writes = PlacedWrites(database, 6)
    writes.write(80)
    assert in_commit_order(placed_versions(deliver(database, "US"))) == writes.told_by("us")


@with_each_mode
def test_a_placement_that_is_newer_than_the_window_is_read_from_its_beginning(
    churning: Callable[[str, int], Database], mode: str
) -> None:
    database = churning(mode, 3)
    deliver(database, *PLACEMENTS)
    begin = fetch_now(database)
    writes = PlacedWrites(database, 3)
    writes.write(30)
    database.update_ddl(["CREATE PLACEMENT asia OPTIONS (instance_partition = 'asia')"]).result(30)
    writes.placements.append("asia")
    writes.write(60)
    assert writes.told_by("asia")
    changes = deliver(database, *PLACEMENTS, "asia")
    assert in_commit_order(placed_versions(changes)) == writes.truth
    capture = capture_of(database, *PLACEMENTS, "asia")
    window, order = Window(begin, fetch_now(database)), random.Random(3)
    parts = list(capture.plan(window))
    order.shuffle(parts)
    apart = [
        change
        for part in parts
        for rows in capture.read(part)
        for change in iterate_stream_changes(rows, "d")
    ]
    assert in_commit_order(placed_versions(apart)) == writes.truth


@with_each_mode
def test_the_stream_as_a_whole_has_the_placements_that_come_and_go(
    churning: Callable[[str, int], Database], mode: str
) -> None:
    database = churning(mode, 8)
    deliver(database)
    writes = PlacedWrites(database, 8)
    writes.write(20)
    database.update_ddl(["CREATE PLACEMENT asia OPTIONS (instance_partition = 'asia')"]).result(30)
    writes.placements.append("asia")
    writes.write(40)
    writes.leave("asia")
    database.update_ddl(["DROP PLACEMENT asia"]).result(30)
    writes.write(20)
    changes = deliver(database)
    assert in_commit_order(placed_versions(changes)) == writes.truth


def test_a_scan_of_spark_reads_the_functions_that_are_named(
    create_placed_database: Callable[..., Database],
) -> None:
    database = create_placed_database(*DDL, STREAM.format(MUTABLE))
    begin = fetch_now(database)
    writes = PlacedWrites(database, 5)
    writes.write(30)
    address = address_of(database)
    values = {"project": address.project, "instance": address.instance}
    values |= {"database": address.database, "tables": "T"}
    values |= {"capture": "change-stream", "stream": "S"}
    scan = resolve_scan(parse_source_options(values | {"placements": "eu,default"}))
    assert scan.stream is not None
    assert scan.stream.change_stream.functions == ("S_eu", "S_default")
    window = Window(begin, fetch_now(database))
    changes = [
        change
        for part in scan.stream.plan(window)
        for rows in scan.stream.read(part)
        for change in iterate_stream_changes(rows, "d")
    ]
    told = writes.told_by("eu")
    for row, versions in writes.told_by("default").items():
        told[row] = [*told.get(row, []), *versions]
    expected = {row: each for row, each in told.items() if row[0] == "T"}
    assert in_commit_order(placed_versions(changes)) == in_commit_order(expected)


def test_a_placement_without_a_function_is_refused_with_those_that_have_one(
    create_placed_database: Callable[..., Database],
) -> None:
    database = create_placed_database(*DDL, STREAM.format(MUTABLE), "CREATE CHANGE STREAM R FOR T")
    with pytest.raises(
        StreamNotFoundError,
        match=r"for placement mars .* has: READ_S_default, READ_S_eu, READ_S_us\. Name existing",
    ):
        deliver(database, "eu", "mars")
    with pytest.raises(StreamNotFoundError, match=r"stream R for placement eu .* has: none\."):
        deliver(database, tables=["T"], stream={"name": "R", "placements": ["eu"]})


def test_a_placement_that_is_dropped_while_it_is_read_is_named(
    create_placed_database: Callable[..., Database],
) -> None:
    database = create_placed_database(*DDL, STREAM.format(MUTABLE))
    capture, begin = capture_of(database, "eu"), fetch_now(database)
    database.update_ddl(["DROP PLACEMENT eu"]).result(30)
    with pytest.raises(StreamNotFoundError, match=r"READ_S_eu .* its placement was dropped"):
        list(capture.read_window(Window(begin, fetch_now(database))))


def test_the_function_of_the_default_placement_has_either_name() -> None:
    for name in ("S_default", "S_placement_default"):
        assert choose_function("d", "S", "default", ["S_eu", name]) == name


@pytest.fixture
def lasting(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server with a data directory."""
    with spawn(tmp_path / "data", change_stream_churn_seconds=CHURN_SECONDS) as server:
        yield server


def test_a_watcher_goes_on_while_the_server_is_killed(
    lasting: ServerProcess, tmp_path: Path
) -> None:
    instance = connect(lasting.address)
    add_partitions(instance, PARTITIONS)
    database = instance.database("killed", ddl_statements=[*DDL, STREAM.format(MUTABLE)])
    database.create().result(60)
    deliver(database, *PLACEMENTS)
    writes = PlacedWrites(database, 12, returns=True)
    changes: list[Change] = []
    values: dict[str, Any] = {"tables": ["T", "C", "U"], "capture": "change-stream"}
    watcher = Watcher(
        database=str(address_of(database)),
        consumer="c",
        interval="20ms",
        stream={"name": "S", "placements": list(PLACEMENTS)},
        **values,
    )
    watcher.on_change(changes.append)
    thread = threading.Thread(target=watcher.run)
    thread.start()
    port = int(lasting.address.rpartition(":")[2])
    server = lasting
    try:
        for _ in range(3):
            writes.write(30)
            server.kill()
            server = spawn(tmp_path / "data", port, CHURN_SECONDS)
        writes.write(30)
    finally:
        watcher.stop()
        thread.join(120)
    changes += deliver(database, *PLACEMENTS)
    server.kill()
    assert placed_versions(changes) == writes.truth
