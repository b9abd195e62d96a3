"""Columns that a table has got, and their values in the rows that its copy has already: a constant,
or what Spanner has at the end of the window, read with the keys alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from watcher.captures.key_ranges import KeyRangeCapture
from watcher.captures.poll import PollCapture
from watcher.replica.copies import CopyState, Dropped, EvolvingCopy, StoredCopy
from watcher.replica.keys.hashes import Words, draw_points, hash_keys
from watcher.replica.rows import compare_columns, copy_schema
from watcher.tables.added import read_column_steps
from watcher.tables.constants import Constant

SCAN_BYTES_MAX = 512 * 1024 * 1024
"""So much of Arrow's columns is held of a scan, with 16 bytes a row for its key."""


TakesColumns = Callable[[Sequence[str], Sequence[str], bool], bool]
"""As ``EvolvingCopy.takes_columns``."""


def find_rule(copy: StoredCopy) -> TakesColumns | None:
    """What says which columns a copy can get and lose; None: it is loaded."""
    return copy.takes_columns if isinstance(copy, EvolvingCopy) else None


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """How a copy follows a table whose columns have changed. ``added`` are the columns that it
    gets. ``constants`` are their values in the rows that the copy has, but for NULL; those of
    ``scanned`` are Spanner's."""

    added: frozenset[str] = frozenset()
    constants: Mapping[str, pa.Scalar] = field(default_factory=dict)
    scanned: tuple[str, ...] = ()

    @property
    def has_values(self) -> bool:
        """Whether rows of the copy get values."""
        return bool(self.constants or self.scanned)


def plan_columns(
    takes_columns: TakesColumns | None,
    capture: PollCapture,
    state: CopyState,
    start: int,
    end: int,
    dropped: Dropped,
) -> ColumnPlan | None:
    """How a copy gets the columns of its table without a load, if ``takes_columns``: where it lacks
    nothing but columns that the table has got in the window, and has nothing more than columns that
    the table has lost, unless it is to be loaded then. None: it is loaded. A part of a table loses
    none, and is not scanned."""
    changes = compare_columns(state.schema, capture)
    table = capture.table
    whole = state.progress is None
    alike = not (changes.missing or changes.gone)
    if alike or changes.other or (changes.gone and not (whole and dropped != "load")):
        return None
    if state.end > end or takes_columns is None:
        return None
    views = [mask.column for mask in table.masks]
    views += [name for name, _ in table.row_filter.columns] if table.row_filter else []
    if set(views) & set(changes.missing):
        return None
    # Between the copy's end and the start nothing may have happened to the table either. After a
    # crash the copy may be newer than the start: it has the columns of its end.
    queries = capture.queries
    steps = read_column_steps(queries.address, table.name, state.end, end, table.dialect)
    if not steps.explain(changes.missing, changes.gone):
        return None
    later = read_column_steps(queries.address, table.name, start, end, table.dialect)
    if not later.explain(changes.missing, ()):
        return None
    plan = choose_values(capture, {name: steps.added[name] for name in changes.missing})
    if plan.scanned and not (whole and table.primary_key):
        return None
    takes = takes_columns(changes.missing, changes.gone, plan.has_values)
    return plan if takes else None


def choose_values(capture: PollCapture, added: Mapping[str, Constant | None]) -> ColumnPlan:
    """Which values new columns have in the rows of the copy, by what their statements say."""
    constants, scanned = {}, []
    for name, constant in added.items():
        scalar = None if constant is None else make_scalar(capture, name, constant.value)
        if scalar is None:
            scanned.append(name)
        elif scalar.is_valid:
            constants[name] = scalar
    return ColumnPlan(frozenset(added), constants, tuple(scanned))


