"""How a table is watched now, as its schema shows it."""

from __future__ import annotations

from dataclasses import dataclass

from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Column, Dialect, Index, Schema, Table
from spanner_schema.model.strategies import Modulo, ShardKind, Strategy
from spanner_schema.syntax.references import find_referenced_columns
from spanner_schema.watched.ownership import fold, is_ours
from spanner_schema.watched.shards import shard_values, strip_case


@dataclass(frozen=True, slots=True)
class ShardShape:
    """A shard column. Where it is computed: its values, the columns that it hashes, and the one
    that takes a row out of the index, with the strategy ``processed``."""

    column: Column
    values: tuple[int, ...] | None
    hashed: tuple[str, ...]
    processed: str | None

    @property
    def kind(self) -> ShardKind:
        """Whether it is computed. Which of the others it is only the user knows."""
        return "computed" if self.column.generated is not None else "not-null"

    @property
    def shards(self) -> int | None:
        """The number that was asked for: a signed shard has about twice as many values."""
        return self.values[-1] + 1 if self.values else None

    @property
    def modulo(self) -> Modulo:
        """How the hash becomes a shard."""
        return Modulo.SIGNED if self.values and self.values[0] < 0 else Modulo.POSITIVE


@dataclass(frozen=True, slots=True)
class Tracking:
    """One way in which a table is polled: through ``index``, on ``shard`` and ``timestamp``."""

    strategy: Strategy
    index: Index
    shard: ShardShape
    timestamp: Column

    def describe(self) -> str:
        """This in words."""
        values = self.shard.values
        shard = f"{len(values)} shards" if values else f"shard {self.shard.column.name}"
        return f"strategy {self.strategy}, {shard}, index {self.index.name}"


def is_null_filtered(index: Index) -> bool:
    """True if the index omits rows with NULL in a key part."""
    return index.null_filtered or fold(p.column for p in index.parts) <= fold(index.where_not_null)


def is_poll_index(table: Table, index: Index) -> bool:
    """True for a null-filtered index on (computed shard, commit timestamp)."""
    if len(index.parts) != 2 or not is_null_filtered(index):
        return False
    shard, timestamp = (table.column(part.column) for part in index.parts)
    return bool(shard and shard.generated and timestamp and timestamp.allow_commit_timestamp)


def is_own_shard_index(table: Table, index: Index) -> bool:
    """The same on a shard that applications write."""
    if len(index.parts) != 2 or not is_null_filtered(index):
        return False
    shard, timestamp = (table.column(part.column) for part in index.parts)
    if shard is None or timestamp is None or not timestamp.allow_commit_timestamp:
        return False
    kinds = (TypeCode.STRING, TypeCode.INT64)
    return shard.generated is None and shard.type.code in kinds


def find_trackings(schema: Schema, table: Table) -> tuple[Tracking, ...]:
    """The ways in which a table is polled through a computed shard."""
    indexes = schema.indexes_of(table.name)
    return tuple(
        describe_tracking(schema, table, index) for index in indexes if is_poll_index(table, index)
    )


def find_own_trackings(schema: Schema, table: Table) -> tuple[Tracking, ...]:
    """The ways in which a table can be polled through a shard that applications write."""
    indexes = schema.indexes_of(table.name)
    return tuple(
        describe_tracking(schema, table, index)
        for index in indexes
        if is_own_shard_index(table, index)
    )


def describe_tracking(schema: Schema, table: Table, index: Index) -> Tracking:
    """What an index on a shard and a commit timestamp says."""
    shard, timestamp = (table.column(part.column) for part in index.parts)
    assert shard is not None
    assert timestamp is not None
    shape = describe_shard(table, shard, schema.dialect)
    strategy = Strategy.AUTOMATIC if is_ours(timestamp, schema.dialect) else Strategy.MANUAL
    if shape.processed is not None:
        strategy = Strategy.PROCESSED
    return Tracking(strategy, index, shape, timestamp)


def describe_shard(table: Table, column: Column, dialect: Dialect) -> ShardShape:
    """What the expression of a shard says."""
    expression = column.generated or ""
    hashed = find_referenced_columns(strip_case(expression), table, dialect)
    processed = find_processed(table, column, dialect)
    return ShardShape(column, shard_values(expression), hashed, processed)


def find_processed(table: Table, shard: Column, dialect: Dialect) -> str | None:
    """The column of CASE WHEN Processed THEN NULL ..., if the shard is computed so."""
    expression = shard.generated or ""
    if strip_case(expression) == expression:
        return None
    names = find_referenced_columns(expression, table, dialect)
    column = table.column(names[0]) if names else None
    return column.name if column is not None and column.type.code is TypeCode.BOOL else None


def list_streams(schema: Schema, table: Table) -> list[str]:
    """The change streams that watch a table."""
    return [
        stream.name
        for stream in schema.change_streams
        if stream.for_all
        or any(each.table.casefold() == table.name.casefold() for each in stream.watches)
    ]


def find_sets_table(schema: Schema, table: Table, column: str | None = None) -> Table | None:
    """The table of change sets whose ids the rows of a table carry in ``column``, if it has one."""
    name = column or name_set_id(schema.dialect)
    if table.column(name) is None:
        return None
    sets = (other for other in schema.tables if other.name != table.name)
    return next((each for each in sets if holds_change_sets(each, name, schema)), None)


def holds_change_sets(table: Table, id_column: str, schema: Schema) -> bool:
    """True for a table of change sets: its key is their id, and it has their commit timestamp."""
    key = fold(part.column for part in table.primary_key)
    timestamp = table.column(name_set_timestamp(schema.dialect))
    return bool(key == {id_column.casefold()} and timestamp and timestamp.allow_commit_timestamp)


def find_set_rows(schema: Schema, sets: Table, column: str | None = None) -> Table | None:
    """A table whose rows carry the ids of these change sets, if there is one."""
    return next(
        (
            table
            for table in schema.tables
            if (found := find_sets_table(schema, table, column)) is not None
            and found.name == sets.name
        ),
        None,
    )


def name_set_id(dialect: Dialect) -> str:
    """The column with the id of a change set, where nobody named another."""
    return WatchOptions().for_dialect(dialect).change_set_column


def name_set_timestamp(dialect: Dialect) -> str:
    """The commit-timestamp column of a table of change sets."""
    return "commit_timestamp" if dialect is Dialect.POSTGRESQL else "CommitTimestamp"
