"""Runs the embedded Spanner until it is stopped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import typer

from ddl.parse import parse_script
from ddl.render import render_step
from ddl.schema import Dialect
from emulator.__main__ import serve
from emulator.errors import SpannerError
from emulator.faults import Faults, parse_faults
from watcher.spanner.address import EMULATOR_HOST, DatabaseAddress
from watcher.spanner.database import create_on_emulator
from watcher.text_files import read_text_file


def run_emulator(
    host: str,
    port: int,
    data_dir: Path | None,
    ready_file: Path | None,
    database: str | None,
    schema: Path | None,
    dialect: Dialect,
    faults: Sequence[str],
) -> None:
    """Serves until a signal; exits with the code of the server. Creates ``database`` first."""
    injected = read_faults(faults)
    address = DatabaseAddress.parse(database) if database is not None else None
    script = read_text_file(schema) if schema is not None else ""
    statements = [render_step(step, dialect) for step in parse_script(script, dialect)]

    def create_database(listening: str) -> None:
        if address is not None:
            os.environ[EMULATOR_HOST] = listening
            create_on_emulator(address, statements, dialect)

    raise typer.Exit(serve(host, port, data_dir, ready_file, create_database, faults=injected))


def read_faults(pairs: Sequence[str]) -> Faults:
    """The faults of --fault. Raises BadParameter for an unknown one."""
    try:
        return parse_faults(pairs)
    except SpannerError as error:
        raise typer.BadParameter(error.message, param_hint="--fault") from error
