"""The demo's database: an ordinary table with rows, and what it holds in the end."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable

from google.cloud import spanner
from google.cloud.spanner_admin_database_v1 import DatabaseDialect
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.keyset import KeySet

from benchmarks.demo.settings import DATABASE, INSTANCE, PROJECT, TABLE, TABLES, DemoSettings
from benchmarks.demo.verification import Row
from benchmarks.demo.writer import COLUMNS, make_row
from ddl.schema import Dialect

ROWS_A_LOAD_COMMIT = 1_000
DIALECTS = {
    Dialect.GOOGLESQL: DatabaseDialect.GOOGLE_STANDARD_SQL,
    Dialect.POSTGRESQL: DatabaseDialect.POSTGRESQL,
}


def create_database(settings: DemoSettings, progress: Callable[[int], None]) -> Database:
    """Creates instance and database and loads the table; ``progress`` is told of rows loaded."""
    client = spanner.Client(project=PROJECT, disable_builtin_metrics=True)
    configuration = f"projects/{PROJECT}/instanceConfigs/emulator-config"
    instance = client.instance(INSTANCE, configuration_name=configuration, node_count=1)
    instance.create().result(60)
    database: Database = instance.database(DATABASE, database_dialect=DIALECTS[settings.dialect])
    database.create().result(60)
    database.update_ddl([TABLES[settings.dialect]]).result(60)
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
