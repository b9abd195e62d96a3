"""Who has locked what in a database: rows and ranges, shared or exclusive; the older one wins.

An owner waits only for older owners and for commits under way, which wait for nobody: so there is
never a circle of owners that wait for each other. Nobody waits for an optimistic owner before its
commit: what it has locked only tells when it must be aborted.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain

from emulator.engine.locks.ranges import Footprint, InsertedRows, Key, RowChange, RowRange
from emulator.errors import SpannerError, aborted
from emulator.wrong import Wrong, is_wrong

IDLE_SECONDS = 10.0
POLL_SECONDS = 0.2

Check = Callable[[], None]
"""Raises when nobody waits for the answer any more."""


class Standing(Enum):
    """What may happen to an owner of locks."""

    OPEN = "open"
    COMMITTING = "committing"
    WOUNDED = "wounded"
    ENDED = "ended"


def never_idle(_idle_seconds: float) -> bool:
    """A commit is never idle."""
    return False


@dataclass(eq=False, slots=True)
class Owner:
    """A transaction as the lock table knows it; the lower its ``age``, the older it is.

    ``give_up_if_idle`` aborts the transaction when its client has been silent for so many seconds,
    and says whether it did. An ``optimistic`` owner yields to everybody until it commits.
    """

    age: int
    give_up_if_idle: Callable[[float], bool] = never_idle
    optimistic: bool = False
    standing: Standing = Standing.OPEN

    def blocks(self, other: Owner) -> bool:
        """Whether another owner must wait for this one's locks."""
        if self.standing is Standing.COMMITTING:
            return True
        return self.standing is Standing.OPEN and not self.optimistic and self.age < other.age

    @property
    def yields(self) -> bool:
        """Whether it is optimistic and not committing yet."""
        return self.optimistic and self.standing is Standing.OPEN

    @property
    def wounded(self) -> bool:
        """Whether an older transaction has taken its locks away."""
        return self.standing is Standing.WOUNDED


@dataclass(slots=True)
class TableLocks:
    """What an owner has locked in one table: ``points`` are the ranges of one row, by key,
    ``changes`` are the first of each row and ``repeated`` those after it, ``inserted`` are new rows
    in bulk, and ``whole`` is every row, exclusively, for a commit under way."""

    points: set[Key] = field(default_factory=set)
    ranges: set[RowRange] = field(default_factory=set)
    changes: dict[Key, RowChange] = field(default_factory=dict)
    repeated: list[RowChange] = field(default_factory=list)
    inserted: list[InsertedRows] = field(default_factory=list)
    whole: bool = False

    def add(self, ranges: Iterable[RowRange], changes: Iterable[RowChange]) -> None:
        """Adds locks."""
        for each in ranges:
            if each.point is not None:
                self.points.add(each.point)
            else:
                self.ranges.add(each)
        for change in changes:
            if self.changes.setdefault(change.key, change) is not change:
                self.repeated.append(change)

    def all_changes(self) -> Iterator[RowChange]:
        """Every row that was changed."""
        yield from self.changes.values()
        yield from self.repeated
        for each in self.inserted:
            yield from each.changes()

    def conflicts_with(self, ranges: Collection[RowRange], changes: Collection[RowChange]) -> bool:
        """Whether another owner cannot have these locks at the same time."""
        if self.whole:
            return True
        return any(map(self._is_read_changed, ranges)) or any(map(self._is_change_read, changes))

    def _is_read_changed(self, read: RowRange) -> bool:
        if read.point is not None:
            return self._has_changed(read.point)
        if any(map(read.is_changed_by, chain(self.changes.values(), self.repeated))):
            return True
        return any(read.holds(image) for each in self.inserted for image in each.images())

    def _is_change_read(self, change: RowChange) -> bool:
        if change.key in self.points or self._has_changed(change.key):
            return True
        return any(read.is_changed_by(change) for read in self.ranges)

    def _has_changed(self, key: Key) -> bool:
        return key in self.changes or any(key in each.rows for each in self.inserted)


