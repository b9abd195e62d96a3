"""Tables as they lay in the file before a schema change, kept for reads at earlier timestamps.

A change that takes values away (DROP TABLE, DROP COLUMN, another type) puts the table's rows and
its history away under a number, and the table goes on with new ones. An archive therefore answers
every read below the change's timestamp, and the table itself every read from it on. Changes that
only add columns need none: a read names the columns of its own schema.
"""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from emulator.storage.sqlite import current_table, history_table, run
from emulator.values.sqlite_text import quote_name
from spanner_schema.model.schema import Table

CREATE_ARCHIVES = (
    'CREATE TABLE IF NOT EXISTS "$archives" (number INTEGER PRIMARY KEY AUTOINCREMENT, '
    '"table" TEXT NOT NULL, until INTEGER NOT NULL, has_rows INTEGER NOT NULL, '
    "has_history INTEGER NOT NULL)"
)
"""Numbers are never used twice: a statement that was compiled for one finds no other."""


@dataclass(frozen=True, slots=True)
class Archive:
    """A table up to the schema change at ``until`` (Unix microseconds); its name in lower case.

    What was empty is not kept: ``has_rows`` and ``has_history`` say what there is.
    """

    number: int
    table: str
    until: int
    has_rows: bool
    has_history: bool

    @property
    def rows(self) -> str:
        """The SQLite table with the rows that were current."""
        return quote_name(f"a${self.number}")

    @property
    def history(self) -> str:
        """The SQLite table with the rows that had been replaced."""
        return quote_name(f"b${self.number}")

    def select(self, table: Table, conditions: str) -> str:
        """A SELECT of the rows as of ``:asof_``; ``conditions`` end with AND or are empty."""
        names = ", ".join(quote_name(c.name) for c in table.columns)
        halves = []
        if self.has_rows:
            halves.append(f'SELECT {names} FROM {self.rows} WHERE {conditions}"$ts" <= :asof_')
        if self.has_history:
            halves.append(
                f"SELECT {names} FROM {self.history} "
                f'WHERE {conditions}"$to" > :asof_ AND "$from" <= :asof_'
            )
        if not halves:
            nothing = ", ".join(f"NULL AS {quote_name(c.name)}" for c in table.columns)
            return f"SELECT {nothing} WHERE FALSE"
        return " UNION ALL ".join(halves)


def archive_table(connection: apsw.Connection, name: str, until: int) -> Archive:
    """Moves a table into an archive; its indexes and triggers are dropped already."""
    has_rows = not is_empty(connection, current_table(name))
    has_history = not is_empty(connection, history_table(name))
    connection.execute(
        'INSERT INTO "$archives" ("table", until, has_rows, has_history) VALUES (?, ?, ?, ?)',
        (name.casefold(), until, has_rows, has_history),
    )
    number = connection.last_insert_rowid()
    archive = Archive(number, name.casefold(), until, has_rows, has_history)
    move(connection, current_table(name), archive.rows if has_rows else None)
    move(connection, history_table(name), archive.history if has_history else None)
    return archive


def move(connection: apsw.Connection, table: str, target: str | None) -> None:
    """Renames a table, or drops it: a rename makes SQLite read the whole schema again."""
    if target is None:
        run(connection, f"DROP TABLE {table}")
    else:
        run(connection, f"ALTER TABLE {table} RENAME TO {target}")


def is_empty(connection: apsw.Connection, table: str) -> bool:
    """Whether a table (quoted) has no row."""
    return connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is None


def load_archives(connection: apsw.Connection) -> list[Archive]:
    """Everything that is kept, oldest first."""
    rows = connection.execute(
        'SELECT number, "table", until, has_rows, has_history FROM "$archives" ORDER BY number'
    )
    return [
        Archive(int(str(number)), str(table), int(str(until)), bool(has_rows), bool(has_history))
        for number, table, until, has_rows, has_history in rows
    ]


def drop_archive(connection: apsw.Connection, archive: Archive) -> None:
    """Drops an archive that no read may ask for any more."""
    if archive.has_rows:
        run(connection, f"DROP TABLE {archive.rows}")
    if archive.has_history:
        run(connection, f"DROP TABLE {archive.history}")
    connection.execute('DELETE FROM "$archives" WHERE number = ?', (archive.number,))
