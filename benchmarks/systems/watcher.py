"""The scheduled watcher as a system under test: ``python -m benchmarks.systems.watcher RUN N``."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.files import write_atomically
from benchmarks.load.records import CPU, DELIVERED, WINDOWS, Appender
from benchmarks.run_settings import Run
from watcher import Watcher
from watcher.captures import COMMIT_TIMESTAMP_COLUMN, Changed, StreamRows
from watcher.consumers.states import State
from watcher.process.spark.pandas_import import keep_pandas_out

LOOK_EVERY_SECONDS = 0.02
START_LOOK_SECONDS = 0.001
Counts = npt.NDArray[np.int64]


class Receiver:
    """The callback: logs every row with the moment of its arrival.

    The faults of the run are done here, behind the watcher: nothing else can tell them from a
    watcher that loses rows.
    """

    def __init__(self, run: Run, process: str) -> None:
        self._faults = run.disturbance
        self._rows = 0
        self._parted = bool(run.consumer.parts)
        self._table_numbers = {name: number for number, name in enumerate(run.tables)}
        self._delivered = Appender(run.records("delivered", process), DELIVERED)
        self._windows = Appender(run.records("windows", process), WINDOWS)

    def __call__(self, rows: Changed) -> None:
        """Takes a batch."""
        if self._faults.late:
            time.sleep(self._faults.late)
        at = time.time_ns() // 1_000
        if isinstance(rows, StreamRows):
            columns = extract_changed_columns(rows.batch, self._table_numbers)
        else:
            table = self._table_numbers[rows.table.name]
            columns = extract_polled_columns(rows.batch, table)
            # A window of a part has the rows of that part alone: nothing can be told of its rest.
            if not self._parted:
                self._windows.add((table, rows.window.start, rows.window.end), 1)
        copies = self._copies(rows.batch.num_rows)
        repeated = [np.repeat(column, copies) for column in columns]
        self._delivered.add((*repeated, at), int(copies.sum()))

    def _copies(self, count: int) -> Counts:
        """How often each of so many rows is logged: once, but for the faults."""
        numbers = self._rows + 1 + np.arange(count)
        self._rows += count
        copies = np.ones(count, np.int64)
        if self._faults.duplicate:
            copies[numbers % self._faults.duplicate == 0] = 2
        if self._faults.drop:
            copies[numbers % self._faults.drop == 0] = 0
        return copies


def extract_polled_columns(batch: pa.RecordBatch, table: int) -> list[Counts]:
    """Table, key, version and commit timestamp of rows that were polled."""
    return [
        np.full(batch.num_rows, table),
        batch.column("Id").to_numpy(),
        batch.column("Version").to_numpy(),
        batch.column(COMMIT_TIMESTAMP_COLUMN).cast(pa.int64()).to_numpy(),
    ]


def extract_changed_columns(batch: pa.RecordBatch, tables: Mapping[str, int]) -> list[Counts]:
    """The same of changes of a change stream, whose values are JSON as Spanner sends it."""
    names = batch.column("table").dictionary_encode()
    numbers = np.array([tables[name] for name in names.dictionary.to_pylist()], np.int64)
    return [
        numbers[names.indices.to_numpy()],
        extract_number(batch.column("key"), "Id"),
        extract_number(batch.column("new_values"), "Version"),
        batch.column("commit_timestamp").cast(pa.int64()).to_numpy(),
    ]


def extract_number(texts: pa.Array, name: str) -> Counts:
    """An INT64 of JSON objects. Raises ValueError where one does not have it."""
    matches = pc.extract_regex(texts, rf'"{name}":\s*"(?P<number>-?\d+)"')
    if matches.null_count:
        raise ValueError(f"{matches.null_count} changes have no {name}")
    numbers = pc.struct_field(matches, "number").cast(pa.int64())
    return np.asarray(numbers, np.int64)


def watcher_of(run: Run, number: int) -> Watcher:
    """A watcher with the run's settings."""
    consumer = run.consumer
    options: dict[str, Any] = {
        "database": run.database,
        "tables": run.tables_of(number),
        "consumer": "bench" if consumer.parts else f"bench{number}",
        "start": run.since,
        "interval": consumer.interval,
        "max_rows": consumer.max_rows,
        "shard_groups": consumer.shard_groups,
        "positions": {"table": run.positions_table},
        "refresh": consumer.refresh,
        "lease": consumer.lease,
    }
    spec = run.preparation.spec
    if spec is not None and not consumer.streams:
        options["table"] = dict.fromkeys(run.tables_of(number), spec)
    if consumer.streams:
        options["capture"] = "change-stream"
        options["stream"] = {"name": run.stream_of(number), "push": consumer.capture == "push"}
    if consumer.parts:
        options["parts"] = consumer.parts
    if consumer.clear_every:
        options["clearing"] = {"every": consumer.clear_every}
    return Watcher(**options)


def obey(run: Run, process: str, watcher: Watcher) -> None:
    """Says when the watcher runs, and since when; drains it when that is asked for."""
    began = time.time_ns() // 1_000
    while watcher.state in (State.NOT_STARTED, State.STARTING):
        time.sleep(START_LOOK_SECONDS)
    log_cpu(run, process)
    write_atomically(run.ready(process), str(began))
    while not run.drain.exists():
        time.sleep(LOOK_EVERY_SECONDS)
    watcher.drain()


def log_cpu(run: Run, process: str) -> None:
    """The CPU time of this process so far."""
    with Appender(run.records("cpu", process), CPU) as log:
        log.add((time.time_ns() // 1_000, time.process_time_ns() // 1_000), 1)


def main(arguments: list[str]) -> None:
    """Watches until drained, in a process that is as large as that of ``spanner-watcher watch``."""
    keep_pandas_out()
    run, number = Run.load(arguments[0], consumes=True), int(arguments[1])
    process = f"watcher{number}"
    watcher = watcher_of(run, number)
    watcher.on_batch(Receiver(run, process))
    log_cpu(run, process)
    threading.Thread(target=obey, args=(run, process, watcher), daemon=True).start()
    watcher.run()
    log_cpu(run, process)


if __name__ == "__main__":
    main(sys.argv[1:])
