"""Windows cut into slices of about the same size: few for few rows, a busy shard in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures import statements
from watcher.captures.poll import PollCapture
from watcher.captures.poll_tables import split_names
from watcher.model.window import ShardGroup, ShardSlice, Window
from watcher.spanner.results.columns import build_schema, decode_batches
from watcher.spanner.sql import union_statements
from watcher.tables.values import ShardValue

TABLES_PER_QUERY = 50
HOT_SHARE = 1.5
"""A shard with so many times the rows of an even slice is read in pieces of its time."""

COLUMNS = (
    ("table", Type(TypeCode.INT64)),
    ("shard", Type(TypeCode.STRING)),
    ("rows", Type(TypeCode.INT64)),
    ("first", Type(TypeCode.TIMESTAMP)),
    ("last", Type(TypeCode.TIMESTAMP)),
)


@dataclass(frozen=True, slots=True)
class ShardLoad:
    """How many rows a shard has in a window, and the time from the first of them to the last."""

    shard: str | None
    rows: int
    first: int
    last: int


def plan_balanced(
    captures: Sequence[PollCapture],
    windows: Mapping[str, Window],
    slices_max: int,
    rows_per_slice: int,
) -> list[ShardSlice]:
    """Slices that hold every row of the windows once: at most about ``slices_max`` a table, each of
    ``rows_per_slice`` rows or more where there are so many.

    One query of the indexes for every 50 tables. Every slice is read at the end of its window.
    """
    slices: list[ShardSlice] = []
    by_name = {c.table.name: c for c in captures if not windows[c.table.name].empty}
    for names in split_names(list(by_name), TABLES_PER_QUERY):
        chosen = [by_name[name] for name in names]
        for capture, loads in zip(chosen, measure_loads(chosen, windows), strict=True):
            window = windows[capture.table.name]
            slices += plan_table(capture, window, loads, slices_max, rows_per_slice)
    return slices


def measure_loads(
    captures: Sequence[PollCapture], windows: Mapping[str, Window]
) -> list[list[ShardLoad]]:
    """The loads of each table, by one query at the windows' end."""
    statement = union_statements(
        [
            statements.measure_load(capture.table, windows[capture.table.name], number)
            for number, capture in enumerate(captures)
        ]
    )
    end = max(windows[capture.table.name].end for capture in captures)
    results = captures[0].queries.stream.query(statement, end)
    loads: list[list[ShardLoad]] = [[] for _ in captures]
    for batch in decode_batches(results, build_schema(COLUMNS), [type_ for _, type_ in COLUMNS]):
        numbered = batch.set_column(3, "first", batch.column(3).cast("int64"))
        numbered = numbered.set_column(4, "last", batch.column(4).cast("int64"))
        for row in numbered.to_pylist():
            if row["rows"]:
                load = ShardLoad(row["shard"], row["rows"], row["first"], row["last"])
                loads[row["table"]].append(load)
    return loads


def plan_table(
    capture: PollCapture,
    window: Window,
    loads: Sequence[ShardLoad],
    slices_max: int,
    rows_per_slice: int,
) -> Iterator[ShardSlice]:
    """The slices of one table."""
    name, total = capture.table.name, sum(load.rows for load in loads)
    if not total:
        return
    count = min(slices_max, max(1, ceil(total / rows_per_slice)))
    even = total / count
    for load in loads:
        if load.rows > HOT_SHARE * even:
            group = group_shards(capture, [load])
            for piece in split_by_time(load, window, ceil(load.rows / even)):
                yield ShardSlice(piece, name, group, read_at=window.end)
    rest = [load for load in loads if load.rows <= HOT_SHARE * even]
    for members in pack_loads(rest, max(1, round(sum(load.rows for load in rest) / even))):
        count = sum(load.rows for load in members)
        yield ShardSlice(window, name, group_shards(capture, members), rows=count)


def split_by_time(load: ShardLoad, window: Window, count: int) -> Iterator[Window]:
    """A window in equal parts of the time in which its rows changed."""
    span = load.last - load.first
    inner = sorted({load.first + span * n // count for n in range(1, count)})
    bounds = [window.start, *(at for at in inner if window.start < at < window.end), window.end]
    for start, end in pairwise(bounds):
        yield Window(start, end)


def pack_loads(loads: Sequence[ShardLoad], count: int) -> list[list[ShardLoad]]:
    """Shards in groups of about the same number of rows: the largest first, to the smallest."""
    groups: list[list[ShardLoad]] = [[] for _ in range(count)]
    sizes = [0] * count
    for load in sorted(loads, key=lambda each: -each.rows):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(load)
        sizes[smallest] += load.rows
    return [group for group in groups if group]


def group_shards(capture: PollCapture, loads: Sequence[ShardLoad]) -> ShardGroup | None:
    """The shards of a slice; None for a table without a shard."""
    if capture.table.shard_column is None:
        return None
    text = capture.table.column_type(capture.table.shard_column).code is TypeCode.STRING
    values: list[ShardValue] = []
    for load in loads:
        assert load.shard is not None
        values.append(load.shard if text else int(load.shard))
    return ShardGroup(0, tuple(values))
