"""Spark's micro-batch engine as far as a source sees it, around the real reader.

As in Spark: an offset is logged before its batch runs, the batch is logged as committed after its
sink has it, and a query that starts again repeats the batch that was logged and not committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from interleavings.actors import Run
from interleavings.record import Delivered
from interleavings.scheduler import current_scheduler, current_unit
from watcher.runners.spark.resolution import resolve_scan
from watcher.runners.spark.streaming import ChangesReader
from watcher.settings.spark_parsing import parse_source_options
from watcher.spanner.timestamps import to_micros


@dataclass
class SparkQuery:
    """A query with its checkpoint, which outlives its process. ``sink`` has the rows of each batch;
    one that is repeated replaces its own, as an idempotent sink does."""

    run: Run
    name: str
    options: dict[str, str]
    offsets: list[dict[str, Any]] = field(default_factory=list)
    committed: int = 0
    initial: dict[str, Any] | None = None
    registered: bool = False
    sink: dict[int, list[Delivered]] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)

    def start(self, triggers: int) -> None:
        """A life of so many triggers, which ends cleanly."""
        reader = ChangesReader(
            resolve_scan(parse_source_options(self.run.source_options | self.options))
        )
        for _ in range(triggers):
            self._trigger(reader)
        reader.stop()

    def plan(self) -> None:
        """A life that ends once the first batch is planned and before it is logged."""
        reader = ChangesReader(
            resolve_scan(parse_source_options(self.run.source_options | self.options))
        )
        start = reader.initialOffset()
        reader.latestOffset(start, reader.getDefaultReadLimit())
        self._note_registration()
        reader.stop()

    def _trigger(self, reader: ChangesReader) -> None:
        if self.initial is None:
            self.initial = reader.initialOffset()
        if self.committed == len(self.offsets):
            before = self.offsets[-1] if self.offsets else self.initial
            end = round_trip_json(reader.latestOffset(before, reader.getDefaultReadLimit()))
            self._note_registration()
            if end == before:
                return
            self.offsets.append(end)
            self._pause("offset is logged")
        self._batch(reader)

    def _note_registration(self) -> None:
        """By now the query is registered where it begins, also where the consumer stood there."""
        self.registered = True
        if not self.offsets and "begin" in self.run.kept:
            for table in self.run.world.watchable:
                self.run.record.note_move(self.options["consumer"], table, self.run.kept["begin"])

    def _batch(self, reader: ChangesReader) -> None:
        number = self.committed
        start = self.offsets[number - 1] if number else self.initial
        assert start is not None
        end = self.offsets[number]
        rows = [
            line
            for part in reader.partitions(start, end)
            for batch in reader.read(part)
            for line in self._lines(batch, number)
        ]
        before = self.sink.get(number)
        if before is not None and versions(before) != versions(rows):
            self.differences.append(
                f"{self.name} has batch {number} twice, with {sorted(versions(before))} and with"
                f" {sorted(versions(rows))}"
            )
        self.sink[number] = rows
        self._pause("batch is in the sink")
        self.committed += 1
        reader.commit(end)

    def _lines(self, batch: Any, number: int) -> Iterator[Delivered]:
        for row in batch.to_pylist():
            values = json.loads(row["values"]) if row["values"] is not None else None
            at = row["_commit_timestamp"]
            key = tuple(json.loads(row["key"]).values())
            yield Delivered(
                self.name,
                self.name,
                (row["table"], key),
                to_micros(at) if at is not None else None,
                values,
                row["operation"] == "READ",
                (0, 0),
                number,
            )

    def _pause(self, what: str) -> None:
        """The driver's own writes are places to crash, too."""
        unit = current_unit()
        if unit is not None and unit.killed is not None:
            raise unit.killed
        if unit is not None and current_scheduler().gate(what):
            current_scheduler().crash(unit)

    def deliver(self) -> None:
        """Gives the sink to the judges."""
        self.run.record.problems += self.differences
        for number in sorted(self.sink):
            self.run.record.delivered += self.sink[number]


def versions(lines: list[Delivered]) -> set[tuple[str, str]]:
    """The rows of a batch."""
    return {(str(line.row), str(line.values)) for line in lines}


def round_trip_json(offset: dict[str, Any]) -> dict[str, Any]:
    """An offset as it comes back from a checkpoint."""
    restored: dict[str, Any] = json.loads(json.dumps(offset))
    return restored
