"""Hears of a change of a stream without asking again and again: a query for each partition, open
until a timestamp. What it hears is not delivered: it says that a window is worth reading."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator

from watcher.captures.change_stream.record_values import (
    ChildPartition,
    DataRecord,
    Heartbeat,
    Record,
)
from watcher.model.errors import WatcherError
from watcher.model.log_events.reading import LISTENING_ENDED
from watcher.spanner.failures import CALL_ERRORS

LOG = logging.getLogger("watcher.listening")
PARTITIONS_MAX = 32
"""Each has a thread, and one of the streams that a connection may have (100)."""
OTHERS_MAX = 1_000
"""After so many records of a partition that the reader does not want, windows cost less."""

Query = Callable[[str | None, int], Iterator[Record]]
"""Reads a partition, or, without a token, the partitions, from a timestamp (inside) on."""


class Listening:
    """``heard``: something changed, or may have. ``futile``: hearing costs more than windows, or
    failed."""

    def __init__(
        self,
        query: Query,
        accepts: Callable[[DataRecord], bool],
        start: int,
        wake: Callable[[], object],
    ) -> None:
        """Hears what is committed after ``start``, and calls ``wake`` then. No call of Spanner: a
        thread makes it."""
        self._query = query
        self._accepts = accepts
        self._wake = wake
        self._closed = False
        self._partitions = 0
        self.heard = False
        self.futile = False
        self._follow(None, start + 1)

    def close(self) -> None:
        """Hears nothing more. Queries that are open end when a record or a heartbeat comes, or at
        their end."""
        self._closed = True

    def _follow(self, token: str | None, start: int) -> None:
        threading.Thread(
            target=self._listen, args=(token, start), name="listening", daemon=True
        ).start()

    def _listen(self, token: str | None, start: int) -> None:
        """Follows one query to its end."""
        others = 0
        try:
            for record in self._query(token, start):
                if self._closed or self.heard:
                    return
                if isinstance(record, Heartbeat):
                    continue
                if isinstance(record, ChildPartition) and token is None:
                    self._begin(record)
                elif isinstance(record, ChildPartition) or self._accepts(record):
                    self._note()
                else:
                    others += 1
                    if others >= OTHERS_MAX:
                        self._give_up("most changes are of other tables")
        except (*CALL_ERRORS, WatcherError) as error:
            self._give_up(str(error))

    def _begin(self, partition: ChildPartition) -> None:
        self._partitions += 1
        if self._partitions > PARTITIONS_MAX:
            self._give_up(f"the stream has more than {PARTITIONS_MAX} partitions")
        else:
            self._follow(partition.token, partition.start)

    def _give_up(self, why: str) -> None:
        """Windows find out what there is."""
        if not self._closed:
            LISTENING_ENDED.log(LOG, reason=why)
        self.futile = True
        self._note()

    def _note(self) -> None:
        self.heard = True
        if not self._closed:
            self._wake()
