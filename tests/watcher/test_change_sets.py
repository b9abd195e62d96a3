"""Tables without a commit timestamp, watched through the change sets that wrote their rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fixtures.singers import address_of, make_watchable
from google.cloud.spanner_v1 import KeySet, param_types
from google.cloud.spanner_v1.database import Database

from watcher import Change, Watcher
from watcher.change_sets import ChangeSets, ChangeSetTransaction
from watcher.consumers.clearing import Clearing
from watcher.consumers.positions import TABLE, Position, SpannerPositions
from watcher.consumers.positions.unregister import unregister
from watcher.model.errors import ConfigurationError, NotWatchableError, WatcherError
from watcher.tables.discovery import discover_table
from watcher.tables.values import TableSpec

SETS = """CREATE TABLE CHANGE_SETS (
  ChangeSetId STRING(36) NOT NULL, CommitTimestamp TIMESTAMP OPTIONS (allow_commit_timestamp=true)
) PRIMARY KEY (ChangeSetId)"""
SONGS = "CREATE TABLE Songs (Id INT64, Title STRING(MAX), ChangeSetId STRING(36)) PRIMARY KEY (Id)"
BY_SET = "CREATE INDEX SongsByChangeSet ON Songs(ChangeSetId)"
SPEC = {"Songs": {"change_sets": "CHANGE_SETS"}}

prepared = pytest.mark.ddl(SETS, SONGS, BY_SET)


def poll(database: Database, consumer: str = "sets") -> dict[object, object]:
    seen: list[Change] = []
    watcher = Watcher(
        database=str(address_of(database)),
        tables=["Songs"],
        consumer=consumer,
        start="earliest",
        table=SPEC,
    )
    watcher.on_change(seen.append)
    watcher.run_once()
    assert len({change.id for change in seen}) == len(seen)
    return {change.key["Id"]: (change.new_values or {})["Title"] for change in seen}


def set_title(transaction: ChangeSetTransaction, key: int, title: str) -> None:
    count = transaction.execute_update(
        "UPDATE Songs SET Title = @title, ChangeSetId = @change_set_id WHERE Id = @id",
        {"title": title, "id": key},
        {"title": param_types.STRING, "id": param_types.INT64},
    )
    assert count == 1


@prepared
@pytest.mark.parametrize("sharded", [False, True])
def test_every_kind_of_transaction_is_seen(database: Database, sharded: bool) -> None:
    if sharded:
        stamp = "CommitTimestamp"
        make_watchable(database, "CHANGE_SETS", timestamp_column=stamp, take_over=[stamp])
    sets = ChangeSets(database, ["Songs"])
    with sets.batch() as batch:
        batch.insert("Songs", ("Id", "Title"), [(1, "one"), (2, "two"), (3, "three")])
    assert poll(database) == {1: "one", 2: "two", 3: "three"}
    with sets.batch() as batch:
        batch.update("Songs", ("Id", "Title"), [(1, "eins")])
    sets.run_in_transaction(lambda transaction: set_title(transaction, 2, "zwei"))
    assert poll(database) == {1: "eins", 2: "zwei"}
    with sets.batch() as batch:
        batch.insert_or_update("Songs", ("Id", "Title"), [(1, "uno")])
        batch.replace("Songs", ("Id", "Title"), [(4, "quattro")])
    changed = sets.execute_partitioned_dml(
        "UPDATE Songs SET Title = 'all', ChangeSetId = @change_set_id WHERE Id > 2"
    )
    assert changed == 2
    assert poll(database) == {1: "uno", 3: "all", 4: "all"}
    assert poll(database) == {}


@prepared
def test_a_transaction_that_is_rolled_back_is_not_seen(database: Database) -> None:
    sets = ChangeSets(database, ["Songs"])

    def fail(transaction: ChangeSetTransaction) -> None:
        transaction.insert("Songs", ("Id", "Title"), [(1, "never")])
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        sets.run_in_transaction(fail)
    assert poll(database) == {}


@prepared
def test_delivered_change_sets_are_deleted_behind_the_slowest_consumer_of_any_table(
    database: Database,
) -> None:
    sets = ChangeSets(database, ["Songs"])
    with sets.batch() as batch:
        batch.insert("Songs", ("Id", "Title"), [(1, "one")])
    assert poll(database, "fast") == {1: "one"}
    positions = SpannerPositions(database)
    positions.save(Position("slow", "Elsewhere", 1), None)
    watched = discover_table(database, "Songs", TableSpec(change_sets="CHANGE_SETS"))
    assert Clearing(database, watched, positions).clear().rows == 0
    unregister(database, TABLE, "slow")
    assert Clearing(database, watched, positions).clear().rows == 1
    with database.snapshot() as snapshot:
        assert not list(snapshot.read("CHANGE_SETS", ("ChangeSetId",), KeySet(all_=True)))


async def set_title_later(transaction: ChangeSetTransaction) -> None:
    set_title(transaction, 1, "later")


@prepared
def test_a_transaction_whose_work_nobody_runs_is_not_committed(database: Database) -> None:
    sets = ChangeSets(database, ["Songs"])
    with pytest.raises(ConfigurationError, match="an async function"):
        _ = sets.run_in_transaction(set_title_later)
    with pytest.raises(WatcherError, match="its work is not done"):
        _ = sets.run_in_transaction(lambda transaction: set_title_later(transaction))  # noqa: PLW0108
    with database.snapshot() as snapshot:
        assert list(snapshot.read("CHANGE_SETS", ["ChangeSetId"], KeySet(all_=True))) == []


class Killed(BaseException):
    """The process dies here."""


class Dying:
    """A database whose client dies at a step of partitioned DML."""

    def __init__(self, database: Database, step: str) -> None:
        self._database = database
        self._step = step
        self._batches = 0

    def die_at(self, step: str) -> None:
        if step == self._step:
            raise Killed(step)

    def snapshot(self) -> Any:
        return self._database.snapshot()

    @contextmanager
    def batch(self) -> Iterator[object]:
        self._batches += 1
        self.die_at(f"before batch {self._batches}")
        with self._database.batch() as batch:
            yield batch
        self.die_at(f"after batch {self._batches}")

    def execute_partitioned_dml(self, dml: str, **more: Any) -> int:
        if self._step == "in the statement":
            self._database.execute_partitioned_dml(f"{dml} AND Id = 1", **more)
            raise Killed(self._step)
        count = self._database.execute_partitioned_dml(dml, **more)
        self.die_at("after the statement")
        return int(count)


ALL = "UPDATE Songs SET Title = 'all', ChangeSetId = @change_set_id WHERE Title = 'old'"
STEPS = {
    "before batch 1": {},
    "after batch 1": {},
    "in the statement": {1: "all"},
    "after the statement": {1: "all", 2: "all"},
    "before batch 2": {1: "all", 2: "all"},
    "after batch 2": {1: "all", 2: "all"},
}


@prepared
@pytest.mark.parametrize("step", STEPS)
def test_rows_of_partitioned_dml_are_delivered_wherever_its_process_dies(
    database: Database, step: str
) -> None:
    with ChangeSets(database, ["Songs"]).batch() as batch:
        batch.insert("Songs", ("Id", "Title"), [(1, "old"), (2, "old")])
    assert poll(database) == {1: "old", 2: "old"}
    dying: Any = Dying(database, step)
    with pytest.raises(Killed):
        ChangeSets(dying, ["Songs"]).execute_partitioned_dml(ALL)
    published = step == "after batch 2"
    assert poll(database) == (STEPS[step] if published else {})
    clear(database)
    ChangeSets(database, ["Songs"]).publish_pending()
    assert poll(database) == ({} if published else STEPS[step])
    assert ChangeSets(database, ["Songs"]).publish_pending() == 0


@prepared
def test_a_statement_that_is_under_way_is_published_again_at_its_end(database: Database) -> None:
    sets = ChangeSets(database, ["Songs"])
    with sets.batch() as batch:
        batch.insert("Songs", ("Id", "Title"), [(1, "old"), (2, "old")])
    assert poll(database) == {1: "old", 2: "old"}

    class Slow(Dying):
        def execute_partitioned_dml(self, dml: str, **more: Any) -> int:
            first = database.execute_partitioned_dml(f"{dml} AND Id = 1", **more)
            assert sets.publish_pending() == 1
            assert poll(database) == {1: "all"}
            clear(database)
            return int(first + database.execute_partitioned_dml(dml, **more))

    slow: Any = Slow(database, "never")
    assert ChangeSets(slow, ["Songs"]).execute_partitioned_dml(ALL) == 2
    assert poll(database) == {1: "all", 2: "all"}


def clear(database: Database) -> None:
    watched = discover_table(database, "Songs", TableSpec(change_sets="CHANGE_SETS"))
    Clearing(database, watched, SpannerPositions(database)).clear()


@pytest.mark.ddl(SETS, SONGS)
def test_an_index_on_the_change_set_id_is_needed(database: Database) -> None:
    with pytest.raises(NotWatchableError, match="CREATE INDEX SongsByChangeSet"):
        discover_table(database, "Songs", TableSpec(change_sets="CHANGE_SETS"))
