"""What the bookkeeping of a proof costs for tables that are too large to be here: a billion rows.

    python -m benchmarks.verify_scale --ranges 20000 --rows-a-range 50000

``verify`` and ``verify --incremental`` run as they are: their ranges, sums, passes over the copy,
and what they note. Spanner and the copy are simulated: a row has a key, which is its hash, so that
the sum of a range is known. Not measured is what costs the same for each row of a table of any
size: Spanner's hashing, and reading and hashing the copy (``benchmarks.verify_costs``). With
``--rows-a-range 1``, passes cost nothing, and what is left is what ranges cost.
"""

# ruff: noqa: ARG002 (the signatures are those of what is simulated)

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa

from ddl.rules.evolve import parse_schema
from watcher.replica.copies import (
    ComparableCopy,
    CopyState,
    Needed,
    OutsideCommit,
    VersionRows,
)
from watcher.replica.cuts.cut import Cut, TableCut
from watcher.replica.cuts.proofs import FOLDER, ProofFiles
from watcher.replica.keys.ranges import KeyInterval
from watcher.replica.verification.column_groups import ColumnGroup
from watcher.replica.verification.comparison import Comparison, Keep
from watcher.replica.verification.incremental import (
    IncrementalOptions,
    TableProving,
    count_batch,
)
from watcher.replica.verification.replicas import OpenTable, ReplicaTable, VerifyOptions
from watcher.replica.verification.report import TableReport
from watcher.replica.verification.spanner_sums import SUM_COLUMNS, ComparedTable
from watcher.spanner.queries import QueryClient

NAME, KEY = "T", "K"
SCHEMA = parse_schema(f"CREATE TABLE {NAME} ({KEY} INT64) PRIMARY KEY ({KEY})")
BATCH_ROWS = 131_072
HOUR = 3_600_000_000


@dataclass(frozen=True)
class SimulatedTable(ComparedTable):
    """Spanner's side: keys from 0 on, whose hashes are the keys."""

    ranges: int = 0
    rows_a_range: int = 0

    def split(self, interval: KeyInterval, rows: int) -> Iterator[KeyInterval]:
        """As of a table in which every range has the same number of keys."""
        first, end = read_bounds(interval, self.ranges * self.rows_a_range)
        after = interval.after
        for upto in range(first + self.rows_a_range - 1, end - 1, self.rows_a_range):
            yield KeyInterval(after, (str(upto),))
            after = (str(upto),)
        yield KeyInterval(after, interval.upto)

    def start_sum(self, interval: KeyInterval, group: ColumnGroup) -> Iterator[pa.RecordBatch]:
        """The sum of consecutive keys, all of which have 32 bits."""
        first, end = read_bounds(interval, self.ranges * self.rows_a_range)
        total = (first + end - 1) * (end - first) // 2
        yield pa.record_batch([[end - first], [total], [0]], SUM_COLUMNS)


def read_bounds(interval: KeyInterval, rows: int) -> tuple[int, int]:
    """The first key, and the one behind the last."""
    first = 0 if interval.after is None else int(str(interval.after[0])) + 1
    return first, rows if interval.upto is None else int(str(interval.upto[0])) + 1


