"""A set of primary keys, and which rows have one of them."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spanner_schema.model.column_types import TypeCode
from watcher.replica.keys.order import KeyOrder
from watcher.spanner.key_values import NULL, Parts


class KeySet:
    """Some keys of a table."""

    def __init__(self, order: KeyOrder, keys: Collection[Parts]) -> None:
        self._order = order
        self.keys = frozenset(keys)
        self._numbers = self._read_numbers()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that ``find`` looks at."""
        return self._order.names

    def find(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which rows have one of the keys."""
        if self._numbers is not None and batch.column(self._order.names[0]).null_count == 0:
            return np.isin(batch.column(self._order.names[0]).to_numpy(), self._numbers)
        there = (key in self.keys for key in self._order.read_batch(batch))
        return np.fromiter(there, np.bool_, batch.num_rows)

    def _read_numbers(self) -> NDArray[np.int64] | None:
        """Keys of one INT64, which numpy finds faster."""
        columns = self._order.columns
        if len(columns) != 1 or columns[0].type.code is not TypeCode.INT64:
            return None
        return np.array([key[0][1] for key in self.keys if key[0] != NULL], np.int64)
