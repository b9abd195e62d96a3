"""Runs the demo: the whole data path on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import typer

from benchmarks.demo.processes import ChildError
from benchmarks.demo.run import Demo
from benchmarks.demo.settings import DemoOptions
from ddl.schema import Dialect
from watcher.terminal.console import print_error


def run_demo(
    options: Mapping[str, int | float | str | Dialect], keep: Path | None, json_output: bool
) -> None:
    """Runs the demo; exits with 1 unless every row was verified."""
    try:
        summary = Demo(DemoOptions(**options), keep, json_output).run()  # type: ignore[arg-type]
    except ChildError as error:
        print_error(str(error))
        raise typer.Exit(1) from error
    raise typer.Exit(0 if summary.verified else 1)
