"""Where a long window is cut, by some of its shards: a hash makes each a fair sample of all."""

from __future__ import annotations

import logging

from watcher.captures.poll import PollCapture
from watcher.model.log_events.reading import WINDOW_NOT_CUT
from watcher.model.window import Window
from watcher.spanner.failures import REFUSALS, is_schema_refusal
from watcher.spanner.timestamps import format_timestamp

LOG = logging.getLogger("watcher.poll")

SAMPLE_MIN = 128
"""A sample of so many rows is wrong by a tenth, as a rule: so many shards are asked that their
rows are so many together, or all shards."""
NUMBER_MIN = 4
"""Of fewer rows of a shard too little follows."""
FILL = 0.9
"""How full windows are made, so that those whose sample is too small are not too large."""
LOOKS_MAX = 48
LOOKS_BY_COUNT = 2
STEADY = 2
"""How far to look, in lengths of the last window, when that was cut."""
REACH_MIN = 100_000
"""The least number of microseconds to look: a window may have been of one commit."""
GROWTH = 8
"""How many times as far to look, where there were too few rows."""
OLDEST_MICROSECONDS = 7 * 24 * 3_600 * 1_000_000
"""Spanner: versions are kept for seven days at most."""


class SampledCuts:
    """Cuts the windows of one table at about so many rows, for 2/N index entries a row of N shards
    and each shard that is asked; one shard, where windows are long.

    The shards that are asked change with every window, so that a skewed one misleads only once in a
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
        """Whether shards of this table are a good sample of windows of this size."""
        return self._hashed and self._sample_number(max_rows) >= NUMBER_MIN

    def find_end(self, window: Window, max_rows: int) -> int:
        """The window's end, or an earlier one where it has about so many rows; much fewer where the
        rows have changed again and again since.

        A window is counted as of its end: rows that have changed again since are among its own. So
        far behind, where to look first comes from the window before, not from now; while there are
        too few rows, the next look goes further. Where the schema was another at an earlier end,
        and Spanner refuses to look there, a later one is tried, at worst the window's own.
        """
        number = self._sample_number(max_rows)
        shards = self._choose_shards(number)
        end = self._reach_from(window, self._reach) if self._reach else window.end
        cut: int | None = None
        looked, refused, found = window.end, window.start, 0
        for _ in range(LOOKS_MAX):
            try:
                cut = self._estimate(Window(window.start, end), shards, number)
            except REFUSALS as error:
                if end == window.end or not is_schema_refusal(error):
                    raise
                WINDOW_NOT_CUT.log(LOG, end=format_timestamp(end), error=error)
                refused, end = end, find_middle(end, looked)
                continue
            looked = end
            if cut is None and not found and end < window.end:
                end = self._reach_from(window, (end - window.start) * GROWTH)
                continue
            if cut is None or cut == end:
                break
            end = cut if found < LOOKS_BY_COUNT else min(cut, halve_window(window, end))
            found += 1
            if end <= refused:
                end = find_middle(refused, looked)
        end = looked
        self._reach = (end - window.start) * (GROWTH if cut is None else STEADY)
        return end

    def note_whole(self, window: Window) -> None:
        """A window is read whole without a look: the next look may go further, as after one that
        was not cut."""
        self._reach = (window.end - window.start) * GROWTH

    def _reach_from(self, window: Window, micros: int) -> int:
        return min(window.end, window.start + max(micros, REACH_MIN))

    def _sample_number(self, max_rows: int) -> int:
        return int(max_rows * FILL) // max(1, len(self._shards))

    def _choose_shards(self, number: int) -> list[int]:
        """The shards whose turn it is: an odd count, so that one of their answers is the middle."""
        count = min(len(self._shards), -(-SAMPLE_MIN // number) // 2 * 2 + 1)
        first, self._turn = self._turn, (self._turn + count) % len(self._shards)
        return [self._shards[(first + step) % len(self._shards)] for step in range(count)]

    def _estimate(self, window: Window, shards: list[int], number: int) -> int | None:
        """About where a window has all the rows that it may have: the middle of what the shards
        answer, None where most have too few."""
        cuts = self._capture.find_nth_of_shards(window, shards, number)
        middle = (len(shards) - 1) // 2
        return cuts[middle] if middle < len(cuts) else None


def find_middle(low: int, high: int) -> int:
    """A timestamp between two ends; the later one where there is none."""
    return high if high - low < 2 else (low + high) // 2


def halve_window(window: Window, end: int) -> int:
    """A timestamp between a window's start, or the oldest version that can be, and an earlier
    end."""
    oldest = window.end - OLDEST_MICROSECONDS
    low = oldest if window.start < oldest < end else window.start
    return low + max(1, (end - low) // 2)
