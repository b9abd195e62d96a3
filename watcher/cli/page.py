"""``spanner-watcher page``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from watcher.cli import actions
from watcher.cli.options import (
    POSITIONS_TABLE,
    OptionalDatabaseOption,
    PositionsTableOption,
)


def command(
    database: OptionalDatabaseOption = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="A watcher's TOML file: its database and its section [page]; flags override it.",
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Where to listen (127.0.0.1); not loopback: a token.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="PORT",
            min=0,
            max=65_535,
            help="The port (8765); 0: the system chooses one.",
        ),
    ] = None,
    control: Annotated[
        bool,
        typer.Option(
            "--control",
            help="Allow pause, resume, drain and stop through the page; asks for a token.",
        ),
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="Ask for the token in this file, on loopback too, instead of a random one.",
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option("--every", metavar="DURATION", help="How often to read, such as 5s."),
    ] = None,
    staleness: Annotated[
        str | None,
        typer.Option(
            "--staleness",
            metavar="DURATION",
            help="How old reads may be (10s), so that the nearest replica serves them; 0s: strong"
            " reads.",
        ),
    ] = None,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
) -> None:
    """Show all consumers on a live page.

    State, lag, last error and commands of each consumer, time until data is lost, backfills, and
    the rows in the indexes. Serves /metrics, /healthz and /readyz, too. Listens on this machine
    alone unless --host says otherwise; then, and with --control, it asks for a token: that of
    --token-file, else a random one, which a terminal shows at the start. Behind a proxy, always
    use --token-file.

    Only reads, in reads that are a few seconds old, unless --control is given. A watcher serves
    the same page beside its work when its file has a section [page].
    """
    flags = {
        "database": database,
        "page.host": host,
        "page.port": port,
        "page.control": control or None,
        "page.token_file": token_file,
        "page.staleness": staleness,
        "positions.table": positions_table if positions_table != POSITIONS_TABLE else None,
    }
    actions.page.serve_page(config, flags, every)
