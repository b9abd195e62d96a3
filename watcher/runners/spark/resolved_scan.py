"""A query in one schema, and what a plan of a window asks of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from spanner_schema.model.schema import Schema
from watcher.model.errors import NotWatchableError, TableNotFoundError
from watcher.planning.sources import SourceAnswers
from watcher.planning.windows import ReadSchema, Watched
from watcher.runners.spark.offsets import OffsetContent
from watcher.runners.spark.resolution import resolve_scan_again
from watcher.runners.spark.scan import Scan
from watcher.runners.spark.window_sources import WindowSource, make_window_source
from watcher.runners.table_rules import check_still_polled


@dataclass(frozen=True)
class ResolvedScan:
    """A query in one schema, and how its windows become batches there. ``existing`` names all
    tables of the schema."""

    scan: Scan
    windows: WindowSource
    existing: frozenset[str] = frozenset()

    @classmethod
    def start(cls, scan: Scan) -> ResolvedScan:
        """The query as it began."""
        return cls(scan, make_window_source(scan))

    @classmethod
    def resolve(cls, scan: Scan, schema: Schema) -> ResolvedScan:
        """The query in another schema."""
        existing = frozenset(table.name for table in schema.tables)
        return replace(cls.start(resolve_scan_again(scan, schema)), existing=existing)

    def check_tables(self, tables: Iterable[str]) -> None:
        """Raises NotWatchableError where a table that was read before still exists, but cannot be
        polled. Left out, it would count as new later, and be delivered again from its beginning."""
        if self.scan.stream is None:
            missing = frozenset(tables) - frozenset(self.scan.tables)
            check_still_polled(missing, self.existing, "exclude the table and use a new checkpoint")


@dataclass(frozen=True)
class QueryAnswers(SourceAnswers[ResolvedScan]):
    """Answers the questions of a plan, for a query at an offset."""

    content: OffsetContent
    resolve_at: Callable[[int], ResolvedScan]
    list_starts: Callable[[Iterable[str], OffsetContent], dict[str, int]]

    def watch(self, resolved: ResolvedScan) -> Watched[ResolvedScan]:
        """The tables of a schema, and where each begins."""
        return Watched(resolved, self.list_starts(resolved.scan.tables, self.content))

    def find_source(self, schema: ResolvedScan) -> WindowSource:
        """As ``SourceAnswers.find_source``."""
        return schema.windows

    def read_schema(self, question: ReadSchema) -> Watched[ResolvedScan] | None:
        """As ``Answers.read_schema``."""
        try:
            resolved = self.resolve_at(question.at)
            resolved.check_tables(self.content.tables or ())
        except (NotWatchableError, TableNotFoundError):
            if question.required:
                raise
            return None
        return self.watch(resolved)
