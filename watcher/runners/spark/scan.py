"""What one query reads: its tables, and which of their columns it shows."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from watcher.captures import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN, Changed, StreamRows
from watcher.captures.change_stream import ChangeStreamCapture
from watcher.captures.change_types import COMMIT_VERSION_COLUMN
from watcher.captures.poll import PollCapture
from watcher.envelopes.batches import CHANGE_ID_COLUMN
from watcher.model.errors import ConfigurationError, SchemaChangedError
from watcher.process.spark.arrow_schemas import convert_to_arrow_schema
from watcher.runners.spark.shapes import (
    resolve_format,
    shape_messages,
    shape_stored,
    shape_typed,
)
from watcher.runners.spark.table_batches import encode_rows
from watcher.runners.spark.uniform import render_uniform
from watcher.runners.spark.variants import convert_to_variants, use_texts
from watcher.settings.spark import SchemaChange, SourceOptions
from watcher.spanner.queries import QueryClient


@dataclass(frozen=True)
class Scan:
    """The tables of a query, and the columns that it shows. Picklable: executors shape rows.

    With a ``stream`` changes come from it, and the captures read whole tables, for a backfill.
    """

    options: SourceOptions
    captures: tuple[PollCapture, ...]
    shown: pa.Schema
    stream: ChangeStreamCapture | None = None
    known_at: int = 0
    """The read timestamp (microseconds since 1970) of the schema that the columns are from."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self._captures_by_name)

    @cached_property
    def _captures_by_name(self) -> dict[str, PollCapture]:
        return {capture.table.name: capture for capture in self.captures}

    @property
    def queries(self) -> QueryClient:
        """Where the query reads."""
        return self.captures[0].queries

    def capture(self, table: str) -> PollCapture:
        """The capture of a table."""
        return self._captures_by_name[table]

    @property
    def spark_schema(self) -> StructType:
        """The columns in Spark's types."""
        schema: StructType = from_arrow_schema(self.shown)
        return schema

    def name_columns(self, names: Sequence[str]) -> StructType:
        """Those columns in Spark's types; all without names. Raises ConfigurationError."""
        schema = self.spark_schema
        for name in names:
            self._check_name(name)
        return StructType([schema[name] for name in names]) if names else schema

    def select_tables(self, tables: Container[str] | None) -> Scan:
        """The same query with some of its tables; None is all of them."""
        if tables is None:
            return self
        return replace(self, captures=tuple(c for c in self.captures if c.table.name in tables))

    def check_columns(self, before: Scan) -> None:
        """Raises SchemaChangedError where a table has another type in a column that the query
        shows, or has lost it, unless the options want NULLs then. ``before`` is the query as it
        began."""
        if self.options.uniform:
            return
        types = dict(self.captures[0].table.columns)
        stop = self.options.on_schema_change is SchemaChange.STOP
        for name, was in before.captures[0].table.columns:
            if name not in self.shown.names:
                continue
            if name not in types and stop:
                raise schema_change_error(self.options, f"column {name} was dropped")
            if types.get(name, was).code is not was.code:
                became = types[name].code
                raise schema_change_error(
                    self.options, f"column {name} was {was.code.value} and is {became.value}"
                )

    @cached_property
    def _texts(self) -> pa.Schema:
        return use_texts(self.shown)

    def select_columns(self, schema: StructType) -> Scan:
        """The same tables with the columns that the caller's schema names; others are not read.

        Raises ConfigurationError for a column or a type that is not there.
        """
        shown = convert_to_arrow_schema(schema)
        for field in shown:
            self._check_field(field)
        if self.options.uniform:
            return replace(self, shown=shown)
        captures = tuple(narrow_capture(each, shown.names) for each in self.captures)
        return replace(self, captures=captures, shown=shown)

    def _check_name(self, name: str) -> None:
        if name not in self.shown.names:
            raise ConfigurationError(
                f"column {name} does not exist; the columns are: {', '.join(self.shown.names)}"
            )

    def _check_field(self, field: pa.Field) -> None:
        self._check_name(field.name)
        type_ = self.shown.field(field.name).type
        if not type_.equals(field.type):
            raise ConfigurationError(
                f"column {field.name} has type {type_}, but the given schema says {field.type}"
            )

    def shape(self, rows: Changed) -> pa.RecordBatch:
        """The columns that the query shows, of what changed in one of its tables."""
        shaped = self._shape_texts(rows)
        return shaped if self._texts is self.shown else convert_to_variants(shaped, self.shown)

    def _shape_texts(self, rows: Changed) -> pa.RecordBatch:
        options = self.options
        if options.arrow_rows:
            return encode_rows(rows)
        if options.envelope is not None:
            return shape_messages(rows, options.address.path, resolve_format(options), self._texts)
        if options.uniform:
            return render_uniform(rows, self._texts)
        if isinstance(rows, StreamRows):
            return shape_typed(rows, self.captures[0].table, self._texts, options.nanoseconds)
        return shape_stored(rows, self._texts)


def schema_change_error(options: SourceOptions, what: str) -> SchemaChangedError:
    """The refusal of a schema that the query does not fit any more."""
    return SchemaChangedError(
        f"the schema of {options.source} has changed while the query ran ({what}):"
        " restart the query to read the current columns, or set the option"
        " 'onSchemaChange' to 'nulls' to continue with NULLs for a column that was dropped"
    )


def narrow_capture(capture: PollCapture, names: Sequence[str]) -> PollCapture:
    """A capture that reads only what some columns of a query are made of."""
    read, table = set(names), capture.table
    if CHANGE_ID_COLUMN in read:
        read |= {COMMIT_TIMESTAMP_COLUMN, *table.primary_key}
    if COMMIT_VERSION_COLUMN in read:
        read.add(COMMIT_TIMESTAMP_COLUMN)
    if SHARD_ID_COLUMN in read and table.shard_column is not None:
        read.add(table.shard_column)
    stamps = tuple(name for name in capture.stamps if name in read)
    narrowed = replace(capture, table=table.keep_columns(read), stamps=stamps)
    if narrowed.selected_columns:
        return narrowed
    # Where a query reads nothing of a row, Spanner must still say how many there are.
    first = next(name for name, _ in table.columns if name not in table.unread)
    return replace(narrowed, table=table.keep_columns(read | {first}))
