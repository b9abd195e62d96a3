"""Columns that leave a Delta table which Spark writes, or stay without being written: in an entry
of its log by the driver, as without Spark. Spark drops columns with column mapping alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from watcher.replica.copies import NewColumns
from watcher.replica.delta.columns import change_columns, takes_columns
from watcher.replica.delta.log import USER_METADATA
from watcher.replica.delta.merge_on_read import VectorTable
from watcher.replica.stores.stored_files import explain_copy


class DeltaColumns:
    """Those of the table in a folder."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._table = VectorTable(path)

    def take(self, added: Sequence[str], gone: Sequence[str], with_values: bool) -> bool:
        """As ``EvolvingCopy.takes_columns``."""
        with explain_copy(self._path):
            return takes_columns(self._table.read(), added, gone, with_values)

    def change(self, after: int, columns: NewColumns, described: str) -> int | None:
        """Changes the columns in a version after one that is known: the version. None where others
        have committed at the same moment. ``described``: the user metadata of the commit."""
        with explain_copy(self._path):
            snapshot = self._table.read()
            version = snapshot.version + 1
            mark = {USER_METADATA: described}
            done = change_columns(self._table, snapshot, columns, mark)
        return version if done and version > after else None
