"""``ctl move``: a consumer gets another name, or another database."""

from __future__ import annotations

from contextlib import nullcontext
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
    from watcher.consumers.audit import Audit
    from watcher.consumers.moving import End, move_consumer
    from watcher.consumers.positions.fences import Location
    from watcher.spanner.address import DatabaseAddress
    from watcher.spanner.database import connect


def command(
    name: Annotated[str, typer.Argument(metavar="CONSUMER", help="The consumer's name.")],
    new_name: Annotated[str, typer.Argument(metavar="NEW", help="Its name from now on.")],
    database: DatabaseOption,
    to_database: Annotated[
        str | None,
        typer.Option(
            "--to-database", metavar="ADDRESS", help="Its database from now on, if another one."
        ),
    ] = None,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
    dry_run: DryRunOption = False,
    json_output: JsonOption = False,
) -> None:
    """Move a consumer to another name or database.

    It goes on where it was, under the new name alone: no instance can deliver under the old one any
    more. Another database must have the same rows with the same timestamps, as one that was
    restored from a backup has. Fails while an instance runs. Safe to run again.
    """
    address = DatabaseAddress.parse_for_writes(database)
    other = address if to_database is None else DatabaseAddress.parse_for_writes(to_database)
    source = End(connect(address), Location(name, str(address), positions_table))
    target = End(connect(other), Location(new_name, str(other), positions_table))
    audit = Audit(source.database, positions_table)
    entry = audit.record("move", name, to=new_name, database=str(other))
    with nullcontext() if dry_run else entry:
        whole = move_consumer(source, target, dry_run)
    moved = [whole.rename(each.name, new_name) for each in whole.members]
    if json_output:
        print_json(
            {
                "consumer": name,
                "to": new_name,
                "database": str(other),
                "dry_run": dry_run,
                "moved": moved,
            }
        )
        return
    done = "would be" if dry_run else "is"
    CONSOLE.print(f"{name}: it {done} {target.location.describe()}")
