"""What formats need of changes, by column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from watcher.envelopes.kinds import Kind, Layer
from watcher.model.change import Shape
from watcher.model.value_types import is_float
from watcher.model.window import Window

CellColumns = dict[str, pa.Array]
"""JSON texts of cells, by the names of their columns; no text where a change lacks the cell."""


@dataclass(frozen=True)
class ChangeColumns:
    """Changes of one shape and kind. ``commits`` are in microseconds since 1970; ``origin`` has the
    columns that only a change stream fills. ``indexes`` says where they are in their batch; None if
    they are all of it. What costs much is made when it is asked for: ids, and the cells of the
    layers KEY, in the order of the primary key, NEW, and OLD, in that of the capture."""

    kind: Kind
    shape: Shape
    window: Window
    commits: pa.Array
    shards: pa.Array
    origin: pa.RecordBatch | None
    indexes: NDArray[np.int64] | None
    make_ids: Callable[[], pa.Array]
    render: Callable[[Layer], CellColumns]

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.commits)

    @cached_property
    def ids(self) -> pa.Array:
        """Their ids."""
        return self.make_ids()

    @cached_property
    def _cells(self) -> dict[Layer, CellColumns]:
        return {}

    def get_cells(self, layer: Layer) -> CellColumns:
        """The cells of a layer."""
        if layer not in self._cells:
            make = self._select_changed if layer is Layer.CHANGED else self.render
            self._cells[layer] = make(layer)
        return self._cells[layer]

    def _select_changed(self, _: Layer) -> CellColumns:
        new, old = self.get_cells(Layer.NEW), self.get_cells(Layer.OLD)
        return {
            name: pc.if_else(old[name].is_valid(), cells, None)
            for name, cells in new.items()
            if name in old
        }


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
