"""What it costs to prove a copy: as a whole, and by what has changed.

    python -m benchmarks.verify_costs --rows 1000000 --changes 1000 --to iceberg

The copy has deletion vectors, or position deletes of Iceberg; the rows that change have random
keys. The CPU seconds of the embedded server stand for Spanner's: it hashes by functions of SQLite.
``--folder`` keeps the database: what an interrupted run has filled is there for the next one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks.replica_speed import RANDOM, ReplicaBench, StepCost, start_server

INCREMENTAL, DATA_BOOST = "--incremental", "--data-boost"
ENGINES = {"delta": "delta-rs", "iceberg": "pyiceberg"}


def measure_verify(bench: ReplicaBench, rows: int, changes: int) -> Iterator[StepCost]:
    """The steps, in their order; ``changes`` is how many rows change between two proofs."""
    yield bench.load(rows)
    yield bench.verify(rows)
    yield bench.verify(rows, DATA_BOOST)
    yield bench.verify(rows, INCREMENTAL)
    yield bench.merge(changes, RANDOM)
    yield bench.verify(changes, INCREMENTAL)
    yield bench.verify(0, INCREMENTAL)


def main() -> int:
    """Reads the command line, prints a line of JSON for each step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=1_000)
    parser.add_argument("--to", choices=list(ENGINES), default="delta")
    parser.add_argument("--folder", type=Path, help="keeps the database")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        start_server(options.folder or Path(folder)) as server,
    ):
        os.environ["SPANNER_EMULATOR_HOST"] = server.address
        bench = ReplicaBench(server, Path(folder), options.to, ENGINES[options.to])
        for step in measure_verify(bench, options.rows, options.changes):
            print(json.dumps(asdict(step)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
