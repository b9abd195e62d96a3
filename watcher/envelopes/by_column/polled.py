"""The rows of a table that was polled as columns of changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from watcher.captures import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN, TableRows
from watcher.captures.changes import compute_change_ids
from watcher.envelopes.by_column.cells import render_cells
from watcher.envelopes.by_column.changes import CellColumns, merge_zeros
from watcher.envelopes.values import CellStyle
from watcher.model.change import Shape
from watcher.model.window import Window


@dataclass(frozen=True)
class PolledChanges:
    """The rows of one table as changes: ``captures.changes.iterate_row_changes`` by column."""

    table_rows: TableRows
    style: CellStyle

    @property
    def rows(self) -> int:
        """How many there are."""
        return int(self.table_rows.batch.num_rows)

    @property
    def window(self) -> Window:
        """The window that they were read in."""
        return self.table_rows.window

    @cached_property
    def shape(self) -> Shape:
        """The columns of the table."""
        table = self.table_rows.table
        return Shape(table.name, table.columns, table.primary_key)

    @cached_property
    def ids(self) -> pa.Array:
        """Their ids."""
        return compute_change_ids(self.table_rows)

    @cached_property
    def commits(self) -> pa.Array:
        """Microseconds since 1970; of a row that was never stamped, its snapshot's."""
        commits = self.table_rows.batch.column(COMMIT_TIMESTAMP_COLUMN).cast(pa.int64())
        return pc.fill_null(commits, self.window.end)

    @property
    def shards(self) -> pa.Array:
        """Their shards; NULL where they are not numbers."""
        shards = self.table_rows.batch.column(SHARD_ID_COLUMN)
        return shards if pa.types.is_integer(shards.type) else pa.nulls(self.rows, pa.int64())

    @cached_property
    def key(self) -> CellColumns:
        """The cells of the primary key."""
        return merge_zeros(self.shape, self._render(self.shape.primary_key))

    @cached_property
    def new(self) -> CellColumns:
        """The cells of all other columns."""
        others = {COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN, *self.shape.primary_key}
        return self._render(n for n in self.table_rows.batch.schema.names if n not in others)

    @property
    def old(self) -> CellColumns:
        """Polling knows no old values."""
        return {}

    def get_origin(self, attribute: str) -> pa.Array:
        """Polling knows no transactions."""
        raise KeyError(attribute)

    def _render(self, names: Iterable[str]) -> CellColumns:
        types, batch = dict(self.shape.columns), self.table_rows.batch
        return {name: render_cells(batch.column(name), types[name], self.style) for name in names}


def find_deleted(rows: TableRows) -> pa.Array:
    """Which rows the soft-delete column, BOOL or TIMESTAMP, marks; none where there is no such
    column."""
    if rows.table.deleted is None:
        return pa.repeat(False, rows.batch.num_rows)
    column = rows.batch.column(rows.table.deleted)
    if pa.types.is_boolean(column.type):
        return pc.fill_null(column, False)
    if pa.types.is_timestamp(column.type):
        return column.is_valid()
    if pa.types.is_string(column.type):
        return pc.fill_null(pc.not_equal(column, ""), False)
    raise TypeError(f"a soft-delete column cannot be a {column.type}")
