"""``ctl backup`` and ``ctl restore``: the state of a consumer as a file."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from watcher.cli.options import (
    POSITIONS_TABLE,
    DatabaseOption,
    DryRunOption,
    JsonOption,
    PositionsTableOption,
)
from watcher.cli.output import CONSOLE, print_json
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from watcher.consumers import backups
    from watcher.consumers.audit import Audit
    from watcher.consumers.moving import End
    from watcher.consumers.positions.fences import Location
    from watcher.model.errors import ConfigurationError
    from watcher.spanner.address import DatabaseAddress
    from watcher.spanner.database import connect
    from watcher.spanner.timestamps import format_timestamp

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The file of the backup.")]


def backup(
    file: FileArgument,
    database: DatabaseOption,
    consumer: Annotated[
        str, typer.Option("--consumer", metavar="NAME", help="The consumer, with all its parts.")
    ],
    positions_table: PositionsTableOption = POSITIONS_TABLE,
    json_output: JsonOption = False,
) -> None:
    """Write the state of a consumer to a file.

    Positions, tables, the division into parts, the command of an operator; no leases, and no rows
    of yours. The consumer may run. Replaces the file.
    """
    address = DatabaseAddress.parse(database)
    backups.prove_writable(file)
    end = End(connect(address), Location(consumer, str(address), positions_table))
    saved = backups.back_up(end, file)
    report = describe(saved, file)
    if json_output:
        print_json(report)
    else:
        CONSOLE.print(f"{consumer}: {count_positions(saved)} positions written to {file}")


def restore(
    file: FileArgument,
    database: DatabaseOption,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace a consumer of this name, which must have ended."),
    ] = False,
    other_database: Annotated[
        bool,
        typer.Option(
            "--other-database", help="Also where the backup is of a database of another name."
        ),
    ] = False,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Also where rows that were not delivered were cleared since, which are lost.",
        ),
    ] = False,
    dry_run: DryRunOption = False,
    json_output: JsonOption = False,
) -> None:
    """Bring a consumer back as a file of 'ctl backup' has it.

    It delivers again what it has delivered since. Fails while an instance runs, and for a consumer
    that was moved away.
    """
    address = DatabaseAddress.parse_for_writes(database)
    saved = backups.load_backup(file)
    if saved.database != address.path and not other_database:
        raise ConfigurationError(
            f"{file} is a backup of a consumer of {saved.database}, whose timestamps mean nothing"
            f" in {address.path} unless it was restored from there: use --other-database then"
        )
    client, name = connect(address), saved.consumer.name
    end = End(client, Location(name, str(address), positions_table))
    audit = Audit(client, positions_table)
    with nullcontext() if dry_run else audit.record("restore", name, file=file):
        lost = backups.restore(end, saved, replace, accept_loss, dry_run)
    at = {table: format_timestamp(micros) for table, micros in sorted(lost.items())}
    if json_output:
        print_json(describe(saved, file) | {"dry_run": dry_run, "lost_up_to": at})
        return
    done = "would be" if dry_run else "are"
    taken = format_timestamp(saved.taken_at)
    CONSOLE.print(f"{name}: {count_positions(saved)} positions {done} as they were at {taken}")
    for table, text in at.items():
        CONSOLE.print(f"rows of {table} up to {text} may be lost")


def describe(saved: backups.Backup, file: Path) -> dict[str, object]:
    """A backup as JSON."""
    return {
        "consumer": saved.consumer.name,
        "file": str(file),
        "taken_at": format_timestamp(saved.taken_at),
        "positions": {
            each.name: {t: format_timestamp(p.position) for t, p in sorted(each.positions.items())}
            for each in saved.consumer.members
        },
    }


def count_positions(saved: backups.Backup) -> int:
    """Of the consumer and its parts."""
    return sum(len(each.positions) for each in saved.consumer.members)
