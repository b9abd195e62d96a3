"""More tables than one query asks about, whose rows are asked for ahead of their turn."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator

from fixtures.singers import address_of
from google.cloud.spanner_v1.database import Database
from hypothesis import given
from hypothesis import strategies as st

from watcher import Change, Watcher
from watcher.captures.poll_tables import TABLES_PER_QUERY, start_ahead
from watcher.spanner.timestamps import to_micros

TABLES = [f"T{number}" for number in range(TABLES_PER_QUERY + 9)]
MAX_ROWS = 50


def watchable_table(name: str) -> tuple[str, str]:
    shards = 3 + int(name[1:]) % 3  # a query lists each set of shards once
    return (
        f"CREATE TABLE {name} (Id INT64 NOT NULL, Version INT64, "
        "LastModified TIMESTAMP DEFAULT (PENDING_COMMIT_TIMESTAMP())"
        " ON UPDATE (PENDING_COMMIT_TIMESTAMP()) OPTIONS (allow_commit_timestamp = true),"
        f" ShardId INT64 AS (MOD(Id, {shards})) STORED) PRIMARY KEY (Id)",
        f"CREATE NULL_FILTERED INDEX {name}ByLastModified ON {name} (ShardId, LastModified)",
    )


def test_every_row_comes_once_and_no_window_is_too_large(
    create_database: Callable[..., Database], faults: Callable[..., None]
) -> None:
    database = create_database(*(text for name in TABLES for text in watchable_table(name)))
    watcher = Watcher(
        database=str(address_of(database)),
        tables=("*",),
        start="earliest",
        max_rows=MAX_ROWS,
        shard_groups=2,
    )
    changes: list[Change] = []
    watcher.on_change(changes.append)
    choice = random.Random(1)
    truth: dict[tuple[str, int], tuple[int, int]] = {}
    faults(unavailable_after_rows=3, unavailable_streams_max=30)
    for version in range(4):
        for _ in range(20):
            name, first = choice.choice(TABLES), choice.randrange(20)
            rows = [(key, version) for key in range(first, first + choice.randrange(1, 9))]
            with database.batch() as batch:
                batch.insert_or_update(name, ("Id", "Version"), rows)
            truth |= {(name, key): (version, to_micros(batch.committed)) for key, _ in rows}
        before = len(changes)
        assert watcher.run_once() == len(changes) - before
    seen = [((each.table, each.key["Id"]), version_of(each)) for each in changes]
    assert dict(seen) == truth
    assert max(Counter(seen).values()) == 1
    windows = Counter(each.window for each in changes)
    assert MAX_ROWS // 2 < max(windows.values()) <= MAX_ROWS


def version_of(change: Change) -> tuple[int, int]:
    assert change.new_values is not None
    version = change.new_values["Version"]
    assert isinstance(version, int)
    return version, change.commit_timestamp


@given(size=st.integers(0, 30), count=st.integers(0, 10))
def test_so_many_more_are_under_way_and_all_come_in_order(size: int, count: int) -> None:
    begun: list[int] = []

    def generate_numbers() -> Iterator[int]:
        for number in range(size):
            begun.append(number)
            yield number

    for turn, number in enumerate(start_ahead(generate_numbers(), count)):
        assert number == turn
        assert begun == list(range(min(size, turn + 1 + count)))
    assert len(begun) == size
