"""The reader for Spark 4.0 and 4.1, which say where a batch starts only when it is read: its calls
in the order of a trace of those versions, without a Spark. It runs on every version."""

from __future__ import annotations

import json
import pickle
from itertools import chain
from typing import Any

import pytest
from fixtures.consumers import write
from fixtures.server import LEFT_RUNNING
from fixtures.singers import address_of
from google.cloud.spanner_v1.database import Database

from watcher.model.errors import ConfigurationError
from watcher.runners.spark.resolution import resolve_scan
from watcher.runners.spark.spark_versions import ReadAllAvailable
from watcher.runners.spark.startless import StartlessReader
from watcher.runners.spark.streaming import ChangesReader
from watcher.settings.spark_parsing import parse_source_options

Rows = list[tuple[int, str]]
LIMITS = {"limitFirstBatch": "true"}


class Query:
    """A query and its checkpoint: the ends of batches as JSON, and how many are committed."""

    def __init__(self, database: Database, **options: str) -> None:
        address = address_of(database)
        self.options = {
            "project": address.project,
            "instance": address.instance,
            "database": address.database,
            "table": "Singers",
            "startingTimestamp": "earliest",
            "idleSeconds": "600",
            **options,
        }
        self.ends: list[str] = []
        self.committed = 0
        self.begin()

    def begin(self, **options: str) -> None:
        """A process of the query: Spark says from where it continues."""
        self.options |= options
        scan = resolve_scan(parse_source_options(self.options))
        self.reader, self.newer = StartlessReader(scan), ChangesReader(scan)
        LEFT_RUNNING.extend((self.reader.stop, self.newer.stop))
        if self.ends:
            seen = json.loads(self.ends[-1])
            assert self.reader.partitions(seen, seen) == []

    @property
    def start(self) -> dict[str, Any]:
        """Where the next batch starts."""
        before = self.ends[self.committed - 1] if self.committed else None
        return self.reader.initialOffset() if before is None else dict(json.loads(before))

    def plan(self) -> bool:
        """Plans a batch as Spark 4.0 does; False where nothing is new."""
        end = json.dumps(self.reader.latestOffset())
        return self._add(end)

    def plan_newer(self) -> bool:
        """Plans a batch as Spark 4.2 does."""
        return self._add(json.dumps(self.newer.latestOffset(self.start, ReadAllAvailable())))

    def _add(self, end: str) -> bool:
        if self.ends and end == self.ends[-1]:
            return False
        self.ends.append(end)
        return True

    def read(self) -> Rows:
        """The rows of the batch that is planned, read on other machines."""
        parts = self.reader.partitions(self.start, json.loads(self.ends[self.committed]))
        parts, reader = pickle.loads(pickle.dumps((list(parts), self.reader)))
        rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
        return sorted((row["SingerId"], row["LastName"]) for row in rows)

    def commit(self) -> None:
        self.reader.commit(json.loads(self.ends[self.committed]))
        self.committed += 1

    def run_batch(self) -> Rows:
        """The rows of one more batch; none where nothing is new."""
        if not self.plan():
            return []
        rows = self.read()
        self.commit()
        return rows


def write_one_by_one(database: Database, keys: range, name: str) -> Rows:
    for key in keys:
        write(database, key, name=name)
    return [(key, name) for key in keys]


def test_limits_hold_after_the_first_batch(singers: Database) -> None:
    query = Query(singers, maxRowsPerBatch="4")
    first = write_one_by_one(singers, range(10), "first")
    assert query.run_batch() == first
    second = write_one_by_one(singers, range(10, 20), "second")
    batches = [query.run_batch() for _ in range(4)]
    assert [len(batch) for batch in batches] == [4, 4, 2, 0]
    assert sorted(chain.from_iterable(batches)) == second


def test_limits_hold_for_the_first_batch_on_request(singers: Database) -> None:
    first = write_one_by_one(singers, range(10), "first")
    query = Query(singers, maxRowsPerBatch="4", **LIMITS)
    batches = [query.run_batch() for _ in range(3)]
    assert [len(batch) for batch in batches] == [4, 4, 2]
    query.begin()
    second = write_one_by_one(singers, range(10, 20), "second")
    batches += [query.run_batch() for _ in range(4)]
    assert [len(batch) for batch in batches[3:]] == [4, 4, 2, 0]
    assert sorted(chain.from_iterable(batches)) == first + second


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_batch_that_was_not_committed_has_the_same_rows_again(
    singers: Database, start: str
) -> None:
    first = write_one_by_one(singers, range(5), "first")
    query = Query(singers, startingTimestamp=start)
    assert query.run_batch() == (first if start == "earliest" else [])
    write_one_by_one(singers, range(3), "second")
    assert query.plan()
    rows = query.read()
    third = write_one_by_one(singers, range(2, 6), "third")
    query.begin()
    assert query.read() == rows == [(key, "second") for key in range(3)]
    query.commit()
    assert query.run_batch() == third


def test_the_first_batch_of_all_again(singers: Database) -> None:
    first = write_one_by_one(singers, range(5), "first")
    query = Query(singers, consumer="job")
    assert query.plan()
    write_one_by_one(singers, range(5), "second")
    query.reader.stop()
    query.begin()
    assert query.read() == first
    query.commit()
    assert query.run_batch() == [(key, "second") for key in range(5)]


def test_nothing_new_is_no_batch(singers: Database) -> None:
    write_one_by_one(singers, range(3), "first")
    query = Query(singers)
    query.run_batch()
    query.begin()
    assert not query.plan()
    write(singers, 3, name="second")
    assert query.run_batch() == [(3, "second")]


def test_what_is_left_of_a_backfill_comes_with_what_has_changed_since(singers: Database) -> None:
    first = write_one_by_one(singers, range(10), "first")
    query = Query(singers, backfillRowsPerBatch="4", consumer="job", **LIMITS)
    rows = query.run_batch()
    assert rows == first[:4]
    second = write_one_by_one(singers, range(2, 8), "second")
    query.reader.stop()
    query.begin(limitFirstBatch="false")
    assert query.plan()
    rest = query.read()
    assert rest == sorted(first[4:] + second)
    query.reader.stop()
    query.begin()
    assert query.read() == rest
    query.commit()
    assert query.run_batch() == []


def test_a_checkpoint_is_read_by_newer_spark_and_back(singers: Database) -> None:
    first = write_one_by_one(singers, range(3), "first")
    query = Query(singers)
    assert query.run_batch() == first
    second = write_one_by_one(singers, range(3, 6), "second")
    query.begin()
    assert query.plan_newer()
    query.begin()
    assert query.read() == second
    query.commit()
    third = write_one_by_one(singers, range(6, 9), "third")
    assert query.run_batch() == third


def test_an_end_before_spark_says_where_the_query_continues_is_refused(singers: Database) -> None:
    write_one_by_one(singers, range(3), "first")
    query = Query(singers)
    query.run_batch()
    reader = StartlessReader(resolve_scan(parse_source_options(query.options)))
    reader.latestOffset()
    seen = json.loads(query.ends[-1])
    with pytest.raises(ConfigurationError, match="triggerAvailableNowWrapper"):
        reader.partitions(seen, seen)
