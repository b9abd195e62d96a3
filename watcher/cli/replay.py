"""``spanner-watcher replay``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from watcher.cli import actions
from watcher.cli.options import DryRunOption


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of dead letters.")],
    callback: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="Call this function with each change, a mapping as 'watch' prints it."
            " Without it, changes are printed.",
        ),
    ] = None,
    dry_run: DryRunOption = False,
) -> None:
    """Deliver the changes of a dead-letter file again.

    Delivered changes are removed from the file. Newer versions of the same rows may have been
    delivered in the meantime: compare commit timestamps.
    """
    actions.replay.replay(file, callback, dry_run)
