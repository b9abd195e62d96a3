"""The writes of a transaction that is open: rows as they will be, outside of SQLite's file.

A transaction runs its statements inside a transaction of SQLite, which stays open until another
transaction needs the connection that writes. Then what it changed is read out (``save``), SQLite's
transaction is rolled back, and before its next statement all is written again (``load``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import apsw

from emulator.engine.refusals import unknown_table
from emulator.storage.sqlite import PENDING, current_table, history_table
from emulator.values.requests import Stored
from emulator.values.sqlite_text import quote_name
from spanner_schema.model.schema import Schema, Table

SET_LAST_COMMIT = 'UPDATE "$state" SET last_commit = ?'
SELECT_MODS = 'SELECT "table", kind, written, old, new FROM "$mods" ORDER BY number'
INSERT_MOD = 'INSERT INTO "$mods" ("table", kind, written, old, new) VALUES (?, ?, ?, ?, ?)'
TABLE_PREFIX = "t$"

Row = tuple[Stored, ...]


class TouchedRows:
    """The rows that statements have inserted, updated or deleted: by table, in lower case, their
    numbers in SQLite, each with whether it was there before."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[int, bool]] = {}
        self._by_name: dict[str, dict[int, bool]] = {}

    @contextmanager
    def recorded(self, connection: apsw.Connection) -> Iterator[None]:
        """While it lasts, the rows that the connection touches are recorded."""
        connection.set_update_hook(self._note)
        try:
            yield
        finally:
            connection.set_update_hook(None)

    def add(self, other: TouchedRows) -> None:
        """Adds what was touched later."""
        for name, rows in other.rows.items():
            before = self.rows.setdefault(name, {})
            for number, was_there in rows.items():
                before.setdefault(number, was_there)

    def _note(self, kind: int, _database: str, table: str, number: int) -> None:
        rows = self._by_name.get(table)
        if rows is None:
            rows = self._by_name[table] = self._rows_of(table)
        rows.setdefault(number, kind != apsw.SQLITE_INSERT)

    def _rows_of(self, table: str) -> dict[int, bool]:
        """Where the rows of a table of SQLite are recorded; only those of users' tables count."""
        if not table.startswith(TABLE_PREFIX):
            return {}
        return self.rows.setdefault(table.removeprefix(TABLE_PREFIX).casefold(), {})


@dataclass(slots=True)
class SavedTable:
    """``rows`` maps numbers to the values of ``written_columns``; a row that is not there is gone.
    ``history`` are the rows that were replaced."""

    table: Table
    rows: dict[int, Row]
    history: list[Row]


@dataclass(slots=True)
class Saved:
    """All that a transaction has changed in the file."""

    tables: list[SavedTable] = field(default_factory=list)
    mods: list[Row] = field(default_factory=list)


class WriteBuffer:
    """What one transaction has written and not committed."""

    def __init__(self) -> None:
        self._touched = TouchedRows()
        self._saved = Saved()
        self.dropped = False

    def add(self, touched: TouchedRows) -> None:
        """A statement is done that touched these rows."""
        self._touched.add(touched)

    def drop(self) -> None:
        """The transaction has ended: what it wrote is not needed any more."""
        self.dropped = True
        self._touched, self._saved = TouchedRows(), Saved()

    def save(self, connection: apsw.Connection, schema: Schema) -> None:
        """Reads out what the transaction has changed, before SQLite rolls its transaction back."""
        tables = []
        for name, numbers in self._touched.rows.items():
            table = schema.table(name)
            if table is None:
                raise unknown_table(name)
            tables.append(save_table(connection, table, numbers))
        self._saved = Saved(tables, connection.execute(SELECT_MODS).fetchall())

    def load(self, connection: apsw.Connection) -> None:
        """Writes all again, in a new transaction of SQLite, without firing any trigger."""
        connection.execute(SET_LAST_COMMIT, (PENDING,))
        saved = self._saved
        if not saved.tables:
            return
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        try:
            for table in saved.tables:
                self._load_table(connection, table)
        finally:
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)
        connection.executemany(INSERT_MOD, saved.mods)

    def _load_table(self, connection: apsw.Connection, saved: SavedTable) -> None:
        """Writes the rows of a table; those that were inserted get new numbers.

        Another transaction may have taken theirs since.
        """
        name = saved.table.name.casefold()
        touched = self._touched.rows[name]
        there = [number for number, was_there in touched.items() if was_there]
        connection.execute(
            f"DELETE FROM {current_table(saved.table.name)} "
            "WHERE _rowid_ IN (SELECT value FROM json_each(?))",
            (json.dumps(there),),
        )
        insert = insert_sql(saved.table)
        moved: dict[int, int] = {}
        for number, row in saved.rows.items():
            connection.execute(insert, (number if touched[number] else None, *row))
            moved[number] = connection.last_insert_rowid()
        # A new row may have the number of one that the transaction has deleted: that one was there.
        numbers = {now: touched[before] for before, now in moved.items()}
        self._touched.rows[name] = numbers | dict.fromkeys(there, True)
        connection.executemany(history_sql(saved.table), saved.history)


def save_table(
    connection: apsw.Connection, table: Table, numbers: Mapping[int, bool]
) -> SavedTable:
    """Reads out the rows of a table that a transaction has touched."""
    listed = ", ".join(written_columns(table))
    rows = connection.execute(
        f"SELECT _rowid_, {listed} FROM {current_table(table.name)} "
        "WHERE _rowid_ IN (SELECT value FROM json_each(?))",
        (json.dumps(list(numbers)),),
    )
    values = {int(str(row[0])): row[1:] for row in rows}
    history = connection.execute(
        f'SELECT {history_columns(table)} FROM {history_table(table.name)} WHERE "$to" = {PENDING}'
    ).fetchall()
    return SavedTable(table, values, history)


def written_columns(table: Table) -> list[str]:
    """The columns that SQLite does not compute."""
    return [quote_name("$ts"), *(quote_name(c.name) for c in table.columns if c.generated is None)]


def insert_sql(table: Table) -> str:
    """INSERT of a row with its number, or of one that takes a new number."""
    columns = written_columns(table)
    marks = ", ".join("?" * (len(columns) + 1))
    names = ", ".join(columns)
    return f"INSERT INTO {current_table(table.name)} (_rowid_, {names}) VALUES ({marks})"


def history_columns(table: Table) -> str:
    """All columns of the replaced rows."""
    return ", ".join(['"$from"', '"$to"', *(quote_name(c.name) for c in table.columns)])


def history_sql(table: Table) -> str:
    """INSERT of a replaced row."""
    marks = ", ".join("?" * (len(table.columns) + 2))
    return f"INSERT INTO {history_table(table.name)} ({history_columns(table)}) VALUES ({marks})"
