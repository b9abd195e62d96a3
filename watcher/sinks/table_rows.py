"""What changed in a window -> for each table the newest version of each row, as Arrow columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures import TableRows
from watcher.captures.changes import stamp_rows
from watcher.model.change import Change, Operation, Shape, Value
from watcher.model.errors import DeliveryError
from watcher.replica.copies import DELETED_COLUMN, STAMP_COLUMN
from watcher.replica.rows import arrange_rows, reduce_changes
from watcher.spanner.cell_columns import build_column
from watcher.spanner.key_values import identify_column
from watcher.spanner.results.columns import TIMESTAMP, build_schema, convert_timestamps
from watcher.spanner.results.supported_types import Nanoseconds


@dataclass(frozen=True, slots=True)
class NewestRows:
    """The newest version of each row of a table that changed, with ``STAMP_COLUMN`` and
    ``DELETED_COLUMN``. ``types`` are those of the columns, whose order it has."""

    table: str
    key: tuple[str, ...]
    types: Mapping[str, Type]
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class Piece:
    """Some of the versions, in their order."""

    key: tuple[str, ...]
    types: Mapping[str, Type]
    rows: pa.Table


class HeldWindow:
    """What was taken of a window, which ``max_rows`` bounds."""

    def __init__(self, nanoseconds: Nanoseconds) -> None:
        self._nanoseconds = nanoseconds
        self._pieces: dict[str, list[Piece]] = defaultdict(list)
        self._changes: list[Change] = []

    def __bool__(self) -> bool:
        return bool(self._pieces or self._changes)

    def add_rows(self, rows: TableRows) -> None:
        """Takes a batch. A row that was never stamped counts as of its snapshot's timestamp."""
        self._arrange_changes()
        table, arranged = rows.table, arrange_rows(stamp_rows(rows))
        self._pieces[table.name].append(Piece(table.primary_key, dict(table.columns), arranged))

    def add_change(self, change: Change) -> None:
        """Takes a change."""
        self._changes.append(change)

    def take(self) -> Iterator[NewestRows]:
        """The newest rows of each table."""
        self._arrange_changes()
        for table, pieces in self._pieces.items():
            types = {name: each for piece in pieces for name, each in piece.types.items()}
            parts = unify([piece.rows for piece in pieces], table)
            key = pieces[-1].key
            yield NewestRows(table, key, types, normalize_keys(reduce_changes(parts, key), key))

    def _arrange_changes(self) -> None:
        """Changes of one table with the same columns that follow one another become a piece."""
        changes, self._changes = self._changes, []
        tables: dict[str, list[Change]] = defaultdict(list)
        for change in changes:
            tables[change.table].append(change)
        for table, those in tables.items():
            for shape, group in group_by_shape(those):
                rows = arrange_changes(group, shape, self._nanoseconds)
                piece = Piece(shape.primary_key, dict(shape.columns), rows)
                self._pieces[table].append(piece)


def group_by_shape(changes: Sequence[Change]) -> Iterator[tuple[Shape, list[Change]]]:
    """The changes of a table in their order, those together that follow one another and have the
    same columns."""
    pairs = zip(choose_shapes(changes), changes, strict=True)
    for shape, group in groupby(pairs, lambda pair: pair[0]):
        yield shape, [change for _, change in group]


def choose_shapes(changes: Sequence[Change]) -> list[Shape]:
    """The columns of each change of a table. A delete has the key alone: the others are those of
    another change, because a stream may describe them in another way."""
    whole = next((each.shape for each in changes if each.operation is not Operation.DELETE), None)
    return [
        (whole or keep_key(each.shape)) if each.operation is Operation.DELETE else each.shape
        for each in changes
    ]


def keep_key(shape: Shape) -> Shape:
    """The columns of the key alone."""
    key = tuple((name, type_) for name, type_ in shape.columns if name in shape.primary_key)
    return Shape(shape.table, key, shape.primary_key)


def arrange_changes(
    changes: Sequence[Change], shape: Shape, nanoseconds: Nanoseconds = Nanoseconds.TRUNCATE
) -> pa.Table:
    """Changes of one shape as rows."""
    schema = build_schema(shape.columns, nanoseconds, shape.primary_key)
    cells = [{**change.key, **(change.new_values or {})} for change in changes]
    columns = [
        convert_cells([row.get(name) for row in cells], type_, schema.field(name).type, nanoseconds)
        for name, type_ in shape.columns
    ]
    stamps = pa.array([change.commit_timestamp for change in changes], pa.int64())
    deleted = pa.array([change.operation is Operation.DELETE for change in changes], pa.bool_())
    fields = [*schema, pa.field(STAMP_COLUMN, TIMESTAMP), pa.field(DELETED_COLUMN, pa.bool_())]
    return pa.Table.from_arrays(
        [*columns, stamps.cast(TIMESTAMP), deleted], schema=pa.schema(fields)
    )


def convert_cells(
    values: Sequence[Value], type_: Type, target: pa.DataType, nanoseconds: Nanoseconds
) -> pa.Array:
    """Cells as a column; of TIMESTAMPs as polled ones are kept."""
    if type_.code is TypeCode.TIMESTAMP:
        kept = Nanoseconds.STRING if pa.types.is_string(target) else nanoseconds
        return convert_timestamps(pa.array(values, pa.string()), kept, of_key=False)
    return build_column(values, type_, target)


def unify(parts: Sequence[pa.Table], name: str) -> list[pa.Table]:
    """Rows of a table with all columns of each part: one that came within the window is NULL
    before. Raises DeliveryError where a column has changed its type."""
    try:
        schema = pa.unify_schemas([part.schema for part in parts])
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise DeliveryError(
            f"a column of {name} has changed its type within a window ({error}): leave it out"
            " (exclude_columns), or drop the table that has its rows and start a consumer of"
            " another name"
        ) from error
    return [fill(part, schema) for part in parts]


def fill(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table with the columns of a schema."""
    columns = [
        table.column(field.name)
        if field.name in table.schema.names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def normalize_keys(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows with one form of each key: -0.0 is 0.0."""
    for name in key:
        index = rows.schema.get_field_index(name)
        column = rows.column(index)
        rows = rows.set_column(index, rows.schema.field(index), identify_column(column))
    return rows
