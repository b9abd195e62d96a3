"""``spanner-watcher emulator``: the embedded Spanner until it is stopped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ddl.parse import parse_script
from ddl.render import render_step
from emulator.__main__ import DEFAULT_PORT, serve
from emulator.errors import SpannerError
from emulator.faults import FAULT_HELP, Faults, parse_faults
from watcher.spanner.address import EMULATOR_HOST, DatabaseAddress
from watcher.spanner.database import create_on_emulator


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
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            "-d",
            metavar="ADDRESS",
            help="Create this database at the start, unless it is there:"
            " spanner://projects/PROJECT/instances/INSTANCE/databases/DATABASE",
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="DDL statements for the database that is created."
        ),
    ] = None,
    fault: Annotated[list[str] | None, typer.Option(metavar="NAME=NUMBER", help=FAULT_HELP)] = None,
) -> None:
    """Run an embedded Spanner: real gRPC, no Java, no Docker, no cloud account.

    The first line printed is "listening on HOST:PORT"; the second one exports the environment
    variable that makes every Spanner client use it. Ctrl-C or SIGTERM stops it.
    """
    if schema is not None and database is None:
        raise typer.BadParameter("--schema needs --database, the database to create")
    faults = faults_of(fault or [])
    address = DatabaseAddress.parse(database) if database is not None else None
    script = schema.read_text() if schema is not None else ""
    statements = [render_step(step) for step in parse_script(script)]

    def prepare(listening: str) -> None:
        if address is not None:
            os.environ[EMULATOR_HOST] = listening
            create_on_emulator(address, statements)

    raise typer.Exit(serve(host, port, data_dir, ready_file, prepare, faults=faults))


def faults_of(pairs: list[str]) -> Faults:
    """What --fault asks for; an unknown one is a wrong command line."""
    try:
        return parse_faults(pairs)
    except SpannerError as error:
        raise typer.BadParameter(error.message, param_hint="--fault") from error
