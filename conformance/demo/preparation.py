"""The demo's database: an ordinary table with rows, made watchable as a user would, and what it
holds in the end."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass

from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.keyset import KeySet
from rich.console import Console

from conformance.demo.settings import TABLE, DemoSettings
from conformance.demo.verification import Values
from conformance.demo.writer import COLUMNS, make_row
from ddl.migration.apply import apply_plan, read_schema
from ddl.migration.plan import make_plan
from spanner_schema.model.options import WatchOptions
from watcher.captures.statements import count_index
from watcher.spanner.database import connect
from watcher.spanner.queries import QueryClient
from watcher.spanner.timestamps import format_timestamp
from watcher.tables.discovery import discover_table
from watcher.tables.values import WatchedTable

ROWS_A_LOAD_COMMIT = 1_000


def load_table(settings: DemoSettings, progress: Callable[[int], None]) -> Database:
    """Loads the table; ``progress`` gets how many rows each commit has."""
    database = connect(settings.address)
    for first in range(0, settings.rows, ROWS_A_LOAD_COMMIT):
        keys = range(first, min(first + ROWS_A_LOAD_COMMIT, settings.rows))
        with database.batch() as batch:
            batch.insert(TABLE, COLUMNS, [make_row(key, "v0") for key in keys])
        progress(len(keys))
    return database


def read_rows_by_key(database: Database) -> dict[int, Values]:
    """Every row of the table, by a strong read; the client hands BYTES out in base64."""
    with database.snapshot() as snapshot:
        rows = snapshot.read(TABLE, COLUMNS, KeySet(all_=True))
        return {values[0]: (*values[:-1], b64decode(values[-1])) for values in rows}


@dataclass(frozen=True, slots=True)
class DemoTable:
    """The table as it is watched, and the moment from which its changes count."""

    table: WatchedTable
    beginning_micros: int

    @property
    def beginning(self) -> str:
        """The moment as RFC 3339."""
        return format_timestamp(self.beginning_micros)

    @property
    def count_index(self) -> str:
        """The query that counts the rows in the index."""
        return count_index(self.table).sql


def make_watchable(settings: DemoSettings, database: Database, console: Console) -> DemoTable:
    """Applies the migration, and shows its statements with a reason each."""
    plan = make_plan(read_schema(database), [TABLE], WatchOptions(shards=settings.shards))
    console.print("[bold]The migration that makes Singers watchable:[/bold]")
    for number, statement in enumerate(plan.statements, 1):
        console.print(f"{number}. {statement.sql};", markup=False, style="cyan")
        console.print(f"   -- {statement.reason}", markup=False, style="dim")
    apply_plan(database, plan)
    now = QueryClient(settings.address).fetch_read_timestamp()
    return DemoTable(discover_table(database, TABLE), now)
