"""``spanner-watcher spark-archive``: an archive of classes, with which Spark starts faster."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from watcher.cli.options import JsonOption
from watcher.cli.output import CONSOLE, ERRORS, print_json
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from watcher.process.spark.class_archive import make_archive, require_archive_path

EXTRAS = ("spark",)
MEGABYTE = 1_000_000


def command(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show where the archive is or would be; make none.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Make Spark start in half the time on this machine.

    Runs a short session of Spark, half a minute, and keeps the classes that its Java has loaded in
    an archive of some 200 MB in your cache folder ($XDG_CACHE_HOME or ~/.cache). Sessions take it
    that begin with watcher.prestart(), and those of 'replicate --engine spark' and 'demo', as long
    as Java and PySpark are the same: run this again after an upgrade, and in the build of an image.
    """
    if dry_run:
        show_path(require_archive_path(), json_output)
        return
    with ERRORS.status("running a session of Spark"):
        made = make_archive()
    if json_output:
        print_json(asdict(made) | {"path": str(made.path)})
        return
    CONSOLE.print(f"{made.path}: {made.bytes / MEGABYTE:.0f} MB, in {made.seconds:.0f} s")
    CONSOLE.print("Sessions take it that begin with watcher.prestart(), or that our commands make.")


def show_path(path: Path, json_output: bool) -> None:
    """Where the archive is, or would be."""
    there = path.is_file()
    if json_output:
        print_json({"path": str(path), "there": there})
    else:
        CONSOLE.print(f"{path}: {'there' if there else 'not there yet'}")
