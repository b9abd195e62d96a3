"""Sums of ranges of a table at one timestamp, computed inside Spanner: one query a range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ddl.schema import Type, TypeCode
from watcher.captures.key_ranges import read_key
from watcher.spanner.queries import QueryClient
from watcher.spanner.results.columns import build_schema, decode_batches
from watcher.spanner.results.supported_types import Nanoseconds
from watcher.spanner.results.wire import ResultPart, collect_rows
from watcher.spanner.sql import RowCondition, Statement, combine_conditions
from watcher.verification.canonical import ComparedColumn, render_hash, render_sum
from watcher.verification.key_conditions import KeyInterval, render_branches, render_interval
from watcher.verification.key_order import KeyOrder

INT64 = Type(TypeCode.INT64)
HASH = "RowHash"


@dataclass(frozen=True, slots=True)
class RangeSum:
    """How many rows a range has, and the sums of the lower and upper 32 bits of their hashes."""

    rows: int = 0
    low: int = 0
    high: int = 0


@dataclass(frozen=True)
class ComparedTable:
    """A table at a timestamp (microseconds since 1970). ``condition`` leaves softly deleted rows
    out."""

    queries: QueryClient
    name: str
    order: KeyOrder
    columns: tuple[ComparedColumn, ...]
    at: int
    condition: RowCondition | None = None

    def split(self, interval: KeyInterval, rows: int) -> Iterator[KeyInterval]:
        """The range in parts of about so many rows; the last part ends where the range does. Reads
        one key a part."""
        if not self.order.columns:
            yield interval
            return
        rest = interval
        while (end := self._find_key(rest, rows)) is not None:
            yield replace(rest, upto=end)
            rest = replace(rest, after=end)
        yield rest

    def start_sum(self, interval: KeyInterval) -> Iterator[pa.RecordBatch]:
        """The sum of a range, as ``read_sum`` reads it; the query is under way at once."""
        dialect = self.order.dialect
        rows = self._select(self._shown_hash, interval)
        sums = render_sum(self.order.sql.quote_column(HASH), dialect)
        sql = f"SELECT COUNT(*), {sums} FROM ({rows.sql}) AS hashed"  # noqa: S608
        results = self._query(Statement(sql, rows.params, rows.types))
        names = [(name, INT64) for name in ("rows", "low", "high")]
        return decode_batches(results, build_schema(names), [INT64] * 3)

    def read_hashes(self, interval: KeyInterval) -> Iterator[pa.RecordBatch]:
        """The key and the hash of each row of a range."""
        return self._decode(self._query(self._select(self._shown, interval)))

    def read_hashes_boosted(self) -> Iterator[pa.RecordBatch]:
        """The key and the hash of each row, by Data Boost: Spanner partitions no aggregates, so
        that the rows are added up here."""
        statement = self._select(self._shown, KeyInterval())
        stream = self.queries.stream
        for partition in stream.partition(statement, self.at, 0):
            yield from self._decode(stream.read_partition(statement, partition, data_boost=True))

    @property
    def _shown(self) -> str:
        return ", ".join([*map(self.order.sql.quote_column, self.order.names), self._shown_hash])

    @property
    def _shown_hash(self) -> str:
        name = self.order.sql.quote_column(HASH)
        return f"{render_hash(self.columns, self.order.dialect)} AS {name}"

    def _decode(self, results: Iterator[ResultPart]) -> Iterator[pa.RecordBatch]:
        columns = [*((each.name, each.type) for each in self.order.columns), (HASH, INT64)]
        exact = Nanoseconds.STRING
        types = [type_ for _, type_ in columns]
        return decode_batches(results, build_schema(columns, exact), types, exact)

    def _find_key(self, interval: KeyInterval, rows: int) -> tuple[object, ...] | None:
        """The key of the last of so many rows of a range; None when it has no more than those."""
        keys = [self.order.sql.quote_column(name) for name in self.order.names]
        order = ", ".join(
            f"{key} DESC" if each.descending else key
            for key, each in zip(keys, self.order.columns, strict=True)
        )
        conditions = render_branches(self.order, interval)
        selects = [self._select_where(", ".join(keys), each) for each in conditions]
        firsts = [f"({each.sql} ORDER BY {order} LIMIT {rows + 1})" for each in selects]
        candidates = " UNION ALL ".join(firsts) if len(firsts) > 1 else selects[0].sql
        sql = f"{candidates} ORDER BY {order} LIMIT 2 OFFSET {rows - 1}"
        results = self._query(Statement(sql, selects[0].params, selects[0].types))
        width = len(keys)
        values = [value for part in collect_rows(results, width) for value in part]
        return read_key(values[:width]) if len(values) > width else None

    def _select(self, shown: str, interval: KeyInterval) -> Statement:
        return self._select_where(shown, render_interval(self.order, interval))

    def _select_where(self, shown: str, keys: RowCondition) -> Statement:
        condition = combine_conditions([keys, *([self.condition] if self.condition else [])])
        assert condition is not None, "there is one condition at least"
        sql = f"SELECT {shown} FROM {self.order.sql.quote(self.name)} WHERE {condition.sql}"  # noqa: S608
        return Statement(sql, condition.params, condition.types)

    def _query(self, statement: Statement) -> Iterator[ResultPart]:
        return self.queries.stream.query(statement, self.at)


def read_sum(batches: Iterator[pa.RecordBatch]) -> RangeSum:
    """The answer of ``ComparedTable.start_sum``."""
    (batch,) = batches
    return RangeSum(*(column[0].as_py() for column in batch.columns))


def compared_columns(
    schema: pa.Schema, columns: Sequence[tuple[str, Type]], ignored: Sequence[str]
) -> tuple[ComparedColumn, ...]:
    """The columns that Spanner and the copy have, without those that are ignored."""
    left_out = {name.casefold() for name in ignored}
    return tuple(
        ComparedColumn(name, type_, is_exact(schema.field(name).type))
        for name, type_ in sorted(columns)
        if name in schema.names and name.casefold() not in left_out
    )


def is_exact(type_: pa.DataType) -> bool:
    """Whether a copy keeps a TIMESTAMP, or those of an array, as text."""
    return bool(pa.types.is_string(getattr(type_, "value_type", type_)))
