"""A whole table of an embedded server, read in one process: by our source, and by native ADBC
drivers for Spanner where they are installed."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pyspark.sql.types import StructType

from benchmarks.experiment import restore_environment
from benchmarks.processes import RunError
from benchmarks.reads.form_tables import (
    ADDRESS,
    COUNTED_ROWS,
    DATABASE_OPTIONS,
    POLLED,
    create_database,
    fill_polled,
)
from benchmarks.reads.shaped_rows import SHAPES, ShapeName
from emulator.process import ServerProcess, spawn
from watcher.runners.spark.source import SpannerChanges
from watcher.spanner.address import EMULATOR_HOST

DRIVERS = {"adbc-driver-spanner": "adbc_driver_spanner", "spanner-adbc": "spanner_adbc"}
"""Distributions, and what they are imported as."""
OPTIONS = DATABASE_OPTIONS | {"table": POLLED}
"""The options of the source for the table."""
URI = f"spanner:///{ADDRESS.path}"

Read = Callable[[], int]
"""Reads the table once; gives the number of rows."""


@dataclass(frozen=True, slots=True)
class ReadCost:
    """Medians: rows a second, and CPU seconds of this process for 100,000 rows."""

    rows_per_second: float
    cpu_seconds: float


@contextmanager
def serve_table(rows: int, shape: ShapeName = "text") -> Iterator[ServerProcess]:
    """A server with the table ``POLLED``, which clients of this process reach meanwhile."""
    made = SHAPES[shape]
    with ExitStack() as stack:
        stack.callback(restore_environment, os.environ.get(EMULATOR_HOST))
        server = stack.enter_context(spawn())
        fill_polled(create_database(server.address, made), rows, made)
        yield server


def list_readers(shape: ShapeName) -> dict[str, Read]:
    """What can read the seven columns of the table here, by name."""
    columns = [name for name, _ in SHAPES[shape].columns]
    installed = {name: module for name, module in DRIVERS.items() if is_installed(name)}
    return {
        "spanner-watcher": partial(read_by_source, columns),
        **{name: partial(read_by_driver, columns, module) for name, module in installed.items()},
    }


def is_installed(driver: str) -> bool:
    """Whether a driver can be imported."""
    return find_spec(DRIVERS[driver]) is not None


def read_by_source(columns: Sequence[str]) -> int:
    """As Arrow columns, by what a task of Spark's runs; in one query, as drivers do it."""
    source = SpannerChanges(OPTIONS | {"maxPartitions": "1"})
    known = source.schema()
    reader = source.reader(StructType([known[name] for name in columns]))
    batches: Iterator[Any] = (each for part in reader.partitions() for each in reader.read(part))
    return sum(batch.num_rows for batch in batches)


def read_by_driver(columns: Sequence[str], module: str) -> int:
    """As Arrow columns, by a native driver."""
    driver = import_module(f"{module}.dbapi")
    with driver.connect(db_kwargs={"uri": URI}) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(columns)} FROM {POLLED}")  # noqa: S608
        return sum(batch.num_rows for batch in cursor.fetch_record_batch())


def measure_reads(read: Read, rows: int, runs: int) -> ReadCost:
    """Medians of ``runs``, after one that does not count. Raises RunError when rows are missing."""
    speeds, costs = [], []
    for number in range(runs + 1):
        began, used = time.perf_counter(), time.process_time()
        count = read()
        used, seconds = time.process_time() - used, time.perf_counter() - began
        if count != rows:
            raise RunError(f"read {count:,} of {rows:,} rows")
        if number:
            speeds.append(rows / seconds)
            costs.append(used * COUNTED_ROWS / rows)
    return ReadCost(statistics.median(speeds), statistics.median(costs))
