"""Notes in the log that the clock of the machine was set.

Work does not wait for that clock (``watcher.runners.schedule``), leases are counted by one that
nobody sets, and timestamps are Spanner's. But whoever reads the log has to know why its times jump.
"""

from __future__ import annotations

import logging
import threading
import time

from watcher.consumers.leases import lease_clock
from watcher.model.log_events.running import CLOCK_JUMPED

LOG = logging.getLogger("watcher")
JUMP_SECONDS_MIN = 1.0
"""Less than this is how a clock is adjusted all the time."""


class WallClock:
    """The clock that shows the time of day, beside one that only counts seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ahead = time.time() - lease_clock()

    def note_jump(self) -> None:
        """Logs that the clock was set since the last look, once, however many threads look."""
        with self._lock:
            ahead = time.time() - lease_clock()
            jump, self._ahead = ahead - self._ahead, ahead
        if abs(jump) < JUMP_SECONDS_MIN:
            return
        CLOCK_JUMPED.log(LOG, direction="forward" if jump > 0 else "back", seconds=abs(jump))


WALL_CLOCK = WallClock()
"""That of this process."""
