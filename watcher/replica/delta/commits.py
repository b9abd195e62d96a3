"""What the commits of one writer to a Delta table say of themselves, and whether the newest one is
still its own: another instance may have written since."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from watcher.model.errors import CopyConflictError, ReplicaError
from watcher.replica.copies import CopyState
from watcher.replica.cuts.stored import FORMAT
from watcher.replica.delta.log import LOAD, LOADED, METADATA, DeltaLog
from watcher.replica.delta.snapshot import Snapshot, convert_schema
from watcher.replica.fences import Fence
from watcher.replica.loads import CHUNK, CopyLoad
from watcher.replica.row_versions import strip_schema
from watcher.replica.stores.stored_files import explain_store_error


class DeltaCommits:
    """Of one table and consumer. ``load`` is the load that is under way."""

    def __init__(self, path: str, consumer: str) -> None:
        self.path = path
        self._application = f"spanner-watcher/{consumer}"
        self.log = DeltaLog(path, consumer)
        self.load = CopyLoad(path)
        self.fence = Fence(path, consumer, self.load)

    # The table, as delta-rs has it.

    def open(self) -> DeltaTable | None:
        """The table as it is now; None where there is none."""
        try:
            return DeltaTable(self.path)
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            raise self.translate(error) from error

    def require(self) -> DeltaTable:
        """The table. Raises ReplicaError where it is gone."""
        table = self.open()
        if table is None:
            raise ReplicaError(f"{self.path} is not a Delta table any more: restart 'replicate'")
        return table

    def read_end(self, table: DeltaTable) -> int:
        """The window end of the newest commit by this consumer; 0 for none."""
        return self._convert(table.transaction_version(self._application) or 0, table.version())

    def describe(self, table: DeltaTable) -> CopyState:
        """The copy, as delta-rs has it."""
        end = self.read_end(table)
        schema = strip_schema(convert_schema(table))
        return CopyState(table.version(), end, schema, self.load.progress)

    def describe_snapshot(self, snapshot: Snapshot) -> CopyState:
        """The copy, as its log was read without delta-rs."""
        end = self._end_of(snapshot)
        schema = strip_schema(snapshot.schema)
        return CopyState(snapshot.version, end, schema, self.load.progress)

    # What commits say.

    def make_properties(self, end: int) -> CommitProperties:
        """Of a merge by delta-rs: the window's end, for other writers and for people."""
        return CommitProperties(
            custom_metadata={METADATA: json.dumps(self.describe_commit("merge", end))},
            app_transactions=[Transaction(self._application, end)],
        )

    def list_transactions(self, kind: str, end: int) -> list[dict[str, Any]]:
        """The actions that name the window's end, of a load also that it is one."""
        loaded = {"appId": f"{self._application}/{LOADED}", "version": end}
        more = [{"txn": loaded}] if kind in (LOAD, CHUNK) else []
        return [{"txn": self.make_transaction(end)}, *more]

    def find_loaded(self, table: DeltaTable) -> int:
        """The window end of the newest chunk of the copy's load; 0 where nothing says it."""
        loaded = table.transaction_version(f"{self._application}/{LOADED}")
        return loaded or int((self.log.find_mark(table.version()) or {}).get(LOADED, 0))

    def describe_commit(self, kind: str, end: int) -> dict[str, Any]:
        """What a commit says of itself."""
        values = {"format": FORMAT, "consumer": self.fence.consumer, "end": end, "kind": kind}
        return values | self.load.mark

    def make_transaction(self, end: int) -> dict[str, Any]:
        """The action that names the window's end."""
        return {"appId": self._application, "version": end}

    # Whether others have written.

    def check_table(self, table: DeltaTable) -> None:
        """delta-rs does not refuse an application transaction that is older than the stored one.
        Raises CopyConflictError."""
        self._check(self.read_end(table), table.version())

    def check_snapshot(self, snapshot: Snapshot) -> int:
        """The same of a state that was read without delta-rs: its end."""
        end = self._end_of(snapshot)
        self._check(end, snapshot.version)
        return end

    def translate(self, error: Exception) -> Exception:
        """The error of a commit: a conflict is another writer's."""
        if isinstance(error, CommitFailedError):
            return self.make_conflict()
        return explain_store_error(self.path, error)

    def retry(self, attempt: Callable[[], CopyState | None]) -> CopyState:
        """As ``Fence.retry``."""
        return self.fence.retry(attempt, self._read_newest_end)

    def make_conflict(self) -> CopyConflictError:
        """Another instance has written."""
        return self.fence.refuse(self._read_newest_end())

    def _read_newest_end(self) -> int:
        return self.read_end(self.require())

    def _end_of(self, snapshot: Snapshot) -> int:
        return self._convert(snapshot.transactions.get(self._application, 0), snapshot.version)

    def _convert(self, number: int, version: int) -> int:
        """The end of the newest transaction: Spark's have higher numbers where a window has
        several."""
        if number in (0, self.fence.known):
            return number
        mark = self.log.find_mark(version)
        return number if mark is None else min(number, int(mark["end"]))

    def _check(self, end: int, version: int) -> None:
        self.fence.check(end, lambda: self.log.find_mark(version))