def make_scalar(capture: PollCapture, name: str, value: object) -> pa.Scalar | None:
    """A constant as the copy has it; None where that is written in another way than Spanner's."""
    try:
        return pa.scalar(value, capture.schema.field(name).type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return None


def read_new_values(capture: PollCapture, plan: ColumnPlan, end: int) -> FilledColumns:
    """The values of new columns at the end of a window. Raises VersionExpiredError,
    TooManyValuesError."""
    scan = scan_columns(capture, plan.scanned, end) if plan.scanned else None
    return FilledColumns(plan.constants, scan)


def scan_columns(capture: PollCapture, names: Sequence[str], at: int) -> KeyedValues:
    """The values of some columns at a timestamp, by the keys of their rows."""
    values = KeyedValues(copy_types(capture, capture.table.primary_key), copy_types(capture, names))
    for rows, _, _ in narrow_capture(capture, names).read_after(at, None, 0):
        values.add(rows.batch)
    values.finish()
    return values


def narrow_capture(capture: PollCapture, names: Sequence[str]) -> KeyRangeCapture:
    """Reads some columns of all rows, with the primary key."""
    kept = capture.table.keep_columns({*capture.table.primary_key, *names})
    table = replace(kept, change_sets=None, row_filter=None, masks=())
    return KeyRangeCapture(replace(capture, table=table, stamps=()))


def copy_types(capture: PollCapture, names: Sequence[str]) -> pa.Schema:
    """Columns of a copy."""
    schema = copy_schema(capture)
    return pa.schema([schema.field(name) for name in names])


class TooManyValuesError(Exception):
    """The values of a scan are too many to be held."""


class KeyedValues:
    """Values by the keys of their rows, which are held as hashes of 122 bits."""

    def __init__(self, key: pa.Schema, columns: pa.Schema) -> None:
        self._key = key
        self._columns = columns
        self._points = draw_points()
        self._hashes: list[tuple[Words, Words]] = []
        self._batches: list[pa.RecordBatch] = []
        self._size = 0
        self._first = self._second = np.empty(0, np.uint64)
        self._values = columns.empty_table()

    def add(self, rows: pa.RecordBatch) -> None:
        """More rows. Raises TooManyValuesError."""
        self._hashes.append(hash_keys(select_columns(rows, self._key), self._points))
        self._batches.append(select_columns(rows, self._columns))
        self._size += self._batches[-1].nbytes + 16 * rows.num_rows
        if self._size > SCAN_BYTES_MAX:
            names = ", ".join(self._columns.names)
            raise TooManyValuesError(f"the values of {names} have more than {SCAN_BYTES_MAX} bytes")

    def finish(self) -> None:
        """All rows were added."""
        if not self._hashes:
            return
        first, second = (np.concatenate(parts) for parts in zip(*self._hashes, strict=True))
        order = np.lexsort((second, first))
        self._first, self._second = first[order], second[order]
        self._values = pa.Table.from_batches(self._batches, self._columns).take(pa.array(order))
        self._hashes, self._batches = [], []

    def find(self, rows: pa.RecordBatch) -> pa.Table:
        """The values of rows with these keys; NULL where there is no such row."""
        first, second = hash_keys(select_columns(rows, self._key), self._points)
        indexes = np.searchsorted(self._first, first)
        found = np.full(len(first), -1)
        left = np.arange(len(first))
        while len(left):
            inside = indexes[left] < len(self._first)
            left = left[inside]
            left = left[self._first[indexes[left]] == first[left]]
            same = self._second[indexes[left]] == second[left]
            found[left[same]] = indexes[left[same]]
            left = left[~same]
            indexes[left] += 1
        return self._values.take(pa.array(found, mask=found < 0))


class FilledColumns:
    """The ``NewValues`` of some columns."""

    def __init__(self, constants: Mapping[str, pa.Scalar], scan: KeyedValues | None) -> None:
        self._constants = constants
        self._scan = scan

    def fill(self, rows: pa.RecordBatch, names: Collection[str] | None = None) -> pa.RecordBatch:
        """As ``NewValues.fill``; ``names``: only these columns."""
        values = {n: v for n, v in self._list_values(rows) if names is None or n in names}
        columns = [
            rows.column(field.name)
            if field.name not in values
            else values[field.name].cast(field.type)
            for field in rows.schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)

    def _list_values(self, rows: pa.RecordBatch) -> Iterator[tuple[str, pa.Array]]:
        for name, scalar in self._constants.items():
            yield name, pa.repeat(scalar, rows.num_rows)
        if self._scan is not None:
            found = self._scan.find(rows)
            for name in found.column_names:
                yield name, found.column(name).combine_chunks()


def select_columns(rows: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """Some columns of rows, with these types."""
    arrays = [rows.column(field.name).cast(field.type) for field in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)
