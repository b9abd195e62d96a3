"""What is done for the copies of a replica beside windows: compaction, and the removal of what no
cut needs any more."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from watcher.model.errors import CopyConflictError, ReplicaError
from watcher.model.log_events.copies import COPY_NOT_COMPACTED
from watcher.replica.copies import CopyState, Needed, StoredCopy
from watcher.replica.cuts.cut import Cut
from watcher.replica.cuts.manifest import Manifest

LOG = logging.getLogger("watcher.replica")
PRUNE_SECONDS = 3600.0
Copy = TypeVar("Copy", bound=StoredCopy)


@dataclass(frozen=True, slots=True)
class Compacted:
    """A run of compaction: the ``version`` that it has committed, if it has, and whether there is
    ``more`` to do."""

    version: int | None
    more: bool


CompactCopy = Callable[[str, Copy, Sequence[str]], Compacted]
"""Compacts a copy for a while: the table's name, the copy, its key."""


class Upkeep(Generic[Copy]):
    """Of one replica. ``keep_seconds``: for how long cuts are kept. ``compact`` None: copies are
    not compacted here."""

    def __init__(
        self, manifest: Manifest, keep_seconds: float, compact: CompactCopy[Copy] | None
    ) -> None:
        self._manifest = manifest
        self._keep_seconds = keep_seconds
        self._compact = compact
        self._unfinished: set[str] = set()
        self._pruned_at: float | None = None

    def compact(
        self,
        changed: Iterable[str],
        keys: Mapping[str, Sequence[str]],
        open_copy: Callable[[str], Copy],
        states: dict[str, CopyState],
    ) -> None:
        """Goes on with the copies that have changed, and with those that are not finished; ``keys``
        are those of the tables of the window. What fails is tried again after a later window: the
        rows are there. Raises CopyConflictError."""
        if self._compact is None:
            return
        due, self._unfinished = (self._unfinished | set(changed)) & keys.keys(), set()
        for name in sorted(due):
            try:
                done = self._compact(name, open_copy(name), keys[name])
            except CopyConflictError:
                raise
            except ReplicaError as error:
                COPY_NOT_COMPACTED.log(LOG, table=name, error=error)
                continue
            if done.more:
                self._unfinished.add(name)
            if done.version is not None:
                state = states[name]
                states[name] = replace(state, version=done.version)

    def prune(self, cut: Cut, copies: Mapping[str, StoredCopy]) -> None:
        """Removes old cuts, and of copies what no other needs: once an hour, and in a process that
        has not done so, when there is a cut that is an hour too old."""
        before = cut.end - int(self._keep_seconds * 1_000_000)
        if not self._is_due(before):
            return
        since = self._manifest.remove_before(before)
        first = self._manifest.read_first()
        for name, copy in copies.items():
            copy.remove_before(Needed(since, find_version(name, copy, first)))
        self._pruned_at = time.monotonic()

    def _is_due(self, before: int) -> bool:
        if self._pruned_at is not None:
            return time.monotonic() - self._pruned_at >= PRUNE_SECONDS
        return self._manifest.has_before(before - int(PRUNE_SECONDS * 1_000_000))


def find_version(name: str, copy: StoredCopy, first: Cut | None) -> int:
    """The lowest version of a copy that a cut names; 0 where the oldest cut does not say it: it
    does not have the table, or is of a copy before this one."""
    listed = first.tables.get(name) if first is not None else None
    if first is None or listed is None:
        return 0
    state = copy.read_state()
    is_cuts = state is not None and listed.version <= state.version
    return listed.version if is_cuts and copy.find_end(listed.version) <= first.end else 0
