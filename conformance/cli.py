"""``spanner-watcher conformance``: judges a command, and prints what was wrong."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from watcher.cli.options import JsonOption, NewDatabaseOption
from watcher.cli.output import CONSOLE, ERRORS, print_json
from watcher.model.errors import ConfigurationError
from watcher.process.terminal.loading import to_run
from watcher.process.terminal.values import to_folder

if to_run(__name__):
    from conformance.presets import PRESETS
    from conformance.run import Report
    from conformance.runs import describe_all, describe_run, judge_again, make_json, run_all
    from conformance.settings import BLOWS, OF_SERVER, Settings


EXTRAS = ("emulator",)
FINDINGS_SHOWN = 5
FINDINGS_SHOWN_AGAIN = 1_000
"""Of a run that is judged again."""


def command(
    against: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="The command that is judged, with placeholders such as {database}; or a system by"
            " name: watch-poll, watch-change-stream, watch-push, debezium.",
        ),
    ] = None,
    database: NewDatabaseOption = None,
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
        Literal["stream", "poll"] | None,
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
        Literal["every-version", "newest-row"] | None,
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
            callback=to_folder,
            metavar="FOLDER",
            help="Keep lines, commits, blows and logs in this new folder.",
        ),
    ] = None,
    judge: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Judge the kept run of a seed again, and run nothing."),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Judge any change-capture system under faults.

    Starts an embedded Spanner with writers (with --database, uses one that is there), and the
    command, which prints the changes as JSON lines. Kills, freezes and stops the command, kills the
    server, breaks calls, changes the schema, and with --churn partitions and writers, too; then
    says what was lost, doubled, reordered, torn, late or wrong, each with its seed. Exits with 1 if
    there was anything.

    \b
    Examples:
      spanner-watcher conformance --against watch-poll --runs 20 --churn
      spanner-watcher conformance --against './reader {database} {stream} {start} {state}'
    """
    if judge is not None:
        print_again(judge_again(judge), as_json=json_output)
        return
    if against is None:
        raise ConfigurationError(
            "nothing to judge: use --against with a command or the name of a system"
        )
    chosen = {
        "format": output,
        "prepare": prepare,
        "value_captures": tuple(value_capture) if value_capture else None,
        "blows": choose_blows(blows, database is not None),
        "database": str(database) if database is not None else None,
        "churn": churn,
        "seed": seed,
        "seconds": seconds,
        "settle_seconds": settle,
        "stop_seconds": stop_seconds,
        "start_seconds": start_seconds,
        "pause_seconds": pause,
    }
    promised = {
        "every_version": promise == "every-version" if promise else None,
        "exactly_once": exactly_once or None,
        "stages": stages,
        "transactions": transactions or None,
        "windows": False if no_windows else None,
        "late_seconds_max": late_max,
    }
    settings = make_settings(against, chosen, promised)
    with ExitStack() as stack:
        if keep is not None and keep.exists():
            raise ConfigurationError(f"--keep: {keep} exists: name a new folder")
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        reports = run_and_print(settings, runs, folder, as_json=json_output)
    if keep is not None and not json_output:
        CONSOLE.print(f"kept: {keep}")
    if any(report.findings for report in reports):
        raise typer.Exit(1)


def choose_blows(blows: list[str] | None, there: bool) -> tuple[str, ...] | None:
    """Those that may strike; None for all. Without a choice, a Spanner that is there is spared."""
    if blows:
        return tuple(blow for blow in blows if blow != "none")
    return tuple(blow for blow in BLOWS if blow not in OF_SERVER) if there else None


def make_settings(against: str, chosen: Mapping[str, Any], promised: Mapping[str, Any]) -> Settings:
    """The settings of a preset or of a command, with what was chosen instead."""
    preset = PRESETS.get(against)
    settings = replace(preset.settings, preset=against) if preset is not None else Settings(against)
    promises = replace(
        settings.promises, **{name: value for name, value in promised.items() if value is not None}
    )
    return replace(
        settings,
        promises=promises,
        **{name: value for name, value in chosen.items() if value is not None},
    )


def run_and_print(settings: Settings, runs: int, folder: Path, *, as_json: bool) -> list[Report]:
    """A line for each run when it has ended, and the sum at the end."""
    console = ERRORS if as_json else CONSOLE
    reports: list[Report] = []
    for report in run_all(settings, runs, folder):
        reports.append(report)
        for line in describe_run(report, FINDINGS_SHOWN):
            console.print(line)
    if as_json:
        print_json(make_json(settings, reports))
    else:
        for line in describe_all(reports):
            CONSOLE.print(line)
    return reports


def print_again(report: Report, *, as_json: bool) -> None:
    """The report of a run that was kept. Raises Exit with 1 if anything was wrong."""
    if as_json:
        print_json(asdict(report))
    else:
        for line in describe_run(report, FINDINGS_SHOWN_AGAIN):
            CONSOLE.print(line)
    if report.findings:
        raise typer.Exit(1)
