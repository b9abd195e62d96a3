"""Partitions that live on while keys move between them: ``partition_mode = 'MUTABLE_KEY_RANGE'``.

A partition's own records say what happened to it: partitions that start, keys that moved in or out,
and its end. They are written at the timestamp of the move, before any change behind it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Sequence

import apsw

from emulator.engine.change_streams.partitions import (
    PARTITIONS_MAX,
    StreamPartition,
    add_partition,
    choose_neighbours,
    end_partitions,
    stream_partitions,
)
from emulator.engine.change_streams.records import option
from emulator.engine.change_streams.values import Json, compact_json
from emulator.values.forms import timestamp_from_micros
from spanner_schema.model.schema import ChangeStream
from spanner_schema.syntax.placements import has_moving_keys

IMMUTABLE = "IMMUTABLE_KEY_RANGE"
WRITE = 'INSERT INTO "$records" (partition, micros, sequence, data) VALUES (?, ?, ?, ?)'


def partition_mode(stream: ChangeStream) -> str:
    """The mode of a stream, which never changes."""
    return option(stream, "partition_mode", IMMUTABLE)


def is_mutable(stream: ChangeStream) -> bool:
    """Whether the partitions of a stream live on while their keys move."""
    return has_moving_keys(stream)


def start_record(micros: int, number: int, tokens: list[str]) -> str:
    """Partitions that are to be read from a timestamp on."""
    shown: list[Json] = list(tokens)
    return compact_json(["start", [timestamp_from_micros(micros), f"{number:08}", shown]])


def end_record(micros: int, number: int, token: str) -> str:
    """The end of a partition."""
    return compact_json(["end", [timestamp_from_micros(micros), f"{number:08}", token]])


def event_record(
    micros: int,
    number: int,
    token: str,
    *,
    came_from: Sequence[str] = (),
    went_to: Sequence[str] = (),
) -> str:
    """Keys that moved into a partition, or out of it."""
    sources: list[Json] = list(came_from)
    destinations: list[Json] = list(went_to)
    fields: list[Json] = [timestamp_from_micros(micros), f"{number:08}", token]
    return compact_json(["event", [*fields, sources, destinations]])


def heartbeat_record(micros: int) -> str:
    """A heartbeat."""
    return compact_json(["heartbeat", [timestamp_from_micros(micros)]])


def data_record(data: str) -> str:
    """A data change record, whose fields are JSON already; another record as it is."""
    return data if data.startswith(('["start"', '["end"', '["event"')) else f'["data",{data}]'


def keep_tokens(data: str, tokens: Collection[str]) -> str:
    """A start record with those of its partitions that are among some; empty without any."""
    kind, (began, number, announced) = json.loads(data)
    kept: list[Json] = [token for token in announced if token in tokens]
    return compact_json([kind, [began, number, kept]]) if kept else ""


def churn_mutable(
    connection: apsw.Connection, stream: str, micros: int, choice: random.Random
) -> list[StreamPartition]:
    """Moves keys between partitions at a timestamp; those whose readers have news.

    A partition splits, ends and leaves its keys to its neighbour, or gives it some of them.
    """
    now = choose_neighbours(connection, stream, choice)
    wide = [p for p in now if p.high - p.low > 1]
    kinds = ["split"] if wide and len(now) < PARTITIONS_MAX else []
    kinds += ["end", "move"] if len(now) > 1 else []
    if not kinds:
        return []
    kind = choice.choice(kinds)
    if kind == "split":
        return split(connection, choice.choice(wide), micros, choice)
    place = choice.randrange(len(now) - 1)
    giver, taker = now[place], now[place + 1]
    if kind == "end" or giver.high - giver.low < 2:
        set_range(connection, taker, giver.low, taker.high)
        hand_over(connection, giver, taker.number, taker.token, micros)
        end_partition(connection, giver, micros)
    else:
        edge = choice.randrange(giver.low + 1, giver.high)
        set_range(connection, giver, giver.low, edge)
        set_range(connection, taker, edge, taker.high)
        hand_over(connection, giver, taker.number, taker.token, micros)
    return [giver, taker]


def split(
    connection: apsw.Connection, giver: StreamPartition, micros: int, choice: random.Random
) -> list[StreamPartition]:
    """A partition gives the upper part of its keys to a new one, which its records announce."""
    edge = choice.randrange(giver.low + 1, giver.high)
    span, parents = (edge, giver.high), [giver.token]
    add_partition(connection, giver.stream, span, micros, parents, giver.placement)
    set_range(connection, giver, giver.low, edge)
    new = stream_partitions(connection, giver.stream)[-1]
    write(connection, giver.number, micros, 0, start_record(micros, 0, [new.token]))
    hand_over(connection, giver, new.number, new.token, micros)
    return [giver]


def hand_over(
    connection: apsw.Connection, giver: StreamPartition, taker: int, token: str, micros: int
) -> None:
    """The events of both sides of a move."""
    write(
        connection, giver.number, micros, 1, event_record(micros, 1, giver.token, went_to=[token])
    )
    write(connection, taker, micros, 0, event_record(micros, 0, token, came_from=[giver.token]))


def end_partition(connection: apsw.Connection, ended: StreamPartition, micros: int) -> None:
    """The last record of a partition."""
    write(connection, ended.number, micros, 2, end_record(micros, 2, ended.token))
    end_partitions(connection, [ended], micros)


def set_range(
    connection: apsw.Connection, partition: StreamPartition, start: int, end: int
) -> None:
    """The keys of a partition from now on."""
    connection.execute(
        'UPDATE "$partitions" SET low = ?, high = ? WHERE number = ?',
        (start, end, partition.number),
    )


def write(
    connection: apsw.Connection, partition: int, micros: int, sequence: int, record: str
) -> None:
    """A record of a partition."""
    connection.execute(WRITE, (partition, micros, sequence, record))
