"""How long a run pauses while nothing changes, and what ends the pause."""

from __future__ import annotations

import time
from collections.abc import Callable

from watcher.captures.change_stream.listening import Listening
from watcher.settings.watch_config import IDLE_SECONDS_MAX, WatchConfig

ADAPTIVE_INTERVALS = 10
QUIET_POLLS = 3
"""Polls without rows, one after another, before a run listens."""
FUTILE_SECONDS = 60.0
"""So long a run does not listen after it was futile."""

Listen = Callable[[int, float, Callable[[], object]], Listening | None]
"""Hears of changes after a timestamp, for so many seconds, and wakes somebody."""


class IdlePause:
    """Grows by an interval with each poll that finds nothing. Where changes can be heard of, the
    pause is as long as the schema and the positions of idle tables can wait, and ends with the
    first change."""

    def __init__(self, config: WatchConfig) -> None:
        self._config = config
        self._polls = 0
        self._until = 0.0
        self._listening: Listening | None = None
        self._deaf_until = 0.0
        self.wake: Callable[[], object] = lambda: None
        """Called when the pause is over before its time."""

    @property
    def goes_on(self) -> bool:
        """Whether it is not time for the next poll yet."""
        heard = self._listening is not None and self._listening.heard
        return not heard and time.monotonic() < self._until

    def note(self, end: int, active: bool, over: bool, listen: Listen) -> None:
        """A poll up to ``end`` is over. ``active``: changes come. ``over``: nothing is left to be
        delivered, and another poll follows."""
        self.end()
        self._polls = 0 if active else self._polls + 1
        if not over:
            return
        now, config = time.monotonic(), self._config
        pause = min(self._polls * config.interval, longest_idle_pause(config))
        if self._polls >= QUIET_POLLS and now >= self._deaf_until and config.stream.listen and end:
            longest = max(pause, min(config.refresh, IDLE_SECONDS_MAX))
            if longest > config.interval:
                self._listening = listen(end, longest, self.wake)
            pause = longest if self._listening is not None else pause
        self._until = now + pause

    def end(self) -> None:
        """Stops listening."""
        if self._listening is None:
            return
        self._listening.close()
        if self._listening.futile:
            self._deaf_until = time.monotonic() + FUTILE_SECONDS
        self._listening = None


def longest_idle_pause(config: WatchConfig) -> float:
    """The longest pause, beside the interval, after polls that found nothing, in seconds."""
    longest = config.idle_interval or config.interval * (
        ADAPTIVE_INTERVALS if config.adaptive else 1
    )
    return max(longest - config.interval, 0.0)
