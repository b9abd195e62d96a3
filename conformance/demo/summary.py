"""What a demo run comes to: one value, shown to people or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from conformance.demo.verification import DemoVerdict, MicroBatch, measure_latencies, percentile

MISMATCHES_SHOWN = 10


@dataclass(frozen=True, slots=True)
class DemoSummary:
    """Counts are rows; latencies are from a row's commit in Spanner to its micro-batch's commit."""

    verified: bool
    mutations: int
    delivered: int
    micro_batches: int
    duplicates: int
    missing: int
    invented: int
    wrong: int
    backwards: int
    broken_windows: int
    different_from_table: int
    latency_seconds_p50: float
    latency_seconds_p99: float
    index_rows_before_clearing: int
    index_rows_after_clearing: int
    driver_kills: int
    mismatches: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """For ``--json``."""
        return asdict(self)


def summarise(
    verdict: DemoVerdict, batches: Sequence[MicroBatch], before: int, after: int, kills: int
) -> DemoSummary:
    """Puts the verdict and the measured figures together."""
    ordered = measure_latencies(batches)
    return DemoSummary(
        verified=not verdict.mismatches,
        mutations=verdict.mutations,
        delivered=verdict.delivered,
        micro_batches=len(batches),
        duplicates=len(verdict.duplicates),
        missing=len(verdict.missing),
        invented=len(verdict.invented),
        wrong=len(verdict.wrong),
        backwards=len(verdict.backwards),
        broken_windows=len(verdict.windows),
        different_from_table=len(verdict.different_from_table),
        latency_seconds_p50=round(percentile(ordered, 0.5), 3),
        latency_seconds_p99=round(percentile(ordered, 0.99), 3),
        index_rows_before_clearing=before,
        index_rows_after_clearing=after,
        driver_kills=kills,
        mismatches=tuple(verdict.mismatches[:MISMATCHES_SHOWN]),
    )


def show(summary: DemoSummary, console: Console) -> None:
    """The summary for people."""
    table = Table(title="Summary", title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_row("mutations written", f"{summary.mutations:,}")
    table.add_row("rows delivered (newest per window)", f"{summary.delivered:,}")
    table.add_row("micro-batches", f"{summary.micro_batches:,}")
    table.add_row("duplicates", f"{summary.duplicates:,}")
    table.add_row("missing", f"{summary.missing:,}")
    table.add_row("not the newest in their window", f"{summary.invented:,}")
    table.add_row("never written", f"{summary.wrong:,}")
    table.add_row("timestamps going backwards", f"{summary.backwards:,}")
    table.add_row("gaps, and transactions in several windows", f"{summary.broken_windows:,}")
    table.add_row("keys that differ from Spanner", f"{summary.different_from_table:,}")
    table.add_row("commit to batch, p50", f"{summary.latency_seconds_p50:.2f} s")
    table.add_row("commit to batch, p99", f"{summary.latency_seconds_p99:.2f} s")
    table.add_row("index rows before clearing", f"{summary.index_rows_before_clearing:,}")
    table.add_row("index rows after clearing", f"{summary.index_rows_after_clearing:,}")
    table.add_row("Spark driver killed with -9", f"{summary.driver_kills}")
    console.print(table)
    if summary.verified:
        console.print("[green]Verified row by row: Parquet holds exactly what was written.[/green]")
    else:
        console.print("[red]The verification failed:[/red]")
        for mismatch in summary.mismatches:
            console.print(f"  {mismatch}", markup=False)
