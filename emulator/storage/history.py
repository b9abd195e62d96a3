"""Reading a table as it was: current rows that are old enough, and rows replaced since."""

from __future__ import annotations

from collections.abc import Collection

from ddl.schema import Index, Table
from emulator.sql.statements import TableSource
from emulator.storage.sqlite import current, index_name, quote, replaced

CLEAR_ROWS_MAX = 20_000


def source(
    as_of: Collection[str], *, counted: bool, index_hints: bool = True, within: str = ""
) -> TableSource:
    """How tables stand in a FROM clause.

    ``as_of`` names the tables (in lower case) to be read at ``:asof_``; the others are read as they
    are. ``counted`` makes every visited row count. Without ``index_hints`` SQLite chooses freely.
    ``within`` is a condition on every row: the part of a table that a partition reads.
    """

    conditions = "scanned_(rowid) AND " if counted else ""
    if within:
        conditions += f"({within}) AND "

    def text(table: Table, index: Index | None, alias: str) -> str:
        hinted = index_hints and index is not None
        hint = f" INDEXED BY {index_name(index.name)}" if hinted and index is not None else ""
        if table.name.casefold() in as_of:
            return f"({at_timestamp(table, hint, conditions)}) AS {quote(alias)}"
        if conditions:
            return f"({plain(table, hint, conditions)}) AS {quote(alias)}"
        return f"{current(table.name)} AS {quote(alias)}{hint}"

    return text


def columns(table: Table) -> str:
    """The columns of a table as a SELECT list."""
    return ", ".join(quote(c.name) for c in table.columns)


def plain(table: Table, hint: str, conditions: str) -> str:
    """Current rows under some conditions."""
    return f"SELECT {columns(table)} FROM {current(table.name)}{hint} WHERE {conditions}TRUE"


def at_timestamp(table: Table, hint: str, conditions: str) -> str:
    """Rows as of ``:asof_``. SQLite carries the outer conditions into both halves."""
    names = columns(table)
    return (
        f"SELECT {names} FROM {current(table.name)}{hint} "
        f'WHERE {conditions}"$ts" <= :asof_ UNION ALL '
        f"SELECT {names} FROM {replaced(table.name)} INDEXED BY {quote('r$' + table.name)} "
        f'WHERE {conditions}"$to" > :asof_ AND "$from" <= :asof_'
    )


def clear(table: str) -> str:
    """Removes history that no read may ask for any more, some of it at a time."""
    name = replaced(table)
    return (
        f'DELETE FROM {name} WHERE rowid IN (SELECT rowid FROM {name} WHERE "$to" <= ? '
        f"LIMIT {CLEAR_ROWS_MAX})"
    )
