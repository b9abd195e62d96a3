"""The demo's database: an ordinary table with rows, and what it holds in the end."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable

from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.keyset import KeySet

from watcher.demo.settings import ADDRESS, TABLE, TABLES, DemoSettings
from watcher.demo.verification import Row
from watcher.demo.writer import COLUMNS, make_row
from watcher.spanner.database import connect, create_on_emulator

ROWS_A_LOAD_COMMIT = 1_000


def create_database(settings: DemoSettings, progress: Callable[[int], None]) -> Database:
    """Creates instance and database and loads the table; ``progress`` is told of rows loaded."""
    create_on_emulator(ADDRESS, [TABLES[settings.dialect]], settings.dialect)
    database = connect(ADDRESS)
    for first in range(0, settings.rows, ROWS_A_LOAD_COMMIT):
        keys = range(first, min(first + ROWS_A_LOAD_COMMIT, settings.rows))
        with database.batch() as batch:
            batch.insert(TABLE, COLUMNS, [make_row(key, "v0") for key in keys])
        progress(len(keys))
    return database


def read_rows_by_key(database: Database) -> dict[int, Row]:
    """Every row of the table, by a strong read; the client hands BYTES out in base64."""
    with database.snapshot() as snapshot:
        rows = snapshot.read(TABLE, COLUMNS, KeySet(all_=True))
        return {values[0]: (*values[:-1], b64decode(values[-1])) for values in rows}
