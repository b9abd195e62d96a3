"""Queries whose results are recorded, and played again from memory: a client without a server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from watcher.runners.spark.slices import PlannedSlice
from watcher.spanner.dialects import SqlDialect
from watcher.spanner.queries import QueryClient
from watcher.spanner.results.wire import ResultPart, parse_result_part
from watcher.spanner.sql import Statement

Asked = tuple[str, str, int | None]
"""A statement, its parameters, and the read timestamp."""


@dataclass(frozen=True)
class RecordedStream:
    """Runs each query once; later it gives the bytes that came then. Only ``query`` and ``sql`` are
    there."""

    queries: QueryClient
    answers: dict[Asked, list[bytes]] = field(default_factory=dict)

    @property
    def sql(self) -> SqlDialect:
        """As ``QueryStream.sql``."""
        return self.queries.stream.sql

    def query(
        self, statement: Statement, read_timestamp_micros: int | None, with_stats: bool = True
    ) -> Iterator[ResultPart]:
        """As ``QueryStream.query``."""
        asked = (statement.sql, repr(statement.params), read_timestamp_micros)
        if asked not in self.answers:
            parts = self.queries.stream.query(statement, read_timestamp_micros, with_stats)
            self.answers[asked] = [part.data for part in parts]
        return map(parse_result_part, self.answers[asked])


@dataclass(frozen=True)
class RecordedQueries:
    """A ``QueryClient`` for captures that only query."""

    stream: RecordedStream


def record_slice(planned: PlannedSlice) -> PlannedSlice:
    """The same slice, whose capture remembers what it has read."""
    capture: Any = planned.capture
    recorded = RecordedQueries(RecordedStream(capture.queries))
    return replace(planned, capture=replace(capture, queries=recorded))
