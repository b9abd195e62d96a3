"""A sink that may fail: tried again after a pause, then the end, or the dead-letter file."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from watcher.change import Change
from watcher.envelopes.plain import plain_change
from watcher.errors import ConfigurationError, DeliveryError, EnvelopeError
from watcher.runners.sinks import ChangeSink

LOG = logging.getLogger("watcher.delivery")
BACKOFF_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """How often a change is tried again, after which pause (doubled each time), and what then:
    ``dead_letters`` None stops. Errors of a callback may quote the row: they are logged whole only
    with ``log_values``."""

    retries: int = 5
    backoff_seconds: float = 0.5
    dead_letters: Path | None = None
    log_values: bool = False

    def shown(self, error: Exception) -> str:
        """An error as it may be logged."""
        return repr(error) if self.log_values else type(error).__name__


class Delivering:
    """A ``ChangeSink`` around another: nothing is dropped silently."""

    def __init__(
        self,
        sink: ChangeSink,
        policy: DeliveryPolicy,
        wait: Callable[[float], object] = time.sleep,
        on_retry: Callable[[], object] = lambda: None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """``check`` raises when this instance may not deliver any more: it is called before every
        attempt."""
        self._sink = sink
        self._policy = policy
        self._wait = wait
        self._on_retry = on_retry
        self._check = check
        self.skipped = 0
        self.retried = 0

    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``. Raises DeliveryError when it is not to be skipped."""
        pause = self._policy.backoff_seconds
        for attempt in range(self._policy.retries + 1):
            self._check()
            try:
                self._sink.write_change(change)
            except EnvelopeError as error:
                # It would lack the same the next time.
                if self._policy.dead_letters is None:
                    raise
                self._give_up(change, error)
                return
            except Exception as error:  # noqa: BLE001 (the callback is the user's own)
                if attempt == self._policy.retries:
                    self._give_up(change, error)
                    return
                shown = self._policy.shown(error)
                LOG.warning("change %s was refused, again in %.1f s: %s", change.id, pause, shown)
                self.retried += 1
                self._on_retry()
                self._wait(pause)
                pause = min(pause * 2, BACKOFF_SECONDS_MAX)
            else:
                return

    def resolved(self, micros: int) -> None:
        """As ``ChangeSink.resolved``."""
        self._sink.resolved(micros)

    def flush(self) -> None:
        """As ``ChangeSink.flush``."""
        self._sink.flush()

    def _give_up(self, change: Change, error: Exception) -> None:
        if self._policy.dead_letters is None:
            raise DeliveryError(
                f"change {change.id} of {change.table} was refused {self._policy.retries + 1}"
                f" times, the last time with {self._policy.shown(error)};"
                " mend the callback and start again: it comes again"
            ) from error
        append_dead_letter(self._policy.dead_letters, change, error)
        self.skipped += 1
        shown = self._policy.shown(error)
        LOG.error("change %s went to %s: %s", change.id, self._policy.dead_letters, shown)


def append_dead_letter(path: Path, change: Change, error: Exception) -> None:
    """Adds a change to the file, on the disk before this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(plain_change(change) | {"error": repr(error)}) + "\n")
        file.flush()
        os.fsync(file.fileno())


def dead_letters(path: Path) -> Iterator[dict[str, object]]:
    """The changes of a dead-letter file. Raises ConfigurationError with the line that is none."""
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    for number, line in enumerate(lines, start=1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise ConfigurationError(f"{path}:{number} is no dead letter: {error}") from error
