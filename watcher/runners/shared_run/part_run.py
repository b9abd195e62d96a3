"""A part of a shared consumer, delivered in a thread: a watcher's run of its own."""

from __future__ import annotations

import logging
import threading

from watcher.model.errors import LeaseHeldError, LeaseLostError, NotStartedError
from watcher.model.log_events.running import PART_GIVEN_BACK, PART_HELD_BY_OTHERS, PART_TAKEN
from watcher.runners.watcher_run.settings import RunSettings
from watcher.runners.watcher_run.startup import open_run
from watcher.tables.parts import Part

LOG = logging.getLogger("watcher")


class PartRun:
    """From the time that a part is asked for until it is given back."""

    def __init__(self, part: Part, settings: RunSettings) -> None:
        self.part = part
        self.settings = settings
        self.error: Exception | None = None
        """Why it has ended, where that ends the instance, too."""
        self._thread = threading.Thread(target=self._run, name=f"part-{part.number}", daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        """True when it delivers no more, and has given back the part's lease."""
        return not self._thread.is_alive()

    def stop(self, reason: str) -> None:
        """Ends it after the window in progress."""
        self.settings.lifecycle.stop(reason)

    def wait(self) -> None:
        """Blocks until it has ended."""
        self._thread.join()

    def _run(self) -> None:
        consumer = self.settings.config.consumer
        try:
            with open_run(self.settings, once=False) as run:
                PART_TAKEN.log(LOG, consumer=consumer)
                run.deliver_until_stopped()
        except (LeaseHeldError, LeaseLostError) as error:
            PART_HELD_BY_OTHERS.log(LOG, consumer=consumer, error=error)
        except NotStartedError as error:
            PART_GIVEN_BACK.log(LOG, consumer=consumer, error=error)
        except Exception as error:  # noqa: BLE001 (raised in the thread that waits)
            self.error = error
        finally:
            self.settings.metrics.forget_position()
