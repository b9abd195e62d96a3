"""Reads rows of records by their keys, once for all records that stand beside each other: Spanner
sends a transaction that inserts, updates and deletes as many records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Value

from watcher.captures.change_stream.record_values import DataRecord, StreamMod
from watcher.model.change import Operation, Shape
from watcher.spanner.failures import REFUSALS, is_schema_refusal
from watcher.spanner.key_values import Parts, identify_key
from watcher.spanner.queries import QueryClient
from watcher.spanner.results.sent_types import check_types
from watcher.spanner.results.wire import collect_rows

JsonRow = dict[str, object]
"""Columns of a row in the JSON of Spanner's API."""
Rows = dict[Parts, JsonRow]
ROWS_A_READ = 256
CHARACTERS_A_READ = 4 * 1024 * 1024
"""Of what the records say themselves: so wide rows are not read all at once."""


@dataclass(frozen=True)
class RowReads:
    """Of some records that are completed one after the other. A read at a timestamp is made for all
    of them that may need it: those of the commit with that timestamp, or, at the end of a window,
    all."""

    queries: QueryClient
    records: Sequence[DataRecord]
    done: dict[tuple[Shape, int | None, bool], Rows | None] = field(default_factory=dict)

    def read_then(self, record: DataRecord, shape: Shape) -> Rows | None:
        """The other columns of the rows of a record that existed at its commit timestamp, by key;
        None where the table had other columns then."""
        at = record.commit_timestamp
        if (shape, at, True) not in self.done:
            beside = [each for each in self.records if each.commit_timestamp == at]
            self.done[shape, at, True] = self._read(shape, [*beside, record], at)
        return self.done[shape, at, True]

    def read_late(self, record: DataRecord, shape: Shape, at: int | None) -> Rows | None:
        """The same at a later timestamp, or as of now."""
        if (shape, at, False) not in self.done:
            self.done[shape, at, False] = self._read(shape, [*self.records, record], at)
        return self.done[shape, at, False]

    def _read(self, shape: Shape, records: Sequence[DataRecord], at: int | None) -> Rows | None:
        mods = {
            mod.key: mod
            for each in records
            if each.shape.table == shape.table
            and each.operation is not Operation.DELETE
            and set(each.shape.primary_key) == set(shape.primary_key)
            for mod in each.mods
        }
        return self.read_mods(shape, list(mods.values()), at)

    def read_mods(self, shape: Shape, mods: Sequence[StreamMod], at: int | None) -> Rows | None:
        """The other columns of some rows, by key, as above."""
        names, types = [n for n, _ in shape.columns], [t for _, t in shape.columns]
        keys = [[json.loads(mod.key)[name] for name in shape.primary_key] for mod in mods]
        rows: Rows = {}
        key_types = list_key_types(shape)
        try:
            results = self.queries.stream.read_keys(shape.table, names, keys, at)
            for values in collect_rows(check_types(results, names, types), len(names)):
                for row in split_rows(values, names):
                    key = [row.pop(name) for name in shape.primary_key]
                    rows[identify_key(key, key_types)] = row
        except REFUSALS as error:
            if not is_schema_refusal(error):
                raise
            return None
        return rows


def group_records(
    records: Iterable[tuple[str, DataRecord]],
) -> Iterator[list[tuple[str, DataRecord]]]:
    """Records that stand beside each other, as many as are completed by one read."""
    group: list[tuple[str, DataRecord]] = []
    rows = size = 0
    for token, record in records:
        if group and (rows + len(record.mods) > ROWS_A_READ or size > CHARACTERS_A_READ):
            yield group
            group, rows, size = [], 0, 0
        group.append((token, record))
        rows += len(record.mods)
        size += record.measure_values()
    if group:
        yield group


def split_rows(values: Sequence[bytes], names: Sequence[str]) -> Iterator[JsonRow]:
    """The rows of a result, in the JSON of Spanner's API."""
    for first in range(0, len(values), len(names)):
        cells = [MessageToDict(Value.FromString(v)) for v in values[first : first + len(names)]]
        yield dict(zip(names, cells, strict=True))


def list_key_types(shape: Shape) -> list[Any]:
    """The types of a primary key, in its order."""
    types = dict(shape.columns)
    return [types[name] for name in shape.primary_key]


def identify_mod(mod: StreamMod, shape: Shape) -> Parts:
    """The key of a mod, as a value."""
    values = json.loads(mod.key)
    return identify_key([values[name] for name in shape.primary_key], list_key_types(shape))
