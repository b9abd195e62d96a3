"""Reads narrow tables of several sizes into Spark, each in a session of its own, and says how much
memory the driver, its JVM and the workers took:

    python -m benchmarks.reads.memory_reads TABLE ROWS OUT

``OUT`` gets a line of JSON. A process of its own, because Java stays in it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from benchmarks.processes import RunError
from benchmarks.reads.form_tables import DATABASE_OPTIONS
from benchmarks.reads.spark_processes import PeakMemory
from benchmarks.scenario import Figure
from watcher import register
from watcher.process.spark.local_spark import session

HEAP = {"spark.driver.memory": "1g"}


def main() -> None:
    """Reads the command line; reads the table once."""
    table, rows, out = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    spark = session("memory", HEAP)
    register(spark)
    began = time.perf_counter()
    with PeakMemory() as peak:
        frame = spark.read.format("spanner-changes").options(**DATABASE_OPTIONS, table=table).load()
        found = frame.count()
    if found != rows:
        raise RunError(f"read {found:,} of {rows:,} rows")
    figure: Figure = {
        "rows": rows,
        "rows/s": round(rows / (time.perf_counter() - began)),
        "driver_mb": round(peak.driver),
        "jvm_mb": round(peak.jvm),
        "worker_mb": round(peak.worker),
    }
    out.write_text(json.dumps(figure))
    spark.stop()


if __name__ == "__main__":
    main()
