"""The command ``spanner-watcher bench``, and ``python -m benchmarks``."""

from __future__ import annotations

from typing import NoReturn

from watcher.process.terminal.commands import CommandApp, explain_system_error, run_commands

app = CommandApp(
    {
        "run": "benchmarks.cli.run:command",
        "list": "benchmarks.cli.scenarios:command",
        "model": "benchmarks.cli.model:command",
        "report": "benchmarks.cli.results:report",
        "compare": "benchmarks.cli.results:compare",
    },
    name="spanner-watcher bench",
)


@app.callback(short_help="Measure the watcher under load.")
def describe() -> None:
    """Find out which configuration carries your load, and how late changes arrive.

    A scenario starts writers on a schedule (an open loop: a slow system cannot hide its latency)
    and the watcher, each in a process of its own, and compares every delivered row with what was
    written: a run that loses, invents or doubles one fails. Results are JSON files and one HTML
    page.

    \b
      spanner-watcher bench list                            which scenarios there are
      spanner-watcher bench list latency                    its settings, and what they mean
      spanner-watcher bench run --short                     the short set, in some minutes
      spanner-watcher bench run latency --set rates=500,3000 --set seconds=60
      spanner-watcher bench run sustained -d spanner://projects/P/instances/I/databases/D
      spanner-watcher bench compare before after            two results side by side, with ratios
      spanner-watcher bench model --nodes 100 --writes 200000
    """


def main() -> NoReturn:
    """Runs the command line; errors are one sentence."""
    run_commands(app, "spanner-watcher bench", explain_system_error)
