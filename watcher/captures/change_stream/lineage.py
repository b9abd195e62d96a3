"""Which partitions of a window are to be read, and when: children after all their parents.

Spanner: a partition ends when it splits, merges or moves; its last record names its children, and
every parent of a merged child names it. A key is in one partition at a time, so this order is
commit order for every key.
"""

from __future__ import annotations

from collections.abc import Iterable

from watcher.captures.change_stream.record_values import ChildPartition


class Lineage:
    """The partitions that were announced for one window, and those that are read."""

    def __init__(self, end: int) -> None:
        self._end = end
        self._waiting: dict[str, ChildPartition] = {}
        self._read: set[str] = set()

    def announce(self, child: ChildPartition) -> None:
        """A partition is to be read. One that begins after the window belongs to a later one; one
        that both its parents announce is read once."""
        if child.start <= self._end and child.token not in self._read:
            self._waiting.setdefault(child.token, child)

    def take_next(self) -> ChildPartition | None:
        """The partition to be read now; None when all are read.

        A parent that is not waiting has been read, or ended before the window: unless a partition
        that is still waiting may announce it. So those without unknown parents go first.
        """
        child = choose_first(self._list_ready()) or choose_first(self._waiting.values())
        if child is None:
            return None
        del self._waiting[child.token]
        self._read.add(child.token)
        return child

    def _list_ready(self) -> Iterable[ChildPartition]:
        return (c for c in self._waiting.values() if all(p in self._read for p in c.parents))


def choose_first(children: Iterable[ChildPartition]) -> ChildPartition | None:
    """The one that began first; its parents are certainly not among those that began later."""
    return min(children, key=lambda child: child.start, default=None)


def is_child_reader(token: str, child: ChildPartition) -> bool:
    """True when the reader of a partition also reads its child: of the parents of a merged child,
    which may be read side by side, the one whose token is the least."""
    return bool(child.parents) and token == min(child.parents)
