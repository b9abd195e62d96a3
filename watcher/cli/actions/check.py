"""Shows whether everything is ready to be watched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from watcher.cli.actions.config import load_config
from watcher.cli.output import CONSOLE, print_json
from watcher.runners.preflight import Finding, check
from watcher.terminal.console import label


def check_readiness(config: Path | None, flags: Mapping[str, object], json_output: bool) -> None:
    """Prints what was checked; exits with 1 if something is not ready."""
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
