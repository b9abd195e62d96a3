"""Judges of time: late; and how late changes were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.changes import DISTURBING, Line
from conformance.recording import Finding, Promises, Recording, find, first_deliveries

SECOND = 1_000_000
FOREVER = 2**62


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds from commits to arrivals."""

    changes: int
    p50: float
    p90: float
    p99: float
    max: float


def find_late(recording: Recording, promises: Promises) -> Iterator[Finding]:
    """In undisturbed times a change comes within the limit."""
    limit = promises.late_seconds_max
    for line in undisturbed_lines(recording) if limit else ():
        seconds = (line.arrived - line.at) / SECOND
        if seconds > limit:
            text = f"{line.row} at {line.at} came {seconds:.1f} s after its commit"
            yield find("late", text, line)


def undisturbed_lines(recording: Recording) -> list[Line]:
    """First deliveries of changes that were committed, and came, while nothing was wrong."""
    spans = disturbed_spans(recording)
    return [
        line
        for line in first_deliveries(recording.lines)
        if not any(begin <= line.arrived and line.at <= end for begin, end in spans)
    ]


def disturbed_spans(recording: Recording) -> list[tuple[int, int]]:
    """The times from a blow until a change arrives that was committed after it; the first one is
    the command's first start."""
    blows = [(0, recording.began)]
    blows += [(blow.begin, blow.end) for blow in recording.blows if blow.kind in DISTURBING]
    return [(begin, recovery(recording.lines, end)) for begin, end in blows]


def recovery(lines: Sequence[Line], end: int) -> int:
    """When the first change came that was committed after a moment."""
    return next((line.arrived for line in lines if line.at > end), FOREVER)


def measure_latency(lines: Sequence[Line]) -> Latency | None:
    """The percentiles; None without lines."""
    seconds = sorted((line.arrived - line.at) / SECOND for line in lines)
    if not seconds:
        return None
    p50, p90, p99 = (seconds[min(int(len(seconds) * q), len(seconds) - 1)] for q in (0.5, 0.9, 0.99))
    return Latency(len(seconds), p50, p90, p99, seconds[-1])
