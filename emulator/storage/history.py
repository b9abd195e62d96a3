"""Reading a table as it was: current rows that are old enough, and rows replaced since."""

from __future__ import annotations

from collections.abc import Collection

from ddl.schema import Index, Table
from emulator.sql.statements import TableSource
from emulator.storage.sqlite import current, index_name, quote, replaced

CLEAR_ROWS_MAX = 20_000


def source(as_of: Collection[str], *, counted: bool, index_hints: bool = True) -> TableSource:
    """How tables stand in a FROM clause.

    ``as_of`` names the tables (in lower case) to be read at ``:asof_``; the others are read as they
    are. ``counted`` makes every visited row count. Without ``index_hints`` SQLite chooses freely.
    """

    def text(table: Table, index: Index | None, alias: str) -> str:
        hinted = index_hints and index is not None
        hint = f" INDEXED BY {index_name(index.name)}" if hinted and index is not None else ""
        if table.name.casefold() in as_of:
            return f"({at_timestamp(table, hint, counted)}) AS {quote(alias)}"
        if counted:
            return f"({plain(table, hint)}) AS {quote(alias)}"
        return f"{current(table.name)} AS {quote(alias)}{hint}"

    return text


def columns(table: Table) -> str:
    """The columns of a table as a SELECT list."""
    return ", ".join(quote(c.name) for c in table.columns)


def plain(table: Table, hint: str) -> str:
    """Current rows, each counted when it is visited."""
    return f"SELECT {columns(table)} FROM {current(table.name)}{hint} WHERE scanned_(rowid)"


def at_timestamp(table: Table, hint: str, counted: bool) -> str:
    """Rows as of ``:asof_``. SQLite carries the outer conditions into both halves."""
    count = "scanned_(rowid) AND " if counted else ""
    names = columns(table)
    return (
        f"SELECT {names} FROM {current(table.name)}{hint} "
        f'WHERE {count}"$ts" <= :asof_ UNION ALL '
        f"SELECT {names} FROM {replaced(table.name)} INDEXED BY {quote('r$' + table.name)} "
        f'WHERE {count}"$to" > :asof_ AND "$from" <= :asof_'
    )


def clear(table: str) -> str:
    """Removes history that no read may ask for any more, some of it at a time."""
    name = replaced(table)
    return (
        f'DELETE FROM {name} WHERE rowid IN (SELECT rowid FROM {name} WHERE "$to" <= ? '
        f"LIMIT {CLEAR_ROWS_MAX})"
    )
