"""What merges into a copy cost, by this process or by Spark: bytes and seconds, without Spanner.

    python -m benchmarks.merge_costs --rows 1000000 10000000 --changes 100 1000 100000
    python -m benchmarks.merge_costs --to iceberg --engine spark

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
from typing import Protocol

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from benchmarks.processes import read_memory
from benchmarks.replica_speed import INDEX, KEYS, RANDOM, choose_keys, measure_files
from watcher.process.spark.java import ensure_java
from watcher.replica.copies import DELETED_COLUMN, STAMP_COLUMN, Merging, TableCopy
from watcher.replica.cuts.cut import DELTA
from watcher.replica.formats import FORMATS, make_session_settings, open_own_copies
from watcher.replica.frame_copies import make_open_copy
from watcher.replica.spark.frames import FrameCopy
from watcher.runners.spark_job import LOCAL_SETTINGS, SESSION_SETTINGS

TABLE, KEY = "T", ("Id",)
HASH = np.uint64(0x9E3779B97F4A7C15)
DAY = 86_400_000_000
BATCH_ROWS = 250_000
REPEATS = 3


@dataclass(frozen=True, slots=True)
class MergeCost:
    """The merge of so many changes into so many rows of a copy in a format. ``own`` is what a
    Parquet file of the changed rows alone has; ``index`` the size of the index of keys.
    ``cpu_seconds``: of this process, with all that it has started."""

    format: str
    engine: str
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


class MergedCopy(Protocol):
    """A copy, whatever writes it."""

    def load(self, tables: Iterator[pa.Table]) -> None:
        """Loads it."""
        ...

    def merge(self, rows: pa.Table, end: int) -> None:
        """Merges the rows of a window."""
        ...


@dataclass(frozen=True)
class OwnCopy:
    """One that this process writes."""

    copy: TableCopy

    def load(self, tables: Iterator[pa.Table]) -> None:
        """As ``MergedCopy.load``."""
        schema = make_rows(np.arange(1), 0).schema
        self.copy.load(schema, (batch for each in tables for batch in each.to_batches()), 1)

    def merge(self, rows: pa.Table, end: int) -> None:
        """As ``MergedCopy.merge``."""
        self.copy.merge(rows, KEY, end)


@dataclass(frozen=True)
class SparkCopy:
    """One that a session of Spark writes."""

    spark: SparkSession
    copy: FrameCopy

    def load(self, tables: Iterator[pa.Table]) -> None:
        """As ``MergedCopy.load``, from a file: a session holds no table of any size."""
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/rows.parquet"
            with pq.ParquetWriter(path, make_rows(np.arange(1), 0).schema) as file:
                for each in tables:
                    file.write_table(each)
            self.copy.load_frame(self.spark.read.parquet(path), 1)

    def merge(self, rows: pa.Table, end: int) -> None:
        """As ``MergedCopy.merge``."""
        self.copy.merge_frame(self.spark.createDataFrame(rows), KEY, end)


def open_copy(
    folder: Path, merging: Merging, format_: str, spark: SparkSession | None
) -> MergedCopy:
    """The copy of one table in a folder; without a session, one that this process writes."""
    if spark is None:
        return OwnCopy(open_own_copies(format_, str(folder), "benchmark", merging, None)(TABLE))
    opened = make_open_copy(spark, format_, str(folder), "benchmark", merging)
    return SparkCopy(spark, opened(spark, TABLE))


def open_session(format_: str) -> SparkSession:
    """A session on this machine that has a format."""
    ensure_java()
    settings = {**SESSION_SETTINGS, **LOCAL_SETTINGS, "spark.ui.enabled": "false"}
    settings |= make_session_settings(format_, pyspark.__version__)
    builder = SparkSession.builder.master("local[2]").appName("merge costs")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def measure_merges(
    folder: Path,
    merging: Merging,
    rows: int,
    changes: Sequence[int],
    keys: str,
    format_: str = DELTA,
    spark: SparkSession | None = None,
) -> Iterator[MergeCost]:
    """Loads a copy, and merges into it: the median of a few merges of each size."""
    copy = open_copy(folder, merging, format_, spark)
    copy.load(
        make_rows(np.arange(n, min(n + BATCH_ROWS, rows)), 0) for n in range(0, rows, BATCH_ROWS)
    )
    engine = "own" if spark is None else "spark"
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
            sizes = (rows, count, written, own, index)
            costs.append(MergeCost(format_, engine, merging, *sizes, seconds, cpu_seconds))
        yield sorted(costs, key=lambda each: each.written)[REPEATS // 2]


def merge(copy: MergedCopy, chosen: Sequence[int], window: int) -> tuple[float, float, int]:
    """Merges a window: seconds, CPU seconds, and the size of its rows alone."""
    rows = make_rows(np.array(chosen), window)
    own = BytesIO()
    pq.write_table(rows, own)
    marked = rows.append_column(DELETED_COLUMN, pa.array(np.zeros(len(rows), np.bool_)))
    began, cpu = time.perf_counter(), read_cpu_seconds()
    copy.merge(marked, window)
    return time.perf_counter() - began, read_cpu_seconds() - cpu, own.getbuffer().nbytes


def read_cpu_seconds() -> float:
    """What this process, and all that it has started, have used."""
    own = psutil.Process()
    used = [each.cpu_times() for each in (own, *own.children(recursive=True))]
    return sum(each.user + each.system for each in used)


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
    parser.add_argument("--to", default=DELTA, choices=FORMATS)
    parser.add_argument("--engine", default="own", choices=("own", "spark"))
    options = parser.parse_args()
    if options.engine == "own" and FORMATS[options.to].own is None:
        parser.error(f"this process does not write {options.to}: use --engine spark")
    spark = open_session(options.to) if options.engine == "spark" else None
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            sizes = (rows, options.changes, options.keys)
            for cost in measure_merges(Path(folder), options.merge, *sizes, options.to, spark):
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_024
                resident, own = read_memory(os.getpid())
                memory = f"peak {peak} MB, now {resident} MB, without pages of files {own} MB"
                print(options.keys, cost, f"{cost.times} times, {memory}", flush=True)


if __name__ == "__main__":
    main()
