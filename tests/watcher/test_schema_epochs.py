"""``Watcher`` while the schema changes: every window with what was valid at its end."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from fixtures.changing_schemas import (
    change_schema,
    index_ddl,
    reshard_ddl,
    shards_ddl,
    table_ddl,
    watchable_ddl,
    write,
)
from fixtures.singers import address_of
from fixtures.watcher_threads import ChangeCollector, run_without_error
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from watcher import Change, Watcher
from watcher.captures import Changed
from watcher.consumers.clearing import Clearing
from watcher.consumers.positions import SpannerPositions
from watcher.spanner.sql import Statement
from watcher.spanner.stream import QueryStream
from watcher.tables.discovery import discover_table

SECONDS = 60
HOUR = 3600
WINDOWS = 12
CreateDatabase = Callable[..., Database]


def options(database: Database, **more: object) -> dict[str, Any]:
    return {
        "database": str(address_of(database)),
        "consumer": "c",
        "start": "earliest",
        "interval": "20ms",
        "refresh": HOUR,
    } | more


def deliver(database: Database, **more: object) -> list[Change]:
    """What one run delivers of what is there."""
    seen = ChangeCollector()
    watcher = Watcher(**options(database, **more))
    watcher.on_change(seen)
    watcher.run_once()
    return seen.changes


def row_ids(changes: list[Change]) -> list[tuple[str, object]]:
    return [(change.table, change.key["Id"]) for change in changes]


def values_of(change: Change) -> Mapping[str, object]:
    assert change.new_values is not None
    return change.new_values


def newest_versions(changes: list[Change]) -> dict[tuple[str, object], object]:
    return {(each.table, each.key["Id"]): values_of(each)["Version"] for each in changes}


def sizes(changes: list[Change]) -> list[int]:
    counts: dict[object, int] = defaultdict(int)
    for change in changes:
        counts[change.window] += 1
    return list(counts.values())


# Columns.


def test_the_first_writes_of_a_new_column_come_with_it(create_database: CreateDatabase) -> None:
    database = create_database(*watchable_ddl("T"))
    seen = ChangeCollector()
    watcher = Watcher(**options(database))
    watcher.on_change(seen)
    with run_without_error(watcher):
        write(database, 1)
        seen.wait(1)
        change_schema(database, "ALTER TABLE T ADD COLUMN Extra STRING(MAX)")
        write(database, 2, Extra="first")
        second = seen.wait(2)[1]
    assert values_of(second)["Extra"] == "first"


def test_a_dropped_column_ends_with_the_schema_that_has_it(create_database: CreateDatabase) -> None:
    database = create_database(*watchable_ddl("T"))
    change_schema(database, "ALTER TABLE T ADD COLUMN Extra STRING(MAX)")
    seen = ChangeCollector()
    watcher = Watcher(**options(database))
    watcher.on_change(seen)
    with run_without_error(watcher):
        write(database, 1, Extra="x")
        seen.wait(1)
        change_schema(database, "ALTER TABLE T DROP COLUMN Extra")
        write(database, 2)
        first, second = seen.wait(2)
    assert values_of(first)["Extra"] == "x"
    assert "Extra" not in values_of(second)


# Backlogs.


def write_backlog(database: Database, table: str = "T") -> dict[tuple[str, object], object]:
    """Many commits with every kind of change of the schema between; the newest version by row."""
    truth: dict[tuple[str, object], object] = {}
    versions = iter(range(10_000))

    def commits(**values: object) -> None:
        for key in (*range(12), 3, 5):
            version = next(versions)
            write(database, key, table=table, Version=version, **values)
            truth[table, key] = version
        new = 100 + next(versions)
        truth[table, new] = next(versions)
        write(database, new, table=table, Version=truth[table, new], **values)

    commits()
    change_schema(database, f"ALTER TABLE {table} ADD COLUMN Extra STRING(MAX)")
    commits(Extra="added")
    change_schema(database, f"DROP INDEX {table}ByTime")
    commits(Extra="without index")
    change_schema(database, index_ddl(table))
    commits(Extra="with index")
    change_schema(database, f"ALTER TABLE {table} DROP COLUMN Extra")
    commits()
    change_schema(database, *reshard_ddl(table, 8))
    commits()
    return truth


@pytest.mark.parametrize("missing", ["stop", "scan"])
@pytest.mark.parametrize("max_rows", [1, 4, 10])
@pytest.mark.parametrize("tables", ["T", "*"])
def test_a_backlog_over_changes_of_the_schema_is_delivered_whole(
    create_database: CreateDatabase, tables: str, max_rows: int, missing: str
) -> None:
    database = create_database(*watchable_ddl("T"))
    given = {"tables": [tables], "max_rows": max_rows, "on_missing_index": missing}
    write(database, 0, Version=-1)
    assert len(deliver(database, **given)) == 1
    truth = write_backlog(database)
    changes = deliver(database, **given)
    assert newest_versions(changes) == truth
    assert len(sizes(changes)) > 1
    for each in changes:
        assert values_of(each).get("Extra") in (None, "added", "without index", "with index")
    assert deliver(database, **given) == []


def test_a_backlog_is_whole_for_a_consumer_that_never_ran(create_database: CreateDatabase) -> None:
    database = create_database(*watchable_ddl("T"))
    truth = write_backlog(database)
    assert newest_versions(deliver(database, max_rows=3)) == truth


def test_the_columns_of_a_window_are_those_at_its_end(create_database: CreateDatabase) -> None:
    database = create_database(*watchable_ddl("T"))
    for key in range(6):
        write(database, key)
    change_schema(database, "ALTER TABLE T ADD COLUMN Extra STRING(MAX)")
    for key in range(6, 12):
        write(database, key, Extra=f"x{key}")
    change_schema(database, "ALTER TABLE T DROP COLUMN Extra")
    for key in range(12, 18):
        write(database, key)
    extras = {c.key["Id"]: values_of(c).get("Extra") for c in deliver(database, max_rows=2)}
    assert set(extras) == set(range(18))
    # A window may go over a change by a row or two; those well within come as they were.
    assert all(extras[key] == f"x{key}" for key in (8, 9))
    assert not any(extras[key] for key in range(12, 18))


def test_a_backlog_over_a_table_that_is_dropped_comes_once(create_database: CreateDatabase) -> None:
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"))
    write(database, 0, table="U")
    deliver(database)
    for key in range(10):
        write(database, key)
        write(database, key, table="U")
    change_schema(database, "DROP INDEX UByTime", "DROP TABLE U")
    for key in range(10, 20):
        write(database, key)
    changes = deliver(database, max_rows=3)
    ids = row_ids(changes)
    assert {key for table, key in ids if table == "T"} == set(range(20))
    assert len(ids) == len(set(ids))
    assert set(SpannerPositions(database).load_all("c")) == {"T"}


def test_windows_stay_bounded_over_a_table_made_watchable_in_the_middle(
    create_database: CreateDatabase,
) -> None:
    database = create_database(*watchable_ddl("T"), table_ddl("U"))
    deliver(database, max_rows=4)
    for key in range(12):
        write(database, key)
    change_schema(database, shards_ddl("U", 2), index_ddl("U"))
    for key in range(12, 24):
        write(database, key)
        write(database, key, table="U")
    changes = deliver(database, max_rows=4)
    assert sorted(row_ids(changes)) == sorted(
        [("T", key) for key in range(24)] + [("U", key) for key in range(12, 24)]
    )
    assert max(sizes(changes)) <= 4


# Shards.


@pytest.mark.parametrize("refresh", [0, 0.2, HOUR])
def test_resharding_under_a_running_watcher_loses_nothing(
    create_database: CreateDatabase, refresh: float
) -> None:
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"))
    seen = ChangeCollector()
    watcher = Watcher(**options(database, refresh=refresh))
    watcher.on_change(seen)
    with run_without_error(watcher):
        write(database, 0)
        seen.wait(1)
        change_schema(database, *reshard_ddl("T", 8))
        for key in range(2, 16):
            write(database, key)
        write(database, 1, table="U")
        seen.wait_until(
            lambda: {("T", k) for k in range(16) if k != 1} <= set(row_ids(seen.changes))
        )


def test_rows_of_new_shards_come_in_an_idle_window(create_database: CreateDatabase) -> None:
    """What the old list of shards shows has not changed: only the new list has the rows."""
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"))
    seen = ChangeCollector()
    watcher = Watcher(**options(database, refresh=0.1))
    watcher.on_change(seen)
    with run_without_error(watcher):
        write(database, 0)
        seen.wait(1)
        change_schema(database, *reshard_ddl("T", 8))
        write(database, 7)
        assert row_ids(seen.wait(2)) == [("T", 0), ("T", 7)]


def test_a_change_of_another_table_does_not_hide_new_shards(
    create_database: CreateDatabase,
) -> None:
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"))
    seen = ChangeCollector()
    watcher = Watcher(**options(database))
    watcher.on_change(seen)
    with run_without_error(watcher):
        write(database, 0)
        seen.wait(1)
        change_schema(database, *reshard_ddl("T", 8))
        with database.batch() as batch:
            batch.insert("T", ["Id"], [(7,)])
            batch.insert("U", ["Id"], [(1,)])
        assert sorted(row_ids(seen.wait(3))) == [("T", 0), ("T", 7), ("U", 1)]


def test_a_backlog_whose_rest_is_in_new_shards_does_not_end_early(
    create_database: CreateDatabase,
) -> None:
    database = create_database(*watchable_ddl("T"))
    deliver(database)
    for key in (0, 1, 8, 9):
        write(database, key)
    change_schema(database, *reshard_ddl("T", 8))
    for key in (2, 3, 4, 5, 6, 7):
        write(database, key)
    ids = row_ids(deliver(database, max_rows=2))
    assert sorted(ids) == [("T", key) for key in range(10)]


# Tables that come and go.


def test_a_transaction_over_a_new_table_comes_in_one_window(
    create_database: CreateDatabase,
) -> None:
    database = create_database(*watchable_ddl("T"), table_ddl("U"))
    ends: dict[str, list[tuple[int, int]]] = defaultdict(list)
    arrived = threading.Event()
    watcher = Watcher(**options(database, tables=["*"]))

    @watcher.on_batch
    def note_ends(rows: Changed) -> None:
        for table, count in rows.counts.items():
            ends[table].append((rows.window.end, count))
        arrived.set()

    with run_without_error(watcher):
        write(database, 1)
        assert arrived.wait(SECONDS)
        change_schema(database, shards_ddl("U", 2), index_ddl("U"))
        arrived.clear()
        with database.batch() as batch:
            batch.insert("T", ["Id"], [(2,)])
            batch.insert("U", ["Id"], [(3,), (4,)])
        assert arrived.wait(SECONDS)
    assert {end for end, _ in ends["U"]} == {end for end, _ in ends["T"][1:]}
    assert sum(count for _, count in ends["U"]) == 2


class Crash(BaseException):
    """The process dies: nobody catches it."""


CAPTURES: dict[str, dict[str, Any]] = {
    "poll": {},
    "change-stream": {"capture": "change-stream", "start": "latest"},
    "push": {"capture": "change-stream", "start": "latest", "stream": {"push": True}},
}


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_crash_right_after_a_table_is_new_loses_nothing_of_it(
    create_database: CreateDatabase, capture: str
) -> None:
    database = create_database(*watchable_ddl("T"), "CREATE CHANGE STREAM S FOR ALL")
    given = CAPTURES[capture] | {"tables": ["*"]}
    deliver(database, **given)
    watcher = Watcher(**options(database, **given))
    crashed = threading.Event()
    died: list[BaseException] = []

    @watcher.on_change
    def crash(change: Change) -> None:
        raise Crash

    def work() -> None:
        try:
            watcher.run()
        except BaseException as error:  # noqa: BLE001 (it is looked at below)
            died.append(error)
        crashed.set()

    thread = threading.Thread(target=work)
    thread.start()
    change_schema(database, *watchable_ddl("U"))
    with database.batch() as batch:
        batch.insert("T", ["Id"], [(1,)])
        batch.insert("U", ["Id"], [(2,)])
    write(database, 3, table="U")
    assert crashed.wait(SECONDS)
    thread.join(SECONDS)
    assert [type(error) for error in died] == [Crash]
    ids = deliver_until(database, given, {("T", 1), ("U", 2), ("U", 3)})
    assert {("T", 1), ("U", 2), ("U", 3)} == set(ids)


def deliver_until(
    database: Database, given: Mapping[str, object], expected: set[tuple[str, object]]
) -> list[tuple[str, object]]:
    """What a new watcher delivers until it has delivered those rows."""
    seen = ChangeCollector()
    watcher = Watcher(**options(database, **given))
    watcher.on_change(seen)
    with run_without_error(watcher):
        seen.wait_until(lambda: expected <= set(row_ids(seen.changes)))
    return row_ids(seen.changes)


@pytest.mark.parametrize("capture", CAPTURES)
def test_tables_that_come_while_it_runs_are_watched_from_their_first_row(
    create_database: CreateDatabase, capture: str
) -> None:
    database = create_database(*watchable_ddl("T"), "CREATE CHANGE STREAM S FOR ALL")
    given = CAPTURES[capture] | {"tables": ["*"]}
    deliver(database, **given)
    seen = ChangeCollector()
    watcher = Watcher(**options(database, **given))
    watcher.on_change(seen)
    with run_without_error(watcher):
        write(database, 1)
        seen.wait(1)
        change_schema(database, *watchable_ddl("U"))
        write(database, 2, table="U")
        write(database, 3)
        write(database, 4, table="U")
        seen.wait(4)
    assert sorted(row_ids(seen.changes)) == [("T", 1), ("T", 3), ("U", 2), ("U", 4)]
    if capture != "push":  # what lies above the watermark comes again after a stop
        assert deliver(database, **given) == []


def test_a_table_that_comes_while_it_is_written_to_is_pushed_once(
    create_database: CreateDatabase,
) -> None:
    database = create_database(*watchable_ddl("T"), "CREATE CHANGE STREAM S FOR ALL")
    given = CAPTURES["push"] | {"tables": ["*"], "refresh": 0}
    deliver(database, **given)
    seen = ChangeCollector()
    watcher = Watcher(**options(database, **given))
    watcher.on_change(seen)
    positions = SpannerPositions(database)
    written = [("T", 1)]
    with run_without_error(watcher):
        write(database, 1)
        seen.wait(1)
        change_schema(database, *watchable_ddl("U"))
        more = 10
        while more:  # until some rows after it was registered
            written.append(("U", len(written) + 1))
            write(database, len(written), table="U")
            more -= "U" in positions.load_all("c")
        seen.wait_until(lambda: set(written) <= set(row_ids(seen.changes)))
    assert sorted(row_ids(seen.changes)) == sorted(written)


DROP_U = ("DROP INDEX UByTime", "DROP TABLE U")


@pytest.mark.parametrize("refresh", [0, HOUR])
def test_a_table_that_is_dropped_and_made_again_under_a_running_watcher(
    create_database: CreateDatabase, refresh: float
) -> None:
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"))
    seen = ChangeCollector()
    watcher = Watcher(**options(database, refresh=refresh))
    watcher.on_change(seen)
    positions = SpannerPositions(database)
    with run_without_error(watcher):
        write(database, 1, table="U")
        seen.wait(1)
        change_schema(database, *DROP_U)
        write(database, 2)
        seen.wait(2)
        wait_for(lambda: set(positions.load_all("c")) == {"T"})
        done = Clearing(database, discover_table(database, "T"), positions).clear()
        assert done.rows == 1
        change_schema(database, *watchable_ddl("U", 3))
        write(database, 5, 6, 7, table="U")
        write(database, 3)
        changes = seen.wait(6)
    assert sorted(row_ids(changes)) == [
        ("T", 2), ("T", 3), ("U", 1), ("U", 5), ("U", 6), ("U", 7)
    ]  # fmt: skip


def test_a_table_that_is_dropped_and_made_again_while_it_is_down(
    create_database: CreateDatabase,
) -> None:
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"))
    write(database, 1, table="U")
    assert row_ids(deliver(database)) == [("U", 1)]
    change_schema(database, *DROP_U)
    change_schema(database, *watchable_ddl("U", 3))
    write(database, 5, 6, 7, table="U")
    assert sorted(row_ids(deliver(database))) == [("U", 5), ("U", 6), ("U", 7)]
    change_schema(database, *DROP_U)
    write(database, 2)
    assert row_ids(deliver(database)) == [("T", 2)]
    positions = SpannerPositions(database)
    assert set(positions.load_all("c")) == {"T"}
    assert Clearing(database, discover_table(database, "T"), positions).clear().rows == 1


def wait_for(reached: Callable[[], bool]) -> None:
    for _ in range(SECONDS * 50):
        if reached():
            return
        threading.Event().wait(0.02)
    pytest.fail("it never came to that")


# Idle polls.


def test_an_idle_poll_is_one_query(
    create_database: CreateDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"))
    write(database, 1)
    queries: list[str] = []
    polls = threading.Semaphore(0)

    def count_queries(query: Callable[..., object]) -> Callable[..., object]:
        def ask(self: QueryStream, statement: Statement, *args: object, **more: object) -> object:
            queries.append(statement.sql)
            polls.release()
            return query(self, statement, *args, **more)

        return ask

    monkeypatch.setattr(QueryStream, "query", count_queries(QueryStream.query))
    monkeypatch.setattr(QueryStream, "query_numbers", count_queries(QueryStream.query_numbers))
    seen = ChangeCollector()
    watcher = Watcher(**options(database))
    watcher.on_change(seen)
    with run_without_error(watcher):
        seen.wait(1)
        for _ in range(20):  # those of the first window and of the first idle poll
            assert polls.acquire(timeout=SECONDS)
        before = SpannerPositions(database).load_all("c")
        begun = len(queries)
        for _ in range(10):
            assert polls.acquire(timeout=SECONDS)
        idle = queries[begun:]
        assert SpannerPositions(database).load_all("c") == before
    assert len(set(idle)) == 1


def test_a_backlog_from_before_the_consumer_was_registered_is_one_source(
    create_database: CreateDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The product's own tables make another schema: no reason to register and look anew."""
    database = create_database(*watchable_ddl("T"))
    for key in range(WINDOWS):
        write(database, key)
    reads = 0
    load_all = SpannerPositions.load_all

    def count_reads(self: SpannerPositions, consumer: str) -> dict[str, int]:
        nonlocal reads
        reads += 1
        return load_all(self, consumer)

    monkeypatch.setattr(SpannerPositions, "load_all", count_reads)
    assert len(deliver(database, max_rows=1)) == WINDOWS
    assert reads < 2 * WINDOWS


def test_positions_of_an_idle_consumer_advance(create_database: CreateDatabase) -> None:
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"))
    deliver(database)
    positions = SpannerPositions(database)
    first = positions.load_all("c")
    deliver(database)
    second = positions.load_all("c")
    assert all(second[table] > first[table] for table in ("T", "U"))
    seen = ChangeCollector()
    watcher = Watcher(**options(database, refresh=0.1))
    watcher.on_change(seen)
    with run_without_error(watcher):
        for _ in range(2):
            wait_for_advance(positions, positions.load_all("c"))


def wait_for_advance(positions: SpannerPositions, before: Mapping[str, int]) -> None:
    wait_for(lambda: all(at > before[table] for table, at in positions.load_all("c").items()))


def test_deletes_after_a_cut_leave_what_was_there_at_it(create_database: CreateDatabase) -> None:
    """Also where the schema has changed since, so that the window is looked at anew."""
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"))
    deliver(database)
    write(database, 1, table="U")
    for key in range(6):
        write(database, key)
    change_schema(database, *reshard_ddl("U", 8))
    with database.batch() as batch:
        batch.delete("U", KeySet(keys=[(1,)]))
    assert ("U", 1) in row_ids(deliver(database, max_rows=3))
