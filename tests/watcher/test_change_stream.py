"""The change-stream capture: every version of every row once and in order, however partitions split
and merge, in windows of any size, by one reader or by many."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal

import pytest
from fixtures.everything import rows as everything_rows
from fixtures.everything import write as write_everything
from fixtures.server import connect, spawn
from fixtures.singers import address_of, fetch_now
from fixtures.versions import (
    TABLES,
    Writes,
    set_partition_mode,
    versions_by_row,
    with_each_mode,
)
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction
from hypothesis import given
from hypothesis import strategies as st

from watcher.captures.change_stream import (
    ChangeFilter,
    ChangeStreamCapture,
    WholeRows,
    find_stream,
    iterate_stream_changes,
)
from watcher.captures.change_stream.lineage import Lineage, is_child_reader
from watcher.captures.change_stream.record_values import ChildPartition
from watcher.model.change import Change, Operation, ValueCapture
from watcher.model.errors import NotWatchableError, StreamExpiredError
from watcher.model.window import Window
from watcher.spanner.queries import QueryClient
from watcher.spanner.timestamps import to_micros
from watcher.tables.discovery import read_schema

pytestmark = pytest.mark.both_dialects

STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = '{}')"
OLD_AND_NEW = STREAM.format("OLD_AND_NEW_VALUES")
ROUNDS = int(os.environ.get("CHANGE_STREAM_ROUNDS", "60"))


def capture_of(database: Database, name: str | None = None) -> ChangeStreamCapture:
    stream = find_stream(read_schema(database), name, (), database.name)
    return ChangeStreamCapture(QueryClient(address_of(database)), stream)


def read_changes(capture: ChangeStreamCapture, window: Window) -> list[Change]:
    """The changes of a window, as one reader gets them."""
    batches = capture.read_window(window)
    return [change for rows in batches for change in iterate_stream_changes(rows, "d")]


def read_in_slices(
    capture: ChangeStreamCapture, window: Window, order: random.Random
) -> list[Change]:
    """The changes of a window, as many readers get them, who run in any order."""
    parts = list(capture.plan(window))
    order.shuffle(parts)
    return [
        change
        for part in parts
        for rows in capture.read(part)
        for change in iterate_stream_changes(rows, "d")
    ]


@pytest.fixture
def create_churning_database() -> Iterator[Callable[[str], Database]]:
    """Makes a database on a server that moves partitions about all the time."""
    with spawn(change_stream_churn_seconds=0.05) as server:
        instance = connect(server.address)

        def create(stream: str) -> Database:
            database: Database = instance.database("churn", ddl_statements=[*TABLES, stream])
            database.create().result(60)
            return database

        yield create


@with_each_mode
@pytest.mark.parametrize("seed", range(3))
def test_every_version_comes_once_and_in_order_while_partitions_move(
    create_churning_database: Callable[[str], Database], seed: int, mode: str
) -> None:
    database = create_churning_database(set_partition_mode(OLD_AND_NEW, mode))
    capture, choice = capture_of(database), random.Random(seed)
    writes = Writes(database, seed)
    ends = [fetch_now(database)]
    changes: list[Change] = []
    for _ in range(ROUNDS // 10):
        writes.write(choice.randint(1, 20))
        last = [versions[-1].at for versions in writes.truth.values()]
        # A window may end exactly at a commit timestamp, and the next begin there.
        ends.append(max(last) if choice.random() < 0.5 else fetch_now(database))
        changes += read_changes(capture, Window(ends[-2], ends[-1]))
    changes += read_changes(capture, Window(ends[-1], fetch_now(database)))
    assert versions_by_row(changes) == writes.truth
    assert len({change.id for change in changes}) == len(changes)
    whole = Window(ends[0], fetch_now(database))
    assert versions_by_row(read_changes(capture, whole)) == writes.truth
    apart = sorted(read_in_slices(capture, whole, choice), key=lambda each: each.commit_timestamp)
    assert versions_by_row(apart) == writes.truth
    assert {change.id for change in apart} == {change.id for change in changes}


@with_each_mode
def test_windows_that_end_at_any_timestamp_hold_what_lies_in_them(
    create_database: Callable[..., Database], mode: str
) -> None:
    database = create_database(*TABLES, set_partition_mode(OLD_AND_NEW, mode))
    begin = fetch_now(database)
    writes = Writes(database, 5)
    writes.write(30)
    capture = capture_of(database)
    stamps = sorted({version.at for each in writes.truth.values() for version in each})
    for end in (stamps[0] - 1, stamps[0], stamps[0] + 1, stamps[7], stamps[-1] - 1, stamps[-1]):
        changes = read_changes(capture, Window(begin, end))
        assert {change.commit_timestamp for change in changes} == {s for s in stamps if s <= end}
        rest = read_changes(capture, Window(end, fetch_now(database)))
        assert versions_by_row(changes + rest) == writes.truth


@with_each_mode
def test_a_transaction_says_who_it_is(create_database: Callable[..., Database], mode: str) -> None:
    database = create_database(*TABLES, set_partition_mode(OLD_AND_NEW, mode))
    begin = fetch_now(database)

    def write(transaction: Transaction) -> None:
        transaction.insert("T", ["Id", "Version"], [(1, 1), (2, 2)])
        transaction.insert("U", ["Id", "Version"], [("a", 3)])

    database.run_in_transaction(write, transaction_tag="app=bank")
    changes = read_changes(capture_of(database), Window(begin, fetch_now(database)))
    assert [each.key["Id"] for each in sorted(changes, key=lambda c: str(c.key))] == ["a", 1, 2]
    origins = [change.origin for change in changes if change.origin is not None]
    assert len(origins) == 3
    assert len({origin.transaction_id for origin in origins}) == 1
    assert {origin.transaction_tag for origin in origins} == {"app=bank"}
    records = {(o.partition_token, o.record_sequence) for o in origins}
    assert {origin.records_in_transaction for origin in origins} == {len(records)}
    assert {o.partitions_in_transaction for o in origins} == {
        len({o.partition_token for o in origins})
    }


@with_each_mode
def test_tables_operations_and_tags_can_be_chosen(
    create_database: Callable[..., Database], mode: str
) -> None:
    database = create_database(*TABLES, set_partition_mode(OLD_AND_NEW, mode))
    begin = fetch_now(database)
    writes = Writes(database, 11)
    writes.write(40)
    capture = capture_of(database)
    window = Window(begin, fetch_now(database))
    only = replace(
        capture,
        change_filter=ChangeFilter(
            frozenset({"T"}), frozenset({Operation.DELETE, Operation.INSERT})
        ),
    )
    expected = {
        row: [v for v in versions if v.operation is not Operation.UPDATE]
        for row, versions in writes.truth.items()
        if row[0] == "T"
    }
    assert versions_by_row(read_changes(only, window)) == {
        row: each for row, each in expected.items() if each
    }
    assert read_changes(replace(capture, change_filter=ChangeFilter(tag="nobody")), window) == []


@with_each_mode
@pytest.mark.parametrize("captured", list(ValueCapture))
def test_whole_rows_are_there_whatever_the_stream_captures(
    create_database: Callable[..., Database], captured: ValueCapture, mode: str
) -> None:
    database = create_database(*TABLES, set_partition_mode(STREAM.format(captured), mode))
    begin = fetch_now(database)
    with database.batch() as batch:
        batch.insert("T", ["Id", "Version", "Text"], [(1, 1, "first")])
    with database.batch() as batch:
        batch.update("T", ["Id", "Version"], [(1, 2)])
    with database.batch() as batch:
        batch.update("T", ["Id", "Text"], [(1, None)])
    capture = replace(capture_of(database), whole_rows=WholeRows(QueryClient(address_of(database))))
    changes = read_changes(capture, Window(begin, fetch_now(database)))
    assert [change.new_values for change in changes] == [
        {"Version": 1, "Text": "first"},
        {"Version": 2, "Text": "first"},
        {"Version": 2, "Text": None},
    ]
    assert {change.captured.whole_row for change in changes} == {True}
    olds = [change.old_values for change in changes]
    assert olds == ([{}, {"Version": 1}, {"Text": "first"}] if captured.keeps_old else [None] * 3)


@with_each_mode
def test_a_start_before_the_stream_is_refused_with_what_to_do(
    create_database: Callable[..., Database], mode: str
) -> None:
    database = create_database(*TABLES, set_partition_mode(OLD_AND_NEW, mode))
    capture = capture_of(database)
    database.reload()
    with pytest.raises(StreamExpiredError, match=r"S cannot be read from .* backfill"):
        capture.plan(Window(to_micros(database.create_time) - 10**12, fetch_now(database)))


@pytest.mark.ddl(*TABLES, "CREATE CHANGE STREAM S FOR T", "CREATE CHANGE STREAM R FOR T")
def test_a_stream_that_does_not_fit_is_refused(database: Database) -> None:
    schema = read_schema(database)
    with pytest.raises(NotWatchableError, match="does not watch table U; add it: ALTER CHANGE"):
        find_stream(schema, "S", ("U",), "d")
    with pytest.raises(NotWatchableError, match="d has no change stream X; it has: R, S"):
        find_stream(schema, "X", (), "d")
    with pytest.raises(NotWatchableError, match="watch the tables: R, S; name the one"):
        find_stream(schema, None, ("T",), "d")
    with pytest.raises(NotWatchableError, match="no change stream that watches U; create one"):
        find_stream(schema, None, ("U",), "d")
    assert find_stream(schema, "s", ("T",), "d").name == "S"


@with_each_mode
def test_streams_that_break_go_on_without_loss_or_repetition(
    create_database: Callable[..., Database], faults: Callable[..., None], mode: str
) -> None:
    database = create_database(*TABLES, set_partition_mode(OLD_AND_NEW, mode))
    begin = fetch_now(database)
    writes = Writes(database, 3)
    writes.write(60)
    window = Window(begin, fetch_now(database))
    faults(unavailable_after_rows=2, latency_seconds=0.001)
    assert versions_by_row(read_changes(capture_of(database), window)) == writes.truth


def test_each_partition_mode_delivers_the_same_values_of_every_type(everything: Database) -> None:
    kinds = "value_capture_type = 'NEW_ROW_AND_OLD_VALUES'"
    moving = "partition_mode = 'MUTABLE_KEY_RANGE'"
    statements = [
        f"CREATE CHANGE STREAM Still FOR Everything OPTIONS ({kinds})",
        f"CREATE CHANGE STREAM Moving FOR Everything OPTIONS ({kinds}, {moving})",
    ]
    everything.update_ddl(statements).result(60)
    begin = fetch_now(everything)
    update_everything(everything)
    window = Window(begin, fetch_now(everything))
    still, moved = (read_values(capture_of(everything, n), window) for n in ("Still", "Moving"))
    assert len(still) > 2
    assert moved == still


def update_everything(database: Database) -> None:
    """Rows with every value of every type come, change, and go."""
    new = [row | {"Id": 1_000 + row["Id"]} for row in everything_rows()]
    write_everything(database, new)
    with database.batch() as batch:
        batch.update("Everything", ["Id", "St"], [(row["Id"], "then") for row in new])
    with database.batch() as batch:
        batch.delete("Everything", KeySet(keys=[(new[0]["Id"],)]))


def read_values(capture: ChangeStreamCapture, window: Window) -> list[dict[str, object]]:
    """As ``read_rows``, with what the texts of values say: jsonb has an order of its own."""
    rows = read_rows(capture, window)
    return [
        row | {name: parse_exactly(row[name]) for name in ("key", "old_values", "new_values")}
        for row in rows
    ]


def parse_exactly(text: object) -> object:
    return text and json.loads(str(text), parse_int=Decimal, parse_float=Decimal)


def read_rows(capture: ChangeStreamCapture, window: Window) -> list[dict[str, object]]:
    """The columns of the changes, without those that name the partition and its records."""
    apart = {"partition_token", "record_sequence", "mod_number", "id", "shape"}
    apart |= {"last_in_transaction_in_partition", "records_in_transaction"}
    apart |= {"partitions_in_transaction"}
    found = [row for rows in capture.read_window(window) for row in rows.batch.to_pylist()]
    shown = [{name: cell for name, cell in row.items() if name not in apart} for row in found]
    return sorted(shown, key=lambda row: (str(row["key"]), str(row["commit_timestamp"])))


# The order of partitions, without a server.


@st.composite
def lineages(draw: st.DrawFn) -> list[ChildPartition]:
    """Partitions that split, merge and move, oldest first; those without parents began first."""
    roots = [ChildPartition(f"p{number}", (), 1) for number in range(draw(st.integers(1, 4)))]
    known, active = list(roots), [root.token for root in roots]
    for step in range(draw(st.integers(0, 12))):
        start = 2 + step
        parents = draw(
            st.lists(st.sampled_from(active), min_size=1, max_size=min(3, len(active)), unique=True)
        )
        active = [token for token in active if token not in parents]
        for _ in range(draw(st.integers(1, 3)) if len(parents) == 1 else 1):
            child = ChildPartition(f"p{len(known)}", tuple(parents), start)
            known.append(child)
            active.append(child.token)
    return known


@given(lineages(), st.integers(1, 16), st.randoms())
def test_children_are_read_once_and_after_their_parents(
    known: list[ChildPartition], end: int, order: random.Random
) -> None:
    lineage = Lineage(end)
    for child in known:
        if not child.parents:
            lineage.announce(child)
    read: list[str] = []
    while (partition := lineage.take_next()) is not None:
        assert set(partition.parents) <= set(read)
        read.append(partition.token)
        announced = [child for child in known if partition.token in child.parents]
        order.shuffle(announced)
        for child in announced:
            lineage.announce(child)
    assert sorted(read) == sorted(child.token for child in known if child.start <= end)


class CountedStart(int):
    """Counts how often it is compared."""

    compared = 0

    def __lt__(self, other: int) -> bool:
        CountedStart.compared += 1
        return int(self) < int(other)

    def __eq__(self, other: object) -> bool:
        CountedStart.compared += 1
        return int(self) == other

    def __hash__(self) -> int:
        return hash(int(self))


def test_the_next_partition_is_found_without_looking_at_all_of_them() -> None:
    lineage, count = Lineage(10**6), 2_000
    for number in range(count):
        lineage.announce(ChildPartition(f"p{number}", (), CountedStart(number * 7 % count)))
    CountedStart.compared = 0
    starts = []
    while (partition := lineage.take_next()) is not None:
        starts.append(int(partition.start))
    assert starts == sorted(starts)
    assert len(starts) == count
    assert CountedStart.compared < 100 * count


@given(lineages(), st.integers(1, 16))
def test_a_merged_child_has_one_reader(known: list[ChildPartition], end: int) -> None:
    read: list[str] = []
    for root in (child for child in known if not child.parents):
        lineage = Lineage(end)
        place: ChildPartition | None = root
        while place is not None:
            read.append(place.token)
            for child in known:
                if place.token in child.parents and is_child_reader(place.token, child):
                    lineage.announce(child)
            place = lineage.take_next()
    assert sorted(read) == sorted(child.token for child in known if child.start <= end)
