"""``spanner-watcher page``: serves the live page until a signal stops it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import typer

from watcher.cli.logs import configure_logging
from watcher.cli.options import (
    POSITIONS_TABLE,
    CopiesOption,
    OptionalDatabaseOption,
    PositionsTableOption,
)
from watcher.cli.output import CONSOLE, ERRORS
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from watcher.cli.config import load_config
    from watcher.cli.interruption import parse_interval, run_until_interrupted
    from watcher.overview.page.access import is_loopback
    from watcher.overview.page.service import PageService, hide_token
    from watcher.settings.destination_grammar import parse_copies_destination
    from watcher.settings.sections import PageConfig
    from watcher.settings.watcher import WatchConfig, check_page


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
            help="Allow pause, resume, drain, stop and replay through the page; asks for a token.",
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
    to: CopiesOption = None,
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
        "page.control": control,
        "page.token_file": token_file,
        "page.every": parse_interval(every) if every is not None else None,
        "page.staleness": staleness,
        "positions.table": positions_table,
    }
    settings = load_config(config, flags)
    check_page(settings)
    configure_logging(settings.log_format, verbose=False)
    page = settings.page or PageConfig()
    folder = find_folder(to, settings)

    def serve(stopped: threading.Event) -> None:
        service = PageService(page, settings.address, settings.positions.table, folder)
        service.read()
        service.start()
        print_address(str(settings.address), page, service)
        stopped.wait()

    run_until_interrupted(serve)


def find_folder(to: str | None, settings: WatchConfig) -> str | None:
    """The folder of the replica whose proofs are shown. Raises ConfigurationError."""
    if to is not None:
        return parse_copies_destination(to).folder
    return None if settings.replica is None else settings.replica.folder


def print_address(database: str, page: PageConfig, service: PageService) -> None:
    """Prints where the page is."""
    address, advice = hide_token(service.link)
    if CONSOLE.is_terminal:
        address, advice = service.link, None
    CONSOLE.print(f"the page of {database} is at {address}")
    if advice is not None:
        ERRORS.print(advice)
    if not is_loopback(page.host):
        port = service.port
        CONSOLE.print(
            "others can reach it, without encryption: put it behind a proxy with TLS, or use"
            f" 'ssh -L {port}:localhost:{port}' and --host 127.0.0.1"
        )
    CONSOLE.print("Ctrl-C stops it")
