"""The values that a stream's capture type leaves out, read at the commit timestamp."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Value

from watcher.captures.change_stream.record_values import DataRecord, StreamMod
from watcher.change import Operation, Shape
from watcher.errors import SchemaChangedError
from watcher.spanner.queries import QueryClient
from watcher.spanner.results.wire import collect_rows

JsonRow = dict[str, object]
"""Columns of a row in the JSON of Spanner's API."""


@dataclass(frozen=True, slots=True)
class WholeRows:
    """The shapes of whole rows, by table. A read costs one call a record."""

    queries: QueryClient
    shapes: tuple[Shape, ...]

    def complete(self, record: DataRecord) -> DataRecord:
        """The record with every column. Raises VersionExpiredError when the row's version is gone,
        SchemaChangedError when its table is not known.

        Spanner does not say that a transaction has one record a row. What a record says of a column
        is kept, so that the first of two updates does not look like the second. A row that the same
        transaction deleted again is completed from what it was before; one that was not there then
        either keeps what its record says, and is marked with the record's own capture type.
        """
        if record.operation is Operation.DELETE:
            return replace(record, captured=record.captured.whole_row_form)
        shape = next((s for s in self.shapes if s.table == record.shape.table), None)
        if shape is None:
            raise SchemaChangedError(
                f"table {record.shape.table} was created after the watcher started"
            )
        if record.captured.whole_row and set(shape.columns) <= set(record.shape.columns):
            return record
        rows = self._read_rows(shape, record.mods, record.commit_timestamp)
        gone = [mod for mod in record.mods if encode_key(mod.key, shape) not in rows]
        if gone:
            rows |= self._read_rows(shape, gone, record.commit_timestamp - 1)
        return replace(
            record,
            shape=add_lost_columns(shape, record.shape),
            mods=tuple(
                complete_mod(mod, rows.get(encode_key(mod.key, shape)), record)
                for mod in record.mods
            ),
            captured=record.captured.whole_row_form,
        )

    def _read_rows(self, shape: Shape, mods: Sequence[StreamMod], at: int) -> dict[str, JsonRow]:
        """The other columns of the rows that exist at a timestamp, by key."""
        names = [name for name, _ in shape.columns]
        keys = [list(json.loads(encode_key(mod.key, shape))) for mod in mods]
        results = self.queries.stream.read_keys(shape.table, names, keys, at)
        rows: dict[str, JsonRow] = {}
        width = len(names)
        for values in collect_rows(results, width):
            for first in range(0, len(values), width):
                cells = [MessageToDict(Value.FromString(v)) for v in values[first : first + width]]
                row: JsonRow = dict(zip(names, cells, strict=True))
                key = dump_key([row.pop(name) for name in shape.primary_key])
                rows[key] = row
        return rows


def complete_mod(mod: StreamMod, row: JsonRow | None, record: DataRecord) -> StreamMod:
    """A mod with the columns of its row that it leaves out."""
    if row is not None:
        return replace(mod, new=json.dumps(row | json.loads(mod.new or "{}")))
    return replace(mod, captured=record.captured)


def add_lost_columns(shape: Shape, recorded: Shape) -> Shape:
    """A shape with the columns of a record that its table has lost since."""
    names = {name for name, _ in shape.columns}
    lost = tuple(column for column in recorded.columns if column[0] not in names)
    return replace(shape, columns=shape.columns + lost)


def encode_key(text: str, shape: Shape) -> str:
    """A mod's key in the order of the primary key."""
    values = json.loads(text)
    return dump_key([values[name] for name in shape.primary_key])


def dump_key(cells: Sequence[object]) -> str:
    """A key in the JSON of Spanner's API, as text."""
    return json.dumps(cells)
