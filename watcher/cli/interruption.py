"""Commands that read and show again and again: Ctrl-C and SIGTERM end them at once, with 0."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from watcher.model.errors import ConfigurationError
from watcher.runners.signals import STOP_SIGNALS
from watcher.settings.fields import duration_seconds


def parse_interval(text: str, option: str = "--every") -> float:
    """The seconds of an option. Raises ConfigurationError for none."""
    seconds = duration_seconds(text)
    if seconds <= 0:
        raise ConfigurationError(f"invalid {option} '{text}': it must be longer than 0")
    return seconds


@contextmanager
def until_interrupted() -> Iterator[None]:
    """Ends the block at SIGINT or SIGTERM. Call it in the main thread."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in STOP_SIGNALS}
    try:
        yield
    except KeyboardInterrupt:
        return  # that is how it is meant to end
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
