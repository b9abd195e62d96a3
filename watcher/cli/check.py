"""``spanner-watcher check``: whether everything is ready to be watched."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from watcher.cli.options import (
    ConfigOption,
    ConsumerOption,
    JsonOption,
    OptionalDatabaseOption,
    StreamOption,
    TablesOption,
)
from watcher.cli.output import CONSOLE, print_json
from watcher.process.terminal.console import label
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from watcher.cli.config import load_config
    from watcher.runners.preflight import Finding, check


def command(
    config: ConfigOption = None,
    database: OptionalDatabaseOption = None,
    table: TablesOption = None,
    stream: StreamOption = None,
    consumer: ConsumerOption = None,
    json_output: JsonOption = False,
) -> None:
    """Check whether tables are ready to be watched.

    Checks configuration, access, schema and indexes, and says what to fix. Changes nothing.

    Exits with 0 if everything is ready, 1 if something is not, 2 if the configuration is wrong.
    """
    flags = {
        "database": database,
        "tables": tuple(table) if table else None,
        "consumer": consumer,
        "capture": "change-stream" if stream is not None else None,
        "stream.name": stream,
    }
    findings = list(check(load_config(config, flags)))
    if json_output:
        print_json(
            [
                {"name": f.name, "ok": f.ok, "detail": f.detail, "advice": "" if f.ok else f.advice}
                for f in findings
            ]
        )
    else:
        print_findings(findings)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def print_findings(findings: Sequence[Finding]) -> None:
    """Prints a line for each check, and what to do if it failed."""
    for finding in findings:
        word, style = ("ok", "green") if finding.ok else ("no", "red")
        CONSOLE.print(label(word, style, f"  {finding.name}: {finding.detail}"))
        if not finding.ok and finding.advice:
            CONSOLE.print(f"    {finding.advice}")
