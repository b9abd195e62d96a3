"""Divides the tables of a shared consumer as its instances find them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from spanner_schema.model.schema import Schema
from watcher.consumers.divisions import Beginning, Divisions
from watcher.runners.table_rules import warn_about_cleared
from watcher.tables.parts import Part, check_divisible, describe_division, keep_part
from watcher.tables.values import WatchedTable

LOG = logging.getLogger("watcher")


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
