"""A recording -> everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.judges.arrivals import find_late
from conformance.judges.each_change import (
    find_lost,
    find_reordered,
    find_two_names,
    find_wrong,
)
from conformance.judges.repeats import explain_repeats, find_doubled
from conformance.judges.streamed_windows import mods_of
from conformance.judges.whole_transactions import find_torn_transactions
from conformance.judges.windows import find_broken_windows
from conformance.recording import Finding, Promises, Recording
from conformance.writers import WATCHED

KINDS = (
    "lost",
    "doubled",
    "reordered",
    "torn",
    "late",
    "wrong",
    "unreadable",
    "misnamed",
    "windows",
    "ended",
    "hung",
)
"""Of findings."""

END_GRACE_MICROS = 10_000_000
"""So long after a blow the command may give up and end."""


def judge(recording: Recording, promises: Promises) -> list[Finding]:
    """Everything that is wrong, by kind."""
    history = recording.truth.history()
    mods = mods_of(history, WATCHED, recording.began)
    return [
        *find_lost(recording, mods, history, promises),
        *find_doubled(explain_repeats(recording, promises), promises),
        *find_reordered(recording),
        *find_torn_transactions(recording, promises),
        *find_late(recording, promises),
        *find_wrong(recording, mods),
        *find_unreadable(recording),
        *find_two_names(recording),
        *find_broken_windows(recording, mods, history, promises),
        *find_ends(recording),
    ]


def find_unreadable(recording: Recording) -> Iterator[Finding]:
    """Every line is of the format."""
    for line in recording.unreadable:
        yield Finding("unreadable", f"{line.why}: {line.text[:200]!r}", (line.number,))


def find_ends(recording: Recording) -> Iterator[Finding]:
    """The command ends when it is told to, and only then, or after a blow."""
    for ending in recording.endings:
        if not recording.struck(ending.at - END_GRACE_MICROS, ending.at):
            yield Finding("ended", f"the command ended by itself with code {ending.code}")
    if recording.hung:
        times = f" {recording.hung} times" if recording.hung > 1 else ""
        yield Finding("hung", f"the command did not end after SIGTERM{times}")
