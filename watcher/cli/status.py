"""``spanner-watcher status``."""

from __future__ import annotations

from typing import Annotated

import typer

from watcher.cli import actions
from watcher.cli.options import (
    POSITIONS_TABLE,
    ConsumerOption,
    DatabaseOption,
    EveryOption,
    JsonOption,
    PositionsTableOption,
    StalenessOption,
)
from watcher.errors import ConfigurationError


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
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Show it again and again, as 'page' does; with --json a line for each read.",
        ),
    ] = False,
    every: EveryOption = "5s",
    staleness: StalenessOption = "10s",
) -> None:
    """Show the state and the lag of each consumer.

    Shows state, position, lag, and rate for each consumer and table. Counts the rows behind with a
    query of the index alone. A consumer whose lease has expired is shown as not alive.

    With --watch also the time until data is lost, backfills and the rows in the indexes: by reads
    that are a few seconds old (--staleness, --every), and counts that stop at a limit.
    """
    if watch:
        if errors or by_shard_group:
            raise ConfigurationError("--errors and --shard-groups do not go with --watch")
        actions.status_watch.watch_status(
            actions.status_watch.StatusWatch(
                database=database,
                consumer=consumer,
                every=every,
                staleness=staleness,
                positions_table=positions_table,
                json_output=json_output,
            )
        )
        return
    actions.status.show_status(
        database, consumer, errors, by_shard_group, positions_table, json_output
    )
