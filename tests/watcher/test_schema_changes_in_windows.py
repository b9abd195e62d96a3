"""Schema changes inside windows, polled and streamed, with whole rows, and of replicas, against a
record of what was written that is kept apart."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.changing_schemas import watchable_ddl
from fixtures.replicas import last_cut, read_rows, replicate
from fixtures.schema_histories import Commit, SchemaHistory, State
from fixtures.singers import address_of
from fixtures.watcher_threads import ChangeCollector
from google.cloud.spanner_v1.database import Database

from watcher import Change, Watcher
from watcher.model.change import Operation, ValueCapture
from watcher.replica.copies import STAMP_COLUMN

SEEDS = range(int(os.environ.get("SCHEMA_SEEDS", "1")))
RUNS, STEPS = 3, 12
BOOKKEEPING = frozenset({"LastModified", "ShardId"})
CreateDatabase = Callable[..., Database]
by_seed = pytest.mark.parametrize("seed", SEEDS)


def stream_ddl(captured: ValueCapture) -> str:
    return f"CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = '{captured}')"


def plain_ddl(name: str) -> tuple[str, ...]:
    return (f"CREATE TABLE {name} (Id INT64, V STRING(MAX)) PRIMARY KEY (Id)",)


def begin(database: Database, seed: int, recreates: bool = True) -> SchemaHistory:
    """Tables of a change stream."""
    history = SchemaHistory(
        database, random.Random(seed), plain_ddl, {"V": "STRING(MAX)"}, recreates=recreates
    )
    history.begin()
    return history


def run_windows(history: SchemaHistory, **options: object) -> Iterator[list[Change]]:
    """What a watcher delivers after each part of a history; its windows are cut anywhere."""
    seen = ChangeCollector()
    common: dict[str, Any] = {
        "database": str(address_of(history.database)),
        "tables": ["*"],
        "consumer": "c",
        "max_rows": 5,
        "refresh": 0,
    }
    watcher = Watcher(**common | options)
    watcher.on_change(seen)
    watcher.run_once()
    for _ in range(RUNS):
        history.run(STEPS)
        before = len(seen.changes)
        watcher.run_once()
        yield seen.changes[before:]


def check_once(history: SchemaHistory, changes: list[Change]) -> Iterator[tuple[Commit, Change]]:
    """Each commit has been delivered once; with its change."""
    by_commit = {commit.at: commit for commit in history.commits}
    assert sorted(change.commit_timestamp for change in changes) == sorted(by_commit)
    for change in changes:
        commit = by_commit[change.commit_timestamp]
        assert (change.table, change.key["Id"]) == commit.place
        assert (change.operation is Operation.DELETE) is (commit.row is None)
        yield commit, change


def list_needed(history: SchemaHistory, commit: Commit, change: Change) -> frozenset[str]:
    """The columns that a whole row has. One that was there only inside the window is read where the
    record names it."""
    table = commit.place[0]
    window = change.window
    there = frozenset(history.find_state(commit.at).columns[table])
    around = (history.find_state(at).columns.get(table, {}) for at in (window.start, window.end))
    return there & (commit.written | frozenset().union(*around))


@by_seed
@pytest.mark.parametrize("captured", list(ValueCapture))
def test_rows_are_whole_in_the_schema_of_their_commit(
    create_database: CreateDatabase, captured: ValueCapture, seed: int
) -> None:
    history = begin(create_database(stream_ddl(captured)), seed)
    options = {"capture": "change-stream", "stream": {"whole_rows": True}}
    changes = [each for some in run_windows(history, **options) for each in some]
    for commit, change in check_once(history, changes):
        if commit.row is None:
            continue
        values = change.new_values
        assert values is not None
        assert values == {name: commit.row[name] for name in values}, (commit, change)
        needed = (
            frozenset(commit.row) if captured.whole_row else list_needed(history, commit, change)
        )
        assert needed <= values.keys(), (commit, change)
        assert change.captured.whole_row


@by_seed
@pytest.mark.parametrize("captured", list(ValueCapture))
def test_a_stream_delivers_what_it_captured(
    create_database: CreateDatabase, captured: ValueCapture, seed: int
) -> None:
    history = begin(create_database(stream_ddl(captured)), seed)
    changes = [each for some in run_windows(history, capture="change-stream") for each in some]
    for commit, change in check_once(history, changes):
        if commit.row is None:
            continue
        values = change.new_values
        assert values is not None
        assert values == {name: commit.row[name] for name in values}, (commit, change)
        needed = commit.row.keys() if captured.whole_row else commit.written
        assert needed <= values.keys(), (commit, change)


@by_seed
def test_polled_rows_are_those_at_the_end_of_their_window(
    create_database: CreateDatabase, seed: int
) -> None:
    history = SchemaHistory(
        create_database(), random.Random(seed), watchable_ddl, {"Version": "INT64"}, False, False
    )
    history.begin()
    delivered: dict[tuple[str, object], int] = {}
    for changes in run_windows(history, start="earliest"):
        for change in changes:
            place = change.table, int(str(change.key["Id"]))
            assert change.new_values is not None
            values = {n: v for n, v in change.new_values.items() if n not in BOOKKEEPING}
            assert values == history.find_state(change.window.end).rows[place]
            delivered[place] = change.commit_timestamp
        newest = {commit.place: commit.at for commit in history.commits}
        assert {place: delivered.get(place) for place in history.rows} == {
            place: newest[place] for place in history.rows
        }


def read_copies(folder: Path, state: State) -> dict[tuple[str, int], dict[str, object]]:
    """The rows of all copies, without when they were committed."""
    return {
        (table, row["Id"]): {n: v for n, v in row.items() if n not in ("Id", STAMP_COLUMN)}
        for table in state.columns
        for row in read_rows(folder, table)
    }


@by_seed
@pytest.mark.parametrize("captured", [ValueCapture.NEW_VALUES, ValueCapture.NEW_ROW_AND_OLD_VALUES])
def test_a_replica_by_change_stream_has_the_tables_of_its_cut(
    create_database: CreateDatabase, tmp_path: Path, captured: ValueCapture, seed: int
) -> None:
    history = begin(create_database(stream_ddl(captured)), seed, recreates=False)
    history.run(STEPS)
    for _ in range(RUNS):
        replicate(history.database, tmp_path, capture="change-stream", tables=["*"], max_rows=5)
        cut = last_cut(tmp_path)
        state = history.find_state(cut.end)
        assert set(cut.tables) == set(state.columns)
        assert read_copies(tmp_path, state) == state.rows
        history.run(STEPS)
