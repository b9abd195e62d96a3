"""``spanner-watcher emulator``: the embedded Spanner until it is stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emulator.__main__ import DEFAULT_PORT, serve


def command(
    host: Annotated[str, typer.Option(help="Where to listen; loopback unless you say so.")] = (
        "127.0.0.1"
    ),
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Where to listen; 0 takes a free port.")
    ] = DEFAULT_PORT,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Keep the databases in this directory (else in memory)."),
    ] = None,
    ready_file: Annotated[
        Path | None, typer.Option(help="Write the address into this file when it serves.")
    ] = None,
) -> None:
    """Run an embedded Spanner: real gRPC, no Java, no Docker, no cloud account.

    The first line printed is "listening on HOST:PORT"; the second one exports the environment
    variable that makes every Spanner client use it. Ctrl-C or SIGTERM stops it.
    """
    raise typer.Exit(serve(host, port, data_dir, ready_file))
