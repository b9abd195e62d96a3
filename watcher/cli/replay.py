"""``spanner-watcher replay``: delivers dead letters again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from watcher.cli.options import DryRunOption
from watcher.process.terminal.console import print_error
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from watcher.cli.callbacks import resolve_callback
    from watcher.process.line_files import replace_lines
    from watcher.process.text_files import read_text_file
    from watcher.runners.callbacks import Callback
    from watcher.runners.delivery.retries import parse_dead_letters


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
    text = read_text_file(file)
    letters = list(parse_dead_letters(file, text))
    if callback is None or dry_run:
        for letter in letters:
            sys.stdout.write(json.dumps(extract_change(letter), ensure_ascii=False) + "\n")
        return
    refused = deliver(letters, callback)
    replace_lines(file, text, [json.dumps(letter) for letter in refused])
    if refused:
        print_error(
            f"the callback failed again for {len(refused)} of {len(letters)} changes;"
            f" they stay in {file}"
        )
        raise typer.Exit(1)


def deliver(letters: list[dict[str, object]], callback: str) -> list[dict[str, object]]:
    """Calls the callback with each change; the letters that it refused, with their new errors."""
    function = Callback(resolve_callback(callback))
    refused = []
    for letter in letters:
        try:
            function(extract_change(letter))  # type: ignore[arg-type]
        except Exception as error:  # noqa: BLE001 (the callback is the user's own)
            refused.append(letter | {"error": repr(error)})
    return refused


def extract_change(letter: dict[str, object]) -> dict[str, object]:
    """The change, without the error that made it a dead letter."""
    return {name: value for name, value in letter.items() if name != "error"}
