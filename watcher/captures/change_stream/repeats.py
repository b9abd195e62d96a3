"""Records that come again after a query was opened again, and are not to be delivered again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watcher.captures.change_stream.record_columns import RecordColumns
from watcher.captures.change_stream.record_values import DataRecord

Records = DataRecord | RecordColumns
"""One record, or many."""

RecordId = tuple[int, str, str]
"""Commit timestamp, transaction, and the record's sequence in it: no other record has them."""
# assumes: stream-transaction-id

ID_FIELDS = ("commit_timestamp", "transaction_id", "record_sequence")


def list_ids(records: Records) -> list[RecordId]:
    """What no other record of a change stream has, of each record."""
    if isinstance(records, DataRecord):
        return [(records.commit_timestamp, records.transaction_id, records.sequence)]
    return read_ids(records.fields)


def read_ids(fields: pa.RecordBatch) -> list[RecordId]:
    """The same of the fields of records."""
    commits, *others = (fields.column(name) for name in ID_FIELDS)
    columns = [commits.cast(pa.int64()), *others]
    return list(zip(*(each.to_pylist() for each in columns), strict=True))


def find_newest(records: Records) -> int:
    """The commit timestamp of the last record, in microseconds since 1970."""
    if isinstance(records, DataRecord):
        return records.commit_timestamp
    newest: int = pc.max(records.fields.column(ID_FIELDS[0])).cast(pa.int64()).as_py()
    return newest


def choose_records(records: Records, chosen: Sequence[bool]) -> Records | None:
    """Some of the records; None where none is left."""
    if all(chosen):
        return records
    if isinstance(records, DataRecord) or not any(chosen):
        return None
    kept = np.array(chosen)
    of_mods = kept[records.records]
    return replace(
        records,
        fields=records.fields.filter(pa.array(kept)),
        mods=records.mods.filter(pa.array(of_mods)),
        records=(np.cumsum(kept) - 1)[records.records[of_mods]],
    )


@dataclass(slots=True)
class ReadPoint:
    """How far a partition was read: a query that is opened again at ``at`` repeats records."""

    at: int
    reopened: bool = False
    _seen: set[RecordId] = field(default_factory=set)

    def take_new(self, records: Records) -> Records | None:
        """The records that did not come before, which count as read now; None where there are
        none."""
        new = records
        if self.reopened:
            ids = list_ids(records)
            chosen = [each[0] >= self.at and each not in self._seen for each in ids]
            self.reopened = ids[-1][0] <= self.at
            kept = choose_records(records, chosen)
            if kept is None:
                return None
            new = kept
        newest = find_newest(new)
        self.reach(newest)
        self._seen.update(list_newest_ids(new, newest))
        return new

    def reach(self, timestamp: int) -> None:
        """Everything before a timestamp was read."""
        if timestamp > self.at:
            self.at, self._seen = timestamp, set()


def list_newest_ids(records: Records, newest: int) -> list[RecordId]:
    """Of the records that were committed at a timestamp."""
    if isinstance(records, DataRecord):
        return list_ids(records)
    commits = records.fields.column(ID_FIELDS[0]).cast(pa.int64())
    return read_ids(records.fields.filter(pc.equal(commits, newest)))


class DeliveredRecords:
    """The records that were delivered above the saved watermark.

    Their names are only worked out when queries are opened again, from the watermark on.
    """

    def __init__(self) -> None:
        self._above: list[tuple[int, pa.RecordBatch | list[RecordId]]] = []
        self._repeated: set[RecordId] = set()

    def note(self, records: Records, reads: Callable[[str], bool]) -> None:
        """Records were delivered, as far as they are of tables that are read."""
        ids: pa.RecordBatch | list[RecordId]
        if isinstance(records, DataRecord):
            ids = list_ids(records) if reads(records.shape.table) else []
        else:
            tables = records.fields.column("table")
            names = [name for name in tables.unique().to_pylist() if reads(name)]
            read = pc.is_in(tables, value_set=pa.array(names, pa.string()))
            ids = records.fields.select(ID_FIELDS).filter(read)
        if len(ids):
            self._above.append((find_newest(records), ids))

    def advance(self, mark: int) -> None:
        """The watermark is saved: what is at it or below does not come again."""
        self._above = [each for each in self._above if each[0] > mark]
        self._repeated = {each for each in self._repeated if each[0] > mark}

    def reopen(self) -> None:
        """Queries are opened again: everything above the saved watermark comes again."""
        for _, ids in self._above:
            self._repeated.update(ids if isinstance(ids, list) else read_ids(ids))

    def drop_repeated(self, records: Records) -> Records | None:
        """The records that were not delivered yet; None where there are none."""
        if not self._repeated:
            return records
        return choose_records(records, [each not in self._repeated for each in list_ids(records)])
