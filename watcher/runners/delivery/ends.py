"""Where a window has to end that may have been handed over before: rule 8 of docs/protocol.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from watcher.consumers.positions import Positions
from watcher.runners.delivery.instance import Instance


class LeastEnds:
    """The earliest end of the next window, for tables whose rows may have been handed over above
    their position: before a failure of this instance, or by one that is gone.

    A window holds the newest version of a row at its end. So one that comes again with an earlier
    end would bring older versions behind newer ones. The end of a long window is stored before
    anything of it is handed over; who follows a crash lets the first window be no shorter than
    that, nor than one without a plan may have been.
    """

    def __init__(self, positions: Positions, instance: Instance) -> None:
        """Reads what is stored when an instance starts."""
        self._positions = positions
        self._instance = instance
        self._planned = positions.load_planned_ends(instance.consumer)
        self._least = {
            table: max(at + positions.unplanned_micros, self._planned.get(table, 0))
            for table, at in positions.load_all(instance.consumer).items()
        }

    def replace_positions(self, positions: Positions) -> None:
        """Continues over a new connection."""
        self._positions = positions

    def raise_end(self, starts: Mapping[str, int], end: int, latest: int) -> int:
        """The end, or a later one where a table that the window is of needs it; at most
        ``latest``."""
        while True:
            needed = max((self._least.get(t, 0) for t, at in starts.items() if at < end), default=0)
            if needed <= end or end >= latest:
                return end
            end = min(needed, latest)

    def plan(self, starts: Mapping[str, int], end: int) -> None:
        """Makes sure that a window of tables, which is handed over next, ends no earlier when it
        comes again. Raises LeaseLostError when the lease is another's."""
        if unplanned := self._list_unplanned(starts, end):
            consumer, owner = self._instance.consumer, self._instance.owner
            self._positions.plan_end(consumer, unplanned, end, owner)
            self._planned |= dict.fromkeys(unplanned, end)
        self._least |= {table: end for table, start in starts.items() if start < end}

    def _list_unplanned(self, starts: Mapping[str, int], end: int) -> list[str]:
        return [
            table
            for table, start in starts.items()
            if start + self._positions.unplanned_micros < end and self._planned.get(table, 0) < end
        ]

    def note_saved(self, tables: Iterable[str]) -> None:
        """The positions are saved: nothing was handed over above them."""
        for table in tables:
            self._least.pop(table, None)
