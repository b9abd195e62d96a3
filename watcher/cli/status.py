"""``spanner-watcher status``."""

from __future__ import annotations

from typing import Annotated

import typer

from watcher.cli import actions
from watcher.cli.options import (
    POSITIONS_TABLE,
    ConsumerOption,
    DatabaseOption,
    JsonOption,
    PositionsTableOption,
)


def command(
    database: DatabaseOption,
    consumer: ConsumerOption = None,
    errors: Annotated[
        bool, typer.Option("--errors", help="Also list the stored errors of the consumers.")
    ] = False,
    by_shard_group: Annotated[
        int,
        typer.Option(
            "--shard-groups",
            min=0,
            metavar="NUMBER",
            help="Count the lag in this many shard groups.",
        ),
    ] = 0,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
    json_output: JsonOption = False,
) -> None:
    """Show the state and the lag of each consumer.

    Shows state, position, lag, and rate for each consumer and table. Counts the rows behind with a
    query of the index alone. A consumer whose lease has expired is shown as not alive.
    """
    actions.status.show_status(
        database, consumer, errors, by_shard_group, positions_table, json_output
    )
