"""How fast rows came in the last window: whether the next one must be counted before it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from watcher.captures import TableRows
from watcher.model.window import Window

UNCOUNTED_MICROSECONDS = 2_000_000
"""A longer window is always counted."""
BURST = 2
"""Rows may come so many times as fast as in the window before."""


class WriteRate:
    """Rows a microsecond of the last window: short, read to its end, and not cut. Of others nothing
    follows: what is behind a cut may have been written at once, after a long silence.

    A short window that should have few rows is not counted: to count costs a query, and an index
    entry for some or all of its rows. What is written within two seconds may come in one window.
    """

    def __init__(self) -> None:
        self._last: float | None = None
        self._was_cut = False

    def must_count(self, windows: Mapping[str, Window], max_rows: int) -> bool:
        """Whether windows could have more rows than ``max_rows``."""
        micros = measure_span(windows)
        if self._last is None or micros > UNCOUNTED_MICROSECONDS:
            return True
        return self._last * micros * BURST > max_rows

    def note_cut(self, cut: bool) -> None:
        """The windows that were counted, which are read now, were cut or were not."""
        self._was_cut = cut

    def follow(
        self, windows: Mapping[str, Window], batches: Iterator[TableRows]
    ) -> Iterator[TableRows]:
        """The same rows of windows; they are the last windows once all have been read."""
        self._last, rows = None, 0
        for batch in batches:
            rows += batch.batch.num_rows
            yield batch
        micros = measure_span(windows)
        if not self._was_cut and 0 < micros <= UNCOUNTED_MICROSECONDS:
            self._last = rows / micros


def measure_span(windows: Mapping[str, Window]) -> int:
    """Microseconds from the first start to the last end; 0 without windows."""
    if not windows:
        return 0
    return max(w.end for w in windows.values()) - min(w.start for w in windows.values())
