"""A table that is new to a consumer begins where it was last known absent: rule 6 of
docs/protocol.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fixtures.consumers import ALBUMS, options, write
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, make_watchable
from fixtures.watcher_threads import ChangeCollector, run_without_error
from google.cloud.spanner_v1.database import Database
from hypothesis import given
from hypothesis import strategies as st

from ddl.migration.apply import read_schema
from ddl.migration.plan import make_plan
from spanner_schema.model.options import WatchOptions
from watcher import Watcher
from watcher.consumers.starts import Standing, choose_start
from watcher.model.window import BEGINNING
from watcher.tables.selection import Selection

KEPT: dict[str, dict[str, Any]] = {
    "in Spanner": {},
    "in Spanner, with an explicit start": {"start": "2020-01-01T00:00:00Z"},
    "by all parts of a shared consumer": {"parts": 2, "lease": "1s"},
    "in a file": {"positions": {"keep": "file"}},
    "in memory": {"positions": {"keep": "memory"}},
}


def add_albums(database: Database) -> Sequence[str]:
    """Makes all that Albums needs but the index, and writes a row; the statements that are left."""
    plan = make_plan(read_schema(database), ["Albums"], WatchOptions.model_validate({"shards": 4}))
    *columns, index = [statement.sql for statement in plan.statements]
    database.update_ddl(columns).result(60)
    with database.batch() as batch:
        batch.insert("Albums", ("AlbumId", "Title"), [(1, "before its index")])
    return [index]


@pytest.mark.parametrize("kept", KEPT)
def test_rows_that_are_older_than_every_position_come_once_their_table_is_watchable(
    create_database: CreateDatabase, tmp_path: Path, kept: str
) -> None:
    """Between two runs: the first one has delivered newer rows of another table."""
    database, seen = create_database(SINGERS, ALBUMS), ChangeCollector()
    make_watchable(database)
    more: dict[str, Any] = {"consumer": "reader", "tables": ["*"]} | KEPT[kept]
    if "positions" in more:
        path = {"path": str(tmp_path / "kept")} if kept == "in a file" else {}
        more["positions"] = more["positions"] | path
    watcher = Watcher(**options(database, **more))
    watcher.on_change(seen)
    index = add_albums(database)
    write(database, 1, 2)
    with run_without_error(watcher):
        seen.wait(2)
    database.update_ddl(index).result(60)
    with run_without_error(watcher):
        seen.wait(3)
    assert [c.key for c in seen.changes if c.table == "Albums"] == [{"AlbumId": 1}]


def test_a_table_that_is_selected_later_begins_where_the_consumer_is(
    create_database: CreateDatabase,
) -> None:
    database, seen = create_database(SINGERS, ALBUMS), ChangeCollector()
    make_watchable(database, "Singers", "Albums", shards=4)
    with database.batch() as batch:
        batch.insert("Albums", ("AlbumId", "Title"), [(1, "before")])
    for tables in (["Singers"], ["Singers", "Albums"]):
        more = {"consumer": "reader", "tables": tables, "start": "latest"}
        watcher = Watcher(**options(database, **more))
        watcher.on_change(seen)
        watcher.run_once()
        with database.batch() as batch:
            batch.insert_or_update("Albums", ("AlbumId", "Title"), [(2, "after")])
    watcher.run_once()
    assert {c.key["AlbumId"] for c in seen.changes if c.table == "Albums"} == {2}


MICROS = st.integers(1, 100)


@given(
    st.dictionaries(st.sampled_from("ABC"), MICROS),
    st.none() | st.sets(st.sampled_from("ABCN")),
    st.none() | MICROS,
)
def test_the_start_of_a_table_is_where_it_was_absent(
    positions: dict[str, int], selected: set[str] | None, start: int | None
) -> None:
    """``N`` is new. With a position in it, the consumer would never be below its start again."""
    selection = None if selected is None else Selection(tuple(sorted(selected)))
    begins = choose_start(Standing(positions, selection), "N", start)
    if selected is not None and "N" in selected:
        assert begins == BEGINNING
    elif positions:
        assert begins is not None
        assert all(begins <= at for at in positions.values())
    else:
        assert begins == start
