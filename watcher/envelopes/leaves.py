"""The values that differ by change, each once: of one change, and by column. Formats are trees of
constant texts and of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watcher.envelopes.by_column.changes import ChangeColumns, merge_cells
from watcher.envelopes.kinds import Layer, Layers
from watcher.envelopes.values import CellStyle, quote
from watcher.model.change import Change, Shape, Value
from watcher.model.errors import EnvelopeError
from watcher.model.window import Window
from watcher.spanner.json_columns.objects import NULL, list_cells, list_pieces
from watcher.spanner.json_columns.scalars import format_timestamps, quote_strings, wrap
from watcher.spanner.results.columns import TIMESTAMP
from watcher.spanner.timestamps import format_timestamp

MILLISECONDS_LENGTH = len("YYYY-MM-DDTHH:MM:SS.fff")
Texts: TypeAlias = pa.Array | str
"""JSON texts: one a change, or one for all of a batch."""


class Leaf(Protocol):
    """A JSON value that differs by change."""

    def write(self, change: Change) -> str:
        """The JSON text of a change."""
        ...

    def list_columns(self, changes: ChangeColumns) -> Iterable[Texts]:
        """The texts that make up those of a batch, one after another."""
        ...


@dataclass(frozen=True, slots=True)
class Field:
    """A leaf of one field: how it is written of a change, and by column."""

    of_change: Callable[[Change], str]
    of_columns: Callable[[ChangeColumns], Texts]

    def write(self, change: Change) -> str:
        """As ``Leaf.write``."""
        return self.of_change(change)

    def list_columns(self, changes: ChangeColumns) -> Iterable[Texts]:
        """As ``Leaf.list_columns``."""
        return (self.of_columns(changes),)


def make_window_field(write: Callable[[Window], str]) -> Field:
    """What all changes of a batch have alike."""
    return Field(lambda change: write(change.window), lambda changes: write(changes.window))


def make_commit_field(write: Callable[[int], str], render: Callable[[pa.Array], pa.Array]) -> Field:
    """Of the commit timestamp, in microseconds since 1970."""
    return Field(
        lambda change: write(change.commit_timestamp), lambda changes: render(changes.commits)
    )


def make_origin_field(attribute: str) -> Field:
    """An attribute of the origin, as it is; of kinds that are ``streamed``."""
    return Field(
        lambda change: write_scalar(getattr(change.origin, attribute)),
        lambda changes: render_scalar(changes.batch.column(attribute)),
    )


def write_scalar(value: str | int | None) -> str:
    """A text, an integer or a boolean as JSON."""
    if isinstance(value, str):
        return quote(value)
    return NULL if value is None else str(value).lower()


def render_scalar(column: pa.Array) -> pa.Array:
    """As ``write_scalar``."""
    is_text = pa.types.is_string(column.type)
    return pc.fill_null(quote_strings(column) if is_text else column.cast(pa.string()), NULL)


def divide(micros: pa.Array) -> pa.Array:
    """Microseconds as milliseconds, rounded down also before 1970."""
    return pa.array(micros.to_numpy() // 1000)


def print_nanoseconds(micros: pa.Array) -> pa.Array:
    """Microseconds as nanoseconds, which may be more than 64 bits hold."""
    return pc.if_else(pc.equal(micros, 0), "0", wrap(render_scalar(micros), "", "000"))


def write_time(micros: int) -> str:
    """RFC 3339 with microseconds."""
    return f'"{format_timestamp(micros)}"'


def write_milliseconds(micros: int) -> str:
    """RFC 3339 with milliseconds."""
    return f'"{format_timestamp(micros)[:-4]}Z"'


def render_time(micros: pa.Array) -> pa.Array:
    """As ``write_time``."""
    return wrap(format_timestamps(micros.cast(TIMESTAMP)), '"', '"')


def render_milliseconds(micros: pa.Array) -> pa.Array:
    """As ``write_milliseconds``."""
    texts = format_timestamps(micros.cast(TIMESTAMP))
    return wrap(pc.utf8_slice_codeunits(texts, 0, MILLISECONDS_LENGTH), '"', 'Z"')


ID = Field(lambda change: quote(change.id), lambda changes: quote_strings(changes.ids))
SHARD = Field(
    lambda change: write_scalar(change.shard_id), lambda changes: render_scalar(changes.shards)
)
COMMIT_TIME = make_commit_field(write_time, render_time)
COMMIT_MILLISECONDS = make_commit_field(write_milliseconds, render_milliseconds)
COMMIT_MS = make_commit_field(lambda at: str(at // 1000), lambda at: render_scalar(divide(at)))
COMMIT_US = make_commit_field(str, render_scalar)
COMMIT_NS = make_commit_field(lambda at: str(at * 1000), print_nanoseconds)
WINDOW_START_TIME = make_window_field(lambda window: write_time(window.start))
WINDOW_START_MS = make_window_field(lambda window: str(window.start // 1000))
WINDOW_END_TIME = make_window_field(lambda window: write_time(window.end))
WINDOW_END_MILLISECONDS = make_window_field(lambda window: write_milliseconds(window.end))
WINDOW_END_MS = make_window_field(lambda window: str(window.end // 1000))
WINDOW_END_US = make_window_field(lambda window: str(window.end))
WINDOW_END_NS = make_window_field(lambda window: str(window.end * 1000))
TRANSACTION_ID = make_origin_field("transaction_id")
RECORD_SEQUENCE = make_origin_field("record_sequence")
MOD_NUMBER = make_origin_field("mod_number")
TRANSACTION_TAG = make_origin_field("transaction_tag")
PARTITION_TOKEN = make_origin_field("partition_token")
RECORDS = make_origin_field("records_in_transaction")
PARTITIONS = make_origin_field("partitions_in_transaction")
SYSTEM = make_origin_field("system_transaction")
LAST = make_origin_field("last_in_transaction_in_partition")


@dataclass(frozen=True)
class Cells:
    """A row as an object, or as the array of its cells: in the order of the table's columns, or of
    the layer's own where there is one (``own_order``: the key in the order of the primary key)."""

    shape: Shape
    layers: Layers
    style: CellStyle
    own_order: bool = False
    as_array: bool = False

    @cached_property
    def _writers(self) -> dict[str, tuple[str, Callable[[Value], str]]]:
        """What stands before each cell, and the function that writes it."""
        colon = self.style.punctuation.colon
        return {
            name: (
                "" if self.as_array else f"{quote(name)}{colon}",
                self.style.choose_writer(type_),
            )
            for name, type_ in self.shape.columns
        }

    def write(self, change: Change) -> str:
        """As ``Leaf.write``. Raises EnvelopeError for a column that the table does not have."""
        row, writers = read_row(change, self.layers), self._writers
        names = row if self.own_order else writers
        known = [(writers[name], row[name]) for name in names if name in row and name in writers]
        cells = [before + write(value) for (before, write), value in known]
        if len(cells) < len(row) and self.style.checked:
            unknown = ", ".join(sorted(row.keys() - writers.keys()))
            raise EnvelopeError(
                f"a change of table {self.shape.table} has unknown columns: {unknown}"
            )
        joined = self.style.punctuation.comma.join(cells)
        return f"[{joined}]" if self.as_array else f"{{{joined}}}"

    def list_columns(self, changes: ChangeColumns) -> Iterable[Texts]:
        """As ``Leaf.list_columns``."""
        layers = map(changes.get_cells, self.layers)
        cells = next(layers) if self.own_order else merge_cells(self.shape, *layers)
        if self.as_array:
            return list_pieces(tuple(cells.values()), self.style.punctuation)
        return list_cells(cells, self.style.punctuation)


