"""Commands that only read and show: Ctrl-C and SIGTERM end them at once, with 0."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from watcher.runners.signals import STOP_SIGNALS


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
