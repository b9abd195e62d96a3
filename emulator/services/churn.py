"""Splits, merges and moves the partitions of change streams now and then, when it is asked for."""

from __future__ import annotations

import logging
import random
import threading

from emulator.errors import SpannerError
from emulator.faults import FaultInjector
from emulator.services.registry import Registry

LOG = logging.getLogger("emulator")


class Churner:
    """A thread that sleeps for good while no interval is set.

    ``seconds`` is the interval of the command line; that of the faults takes its place.
    """

    def __init__(self, registry: Registry, faults: FaultInjector, seconds: float) -> None:
        self._registry = registry
        self._faults = faults
        self._seconds = seconds
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="churn", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """Returns when the thread is done."""
        self._stopped = True
        self._faults.changed.set()
        self._thread.join()

    def _run(self) -> None:
        choice = random.Random(self._faults.faults.seed)
        changed = self._faults.changed
        while not self._stopped:
            seconds = self._faults.faults.change_stream_churn_seconds or self._seconds
            if changed.wait(seconds or None):
                changed.clear()
                choice = random.Random(self._faults.faults.seed)
            else:
                self._churn(choice)

    def _churn(self, choice: random.Random) -> None:
        """One round over all databases."""
        for database in list(self._registry.databases.values()):
            try:
                database.engine.churn_streams(choice)
            except SpannerError as error:
                # A long transaction holds the turn, or the database is closing.
                LOG.info(
                    "The partitions of %s stay as they are until the next round: %s",
                    database.name,
                    error,
                )
