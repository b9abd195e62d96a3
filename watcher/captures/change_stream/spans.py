"""A window in shorter ones, for readers side by side: what lies in each follows from nothing but
its ends, whichever partitions begin, end, or exchange keys meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from watcher.model.window import Window

SPAN_MICROS_MIN = 10_000_000
"""A shorter window is read whole: each part costs a call, and one for each of its partitions."""
SPANS_MAX = 8


def divide_window(window: Window) -> Sequence[Window]:
    """Windows of the same length, one after the other, that hold what the window holds."""
    length = window.end - window.start
    count = max(1, min(SPANS_MAX, length // SPAN_MICROS_MIN))
    ends = [window.start + length * number // count for number in range(count + 1)]
    return [Window(start, end) for start, end in pairwise(ends)]
