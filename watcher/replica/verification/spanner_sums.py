"""Sums of ranges of a table at one timestamp, computed inside Spanner: one query a range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures.key_ranges import read_key
from watcher.captures.masked_values import mask_batch
from watcher.replica.keys.order import KeyOrder
from watcher.replica.keys.ranges import KeyInterval
from watcher.replica.verification.canonical import (
    LOW_BITS,
    ComparedColumn,
    render_hash,
    render_sum,
)
from watcher.replica.verification.column_groups import ColumnGroup
from watcher.replica.verification.key_conditions import list_branches, render_interval
from watcher.replica.verification.row_hashes import add_hashes
from watcher.spanner.keys import Key
from watcher.spanner.queries import QueryClient
from watcher.spanner.results.columns import build_schema, decode_batches
from watcher.spanner.results.supported_types import Nanoseconds
from watcher.spanner.results.wire import ResultPart, collect_rows
from watcher.spanner.sql import RowCondition, Statement, combine_conditions

INT64 = Type(TypeCode.INT64)
SUM_COLUMNS = ["rows", "low", "high"]


@dataclass(frozen=True, slots=True)
class RangeSum:
    """How many rows a range has, and for each group of columns the sums of the lower and upper 32
    bits of the hashes."""

    rows: int = 0
    sums: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class ComparedTable:
    """A table at a timestamp (microseconds since 1970). ``names`` are all its columns: its own name
    may hide one. ``groups`` are those that are compared. ``condition`` leaves softly deleted rows
    out."""

    queries: QueryClient
    name: str
    names: tuple[str, ...]
    order: KeyOrder
    groups: tuple[ColumnGroup, ...]
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

    def start_sum(self, interval: KeyInterval, group: ColumnGroup) -> Iterator[pa.RecordBatch]:
        """The sum of a range, as ``read_sum`` reads it; the query is under way at once."""
        if group.sent:
            return add_up(self.read_hashes(interval, group), group)
        dialect = self.order.dialect
        rows = self._select(f"{self._render_hash(group)} AS digest", interval)
        sql = f"SELECT COUNT(*), {render_sum('digest', dialect)} FROM ({rows.sql}) AS hashed"  # noqa: S608
        results = self._query(Statement(sql, rows.params, rows.types))
        names = [(name, INT64) for name in SUM_COLUMNS]
        return decode_batches(results, build_schema(names), [INT64] * 3)

    def read_hashes(self, interval: KeyInterval, group: ColumnGroup) -> Iterator[pa.RecordBatch]:
        """The key and the hash of each row of a range."""
        return self._decode_group(self._query(self._select_group(group, interval)), group)

    def read_hashes_boosted(self, group: ColumnGroup) -> Iterator[pa.RecordBatch]:
        """The key and the hash of each row, by Data Boost: Spanner partitions no aggregates, so
        that the rows are added up here."""
        stream = self.queries.stream
        statement = self._select_group(group, KeyInterval())
        for partition in stream.partition(statement, self.at):
            parts = stream.read_partition(statement, partition, data_boost=True)
            yield from self._decode_group(parts, group)

    def _select_group(self, group: ColumnGroup, interval: KeyInterval) -> Statement:
        """The key and the hash of each row; or the values, where these are hashed here."""
        if not group.sent:
            return self._select_hashes(group, interval)
        names = (each.name for each in group.columns)
        return self._select(self.order.sql.quote_all(names), interval)

    def _decode_group(
        self, results: Iterator[ResultPart], group: ColumnGroup
    ) -> Iterator[pa.RecordBatch]:
        if not group.sent:
            return self._decode_hashes(results, group)
        columns = [(each.name, read_type(each)) for each in group.columns]
        masks = [each.mask for each in group.columns if each.mask is not None]
        rows = (mask_batch(batch, masks) for batch in self._decode(results, columns))
        return add_hashes(rows, [group])

    def _select_hashes(self, group: ColumnGroup, interval: KeyInterval) -> Statement:
        key = map(self.order.sql.quote_column, self.order.names)
        return self._select(", ".join([*key, self._render_hash(group)]), interval)

    def _render_hash(self, group: ColumnGroup) -> str:
        return render_hash(group.columns, self.order.dialect)

    def _decode_hashes(
        self, results: Iterator[ResultPart], group: ColumnGroup
    ) -> Iterator[pa.RecordBatch]:
        columns = [(each.name, each.type) for each in self.order.columns]
        return self._decode(results, [*columns, (group.name, INT64)])

    def _decode(
        self, results: Iterator[ResultPart], columns: Sequence[tuple[str, Type]]
    ) -> Iterator[pa.RecordBatch]:
        exact = Nanoseconds.STRING
        types = [type_ for _, type_ in columns]
        return decode_batches(results, build_schema(columns, exact), types, exact)

    def _find_key(self, interval: KeyInterval, rows: int) -> tuple[object, ...] | None:
        """The key of the last of so many rows of a range; None when it has no more than those."""
        keys = [self.order.sql.quote_column(name) for name in self.order.names]
        shown = ", ".join(keys)
        order = ", ".join(
            f"{key} DESC" if each.descending else key
            for key, each in zip(keys, self.order.columns, strict=True)
        )
        selects = [self._select_where(shown, each) for each in list_branches(self.order, interval)]
        firsts = [f"({each.sql} ORDER BY {order} LIMIT {rows + 1})" for each in selects]
        candidates = " UNION ALL ".join(firsts) if len(firsts) > 1 else selects[0].sql
        statement = Statement(candidates, selects[0].params, selects[0].types)
        if interval.upto is not None:
            statement = self._keep_below(interval.upto, statement)
        sql = f"{statement.sql} ORDER BY {order} LIMIT 2 OFFSET {rows - 1}"
        results = self._query(Statement(sql, statement.params, statement.types))
        width = len(keys)
        values = [value for part in collect_rows(results, width) for value in part]
        return read_key(values[:width]) if len(values) > width else None

    def _keep_below(self, upto: Key, keys: Statement) -> Statement:
        """Of the keys of several branches those up to a bound: within each branch, the condition
        would be as long as all of them."""
        bound = render_interval(self.order, KeyInterval(upto=upto))
        sql = f"SELECT * FROM ({keys.sql}) AS {self.order.sql.row} WHERE {bound.sql}"  # noqa: S608
        return Statement(sql, {**keys.params, **bound.params}, {**keys.types, **bound.types})

    def _select(self, shown: str, interval: KeyInterval) -> Statement:
        return self._select_where(shown, render_interval(self.order, interval))

    def _select_where(self, shown: str, keys: RowCondition) -> Statement:
        condition = combine_conditions([keys, *([self.condition] if self.condition else [])])
        assert condition is not None, "there is one condition at least"
        table = self.order.sql.render_table(self.name, self.names)
        sql = f"SELECT {shown} FROM {table} WHERE {condition.sql}"  # noqa: S608
        return Statement(sql, condition.params, condition.types)

    def _query(self, statement: Statement) -> Iterator[ResultPart]:
        return self.queries.stream.query(statement, self.at)


def add_up(rows: Iterator[pa.RecordBatch], group: ColumnGroup) -> Iterator[pa.RecordBatch]:
    """Rows with hashes -> what ``ComparedTable.start_sum`` has."""
    count = low = high = 0
    for batch in rows:
        hashes = batch.column(group.name).to_numpy()
        count += len(hashes)
        low += int((hashes & LOW_BITS).sum())
        high += int(((hashes >> 32) & LOW_BITS).sum())
    yield pa.record_batch([[count], [low], [high]], SUM_COLUMNS)


def read_sum(batches: Iterator[pa.RecordBatch]) -> RangeSum:
    """The answer of ``ComparedTable.start_sum``."""
    (batch,) = batches
    rows, low, high = (column[0].as_py() for column in batch.columns)
    return RangeSum(rows, ((low, high),))


def join_sums(sums: Sequence[RangeSum]) -> RangeSum:
    """The sums of all groups of a range, of those of each."""
    return RangeSum(sums[0].rows, tuple(pair for each in sums for pair in each.sums))


def read_type(column: ComparedColumn) -> Type:
    """The type that values are sent as: a numeric that the copy keeps as text, as text."""
    if not column.exact or column.element is None:
        return column.type
    code = column.element.type.code
    text = Type(TypeCode.STRING)
    return Type(TypeCode.ARRAY, element=text) if code is TypeCode.PG_NUMERIC else column.type
