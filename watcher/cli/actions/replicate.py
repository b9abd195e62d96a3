"""Keeps a replica, and prints its cuts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from watcher.cli.actions.config import load_config
from watcher.cli.logs import configure_logging
from watcher.cli.output import CONSOLE, print_json
from watcher.replica.commits import CutReport
from watcher.runners.replicator import Replicator
from watcher.settings.watcher import WatchConfig
from watcher.spanner.timestamps import format_timestamp

SPARK = "spark"

PrintCut = Callable[[CutReport], None]
RunSpark = Callable[[WatchConfig, PrintCut, bool, bool], None]
"""Replicates with Spark, which only who asks for it loads; the last arguments are ``once`` and
``take_over``."""


def replicate(
    path: Path | None,
    flags: Mapping[str, object],
    *,
    once: bool,
    take_over: bool,
    dry_run: bool,
    json_output: bool,
    verbose: bool,
    run_spark: RunSpark,
) -> None:
    """Replicates until a signal stops it, or ``once`` up to now."""
    config = load_config(path, flags)
    configure_logging(config.log_format, verbose)
    printer: PrintCut = print_json_cut if json_output else CutPrinter().print
    if config.replica is not None and config.replica.engine == SPARK and not dry_run:
        run_spark(config, printer, once, take_over)
        return
    replicator = Replicator(config, printer, take_over)
    if dry_run:
        print_plan(replicator, json_output)
    elif once:
        replicator.run_once()
    else:
        replicator.stop_on_signals()
        replicator.run()


def print_plan(replicator: Replicator, json_output: bool) -> None:
    """Prints what a start would do with each table."""
    plans = list(replicator.plan())
    if json_output:
        tables = [{"table": p.table, "action": p.action, "reason": p.reason} for p in plans]
        print_json({"consumer": replicator.consumer, "tables": tables})
        return
    CONSOLE.print(f"consumer {replicator.consumer}")
    for plan in plans:
        CONSOLE.print(f"{plan.table}: {plan.action} ({plan.reason})")


def print_json_cut(report: CutReport) -> None:
    """A cut for machines."""
    print_json(describe_cut(report))


def describe_cut(report: CutReport) -> dict[str, object]:
    """A cut with its lag: how old it was when it was written, in seconds."""
    cut = report.cut
    return {
        "cut": format_timestamp(cut.end),
        "exact": cut.exact,
        "not_exact": cut.explain(),
        "phase": "loading" if report.loaded else "following",
        "lag_seconds": round(report.lag_seconds, 3),
        "loaded": dict(report.loaded),
        "merged": dict(report.merged),
        "tables": {name: each.version for name, each in sorted(cut.tables.items())},
    }


class CutPrinter:
    """A line for each cut in which something changed; the others only advance it."""

    def __init__(self) -> None:
        self._first = True

    def print(self, report: CutReport) -> None:
        """Prints the line."""
        changes = [f"{name} {rows} rows loaded" for name, rows in sorted(report.loaded.items())]
        changes += [f"{name} {rows} rows merged" for name, rows in sorted(report.merged.items())]
        if not changes and not self._first:
            return
        self._first = False
        exact = "" if report.cut.exact else f" (not exact: {report.cut.explain()})"
        text = ", ".join(changes) or "nothing changed"
        CONSOLE.print(f"cut {format_timestamp(report.cut.end)}{exact}: {text}")
