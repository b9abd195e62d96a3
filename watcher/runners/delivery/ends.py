"""How far rows may have been handed over above a position: rule 8 of docs/protocol.md."""

from __future__ import annotations

from collections.abc import Mapping

from watcher.consumers.positions import Positions
from watcher.runners.delivery.instance import Instance


class LeastEnds:
    """The earliest end of the next window, for tables whose rows may have been handed over above
    their position: before a failure of this instance, or by one that is gone.

    A window holds the newest version of a row at its end. So one that comes again with an earlier
    end would bring older versions behind newer ones. What is stored for a table is either its
    planned end, above which nothing was handed over, or nothing: then short windows are handed over
    without a plan, and who follows a crash begins with one that is as long.
    """

    def __init__(self, positions: Positions, instance: Instance, stored: Mapping[str, int]) -> None:
        """When an instance starts; ``stored`` are its consumer's positions."""
        self._positions = positions
        self._instance = instance
        self._planned = positions.load_planned_ends(instance.consumer)
        self._unplanned = stored.keys() - self._planned.keys()
        self._least = {
            table: self._planned.get(table, at + positions.unplanned_micros)
            for table, at in stored.items()
        }

    def replace_positions(self, positions: Positions) -> None:
        """Continues over a new connection."""
        self._positions = positions

    @property
    def by_table(self) -> Mapping[str, int]:
        """As ``watcher.planning.windows.raise_end`` takes them."""
        return self._least

    def plan(self, starts: Mapping[str, int], end: int) -> None:
        """Makes sure that a window of tables, which is handed over next, ends no earlier when it
        comes again. Raises LeaseLostError when the lease is another's."""
        inside = {table: start for table, start in starts.items() if start < end}
        self._store(
            {
                table: end if end - start > self._positions.unplanned_micros else None
                for table, start in inside.items()
                if self._planned.get(table, 0) < end
            }
        )
        self._least |= dict.fromkeys(inside, end)

    def note_saved(self, positions: Mapping[str, int]) -> None:
        """The positions are saved: nothing was handed over above them."""
        self._least |= positions

    def close(self, positions: Mapping[str, int]) -> None:
        """At a clean end it is known how far rows were handed over: up to the positions, or to the
        end of a window that failed."""
        unknown = self._unplanned & positions.keys()
        self._store({t: max(positions[t], self._least.get(t, 0)) for t in unknown})

    def _store(self, ends: Mapping[str, int | None]) -> None:
        """Plans ends, or that (None) short windows need no plan."""
        known = self._unplanned
        changes = {t: end for t, end in ends.items() if end is not None or t not in known}
        if not changes:
            return
        self._positions.plan_ends(self._instance.consumer, changes, self._instance.owner)
        for table, end in changes.items():
            if end is None:
                self._unplanned.add(table)
                self._planned.pop(table, None)
            else:
                self._unplanned.discard(table)
                self._planned[table] = end
