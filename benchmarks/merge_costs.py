"""What merges into a copy without Spark cost: bytes and seconds, without Spanner.

    python -m benchmarks.merge_costs --rows 1000000 10000000 --changes 100 1000 100000
    python -m benchmarks.merge_costs --to iceberg

The keys of a table are in hash order, so that those that change are in all of its files.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.processes import read_memory
from benchmarks.replica_speed import INDEX, KEYS, RANDOM, choose_keys, measure_files
from watcher.replica.copies import DELETED_COLUMN, STAMP_COLUMN, Merging, TableCopy
from watcher.replica.cuts.cut import DELTA
from watcher.replica.formats import FORMATS, open_own_copies

TABLE = "T"
HASH = np.uint64(0x9E3779B97F4A7C15)
DAY = 86_400_000_000
BATCH_ROWS = 250_000
REPEATS = 3


@dataclass(frozen=True, slots=True)
class MergeCost:
    """The merge of so many changes into so many rows of a copy in a format. ``own`` is what a
    Parquet file of the changed rows alone has; ``index`` the size of the index of keys."""

    format: str
    merging: Merging
    rows: int
    changes: int
    written: int
    own: int
    index: int
    seconds: float
    cpu_seconds: float

    @property
    def times(self) -> float:
        """How many times the changed rows' own size is written."""
        return round(self.written / self.own, 2)


def measure_merges(
    folder: Path,
    merging: Merging,
    rows: int,
    changes: Sequence[int],
    keys: str,
    format_: str = DELTA,
) -> Iterator[MergeCost]:
    """Loads a copy, and merges into it: the median of a few merges of each size."""
    copy = open_own_copies(format_, str(folder), "benchmark", merging, None)(TABLE)
    schema = make_rows(np.arange(1), 0).schema
    parts = (np.arange(n, min(n + BATCH_ROWS, rows)) for n in range(0, rows, BATCH_ROWS))
    copy.load(schema, (batch for part in parts for batch in make_rows(part, 0).to_batches()), 1)
    window = 2
    merge(copy, choose_keys(keys, rows, 1), window)  # makes the index
    for count in changes:
        costs = []
        for _ in range(REPEATS):
            window += 1
            chosen = choose_keys(keys, rows, count, window)
            before = measure_files(folder)
            seconds, cpu_seconds, own = merge(copy, chosen, window)
            written = measure_files(folder) - before
            index = sum(path.stat().st_size for path in (folder / TABLE / INDEX).glob("*"))
            costs.append(
                MergeCost(format_, merging, rows, count, written, own, index, seconds, cpu_seconds)
            )
        yield sorted(costs, key=lambda each: each.seconds)[REPEATS // 2]


def merge(copy: TableCopy, chosen: Sequence[int], window: int) -> tuple[float, float, int]:
    """Merges a window: seconds, CPU seconds, and the size of its rows alone."""
    rows = make_rows(np.array(chosen), window)
    own = BytesIO()
    pq.write_table(rows, own)
    marked = rows.append_column(DELETED_COLUMN, pa.array(np.zeros(len(rows), np.bool_)))
    began, cpu = time.perf_counter(), time.process_time()
    copy.merge(marked, ("Id",), window)
    return time.perf_counter() - began, time.process_time() - cpu, own.getbuffer().nbytes


def make_rows(numbers: NDArray[np.int64], window: int) -> pa.Table:
    """Rows whose keys follow from their numbers, in hash order."""
    with np.errstate(over="ignore"):
        keys = (numbers.astype(np.uint64) * HASH >> np.uint64(1)).astype(np.int64)
    randomness = np.random.default_rng(window)
    texts = [f"{value:x}" for value in randomness.integers(0, 2**62, len(keys))]
    stamps = pa.array(np.full(len(keys), window * DAY), pa.timestamp("us", "UTC"))
    columns = {"Id": keys, "Number": numbers, "Text": texts, "Value": randomness.random(len(keys))}
    return pa.table({**columns, STAMP_COLUMN: stamps})


def main() -> None:
    """Reads the command line, prints a line a cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--changes", type=int, nargs="+", default=[100, 1_000, 100_000])
    parser.add_argument("--keys", default=RANDOM, choices=KEYS)
    parser.add_argument(
        "--merge", default="merge-on-read", choices=("merge-on-read", "copy-on-write")
    )
    formats = [name for name, each in FORMATS.items() if each.own is not None]
    parser.add_argument("--to", default=DELTA, choices=formats)
    options = parser.parse_args()
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            for cost in measure_merges(
                Path(folder), options.merge, rows, options.changes, options.keys, options.to
            ):
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_024
                resident, own = read_memory(os.getpid())
                memory = f"peak {peak} MB, now {resident} MB, without pages of files {own} MB"
                print(options.keys, cost, f"{cost.times} times, {memory}", flush=True)


if __name__ == "__main__":
    main()
