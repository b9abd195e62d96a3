"""Names that no instance may take: of consumers that were moved away, or are still on their way.

Such a name has an owner that no instance has, and a lease that does not run out: releases that know
nothing of it find a consumer that is alive.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from datetime import UTC, datetime

from watcher.model.errors import ConsumerMovedError
from watcher.spanner.dialects import SqlDialect

MOVED, ARRIVING = "moved", "arriving"
"""Owners: the tokens of instances are UUIDs."""
WORDS: Mapping[str, str] = {MOVED: "moved to ", ARRIVING: "arriving from "}
"""How the reason begins that is stored, and shown, with each."""
FOREVER = datetime(9999, 12, 31, tzinfo=UTC)


def is_alive(sql: SqlDialect, now: str = "CURRENT_TIMESTAMP") -> str:
    """The condition for a row of the table of leases: an instance holds the name."""
    owner = sql.quote("Owner")
    return (
        f"{owner} IS NOT NULL AND {owner} NOT IN ('{MOVED}', '{ARRIVING}')"
        f" AND {sql.quote('LeaseUntil')} > {now}"
    )


@dataclass(frozen=True, slots=True)
class Location:
    """A consumer: its name, the address of its database, its table of positions."""

    consumer: str
    address: str
    positions_table: str

    def describe(self) -> str:
        """In words."""
        return f"consumer '{self.consumer}' of {self.address}"


@dataclass(frozen=True, slots=True)
class NameFence:
    """What keeps instances from a name; ``kind`` is its owner, ``location`` where the consumer
    went, or whence it comes."""

    kind: str
    location: Location

    def to_text(self) -> str:
        """The reason that is stored."""
        return WORDS[self.kind] + json.dumps(astuple(self.location), ensure_ascii=False)

    @classmethod
    def parse(cls, owner: str | None, reason: str | None) -> NameFence | None:
        """The fence that a row of the table of leases is; None for one of an instance."""
        if owner is None or reason is None or owner not in WORDS:
            return None
        return cls(owner, Location(*json.loads(reason.removeprefix(WORDS[owner]))))


def check_name(consumer: str, fence: NameFence | None) -> None:
    """Raises ConsumerMovedError for a name that is fenced."""
    if fence is None:
        return
    if fence.kind == MOVED:
        raise ConsumerMovedError(
            f"consumer '{consumer}' was moved to {fence.location.describe()}, and this name cannot"
            " deliver any more: use that one"
        )
    raise ConsumerMovedError(
        f"consumer '{consumer}' is being moved here from {fence.location.describe()}, and that is"
        " not done: run the same 'spanner-watcher ctl move' again, or go on there"
    )
