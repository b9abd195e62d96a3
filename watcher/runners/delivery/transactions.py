"""The changes of windows, transaction by transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

import pyarrow as pa

from watcher.captures import COMMIT_TIMESTAMP_COLUMN, Changed, StreamRows


def sort_by_transaction(batches: Iterable[Changed]) -> Iterator[Changed]:
    """What changed in a window, transaction by transaction, over all tables and partitions.

    Holds the window, which ``max_rows`` bounds. Spanner: disjoint transactions may share a commit
    timestamp; polling cannot tell them apart, a change stream can.
    """
    parts: list[tuple[int, str, int, Changed]] = []
    for number, rows in enumerate(batches):
        parts += ((*identity, number, part) for identity, part in split_transactions(rows))
    for *_, rows in sorted(parts, key=lambda part: part[:3]):
        yield rows


def split_transactions(rows: Changed) -> Iterator[tuple[tuple[int, str], Changed]]:
    """The transactions of a batch: commit timestamp and, from a change stream, id."""
    streamed = isinstance(rows, StreamRows)
    stamp = "commit_timestamp" if streamed else COMMIT_TIMESTAMP_COLUMN
    names = [stamp, "transaction_id", "record_sequence"] if streamed else [stamp]
    ordered = rows.batch.sort_by([(name, "ascending") for name in names])
    stamps = ordered.column(stamp).cast(pa.int64()).to_pylist()
    ids = ordered.column("transaction_id").to_pylist() if streamed else [""] * len(stamps)
    first = 0
    for identity, run in groupby(zip(stamps, ids, strict=True)):
        count = len(list(run))
        yield identity, replace(rows, batch=ordered.slice(first, count))
        first += count
