"""Runs the conformance kit against a command, and prints what it finds."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer

from conformance.presets import PRESETS
from conformance.run import Report
from conformance.runs import describe_all, describe_run, judge_again, make_json, run_all
from conformance.settings import Settings
from watcher.cli.output import CONSOLE, ERRORS, print_json
from watcher.errors import ConfigurationError

FINDINGS_SHOWN = 5
FINDINGS_SHOWN_AGAIN = 1_000
"""Of a run that is judged again."""


def judge_system(
    against: str | None,
    judged: Path | None,
    chosen: Mapping[str, Any],
    promised: Mapping[str, Any],
    runs: int,
    keep: Path | None,
    *,
    as_json: bool,
) -> None:
    """Runs, or judges a run that was kept. Raises ConfigurationError, and Exit with 1 if anything
    was wrong."""
    if judged is not None:
        print_again(judge_again(judged), as_json=as_json)
        return
    if against is None:
        raise ConfigurationError(
            "nothing to judge: use --against with a command or the name of a system"
        )
    settings = make_settings(against, chosen, promised)
    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if keep is not None and keep.exists():
            raise ConfigurationError(f"--keep: {keep} exists: name a new folder")
        reports = run_and_print(settings, runs, folder, as_json=as_json)
    if keep is not None and not as_json:
        CONSOLE.print(f"kept: {keep}")
    if any(report.findings for report in reports):
        raise typer.Exit(1)


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
