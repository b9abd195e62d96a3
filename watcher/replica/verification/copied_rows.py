"""Rows of Spanner at a timestamp, by their keys, as a copy has them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Table
from watcher.captures.masked_values import mask_batch
from watcher.captures.poll import convert_column
from watcher.captures.row_filters import find_kept
from watcher.replica.copies import STAMP_COLUMNS, is_dropped
from watcher.replica.cuts.cut import RowSource
from watcher.replica.keys.order import KeyOrder
from watcher.replica.rows import find_deleted
from watcher.replica.verification.replicas import OpenTable, is_exact
from watcher.spanner.key_values import Parts, write_key
from watcher.spanner.queries import QueryClient
from watcher.spanner.results.columns import build_schema, decode_batches
from watcher.spanner.results.supported_types import Nanoseconds
from watcher.tables.masks import Mask
from watcher.tables.predicates import RowFilter

KEYS_A_READ = 1_000
NUMBERS = (TypeCode.NUMERIC, TypeCode.PG_NUMERIC)


@dataclass(frozen=True)
class CopiedRows:
    """Of a table with the columns of its copy, without softly deleted rows: ``deleted`` is the
    column that marks them. ``row_filter`` leaves rows out, ``masks`` replace values."""

    queries: QueryClient
    table: Table
    order: KeyOrder
    copied: pa.Schema
    source: RowSource
    deleted: str | None
    row_filter: RowFilter | None = None
    masks: tuple[Mask, ...] = ()

    @classmethod
    def of_table(cls, table: OpenTable) -> CopiedRows:
        """Those of a table that is compared."""
        replica = table.replica
        source = replica.described.source or RowSource()
        return cls(
            replica.queries,
            replica.table,
            table.order,
            table.copied,
            source,
            replica.described.deleted,
            replica.row_filter,
            replica.list_masks(table.copied.names),
        )

    def read(self, keys: Collection[Parts], at: int) -> pa.Table:
        """The rows of some keys at a timestamp. Raises VersionExpiredError."""
        listed = list(keys)
        parts = (listed[i : i + KEYS_A_READ] for i in range(0, len(listed), KEYS_A_READ))
        batches = [batch for some in parts for batch in self._read_some(some, at)]
        return pa.Table.from_batches(batches, self.copied)

    def _read_some(self, keys: Collection[Parts], at: int) -> Iterator[pa.RecordBatch]:
        columns = self._list_columns()
        types = [each.type for each in self.order.columns]
        sent = [write_key(key, types) for key in keys]
        stream = self.queries.stream
        results = stream.read_keys(self.table.name, list(columns), sent, at)
        nanoseconds, key = self._nanoseconds, self.order.names
        schema = build_schema(columns.items(), nanoseconds, key)
        for batch in decode_batches(results, schema, list(columns.values()), nanoseconds, key):
            there = pc.invert(find_deleted(batch, self.deleted))
            if self.row_filter is not None:
                there = pc.and_(there, find_kept(self.row_filter, batch))
            yield mask_batch(self._arrange(batch.filter(there)), self.masks)

    def _list_columns(self) -> dict[str, Type]:
        """The columns that are read: those of the copy, and what it follows from."""
        types = {column.name: column.type for column in self.table.columns}
        unread = {mask.column for mask in self.masks if not mask.reads_column}
        own = (field.name for field in self.copied if self._is_own(field))
        names = [name for name in own if name not in unread]
        more = [name for name in (self.source.stamp, self.deleted) if name is not None]
        more += [] if self.row_filter is None else [name for name, _ in self.row_filter.columns]
        columns = {name: types[name] for name in dict.fromkeys((*names, *more))}
        for name in names:
            if types[name].code in NUMBERS and pa.types.is_string(self.copied.field(name).type):
                columns[name] = Type(TypeCode.STRING)
        return columns

    def _is_own(self, field: pa.Field) -> bool:
        return field.name not in STAMP_COLUMNS and not is_dropped(field)

    @property
    def _nanoseconds(self) -> Nanoseconds:
        """How the copy keeps TIMESTAMPs that are not in its key."""
        exact = any(
            (column.type.element or column.type).code is TypeCode.TIMESTAMP
            and column.name in self.copied.names
            and column.name not in self.order.names
            and is_exact(self.copied.field(column.name).type)
            for column in self.table.columns
        )
        return Nanoseconds.STRING if exact else Nanoseconds.TRUNCATE

    def _arrange(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [self._take(batch, field) for field in self.copied]
        return pa.RecordBatch.from_arrays(arrays, schema=self.copied)

    def _take(self, batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
        if field.name in batch.schema.names and self._is_own(field):
            return convert_column(batch.column(field.name), field.type)
        stamp = self.source.stamp if field.name in STAMP_COLUMNS else None
        if stamp is None:
            return pa.nulls(batch.num_rows, field.type)
        return convert_column(batch.column(stamp), field.type)