def describe_key(shape: Shape, style: CellStyle, as_array: bool = False) -> Cells:
    """The key as an object, or as the array of its cells, in the order of the primary key."""
    return Cells(shape, (Layer.KEY,), style, own_order=True, as_array=as_array)


def read_row(change: Change, layers: Layers) -> Mapping[str, Value]:
    """The values of a row."""
    if len(layers) == 1:
        return get_values(change, layers[0])
    row: dict[str, Value] = {}
    for layer in reversed(layers):
        row.update(get_values(change, layer))
    return row


def get_values(change: Change, layer: Layer) -> Mapping[str, Value]:
    """The values of a layer."""
    if layer is Layer.KEY:
        return change.key
    new, old = change.new_values or {}, change.old_values or {}
    if layer is Layer.NEW:
        return new
    return old if layer is Layer.OLD else {name: new[name] for name in old if name in new}


@dataclass(frozen=True, slots=True)
class ByNames:
    """A text that depends on the set of columns that a change has in some way."""

    write_names: Callable[[frozenset[str]], str]
    find_names: Callable[[Change], frozenset[str]]
    find_masks: Callable[[ChangeColumns], Mapping[str, pa.Array]]

    def write(self, change: Change) -> str:
        """As ``Leaf.write``."""
        return self.write_names(self.find_names(change))

    def list_columns(self, changes: ChangeColumns) -> Iterable[Texts]:
        """As ``Leaf.list_columns``."""
        sets, which = group_names(self.find_masks(changes), changes.rows)
        texts = [self.write_names(names) for names in sets]
        return texts if len(texts) == 1 else (pa.array(texts).take(which),)


def group_names(
    masks: Mapping[str, pa.Array], rows: int
) -> tuple[Sequence[frozenset[str]], pa.Array]:
    """The distinct sets of names whose masks are true in a row, and which of them each row has."""
    flags = np.zeros((rows, len(masks)), np.bool_)
    for index, mask in enumerate(masks.values()):
        flags[:, index] = mask.to_numpy(zero_copy_only=False)
    if (flags == flags[:1]).all():
        distinct, which = flags[:1], np.zeros(rows, np.int64)
    else:
        distinct, which = np.unique(flags, axis=0, return_inverse=True)
    return [frozenset(compress(masks, row)) for row in distinct], pa.array(which.reshape(-1))
