"""A watched table, and how the configuration describes one: plain values."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Dialect
from spanner_schema.model.strategies import ShardKind
from watcher.spanner.dialects import DIALECTS, SqlDialect
from watcher.tables.column_choice import ColumnChoice
from watcher.tables.masks import Mask, MaskKey, MaskKind
from watcher.tables.predicates import RowFilter

if TYPE_CHECKING:
    from pydantic import ConfigDict

ShardValue = int | str


@dataclass(frozen=True, slots=True)
class ChangeSetSource:
    """Where a table without a commit timestamp gets it from: each transaction writes a row of
    ``table``, and its id into ``rows_column`` of every row that it touches."""

    table: str
    id_column: str
    rows_column: str
    rows_index: str | None


@dataclass(frozen=True, slots=True)
class WatchedTable:
    """A table with its commit-timestamp column, and the shard column and index where it has them.

    ``shard_values`` are all values that the shard can have; None when they cannot be listed: then a
    query checks only ``IS NOT NULL``. With an ``index`` of None Spanner chooses one.
    ``processed_column`` is set for the strategy of that name. ``deleted`` names a BOOL or TIMESTAMP
    column that marks a soft delete. With ``change_sets`` timestamp, shard and index are those of
    that table. ``timestamp_column`` is empty for a table that is only ever read whole. ``hashed``:
    the shard is a hash of the key, so that each has about as many rows as the others. ``left_out``
    are the table's columns that are not among ``columns``. Of the rows ``row_filter`` keeps some;
    ``masks`` replace the values of some columns. ``copied``: a copy follows it, which has to know
    also of changed rows that ``row_filter`` leaves out. ``gaps`` and ``caveats`` are clauses for
    people: what its change stream leaves out, and what may be missing there without a trace.
    ``descending`` are the columns of the key whose greatest value comes first.
    """

    name: str
    columns: tuple[tuple[str, Type], ...]
    primary_key: tuple[str, ...]
    timestamp_column: str
    shard_column: str | None
    shard_values: tuple[ShardValue, ...] | None
    index: str | None
    processed_column: str | None = None
    clears_by_null: bool = True
    deleted: str | None = None
    change_sets: ChangeSetSource | None = None
    hashed: bool = False
    dialect: Dialect = Dialect.GOOGLESQL
    left_out: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    row_filter: RowFilter | None = None
    masks: tuple[Mask, ...] = ()
    descending: tuple[str, ...] = ()
    copied: bool = False

    @property
    def sql(self) -> SqlDialect:
        """How statements on it are written."""
        return DIALECTS[self.dialect]

    def column_type(self, name: str) -> Type:
        """The type of a column, or INT64 for a hidden one."""
        return next((type_ for n, type_ in self.columns if n == name), Type(TypeCode.INT64))

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that a query of it may name."""
        special = (self.timestamp_column, self.shard_column, self.processed_column, self.deleted)
        sets = (self.change_sets.id_column,) if self.change_sets is not None else ()
        return (
            *(name for name, _ in self.columns),
            *self.primary_key,
            *(name for name in special if name),
            *sets,
            *(name for name, _ in self.filtered),
        )

    @property
    def filtered(self) -> tuple[tuple[str, Type], ...]:
        """The columns that the filter looks at."""
        return self.row_filter.columns if self.row_filter is not None else ()

    @property
    def tells_outside(self) -> bool:
        """Whether a window also has the keys of changed rows that the filter leaves out."""
        return self.copied and self.row_filter is not None

    @property
    def unread(self) -> frozenset[str]:
        """The columns that are delivered without being read: a mask says what they are."""
        return frozenset(mask.column for mask in self.masks if not mask.reads_column)

    def keep_columns(self, names: Container[str]) -> WatchedTable:
        """The table with those of its columns that are named."""
        return replace(self, columns=tuple(pair for pair in self.columns if pair[0] in names))


@dataclass(frozen=True, slots=True)
class TableSpec:
    """How one table is polled, where the schema does not say it or is not to decide.

    ``time`` reads as ``not-null`` does: a row may have any interval, because the application's
    clock, the commit and an update that keeps the column are not the window's.
    """

    __pydantic_config__: ClassVar[ConfigDict] = {"extra": "forbid"}

    shard: ShardKind | None = None
    """``computed`` (all values of the generated column, from its expression), ``fixed``
    (``shard_values`` only), ``not-null`` (no list), ``time`` (text of the day, hour or minute in
    UTC, written by applications: 2026-01-31, 2026-01-31T12, 2026-01-31T12:30), ``none``."""
    shard_column: str | None = None
    """The column of the shard."""
    shard_values: tuple[ShardValue, ...] | None = None
    """All values that the shard has, with ``shard = "fixed"``."""
    shard_interval: Literal["day", "hour", "minute"] = "day"
    """What applications write with ``shard = "time"``; no query depends on it."""
    timestamp_column: str | None = None
    """The column of the commit timestamp, where a table has several."""
    index: str | None = None
    """The index to poll through."""
    deleted: str | None = None
    """A BOOL or TIMESTAMP column that turns a row into a DELETE change."""
    change_sets: str | None = None
    """The table of change sets, for a table without a commit timestamp."""
    change_set_column: str = "ChangeSetId"
    """The column of both tables that holds the id of a change set."""
    backfill_from: tuple[str | int, ...] | None = None
    """A backfill begins at this primary key, or its first columns (inside)."""
    backfill_to: tuple[str | int, ...] | None = None
    """A backfill ends at this primary key, or its first columns (outside)."""
    columns: tuple[str, ...] | None = None
    """Only these columns are read; the primary key and the commit timestamp always are."""
    exclude_columns: tuple[str, ...] = ()
    """These columns are not read."""
    text_columns: tuple[str, ...] = ()
    """Columns of the type numeric (PostgreSQL dialect) that are read as text: for values that
    DECIMAL(38, 9) does not have, and for NaN."""

    hidden_columns: bool = False
    """``HIDDEN`` columns are read, too; a replica has them in any case."""
    where: str | None = None
    """Only rows that satisfy this condition are delivered, such as ``City = 'Bern' AND Age >= 18``.
    Of a row that does not satisfy it any more, nothing is sent; it leaves a copy. For polled
    tables, and for copies."""
    masks: Mapping[str, MaskKind] = field(default_factory=dict)
    """What is delivered in place of a column's values: ``hash`` (STRING and BYTES; needs
    ``mask_key``), ``redact`` (STRING), ``null``. Values of the last two are not read."""
    mask_key: MaskKey | None = None
    """The key of hashes, if it is not the one for all tables."""

    @property
    def choice(self) -> ColumnChoice:
        """Which columns are read."""
        hidden = self.hidden_columns
        masks = tuple(Mask(name, kind, self.mask_key) for name, kind in self.masks.items())
        return ColumnChoice(self.columns, self.exclude_columns, self.text_columns, hidden, masks)
