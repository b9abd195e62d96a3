"""Rows of a polled table that Spanner does not have any more: found by comparing keys."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection

import pyarrow as pa

from watcher.captures.poll import PollCapture
from watcher.model.errors import VersionExpiredError
from watcher.model.log_events.copies import (
    COPY_HAS_ROWS_TWICE,
    COPY_LACKS_ROWS,
    DELETED_ROWS_REMOVED,
    KEYS_COMPARED_LATER,
    KEYS_NOT_COMPARED,
)
from watcher.replica.copies import (
    CopyState,
    OpenCopy,
    RemovingCopy,
    Replacement,
    ReplacingCopy,
    StoredCopy,
)
from watcher.replica.cuts.cut import Cut, describe_table
from watcher.replica.keys.sets import KeySet
from watcher.replica.verification.comparison import Depth
from watcher.replica.verification.copied_rows import CopiedRows
from watcher.replica.verification.replicas import OpenTable, ReplicaTable, VerifyOptions
from watcher.replica.verification.report import DifferenceKind
from watcher.spanner.key_values import Parts
from watcher.spanner.timestamps import format_timestamp
from watcher.tables.schema_reader import read_epoch

LOG = logging.getLogger("watcher.replica")
ROWS_MAX = 1_000_000
"""Of so many deleted rows a comparison removes the first ones; the next window has the others."""
DEPTH = Depth(ranges_max=1_000, shown_max=ROWS_MAX)
KIND = "deletes"


class DeletedKeys:
    """Of one replica: compares the keys of a table at the first window of this process, and then
    every so many seconds. The rules are K1 to K4 of docs/replica-protocol.md."""

    def __init__(
        self,
        database: str,
        consumer: str,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        depth: Depth = DEPTH,
        read: OpenCopy | None = None,
    ) -> None:
        """``read``: opens the copies to read their keys; None: what writes them reads them."""
        self._database = database
        self._consumer = consumer
        self._seconds = seconds
        self._clock = clock
        self._depth = depth
        self._read = read
        self._due: dict[str, float] = {}
        self._compared: dict[str, int] = {}

    def is_due(self, name: str) -> bool:
        """Whether the keys of a table are to be compared now."""
        return name not in self._due or self._clock() >= self._due[name]

    def note(self, name: str, end: int) -> None:
        """The copy of a table has no deleted rows at a window's end."""
        self._due[name] = self._clock() + self._seconds
        self._compared[name] = end

    def explain(self, name: str, end: int) -> tuple[str, ...]:
        """Which deleted rows a copy may have at a window's end, a clause for people; none where it
        has none."""
        since = self._compared.get(name)
        if since == end:
            return ()
        after = f"after {format_timestamp(since)}" if since is not None else "since it was loaded"
        return (f"rows that were deleted {after} may be in the copy",)

    def remove(
        self, copy: StoredCopy, capture: PollCapture, state: CopyState, end: int
    ) -> CopyState | None:
        """Removes the rows of a copy whose keys Spanner does not have at a window's end: its state;
        None where there are none, or where the end cannot be read any more. Raises ReplicaError,
        CopyConflictError."""
        name = capture.table.name
        try:
            return self._remove(copy, capture, state, end)
        except VersionExpiredError as error:
            KEYS_COMPARED_LATER.log(LOG, table=name, error=error)
            return None

    def _remove(
        self, copy: StoredCopy, capture: PollCapture, state: CopyState, end: int
    ) -> CopyState | None:
        table = self._open(copy, capture, state, end)
        if table is None:
            return None
        found = table.comparison.find()
        kinds = [kind for kind, _ in found.findings.shown]
        if missing := len(kinds) - kinds.count(DifferenceKind.EXTRA):
            COPY_LACKS_ROWS.log(LOG, table=capture.table.name, rows=missing)
        keys = {key for kind, key in found.findings.shown if kind is DifferenceKind.EXTRA}
        after = self._replace(copy, table, state, keys, end) if keys else None
        if found.complete and found.findings.count == len(found.findings.shown):
            self.note(capture.table.name, end)
        return after

    def _replace(
        self,
        copy: StoredCopy,
        table: OpenTable,
        state: CopyState,
        keys: Collection[Parts],
        end: int,
    ) -> CopyState | None:
        """Removes the rows of some keys. Those that Spanner has are there twice: a copy by Spark
        keeps them. None: nothing is to be removed."""
        rows = CopiedRows.of_table(table).read(keys, end)
        name = table.replica.table.name
        DELETED_ROWS_REMOVED.log(LOG, table=name, rows=len(keys) - rows.num_rows)
        if isinstance(copy, RemovingCopy):
            twice = {key for each in rows.to_batches() for key in table.order.read_batch(each)}
            if twice:
                COPY_HAS_ROWS_TWICE.log(LOG, table=name, rows=len(twice))
            gone = KeySet(table.order, set(keys) - twice)
            return copy.remove_keys(read_keys(table, gone), end) if gone.keys else None
        assert isinstance(copy, ReplacingCopy), "every copy that this process writes is one"
        return copy.replace_rows(
            Replacement(state.version, KeySet(table.order, keys), rows, KIND), end
        )

    def _open(
        self, copy: StoredCopy, capture: PollCapture, state: CopyState, end: int
    ) -> OpenTable | None:
        queries, name = capture.queries, capture.table.name
        schema = read_epoch(queries.stream, end).schema
        table = schema.table(name)
        if table is None:
            return None
        tables = {name: describe_table(capture.table, state.version)}
        cut = Cut(self._database, self._consumer, end, tables)
        options = VerifyOptions(depth=self._depth, keys_alone=True)
        keys = tuple(mask.key for mask in capture.table.masks if mask.key is not None)
        stored = copy if self._read is None else self._read(name)
        opened = ReplicaTable(queries, schema, table, stored, cut, keys).open(options)
        if isinstance(opened, str):
            KEYS_NOT_COMPARED.log(LOG, table=name, error=opened)
            return None
        return opened


def read_keys(table: OpenTable, keys: KeySet) -> pa.Table:
    """Some keys as the copy has them, in its types."""
    replica, names = table.replica, list(keys.columns)
    if not names:
        return pa.table({})
    there = replica.copy.scan(replica.described.version, names)
    found = [batch.filter(pa.array(keys.find(batch))) for batch in there]
    schema = pa.schema([table.copied.field(name) for name in names])
    return pa.Table.from_batches(found).cast(schema)
