"""What happened in a run, as plain values: what the judges read, and what they find."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from conformance.changes import DISTURBING, ENDED, Blow, Line
from conformance.truth import Truth

GRACE_MICROS = 1_000_000
"""So long after a blow its consequences may still come."""


@dataclass(frozen=True, slots=True)
class Promises:
    """What a system says of itself. ``every_version``: deletes and versions in between, too, not
    only the newest version of each row. ``stages``: how many programs pass a change on, each with a
    position of its own, which a kill may leave behind. ``late_seconds_max``: 0 judges no lateness.
    """

    every_version: bool = True
    exactly_once: bool = False
    stages: int = 1
    transactions: bool = False
    windows: bool = True
    late_seconds_max: float = 10.0


class RunFailedError(Exception):
    """A run could not be done: a writer or the churn failed."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that is not of the format."""

    number: int
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Ending:
    """An end of the command that nobody asked for; ``at`` in microseconds since 1970."""

    at: int
    code: int


@dataclass(frozen=True, slots=True)
class ChurnEvent:
    """A change of the schema or of the writers; ``at`` in microseconds since 1970. It excuses
    nothing."""

    at: int
    kind: str
    text: str


@dataclass(slots=True)
class Recording:
    """A whole run. ``began``: what was committed later is expected; ``hung``: how often the command
    did not end after SIGTERM. Timestamps are in microseconds since 1970."""

    began: int
    truth: Truth
    lines: Sequence[Line]
    blows: Sequence[Blow] = ()
    unreadable: Sequence[Unreadable] = ()
    endings: Sequence[Ending] = ()
    hung: int = 0
    churn: Sequence[ChurnEvent] = ()

    def disturbed(self, begin: int, end: int) -> bool:
        """Whether anything happened between two moments, or shortly before, that may cause a change
        to come again."""
        return any(
            blow.kind in DISTURBING and blow.begin <= end and blow.end + GRACE_MICROS >= begin
            for blow in self.blows
        )

    def struck(self, begin: int, end: int) -> bool:
        """Whether the kit did anything between two moments that may make the command end."""
        return any(
            blow.kind in DISTURBING - {ENDED} and blow.begin <= end and blow.end >= begin
            for blow in self.blows
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, and the numbers of the lines that prove it."""

    kind: str
    text: str
    lines: tuple[int, ...] = ()


def find(kind: str, text: str, *evidence: Line) -> Finding:
    """A finding with its lines."""
    return Finding(kind, text, tuple(line.number for line in evidence))


def first_deliveries(lines: Iterable[Line]) -> list[Line]:
    """The lines without those that come again."""
    firsts: dict[tuple[object, int], Line] = {}
    for line in lines:
        firsts.setdefault((line.row, line.at), line)
    return list(firsts.values())
