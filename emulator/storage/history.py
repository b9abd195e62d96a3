"""Reading a table as it was: current rows that are old enough, and rows replaced since."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from emulator.sql.statements import TableSource
from emulator.storage.archives import Archive
from emulator.storage.layout import filter_columns, may_be_null
from emulator.storage.sqlite import current_table, history_table, index_name
from emulator.values.sqlite_text import quote_name
from spanner_schema.model.schema import Index, Schema, Table

CLEAR_ROWS_MAX = 20_000
COUNTED = "scanned_(_rowid_) AND "
"""Counts every row that is visited."""
COUNTED_IF_KEPT = ' AND scanned_("$ts")'
"""Counts a row that was not replaced since: its older version is counted instead."""
COUNTED_LAST = " AND scanned_((SELECT _rowid_))"
"""Counts a row that satisfies all other conditions, which SQLite tests before those with a
subquery. Replaced rows lie in the order in which they were replaced: a scan visits them all, where
Spanner has them in the order of the index."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the tables of a schema lie in a file.

    ``archives`` maps tables (in lower case) to where they lie since a later schema put them away;
    ``later`` is the file's own schema when it is a later one: only its indexes are there.
    """

    archives: Mapping[str, Archive] = field(default_factory=dict)
    later: Schema | None = None

    def has_index(self, index: Index, table: Table) -> bool:
        """Whether SQLite can be told to use an index; without it a read scans the table.

        A filter column that may be NULL only later is one that the query need not have excluded.
        """
        if self.later is None:
            return True
        if index.table.casefold() in self.archives or self.later.index(index.name) != index:
            return False
        later = self.later.table(table.name)
        return later is not None and nullable_filters(index, later) <= nullable_filters(
            index, table
        )


def nullable_filters(index: Index, table: Table) -> set[str]:
    """The columns whose NULLs keep rows out of an index."""
    return {name.casefold() for name in filter_columns(index) if may_be_null(table, name)}


AS_IT_IS = Placement()


def table_source(
    as_of: Collection[str],
    *,
    counted: bool,
    within: str = "",
    placement: Placement = AS_IT_IS,
) -> TableSource:
    """How tables are written in a FROM clause.

    ``as_of`` names the tables (in lower case) to be read at ``:asof_``; the others are read as they
    are. ``counted`` makes every visited row count.
    ``within`` is a condition on every row: the part of a table that a partition reads. What
    ``placement`` has in archives must be in ``as_of``.
    """

    part = f"({within}) AND " if within else ""
    conditions = COUNTED + part if counted else part

    def text(table: Table, index: Index | None, alias: str) -> str:
        hint = ""
        if index is not None and placement.has_index(index, table):
            hint = f" INDEXED BY {index_name(index.name)}"
        name = table.name.casefold()
        if name in as_of:
            archive = placement.archives.get(name)
            if archive is not None:
                return f"({archive.select(table, conditions)}) AS {quote_name(alias)}"
            rows = rows_at_timestamp(table, hint, part, counted=counted)
            return f"({rows}) AS {quote_name(alias)}"
        if conditions:
            return f"({current_rows(table, hint, conditions)}) AS {quote_name(alias)}"
        return f"{current_table(table.name)} AS {quote_name(alias)}{hint}"

    return text


def columns(table: Table) -> str:
    """The columns of a table as a SELECT list."""
    return ", ".join(quote_name(c.name) for c in table.columns)


def current_rows(table: Table, hint: str, conditions: str) -> str:
    """Current rows under some conditions."""
    return f"SELECT {columns(table)} FROM {current_table(table.name)}{hint} WHERE {conditions}TRUE"


def rows_at_timestamp(table: Table, hint: str, part: str, *, counted: bool) -> str:
    """Rows as of ``:asof_``, of a part of the table. SQLite carries the outer conditions into both
    halves."""
    names = columns(table)
    kept, replaced = (COUNTED_IF_KEPT, COUNTED_LAST) if counted else ("", "")
    return (
        f"SELECT {names} FROM {current_table(table.name)}{hint} "
        f'WHERE {part}"$ts" <= :asof_{kept} UNION ALL '
        f"SELECT {names} FROM {history_table(table.name)} "
        f"INDEXED BY {quote_name('r$' + table.name)} "
        f'WHERE {part}"$to" > :asof_ AND "$from" <= :asof_{replaced}'
    )


def clear_sql(table: str) -> str:
    """Removes history that no read may ask for any more, some of it at a time."""
    name = history_table(table)
    return (
        f'DELETE FROM {name} WHERE _rowid_ IN (SELECT _rowid_ FROM {name} WHERE "$to" <= ? '
        f"LIMIT {CLEAR_ROWS_MAX})"
    )
