"""``spanner-watcher page``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from watcher.cli import actions
from watcher.cli.options import (
    POSITIONS_TABLE,
    DatabaseOption,
    EveryOption,
    PositionsTableOption,
    StalenessOption,
)


def command(
    database: DatabaseOption,
    host: Annotated[
        str,
        typer.Option("--host", metavar="ADDRESS", help="Where to listen; not loopback: a token."),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="PORT", min=0, max=65_535, help="0: the system chooses one."
        ),
    ] = 8765,
    control: Annotated[
        bool,
        typer.Option("--control", help="Allow pause, resume, drain and stop through the page."),
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="Ask for the token in this file, on loopback too, instead of a random one.",
        ),
    ] = None,
    every: EveryOption = "5s",
    staleness: StalenessOption = "10s",
    positions_table: PositionsTableOption = POSITIONS_TABLE,
) -> None:
    """Show all consumers on a live page.

    State, lag, last error and commands of each consumer, time until data is lost, backfills, and
    the rows in the indexes. Serves /metrics, /healthz and /readyz, too. Listens on this machine
    alone unless --host says otherwise; then it asks for a token, which is printed at the start.

    Only reads, in reads that are a few seconds old, unless --control is given.
    """
    actions.page.serve_page(
        actions.page.PageRequest(
            database=database,
            host=host,
            port=port,
            control=control,
            token_file=token_file,
            every=every,
            staleness=staleness,
            positions_table=positions_table,
        )
    )
