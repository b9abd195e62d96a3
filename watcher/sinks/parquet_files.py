"""Changes by table and time in the columns of their table, as Parquet."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spanner_schema.model.column_types import Type
from watcher.captures import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN, TableRows
from watcher.captures.change_types import (
    CHANGE_TYPE_COLUMN,
    CHANGE_TYPES,
    describe_rows,
    name_change_types,
)
from watcher.captures.changes import compute_change_ids, stamp_rows
from watcher.envelopes.batches import CHANGE_ID_COLUMN
from watcher.model.change import Change, Operation
from watcher.model.errors import DeliveryError
from watcher.replica.copies import DELETED_COLUMN, STAMP_COLUMN
from watcher.replica.rows import find_deleted
from watcher.settings.destinations import FilesDestination
from watcher.settings.watcher import WatchConfig
from watcher.sinks.table_rows import arrange_changes, group_by_shape
from watcher.sinks.timed_files import TimedFiles
from watcher.spanner.results.columns import TIMESTAMP
from watcher.spanner.results.supported_types import Nanoseconds

OWN_FIELDS = (
    pa.field(CHANGE_TYPE_COLUMN, pa.string()),
    pa.field(COMMIT_TIMESTAMP_COLUMN, TIMESTAMP),
    pa.field(CHANGE_ID_COLUMN, pa.string()),
    pa.field("_transaction_id", pa.string()),
    pa.field("_record_sequence", pa.string()),
)
"""Before the columns of the table; polling does not know the last two."""
WRITTEN = b"spanner-watcher.written"
"""The key of a file's metadata that says how far its folder is written."""


class Rows:
    """The ``Content`` of a file: rows of one table, whose columns may change on the way."""

    def __init__(self, nanoseconds: Nanoseconds) -> None:
        self._nanoseconds = nanoseconds
        self._tables: list[pa.Table] = []
        self._changes: list[Change] = []

    @property
    def is_empty(self) -> bool:
        """As ``Content.is_empty``."""
        return not self._tables and not self._changes

    def add_rows(self, rows: pa.Table) -> None:
        """Adds rows that have the own fields, too."""
        self._arrange()
        self._tables.append(rows)

    def add_change(self, change: Change) -> None:
        """Adds a change."""
        self._changes.append(change)

    def finish(self, written: int) -> bytes:
        """As ``Content.finish``: a column that came within the window is NULL before. Raises
        DeliveryError for one whose types before and after have none in common."""
        self._arrange()
        try:
            rows = pa.concat_tables(self._tables, promote_options="permissive")
        except pa.ArrowTypeError as error:
            raise DeliveryError(
                f"a column has changed its type within one window ({error}), and has one type in a"
                " file of Parquet: deliver it with --max-rows 1 (max_rows = 1), so that a window"
                " ends before the change, and go on as before then"
            ) from error
        rows = rows.replace_schema_metadata({WRITTEN: str(written)})
        file = io.BytesIO()
        pq.write_table(rows, file, compression="zstd")
        return file.getvalue()

    def _arrange(self) -> None:
        """Changes with the same columns that follow one another become a table."""
        changes, self._changes = self._changes, []
        for shape, some in group_by_shape(changes):
            rows = arrange_changes(some, shape, self._nanoseconds)
            commits = rows.column(STAMP_COLUMN)
            cells = rows.drop_columns([STAMP_COLUMN, DELETED_COLUMN])
            self._tables.append(put_before(describe(some, commits), cells))


class ParquetFiles(TimedFiles[Rows]):
    """``TimedFiles`` of columns, which is also a ``TableBatchSink``."""

    suffix = ".parquet"

    def __init__(self, destination: FilesDestination, config: WatchConfig) -> None:
        """As ``TimedFiles``."""
        super().__init__(destination, config)
        self._nanoseconds = config.nanoseconds

    def write_rows(self, rows: TableRows) -> bool:
        """As ``TableBatchSink.write_rows``."""
        table = rows.table.name
        self._refuse_own_names(table, rows.table.columns)
        stamped = stamp_rows(rows)
        commits = stamped.batch.column(COMMIT_TIMESTAMP_COLUMN)
        cells = stamped.batch.drop_columns([COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN])
        deleted = find_deleted(stamped.batch, rows.table.deleted)
        types = pc.if_else(deleted, CHANGE_TYPES[Operation.DELETE], describe_rows(rows))
        unknown = pa.nulls(rows.batch.num_rows, pa.string())
        own = [types, commits.cast(TIMESTAMP), compute_change_ids(rows), unknown, unknown]
        described = put_before(own, pa.Table.from_batches([cells]))
        names = pa.repeat(pa.scalar(table), described.num_rows)
        for following, inside in self._find_files(names, commits, rows.backfill):
            following.content.add_rows(described.filter(inside))
        return True

    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``. Raises DeliveryError for a table with a column that has
        the name of one of the own fields."""
        self._refuse_own_names(change.table, change.shape.columns)
        if (following := self._find_file(change)) is not None:
            following.content.add_change(change)

    def _refuse_own_names(self, table: str, columns: Iterable[tuple[str, Type]]) -> None:
        """Raises DeliveryError. Readers of folders take ``hour=...`` for a column, in place of the
        one in the file, whatever its case."""
        own = {*(field.name for field in OWN_FIELDS), self._partition_by}
        for name, _ in columns:
            if name.casefold() in own:
                raise DeliveryError(
                    f"{table} has a column {name}, which in files of Parquet is a column of"
                    " spanner-watcher: leave it out, with exclude_columns"
                )

    def _begin(self) -> Rows:
        return Rows(self._nanoseconds)

    def _read_written(self, file: BinaryIO) -> int | None:
        try:
            metadata = pq.read_metadata(file).metadata or {}
        except pa.ArrowInvalid:
            return None
        return int(metadata[WRITTEN]) if WRITTEN in metadata else None


def describe(changes: Sequence[Change], commits: pa.ChunkedArray) -> list[pa.Array]:
    """The own fields of changes."""
    origins = [change.origin for change in changes]
    operations, *others = (
        pa.array(values, pa.string())
        for values in (
            [str(change.operation) for change in changes],
            [change.id for change in changes],
            [None if origin is None else origin.transaction_id for origin in origins],
            [None if origin is None else origin.record_sequence for origin in origins],
        )
    )
    return [name_change_types(operations), commits, *others]


def put_before(own: Sequence[pa.Array], cells: pa.Table) -> pa.Table:
    """The own fields before the columns of a table."""
    schema = pa.schema([*OWN_FIELDS, *cells.schema])
    return pa.Table.from_arrays([*own, *cells.columns], schema=schema)
