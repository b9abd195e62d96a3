"""``spanner-watcher replay``: dead letters, delivered again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from watcher.cli.output import print_error
from watcher.cli.watch import resolve_callback
from watcher.runners.delivery import read_dead_letters


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of dead letters.")],
    callback: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="Call this with each change, a mapping as 'watch' prints it; else it is printed.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be delivered; change nothing.")
    ] = False,
) -> None:
    """Deliver the changes of a dead-letter file again. What succeeds leaves the file.

    Newer versions of the same rows may have been delivered meanwhile: compare commit timestamps.
    """
    letters = list(read_dead_letters(file))
    deliver = resolve_callback(callback) if callback is not None and not dry_run else None
    left = []
    for letter in letters:
        change = {name: value for name, value in letter.items() if name != "error"}
        if deliver is None:
            sys.stdout.write(json.dumps(change, ensure_ascii=False) + "\n")
            continue
        try:
            deliver(change)  # type: ignore[arg-type]
        except Exception as error:  # noqa: BLE001 (the callback is the user's own)
            left.append(letter | {"error": repr(error)})
    if deliver is None:
        return
    part = file.with_name(file.name + ".new")
    part.write_text("".join(json.dumps(letter) + "\n" for letter in left))
    part.replace(file)
    if left:
        print_error(
            f"{len(left)} of {len(letters)} changes were refused again; they stay in {file}"
        )
        raise typer.Exit(1)
