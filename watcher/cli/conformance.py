"""``spanner-watcher conformance``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from watcher.cli import actions
from watcher.cli.options import JsonOption


class Promise(StrEnum):
    """What a system delivers."""

    EVERY_VERSION = "every-version"
    NEWEST_ROW = "newest-row"


class Prepared(StrEnum):
    """What a database has for those who look for changes."""

    STREAM = "stream"
    POLL = "poll"


def command(
    against: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="The command that is judged, with placeholders such as {database}; or a system by"
            " name: watch-poll, watch-change-stream, watch-push, debezium.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="The format of its lines: plain (the default), debezium, change-stream,"
            " datastream.",
        ),
    ] = None,
    prepare: Annotated[
        Prepared | None,
        typer.Option(
            metavar="KIND",
            help="What the database has: stream (a change stream, the default), or poll (commit"
            " timestamps and an index, as 'ddl apply' makes them).",
        ),
    ] = None,
    value_capture: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE",
            help="The value_capture_type of the change stream (OLD_AND_NEW_VALUES); repeatable:"
            " the seed chooses.",
        ),
    ] = None,
    promise: Annotated[
        Promise | None,
        typer.Option(
            metavar="PROMISE",
            help="every-version (the default): deletes and versions in between, too; newest-row:"
            " the newest version of each row.",
        ),
    ] = None,
    exactly_once: Annotated[
        bool, typer.Option("--exactly-once", help="Every change that comes again is a finding.")
    ] = False,
    stages: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="NUMBER",
            help="The programs that pass a change on, each with a position of its own: 2 where a"
            " broker lies between. A kill explains so many repeats of a change (1).",
        ),
    ] = None,
    transactions: Annotated[
        bool, typer.Option("--transactions", help="The changes of a transaction come together.")
    ] = False,
    no_windows: Annotated[
        bool, typer.Option("--no-windows", help="Do not judge the windows of lines.")
    ] = False,
    late_max: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="A later change in undisturbed times is a finding (10); 0: none is.",
        ),
    ] = None,
    blows: Annotated[
        list[str] | None,
        typer.Option(
            "--blow",
            metavar="BLOW",
            help="Strike with this one only; repeatable: kill, stop, freeze, restart_server,"
            " trouble, change_schema, or none. Default: those that the seed chooses of all.",
        ),
    ] = None,
    churn: Annotated[
        bool,
        typer.Option(
            "--churn",
            help="Partitions of the change stream split, merge and move, the schema changes, and"
            " writers come and go, as the seed chooses.",
        ),
    ] = False,
    runs: Annotated[int, typer.Option(min=1, metavar="NUMBER", help="How many runs.")] = 10,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="The seed of the first run.")] = 1,
    seconds: Annotated[
        float | None,
        typer.Option(min=0.1, metavar="SECONDS", help="How long a run writes and strikes (8)."),
    ] = None,
    settle: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="What has not come when nothing has come for so long is lost (30).",
        ),
    ] = None,
    stop_seconds: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="How long its end may take (30)."),
    ] = None,
    start_seconds: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="SECONDS", help="How long its first line may take after a start (120)."
        ),
    ] = None,
    pause: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="SECONDS", help="The pause between two blows, on average (0.6)."
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Keep lines, commits, blows and logs in this new folder."
        ),
    ] = None,
    judge: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Judge the kept run of a seed again, and run nothing."),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Judge any change-capture system under faults.

    Starts an embedded Spanner with writers, and the command, which prints the changes as JSON
    lines. Kills, freezes and stops the command, kills the server, breaks calls, changes the schema,
    and with --churn partitions and writers, too; then says what was lost, doubled, reordered, torn,
    late or wrong, each with its seed. Exits with 1 if there was anything.

    \b
    Examples:
      spanner-watcher conformance --against watch-poll --runs 20 --churn
      spanner-watcher conformance --against './reader {database} {stream} {start} {state}'
    """
    actions.conformance.judge_system(
        against,
        judge,
        {
            "format": output,
            "prepare": prepare.value if prepare else None,
            "value_captures": tuple(value_capture) if value_capture else None,
            "blows": tuple(blow for blow in blows if blow != "none") if blows else None,
            "churn": churn,
            "seed": seed,
            "seconds": seconds,
            "settle_seconds": settle,
            "stop_seconds": stop_seconds,
            "start_seconds": start_seconds,
            "pause_seconds": pause,
        },
        {
            "every_version": promise is Promise.EVERY_VERSION if promise else None,
            "exactly_once": exactly_once or None,
            "stages": stages,
            "transactions": transactions or None,
            "windows": False if no_windows else None,
            "late_seconds_max": late_max,
        },
        runs,
        keep,
        as_json=json_output,
    )
