"""Options that several commands share."""

from __future__ import annotations

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
