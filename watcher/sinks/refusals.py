"""Changes that a queue has refused, found out after they were taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from watcher.captures.changes import dump_cells
from watcher.model.change import Change
from watcher.model.errors import DeliveryError

NAMED_MAX = 3


@dataclass(frozen=True, slots=True)
class Refusal:
    """A change that will be refused again, and why."""

    change: Change
    reason: str

    def __str__(self) -> str:
        key = dump_cells(self.change.key)
        return f"change {self.change.id} of {self.change.table} with key {key}: {self.reason}"


class RefusedChangesError(DeliveryError):
    """A queue refused some changes. The others that were taken are delivered, unless all was
    ``rolled_back``."""

    def __init__(self, queue: str, refusals: Sequence[Refusal], rolled_back: bool = False) -> None:
        self.refusals = tuple(refusals)
        self.rolled_back = rolled_back
        named = "; ".join(str(each) for each in self.refusals[:NAMED_MAX])
        more = len(self.refusals) - NAMED_MAX
        super().__init__(
            f"{queue} refused {named}{f'; and {more} more' if more > 0 else ''}. Fix the cause and"
            " restart, or set delivery.then = 'skip' and delivery.dead_letters"
        )
