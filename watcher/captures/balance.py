"""Windows cut into slices of about the same size: few for few rows, a busy shard in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from google.cloud.spanner_v1 import Type

from ddl.schema import Type as SchemaType
from ddl.schema import TypeCode
from watcher.captures import statements
from watcher.captures.poll import PollCapture
from watcher.captures.poll_tables import parts
from watcher.spanner.results.columns import arrow_schema, record_batches
from watcher.spanner.stream import WireValue
from watcher.tables.values import ShardValue
from watcher.window import ShardGroup, Slice, Window

TABLES_PER_QUERY = 50
HOT_SHARE = 1.5
"""A shard with so many times the rows of an even slice is read in pieces of its time."""

COLUMNS = (
    ("table", SchemaType(TypeCode.INT64)),
    ("shard", SchemaType(TypeCode.STRING)),
    ("rows", SchemaType(TypeCode.INT64)),
    ("first", SchemaType(TypeCode.TIMESTAMP)),
    ("last", SchemaType(TypeCode.TIMESTAMP)),
)


@dataclass(frozen=True, slots=True)
class Load:
    """How many rows a shard has in a window, and the time from the first of them to the last."""

    shard: str | None
    rows: int
    first: int
    last: int


def balanced(
    captures: Sequence[PollCapture], windows: Mapping[str, Window], most: int, rows_per_slice: int
) -> list[Slice]:
    """Slices that hold every row of the windows once: at most about ``most`` a table, each of
    ``rows_per_slice`` rows or more where there are so many.

    One query of the indexes for every 50 tables. Every slice is read at the end of its window.
    """
    found: list[Slice] = []
    wanted = [c for c in captures if not windows[c.table.name].empty]
    for some in parts([capture.table.name for capture in wanted], TABLES_PER_QUERY):
        chosen = [capture for capture in wanted if capture.table.name in some]
        for capture, loads in zip(chosen, measured(chosen, windows), strict=True):
            window = windows[capture.table.name]
            found += slices(capture, window, loads, most, rows_per_slice)
    return found


def measured(captures: Sequence[PollCapture], windows: Mapping[str, Window]) -> list[list[Load]]:
    """The loads of each table, by one query at the windows' end."""
    arms: list[str] = []
    params: dict[str, WireValue] = {}
    types: dict[str, Type] = {}
    for number, capture in enumerate(captures):
        window = windows[capture.table.name]
        shards = statements.shard_list(capture.table, None)
        arms.append(statements.load_of_window(capture.table, shards is not None, str(number)))
        values = statements.window_params(window, shards)
        params |= {f"{name}{number}": value for name, value in values.items()}
        types |= {
            f"{name}{number}": type_ for name, type_ in statements.window_types(shards).items()
        }
    end = max(windows[capture.table.name].end for capture in captures)
    results = captures[0].queries.stream.rows(" UNION ALL ".join(arms), params, types, end)
    loads: list[list[Load]] = [[] for _ in captures]
    schema = arrow_schema(COLUMNS)
    for batch in record_batches(results, schema, [type_ for _, type_ in COLUMNS]):
        numbered = batch.set_column(3, "first", batch.column(3).cast("int64"))
        numbered = numbered.set_column(4, "last", batch.column(4).cast("int64"))
        for row in numbered.to_pylist():
            if row["rows"]:
                load = Load(row["shard"], row["rows"], row["first"], row["last"])
                loads[row["table"]].append(load)
    return loads


def slices(
    capture: PollCapture, window: Window, loads: Sequence[Load], most: int, rows_per_slice: int
) -> Iterator[Slice]:
    """The slices of one table."""
    name, end = capture.table.name, window.end
    total = sum(load.rows for load in loads)
    if not total:
        return
    count = min(most, max(1, ceil(total / rows_per_slice)))
    even = total / count
    hot = [load for load in loads if load.rows > HOT_SHARE * even]
    for load in hot:
        group = group_of(capture, [load])
        for piece in pieces(load, window, ceil(load.rows / even)):
            yield Slice(name, piece, group, read_at=end)
    rest = [load for load in loads if load.rows <= HOT_SHARE * even]
    for members in packed(rest, max(1, round(sum(load.rows for load in rest) / even))):
        yield Slice(name, window, group_of(capture, members))


def pieces(load: Load, window: Window, count: int) -> Iterator[Window]:
    """A window in equal parts of the time in which its rows changed."""
    span = load.last - load.first
    inner = sorted({load.first + span * n // count for n in range(1, count)})
    bounds = [window.start, *(at for at in inner if window.start < at < window.end), window.end]
    for start, end in pairwise(bounds):
        yield Window(start, end)


def packed(loads: Sequence[Load], count: int) -> list[list[Load]]:
    """Shards in groups of about the same number of rows: the largest first, to the smallest."""
    groups: list[list[Load]] = [[] for _ in range(count)]
    sizes = [0] * count
    for load in sorted(loads, key=lambda each: -each.rows):
        place = sizes.index(min(sizes))
        groups[place].append(load)
        sizes[place] += load.rows
    return [group for group in groups if group]


def group_of(capture: PollCapture, loads: Sequence[Load]) -> ShardGroup | None:
    """The shards of a slice; None for a table without a shard."""
    if capture.table.shard_column is None:
        return None
    text = capture.table.column_type(capture.table.shard_column).code is TypeCode.STRING
    values: list[ShardValue] = []
    for load in loads:
        assert load.shard is not None
        values.append(load.shard if text else int(load.shard))
    return ShardGroup(0, tuple(values))
