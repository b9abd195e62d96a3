"""Merges of copies that keep more than the latest rows, by Spark. What changes make of old rows is
planned as without Spark (``row_versions``), by executors, each of some keys; a MERGE then puts the
result in the place of the rows that it replaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type

from watcher.replica.copies import DELETED_COLUMN, find_order, find_stamp
from watcher.replica.cuts.modes import HISTORY, VALID_TO, Mode, find_mode
from watcher.replica.keys.hashes import draw_points, hash_keys
from watcher.replica.merge_sql import SOURCE, SPARK, TARGET
from watcher.replica.row_versions import (
    AT,
    KEY_ONLY,
    KeyedRows,
    Numbers,
    arrange_changes,
    list_loaded,
    merge_changes,
)

OLD = "$old"
"""Whether a row is one of the copy; others are changes. No column of Spanner has such a name."""
ROW = "$row"
SEQUENCE_COLUMN = "$record_sequence"
"""Of rows of a change stream: the order of a transaction's changes. No column of Spanner has such a
name."""


def complete_frame(rows: DataFrame, mode: Mode, at: int) -> DataFrame:
    """Rows that were read at a timestamp, with the columns of a mode."""
    for name, value in list_loaded(mode, at).items():
        rows = rows.withColumn(name, f.lit(value.as_py()).cast(from_arrow_type(value.type)))
    return rows


def mark_deleted(keys: DataFrame, at: int) -> DataFrame:
    """Deletions at a timestamp of which the keys alone are known, as ``merge_kept`` takes
    changes."""
    moment = f.timestamp_micros(f.lit(at))
    marks = {DELETED_COLUMN: f.lit(True), KEY_ONLY: f.lit(True), AT: moment}
    return keys.withColumns({**marks, SEQUENCE_COLUMN: f.lit("")})


@dataclass(frozen=True, slots=True)
class KeptMerge:
    """What changes make of the rows of a copy with a ``schema``. Picklable: executors call it with
    all rows of some keys."""

    schema: pa.Schema
    key: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows that a merge writes, of structs."""
        some = [pa.RecordBatch.from_struct_array(each.column(0)) for each in batches]
        if not some:
            return
        both = pa.Table.from_batches(some)
        numbers = number_keys(both.select(list(self.key)))
        stamp = find_stamp(self.schema.names)
        stamps = both.column(AT if AT in both.column_names else stamp)
        stored = both.column(OLD).to_numpy()
        order = both.column(find_order(self.schema.names))
        old = self._sort(both, numbers, order, stored)
        changes = self._sort(both, numbers, stamps, ~stored, SEQUENCE_COLUMN)
        arranged = arrange_changes(changes.rows.drop_columns([OLD]), changes.keys, changes.times)
        rows = old.rows.select(self.schema.names).cast(self.schema)
        merged = merge_changes(arranged, KeyedRows(rows, old.keys, old.times), self.schema)
        yield from merged.rows.combine_chunks().to_batches()

    def _sort(
        self,
        rows: pa.Table,
        keys: Numbers,
        stamps: pa.ChunkedArray,
        chosen: np.ndarray[tuple[int], np.dtype[np.bool_]],
        then: str | None = None,
    ) -> KeyedRows:
        """Some rows in the order of their keys and times."""
        times = np.asarray(pc.fill_null(stamps.cast(pa.int64()), -1).to_numpy())
        columns = {"key": keys, "time": times, "then": rows.column(then) if then else times}
        places = pa.array(np.flatnonzero(chosen))
        order = pc.sort_indices(
            pa.table(columns).take(places), [(name, "ascending") for name in columns]
        )
        taken = places.take(order)
        return KeyedRows(rows.take(taken), keys[taken.to_numpy()], times[taken.to_numpy()])


def number_keys(keys: pa.Table) -> Numbers:
    """For each key a number, the same for those that Spanner takes for the same."""
    hashes = np.stack(hash_keys(keys, draw_points()), axis=1)
    _, numbers = np.unique(hashes, axis=0, return_inverse=True)
    return numbers.reshape(-1).astype(np.int64)


def merge_kept(
    changes: DataFrame, there: DataFrame, schema: pa.Schema, key: Sequence[str]
) -> DataFrame:
    """The rows that a merge of changes into a copy writes. ``there``: the rows of the copy, with a
    ``schema``."""
    if find_mode(schema.names) == HISTORY:
        there = there.where(f.col(VALID_TO).isNull())
    names = [f.col(SPARK.quote(name)) for name in key]
    changed = changes.select(*names).alias(SOURCE)
    old = there.alias(TARGET).join(changed, f.expr(SPARK.match_keys(key)), "left_semi")
    both = old.withColumn(OLD, f.lit(True)).unionByName(
        changes.withColumn(OLD, f.lit(False)), allowMissingColumns=True
    )
    types = {field.name: field.type for field in schema}
    together = both.repartition(*(place_key(name, types[name]) for name in key))
    # PySpark takes a column whose name has a dot for a part of another one.
    rows = together.select(f.struct("*").alias(ROW))
    return rows.mapInArrow(KeptMerge(schema, tuple(key)), from_arrow_schema(schema))


def place_key(name: str, type_: pa.DataType) -> Column:
    """A column of a key by which rows are brought together: it has one zero, as in Spanner."""
    column = f.col(SPARK.quote(name))
    if pa.types.is_floating(type_):
        return f.when(column == f.lit(0), f.lit(0)).otherwise(column)
    return column
