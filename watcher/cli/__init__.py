"""The command ``spanner-watcher``: options and help. What the commands do is in actions."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

from watcher.cli import (
    actions,
    bench,
    check,
    clear,
    conformance,
    ctl,
    ddl,
    demo,
    emulator,
    page,
    replay,
    replicate,
    status,
    trial,
    verify,
    watch,
)
from watcher.errors import WatcherError
from watcher.terminal.commands import CommandApp, run_commands, show_version

app = CommandApp(
    name="spanner-watcher",
)


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


app.command("try")(trial.command)
app.command("watch")(watch.command)
app.command("replicate")(replicate.command)
app.command("verify")(verify.command)
app.command("check")(check.command)
app.command("status")(status.command)
app.command("page")(page.command)
app.add_typer(ctl.app, name="ctl")
app.command("clear")(clear.command)
app.command("replay")(replay.command)
app.add_typer(ddl.app, name="ddl")
app.command("conformance")(conformance.command)
app.command("emulator")(emulator.command)
app.command("demo")(demo.command)
app.command(
    "bench",
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "help_option_names": [],
    },
)(bench.command)


def explain(error: Exception) -> WatcherError | None:
    """What an error of a library means; loaded when there is one."""
    explained: WatcherError | None = actions.failures.explain_error(error)
    return explained


def main() -> NoReturn:
    """Runs the command line."""
    run_commands(app, "spanner-watcher", explain)
