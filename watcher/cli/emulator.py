"""``spanner-watcher emulator``: runs the embedded Spanner until it is stopped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ddl.model.schema import Dialect
from watcher.cli.options import OptionalDatabaseOption
from watcher.process.terminal.loading import to_run
from watcher.process.terminal.values import to_file, to_folder

if to_run(__name__):
    from ddl.syntax.parse import parse_script
    from ddl.syntax.render import render_step
    from emulator.__main__ import serve
    from emulator.errors import SpannerError
    from emulator.faults import Faults, parse_faults
    from emulator.server import StartError
    from emulator.wrong import set_wrong
    from watcher.model.errors import UnavailableError
    from watcher.process.text_files import read_text_file
    from watcher.spanner.address import EMULATOR_HOST, DatabaseAddress
    from watcher.spanner.database import create_on_emulator

EXTRAS = ("emulator",)
WRONG_HELP = "Make a behaviour of docs/assumptions.md wrong, so that a probe finds it; repeatable."
STRICT = "strict_pending_timestamps"
"""The fault that --strict-pending-timestamps sets."""
DEFAULT_PORT = 9010
"""That of ``python -m emulator``, repeated because loading that takes a second."""


def command(
    host: Annotated[
        str, typer.Option(metavar="HOST", help="The address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65_535, metavar="PORT", help="The port to listen on; 0 picks a free one."
        ),
    ] = DEFAULT_PORT,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            callback=to_folder,
            metavar="DIRECTORY",
            help="Keep the databases in this directory; without it, in memory.",
        ),
    ] = None,
    ready_file: Annotated[
        Path | None,
        typer.Option(
            callback=to_file,
            metavar="FILE",
            help="Write the address into this file when the server is ready.",
        ),
    ] = None,
    database: OptionalDatabaseOption = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            metavar="FILE",
            help="Create the database of --database, unless it exists, with these DDL statements.",
        ),
    ] = None,
    dialect: Annotated[
        Dialect,
        typer.Option(
            metavar="DIALECT",
            help="The dialect of the database that is created: googlesql or postgresql.",
        ),
    ] = Dialect.GOOGLESQL,
    strict_pending_timestamps: Annotated[
        bool,
        typer.Option(
            "--strict-pending-timestamps",
            help="Refuse to read a table in a transaction that has written a pending commit"
            " timestamp into it by DML, by DEFAULT and ON UPDATE, too: to test applications.",
        ),
    ] = False,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER",
            help="A fault to inject, such as aborted_commit_probability=0.1; repeatable.",
        ),
    ] = None,
    wrong: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help=WRONG_HELP, hidden=True)
    ] = None,
) -> None:
    """Run an embedded Spanner on this machine.

    Real gRPC; no Java, no Docker, no cloud account. Creates the database of --database, unless it
    exists. Prints "listening on HOST:PORT", then a line that exports the environment variable with
    which every Spanner client uses this server. Ctrl-C or SIGTERM stops it.
    """
    if schema is not None and database is None:
        raise typer.BadParameter("--schema needs --database, the database to create")
    strict = [f"{STRICT}=1"] if strict_pending_timestamps else []
    injected = read_faults([*(fault or []), *strict])
    make_wrong(wrong or [])
    address = DatabaseAddress.parse(database) if database is not None else None
    script = read_text_file(schema) if schema is not None else ""
    statements = [render_step(step, dialect) for step in parse_script(script, dialect)]

    def create_database(listening: str) -> None:
        if address is not None:
            os.environ[EMULATOR_HOST] = listening
            create_on_emulator(address, statements, dialect)

    try:
        serve(host, port, data_dir, ready_file, create_database, faults=injected)
    except StartError as error:
        raise UnavailableError(str(error)) from error


def read_faults(pairs: Sequence[str]) -> Faults:
    """The faults of --fault. Raises BadParameter for an unknown one."""
    try:
        return parse_faults(pairs)
    except SpannerError as error:
        raise typer.BadParameter(error.message, param_hint="--fault") from error


def make_wrong(names: Sequence[str]) -> None:
    """What --wrong names. Raises BadParameter for an unknown name."""
    try:
        set_wrong(names)
    except SpannerError as error:
        raise typer.BadParameter(error.message, param_hint="--wrong") from error
