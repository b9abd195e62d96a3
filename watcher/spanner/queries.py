"""Where captures read: a database, how it serves the reads, and a stream of their own."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Any

from watcher.spanner.address import DatabaseAddress
from watcher.spanner.outages import STREAM_OUTAGE_SECONDS, Outages
from watcher.spanner.partitions import PartitionedQuery
from watcher.spanner.read_options import ReadOptions
from watcher.spanner.sessions import get_shared_session

NO_OPTIONS = ReadOptions()


@dataclass(frozen=True)
class QueryClient:
    """The handle that the captures of one watcher, or of one Spark reader, share.

    Picklable, and compared by what it names: an executor opens a stream of its own. A directed read
    of the address holds where ``options`` have none. ``outage_seconds`` is how long a call is
    retried while the server does not answer.
    """

    address: DatabaseAddress
    options: ReadOptions = NO_OPTIONS
    outage_seconds: float = STREAM_OUTAGE_SECONDS
    outages: Outages = field(init=False, repr=False, compare=False)
    _opened: list[PartitionedQuery] = field(
        init=False, repr=False, compare=False, default_factory=list
    )
    _opening: threading.Lock = field(
        init=False, repr=False, compare=False, default_factory=threading.Lock
    )

    def __post_init__(self) -> None:
        if self.options.directed_read is None and self.address.directed_read is not None:
            directed = replace(self.options, directed_read=self.address.directed_read)
            object.__setattr__(self, "options", directed)
        outages = Outages(str(self.address), self.outage_seconds)
        object.__setattr__(self, "outages", outages)

    def __reduce__(self) -> tuple[Any, ...]:
        return QueryClient, (self.address, self.options, self.outage_seconds)

    @property
    def stream(self) -> PartitionedQuery:
        """Runs the queries. Its client, channel and session are those of the process; what it
        counts, and when it stops, are its own."""
        with self._opening:
            if not self._opened:
                session = get_shared_session(self.address)
                self._opened.append(PartitionedQuery(session, self.options, self.outages))
            return self._opened[0]

    def fetch_read_timestamp(self) -> int:
        """The timestamp of a strong read, in microseconds since 1970; needs no table."""
        return self.stream.fetch_read_timestamp()
