"""What a right system delivers of a truth, as recordings."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.changes import Change, Line
from conformance.judges.streamed_windows import mods_of, owners_of
from conformance.recording import Promises, Recording
from conformance.truth import Truth
from conformance.verdict import judge
from conformance.writers import WATCHED

EVERY_VERSION = Promises(transactions=True)
NEWEST_ROW = Promises(every_version=False)
DELAY = 10


def deliver(truth: Truth) -> list[Line]:
    """Every change in commit order, transactions together."""
    owners = owners_of(truth)
    mods = mods_of(truth.history(), WATCHED)
    order = sorted(mods, key=lambda version: (version[1], owners[version], repr(version)))
    return [
        Line(
            number=number,
            start=1,
            arrived=version[1] + DELAY,
            change=Change(
                table=version[0][0],
                key=version[0][1],
                at=version[1],
                operation=mods[version].operation,
                new=mods[version].new,
                old=mods[version].old,
                transaction=f"t{owners[version]}",
                id=f"{version}",
            ),
        )
        for number, version in enumerate(order, 1)
    ]


def kinds(truth: Truth, lines: Sequence[Line], promises: Promises = EVERY_VERSION) -> set[str]:
    """The kinds of the findings about an output of an undisturbed run."""
    return {finding.kind for finding in judge(Recording(0, truth, lines), promises)}
