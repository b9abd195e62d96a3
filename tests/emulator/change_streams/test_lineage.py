"""Every version of every key is read once and in order, however partitions split and merge.

A longer run: ``CHANGE_STREAM_ROUNDS=400 python -m pytest tests/emulator/change_streams``.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from datetime import datetime
from itertools import pairwise

import pytest
from fixtures.server import connect, spawn
from google.api_core.exceptions import OutOfRange
from google.cloud.spanner import KeySet
from google.cloud.spanner_v1.batch import Batch
from google.cloud.spanner_v1.database import Database
from stream_reader import StreamContents, now, parse_fields, read_all, records

TABLE = "CREATE TABLE T (Id INT64, Version INT64) PRIMARY KEY (Id)"
STREAM = "CREATE CHANGE STREAM S FOR T"
ROUNDS = int(os.environ.get("CHANGE_STREAM_ROUNDS", "120"))
Version = tuple[datetime, str, int | None]


class StreamWorld:
    """A table under random commits, and what happened to every key of it, in order."""

    def __init__(self, database: Database, seed: int) -> None:
        self.truth: dict[int, list[Version]] = {}
        self._database = database
        self._choice = random.Random(seed)
        self._there: set[int] = set()
        self._version = 0

    def write(self, rounds: int) -> None:
        for _ in range(rounds):
            done: list[tuple[int, str, int | None]] = []
            with self._database.batch() as batch:
                for key in self._choice.sample(range(12), self._choice.randint(1, 4)):
                    done.append(self._change(batch, key))
            for key, kind, value in done:
                self.truth.setdefault(key, []).append((batch.committed, kind, value))

    def _change(self, batch: Batch, key: int) -> tuple[int, str, int | None]:
        if key in self._there and self._choice.random() < 0.3:
            batch.delete("T", KeySet(keys=[[key]]))
            self._there.discard(key)
            return key, "DELETE", None
        self._version += 1
        batch.insert_or_update("T", ["Id", "Version"], [(key, self._version)])
        kind = "UPDATE" if key in self._there else "INSERT"
        self._there.add(key)
        return key, kind, self._version


def write(database: Database, rounds: int, seed: int) -> dict[int, list[Version]]:
    """The truth of a new world after some commits."""
    world = StreamWorld(database, seed)
    world.write(rounds)
    return world.truth


def values_by_key(records: StreamContents) -> dict[int, list[Version]]:
    """What the reader saw of every key, in the order in which it saw it."""
    versions: dict[int, list[Version]] = {}
    for record in records.data:
        for keys, new, _ in record[6]:
            value = parse_fields(new).get("Version")
            key = int(str(parse_fields(keys)["Id"]))
            versions.setdefault(key, []).append(
                (record[0], record[7], None if value is None else int(str(value)))
            )
    return versions


@pytest.mark.both_dialects
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.ddl(TABLE, STREAM)
def test_every_version_of_every_key_is_read_once_and_in_order(
    database: Database, faults: Callable[..., None], seed: int
) -> None:
    faults(change_stream_churn_seconds=0.01, seed=seed)
    start = now()
    world = StreamWorld(database, seed)
    while True:
        world.write(ROUNDS)
        records = read_all(database, "S", start, now())
        assert values_by_key(records) == world.truth
        merged = [token for token, parents in records.parents.items() if len(parents) > 1]
        parents = [p for ps in records.parents.values() for p in ps]
        if len(merged) > 2 and len(parents) - len(set(parents)) > 2:
            break
    for token in merged:
        assert records.announced[token] == len(records.parents[token])


@pytest.mark.both_dialects
@pytest.mark.ddl(TABLE, STREAM)
def test_windows_through_lineage_neither_overlap_nor_leave_gaps(
    database: Database, faults: Callable[..., None]
) -> None:
    faults(change_stream_churn_seconds=0.01, seed=3)
    start = now()
    truth = write(database, ROUNDS, 3)
    stamps = sorted({stamp for versions in truth.values() for stamp, _, _ in versions})
    edges = [start, *stamps[9 :: len(stamps) // 5], now()]
    whole: dict[int, list[Version]] = {}
    tick = datetime.resolution
    for low, high in pairwise(edges):
        for key, versions in values_by_key(read_all(database, "S", low + tick, high)).items():
            whole.setdefault(key, []).extend(versions)
    assert whole == truth


@pytest.mark.both_dialects
@pytest.mark.ddl(TABLE, STREAM)
def test_a_token_is_refused_outside_its_partition(
    database: Database, faults: Callable[..., None]
) -> None:
    start = now()
    faults(change_stream_churn_seconds=0.01, seed=4)
    roots = [c[2][0][0] for _, _, cs in records(database, "S", start, None) for c in cs]
    first = next(
        c for t in roots for _, _, cs in records(database, "S", start, None, t) for c in cs
    )
    ended, token = first[0], first[2][0][0]
    with pytest.raises(OutOfRange):
        list(records(database, "S", ended - datetime.resolution, None, token))
    parent = first[2][0][1][0]
    with pytest.raises(OutOfRange):
        list(records(database, "S", ended + datetime.resolution, None, parent))


def test_records_survive_a_kill(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("streams")
    with spawn(directory, change_stream_churn_seconds=0.01) as server:
        database = connect(server.address).database("kept", ddl_statements=[TABLE, STREAM])
        database.create().result(60)
        start = now()
        truth = write(database, 40, 5)
        server.kill()
    with spawn(directory) as server:
        database = connect(server.address).database("kept")
        assert values_by_key(read_all(database, "S", start, now())) == truth
