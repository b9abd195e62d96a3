"""How captures ask Spanner to serve their reads: at which priority, and by which replicas.

Source: Spanner's ``RequestOptions.Priority`` and ``DirectedReadOptions``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from google.cloud.spanner_v1 import (
    DirectedReadOptions,
    ExecuteSqlRequest,
    ReadRequest,
    RequestOptions,
)
from pydantic import ConfigDict

REPLICAS_MAX = 10
"""Spanner: so many replica selections in one list."""


class Priority(StrEnum):
    """What Spanner serves first when it is busy; without one a request has high priority."""

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

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    location: str | None = None
    type: ReplicaType | None = None

    def __post_init__(self) -> None:
        if not self.location and self.type is None:
            raise ValueError("a replica needs a location, a type (read-only or read-write) or both")

    @property
    def message(self) -> DirectedReadOptions.ReplicaSelection:
        """As Spanner's API writes it."""
        types = DirectedReadOptions.ReplicaSelection.Type
        name = self.type.name if self.type is not None else "TYPE_UNSPECIFIED"
        return DirectedReadOptions.ReplicaSelection(
            location=self.location or "", type_=getattr(types, name)
        )


@dataclass(frozen=True, slots=True)
class DirectedRead:
    """Which replicas serve reads: those of ``include``, in this order, or all but ``exclude``.

    With ``auto_failover_disabled`` a read waits for a replica of ``include`` when none is healthy.
    Raises ValueError for what Spanner refuses.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    include: tuple[Replica, ...] = ()
    exclude: tuple[Replica, ...] = ()
    auto_failover_disabled: bool = False

    def __post_init__(self) -> None:
        if bool(self.include) == bool(self.exclude):
            raise ValueError("name replicas in one of 'include' and 'exclude'")
        if len(self.include or self.exclude) > REPLICAS_MAX:
            raise ValueError(f"Spanner takes at most {REPLICAS_MAX} replicas")
        if self.exclude and self.auto_failover_disabled:
            raise ValueError("'auto_failover_disabled' goes with 'include', not with 'exclude'")

    @property
    def message(self) -> DirectedReadOptions:
        """As Spanner's API writes it."""
        if self.exclude:
            excluded = DirectedReadOptions.ExcludeReplicas(
                replica_selections=build_selections(self.exclude)
            )
            return DirectedReadOptions(exclude_replicas=excluded)
        included = DirectedReadOptions.IncludeReplicas(
            replica_selections=build_selections(self.include),
            auto_failover_disabled=self.auto_failover_disabled,
        )
        return DirectedReadOptions(include_replicas=included)


def build_selections(replicas: Sequence[Replica]) -> list[DirectedReadOptions.ReplicaSelection]:
    """The selections as Spanner's API writes them."""
    return [replica.message for replica in replicas]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What every read of a capture asks for; None leaves it to Spanner."""

    priority: Priority | None = None
    directed_read: DirectedRead | None = None

    def apply_to(self, request: ExecuteSqlRequest | ReadRequest) -> None:
        """Puts the options into a request."""
        if self.priority is not None:
            request.request_options = RequestOptions(
                priority=getattr(RequestOptions.Priority, f"PRIORITY_{self.priority.name}")
            )
        if self.directed_read is not None:
            request.directed_read_options = self.directed_read.message
