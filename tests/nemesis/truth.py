"""What really happened: every transaction that the writers saw, or found, committed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

Key = tuple[object, ...]
Row = tuple[str, Key]
"""A table and a key."""


@dataclass(frozen=True, slots=True)
class Write:
    """What a transaction did to a row: the name of the new version, or None for a delete."""

    row: Row
    version: str | None


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction. ``at`` is its commit timestamp in microseconds since 1970."""

    at: int
    writes: tuple[Write, ...]


@dataclass(slots=True)
class Truth:
    """The commits, from several threads."""

    commits: list[Commit] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, commit: Commit) -> None:
        with self._lock:
            self.commits.append(commit)

    def in_order(self) -> list[Commit]:
        return sorted(self.commits, key=lambda commit: commit.at)

    def history(self) -> dict[Row, list[tuple[int, str | None]]]:
        """The versions of every row, oldest first."""
        found: dict[Row, list[tuple[int, str | None]]] = {}
        for commit in self.in_order():
            for write in commit.writes:
                found.setdefault(write.row, []).append((commit.at, write.version))
        return found


def state_at(versions: list[tuple[int, str | None]], at: int) -> tuple[int, str | None] | None:
    """The version of a row that holds at a timestamp: its own timestamp and its name."""
    found = None
    for stamp, version in versions:
        if stamp > at:
            break
        found = (stamp, version)
    return found
