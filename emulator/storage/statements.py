"""The DDL statements of a database in its file: its schemas follow from them, at any timestamp."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from emulator.storage.sqlite import run

CREATE_STATEMENTS = (
    'CREATE TABLE IF NOT EXISTS "$statements" (number INTEGER PRIMARY KEY, text TEXT NOT NULL, '
    "micros INTEGER NOT NULL DEFAULT 0, descriptors BLOB NOT NULL DEFAULT x'')"
)
ADDED_COLUMNS = {
    "micros": "INTEGER NOT NULL DEFAULT 0",
    "descriptors": "BLOB NOT NULL DEFAULT x''",
}
"""What the file of an older server may lack."""
OLD_BUNDLE = "$proto_bundle"
"""The table in which an older server kept the descriptors of the one bundle."""


@dataclass(frozen=True, slots=True)
class ExecutedStatement:
    """A statement and its commit timestamp in Unix microseconds.

    ``descriptors`` is the FileDescriptorSet of a statement about the proto bundle.
    """

    text: str
    micros: int
    descriptors: bytes = b""


def create_statements(connection: apsw.Connection) -> None:
    """The table in a new file; in the file of an older server the statements have always held."""
    run(connection, CREATE_STATEMENTS)
    columns = [str(row[1]) for row in connection.execute('PRAGMA table_info("$statements")')]
    for name, definition in ADDED_COLUMNS.items():
        if name not in columns:
            run(connection, f'ALTER TABLE "$statements" ADD COLUMN {name} {definition}')
    if "descriptors" not in columns and has_table(connection, OLD_BUNDLE):
        run(
            connection,
            f'UPDATE "$statements" SET descriptors = (SELECT descriptors FROM "{OLD_BUNDLE}")'
            f' WHERE EXISTS (SELECT 1 FROM "{OLD_BUNDLE}") AND number = (SELECT max(number) FROM'
            """ "$statements" WHERE ltrim(upper(text)) LIKE 'CREATE%PROTO%BUNDLE%(%')""",
        )


def has_table(connection: apsw.Connection, name: str) -> bool:
    """Whether the file has a table."""
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return connection.execute(query, (name,)).fetchone() is not None


def save_statement(connection: apsw.Connection, statement: ExecutedStatement) -> None:
    """Adds a statement, in its own transaction."""
    connection.execute(
        'INSERT INTO "$statements" (text, micros, descriptors) VALUES (?, ?, ?)',
        (statement.text, statement.micros, statement.descriptors),
    )


def date_back_statements(connection: apsw.Connection) -> None:
    """Makes what was executed hold from the beginning of time on."""
    connection.execute('UPDATE "$statements" SET micros = 0')


def load_statements(connection: apsw.Connection) -> list[ExecutedStatement]:
    """What was executed, oldest first."""
    rows = connection.execute('SELECT text, micros, descriptors FROM "$statements" ORDER BY number')
    return [
        ExecutedStatement(str(text), int(str(micros)), sent if isinstance(sent, bytes) else b"")
        for text, micros, sent in rows
    ]


def count_bytes(connection: apsw.Connection) -> int:
    """The bytes of everything that was executed."""
    query = 'SELECT coalesce(sum(octet_length(text)), 0) FROM "$statements"'
    return int(str(connection.execute(query).fetchone()[0]))  # type: ignore[index]
