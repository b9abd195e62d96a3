"""Commands that only read and show: Ctrl-C and SIGTERM end them at once, with 0."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def until_interrupted() -> Iterator[None]:
    """Ends the block at SIGINT or SIGTERM. Call it in the main thread."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        return  # that is how it is meant to end
    finally:
        signal.signal(signal.SIGTERM, before)
