"""Delivers the windows of a source to a sink, one after another: what a scheduled poller does."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

import pyarrow as pa

from watcher.captures import COMMIT_TIMESTAMP_COLUMN, Changed, Look, Source, StreamRows
from watcher.errors import VersionExpiredError
from watcher.failpoints import failpoint
from watcher.positions import Move, Position, Positions
from watcher.runners.sinks import Sink
from watcher.stream import timestamp_text
from watcher.window import Window

LOG = logging.getLogger("watcher")


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one poll did. ``more`` says that there may be more already."""

    end: int
    rows: Mapping[str, int]
    more: bool

    @property
    def total(self) -> int:
        """Rows over all tables."""
        return sum(self.rows.values())


class Watching:
    """A consumer of a source. ``poll`` delivers one window and then saves its end.

    ``guard`` is called before each batch and raises when this instance may not deliver any more.

    At least once: after a crash between delivery and saving the window is delivered again, with the
    same rows if its end is the same, else with the rows of a longer window.
    """

    def __init__(
        self,
        source: Source,
        positions: Positions,
        consumer: str,
        sink: Sink,
        max_rows: int,
        owner: str | None = None,
        transactions: bool = False,
        guard: Callable[[], None] | None = None,
    ) -> None:
        self._source = source
        self._positions = positions
        self._consumer = consumer
        self._sink = sink
        self._max_rows = max_rows
        self._owner = owner
        self._transactions = transactions
        self._guard = guard

    @property
    def source(self) -> Source:
        """What is watched now."""
        return self._source

    def keep_in(self, positions: Positions) -> None:
        """Goes on with other positions: the same ones, over a new connection."""
        self._positions = positions

    def replace_source(self, source: Source, start: int, filled: Mapping[str, int]) -> None:
        """Goes on with other tables; those that are new begin at ``start``, or where their backfill
        in ``filled`` ends."""
        self._source = source
        self.register(start, filled)

    def register(self, start: int, filled: Mapping[str, int] | None = None) -> dict[str, int]:
        """Registers the consumer at a position in every table where it has none; its positions.

        Before anything is read, so that clearing never overtakes a consumer that is just starting.
        """
        kept = self._positions.of(self._consumer)
        new = [table for table in self._source.tables if table not in kept]
        starts = {table: (filled or {}).get(table, start) for table in new}
        moves = [Move(Position(self._consumer, table, starts[table]), None) for table in new]
        self._positions.save_all(moves, self._owner)
        return {table: (kept | starts)[table] for table in self._source.tables}

    def poll(self, until: int | None = None) -> Delivered:
        """Delivers what changed since the positions, up to ``until`` where that is earlier."""
        kept = self._positions.of(self._consumer)
        starts = {table: kept[table] for table in self._source.tables if table in kept}
        if not starts:
            return Delivered(0, {}, more=False)
        look = self._source.look(starts)
        end = look.end if until is None else max(min(look.end, until), *starts.values())
        cut = self._cut(starts, look, end)
        changed = look.changed
        if cut < look.end:
            changed = self._changed_at(cut, starts, changed)
        rows = self._deliver({table: starts[table] for table in starts if table in changed}, cut)
        self._sink.resolved(cut)
        self._sink.flush()
        failpoint("after-delivery-before-position")
        self._save(starts, cut)
        LOG.info("window to %s: %d rows", timestamp_text(cut), sum(rows.values()))
        return Delivered(cut, rows, more=cut < end)

    def _changed_at(
        self, cut: int, starts: Mapping[str, int], changed: frozenset[str]
    ) -> frozenset[str]:
        """The tables that had changed at a cut: what was deleted since is still there then. Past
        version garbage collection those that have changed now, because they are read as of now."""
        try:
            return self._source.look(starts, cut).changed
        except VersionExpiredError:
            return changed

    def _cut(self, starts: Mapping[str, int], look: Look, end: int) -> int:
        """Where the window ends: with about ``max_rows`` rows at most."""
        whole = {
            table: Window(start, max(start, end))
            for table, start in starts.items()
            if table in look.changed
        }
        return self._source.cut(whole, self._max_rows) if whole else end

    def _deliver(self, starts: Mapping[str, int], end: int) -> dict[str, int]:
        windows = {table: Window(start, end) for table, start in starts.items() if start < end}
        rows: dict[str, int] = defaultdict(int)
        batches = self._source.read(windows)
        for each in by_transaction(batches) if self._transactions else batches:
            if self._guard is not None:
                self._guard()
            self._sink.write(each)
            for table, count in each.counts.items():
                rows[table] += count
        return dict(rows)

    def _save(self, starts: Mapping[str, int], end: int) -> None:
        self._positions.save_all(
            [
                Move(Position(self._consumer, table, end), start)
                for table, start in starts.items()
                if start < end
            ],
            self._owner,
        )


def by_transaction(batches: Iterator[Changed]) -> Iterator[Changed]:
    """What changed in a window, transaction by transaction, over all tables and partitions.

    Holds the window, which ``max_rows`` bounds. Spanner: disjoint transactions may share a commit
    timestamp; polling cannot tell them apart, a change stream can.
    """
    parts: list[tuple[int, str, int, Changed]] = []
    for number, rows in enumerate(batches):
        parts += ((*of, number, part) for of, part in transactions_of(rows))
    for *_, rows in sorted(parts, key=lambda part: part[:3]):
        yield rows


def transactions_of(rows: Changed) -> Iterator[tuple[tuple[int, str], Changed]]:
    """The transactions of a batch: commit timestamp and, from a change stream, id."""
    streamed = isinstance(rows, StreamRows)
    stamp = "commit_timestamp" if streamed else COMMIT_TIMESTAMP_COLUMN
    names = [stamp, "transaction_id", "record_sequence"] if streamed else [stamp]
    ordered = rows.batch.sort_by([(name, "ascending") for name in names])
    stamps = ordered.column(stamp).cast(pa.int64()).to_pylist()
    ids = ordered.column("transaction_id").to_pylist() if streamed else [""] * len(stamps)
    first = 0
    for of, run in groupby(zip(stamps, ids, strict=True)):
        count = len(list(run))
        yield of, replace(rows, batch=ordered.slice(first, count))
        first += count
