"""Reads a table above a key by several reads at once, in the order of its key."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor

from watcher.captures.key_ranges import KeyRangeCapture, PageRows
from watcher.model.errors import VersionExpiredError
from watcher.spanner.keys import Key

RANGE_ROWS = 50_000
RANGE_BYTES = 8 * 2**20
"""A range has as many rows at most as are so large, by the first ones: it is held in memory."""


def read_in_parallel(
    capture: KeyRangeCapture, at: int, after: Key | None, limit: int, reads: int
) -> Generator[PageRows, None, None]:
    """As ``KeyRangeCapture.read_after``, by ``reads`` reads of ranges at once, whose ends are found
    by reading keys alone. One range more is held than is read."""
    size = capture.measure_row(at, after)
    rows = max(1, min(RANGE_ROWS, round(RANGE_BYTES / size))) if size else RANGE_ROWS
    ranges = (keys for _, keys in capture.iterate_ranges(at, after, limit, rows))
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
                    pending.append(threads.submit(lambda k: list(capture.read_within(at, k)), keys))
                elif not pending:
                    break
                if keys is None or len(pending) > reads:
                    yield from pending.popleft().result()
        finally:
            threads.shutdown(wait=True, cancel_futures=True)
    if expired is not None:
        raise expired
