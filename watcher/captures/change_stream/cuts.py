"""Where a window of a change stream is cut: by a count of its records, exactly (docs/protocol.md,
rule 9)."""

from __future__ import annotations

from heapq import heappop, heappush

from watcher.captures.change_stream.sizes import RecordSize
from watcher.captures.change_stream.windows import ChangeStreamCapture
from watcher.model.window import Window
from watcher.planning.limits import WindowLimit

SPAN_MIN = 1_000_000
SPAN_FIRST = 60_000_000
SPAN_GROWTH = 8
SPAN_MARGIN = 1.25
"""How much further to look than the rows before let expect: falling short costs another look."""


class Tally:
    """The sizes of commits that fit within a limit, the earliest first, in whatever order they are
    noted. Keeps two numbers for each commit timestamp."""

    def __init__(self, limit: WindowLimit, end: int) -> None:
        self._limit = limit
        self._sizes: dict[int, tuple[int, int]] = {}
        self._newest: list[int] = []
        """The negated timestamps, as a heap."""
        self._rows = self._bytes = 0
        self.end = end
        """Nothing above this timestamp fits."""

    @property
    def share(self) -> float:
        """How much of the limit is used; above 1 where one commit is larger."""
        return self._limit.measure_share(self._rows, self._bytes)

    @property
    def newest(self) -> int:
        """The newest commit timestamp that fits. Raises IndexError where nothing was noted."""
        return -self._newest[0]

    def note(self, record: RecordSize) -> None:
        """Adds a record, and drops the newest commits while they are too many. The earliest one
        stays however large it is."""
        at = record.commit_timestamp
        if at > self.end or not record.rows:
            return
        if at not in self._sizes:
            heappush(self._newest, -at)
        rows, size = self._sizes.get(at, (0, 0))
        self._sizes[at] = (rows + record.rows, size + record.bytes)
        self._rows += record.rows
        self._bytes += record.bytes
        while self.share > 1 and len(self._sizes) > 1:
            self._drop_newest()
        if self.share >= 1:
            self.end = self.newest

    def _drop_newest(self) -> None:
        at = -heappop(self._newest)
        rows, size = self._sizes.pop(at)
        self._rows -= rows
        self._bytes -= size
        # A partition that is read later may still have commits between those that are left and it.
        self.end = at - 1


class StreamCuts:
    """Cuts the windows of one reader, one after another.

    How far to look first comes from the window before; it changes what is read, and not the cut.
    """

    def __init__(self, capture: ChangeStreamCapture) -> None:
        self._capture = capture
        self._span = SPAN_FIRST

    def find_end(self, window: Window, limit: WindowLimit) -> int:
        """The window's end, or the last commit timestamp up to which it is within the limit.

        Raises StreamExpiredError when the stream no longer keeps records as old as its start.
        """
        if window.empty or not limit.limited:
            return window.end
        tally, reached, span = Tally(limit, window.start), window.start, self._span
        while reached < window.end:
            look = Window(reached, min(window.end, reached + span))
            tally.end = look.end
            for size in self._capture.read_sizes(look, tally):
                tally.note(size)
            if tally.share >= 1 or tally.end < look.end:
                # Full, or the commit that comes next is too large for what is left.
                self._span = expect_span(tally.newest - window.start, 1.0, span)
                return tally.newest
            reached = look.end
            span = expect_span(reached - window.start, tally.share, span)
        return window.end


def expect_span(passed: int, share: float, last: int) -> int:
    """The microseconds in which the rest of a limit is expected, where ``share`` of it came in the
    time that has ``passed``; for a whole limit, in which the next one is."""
    rest = 1.0 if share >= 1 else (1 - share) / share if share else float("inf")
    return round(max(SPAN_MIN, min(passed * rest * SPAN_MARGIN, last * SPAN_GROWTH)))
