"""What follows from the schema at a read timestamp, computed once for each schema.

Spanner judges a read by the schema at its timestamp: a window is read with the tables, columns,
index and shards that are valid at its end.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from ddl.schema import Schema
from watcher.spanner.stream import QueryStream
from watcher.tables.schema_reader import SchemaEpoch, read_digest, read_epoch

Derived = TypeVar("Derived")
KEPT_MAX = 8


class Epochs(Generic[Derived]):
    """Follows the schema of a database. ``derive`` computes what is needed of a schema; what it
    raises (for a table that cannot be watched, say) is raised by ``at``."""

    def __init__(self, stream: QueryStream, derive: Callable[[Schema], Derived]) -> None:
        self._stream = stream
        self._derive = derive
        self._kept: OrderedDict[int, Derived] = OrderedDict()

    def latest(self) -> tuple[SchemaEpoch, Derived]:
        """The schema of a strong read, and what follows from it."""
        epoch = read_epoch(self._stream)
        return epoch, self._keep(epoch)

    def at(self, timestamp: int) -> Derived:
        """What follows from the schema at a read timestamp: one cheap call where the schema is
        known. The same object for the same schema.

        Raises VersionExpiredError past the version retention.
        """
        _, digest = read_digest(self._stream, timestamp)
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
