"""What is proved of the copies of a replica, range by range, beside the manifest: plain values and
their files. The rules are N1 to N7 of docs/replica-protocol.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from watcher.replica.cuts.stored import FORMAT, UNPROVED, read_stored
from watcher.replica.keys.ranges import KeyInterval
from watcher.replica.stores.stored_files import (
    list_names,
    open_file_system,
    write_whole,
)
from watcher.spanner.keys import Key
from watcher.spanner.timestamps import format_timestamp

FOLDER, SUFFIX = "_proofs", ".json"
SECOND = 1_000_000
DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class ProvedRange:
    """The keys above those of the range before it, up to ``upto`` (None: to the end): how many rows
    it had at ``at``, the end of the cut at which it was equal (0: never)."""

    upto: Key | None
    rows: int
    at: int


@dataclass(frozen=True, slots=True)
class TableProof:
    """What is proved of a copy. At ``end`` its ``version`` was equal, as far as what it has changed
    says; ``copy_end`` is the window end of that version, ``ran`` the end of the cut of the newest
    run, and ``within_seconds`` how old the proof of a range may get. All times are microseconds
    since 1970. ``columns`` are those that are compared, with their types."""

    end: int
    version: int
    copy_end: int
    columns: tuple[str, ...]
    ran: int
    within_seconds: float
    ranges: tuple[ProvedRange, ...]

    def measure_share(self, now: int) -> float:
        """Which part of the rows is in ranges that were compared whole within the time before
        ``now``: from 0 to 1."""
        since = now - self.within_seconds * SECOND
        rows = sum(each.rows for each in self.ranges)
        if not rows:
            return float(all(each.at >= max(since, 1) for each in self.ranges))
        return sum(each.rows for each in self.ranges if each.at >= max(since, 1)) / rows

    @property
    def proved_at(self) -> int:
        """When all of the copy was equal, as far as is known; 0 while a range was never compared,
        or differs."""
        return self.end if all(each.at for each in self.ranges) else 0

    def explain(self, now: int) -> str:
        """For people: proved equal at 12:00, 100 % within 7 days."""
        percent = int(self.measure_share(now) * 1_000) / 10
        share = f"{percent:g} % within {explain_seconds(self.within_seconds)}"
        if not self.proved_at:
            return f"not proved as a whole: {share}"
        return f"proved equal at {format_timestamp(self.proved_at)}, {share}"

    def list_intervals(self) -> list[KeyInterval]:
        """The keys of each range."""
        ends: list[Key | None] = [None, *(each.upto for each in self.ranges[:-1])]
        pairs = zip(ends, self.ranges, strict=True)
        return [KeyInterval(after, each.upto) for after, each in pairs]

    def choose_due(self, at: int) -> list[int]:
        """The numbers of the ranges that a run at a cut compares whole, in their order: those that
        never were, those that would be older than they may get at the next run, if that is as far
        away as the last one, and, if all were compared once, of the others the oldest, until it is
        this run's share."""
        distance = max(at - self.ran, 0)
        within = self.within_seconds * SECOND
        oldest = sorted(range(len(self.ranges)), key=lambda number: self.ranges[number].at)
        quota = sum(each.rows for each in self.ranges) * min(distance / within, 1.0)
        if not all(each.at for each in self.ranges):
            quota = 0.0
        due, rows = [], 0
        for number in oldest:
            each = self.ranges[number]
            must = each.at == 0 or each.at + within <= at + distance
            if must or (rows < quota and each.at < at):
                due.append(number)
                rows += each.rows
        return sorted(due)

    def note(self, number: int, parts: Sequence[ProvedRange]) -> TableProof:
        """With parts in the place of a range."""
        return replace(self, ranges=(*self.ranges[:number], *parts, *self.ranges[number + 1 :]))

    def forget(self, numbers: Iterable[int]) -> TableProof:
        """With ranges that are to be compared whole again."""
        chosen = set(numbers)
        ranges = (
            replace(each, at=0) if number in chosen else each
            for number, each in enumerate(self.ranges)
        )
        return replace(self, ranges=tuple(ranges))

    def to_stored(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            "format": FORMAT,
            "end": self.end,
            "timestamp": format_timestamp(self.end),
            "version": self.version,
            "copy_end": self.copy_end,
            "columns": self.columns,
            "ran": self.ran,
            "within_seconds": self.within_seconds,
            "ranges": [[each.upto, each.rows, each.at] for each in self.ranges],
        }

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> TableProof:
        """As it was stored."""
        ranges = (
            ProvedRange(None if upto is None else tuple(upto), rows, at)
            for upto, rows, at in stored["ranges"]
        )
        return cls(
            stored["end"],
            stored["version"],
            stored["copy_end"],
            tuple(stored["columns"]),
            stored["ran"],
            stored["within_seconds"],
            tuple(ranges),
        )


def explain_seconds(seconds: float) -> str:
    """A length of time for people."""
    if seconds >= DAY:
        days = seconds / DAY
        return f"{days:g} day" if days == 1 else f"{days:g} days"
    return f"{seconds / 3_600:g} h" if seconds >= 3_600 else f"{seconds:g} s"


class ProofFiles:
    """The proofs of a replica, a file for each table."""

    def __init__(self, folder: str) -> None:
        self._files, base = open_file_system(folder)
        self._folder = PurePosixPath(base) / FOLDER

    def read(self, table: str) -> TableProof | None:
        """What is proved of a copy; None where no run has begun."""
        path = str(self._folder / f"{table}{SUFFIX}")
        try:
            return read_stored(self._files, path, TableProof.from_stored, UNPROVED)
        except FileNotFoundError:
            return None

    def read_all(self) -> dict[str, TableProof]:
        """What is proved, by table."""
        names = list_names(self._files, self._folder, SUFFIX)
        tables = [name.removesuffix(SUFFIX) for name in names]
        return {name: proof for name in tables if (proof := self.read(name)) is not None}

    def write(self, table: str, proof: TableProof) -> None:
        """Notes what is proved, whole or not at all."""
        content = json.dumps(proof.to_stored()).encode()
        write_whole(self._files, self._folder, f"{table}{SUFFIX}", content)
