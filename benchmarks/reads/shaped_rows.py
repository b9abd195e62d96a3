"""Batches as captures hand them to Spark, without a server: what shaping is measured with."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import shake_128
from typing import Literal

import pyarrow as pa

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN, StreamRows, TableRows
from watcher.captures.change_stream.record_values import DataRecord, StreamMod
from watcher.captures.change_stream.rows import ChangeBuffer
from watcher.model.change import Operation, Shape, ValueCapture
from watcher.model.window import Window
from watcher.spanner.results.columns import TIMESTAMP, build_schema
from watcher.tables.values import WatchedTable

DATABASE = "projects/p1/instances/i1/databases/d1"
START = datetime(2026, 1, 31, 12, tzinfo=UTC)
START_MICROS = 1_769_860_800_000_000
WINDOW = Window(START_MICROS, START_MICROS + 60_000_000)
COLUMNS: tuple[tuple[str, Type], ...] = (
    ("Id", Type(TypeCode.INT64)),
    ("Name", Type(TypeCode.STRING)),
    ("City", Type(TypeCode.STRING)),
    ("Price", Type(TypeCode.NUMERIC)),
    ("Score", Type(TypeCode.FLOAT64)),
    ("Seen", Type(TypeCode.TIMESTAMP)),
    ("Notes", Type(TypeCode.STRING)),
)
TABLE = WatchedTable("Singers", COLUMNS, ("Id",), "UpdatedAt", None, None, None)
NOTES_LENGTH = 330
PHOTO_LENGTH = 200
PHOTO_NOTES_LENGTH = 150
PHOTO_COLUMNS = (*COLUMNS[:5], COLUMNS[6], ("Photo", Type(TypeCode.BYTES)))
RECORD_MODS = 10
"""Rows of one table that one transaction changes."""


def make_row(number: int) -> tuple[object, ...]:
    """A row of about 430 bytes, as Arrow has it."""
    return (
        number * 7_919,
        f"a name of some length {number}",
        f"city {number % 100}",
        Decimal(number) + Decimal("0.25"),
        number / 7,
        START + timedelta(microseconds=number),
        f"{number} ".ljust(NOTES_LENGTH, "x"),
    )


def make_photo_row(number: int) -> tuple[object, ...]:
    """A row of about 450 bytes, of which 200 are BYTES that cannot be compressed, in base64, as
    the client takes them."""
    photo = b64encode(shake_128(str(number).encode()).digest(PHOTO_LENGTH))
    return (*make_row(number)[:5], f"{number} ".ljust(PHOTO_NOTES_LENGTH, "x"), photo)


@dataclass(frozen=True, slots=True)
class RowShape:
    """The columns of a table, and its rows by number, as the client takes them."""

    columns: tuple[tuple[str, Type], ...]
    make_row: Callable[[int], tuple[object, ...]]


ShapeName = Literal["text", "bytes"]
SHAPES: dict[ShapeName, RowShape] = {
    "text": RowShape(COLUMNS, make_row),
    "bytes": RowShape(PHOTO_COLUMNS, make_photo_row),
}
"""Tables of seven columns, 430 and 450 bytes: one has a long text, one a BYTES(200)."""


def make_polled_rows(count: int) -> TableRows:
    """Rows of one table, polled."""
    rows = [make_row(number) for number in range(count)]
    schema = build_schema(COLUMNS)
    arrays = [
        pa.array([row[index] for row in rows], field.type) for index, field in enumerate(schema)
    ]
    commits = pa.array(range(START_MICROS, START_MICROS + count), pa.int64()).cast(TIMESTAMP)
    stamps = [(COMMIT_TIMESTAMP_COLUMN, TIMESTAMP), (SHARD_ID_COLUMN, pa.int64())]
    batch = pa.RecordBatch.from_arrays(
        [*arrays, commits, pa.nulls(count, pa.int64())], schema=pa.schema([*schema, *stamps])
    )
    return TableRows(TABLE, WINDOW, batch)


def make_streamed_rows(count: int, captured: ValueCapture) -> StreamRows:
    """Changes of one table, a third of each kind, from a change stream."""
    operations = (Operation.INSERT, Operation.UPDATE, Operation.DELETE)
    buffer = ChangeBuffer(WINDOW)
    for number, first in enumerate(range(0, count, RECORD_MODS)):
        operation = operations[number % len(operations)]
        record = DataRecord(
            commit_timestamp=START_MICROS + first,
            sequence="00000000",
            transaction_id=f"transaction-{number}",
            last_in_partition=True,
            shape=Shape(TABLE.name, COLUMNS, TABLE.primary_key),
            mods=tuple(
                make_mod(each, operation, captured)
                for each in range(first, min(first + RECORD_MODS, count))
            ),
            operation=operation,
            captured=captured,
            records_in_transaction=1,
            partitions_in_transaction=1,
            tag="",
            system=False,
        )
        buffer.add(record, "token")
    return buffer.take()


def make_mod(number: int, operation: Operation, captured: ValueCapture) -> StreamMod:
    """A changed row, in JSON as Spanner sends it; an update has changed one column."""
    names = [name for name, _ in COLUMNS]
    key, *values = [send_cell(cell) for cell in make_row(number)]
    row = dict(zip(names[1:], values, strict=True))
    old = {"INSERT": {}, "UPDATE": {"City": "another city"}, "DELETE": row}[str(operation)]
    return StreamMod(
        json.dumps({names[0]: key}, separators=(",", ":")),
        None if operation is Operation.DELETE else json.dumps(row, separators=(",", ":")),
        json.dumps(old, separators=(",", ":")) if captured.keeps_old else None,
    )


def send_cell(cell: object) -> object:
    """A cell as a value of JSON."""
    if isinstance(cell, datetime):
        return cell.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
    return str(cell) if isinstance(cell, int | Decimal) else cell
