"""Does the sink hold exactly what was written? Pure functions over deliveries and the truth.

A window's content is one thing for ever: of every key written inside it, the newest version. So
the ground truth and the windows in the checkpoint say, row by row, what each micro-batch had to
deliver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from watcher.model.window import Window

Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a row: its key, its commit timestamp in microseconds, and the name of its write.

    ``values`` is the whole row where it is known (what was delivered, not what the writer logged).
    """

    key: int
    timestamp: int
    name: str
    values: Row = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """What one micro-batch delivered; ``committed_at`` in seconds since 1970."""

    number: int
    window: Window
    committed_at: float
    versions: Sequence[Version]


@dataclass(slots=True)
class DemoVerdict:
    """Counts of what was checked, and every mismatch (a sentence each)."""

    mutations: int = 0
    delivered: int = 0
    duplicates: int = 0
    missing: int = 0
    invented: int = 0
    backwards: int = 0
    different_from_table: int = 0
    mismatches: list[str] = field(default_factory=list)

    @property
    def right(self) -> bool:
        """True when nothing is wrong."""
        return not self.mismatches


def select_newest_per_window(
    truth: Iterable[Version], windows: Sequence[Window]
) -> list[dict[int, Version]]:
    """Of each window, the newest version of every key written in it; windows must be in order."""
    ordered = sorted(truth, key=lambda version: version.timestamp)
    contents: list[dict[int, Version]] = []
    position = 0
    for window in windows:
        while position < len(ordered) and ordered[position].timestamp <= window.start:
            position += 1
        content: dict[int, Version] = {}
        while position < len(ordered) and ordered[position].timestamp <= window.end:
            content[ordered[position].key] = ordered[position]
            position += 1
        contents.append(content)
    return contents


def verify(
    truth: Sequence[Version], batches: Sequence[MicroBatch], table: Mapping[int, Row]
) -> DemoVerdict:
    """Compares row by row. ``table`` is what Spanner holds now, by key."""
    verdict = DemoVerdict(mutations=len(truth), delivered=sum(len(b.versions) for b in batches))
    check_windows(truth, batches, verdict)
    check_each_batch(truth, batches, verdict)
    check_keys(batches, verdict)
    check_table(truth, batches, table, verdict)
    return verdict


def check_windows(
    truth: Sequence[Version], batches: Sequence[MicroBatch], verdict: DemoVerdict
) -> None:
    """The windows join without a gap and reach beyond the newest commit."""
    for before, after in pairwise(batches):
        if before.window.end != after.window.start:
            verdict.mismatches.append(
                f"batch {after.number} starts at {after.window.start},"
                f" but batch {before.number} ended at {before.window.end}"
            )
    newest = max((version.timestamp for version in truth), default=0)
    reached = max((batch.window.end for batch in batches), default=0)
    if newest > reached:
        verdict.mismatches.append(
            f"the newest commit {newest} lies beyond the last window {reached}"
        )


def check_each_batch(
    truth: Sequence[Version], batches: Sequence[MicroBatch], verdict: DemoVerdict
) -> None:
    """Each batch delivered the newest version of every key written in its window, no more."""
    expected = select_newest_per_window(truth, [batch.window for batch in batches])
    for batch, content in zip(batches, expected, strict=True):
        delivered = set(batch.versions)
        newest = set(content.values())
        for version in sorted(newest - delivered, key=lambda v: v.key):
            verdict.missing += 1
            verdict.mismatches.append(f"batch {batch.number} lacks {version}")
        for version in sorted(delivered - newest, key=lambda v: v.key):
            verdict.invented += 1
            verdict.mismatches.append(
                f"batch {batch.number} has {version}, which was not written in its window"
            )


def check_keys(batches: Sequence[MicroBatch], verdict: DemoVerdict) -> None:
    """No (key, commit timestamp) twice; per key the timestamps rise from batch to batch."""
    newest: dict[int, int] = {}
    seen: set[tuple[int, int]] = set()
    for batch in batches:
        for version in batch.versions:
            if (version.key, version.timestamp) in seen:
                verdict.duplicates += 1
                verdict.mismatches.append(f"batch {batch.number} repeats {version}")
            elif version.timestamp < newest.get(version.key, 0):
                verdict.backwards += 1
                verdict.mismatches.append(f"batch {batch.number} goes back in time: {version}")
            seen.add((version.key, version.timestamp))
            newest[version.key] = max(version.timestamp, newest.get(version.key, 0))


def check_table(
    truth: Sequence[Version],
    batches: Sequence[MicroBatch],
    table: Mapping[int, Row],
    verdict: DemoVerdict,
) -> None:
    """The newest delivered version of every key that was written is the row now in Spanner."""
    delivered: dict[int, Version] = {}
    for batch in batches:
        for version in batch.versions:
            newest = delivered.get(version.key)
            if newest is None or newest.timestamp < version.timestamp:
                delivered[version.key] = version
    for key in sorted({version.key for version in truth} | delivered.keys()):
        newest = delivered.get(key)
        values = newest.values if newest else None
        if values != table.get(key):
            verdict.different_from_table += 1
            verdict.mismatches.append(
                f"key {key}: {values} in the sink, {table.get(key)} in Spanner"
            )


def measure_latencies(batches: Sequence[MicroBatch]) -> list[float]:
    """Seconds from each version's commit to the commit of its micro-batch, in ascending order."""
    return sorted(
        batch.committed_at - version.timestamp / 1_000_000
        for batch in batches
        for version in batch.versions
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank percentile of values in ascending order; NaN of none."""
    if not ordered:
        return float("nan")
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
