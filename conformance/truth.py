"""What really happened: every transaction that the writers saw, or found, committed."""

from __future__ import annotations

import threading
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TypeAlias

Key: TypeAlias = tuple[object, ...]
Row: TypeAlias = tuple[str, Key]
"""A table and a key."""

PARENT, CHILD = "Accounts", "Entries"
"""A row of CHILD is deleted with the row of PARENT whose key its own begins with."""


@dataclass(frozen=True, slots=True)
class Write:
    """What a transaction did to a row: the name of the new version, or None for a delete."""

    row: Row
    version: str | None


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction. ``at`` is its commit timestamp in microseconds since 1970.

    A row may be written more than once: the last write counts.
    """

    at: int
    writes: tuple[Write, ...]


@dataclass(frozen=True, slots=True)
class State:
    """A version of a row that held from ``at`` on; ``version`` is None for a row that is gone."""

    at: int
    version: str | None


History: TypeAlias = dict[Row, list[State]]
"""The versions of every row, oldest first; one at most for each commit timestamp."""


@dataclass(slots=True)
class Truth:
    """The commits, from several threads."""

    commits: list[Commit] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, commit: Commit) -> None:
        with self._lock:
            self.commits.append(commit)

    def history(self) -> History:
        """Every version that outlived its transaction, with the deletes that follow from others."""
        history: History = {}
        for commit in sorted(self.commits, key=lambda commit: commit.at):
            for row, version in net_writes(commit, history).items():
                versions = history.get(row)
                if version is not None or (versions and versions[-1].version is not None):
                    history.setdefault(row, []).append(State(commit.at, version))
        return history


def net_writes(commit: Commit, before: History) -> dict[Row, str | None]:
    """What is left of a transaction's writes in its end."""
    versions: dict[Row, str | None] = {}
    for write in commit.writes:
        if write.version is None:
            for child in children(write.row, [*before, *versions]):
                versions[child] = None
        versions[write.row] = write.version
    return versions


def children(row: Row, known: list[Row]) -> list[Row]:
    """The rows that go with a row."""
    table, key = row
    if table != PARENT:
        return []
    return [other for other in known if other[0] == CHILD and other[1][: len(key)] == key]


def state_at(versions: list[State], at: int) -> State | None:
    """The version that holds at a timestamp; None before the first one."""
    later = bisect_right([state.at for state in versions], at)
    return versions[later - 1] if later else None


def live_rows(history: History, at: int) -> dict[Row, State]:
    """Every row that is there at a timestamp."""
    states = ((row, state_at(versions, at)) for row, versions in history.items())
    return {row: state for row, state in states if state is not None and state.version is not None}
