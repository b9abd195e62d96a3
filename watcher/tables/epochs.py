"""What follows from the schema at a read timestamp, computed once for each schema.

Spanner judges a read by the schema at its timestamp: a window is read with the tables, columns,
index and shards that are valid at its end, a row of a change stream with those at its commit.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable
from operator import itemgetter
from typing import Generic, TypeVar

from spanner_schema.model.schema import Schema
from watcher.spanner.stream import QueryStream
from watcher.tables.schema_reader import SchemaEpoch, read_digest, read_epoch, start_digest

Derived = TypeVar("Derived")
KEPT_MAX = 8
LOOKS_MAX = 256


class Epochs(Generic[Derived]):
    """Follows the schema of a database. ``derive`` computes what is needed of a schema; what it
    raises (for a table that cannot be watched, say) is raised by ``at``."""

    def __init__(self, stream: QueryStream, derive: Callable[[Schema], Derived]) -> None:
        self._stream = stream
        self._derive = derive
        self._kept: OrderedDict[int, Derived] = OrderedDict()
        self._looks: list[tuple[int, int]] = []
        """Timestamps at which the schema was looked at, in order, and its digests then."""
        self._asked: tuple[int, Callable[[], int]] | None = None
        """A look that is under way: its timestamp, and what waits for its digest."""

    def latest(self) -> tuple[SchemaEpoch, Derived]:
        """The schema of a strong read, and what follows from it."""
        epoch = read_epoch(self._stream)
        return epoch, self._keep(epoch)

    def prepare(self, timestamp: int) -> None:
        """Begins what ``at`` does, without waiting: it is going to be asked, soon and probably."""
        self._asked = timestamp, start_digest(self._stream, timestamp)

    def at(self, timestamp: int) -> Derived:
        """What follows from the schema at a read timestamp: one cheap call where the schema is
        known. The same object for the same schema.

        Raises VersionExpiredError past the version retention.
        """
        # assumes: columns-at-timestamp
        # assumes: dropped-table-readable
        # assumes: renamed-table-readable
        asked, self._asked = self._asked, None
        if asked is not None and asked[0] == timestamp:
            return self._recall(asked[1](), timestamp)
        _, digest = read_digest(self._stream, timestamp)
        return self._recall(digest, timestamp)

    def inside(self, timestamp: int, end: int) -> Derived:
        """As ``at``, of a timestamp in a window that ends at ``end``: no call where the schema is
        the same at two looks around it, so that a window has one look if its schema did not change.

        A schema that was there only between two equal ones may be missed: who finds out asks
        ``at``.
        """
        if self._find_digest(timestamp) is None:
            self._look(max(timestamp, end))
        digest = self._find_digest(timestamp)
        if digest is None:
            digest = self._look(timestamp)
        return self._recall(digest, timestamp)

    def _find_digest(self, timestamp: int) -> int | None:
        """The digest of the schema at a timestamp, as far as looks around it agree."""
        after = bisect_left(self._looks, timestamp, key=itemgetter(0))
        if after == len(self._looks):
            return None
        at, digest = self._looks[after]
        known = at == timestamp or (after > 0 and self._looks[after - 1][1] == digest)
        return digest if known else None

    def _look(self, timestamp: int) -> int:
        _, digest = read_digest(self._stream, timestamp)
        insort(self._looks, (timestamp, digest))
        del self._looks[:-LOOKS_MAX]
        return digest

    def _recall(self, digest: int, timestamp: int) -> Derived:
        if digest in self._kept:
            self._kept.move_to_end(digest)
            return self._kept[digest]
        return self._keep(read_epoch(self._stream, timestamp))

    def _keep(self, epoch: SchemaEpoch) -> Derived:
        if epoch.digest not in self._kept:
            self._kept[epoch.digest] = self._derive(epoch.schema)
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        return self._kept[epoch.digest]
