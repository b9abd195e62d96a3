"""Judges of time: late; and how late changes were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.changes import DISTURBING, Line
from conformance.recording import (
    GRACE_MICROS,
    Finding,
    Promises,
    Recording,
    find,
    first_deliveries,
)

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
    limit = round(promises.late_seconds_max * SECOND)
    late = [
        line
        for line in first_deliveries(recording.lines)
        if limit and line.arrived - line.at > limit
    ]
    for line in undisturbed(late, disturbed_spans(recording)):
        seconds = (line.arrived - line.at) / SECOND
        text = f"{line.row} at {line.at} came {seconds:.1f} s after its commit"
        yield find("late", text, line)


def undisturbed_lines(recording: Recording) -> list[Line]:
    """First deliveries of changes that were committed, and came, while nothing was wrong."""
    return undisturbed(first_deliveries(recording.lines), disturbed_spans(recording))


def disturbed_spans(recording: Recording) -> list[tuple[int, int]]:
    """The times of blows; the first one is that of the command's first start, until a line came."""
    first = recording.lines[0].arrived if recording.lines else FOREVER
    blows = [
        (blow.begin, blow.end + GRACE_MICROS) for blow in recording.blows if blow.kind in DISTURBING
    ]
    return [(recording.began, first), *blows]


def undisturbed(lines: Sequence[Line], spans: Sequence[tuple[int, int]]) -> list[Line]:
    """The lines that were not on their way during a blow, nor while there were others on their way
    that were: a command that works off what a blow has left is not late."""
    kept: list[Line] = []
    for episode in overlapping(lines):
        begin = min(line.at for line in episode)
        end = max(line.arrived for line in episode)
        if not any(first <= end and last >= begin for first, last in spans):
            kept += episode
    return kept


def overlapping(lines: Sequence[Line]) -> list[list[Line]]:
    """The lines in groups: those of a group were on their way at overlapping times."""
    groups: list[list[Line]] = []
    end = -1
    for line in sorted(lines, key=lambda line: line.at):
        if line.at > end:
            groups.append([])
        groups[-1].append(line)
        end = max(end, line.arrived)
    return groups


def measure_latency(lines: Sequence[Line]) -> Latency | None:
    """The percentiles; None without lines."""
    seconds = sorted((line.arrived - line.at) / SECOND for line in lines)
    if not seconds:
        return None
    p50, p90, p99 = (
        seconds[min(int(len(seconds) * q), len(seconds) - 1)] for q in (0.5, 0.9, 0.99)
    )
    return Latency(len(seconds), p50, p90, p99, seconds[-1])
