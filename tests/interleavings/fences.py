"""The judge of fences: who writes what of a consumer while another instance owns it.

What is stored is read from the database right before each commit took effect, apart from what the
product has read of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from google.cloud.spanner_v1 import KeySet

from interleavings.actors import Run
from interleavings.scheduler import Unit, current_unit, hide_steps
from watcher.consumers.divisions import Divisions
from watcher.consumers.leases import Consumers, Lease
from watcher.consumers.members import Members
from watcher.consumers.positions import (
    backfills_table,
    cleared_table,
    consumers_table,
    errors_table,
)
from watcher.consumers.positions.own_names import divisions_table
from watcher.consumers.positions.values import TABLE as POSITIONS
from watcher.spanner.timestamps import to_datetime
from watcher.tables.parts import count_parts, parse_part_name

CONSUMERS, DIVISIONS = consumers_table(POSITIONS), divisions_table(POSITIONS)
CLEARED = cleared_table(POSITIONS)
OF_ONE_OWNER = (POSITIONS, backfills_table(POSITIONS), errors_table(POSITIONS))
"""Rows that belong to a consumer, the first column of their keys."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a consumer's name, at a moment."""

    owner: str | None
    alive: bool


@dataclass
class Fences:
    """Judges one schedule. An actor without a lease of a consumer is an operator there."""

    run: Run
    _tokens: dict[tuple[str, str], str] = field(default_factory=dict)
    _settling: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)
    """Who has taken each name last."""

    # What actors do.

    def note_lease(self, unit: Unit, lease: Lease) -> None:
        """An instance has a name: nobody has another name of the same rows."""
        self._tokens[unit.actor, lease.consumer] = lease.owner
        self._owners[lease.consumer] = lease.owner
        alive = {name for name, each in self._read_holders().items() if each.alive}
        shared, part = parse_part_name(lease.consumer) or (lease.consumer, None)
        for name in sorted(alive - {lease.consumer}):
            other, other_part = parse_part_name(name) or (name, None)
            same = part is not None and other_part is not None and part.of == other_part.of
            if other == shared and not same:
                self._blame(f"{lease.consumer} and {name} have the same rows, and both are held")

    def note_renewal(self, unit: Unit, lease: Lease) -> None:
        """A lease was renewed: by who has taken the name last."""
        if self._owners.get(lease.consumer, lease.owner) != lease.owner:
            self._blame(f"{unit.name} renewed its lease of {lease.consumer}, which it had lost")

    def note_member(self, shared: str, parts: int) -> None:
        """An instance is a member of a consumer that is divided as it knows."""
        with self.run.database.snapshot() as snapshot:
            counts = self._read_counts(snapshot, shared)
        if counts != {parts}:
            self._blame(f"an instance of {parts} parts is a member of {shared}, divided: {counts}")

    @contextmanager
    def settle(self, unit: Unit, known: Mapping[str, str]) -> Iterator[None]:
        """While it lasts, the unit divides tables; it has divided the ``known`` ones before."""
        self._settling[unit.name] = known
        try:
            yield
        finally:
            del self._settling[unit.name]

    # What they commit.

    def observe(self, method: str, request: Any, response: Any) -> None:
        """Judges a commit."""
        unit = current_unit()
        if method != "Commit" or response is None or unit is None or unit.actor == "end":
            return
        writes = [
            (mutation.WhichOneof("operation"), getattr(mutation, mutation.WhichOneof("operation")))
            for mutation in request.mutations
        ]
        if any(write.table in (*OF_ONE_OWNER, CONSUMERS, CLEARED) for _, write in writes):
            self._judge(unit, writes, response.commit_timestamp)

    def _judge(self, unit: Unit, writes: list[tuple[str, Any]], at: Any) -> None:
        before = to_datetime(at.ToMicroseconds() - 1)
        divides = [write for kind, write in writes if write.table == DIVISIONS and kind != "delete"]
        if divides:
            self._judge_division(unit, divides[0], before)
            return
        holders = self._read_holders(before)
        tables = {write.table for _, write in writes}
        for consumer in sorted(list_consumers(writes)):
            self._judge_writer(unit, consumer, holders.get(consumer, Holder(None, alive=False)))
        mine = [key for key in self._tokens if key[0] == unit.actor]
        if CLEARED in tables and mine:
            owned = [holders.get(key[1], Holder(None, False)).owner for key in mine]
            if not {self._tokens[key] for key in mine} & set(owned):
                self._blame(f"{unit.name} announced a clearing without any lease")

    def _judge_writer(self, unit: Unit, consumer: str, holder: Holder) -> None:
        token = self._tokens.get((unit.actor, consumer))
        if token is None and holder.alive:
            self._blame(f"{unit.name} moved {consumer} while an instance of it is alive")
        if token is not None and holder.owner != token:
            self._blame(f"{unit.name} wrote of {consumer}, which another instance owns, or nobody")

    def _judge_division(self, unit: Unit, write: Any, before: datetime) -> None:
        """Tables are divided as the others of the consumer, and by who has known of those."""
        rows = [dict(zip(write.columns, values, strict=True)) for values in write.values]
        shared, parts = rows[0]["Consumer"], count_parts(rows[0]["Division"])
        with hide_steps(), self.run.database.snapshot(read_timestamp=before) as snapshot:
            counts = self._read_counts(snapshot, shared)
        holder = self._read_holders(before).get(shared, Holder(None, alive=False))
        if counts - {parts}:
            self._blame(f"{shared} is divided into {parts} parts, and into {counts}")
        if not counts and self._settling.get(unit.name):
            self._blame(f"{unit.name} divides {shared} anew, which was merged since it began")
        if holder.alive:
            self._blame(f"{shared} is divided while an instance runs as the whole of it")

    # What is stored.

    def _read_holders(self, at: datetime | None = None) -> dict[str, Holder]:
        columns = ("Consumer", "Owner", "LeaseUntil")
        now = at or to_datetime(self.run.now())
        with hide_steps(), self.run.database.snapshot(read_timestamp=at) as snapshot:
            rows = list(snapshot.read(CONSUMERS, columns, KeySet(all_=True)))
        return {
            name: Holder(owner, owner is not None and until is not None and until > now)
            for name, owner, until in rows
        }

    def _read_counts(self, snapshot: Any, shared: str) -> set[int]:
        with hide_steps():
            rows = list(snapshot.read(DIVISIONS, ("Consumer", "Division"), KeySet(all_=True)))
        return {count_parts(division) for name, division in rows if name == shared}

    def _blame(self, problem: str) -> None:
        self.run.record.problems.append(problem)


