"""``spanner-watcher check``: is everything ready, before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from watcher.cli.common import JsonOption
from watcher.cli.output import CONSOLE, print_json
from watcher.runners.preflight import check
from watcher.settings.watcher import read_toml, watch_config


def command(
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="The TOML file of the watcher.")
    ] = None,
    database: Annotated[
        str | None, typer.Option("--database", "-d", metavar="ADDRESS", help="The database.")
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", "-t", help="A table or a glob; repeatable.")
    ] = None,
    stream: Annotated[
        str | None, typer.Option(metavar="NAME", help="The change stream that is to be read.")
    ] = None,
    consumer: Annotated[str | None, typer.Option(help="The name that is to be used.")] = None,
    json_output: JsonOption = False,
) -> None:
    """Check configuration, access, schema and indexes; change nothing; say what to do.

    Exits 0 when everything is ready, 1 when something is not, 2 when the configuration is wrong.
    """
    given = read_toml(config) if config is not None else {}
    flags = {
        "database": database,
        "tables": tuple(table) if table else None,
        "consumer": consumer,
    }
    given |= {name: value for name, value in flags.items() if value is not None}
    if stream is not None:
        given |= {"capture": "change-stream", "stream": {"name": stream}}
    findings = list(check(watch_config(given)))
    if json_output:
        print_json(
            [
                {"name": f.name, "ok": f.ok, "detail": f.detail, "advice": "" if f.ok else f.advice}
                for f in findings
            ]
        )
    else:
        for finding in findings:
            mark = "[green]ok[/]" if finding.ok else "[red]no[/]"
            CONSOLE.print(f"{mark}  {finding.name}: {finding.detail}")
            if not finding.ok and finding.advice:
                CONSOLE.print(f"    {finding.advice}")
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)
