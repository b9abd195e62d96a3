"""``spanner-watcher emulator``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ddl.schema import Dialect
from watcher.cli import actions
from watcher.cli.options import OptionalDatabaseOption

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
            metavar="DIRECTORY", help="Keep the databases in this directory; without it, in memory."
        ),
    ] = None,
    ready_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the address into this file when the server is ready."
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
) -> None:
    """Run an embedded Spanner on this machine.

    Real gRPC; no Java, no Docker, no cloud account. Creates the database of --database, unless it
    exists. Prints "listening on HOST:PORT", then a line that exports the environment variable with
    which every Spanner client uses this server. Ctrl-C or SIGTERM stops it.
    """
    if schema is not None and database is None:
        raise typer.BadParameter("--schema needs --database, the database to create")
    strict = [f"{STRICT}=1"] if strict_pending_timestamps else []
    faults = [*(fault or []), *strict]
    actions.emulator.run_emulator(
        host, port, data_dir, ready_file, database, schema, dialect, faults
    )
