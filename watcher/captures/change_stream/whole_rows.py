"""The values that a stream's capture type leaves out, read at the commit timestamp."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Value

from watcher.captures.change_stream.records import DataRecord, Mod
from watcher.change import Operation, Shape
from watcher.errors import SchemaChangedError, WatcherError
from watcher.queries import Queries
from watcher.stream import timestamp_text
from watcher.wire import whole_rows


@dataclass(frozen=True, slots=True)
class WholeRows:
    """The shapes of whole rows, by table. A read costs one call a record."""

    queries: Queries
    shapes: tuple[Shape, ...]

    def completed(self, record: DataRecord) -> DataRecord:
        """The record with every column. Raises VersionExpiredError when the row's version is gone,
        SchemaChangedError when its table is not known."""
        if record.operation is Operation.DELETE:
            return replace(record, captured=record.captured.with_whole_row)
        shape = next((s for s in self.shapes if s.table == record.shape.table), None)
        if shape is None:
            raise SchemaChangedError(f"table {record.shape.table} was not there when this began")
        if record.captured.whole_row and set(shape.columns) <= set(record.shape.columns):
            return record
        rows = self._rows(shape, record)
        mods = []
        for mod in record.mods:
            key = key_of(mod.key, shape)
            if key not in rows:
                raise WatcherError(
                    f"{shape.table} {mod.key} is not there at"
                    f" {timestamp_text(record.commit_timestamp)}, where it was written"
                )
            mods.append(Mod(mod.key, rows[key], mod.old))
        return replace(
            record, shape=shape, mods=tuple(mods), captured=record.captured.with_whole_row
        )

    def _rows(self, shape: Shape, record: DataRecord) -> dict[str, str]:
        """The other columns of the record's rows as JSON objects, by key."""
        names = [name for name, _ in shape.columns]
        keys = [list(json.loads(key_of(mod.key, shape))) for mod in record.mods]
        results = self.queries.stream.read_keys(shape.table, names, keys, record.commit_timestamp)
        found = {}
        width = len(names)
        for values in whole_rows(results, width):
            for first in range(0, len(values), width):
                cells = [MessageToDict(Value.FromString(v)) for v in values[first : first + width]]
                row = dict(zip(names, cells, strict=True))
                key = raw_key([row.pop(name) for name in shape.primary_key])
                found[key] = json.dumps(row)
        return found


def key_of(text: str, shape: Shape) -> str:
    """A mod's key in the order of the primary key."""
    found = json.loads(text)
    return raw_key([found[name] for name in shape.primary_key])


def raw_key(cells: Sequence[object]) -> str:
    """A key in the JSON of Spanner's API, as text."""
    return json.dumps(cells)
