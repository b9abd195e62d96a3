"""Whether a copy shows of its table what it is to show now: rules V1 to V4 of
docs/replica-protocol.md."""

from __future__ import annotations

import logging

from watcher.model.log_events.copies import VIEW_CHANGED
from watcher.replica.cuts.cut import Cut
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.cuts.views import WHOLE, View
from watcher.tables.values import WatchedTable

LOG = logging.getLogger("watcher.replica")
CHANGED = "where or the masks of the table have changed"


class CopyViews:
    """Of one replica. A load notes the view before its first commit, and cuts have it: a copy has
    the rows of a view for certain only where both say so."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._known: dict[str, View] = {}

    def fits(self, table: WatchedTable, last: Cut | None) -> bool:
        """Whether the copy has the rows of the table's view, after a cut. Raises
        ConfigurationError."""
        view, name = View.of_table(table), table.name
        if self._known.get(name) == view:
            return True
        noted = self._manifest.read_view(name)
        listed = last.tables.get(name) if last is not None else None
        if listed is None:
            same = noted is None and view == WHOLE
        else:
            same = listed.view == view == (noted or WHOLE)
        if same:
            self._known[name] = view
        return same

    def note(self, table: WatchedTable, last: Cut | None) -> None:
        """A load begins."""
        view, name = View.of_table(table), table.name
        self._known.pop(name, None)
        if view == (self._manifest.read_view(name) or WHOLE):
            return
        if last is not None and name in last.tables:
            VIEW_CHANGED.log(LOG, table=name)
        self._manifest.note_view(name, view)

    def settle(self, table: WatchedTable) -> None:
        """The copy has what was noted: its load, or the first chunk of it, is committed."""
        self._known[table.name] = View.of_table(table)

    def discard(self) -> None:
        """What is stored is read anew."""
        self._known.clear()
