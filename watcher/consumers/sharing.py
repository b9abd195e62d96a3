"""Which parts of a shared consumer an instance is to hold: rule 12 of docs/protocol.md. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from watcher.tables.parts import Part


@dataclass(frozen=True, slots=True)
class Shift:
    """The parts that an instance gives back, and those that it tries to take."""

    give_back: tuple[Part, ...] = ()
    take: tuple[Part, ...] = ()


def count_share(parts: int, members: Sequence[str], member: str) -> int:
    """How many parts are an instance's share. The shares of all ``members`` together are all
    parts; they differ by one at most. None of them is that of an instance that is not one of the
    members."""
    if member not in members:
        return 0
    least, more = divmod(parts, len(members))
    return least + (members.index(member) < more)


def plan_shift(held: Collection[Part], free: Collection[Part], share: int, first: int = 0) -> Shift:
    """What brings an instance nearer to its share. ``free`` are parts that nobody holds; instances
    begin at different ones of them, ``first``, so that few of them ask for the same one."""
    if len(held) >= share:
        return Shift(give_back=tuple(sorted(held)[share:]))
    ordered = sorted(free)
    start = first % len(ordered) if ordered else 0
    return Shift(take=tuple((ordered[start:] + ordered[:start])[: share - len(held)]))
