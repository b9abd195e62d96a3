"""The command ``spanner-watcher``: options and help. What the commands do is in actions."""

from __future__ import annotations

import sys

import typer

from ddl.errors import DdlError
from watcher.cli import (
    bench,
    check,
    clear,
    ctl,
    ddl,
    demo,
    emulator,
    replay,
    replicate,
    status,
    verify,
    watch,
)
from watcher.cli.group import CommandGroup
from watcher.cli.output import print_error
from watcher.errors import WatcherError

app = typer.Typer(
    name="spanner-watcher",
    cls=CommandGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Turn a Cloud Spanner database into a stream of row changes.",
)
app.command("watch")(watch.command)
app.command("replicate")(replicate.command)
app.command("verify")(verify.command)
app.command("check")(check.command)
app.command("status")(status.command)
app.add_typer(ctl.app, name="ctl")
app.command("clear")(clear.command)
app.command("replay")(replay.command)
app.add_typer(ddl.app, name="ddl")
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


def main() -> None:
    """Runs the command line. Errors are one sentence; the exit code says which kind.

    0 done, 1 failed, 2 wrong usage, 3 no server or no access, 4 not found, 5 not watchable,
    6 checkpoint or position of another consumer, 7 too old to read, 8 no Java, 9 callback failed,
    10 a replica differs.
    """
    try:
        # Without standalone mode, typer returns the code of an Exit instead of raising it.
        code = app(standalone_mode=False)
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except typer.TyperException as error:
        print_error(error.format_message())
        sys.exit(2)
    except (WatcherError, DdlError) as error:
        print_error(str(error))
        sys.exit(error.exit_code)
    sys.exit(code if isinstance(code, int) else 0)
