"""``spanner-watcher try``."""

from __future__ import annotations

from typing import Annotated

import typer

from watcher.cli import actions
from watcher.cli.options import JsonOption


def command(
    seconds: Annotated[
        float | None,
        typer.Option(min=0.1, metavar="SECONDS", help="End by itself after this time."),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(min=1, metavar="NUMBER", help="End by itself after this many changes."),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """See changes arrive, in one terminal, without a cloud.

    Starts an embedded Spanner in memory, creates a table, makes it watchable, writes a row every
    half second and prints each change as it arrives. Ctrl-C ends everything; nothing stays behind.
    With --json, prints the changes alone, as 'watch' does.
    """
    actions.trial.run_trial(seconds, rows, json_output)
