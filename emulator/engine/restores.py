"""A copy of a file becomes another database: rows as of a version time, and nothing before it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import apsw

from emulator.engine.writer import DatabaseWriter
from emulator.errors import unimplemented
from emulator.storage.horizon import save_horizon
from emulator.storage.sqlite import current_table, history_table
from emulator.values.sqlite_text import quote_name
from spanner_schema.model.schema import Dialect, Schema, Table
from spanner_schema.model.steps import SetRowDeletionPolicy
from spanner_schema.syntax.render import render_step

STREAM_TABLES = ("$records", "$partitions", "$mods")


def rewind(writer: DatabaseWriter, at: int) -> None:
    """Takes the rows back to what they were at a timestamp that can be read. The caller holds the
    turn.

    Raises UNIMPLEMENTED where the schema has changed since.
    """
    state = writer.state
    if writer.versions.state_at(at, state) is not state:
        raise unimplemented("A backup at a version_time before the last change of the schema")

    def work(_micros: int) -> None:
        for table in state.schema.tables:
            rewind_table(writer.connection, table, at)

    with without_triggers(writer.connection):
        writer.commit_alone(work)


def rewind_table(connection: apsw.Connection, table: Table, at: int) -> None:
    """Puts the versions that a timestamp sees in the place of newer ones."""
    current, replaced = current_table(table.name), history_table(table.name)
    names = "".join(f", {quote_name(c.name)}" for c in table.columns if c.generated is None)
    connection.execute(f'DELETE FROM {current} WHERE "$ts" > ?', (at,))
    connection.execute(
        f'INSERT INTO {current} ("$ts"{names}) SELECT "$from"{names} FROM {replaced}'
        ' WHERE "$to" > ? AND "$from" <= ?',
        (at, at),
    )


def begin_anew(writer: DatabaseWriter) -> int:
    """Forgets versions and change records from before; the timestamp from which on the database can
    be read, and its change streams, too. The caller holds the turn."""
    schema = writer.state.schema

    def work(micros: int) -> None:
        for name in STREAM_TABLES:
            writer.connection.execute(f"DELETE FROM {quote_name(name)}")
        writer.capture.apply_stream_changes(replace(schema, change_streams=()), schema, micros)
        save_horizon(writer.connection, micros)

    micros = writer.commit_alone(work)
    writer.capture.load()
    return micros


def list_policy_drops(schema: Schema) -> list[str]:
    """The statements that drop the row deletion policies, as Spanner does when it restores."""
    return [
        drop_policy(table, schema.dialect)
        for table in schema.tables
        if table.row_deletion_policy is not None
    ]


def drop_policy(table: Table, dialect: Dialect) -> str:
    """The statement that drops one of them."""
    return render_step(SetRowDeletionPolicy(table.name, None), dialect)


@contextmanager
def without_triggers(connection: apsw.Connection) -> Iterator[None]:
    """Rows come and go without versions, records or checks of references."""
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    try:
        yield
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)
