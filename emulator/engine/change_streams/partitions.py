"""Partitions of change streams: ranges of a hash of the key, each for a span of time."""

from __future__ import annotations

import json
import random
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import apsw

SPACE = 1 << 32
INITIAL = 3
PARTITIONS_MAX = 12
READ = "SELECT number, stream, token, low, high, started, ended, parents FROM "


@dataclass(frozen=True, slots=True)
class StreamPartition:
    """Holds the records of keys whose hash is in [low, high), committed in [started, ended)."""

    number: int
    stream: str
    token: str
    low: int
    high: int
    started: int
    ended: int | None
    parents: tuple[str, ...]


def hash_key(table: str, key: str) -> int:
    """The place of a key in the hash space that partitions divide."""
    return zlib.crc32(key.encode(), zlib.crc32(table.encode()))


def read_partition(row: Sequence[apsw.SQLiteValue]) -> StreamPartition:
    """A partition as the file keeps it."""
    number, stream, token, low, high, started, ended, parents = row
    return StreamPartition(
        int(str(number)),
        str(stream),
        str(token),
        int(str(low)),
        int(str(high)),
        int(str(started)),
        None if ended is None else int(str(ended)),
        tuple(json.loads(str(parents))),
    )


def active_partitions(connection: apsw.Connection) -> list[StreamPartition]:
    """The partitions of all streams that have not ended."""
    return [
        read_partition(r) for r in connection.execute(f'{READ} "$partitions" WHERE ended IS NULL')
    ]


def stream_partitions(connection: apsw.Connection, stream: str) -> list[StreamPartition]:
    """All partitions of a stream (its name in lower case), oldest first."""
    rows = connection.execute(f'{READ} "$partitions" WHERE stream = ? ORDER BY number', (stream,))
    return [read_partition(row) for row in rows]


def add_partition(
    connection: apsw.Connection,
    stream: str,
    span: tuple[int, int],
    micros: int,
    parents: Sequence[str],
) -> None:
    """A new partition from a timestamp on."""
    connection.execute(
        'INSERT INTO "$partitions" (stream, token, low, high, started, parents) '
        "VALUES (?, ?, ?, ?, ?, ?)",
        (stream, uuid.uuid4().hex, *span, micros, json.dumps(list(parents))),
    )


def create_partitions(connection: apsw.Connection, stream: str, micros: int) -> None:
    """The first partitions of a stream."""
    edges = [SPACE * n // INITIAL for n in range(INITIAL + 1)]
    for low, high in pairwise(edges):
        add_partition(connection, stream, (low, high), micros, ())


def remove_partitions(connection: apsw.Connection, stream: str) -> None:
    """Removes the partitions and records of a dropped stream."""
    connection.execute(
        'DELETE FROM "$records" WHERE partition IN '
        '(SELECT number FROM "$partitions" WHERE stream = ?)',
        (stream,),
    )
    connection.execute('DELETE FROM "$partitions" WHERE stream = ?', (stream,))


def clear_records(connection: apsw.Connection, stream: str, horizon: int) -> int:
    """Removes records before a timestamp and partitions that ended before it."""
    connection.execute(
        'DELETE FROM "$records" WHERE micros < ? AND partition IN '
        '(SELECT number FROM "$partitions" WHERE stream = ?)',
        (horizon, stream),
    )
    removed = connection.changes()
    connection.execute(
        'DELETE FROM "$partitions" WHERE stream = ? AND ended < ?', (stream, horizon)
    )
    return removed


def churn(
    connection: apsw.Connection, stream: str, micros: int, choice: random.Random
) -> list[StreamPartition]:
    """Splits, merges or moves partitions at a timestamp; those that ended.

    Every key is in one partition before and after; children begin where their parents end.
    """
    now = sorted((p for p in stream_partitions(connection, stream) if p.ended is None), key=low)
    splittable = [p for p in now if p.high - p.low > 1]
    kinds = ["move"]
    if len(now) < PARTITIONS_MAX and splittable:
        kinds.append("split")
    if len(now) > 1:
        kinds.append("merge")
    kind = choice.choice(kinds)
    if kind == "merge":
        at = choice.randrange(len(now) - 1)
        parents = now[at : at + 2]
        spans = [(parents[0].low, parents[1].high)]
    elif kind == "split":
        parents = [choice.choice(splittable)]
        middle = choice.randrange(parents[0].low + 1, parents[0].high)
        spans = [(parents[0].low, middle), (middle, parents[0].high)]
    else:
        parents = [choice.choice(now)]
        spans = [(parents[0].low, parents[0].high)]
    for parent in parents:
        connection.execute(
            'UPDATE "$partitions" SET ended = ? WHERE number = ?', (micros, parent.number)
        )
    for span in spans:
        add_partition(connection, stream, span, micros, [parent.token for parent in parents])
    return parents


def low(partition: StreamPartition) -> int:
    """Where a partition's range begins."""
    return partition.low
