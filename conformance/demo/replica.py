"""What a demo run with a replica comes to: ``verify`` at its last exact cut."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from rich.console import Console

from conformance.demo.settings import DemoSettings
from conformance.truth import Truth
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.formats import open_copies
from watcher.replica.verification.replicas import verify
from watcher.spanner.queries import QueryClient
from watcher.spanner.timestamps import format_timestamp


@dataclass(frozen=True, slots=True)
class ReplicaSummary:
    """Counts are rows. ``complete``: the cut is not before the newest commit of the writer."""

    verified: bool
    equal: bool
    complete: bool
    timestamp: str
    rows: int
    copy_rows: int
    mutations: int
    merged: int
    cuts: int
    driver_kills: int

    def as_json(self) -> dict[str, object]:
        """For ``--json``."""
        return asdict(self)


def verify_replica(settings: DemoSettings, truth: Truth) -> ReplicaSummary:
    """Compares every row with Spanner at the timestamp of the last cut."""
    cut = Manifest(str(settings.lake)).find_exact()
    queries = QueryClient(settings.address)
    report = verify(queries, open_copies(cut.copies, str(settings.lake), cut.consumer), cut)
    complete = cut.end >= max((commit.at for commit in truth.commits), default=0)
    lines = [json.loads(line) for line in settings.cuts_log.read_text().splitlines()]
    return ReplicaSummary(
        verified=report.equal and complete,
        equal=report.equal,
        complete=complete,
        timestamp=format_timestamp(cut.end),
        rows=sum(table.rows for table in report.tables),
        copy_rows=sum(table.copy_rows for table in report.tables),
        mutations=sum(len(commit.writes) for commit in truth.commits),
        merged=sum(line["rows"] for line in lines),
        cuts=len(lines),
        driver_kills=settings.driver_kills,
    )


def show_replica(summary: ReplicaSummary, console: Console) -> None:
    """The summary for people."""
    console.print(f"mutations written: {summary.mutations:,}; rows merged: {summary.merged:,}")
    console.print(f"cuts: {summary.cuts:,}; Spark driver killed with -9: {summary.driver_kills}")
    counts = f"{summary.rows:,} rows in Spanner, {summary.copy_rows:,} in the replica"
    if summary.verified:
        console.print(f"[green]equal at {summary.timestamp}: {counts}[/green]")
    elif summary.equal:
        console.print(f"[red]the last cut, {summary.timestamp}, is before the newest commit[/red]")
    else:
        console.print(f"[red]differs at {summary.timestamp}: {counts}[/red]")
