"""``spanner-watcher check``: whether everything is ready to be watched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from watcher.cli.options import (
    ConfigOption,
    ConsumerOption,
    JsonOption,
    OptionalDatabaseOption,
    StreamOption,
    TablesOption,
)
from watcher.cli.output import CONSOLE, ERRORS, print_json
from watcher.process.terminal.console import label
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from rich.progress import Progress

    from watcher.cli.config import load_config
    from watcher.overview.probe.run import STEPS, describe_verdict, probe_database, remove_probe
    from watcher.overview.probe.stored import store_failures
    from watcher.overview.probe.tables import ProbeNames
    from watcher.overview.probe.verdicts import Outcome, Verdict
    from watcher.runners.preflight import Finding, check
    from watcher.settings.watcher import WatchConfig
    from watcher.spanner.database import connect

PREFIX = "SpannerWatcherProbe"
"""The default of ``watcher.overview.probe.tables``, repeated: loading that takes long."""


def command(
    config: ConfigOption = None,
    database: OptionalDatabaseOption = None,
    table: TablesOption = None,
    stream: StreamOption = None,
    consumer: ConsumerOption = None,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe",
            help="Try in this database what docs/assumptions.md says of Spanner, with tables of its"
            " own, which are removed at the end; needs the right to change the schema.",
        ),
    ] = False,
    dataset: Annotated[
        str,
        typer.Option(metavar="NAME", help="How the names of the tables of --probe begin."),
    ] = PREFIX,
    clean: Annotated[
        bool,
        typer.Option("--clean", help="Only remove what a killed --probe has left."),
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Check whether tables are ready to be watched.

    Checks configuration, access, schema and indexes, and says what to fix. Changes nothing.

    With --probe it tries the behaviours of Spanner that the product relies on instead, and stores
    those that do not hold beside the positions: watch, replicate and Spark then refuse what would
    lose rows.

    Exits with 0 if everything is ready, 1 if something is not, 2 if the configuration is wrong.
    """
    if clean and not probe:
        raise typer.BadParameter("--clean removes what --probe has left: add --probe")
    flags = {
        "database": database,
        "tables": table,
        "consumer": consumer,
        "stream.name": stream,
    }
    settings = load_config(config, flags)
    if probe:
        ready = run_probe(settings, ProbeNames(dataset), clean, json_output)
    else:
        ready = run_check(settings, json_output)
    if not ready:
        raise typer.Exit(1)


def run_check(config: WatchConfig, json_output: bool) -> bool:
    """Checks whether everything is ready, and says so."""
    findings = list(check(config))
    if json_output:
        print_json(
            [
                {"name": f.name, "ok": f.ok, "detail": f.detail, "advice": "" if f.ok else f.advice}
                for f in findings
            ]
        )
    else:
        print_findings(findings)
    return all(finding.ok for finding in findings)


def print_findings(findings: Sequence[Finding]) -> None:
    """Prints a line for each check, and what to do if it failed."""
    for finding in findings:
        word, style = ("ok", "green") if finding.ok else ("no", "red")
        CONSOLE.print(label(word, style, f"  {finding.name}: {finding.detail}"))
        if not finding.ok and finding.advice:
            CONSOLE.print(f"    {finding.advice}")


def run_probe(config: WatchConfig, names: ProbeNames, clean: bool, json_output: bool) -> bool:
    """Probes the database, or only removes what a killed probe has left."""
    if clean:
        removed = remove_probe(config.address, names)
        if json_output:
            print_json({"removed": removed})
        else:
            CONSOLE.print(f"removed {removed} objects that begin with {names.prefix}")
        return True
    with Progress(console=ERRORS, disable=json_output or not ERRORS.is_terminal) as progress:
        task = progress.add_task("probing", total=STEPS)
        verdicts = probe_database(config.address, names, lambda: progress.advance(task))
    if config.positions.keep == "spanner":
        positions = connect(config.positions_address)
        store_failures(positions, config.positions.table, config.address, verdicts)
    if json_output:
        print_json([describe_verdict(each) for each in verdicts])
    else:
        print_verdicts(verdicts)
    return all(each.outcome is not Outcome.FAILS for each in verdicts)


STYLES = {"holds": "green", "does not hold": "red", "cannot be tried": "yellow"}


def print_verdicts(verdicts: Sequence[Verdict]) -> None:
    """Prints a line for each assumption, and of one that does not hold what to do."""
    for each in verdicts:
        word = each.outcome.value
        name = each.assumption.name
        CONSOLE.print(label(f"{word:15}", STYLES[word], f"  {name:26} {each.seen}"))
        if each.outcome is Outcome.FAILS:
            modes = ", ".join(mode.value for mode in each.assumption.modes)
            CONSOLE.print(f"    {each.assumption.sentence}")
            CONSOLE.print(
                f"    affects {modes} ({each.assumption.consequence.value}):"
                f" {each.assumption.broken}; {each.assumption.advice}"
            )
