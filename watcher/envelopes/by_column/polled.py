"""The rows of a table that was polled as columns of changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from watcher.captures import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN, TableRows
from watcher.captures.changes import choose_operation, compute_change_ids
from watcher.envelopes.by_column.cells import CellStyle, NotByColumnError, render_cells
from watcher.envelopes.by_column.changes import CellColumns, merge_zeros
from watcher.model.change import Operation, Shape, ValueCapture
from watcher.model.window import Window


@dataclass(frozen=True)
class PolledChanges:
    """The rows of one table as changes: ``captures.changes.iterate_row_changes`` by column."""

    table_rows: TableRows
    style: CellStyle
    origin: pa.RecordBatch | None = None

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
    def operations(self) -> pa.Array:
        """What happened to each row."""
        rows = self.table_rows
        other = pa.repeat(str(choose_operation(rows, False)), self.rows)
        if rows.table.deleted is None:
            return other
        deleted = find_deleted(rows.batch.column(rows.table.deleted))
        return pc.if_else(deleted, str(Operation.DELETE), other)

    @cached_property
    def commits(self) -> pa.Array:
        """Microseconds since 1970; of a row that was never stamped, its snapshot's."""
        commits = self.table_rows.batch.column(COMMIT_TIMESTAMP_COLUMN).cast(pa.int64())
        return pc.fill_null(commits, self.window.end)

    @property
    def captured(self) -> pa.Array:
        """Polling has whole rows."""
        return pa.repeat(str(ValueCapture.NEW_ROW), self.rows)

    @cached_property
    def key(self) -> CellColumns:
        """The cells of the primary key."""
        return merge_zeros(self.shape, self._render(self.shape.primary_key))

    @cached_property
    def new(self) -> CellColumns:
        """The cells of all other columns. Raises NotByColumnError for one that the table lacks."""
        names = [name for name, _ in self.shape.columns]
        stamps = {COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN}
        others = [name for name in self.table_rows.batch.schema.names if name not in stamps]
        if len(others) != len(set(others)) or not set(others) <= set(names):
            raise NotByColumnError("a batch has columns that its table does not have")
        return self._render([name for name in others if name not in self.shape.primary_key])

    @property
    def old(self) -> CellColumns:
        """Polling knows no old values."""
        return {}

    @property
    def knows_old(self) -> pa.Array:
        """Polling knows no old values."""
        return pa.repeat(False, self.rows)

    def _render(self, names: tuple[str, ...] | list[str]) -> CellColumns:
        types, batch = dict(self.shape.columns), self.table_rows.batch
        if not set(names) <= types.keys():
            raise NotByColumnError("a column of the key is not read")
        return {name: render_cells(batch.column(name), types[name], self.style) for name in names}


def find_deleted(column: pa.Array) -> pa.Array:
    """Which rows a soft-delete column, BOOL or TIMESTAMP, marks."""
    if pa.types.is_boolean(column.type):
        return pc.fill_null(column, False)
    if pa.types.is_timestamp(column.type):
        return column.is_valid()
    if pa.types.is_string(column.type):
        return pc.fill_null(pc.not_equal(column, ""), False)
    raise NotByColumnError(f"a soft-delete column of type {column.type}")
