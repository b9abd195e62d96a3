"""What readers pay for deletion vectors: full scans of a copy as it was loaded, with one vector of
30 rows in its file, and with 5 % of its rows deleted.

    python -m benchmarks.scan_costs --rows 3000000
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from deltalake import DeltaTable, QueryBuilder

from benchmarks.merge_costs import BATCH_ROWS, TABLE, make_rows, merge, open_copy
from benchmarks.replica_speed import RANDOM, choose_keys
from watcher.replica.cuts.cut import DELTA

REPEATS = 5
COLUMNS = ("Id", "Number", "Text", "Value")


@dataclass(frozen=True, slots=True)
class ScanCost:
    """The fastest of a few scans; ``times`` are of the CPU seconds of the copy as it was loaded."""

    reader: str
    deleted: int
    cpu_seconds: float
    seconds: float
    times: float


def scan_by_polars(path: str) -> None:
    """All columns."""
    pl.scan_delta(path).select(COLUMNS).collect()


def scan_one_column(path: str) -> None:
    """The narrowest scan."""
    pl.scan_delta(path).select(pl.col("Number").sum()).collect()


def scan_by_delta_rs(path: str) -> None:
    """All columns, and of each one value."""
    shown = ", ".join(f'max("{name}")' for name in COLUMNS)
    QueryBuilder().register("t", DeltaTable(path)).execute(f"select {shown} from t").read_all()  # noqa: S608


READERS: dict[str, Callable[[str], None]] = {
    "polars": scan_by_polars,
    "polars, one column": scan_one_column,
    "delta-rs": scan_by_delta_rs,
}


def time_scan(scan: Callable[[str], None], path: str) -> tuple[float, float]:
    """CPU seconds, and seconds by the clock."""
    cpu, began = time.process_time(), time.perf_counter()
    scan(path)
    return time.process_time() - cpu, time.perf_counter() - began


def measure_scans(folder: Path, rows: int) -> Iterator[ScanCost]:
    """Loads a copy, and merges into it twice."""
    copy = open_copy(folder, "merge-on-read", DELTA, None)
    copy.load(
        make_rows(np.arange(n, min(n + BATCH_ROWS, rows)), 0) for n in range(0, rows, BATCH_ROWS)
    )
    plain: dict[str, float] = {}
    deleted = 0
    for window, count in enumerate((0, 30, rows // 20), start=2):
        if count:
            merge(copy, choose_keys(RANDOM, rows, count, window), window)
        deleted += count
        for reader, scan in READERS.items():
            costs = [time_scan(scan, str(folder / TABLE)) for _ in range(REPEATS)]
            cpu, seconds = map(min, zip(*costs, strict=True))
            times = cpu / plain.setdefault(reader, cpu)
            yield ScanCost(reader, deleted, round(cpu, 3), round(seconds, 3), round(times, 2))


def main() -> None:
    """Reads the command line, prints a line a cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for cost in measure_scans(Path(folder), options.rows):
            print(cost, flush=True)


if __name__ == "__main__":
    main()
