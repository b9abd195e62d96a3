"""Hands changes to a sink that may fail: retries, then dead letters or the end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from watcher.model.change import Change
from watcher.model.errors import (
    ConfigurationError,
    DeliveryError,
    EnvelopeError,
    FileWriteError,
    OutputClosedError,
    OutputWriteError,
    ReplicaError,
    SinkUnavailableError,
)
from watcher.model.log_events.delivery import CALLBACK_RETRIED, CHANGE_SKIPPED
from watcher.sinks.contract import ChangeSink, SinkAround
from watcher.sinks.dead_letters import append_dead_letter
from watcher.sinks.refusals import RefusedChangesError
from watcher.spanner.outages import iterate_pauses

LOG = logging.getLogger("watcher.delivery")
PAUSE_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """How often a change is tried again, after pauses of up to ``backoff_seconds`` (doubled each
    time), and what then: ``dead_letters`` None stops. Errors of a callback may quote the row: they
    are logged whole only with ``log_values``."""

    retries: int = 5
    backoff_seconds: float = 0.5
    dead_letters: Path | None = None
    log_values: bool = False

    def describe(self, error: Exception) -> str:
        """An error as it may be logged."""
        return repr(error) if self.log_values else type(error).__name__


def ignore() -> None:
    """Nothing to do."""


def ignore_error(_: DeliveryError) -> None:
    """Nobody is to hear of it."""


class RetryingSink(SinkAround):
    """A ``ChangeSink`` around another: nothing is dropped silently."""

    def __init__(
        self,
        sink: ChangeSink,
        policy: DeliveryPolicy,
        wait: Callable[[float], object] = time.sleep,
        on_retry: Callable[[DeliveryError], object] = ignore_error,
        on_skip: Callable[[], object] = ignore,
        on_recovery: Callable[[], object] = ignore,
        check: Callable[[], None] = ignore,
    ) -> None:
        """``check`` raises when this instance must not deliver any more: it is called before every
        attempt. ``on_retry`` is told why a change was refused, ``on_skip`` counts; ``on_recovery``
        is called when a change was delivered at another attempt than the first."""
        super().__init__(sink)
        self._sink = sink
        self._policy = policy
        self._wait = wait
        self._on_retry = on_retry
        self._on_skip = on_skip
        self._on_recovery = on_recovery
        self._check = check
        self._skipped: set[str] = set()
        """Refused changes of a window that was rolled back: it comes again without them."""

    @property
    def skipped(self) -> int:
        """How many changes are left out when the window that was rolled back comes again."""
        return len(self._skipped)

    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``. Raises DeliveryError when it is not to be skipped."""
        self.deliver(change.id, lambda: change, partial(self._sink.write_change, change))

    def deliver(
        self, change_id: str, find_change: Callable[[], Change], write: Callable[[], None]
    ) -> None:
        """As ``write_change``, by a function that writes the change to the sink; ``find_change``
        gives the change where it has to be named or skipped."""
        if change_id in self._skipped:
            return None
        pauses = iterate_pauses(self._policy.backoff_seconds, PAUSE_SECONDS_MAX)
        for retries_left in range(self._policy.retries, -1, -1):
            self._check()
            try:
                write()
            except (OutputClosedError, OutputWriteError):
                raise  # no other try would find a reader, or space
            except EnvelopeError as error:
                # It would lack the same the next time.
                if self._policy.dead_letters is None:
                    raise
                return self._give_up(find_change(), error)
            except RefusedChangesError as error:
                return self._skip_refused(error)
            except (
                ConfigurationError,
                DeliveryError,
                FileWriteError,
                ReplicaError,
                SinkUnavailableError,
            ):
                # It is not about this change: what was taken before it is concerned, too.
                raise
            except Exception as error:  # noqa: BLE001 (the callback is the user's own)
                if not retries_left:
                    return self._give_up(find_change(), error)
                self._pause(change_id, error, next(pauses))
            else:
                if retries_left < self._policy.retries:
                    self._on_recovery()
                return None
        return None

    def flush(self) -> None:
        """As ``ChangeSink.flush``. Raises DeliveryError for refused changes that are not to be
        skipped."""
        try:
            self._sink.flush()
        except RefusedChangesError as error:
            self._skip_refused(error)
        self._skipped.clear()

    def _skip_refused(self, error: RefusedChangesError) -> None:
        """Writes refused changes to the dead letters. Raises the error where there are none, and
        SinkUnavailableError where all was rolled back with them."""
        if self._policy.dead_letters is None:
            raise error
        for refusal in error.refusals:
            self._skip(self._policy.dead_letters, refusal.change, refusal.reason, refusal.reason)
        if error.rolled_back:
            self._skipped |= {refusal.change.id for refusal in error.refusals}
            raise SinkUnavailableError(
                f"delivering the window again without {len(error.refusals)} refused changes"
            ) from error

    def _pause(self, change_id: str, error: Exception, seconds: float) -> None:
        CALLBACK_RETRIED.log(
            LOG, change=change_id, error=self._policy.describe(error), seconds=seconds
        )
        self._on_retry(
            DeliveryError(
                f"change {change_id} is refused and tried again ({self._policy.describe(error)})"
            )
        )
        self._wait(seconds)

    def _give_up(self, change: Change, error: Exception) -> None:
        description = self._policy.describe(error)
        if self._policy.dead_letters is None:
            raise DeliveryError(
                f"the callback failed {self._policy.retries + 1} times for change {change.id} of"
                f" {change.table}, the last time with {description}; fix the callback and restart:"
                " the change is delivered again"
            ) from error
        self._skip(self._policy.dead_letters, change, repr(error), description)

    def _skip(self, dead_letters: Path, change: Change, error: str, description: str) -> None:
        append_dead_letter(dead_letters, change, error)
        self._on_skip()
        CHANGE_SKIPPED.log(LOG, change=change.id, dead_letters=dead_letters, error=description)
