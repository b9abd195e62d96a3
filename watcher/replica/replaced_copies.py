"""Which copies are those of another table: theirs was dropped and created again, or another table
has its name now. No capture tells, and the columns may be the same."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from watcher.captures.poll import PollCapture
from watcher.model.log_events.copies import (
    DATABASE_RESTORED,
    REPLACED_TABLES_UNKNOWN,
    TABLE_REPLACED,
)
from watcher.replica.cuts.cut import Cause, Cut, Reason
from watcher.replica.cuts.manifest import Manifest
from watcher.spanner.failures import MAY_GO_AWAY, classify_error
from watcher.spanner.schema_changes import read_restored_at
from watcher.spanner.timestamps import format_timestamp
from watcher.tables.replaced import read_replaced

LOG = logging.getLogger("watcher.replica")
LOOK_SECONDS = 60.0
"""How often a replicator asks for the database's DDL statements while it runs. One call."""


def find_replaced_copies(
    known: Mapping[str, int], captures: Mapping[str, PollCapture]
) -> dict[str, int]:
    """Of tables that were known at timestamps, those whose name another one may have now, and since
    when. Of a database that was restored from a backup since, under its old name: all of them, as
    rows went back. Raises GoogleAPICallError where the server does not answer."""
    capture = next(iter(captures.values()), None)
    there = {name: at for name, at in known.items() if name in captures}
    if capture is None or not there:
        return {}
    address = capture.queries.address
    found = read_replaced(address, there, capture.table.dialect)
    restored = read_restored_at(address)
    back = {name: restored for name, at in there.items() if at < restored}
    if back:
        DATABASE_RESTORED.log(LOG)
    return found | back


def list_known(last: Cut | None) -> dict[str, int]:
    """The tables of a cut, and at which timestamp the copy is known to be theirs."""
    return dict.fromkeys(last.tables, last.looked) if last is not None else {}


def list_waiting(last: Cut | None) -> set[str]:
    """The tables of a cut whose copies are known to be those of others."""
    return {
        name
        for name, each in (last.tables.items() if last is not None else ())
        if any(reason.cause is Cause.REPLACED for reason in each.reasons)
    }


class ReplacedCopies:
    """Of one replica: looks when it begins, and then every minute; cuts that it has written in
    between, and that have such a copy, are not exact any more."""

    def __init__(self, manifest: Manifest, clock: Callable[[], float] = time.monotonic) -> None:
        self._manifest = manifest
        self._clock = clock
        self._known: dict[str, int] = {}
        self._waiting: set[str] = set()
        self._looked_at: float | None = None
        self.looked = 0
        """The end of the window of the last look that was answered."""

    def __contains__(self, name: str) -> bool:
        """Whether a copy is not to be used until it is loaded."""
        return name in self._waiting

    def begin(self, last: Cut | None) -> None:
        """What is known is that of the last cut."""
        self._known = list_known(last)
        self._waiting = list_waiting(last)
        self.looked = last.looked if last is not None else 0
        self._looked_at = None

    def list_unknown(self, names: Iterable[str]) -> list[str]:
        """Those that the last cut does not list: new ones, and tables that were left out, or gone,
        for a while."""
        return [name for name in names if name not in self._known]

    def know(self, name: str, at: int) -> None:
        """A copy that is there was its table's at a timestamp."""
        self._known[name] = at

    def settle(self, name: str, end: int) -> None:
        """A table is loaded at a window's end."""
        self._waiting.discard(name)
        self._known[name] = end

    def look(self, captures: Mapping[str, PollCapture], end: int) -> set[str]:
        """The tables that were found to be others, if it is time to look; all that happened up to a
        window's end is seen then. Raises GoogleAPICallError at the first look alone."""
        first, now = self._looked_at is None, self._clock()
        if self._looked_at is not None and now - self._looked_at < LOOK_SECONDS:
            return set()
        self._looked_at = now
        try:
            found = find_replaced_copies(self._known, captures)
        except Exception as error:
            if first or classify_error(error) not in MAY_GO_AWAY:
                raise
            REPLACED_TABLES_UNKNOWN.log(LOG, error=error)
            return set()
        for name, since in found.items():
            TABLE_REPLACED.log(LOG, table=name, since=format_timestamp(since))
            self._mark_cuts(name, since)
        self._known = {name: max(self._known.get(name, end), end) for name in captures}
        self._waiting |= found.keys()
        self.looked = max(self.looked, end)
        return set(found)

    def _mark_cuts(self, name: str, since: int) -> None:
        """Cuts from a timestamp on have a copy that is none of the table's."""
        detail = f"another table has the name since {format_timestamp(since)}"
        reason = Reason(Cause.REPLACED, detail, since)
        for cut in self._manifest.iterate_exact():
            if cut.end < since:
                return
            if name in cut.tables:
                marked = replace(cut.tables[name], reasons=(reason,))
                self._manifest.write(replace(cut, tables={**cut.tables, name: marked}))
