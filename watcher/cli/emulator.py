"""``spanner-watcher emulator``: runs the embedded Spanner until it is stopped."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from spanner_schema.model.schema import Dialect
from watcher.cli.options import OptionalDatabaseOption
from watcher.process.terminal.loading import to_run
from watcher.process.terminal.values import to_file, to_folder

if to_run(__name__):
    import grpc

    from emulator.command import serve
    from emulator.copy_calls import SNAPSHOT
    from emulator.data_directories import (
        StartError,
        clear_directory,
        is_filled,
        restore_directory,
    )
    from emulator.errors import SpannerError
    from emulator.faults import Faults, parse_faults
    from emulator.process import call_server
    from emulator.server import Server
    from emulator.tls import choose_tls
    from emulator.wrong import set_wrong
    from spanner_schema.syntax.parse import parse_script
    from spanner_schema.syntax.render import render_step
    from watcher.model.errors import ConfigurationError, UnavailableError
    from watcher.process.text_files import read_text_file
    from watcher.spanner.address import EMULATOR_HOST, DatabaseAddress
    from watcher.spanner.database import create_on_emulator
    from watcher.spanner.seeds import Seed, read_seed

EXTRAS = ("emulator",)
WRONG_HELP = "Make a behaviour of docs/assumptions.md wrong, so that a probe finds it; repeatable."
SNAPSHOT_SECONDS_MAX = 600.0
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
    seed: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="A file, or a folder of *.sql files: what the database of --database begins with,"
            " DDL first, then DML. A database that exists stays as it is.",
        ),
    ] = None,
    reset: Annotated[
        bool,
        typer.Option("--reset", help="Remove the databases of --data-dir first; asks before."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="--reset does not ask.")] = False,
    restore: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Begin with this snapshot; --data-dir must have no databases.",
        ),
    ] = None,
    snapshot: Annotated[
        Path | None,
        typer.Option(
            callback=to_folder,
            metavar="DIRECTORY",
            help="Start nothing: the running server that SPANNER_EMULATOR_HOST names writes all its"
            " databases, as they are at one moment, into this empty directory on its machine.",
        ),
    ] = None,
    log_sql: Annotated[
        bool,
        typer.Option(
            "--log-sql",
            help="Log every query and DML statement with its time and rows; values of parameters"
            " are not logged.",
        ),
    ] = False,
    page: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            metavar="PORT",
            help="Show databases, tables and rows, to look at, on http://localhost:PORT; 0 picks a"
            " free one.",
        ),
    ] = None,
    tls_certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Speak TLS, with this certificate (PEM): clients reach it by an endpoint.",
        ),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The key of --tls-certificate (PEM).")
    ] = None,
    tls_client_ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Ask clients for a certificate of this authority (PEM)."),
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
    if snapshot is not None:
        take_snapshot(snapshot.absolute())
        return
    for name, value in (("--schema", schema), ("--seed", seed)):
        if value is not None and database is None:
            raise typer.BadParameter(f"{name} needs --database, the database to create")
    for name, chosen in (("--reset", reset), ("--restore", restore is not None)):
        if chosen and data_dir is None:
            raise typer.BadParameter(f"{name} needs --data-dir, the directory of the databases")
    if tls_certificate is not None and database is not None:
        raise typer.BadParameter("with --tls-certificate create the database through a client")
    if tls_certificate is not None and page is not None:
        raise typer.BadParameter("--page reads by SPANNER_EMULATOR_HOST, which speaks no TLS")
    strict = [f"{STRICT}=1"] if strict_pending_timestamps else []
    injected = read_faults([*(fault or []), *strict])
    make_wrong(wrong or [])
    address = DatabaseAddress.parse(database) if database is not None else None
    script = read_text_file(schema) if schema is not None else ""
    statements = [render_step(step, dialect) for step in parse_script(script, dialect)]
    begin = Seed(tuple(statements)) + (read_seed(seed, dialect) if seed is not None else Seed())

    def prepare(server: Server) -> None:
        if address is None and page is None:
            return
        os.environ[EMULATOR_HOST] = server.address
        if address is not None:
            created = create_on_emulator(address, begin.ddl, dialect, begin.dml)
            if not created and seed is not None:
                print(f"{address} exists: --seed has changed nothing", file=sys.stderr)
        if page is not None:
            serve_page(page, server.list_databases)

    try:
        prepare_directory(data_dir, reset=reset, ask=not yes, restore=restore)
        serve(
            host,
            port,
            data_dir,
            ready_file,
            prepare,
            faults=injected,
            log_sql=log_sql,
            tls=choose_tls(tls_certificate, tls_key, tls_client_ca),
        )
    except StartError as error:
        raise UnavailableError(str(error)) from error


def serve_page(port: int, list_databases: Callable[[], Sequence[str]]) -> None:
    """The page of --page. Raises ConfigurationError for a port in use."""
    # Half a second of imports: whoever wants no page does not wait for them.
    served = import_module("watcher.overview.rows_page.app").serve_rows(port, list_databases)
    print(f"databases, tables and rows: http://localhost:{served}/", file=sys.stderr)


def prepare_directory(
    data_dir: Path | None, *, reset: bool, ask: bool, restore: Path | None
) -> None:
    """What --reset and --restore do before the server starts. Raises StartError."""
    if data_dir is None:
        return
    if reset and is_filled(data_dir):
        if ask:
            confirm_reset(data_dir)
        clear_directory(data_dir)
    if restore is not None:
        restore_directory(restore, data_dir)


def confirm_reset(data_dir: Path) -> None:
    """Asks. Raises BadParameter where nobody can answer, Abort for no."""
    if not sys.stdin.isatty():
        raise typer.BadParameter("--reset asks in a terminal; add --yes elsewhere")
    typer.confirm(f"Remove all databases in {data_dir}?", abort=True, err=True)


def take_snapshot(directory: Path) -> None:
    """The snapshot that --snapshot names. Raises ConfigurationError and UnavailableError."""
    listening = os.environ.get(EMULATOR_HOST)
    if not listening:
        raise typer.BadParameter(f"--snapshot needs {EMULATOR_HOST}, the address of the server")
    values = {"directory": str(directory)}
    try:
        call_server(listening, SNAPSHOT, values, SNAPSHOT_SECONDS_MAX)
    except grpc.RpcError as error:
        explain_snapshot(error, listening)
    print(f"{directory} has the databases of {listening}; start with it: --restore {directory}")


def explain_snapshot(error: grpc.RpcError, listening: str) -> NoReturn:
    """Raises the error of a server as one of ours."""
    if error.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}:
        raise UnavailableError(
            f"nothing answers at {EMULATOR_HOST}={listening}: start it with"
            " 'spanner-watcher emulator'"
        ) from error
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        raise ConfigurationError(
            f"the server at {listening} makes no snapshots: it is another one than this"
            " package's, or an older one"
        ) from error
    raise ConfigurationError(f"no snapshot: {error.details()}") from error


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
