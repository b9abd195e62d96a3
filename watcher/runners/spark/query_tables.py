"""The tables of a streaming query, in the schema at a timestamp, and where each begins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from watcher.model.errors import VersionExpiredError
from watcher.model.window import BEGINNING
from watcher.runners.spark.offsets import OffsetContent
from watcher.runners.spark.pages import Pages
from watcher.runners.spark.resolved_scan import ResolvedScan
from watcher.runners.spark.scan import Scan
from watcher.tables.epochs import Epochs


class QueryTables:
    """What a query that runs knows of its tables. ``latest`` is how they were when they were last
    looked at."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._epochs = Epochs(
            scan.queries.stream, lambda schema: ResolvedScan.resolve(scan, schema)
        )
        self._pages: tuple[int, Pages] | None = None
        self.latest = ResolvedScan.start(scan)

    def look_again(self, known: Sequence[str]) -> None:
        """The tables are not what they were. Raises an error if one that is known is gone."""
        _, self.latest = self._epochs.latest()
        self.latest.check_tables(known)

    def resolve_at(self, timestamp: int) -> ResolvedScan:
        """The query in the schema at a timestamp; before the version retention period, where rows
        are read as of now, in the current schema. Raises SchemaChangedError where the columns do
        not fit any more; one that was not there yet is NULL."""
        try:
            resolved = self._epochs.at(timestamp)
        except VersionExpiredError:
            _, resolved = self._epochs.latest()
        if timestamp >= self._scan.known_at:
            resolved.scan.check_columns(self._scan)
        return resolved

    def list_names(self, scan: Scan) -> tuple[str, ...] | None:
        """The tables as an offset names them, where the options may mean several."""
        return scan.tables if self._scan.options.tables is not None else None

    def list_starts(self, tables: Iterable[str], content: OffsetContent) -> dict[str, int]:
        """Where tables begin. One that is not in the start is new: all that lies in its index came
        after it was made watchable. Of a change stream it came after the start."""
        assert content.position is not None
        polled = self._scan.stream is None
        return {
            name: BEGINNING
            if polled and content.tables is not None and name not in content.tables
            else content.position
            for name in tables
        }

    def open_pages(self, at: int, tables: Sequence[str] | None) -> Pages:
        """The pages of the tables as they were at a timestamp."""
        if self._pages is None or self._pages[0] != at:
            self._pages = (at, Pages(self.resolve_at(at).scan.select_tables(tables)))
        return self._pages[1]