class LockTable:
    """The locks of one database. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._held: dict[str, dict[Owner, TableLocks]] = {}
        self._ages = itertools.count(1)
        self._waiting: list[Owner] = []
        self.idle_seconds = IDLE_SECONDS

    def next_age(self) -> int:
        """The age of a transaction that begins now: above all others."""
        return next(self._ages)

    def acquire(self, owner: Owner, footprint: Footprint) -> tuple[Owner, ...]:
        """Locks all of a footprint, and aborts the younger owners that are in the way.

        When it returns owners, nothing was locked: wait for them and ask again. Raises ABORTED
        when an older owner has wounded this one.
        """
        with self._changed:
            self._refuse_wounded(owner)
            conflicting = self._conflicting(owner, footprint)
            blockers = tuple(other for other in conflicting if other.blocks(owner))
            if blockers:
                return blockers
            for other in conflicting:
                self._wound(other)
            self._add(owner, footprint)
            return ()

    def wait(
        self, owner: Owner, blockers: Collection[Owner], seconds: float, check: Check | None = None
    ) -> None:
        """Returns when one of the blockers is no longer in the way.

        Meanwhile those whose clients are silent are given up. Raises ABORTED after so many seconds,
        or when an older owner has wounded this one, and whatever ``check`` raises.
        """

        def may_go_on() -> bool:
            return owner.wounded or not all(other.blocks(owner) for other in blockers)

        deadline = time.monotonic() + seconds
        self._waiting.append(owner)
        try:
            while not self.pause(may_go_on, POLL_SECONDS):
                if check is not None:
                    check()
                for other in blockers:
                    other.give_up_if_idle(self.idle_seconds)
                if time.monotonic() > deadline:
                    raise busy()
        finally:
            self._waiting.remove(owner)
        self._refuse_wounded(owner)

    def ages_waiting(self) -> list[int]:
        """The ages of those who wait for a lock now."""
        return [owner.age for owner in list(self._waiting)]

    def pause(self, ready: Callable[[], bool], seconds: float) -> bool:
        """Waits until something is ready, but not longer than so; whether it is ready."""
        with self._changed:
            return self._changed.wait_for(ready, seconds)

    def begin_commit(self, owner: Owner) -> tuple[Owner, ...]:
        """From now on nobody can wound the owner. Raises ABORTED when somebody has.

        Of several optimistic owners the first one that commits aborts those whose rows it changes,
        and waits for those whose commits are under way: when it returns owners, nothing has begun.
        """
        with self._changed:
            self._refuse_wounded(owner)
            affected = self._affected_by(owner) if owner.optimistic else []
            blockers = tuple(other for other in affected if other.blocks(owner))
            if not blockers:
                owner.standing = Standing.COMMITTING
                for other in affected:
                    self._wound(other)
            return blockers

    def postpone_commit(self, owner: Owner) -> None:
        """The commit must wait for an older owner: until then the owner can be wounded again."""
        with self._changed:
            owner.standing = Standing.OPEN
            for held in self._held.values():
                if owner in held:
                    held[owner].whole = False
            self._changed.notify_all()

    def release(self, owner: Owner) -> None:
        """Gives all locks of an owner back: its transaction has ended."""
        with self._changed:
            if owner.standing is not Standing.WOUNDED:
                owner.standing = Standing.ENDED
            self._drop(owner)

    def wound(self, owner: Owner) -> None:
        """Aborts an owner whose writes are lost."""
        with self._changed:
            self._wound(owner)

    def wound_all(self) -> None:
        """Aborts every owner: the schema has changed."""
        with self._changed:
            for owner in self._owners():
                if owner.standing is Standing.OPEN:
                    self._wound(owner)

    def owners(self) -> list[Owner]:
        """Who holds a lock now."""
        with self._changed:
            return self._owners()

    def lock_free_tables(self, owner: Owner, tables: Iterable[str]) -> frozenset[str]:
        """Locks every row of the tables in which nobody else holds a lock, for a commit under way.

        It costs nothing, where a footprint must be made out; the other tables are the answer.
        """
        contested: set[str] = set()
        with self._changed:
            for table in tables:
                held = self._held.setdefault(table, {})
                if held and (len(held) > 1 or owner not in held):
                    contested.add(table)
                else:
                    held.setdefault(owner, TableLocks()).whole = True
        return frozenset(contested)

    def _owners(self) -> list[Owner]:
        return list(dict.fromkeys(owner for held in self._held.values() for owner in held))

    def _conflicting(self, owner: Owner, footprint: Footprint) -> list[Owner]:
        """The other owners with whose locks a footprint is in conflict."""
        owners: dict[Owner, None] = {}
        for table in footprint.table_names():
            held = self._held.get(table)
            if not held or (len(held) == 1 and owner in held):
                continue
            ranges, changes = footprint.ranges_of(table), footprint.changes_of(table)
            for other, locks in held.items():
                if other is owner or (owner.yields and other.yields):
                    continue
                if locks.conflicts_with(ranges, changes):
                    owners[other] = None
        return list(owners)

    def _affected_by(self, owner: Owner) -> list[Owner]:
        """The owners that have read or changed what this one has changed."""
        found: dict[Owner, None] = {}
        for held in self._held.values():
            changes = list(held[owner].all_changes()) if owner in held else []
            for other, locks in held.items():
                if changes and other is not owner and locks.conflicts_with((), changes):
                    found[other] = None
        return list(found)

    def _add(self, owner: Owner, footprint: Footprint) -> None:
        for table in footprint.table_names():
            locks = self._held.setdefault(table, {}).setdefault(owner, TableLocks())
            ranges, changes = footprint.ranges_of(table), footprint.changes.get(table, ())
            locks.add(ranges, changes)
            if table in footprint.inserted:
                locks.inserted.append(footprint.inserted[table])

    def _wound(self, owner: Owner) -> None:
        if owner.yields and is_wrong(Wrong.OPTIMISTIC_CONFLICT):
            return
        owner.standing = Standing.WOUNDED
        self._drop(owner)

    def _drop(self, owner: Owner) -> None:
        for table in [name for name, held in self._held.items() if owner in held]:
            del self._held[table][owner]
            if not self._held[table]:
                del self._held[table]
        self._changed.notify_all()

    def _refuse_wounded(self, owner: Owner) -> None:
        if owner.wounded:
            raise wounded()


def busy() -> SpannerError:
    """Another transaction kept its locks for too long."""
    return aborted("Transaction was aborted: another transaction holds the locks it needs.")


def wounded() -> SpannerError:
    """An older transaction, or a schema change, has taken the locks of this one."""
    return aborted(
        "Transaction was aborted: an older transaction needs rows that it has locked, or the "
        "schema has changed. Retry the whole transaction."
    )
