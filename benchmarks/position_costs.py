"""What it costs to find the rows of keys in a copy: by the index of keys, and by scans that leave
out row groups in which no key can be.

    python -m benchmarks.position_costs --rows 1000000 --changes 100 1000 100000

A file of Parquet as a load writes it, in the order of its key; the keys that change are random,
contiguous, or new and behind all others. All three find the same rows.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from watcher.replica.keys.hashes import hash_keys
from watcher.replica.writing.key_index import Entries, KeyIndex
from watcher.replica.writing.live_files import Mark

KEY, FILE, GROUP_ROWS, REPEATS = "Id", "0.parquet", 131_072, 5
Find = Callable[[NDArray[np.int64]], NDArray[Any]]


class NoMark:
    """Of a file without deleted rows."""

    rows = 0

    def to_stored(self) -> dict[str, Any]:
        """As ``Mark.to_stored``."""
        return {}


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one search, the median of a few."""

    by: str
    keys: str
    changes: int
    cpu_ms: float
    ms: float


def write_file(path: Path, rows: int) -> pa.Table:
    """Rows of a key and a value."""
    values = np.random.default_rng(1).random(rows)
    table = pa.table({KEY: np.arange(rows), "Value": values})
    pq.write_table(table, path, row_group_size=GROUP_ROWS)
    return table


def make_index(folder: Path, keys: pa.Table) -> Find:
    """The index of keys, as merges use it."""
    index = KeyIndex[Mark](folder, KEY, lambda _: NoMark())
    number, stamps = index.take_number(), np.zeros(len(keys), np.int64)
    entries = Entries.of_rows(number, 0, hash_keys(keys, index.points), stamps)
    index.add(FILE, None, number, [entries])

    def find(wanted: NDArray[np.int64]) -> NDArray[Any]:
        return index.find(hash_keys(pa.table({KEY: wanted}), index.points))[1].rows

    return find


def make_polars(path: Path) -> Find:
    """A scan by polars, which leaves row groups out by their statistics."""

    def find(wanted: NDArray[np.int64]) -> NDArray[Any]:
        rows = pl.scan_parquet(path, row_index_name="row")
        near = pl.col(KEY).is_between(int(wanted.min()), int(wanted.max()))
        chosen = rows.filter(near & pl.col(KEY).is_in(pl.Series(wanted).implode()))
        return chosen.select("row").collect()["row"].to_numpy()

    return find


def make_arrow(path: Path) -> Find:
    """The key column of the row groups that may have a key, by their statistics."""
    footer = pq.read_metadata(path)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    lows = np.array([each.column(0).statistics.min for each in groups])
    highs = np.array([each.column(0).statistics.max for each in groups])

    def find(wanted: NDArray[np.int64]) -> NDArray[Any]:
        ordered = np.sort(wanted)
        there = np.searchsorted(ordered, lows) < np.searchsorted(ordered, highs, "right")
        found = [np.empty(0, np.int64)]
        with pq.ParquetFile(path, metadata=footer) as file:
            for number in np.flatnonzero(there).tolist():
                keys = file.read_row_group(number, [KEY]).column(0).to_numpy()
                found.append(np.flatnonzero(np.isin(keys, ordered)) + number * GROUP_ROWS)
        return np.concatenate(found)

    return find


def choose_keys(rows: int, count: int) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """The keys that change, by what they are like."""
    randomness = np.random.default_rng(count)
    yield "random", randomness.choice(rows, count, replace=False)
    first = int(randomness.integers(0, rows - count + 1))
    yield "contiguous", np.arange(first, first + count)
    yield "new", np.arange(rows, rows + count)


def measure(find: Find, wanted: NDArray[np.int64]) -> tuple[float, float, NDArray[Any]]:
    """CPU milliseconds, milliseconds, and what was found."""
    costs = []
    for _ in range(REPEATS):
        began, cpu = time.perf_counter(), time.process_time()
        found = find(wanted)
        costs.append((time.process_time() - cpu, time.perf_counter() - began))
    cpu, seconds = map(statistics.median, zip(*costs, strict=True))
    return round(cpu * 1_000, 2), round(seconds * 1_000, 2), np.sort(found).astype(np.int64)


def measure_all(folder: Path, rows: int, changes: list[int]) -> Iterator[Cost]:
    """Each way, for each count of keys. Raises AssertionError where they find other rows."""
    table = write_file(folder / FILE, rows)
    ways = {
        "index": make_index(folder / "index", table.select([KEY])),
        "polars": make_polars(folder / FILE),
        "row groups": make_arrow(folder / FILE),
    }
    for count in changes:
        for kind, wanted in choose_keys(rows, count):
            expected = np.sort(wanted[wanted < rows])
            for name, find in ways.items():
                cpu, seconds, found = measure(find, wanted)
                assert np.array_equal(found, expected), (name, kind, count)
                yield Cost(name, kind, count, cpu, seconds)


def main() -> None:
    """Reads the command line, prints a line a cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, nargs="+", default=[100, 1_000, 100_000])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for cost in measure_all(Path(folder), options.rows, options.changes):
            print(cost, flush=True)


if __name__ == "__main__":
    main()
