"""The snapshots of an Iceberg table: what others have made of a copy between two of ours."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from watcher.replica.copies import Needed, OutsideCommit
from watcher.replica.loads import CHUNK

REWRITE = "replace"
"""The operation of a snapshot that has the same rows in other files."""
LOAD = "load"
VALUES = "values"
"""The kind of a snapshot by Spark in which rows get values of new columns before the merge of a
window: it has no end."""


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A snapshot. ``end`` and ``kind`` are those of the consumer's own; 0 and None for others.
    ``chunk``: the ID that it names of a load, ``on``: of a load by Spark, that of the chunk which
    its writer knew as the newest."""

    id: int
    parent: int | None
    operation: str
    end: int
    kind: str | None
    chunk: str | None = None
    on: str | None = None

    def is_known(self, after: int | None) -> bool:
        """Whether what is before it was looked at when the copy was at a window's end. Chunks may
        have the end of the merge before them."""
        if self.kind == LOAD:
            return True
        return 0 < self.end < (after or 0) or (self.end == after and self.kind != CHUNK)


def disown_stale(snapshots: Iterable[Ancestor]) -> list[Ancestor]:
    """Snapshots, in their order, of which those are somebody else's that a writer of Spark has made
    which was taken over: Iceberg appends and replaces whatever was committed meanwhile."""
    judged: dict[int, Ancestor] = {}
    end = 0
    for each in snapshots:
        judged[each.id] = each
        if each.on is not None and is_stale(each, find_own(judged, each.parent), end):
            judged[each.id] = replace(each, end=0, kind=None)
        else:
            end = max(end, each.end)
    return list(judged.values())


def is_stale(snapshot: Ancestor, before: Ancestor | None, end: int) -> bool:
    """Whether a load comes after one to a later ``end``, or a chunk after one that its writer did
    not know. What is ``before`` a chunk may have been expired."""
    if snapshot.kind == LOAD:
        return end >= snapshot.end
    return before is not None and (before.chunk or "") != snapshot.on


def find_own(snapshots: Mapping[int, Ancestor], start: int | None) -> Ancestor | None:
    """The nearest snapshot by the consumer, from one on."""
    snapshot = snapshots.get(start) if start is not None else None
    while snapshot is not None and not snapshot.end:
        snapshot = snapshots.get(snapshot.parent) if snapshot.parent is not None else None
    return snapshot


def list_outside(
    snapshots: Iterable[Ancestor], after: int | None, upto: int
) -> list[OutsideCommit]:
    """What others have changed between the snapshots of two window ends, the latest first. A load
    replaces the table, and has no ancestors."""
    by_id = {each.id: each for each in snapshots}
    snapshot = next((each for each in reversed(by_id.values()) if each.end == upto), None)
    outside = []
    while snapshot is not None and not snapshot.is_known(after):
        outside += describe_outside(snapshot, upto)
        snapshot = by_id.get(snapshot.parent) if snapshot.parent is not None else None
    return outside


def list_later(snapshots: Iterable[Ancestor], head: int | None) -> list[OutsideCommit]:
    """What others have changed after the newest snapshot by the consumer, up to the current one,
    ``head``: the latest first."""
    by_id = {each.id: each for each in snapshots}
    own = find_own(by_id, head)
    end = own.end if own is not None else 0
    snapshot = by_id.get(head) if head is not None else None
    outside = []
    while snapshot is not None and snapshot is not own:
        outside += describe_outside(snapshot, end)
        snapshot = by_id.get(snapshot.parent) if snapshot.parent is not None else None
    return outside


def describe_outside(snapshot: Ancestor, version: int) -> list[OutsideCommit]:
    """What a snapshot has changed; nothing if it is the consumer's own, or has the same rows."""
    if snapshot.end or snapshot.kind == VALUES or snapshot.operation == REWRITE:
        return []
    detail = f"{snapshot.operation} by somebody else, snapshot {snapshot.id}"
    return [OutsideCommit(version, detail)]


def list_expired(
    snapshots: Sequence[Ancestor],
    needed: Needed,
    named: Collection[int],
    at_most: int | None = None,
) -> list[int]:
    """The IDs of the snapshots before the lowest version that a cut names, and of so many that not
    more than ``at_most`` are left. The newest one of the consumer stays, and what is ``named``."""
    ends = [index for index, each in enumerate(snapshots) if each.end]
    if not ends:
        return []
    first = 0
    if needed.version:
        first = next((index for index in ends if snapshots[index].end >= needed.version), 0)
    if at_most is not None:
        first = max(first, len(snapshots) - at_most)
    first = min(first, ends[-1])
    return [each.id for each in snapshots[:first] if each.id not in named]
