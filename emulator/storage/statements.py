"""The DDL statements of a database in its file: its schemas follow from them, at any timestamp."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from emulator.storage.sqlite import run

CREATE_STATEMENTS = (
    'CREATE TABLE IF NOT EXISTS "$statements" (number INTEGER PRIMARY KEY, text TEXT NOT NULL, '
    "micros INTEGER NOT NULL DEFAULT 0)"
)


@dataclass(frozen=True, slots=True)
class ExecutedStatement:
    """A statement and its commit timestamp in Unix microseconds."""

    text: str
    micros: int


def create_statements(connection: apsw.Connection) -> None:
    """The table in a new file; in the file of an older server the statements have always held."""
    run(connection, CREATE_STATEMENTS)
    columns = [str(row[1]) for row in connection.execute('PRAGMA table_info("$statements")')]
    if "micros" not in columns:
        run(
            connection,
            'ALTER TABLE "$statements" ADD COLUMN micros INTEGER NOT NULL DEFAULT 0',
        )


def save_statement(connection: apsw.Connection, text: str, micros: int) -> None:
    """Adds a statement, in its own transaction."""
    connection.execute('INSERT INTO "$statements" (text, micros) VALUES (?, ?)', (text, micros))


def date_back_statements(connection: apsw.Connection) -> None:
    """Makes what was executed hold from the beginning of time on."""
    connection.execute('UPDATE "$statements" SET micros = 0')


def load_statements(connection: apsw.Connection) -> list[ExecutedStatement]:
    """What was executed, oldest first."""
    rows = connection.execute('SELECT text, micros FROM "$statements" ORDER BY number')
    return [ExecutedStatement(str(text), int(str(micros))) for text, micros in rows]
