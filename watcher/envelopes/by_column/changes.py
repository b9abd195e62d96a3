"""What envelopes need of the changes of one table, by column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from watcher.model.change import Shape
from watcher.model.value_types import is_float
from watcher.model.window import Window

CellColumns = dict[str, pa.Array]
"""JSON texts of cells, by the names of their columns; no text where a change lacks the cell."""


class ChangeColumns(Protocol):
    """The columns of ``watcher.model.change.Change``; cells are JSON texts.

    All are of one kind. ``key`` is in the order of the primary key, ``old`` in that of the capture.
    ``get_origin`` gives what only a change stream fills.
    """

    @property
    def rows(self) -> int: ...
    @property
    def shape(self) -> Shape: ...
    @property
    def window(self) -> Window: ...
    @property
    def ids(self) -> pa.Array: ...
    @property
    def commits(self) -> pa.Array: ...
    @property
    def shards(self) -> pa.Array: ...
    @property
    def key(self) -> CellColumns: ...
    @property
    def new(self) -> CellColumns: ...
    @property
    def old(self) -> CellColumns: ...
    def get_origin(self, attribute: str) -> pa.Array: ...


def merge_zeros(shape: Shape, cells: CellColumns) -> CellColumns:
    """The cells of a key: -0.0 is written as 0.0, because both are the same key to Spanner."""
    floats = {name for name, type_ in shape.columns if is_float(type_)}
    for name in floats & cells.keys():
        negative = pc.equal(cells[name], "-0.0")
        cells[name] = pc.if_else(negative, "0.0", cells[name])
    return cells


def merge_cells(shape: Shape, *layers: Mapping[str, pa.Array]) -> CellColumns:
    """Rows in the order of the table's columns; a layer's cells come before those of later ones."""
    merged: CellColumns = {}
    for name, _ in shape.columns:
        cells = [layer[name] for layer in layers if name in layer]
        if cells:
            merged[name] = cells[0] if len(cells) == 1 else pc.coalesce(*cells)
    return merged
