"""From the logs of a run to its figures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.load.latency import latency
from benchmarks.load.records import ATTEMPTS, DELIVERED, WINDOWS, WRITTEN, Records, read
from benchmarks.result import Measured, Series
from benchmarks.run_settings import Run
from conformance.judges.arrays import find_indexes, verify

MICROS = 1_000_000
Array = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Logs:
    """Everything that the processes of a run logged."""

    written: Records
    delivered: Records
    windows: Records
    attempts: Records

    @classmethod
    def read(cls, run: Run) -> Logs:
        """From the run's files."""
        return cls(
            read(run.all_records("written"), WRITTEN),
            read(run.all_records("delivered"), DELIVERED),
            read(run.all_records("windows"), WINDOWS),
            read(run.all_records("attempts"), ATTEMPTS),
        )


def measure(
    logs: Logs, beginning: int, every_version: bool = False, warm_up: float = 0.0
) -> Measured:
    """``beginning`` (microseconds) is when the schedule, or the delivery of a backlog, began.

    ``every_version``: nothing may be superseded. What was due in the first ``warm_up`` seconds
    counts in no latency.
    """
    written, delivered = logs.written, logs.delivered
    indexes = find_indexes(delivered, written)
    known = delivered[indexes >= 0]
    intended = written["intended"][indexes[indexes >= 0]]
    _, commits = np.unique(written["commit"], return_index=True)
    counted = beginning + warm_up * MICROS if warm_up else 0
    took = written[commits][written[commits]["intended"] >= counted]
    warm = intended >= counted
    ended = int(written["acknowledged"].max()) if len(written) else beginning
    last = int(delivered["at"].max()) if len(delivered) else ended
    return Measured(
        verdict=verify(written, delivered, logs.windows, every_version),
        write_seconds=seconds(ended - beginning),
        written_per_second=rate(len(written), ended - beginning),
        delivered_per_second=rate(len(delivered), last - beginning),
        drain_seconds=seconds(last - ended),
        since_commit=latency((known["at"] - known["commit"])[warm]),
        since_intended=latency((known["at"] - intended)[warm]),
        commit=latency(took["acknowledged"] - took["intended"]),
        aborted=int(logs.attempts["attempts"].sum() - logs.attempts["commits"].sum()),
        series=series(written, known, intended, beginning),
    )


def seconds(micros: int) -> float:
    """Never below zero: what came before the beginning took no time."""
    return round(max(micros, 0) / MICROS, 3)


def rate(rows: int, micros: int) -> float:
    """Rows a second; 0 for no time at all."""
    return round(rows * MICROS / micros, 1) if micros > 0 else 0.0


def series(written: Records, known: Records, intended: Array, beginning: int) -> Series:
    """A value for every second."""
    came = bins(known["at"], beginning)
    gone = bins(written["acknowledged"], beginning)
    length = int(max(np.max(came, initial=-1), np.max(gone, initial=-1))) + 1
    delivered = np.bincount(came, minlength=length)
    # Only what came at all is a backlog: a version that was superseded is nobody's to deliver.
    committed = np.bincount(bins(known["commit"], beginning), minlength=length)
    backlog = np.maximum(np.cumsum(committed)[:length] - np.cumsum(delivered), 0)
    p50, p99, maximum = percentiles(known["at"] - intended, bins(intended, beginning), length)
    return Series(
        written=tuple(np.bincount(gone, minlength=length).tolist()),
        delivered=tuple(delivered.tolist()),
        backlog=tuple(backlog.tolist()),
        p50=p50,
        p99=p99,
        maximum=maximum,
    )


def bins(micros: Array, beginning: int) -> Array:
    """The second of each moment; what came before the beginning counts to the first."""
    return np.asarray(np.maximum(micros - beginning, 0) // MICROS, np.int64)


Column = tuple[float | None, ...]


def percentiles(late: Array, second: Array, length: int) -> tuple[Column, Column, Column]:
    """p50, p99 and the maximum of the rows of each second, in seconds."""
    order = np.argsort(second, kind="stable")
    late, edges = late[order], np.searchsorted(second[order], np.arange(length + 1))
    percentiles: list[tuple[float | None, float | None, float | None]] = []
    for first, after in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if first == after:
            percentiles.append((None, None, None))
            continue
        p50, p99, top = np.quantile(late[first:after], [0.5, 0.99, 1.0]) / MICROS
        percentiles.append((round(float(p50), 4), round(float(p99), 4), round(float(top), 4)))
    columns = tuple(zip(*percentiles, strict=True)) or ((), (), ())
    return columns[0], columns[1], columns[2]
