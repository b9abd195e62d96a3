"""How many bytes a row has on average: of a few rows, because an index says only how many."""

from __future__ import annotations

from collections.abc import Iterable

from watcher.spanner.results.wire import ResultPart, join_chunks

SAMPLE_ROWS = 200
"""Rows that are read to learn how long they are."""


def average_row(results: Iterable[ResultPart], width: int) -> float:
    """The bytes a row of a result, as Spanner sends them; 0 where there is none."""
    values = size = 0
    for completed, _ in join_chunks(results):
        values += len(completed)
        size += sum(map(len, completed))
    return size * width / values if values else 0.0
