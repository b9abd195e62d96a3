"""Partitions of change streams: ranges of a hash of the key, each for a span of time."""

from __future__ import annotations

import json
import random
import uuid
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import apsw

SPACE = 1 << 32
INITIAL = 3
PARTITIONS_MAX = 12
READ = "SELECT number, stream, token, low, high, started, ended, parents, placement FROM "


@dataclass(frozen=True, slots=True)
class StreamPartition:
    """Holds the records of keys whose hash is in [low, high), committed in [started, ended).

    ``placement`` is empty for a stream that has no functions of placements.
    """

    number: int
    stream: str
    token: str
    low: int
    high: int
    started: int
    ended: int | None
    parents: tuple[str, ...]
    placement: str = ""


def hash_key(table: str, key: str) -> int:
    """The place of a key in the hash space that partitions divide."""
    return zlib.crc32(key.encode(), zlib.crc32(table.encode()))


def read_partition(row: Sequence[apsw.SQLiteValue]) -> StreamPartition:
    """A partition as the file keeps it."""
    number, stream, token, low, high, started, ended, parents, placement = row
    return StreamPartition(
        int(str(number)),
        str(stream),
        str(token),
        int(str(low)),
        int(str(high)),
        int(str(started)),
        None if ended is None else int(str(ended)),
        tuple(json.loads(str(parents))),
        str(placement),
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
    placement: str = "",
) -> str:
    """A new partition from a timestamp on; its token."""
    token = uuid.uuid4().hex
    connection.execute(
        'INSERT INTO "$partitions" (stream, token, low, high, started, parents, placement) '
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (stream, token, *span, micros, json.dumps(list(parents)), placement),
    )
    return token


def create_partitions(
    connection: apsw.Connection,
    stream: str,
    micros: int,
    placement: str = "",
    parents: Sequence[str] = (),
) -> list[str]:
    """The first partitions of a stream, or of a placement in it; their tokens."""
    edges = [SPACE * n // INITIAL for n in range(INITIAL + 1)]
    return [
        add_partition(connection, stream, span, micros, parents, placement)
        for span in pairwise(edges)
    ]


def find_partition(
    partitions: Sequence[StreamPartition], place: int, placement: str = ""
) -> StreamPartition:
    """The one of the active partitions that has a place of the hash space."""
    return next(p for p in partitions if p.low <= place < p.high and p.placement == placement)


def end_partitions(
    connection: apsw.Connection, partitions: Iterable[StreamPartition], micros: int
) -> None:
    """Partitions end at a timestamp."""
    connection.executemany(
        'UPDATE "$partitions" SET ended = ? WHERE number = ?',
        [(micros, partition.number) for partition in partitions],
    )


def choose_neighbours(
    connection: apsw.Connection, stream: str, choice: random.Random
) -> list[StreamPartition]:
    """The active partitions among which keys may move, in order: all of them, or those of one
    placement."""
    now = [p for p in stream_partitions(connection, stream) if p.ended is None]
    placements = sorted({partition.placement for partition in now})
    placement = choice.choice(placements) if len(placements) > 1 else placements[0]
    return sorted((p for p in now if p.placement == placement), key=low)


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
    now = choose_neighbours(connection, stream, choice)
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
    end_partitions(connection, parents, micros)
    tokens = [parent.token for parent in parents]
    for span in spans:
        add_partition(connection, stream, span, micros, tokens, parents[0].placement)
    return parents


def low(partition: StreamPartition) -> int:
    """Where a partition's range begins."""
    return partition.low
