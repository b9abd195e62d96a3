"""What happened in a schedule: what was written, delivered, registered and cleared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from conformance.truth import Row, Truth, live_rows
from interleavings.scheduler import current_unit
from watcher.consumers.positions import backfills_table
from watcher.consumers.positions.values import TABLE as POSITIONS
from watcher.spanner.timestamps import to_micros

BACKFILLS = backfills_table(POSITIONS)
CLEARS = re.compile(
    r"""UPDATE [`"](?P<table>\w+)[`"] .*[`"]LastModified[`"] <= """
    r"(?:@(?P<safe>safe)|[$](?P<place>\d+))"
)
"""A statement of clearing, in either dialect, and its bound."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """A change as a consumer got it; ``batch`` is Spark's, ``instance`` who delivered it."""

    consumer: str
    instance: str
    row: Row
    at: int | None
    values: Mapping[str, Any] | None
    backfill: bool
    window: tuple[int, int]
    batch: int = 0


@dataclass(frozen=True, slots=True)
class Moved:
    """A position that was saved, or taken away."""

    consumer: str
    table: str
    position: int | None
    actor: str = ""


@dataclass(frozen=True, slots=True)
class Clears:
    """A clearing that was sent, up to a commit timestamp."""

    table: str
    safe: int


@dataclass
class Record:
    """Everything that judges need. ``expected`` has the values of each version."""

    truth: Truth = field(default_factory=Truth)
    values: dict[tuple[Row, int], Mapping[str, Any]] = field(default_factory=dict)
    delivered: list[Delivered] = field(default_factory=list)
    events: list[Moved | Clears] = field(default_factory=list)
    endings: list[tuple[str, BaseException]] = field(default_factory=list)
    part_of: dict[Row, str] = field(default_factory=dict)
    """Of a shared consumer, the part that each row belongs to."""
    problems: list[str] = field(default_factory=list)
    """Problems that actors themselves reported."""
    filling: set[tuple[str, str]] = field(default_factory=set)
    """The consumers and tables whose backfills are under way."""

    def deliver(self, delivered: Delivered) -> None:
        """Adds a change, unless the instance that delivers it is dead."""
        unit = current_unit()
        if unit is not None and unit.killed is not None:
            raise unit.killed
        if delivered.row in self.part_of:
            self._check_part(delivered)
        self.delivered.append(delivered)

    def _check_part(self, delivered: Delivered) -> None:
        """A row comes from a window of its own part: none begins above the position that was
        saved."""
        moves = self.moves_of(delivered.consumer)
        at = next((m.position for m in reversed(moves) if m.table == delivered.row[0]), None)
        if at is None or delivered.window[0] > at:
            self.problems.append(
                f"{delivered.consumer} got {delivered.row} of a window that begins at"
                f" {delivered.window[0]}, but its position is {at}"
            )

    def owes(self, consumer: str) -> bool:
        """Whether a consumer has anything left to deliver."""
        if any(name == consumer for name, _ in self.filling):
            return True
        history = self.truth.history()
        last = max((states[-1].at for states in history.values()), default=0)
        seen = {(each.row, each.at) for each in self.delivered if each.consumer == consumer}
        return any((row, state.at) not in seen for row, state in live_rows(history, last).items())

    def note_move(self, consumer: str, table: str, position: int | None) -> None:
        """Adds a change of a position by the unit that runs."""
        unit = current_unit()
        actor = unit.actor if unit is not None else ""
        self.events.append(Moved(consumer, table, position, actor))

    def drop_column(self, name: str) -> None:
        """From now on the values of a column need not be delivered."""
        for key, values in self.values.items():
            self.values[key] = {each: value for each, value in values.items() if each != name}

    def moves_of(self, consumer: str) -> list[Moved]:
        """The positions of a consumer, as they were saved."""
        return [e for e in self.events if isinstance(e, Moved) and e.consumer == consumer]

    def moves_by(self, actor: str) -> list[Moved]:
        """The positions that an actor has saved or taken away."""
        return [e for e in self.events if isinstance(e, Moved) and e.actor == actor]

    def observe(self, method: str, request: Any) -> None:
        """Notes the positions and the clearing in an RPC that was executed."""
        if method == "Commit":
            for mutation in request.mutations:
                self._note_positions(mutation)
        elif (clears := CLEARS.match(getattr(request, "sql", ""))) is not None:
            bound = request.params[clears["safe"] or f"p{clears['place']}"]
            self.events.append(Clears(clears["table"], text_micros(bound)))

    def _note_positions(self, mutation: Any) -> None:
        kind = mutation.WhichOneof("operation")
        write = getattr(mutation, kind)
        if write.table == BACKFILLS:
            self._note_backfills(kind, write)
        if write.table != POSITIONS:
            return
        if kind == "update":
            return  # the planned end of a window: no position moves
        if kind == "delete":
            for key in write.key_set.keys:
                self.note_move(key[0], key[1], None)
            return
        for values in write.values:
            row = dict(zip(write.columns, values, strict=True))
            at = text_micros(row["Position"])
            self.note_move(row["Consumer"], row["WatchedTable"], at)

    def _note_backfills(self, kind: str, write: Any) -> None:
        if kind == "delete":
            gone = {(key[0], key[1]) for key in write.key_set.keys}
            ranged = {key_range.start_closed[0] for key_range in write.key_set.ranges}
            self.filling = {each for each in self.filling - gone if each[0] not in ranged}
            return
        places = [list(write.columns).index(name) for name in ("Consumer", "WatchedTable")]
        for values in write.values:
            self.filling.add((values[places[0]], values[places[1]]))


def text_micros(text: str) -> int:
    """An RFC 3339 timestamp in microseconds."""
    return to_micros(datetime.fromisoformat(text))