@dataclass
class SimulatedCopy(ComparableCopy):
    """The copy's side: the same rows. The process is killed, so to say, in the pass ``kill_in``."""

    rows: int
    passes: int = 0
    kill_in: int = 0

    def read_state(self) -> CopyState | None:
        return None

    def list_outside(self, after: int | None, upto: int) -> Sequence[OutsideCommit]:
        return ()

    def remove_before(self, needed: Needed) -> None:
        return None

    def scan(self, version: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        return iter(())

    def find_end(self, version: int) -> int:
        return HOUR

    def read_schema(self, version: int) -> pa.Schema:
        return pa.schema([(KEY, pa.int64())])

    def compare_versions(
        self, before: int, after: int, names: Sequence[str]
    ) -> Iterator[VersionRows]:
        return iter(())

    def scan_hashed(self, group: str, keep: Keep | None) -> Iterator[pa.RecordBatch]:
        """A pass: keys and hashes."""
        if self.passes + 1 == self.kill_in:
            self.kill_in = 0
            raise KeyboardInterrupt
        self.passes += 1
        for first in range(0, self.rows, BATCH_ROWS):
            keys = pa.array(np.arange(first, min(first + BATCH_ROWS, self.rows)))
            batch = pa.record_batch([keys, keys], [KEY, group])
            yield batch if keep is None else batch.filter(pa.array(keep(batch)))


@dataclass(frozen=True)
class SimulatedReplica(ReplicaTable):
    """Both."""

    ranges: int = 0

    def open(self, options: VerifyOptions) -> OpenTable | str:
        opened = super().open(options)
        assert isinstance(opened, OpenTable)
        copy = self.copy
        assert isinstance(copy, SimulatedCopy)
        sizes = (self.ranges, copy.rows // self.ranges)
        groups = opened.groups
        parts = (self.queries, NAME, (KEY,), opened.order, groups, self.cut.end, None)
        depth = replace(options.depth, rows=sizes[1], leaf_rows=sizes[1])

        def scan(keep: Keep | None) -> Iterator[pa.RecordBatch]:
            return copy.scan_hashed(groups[0].name, keep)

        return replace(opened, comparison=Comparison(SimulatedTable(*parts, *sizes), scan, depth))


@dataclass(frozen=True, slots=True)
class Step:
    """What a run of a proof cost this process."""

    step: str
    equal: bool
    ranges: int
    passes: int
    cpu_seconds: float
    peak_mb: int
    proof_kb: int


class Scale:
    """A replica of one table, and the proofs of it."""

    def __init__(self, folder: Path, ranges: int, rows_a_range: int) -> None:
        self._folder = folder
        self._ranges = ranges
        self._rows = ranges * rows_a_range

    def measure(
        self, step: str, hours: int, run: Callable[[SimulatedReplica], TableReport]
    ) -> Step:
        """Runs a step at a cut that is so old."""
        copy = SimulatedCopy(self._rows)
        table = SCHEMA.table(NAME)
        assert table is not None
        cut = Cut("simulated", "simulated", hours * HOUR, {NAME: TableCut(0, (KEY,))})
        nobody = cast(QueryClient, None)
        replica = SimulatedReplica(nobody, SCHEMA, table, copy, cut, (), self._ranges)
        began = time.process_time()
        report = run(replica)
        seconds = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_024
        files = (self._folder / FOLDER).glob("*")
        size = sum(each.stat().st_size for each in files) // 1_000
        equal = report.equal
        return Step(step, equal, report.ranges, copy.passes, round(seconds, 1), peak, size)

    def prove(self, replica: SimulatedReplica) -> TableReport:
        """As ``verify --incremental``."""
        return TableProving(replica, ProofFiles(str(self._folder)), IncrementalOptions()).run()

    def prove_half(self, replica: SimulatedReplica) -> TableReport:
        """The same, killed in the middle; then a run that goes on."""
        assert isinstance(replica.copy, SimulatedCopy)
        replica.copy.kill_in = self._ranges // count_batch(self._ranges) // 2 + 1
        with suppress(KeyboardInterrupt):
            self.prove(replica)
        return self.prove(replica)

    def steps(self) -> Iterator[Step]:
        """All of them, in order."""
        whole = VerifyOptions()
        yield self.measure("verify", 1, lambda replica: replica.compare(whole))
        yield self.measure("incremental, the first, killed in its middle", 1, self.prove_half)
        yield self.measure("incremental, an hour later", 2, self.prove)


def main() -> int:
    """Reads the command line, prints a line of JSON for each step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranges", type=int, default=20_000)
    parser.add_argument("--rows-a-range", type=int, default=50_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for step in Scale(Path(folder), options.ranges, options.rows_a_range).steps():
            print(json.dumps({each: getattr(step, each) for each in step.__slots__}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
