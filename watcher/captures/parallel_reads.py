"""Reads a table above a key range by range: by several reads at once, by Data Boost."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa

from watcher.captures.key_ranges import KeyRangeCapture, PageRows
from watcher.model.errors import VersionExpiredError
from watcher.spanner.keys import Key, KeyRange

RANGE_ROWS = 50_000
RANGE_BYTES = 8 * 2**20
"""A range has as many rows at most as are so large, by the first ones: it is held in memory."""


BOOSTED_TIMES = 4
"""Ranges that Data Boost reads are so many times larger: each takes two calls at least."""


def read_in_parallel(
    capture: KeyRangeCapture, at: int, after: Key | None, limit: int, reads: int, boosted: bool
) -> Generator[PageRows, None, None]:
    """As ``KeyRangeCapture.read_after``, by ``reads`` reads of ranges at once, whose ends are found
    by reading keys alone. One range more is held than is read. ``boosted``: by Data Boost, which
    keeps the order of the ranges, and none within one."""
    size, times = capture.measure_row(at, after), BOOSTED_TIMES if boosted else 1
    rows = max(1, min(RANGE_ROWS, round(RANGE_BYTES / size)) if size else RANGE_ROWS) * times
    ranges = (keys for _, keys in capture.iterate_ranges(at, after, limit, rows))

    def read(keys: KeyRange) -> list[PageRows]:
        if not boosted:
            return list(capture.read_within(at, keys))
        return join_pages(list(capture.read_boosted(at, keys)), keys)

    pending: deque[Future[list[PageRows]]] = deque()
    expired: VersionExpiredError | None = None
    with ThreadPoolExecutor(reads) as threads:
        try:
            while True:
                try:
                    keys = next(ranges, None) if expired is None else None
                except VersionExpiredError as error:
                    expired, keys = error, None
                if keys is not None:
                    pending.append(threads.submit(read, keys))
                elif not pending:
                    break
                if keys is None or len(pending) > reads:
                    yield from pending.popleft().result()
        finally:
            threads.shutdown(wait=True, cancel_futures=True)
    if expired is not None:
        raise expired


def join_pages(pages: list[PageRows], keys: KeyRange) -> list[PageRows]:
    """The rows of a range as one page: whoever has half of them knows no key up to which it has
    all."""
    if not pages:
        return []
    assert keys.end is not None, "a range ends with a key that was read"
    rows, _, _ = pages[0]
    table = pa.Table.from_batches([each.batch for each, _, _ in pages]).combine_chunks()
    batch = table.to_batches()[0] if table.num_rows else rows.batch
    return [(replace(rows, batch=batch), sum(count for _, count, _ in pages), keys.end)]
