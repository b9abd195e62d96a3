"""``spanner-watcher replay``: delivers dead letters again."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from watcher.cli.options import (
    POSITIONS_TABLE,
    ConsumerOption,
    DryRunOption,
    OptionalDatabaseOption,
    PositionsTableOption,
)
from watcher.process.terminal.console import print_error
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from watcher.cli.callbacks import resolve_callback
    from watcher.consumers.audit import DONE, Audit, Outcome
    from watcher.model.errors import ConfigurationError
    from watcher.process.line_files import replace_lines
    from watcher.process.text_files import read_text_file
    from watcher.sinks.callbacks import Callback
    from watcher.sinks.dead_letters import extract_record, parse_dead_letters
    from watcher.spanner.address import DatabaseAddress
    from watcher.spanner.database import connect


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
    database: OptionalDatabaseOption = None,
    consumer: ConsumerOption = None,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
) -> None:
    """Deliver the changes of a dead-letter file again.

    Delivered changes are removed from the file. Newer versions of the same rows may have been
    delivered in the meantime: compare commit timestamps. With --database and --consumer, 'ctl
    audit' shows the replay.
    """
    if (database is None) is not (consumer is None):
        raise ConfigurationError("--database and --consumer go together: give both, or neither")
    text = read_text_file(file)
    letters = list(parse_dead_letters(file, text))
    if callback is None or dry_run:
        for letter in letters:
            sys.stdout.write(json.dumps(extract_record(letter), ensure_ascii=False) + "\n")
        return
    with record_replay(database, positions_table, consumer, file) as outcome:
        refused = deliver(letters, callback)
        outcome.result = f"{DONE}: {len(letters) - len(refused)} of {len(letters)} changes"
        replace_lines(file, text, [json.dumps(letter) for letter in refused])
    if refused:
        print_error(
            f"the callback failed again for {len(refused)} of {len(letters)} changes;"
            f" they stay in {file}"
        )
        raise typer.Exit(1)


def record_replay(
    database: str | None, positions_table: str, consumer: str | None, file: Path
) -> AbstractContextManager[Outcome]:
    """The entry of the audit, where it is asked for."""
    if database is None or consumer is None:
        return nullcontext(Outcome())
    client = connect(DatabaseAddress.parse_for_writes(database))
    return Audit(client, positions_table).record("replay", consumer, file=file)


def deliver(letters: list[dict[str, object]], callback: str) -> list[dict[str, object]]:
    """Calls the callback with each change; the letters that it refused, with their new errors."""
    function = Callback(resolve_callback(callback))
    refused = []
    for letter in letters:
        try:
            function(extract_record(letter))  # type: ignore[arg-type]
        except Exception as error:  # noqa: BLE001 (the callback is the user's own)
            refused.append(letter | {"error": repr(error)})
    return refused
