"""Which partitions of a window are to be read, and when: children after all their parents.

Spanner: a partition ends when it splits, merges or moves; its last record names its children, and
every parent of a merged child names it. A key is in one partition at a time, so this order is
commit order for every key.
"""

from __future__ import annotations

from heapq import heappop, heappush

from watcher.captures.change_stream.record_values import ChildPartition

Queue = list[tuple[int, int, str]]
"""A heap of tokens, by the start of the partition, then as they were announced."""


class Lineage:
    """The partitions that were announced for one window, and those that are read. What taking the
    next one costs does not grow with the number of partitions."""

    def __init__(self, end: int) -> None:
        self._end = end
        self._waiting: dict[str, ChildPartition] = {}
        self._read: set[str] = set()
        self._ready: Queue = []
        """Those whose parents are all read."""
        self._blocked: Queue = []
        """Those that had other parents when they were announced."""
        self._missing: dict[str, int] = {}
        """How many parents of those are not read."""
        self._turns: dict[str, tuple[int, int, str]] = {}
        self._children: dict[str, list[str]] = {}
        """Those that wait for a partition."""

    def announce(self, child: ChildPartition) -> bool:
        """A partition is to be read; False where it need not be announced. One that begins after
        the window belongs to a later one; one that both its parents announce is read once."""
        token = child.token
        if child.start > self._end or token in self._read or token in self._waiting:
            return False
        self._waiting[token] = child
        unread = {parent for parent in child.parents if parent not in self._read}
        self._missing[token] = len(unread)
        for parent in unread:
            self._children.setdefault(parent, []).append(token)
        turn = (child.start, len(self._read) + len(self._waiting), token)
        heappush(self._blocked if unread else self._ready, turn)
        self._turns[token] = turn
        return True

    def take_next(self) -> ChildPartition | None:
        """The partition to be read now; None when all are read.

        A parent that is not waiting has been read, or ended before the window: unless a partition
        that is still waiting may announce it. So those without unknown parents go first. Of several
        the one that began first: its parents are certainly not among those that began later.
        """
        child = self._pop(self._ready) or self._pop(self._blocked)
        if child is None:
            return None
        del self._waiting[child.token]
        self._read.add(child.token)
        for token in self._children.pop(child.token, ()):
            self._missing[token] -= 1
            if not self._missing[token] and token in self._waiting:
                heappush(self._ready, self._turns[token])
        return child

    def _pop(self, queue: Queue) -> ChildPartition | None:
        """The first of a queue that was not taken from the other one."""
        while queue:
            child = self._waiting.get(heappop(queue)[2])
            if child is not None:
                return child
        return None


def is_child_reader(token: str, child: ChildPartition) -> bool:
    """True when the reader of a partition also reads its child: of the parents of a merged child,
    which may be read side by side, the one whose token is the least."""
    return bool(child.parents) and token == min(child.parents)
