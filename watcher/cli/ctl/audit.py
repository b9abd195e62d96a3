"""``ctl audit``: what operators did."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from watcher.cli.options import POSITIONS_TABLE, DatabaseOption, JsonOption, PositionsTableOption
from watcher.cli.output import CONSOLE, print_json
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from watcher.consumers.audit import AuditEntry, read_audit
    from watcher.process.terminal.tables import TableColumn, print_table
    from watcher.spanner.address import DatabaseAddress
    from watcher.spanner.database import connect
    from watcher.spanner.timestamps import format_timestamp


def command(
    database: DatabaseOption,
    consumer: Annotated[
        str | None,
        typer.Option("--consumer", metavar="NAME", help="Only what was done to this consumer."),
    ] = None,
    limit: Annotated[
        int,
        typer.Option("--limit", metavar="NUMBER", min=1, help="How many entries, newest first."),
    ] = 100,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
    json_output: JsonOption = False,
) -> None:
    """Show what operators did: who, when, what, and how it ended.

    Commands of ctl and of the page, clearings, replays that name a database. Who is the user and
    the machine, as the process sees them: Cloud Audit Logs have Google's principal.
    """
    client = connect(DatabaseAddress.parse(database))
    entries = read_audit(client, positions_table, consumer, limit)
    if json_output:
        print_json([describe(each) for each in entries])
    elif entries:
        columns = [TableColumn(title) for title in ("at", "who", "action", "consumer")]
        columns += [TableColumn("details", drop=1), TableColumn("result")]
        print_table(CONSOLE, columns, [*map(list_cells, entries)], "--json shows everything")
    else:
        CONSOLE.print("no entries")


def describe(entry: AuditEntry) -> dict[str, object]:
    """An entry as JSON."""
    return {**asdict(entry), "at": format_timestamp(entry.at)}


def list_cells(entry: AuditEntry) -> list[str]:
    """An entry as a row of the table."""
    details = json.dumps(entry.details, ensure_ascii=False) if entry.details else ""
    at = format_timestamp(entry.at)
    return [at, entry.who, entry.action, entry.consumer or "-", details, entry.result]
