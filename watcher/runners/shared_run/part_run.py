"""A part of a shared consumer, delivered in a thread: a watcher's run of its own. Beside it what
the parts have in common: how tables are divided among them, and their turns."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence

from spanner_schema.model.schema import Schema
from watcher.consumers.divisions import Beginning, Divisions
from watcher.model.errors import LeaseHeldError, LeaseLostError, NotStartedError
from watcher.model.log_events.running import PART_GIVEN_BACK, PART_HELD_BY_OTHERS, PART_TAKEN
from watcher.runners.table_rules import warn_about_cleared
from watcher.runners.watcher_run.settings import RunSettings
from watcher.runners.watcher_run.startup import open_run
from watcher.tables.parts import Part, check_divisible, describe_division, keep_part
from watcher.tables.values import WatchedTable

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


class Turns:
    """A lock that is given in the order in which it was asked for: a run far behind, which asks
    again at once, does not keep the others waiting."""

    def __init__(self) -> None:
        self._waiting: deque[threading.Event] = deque()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        turn = threading.Event()
        with self._lock:
            self._waiting.append(turn)
            if self._waiting[0] is turn:
                turn.set()
        turn.wait()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._waiting.popleft()
            if self._waiting:
                self._waiting[0].set()


class Dividing:
    """Settles how tables are divided before anything of them is read."""

    def __init__(
        self, divisions: Divisions, shared: str, read_beginning: Callable[[], Beginning]
    ) -> None:
        self._divisions = divisions
        self._shared = shared
        self._read_beginning = read_beginning

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts of the consumer."""
        return self._divisions.parts

    def settle(self, schema: Schema, tables: Sequence[WatchedTable]) -> None:
        """As ``Divisions.settle``. Raises NotWatchableError for a table that cannot be divided."""
        for table in tables:
            check_divisible(schema, table)
        parts = len(self.parts)
        described = {each.name: describe_division(schema, each, parts) for each in tables}
        registered = self._divisions.settle(described, self._read_beginning)
        if registered is not None:
            warn_about_cleared(LOG, self._shared, registered, "use a backfill")

    def keep(
        self, schema: Schema, tables: Sequence[WatchedTable], part: Part
    ) -> Sequence[WatchedTable]:
        """The tables with the shards of one part."""
        self.settle(schema, tables)
        return [keep_part(table, part) for table in tables]
