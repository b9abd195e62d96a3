"""Judges the windows of a consumer against what was written, by arrays: millions of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from endurance.deliveries import Delivery, Rows
from endurance.load import DELETED

AT, KEY, VERSION = 0, 1, 2
SHOWN = 3
FOREVER = 2**62


def read_truth(paths: Sequence[Path]) -> Rows:
    """Everything that was committed, oldest first; each key is written once in a commit."""
    parts = [np.fromfile(path, dtype=np.int64).reshape(-1, 3) for path in paths]
    rows = np.concatenate([np.empty((0, 3), dtype=np.int64), *parts])
    return rows[np.argsort(rows[:, AT], kind="stable")]


def find_problems(truth: Rows, deliveries: Sequence[Delivery]) -> Iterator[str]:
    """What is wrong with the deliveries of a consumer that was drained, in their order.

    A window holds the newest version of every row that changed in it and is still there at its
    end, each once. Windows follow one another; what lies between two of them holds no row. A
    delivery is whole when the next one begins at its end or later; one that was cut off comes
    again, from a place that was reached before.
    """
    covered = 0
    boundaries = {0}
    for delivery, start in zip(deliveries, list_next_starts(deliveries), strict=True):
        name = f"window ({delivery.start}, {delivery.end}] of instance {delivery.instance}"
        if delivery.start > covered:
            lost = newest_rows(truth, covered, delivery.start)
            if len(lost):
                yield f"{len(lost)} rows lost before {name}: {lost[:SHOWN].tolist()}"
        elif delivery.start < covered and delivery.start not in boundaries:
            yield f"{name} begins where none has ended; {covered} was reached"
        whole = start >= delivery.end
        yield from (f"{name}: {problem}" for problem in find_wrong_rows(truth, delivery, whole))
        boundaries.update((delivery.start, delivery.end))
        if whole:
            covered = max(covered, delivery.end)
    missing = newest_rows(truth, covered, int(truth[-1, AT])) if len(truth) else truth
    if len(missing):
        yield f"{len(missing)} rows were never delivered: {missing[:SHOWN].tolist()}"


def list_next_starts(deliveries: Sequence[Delivery]) -> list[int]:
    """Where the delivery after each one begins; a drained consumer has delivered the last one."""
    return [*(each.start for each in deliveries[1:]), *([FOREVER] if deliveries else [])]


def find_wrong_rows(truth: Rows, delivery: Delivery, whole: bool) -> Iterator[str]:
    """What one window lacks, where it is whole, and what it has that it should not have."""
    expected = newest_rows(truth, delivery.start, delivery.end)
    rows = delivery.rows[np.argsort(delivery.rows[:, KEY], kind="stable")]
    place = np.searchsorted(expected[:, KEY], rows[:, KEY])
    known = place < len(expected)
    known[known] = (expected[place[known]] == rows[known]).all(axis=1)
    if not known.all():
        wrong = rows[~known]
        yield f"{len(wrong)} rows are not those of the window: {wrong[:SHOWN].tolist()}"
    elif whole and len(rows) < len(expected):
        lost = expected[~np.isin(expected[:, KEY], rows[:, KEY])]
        yield f"{len(lost)} rows are missing: {lost[:SHOWN].tolist()}"


def newest_rows(truth: Rows, start: int, end: int) -> Rows:
    """The newest version of every key that was written in ``(start, end]`` and is still there at
    ``end``, by key."""
    first, last = np.searchsorted(truth[:, AT], (start, end), side="right")
    backwards = truth[first:last][::-1]
    _, places = np.unique(backwards[:, KEY], return_index=True)
    newest: Rows = backwards[places]
    there: Rows = newest[newest[:, VERSION] != DELETED]
    return there


def count_repeats(deliveries: Sequence[Delivery]) -> int:
    """How many windows came again, whole or in part."""
    covered, repeats = 0, 0
    for delivery, start in zip(deliveries, list_next_starts(deliveries), strict=True):
        repeats += start < delivery.end or delivery.start < covered
        if start >= delivery.end:
            covered = max(covered, delivery.end)
    return repeats
