"""How captures ask Spanner to serve their reads: at which priority, and by which replicas.

Source: Spanner's ``RequestOptions.Priority`` and ``DirectedReadOptions``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pydantic import ConfigDict

REPLICAS_MAX = 10
"""Spanner: so many replica selections in one list."""
APPLICATION = "spanner-watcher"
"""What the tag of every request, and of every transaction, begins with."""
TAG_CHARACTERS_MAX = 50


class Priority(StrEnum):
    """What Spanner serves first when it is busy; a request without a priority has a high one."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ReplicaType(StrEnum):
    """Which replicas."""

    READ_ONLY = "read-only"
    READ_WRITE = "read-write"


@dataclass(frozen=True, slots=True)
class Replica:
    """Replicas of a location (a region, ``leader`` or ``non-leader``), of a type, or both.

    Raises ValueError when it names neither.
    """

    __pydantic_config__: ClassVar[ConfigDict] = {"extra": "forbid"}

    location: str | None = None
    """A region, ``leader`` or ``non-leader``."""
    type: ReplicaType | None = None
    """Which replicas of it."""

    def __post_init__(self) -> None:
        if not self.location and self.type is None:
            raise ValueError("a replica needs a location, a type (read-only or read-write) or both")


@dataclass(frozen=True, slots=True)
class DirectedRead:
    """Which replicas serve reads: those of ``include``, or all but ``exclude``.

    Raises ValueError for what Spanner refuses.
    """

    __pydantic_config__: ClassVar[ConfigDict] = {"extra": "forbid"}

    include: tuple[Replica, ...] = ()
    """These replicas, in this order; at most ten."""
    exclude: tuple[Replica, ...] = ()
    """All but these replicas."""
    auto_failover_disabled: bool = False
    """Wait for a replica of ``include`` when none of them is healthy."""

    def __post_init__(self) -> None:
        if bool(self.include) == bool(self.exclude):
            raise ValueError("name replicas in one of 'include' and 'exclude'")
        if len(self.include or self.exclude) > REPLICAS_MAX:
            raise ValueError(f"Spanner takes at most {REPLICAS_MAX} replicas")
        if self.exclude and self.auto_failover_disabled:
            raise ValueError("'auto_failover_disabled' goes with 'include', not with 'exclude'")


EXCLUDE = "exclude:"


def parse_replicas(text: str, auto_failover_disabled: bool = False) -> DirectedRead:
    """``[exclude:]LOCATION[:TYPE],...``; a type may stand alone. Raises ValueError."""
    excluded = text.startswith(EXCLUDE)
    replicas = tuple(parse_replica(each) for each in text.removeprefix(EXCLUDE).split(","))
    if excluded:
        return DirectedRead(exclude=replicas, auto_failover_disabled=auto_failover_disabled)
    return DirectedRead(include=replicas, auto_failover_disabled=auto_failover_disabled)


def parse_replica(text: str) -> Replica:
    """``LOCATION``, ``LOCATION:TYPE`` or ``TYPE``. Raises ValueError."""
    location, _, named = text.strip().rpartition(":")
    types = {each.value: each for each in ReplicaType}
    if named in types:
        return Replica(location or None, types[named])
    if location:
        raise ValueError(f"'{named}' is not a type of replicas: use {' or '.join(types)}")
    return Replica(named or None)


def write_replicas(directed: DirectedRead) -> str:
    """As ``parse_replicas`` reads it."""
    texts = (
        ":".join(each for each in (replica.location, replica.type) if each)
        for replica in directed.include or directed.exclude
    )
    return (EXCLUDE if directed.exclude else "") + ",".join(texts)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What every read asks for; None leaves it to Spanner. ``tag`` is what Spanner's statistics of
    queries call it (REQUEST_TAG)."""

    priority: Priority | None = None
    directed_read: DirectedRead | None = None
    tag: str = APPLICATION


def yield_to_others(options: ReadOptions) -> ReadOptions:
    """The options of reads that are not urgent: a low priority, unless one is named."""
    return options if options.priority is not None else replace(options, priority=Priority.LOW)


def write_tag(work: str, consumer: str | None = None) -> str:
    """The tag of the requests of some work (``watch``, ``verify``, ...), for a consumer.

    Spanner: at most 50 characters of ASCII; it replaces others by underscores.
    """
    parts = (APPLICATION, work, *([consumer] if consumer else []))
    text = "/".join(parts).encode("ascii", "replace").decode().replace("?", "_")
    return text[:TAG_CHARACTERS_MAX]
