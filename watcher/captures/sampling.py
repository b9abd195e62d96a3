"""Where a long window is cut, by one of its shards: a hash makes each a fair sample of all."""

from __future__ import annotations

import logging

from watcher.captures.poll import PollCapture
from watcher.spanner.failures import REFUSALS, is_schema_refusal
from watcher.spanner.timestamps import format_timestamp
from watcher.window import Window

LOG = logging.getLogger("watcher.poll")

NUMBER_MIN = 256
"""A sample of so many rows is wrong by a sixteenth, as a rule; smaller ones are not used."""
FILL = 0.9
"""How full windows are made, so that those whose sample is too small are not too large."""
LOOKS_MAX = 48
LOOKS_BY_COUNT = 2
STEADY = 2
"""How far to look, in lengths of the last window, when that was cut."""
GROWTH = 8
OLDEST_MICROSECONDS = 7 * 24 * 3_600 * 1_000_000
"""Spanner: versions are kept for seven days at most."""


class SampledCuts:
    """Cuts the windows of one table at about so many rows, for 2/N index entries a row of N shards.

    The shard that is asked changes with every window, so that a skewed one misleads only once in a
    while. Each cut is exact: rows of one commit timestamp stay together.
    """

    def __init__(self, capture: PollCapture) -> None:
        self._capture = capture
        table = capture.table
        self._shards = [v for v in table.shard_values or () if isinstance(v, int)]
        self._hashed = table.hashed and len(self._shards) > 1
        self._turn = 0
        self._reach = 0

    def is_reliable(self, max_rows: int) -> bool:
        """Whether a shard of this table is a good sample of windows of this size."""
        return self._hashed and self._sample_number(max_rows) >= NUMBER_MIN

    def find_end(self, window: Window, max_rows: int) -> int:
        """The window's end, or an earlier one where it has about so many rows; much fewer where the
        rows have changed again and again since.

        A window is counted as of its end: rows that have changed again since are among its own. So
        far behind, where to look first comes from the window before, not from now. Where the schema
        was another at an earlier end, and Spanner refuses to look there, a later one is tried, at
        worst the window's own.
        """
        number, shard = self._sample_number(max_rows), self._shards[self._turn % len(self._shards)]
        self._turn += 1
        end = min(window.end, window.start + self._reach) if self._reach else window.end
        cut: int | None = None
        looked, refused = window.end, window.start
        for look in range(LOOKS_MAX):
            try:
                cut = self._capture.find_nth_of_shard(Window(window.start, end), shard, number)
            except REFUSALS as error:
                if end == window.end or not is_schema_refusal(error):
                    raise
                LOG.info("no window is cut at %s: %s", format_timestamp(end), error)
                refused, end = end, find_middle(end, looked)
                continue
            looked = end
            if cut is None or cut == end:
                break
            end = cut if look < LOOKS_BY_COUNT else min(cut, halve_window(window, end))
            if end <= refused:
                end = find_middle(refused, looked)
        end = looked
        self._reach = (end - window.start) * (GROWTH if cut is None else STEADY)
        return end

    def _sample_number(self, max_rows: int) -> int:
        return int(max_rows * FILL) // max(1, len(self._shards))


def find_middle(low: int, high: int) -> int:
    """A place between two ends; the later one where there is none."""
    return high if high - low < 2 else (low + high) // 2


def halve_window(window: Window, end: int) -> int:
    """A place between a window's start, or the oldest version that can be, and an earlier end."""
    oldest = window.end - OLDEST_MICROSECONDS
    low = oldest if window.start < oldest < end else window.start
    return low + max(1, (end - low) // 2)
