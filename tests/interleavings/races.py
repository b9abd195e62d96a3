"""Which steps of a schedule depend on each other, and where another order could matter.

Two steps depend on each other when both touch the same table and one of them writes. The reduction
is that of Flanagan and Godefroid, "Dynamic Partial-Order Reduction for Model Checking Software"
(2005): of two orders that differ only in steps that do not depend on each other, one is enough.
With a bound on preemptions a step is also tried at the begin of the block that it interrupts, as in
Coons, Musuvathi, McKinley, "Bounded Partial-Order Reduction" (2013).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from interleavings.gate import BEGINS

EVERYTHING = "*"
"""In place of a table: the time, the schema, or a read timestamp, which concern all of them."""
DELIVERED = "delivered"
AGES = "ages"
"""In place of a table: of two read-write transactions in conflict the one that began first wins."""
NAMES = re.compile(r"""(?:FROM|UPDATE|INTO|JOIN|Read|Commit)\s+[`"]?(\w+)""")
WRITES = re.compile(r"\b(?:UPDATE|INSERT|DELETE)\b")
CONCERN_ALL = ("UpdateDatabaseDdl", "seconds pass")
DELIVERS = ("a callback", "offset", "batch")


@dataclass(frozen=True)
class Footprint:
    """The tables that a step reads and writes."""

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()

    def depends_on(self, other: Footprint) -> bool:
        """Whether the order of two steps can make a difference."""
        return (
            overlaps(self.writes, other.writes)
            or overlaps(self.writes, other.reads)
            or overlaps(self.reads, other.writes)
        )


def overlaps(some: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two sets of tables have one in common."""
    if EVERYTHING in some or EVERYTHING in others:
        return bool(some and others)
    return not some.isdisjoint(others)


@dataclass
class Transaction:
    """What a unit has read and written since its last commit."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)


def unit_of(token: str) -> str:
    """The unit of a token, which may be one of a crash."""
    return token.rstrip("!?")


def footprints(trace: Sequence[str], labels: Sequence[str]) -> list[Footprint]:
    """The footprint of each step. A commit has that of its whole transaction."""
    transactions: dict[str, Transaction] = defaultdict(Transaction)
    return [
        footprint(label, transactions[unit_of(token)])
        for token, label in zip(trace, labels, strict=True)
    ]


def footprint(label: str, transaction: Transaction) -> Footprint:
    """The footprint of a step by its label; remembers it in the unit's transaction."""
    if any(text in label for text in CONCERN_ALL):
        return Footprint(frozenset({EVERYTHING}), frozenset({EVERYTHING}))
    if label.startswith(DELIVERS):
        return Footprint(writes=frozenset({DELIVERED}))
    if label.startswith("Commit"):
        tables = set(label.split()[1:])
        whole = Footprint(
            frozenset(transaction.reads), frozenset(transaction.writes | tables or {EVERYTHING})
        )
        transaction.reads, transaction.writes = set(), set()
        return whole
    if not label:
        return Footprint()
    ages = frozenset({AGES}) if label.endswith(BEGINS) else frozenset()
    tables = set(NAMES.findall(label)) or {EVERYTHING}
    if WRITES.search(label):
        transaction.writes |= tables
        return Footprint(frozenset(tables), frozenset(tables) | ages)
    transaction.reads |= tables
    return Footprint(frozenset(tables), ages)


def races(trace: Sequence[str], prints: Sequence[Footprint]) -> Iterator[tuple[int, str]]:
    """Places, and the units that could have gone on there instead with another outcome.

    For each step: the last step of another unit that it depends on and that did not have to happen
    before it.
    """
    before: dict[str, dict[str, int]] = defaultdict(dict)
    clocks: list[dict[str, int]] = []
    for place, (token, mine) in enumerate(zip(trace, prints, strict=True)):
        unit = unit_of(token)
        clock = dict(before[unit])
        raced: int | None = None
        for earlier in range(place):
            other = unit_of(trace[earlier])
            if other == unit or not mine.depends_on(prints[earlier]):
                continue
            if earlier > before[unit].get(other, -1):
                raced = earlier
            for name, at in clocks[earlier].items():
                clock[name] = max(clock.get(name, -1), at)
        clock[unit] = place
        before[unit] = clock
        clocks.append(clock)
        if raced is not None:
            yield raced, unit


def block_begin(trace: Sequence[str], place: int) -> int:
    """The first step of the uninterrupted block that a step belongs to."""
    unit = unit_of(trace[place])
    while place > 0 and unit_of(trace[place - 1]) == unit:
        place -= 1
    return place


Order = tuple[tuple[tuple[str, str], ...], ...]


def order_class(trace: Sequence[str], labels: Sequence[str]) -> Order:
    """Equal for schedules that differ only in the order of steps that do not depend on each other:
    the normal form of Foata, floor by floor. Steps that send nothing are left out."""
    sent = [(token, label) for token, label in zip(trace, labels, strict=True) if label]
    prints = footprints([token for token, _ in sent], [label for _, label in sent])
    floors: list[int] = []
    for place, (token, _) in enumerate(sent):
        below = [
            floors[earlier]
            for earlier in range(place)
            if unit_of(sent[earlier][0]) == unit_of(token)
            or prints[place].depends_on(prints[earlier])
        ]
        floors.append(max(below, default=-1) + 1)
    on_floor: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for floor, step in zip(floors, sent, strict=True):
        on_floor[floor].append(step)
    return tuple(tuple(sorted(on_floor[floor])) for floor in sorted(on_floor))