def list_consumers(writes: list[tuple[str, Any]]) -> set[str]:
    """Whose rows are written. What operators ask of a consumer anybody may write."""
    names: set[str] = set()
    for kind, write in writes:
        if write.table not in (*OF_ONE_OWNER, CONSUMERS):
            continue
        if kind == "delete":
            names |= {key[0] for key in write.key_set.keys}
            names |= {each.start_closed[0] for each in write.key_set.ranges}
        elif "Command" not in write.columns:
            place = list(write.columns).index("Consumer")
            names |= {values[place] for values in write.values}
    return names


@contextmanager
def watch_fences(find: Callable[[], Fences | None]) -> Iterator[None]:
    """While it lasts, the judge sees who takes names, joins and divides."""
    acquire, renew = Consumers.acquire, Consumers.renew
    join, settle = Members.renew, Divisions.settle

    def note_acquisition(consumers: Consumers, *arguments: Any, **options: Any) -> Lease:
        lease = acquire(consumers, *arguments, **options)
        fences, unit = find(), current_unit()
        if fences is not None and unit is not None and unit.actor != "end":
            fences.note_lease(unit, lease)
        return lease

    def note_renewal(consumers: Consumers, lease: Lease, *arguments: Any) -> Any:
        command = renew(consumers, lease, *arguments)
        fences, unit = find(), current_unit()
        if fences is not None and unit is not None and unit.actor != "end":
            fences.note_renewal(unit, lease)
        return command

    def note_member(members: Members, *arguments: Any) -> tuple[str, ...]:
        alive = join(members, *arguments)
        fences, unit = find(), current_unit()
        if fences is not None and unit is not None:
            fences.note_member(members._shared, members._parts)
        return alive

    def note_settling(divisions: Divisions, *arguments: Any) -> Any:
        fences, unit = find(), current_unit()
        if fences is None or unit is None:
            return settle(divisions, *arguments)
        with fences.settle(unit, dict(divisions._known)):
            return settle(divisions, *arguments)

    replaced: list[tuple[Any, str, Any, Any]] = [
        (Consumers, "acquire", acquire, note_acquisition),
        (Consumers, "renew", renew, note_renewal),
        (Members, "renew", join, note_member),
        (Divisions, "settle", settle, note_settling),
    ]
    for owner, name, _, value in replaced:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value, _ in replaced:
            setattr(owner, name, value)
