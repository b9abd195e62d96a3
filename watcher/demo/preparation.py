"""Makes the demo's table watchable, as a user would: plan, show, apply."""

from __future__ import annotations

from dataclasses import dataclass

from google.cloud.spanner_v1.database import Database
from rich.console import Console

from ddl.migration.apply import apply_plan, read_schema
from ddl.migration.plan import make_plan
from ddl.model.options import WatchOptions
from watcher.captures.statements import count_index
from watcher.demo.settings import TABLE, DemoSettings
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.queries import QueryClient
from watcher.spanner.timestamps import format_timestamp
from watcher.tables.discovery import discover_table
from watcher.tables.values import WatchedTable


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
    now = QueryClient(DatabaseAddress.parse(database.name)).fetch_read_timestamp()
    return DemoTable(discover_table(database, TABLE), now)
