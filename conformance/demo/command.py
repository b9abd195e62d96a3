"""``spanner-watcher demo``: runs the demo: the whole data path on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from spanner_schema.model.schema import Dialect
from watcher.cli.options import JsonOption, NewDatabaseOption
from watcher.process.terminal.console import print_error
from watcher.process.terminal.loading import to_run
from watcher.process.terminal.values import to_new_folder

if to_run(__name__):
    from conformance.demo.processes import ChildError
    from conformance.demo.run import Demo
    from conformance.demo.settings import DemoOptions


EXTRAS = ("emulator", "spark")


def command(
    database: NewDatabaseOption = None,
    rows: Annotated[
        int,
        typer.Option(min=1, metavar="NUMBER", help="Rows in the table before it is watched."),
    ] = 10_000,
    rate: Annotated[
        int, typer.Option(min=20, metavar="NUMBER", help="Mutations per second of the writer.")
    ] = 1_000,
    seconds: Annotated[
        int, typer.Option(min=1, metavar="SECONDS", help="How long the writer writes.")
    ] = 30,
    kill_driver: Annotated[
        int,
        typer.Option(
            min=0, max=10, metavar="NUMBER", help="Kill the Spark driver (-9) this many times."
        ),
    ] = 0,
    shards: Annotated[
        int, typer.Option(min=1, metavar="NUMBER", help="Values of the computed ShardId.")
    ] = 16,
    shard_groups: Annotated[
        int,
        typer.Option(
            min=1, metavar="NUMBER", help="Shard groups: Spark partitions of a micro-batch."
        ),
    ] = 4,
    clear_every: Annotated[
        float,
        typer.Option(
            min=0.5, metavar="SECONDS", help="Seconds between two clearings of the index."
        ),
    ] = 5.0,
    to: Annotated[
        Literal["parquet", "delta"],
        typer.Option(
            metavar="FORMAT",
            help="parquet: every change, in files; delta: a replica, which is verified.",
        ),
    ] = "parquet",
    dialect: Annotated[
        Dialect, typer.Option(metavar="DIALECT", help="googlesql or postgresql.")
    ] = Dialect.GOOGLESQL,
    seed: Annotated[
        int, typer.Option(metavar="NUMBER", help="Seed of the writer's random choices.")
    ] = 1,
    keep: Annotated[
        Path | None,
        typer.Option(
            callback=to_new_folder,
            metavar="DIRECTORY",
            help="Work in this new directory and keep it (Parquet, checkpoint, logs).",
        ),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Run the whole data path on this machine and verify it.

    Starts the embedded Spanner, or uses one that is there (--database); loads an ordinary table and
    makes it watchable. Writes to it while Spark streams its changes into Parquet and the index is
    cleared, then compares everything. Exits with 0 only if Parquet holds exactly what was written.
    """
    options = DemoOptions(
        rows=rows,
        mutations_per_second=rate,
        write_seconds=seconds,
        driver_kills=kill_driver,
        shards=shards,
        shard_groups=shard_groups,
        clear_every_seconds=clear_every,
        seed=seed,
        to=to,
        dialect=dialect,
    )
    try:
        summary = Demo(options, keep, json_output, database).run()
    except ChildError as error:
        print_error(str(error))
        raise typer.Exit(1) from error
    raise typer.Exit(0 if summary.verified else 1)
