"""The command ``spanner-watcher``. Each command is a file, loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, NoReturn

import typer

from watcher.model.errors import WatcherError
from watcher.process.terminal.commands import CommandApp, run_commands, show_version

COMMANDS = {
    "try": "watcher.cli.trial:command",
    "watch": "watcher.cli.watch:command",
    "replicate": "watcher.cli.replicate:command",
    "verify": "watcher.cli.verify:command",
    "check": "watcher.cli.check:command",
    "status": "watcher.cli.status:command",
    "page": "watcher.cli.page:command",
    "ctl": "watcher.cli.ctl:app",
    "clear": "watcher.cli.clear:command",
    "replay": "watcher.cli.replay:command",
    "ddl": "watcher.cli.ddl:app",
    "spark-archive": "watcher.cli.spark_archive:command",
    "emulator": "watcher.cli.emulator:command",
}
ENTRY_POINTS = "spanner_watcher.commands"
"""The group of entry points (pyproject.toml) under which packages that are not below this one
register their commands."""

app = CommandApp(COMMANDS, ENTRY_POINTS, name="spanner-watcher", add_completion=True)


@app.callback()
def describe(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Turn a Cloud Spanner database into a stream of row changes.

    To see one arrive, run 'spanner-watcher try'.
    """


def explain(error: Exception) -> WatcherError | None:
    """What an error of a library means; loaded when there is one."""
    explained: WatcherError | None = import_module("watcher.cli.failures").explain_error(error)
    return explained


def main() -> NoReturn:
    """Runs the command line."""
    run_commands(app, "spanner-watcher", explain)
