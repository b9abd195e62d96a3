"""``spanner-watcher bench``."""

from __future__ import annotations

import typer

from watcher.cli import actions


def command(context: typer.Context) -> None:
    """Measure the watcher under load."""
    actions.bench.run_benchmarks(context.args)
