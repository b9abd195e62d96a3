"""Options that several commands share."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

DatabaseOption = Annotated[
    str,
    typer.Option(
        "--database",
        "-d",
        metavar="ADDRESS",
        help="spanner://projects/PROJECT/instances/INSTANCE/databases/DATABASE"
        " (set SPANNER_EMULATOR_HOST for an emulator)",
    ),
]
TableOption = Annotated[str, typer.Option("--table", "-t", help="The table to watch.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
PositionsOption = Annotated[
    str, typer.Option("--positions-table", help="The Spanner table that keeps positions.")
]


def log_to_stderr(verbose: bool) -> None:
    """Logs go to the standard error; rows and credentials are never logged."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO if verbose else logging.WARNING,
        format="time=%(asctime)s level=%(levelname)s logger=%(name)s message=%(message)s",
    )
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
