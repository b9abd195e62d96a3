"""Rows in the layout of their copy: of each partition together, and sorted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from watcher.replica.layout import PLAIN, Layout
from watcher.replica.writing.new_files import FileMaker, NewFiles, Partition, group_rows


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How the rows of a copy become files: ``values`` makes of rows those of their partitions, an
    array for each field, and ``layout`` has the rest."""

    layout: Layout = PLAIN
    values: Callable[[pa.Table], Sequence[pa.Array]] = field(default=lambda _: ())
    left_out: frozenset[str] = frozenset()
    """Columns that files do not have: the values of their partition say them."""
    name_folder: Callable[[Partition], str] = field(default=lambda _: "")
    """The folder of a partition, with a slash at its end; empty: that of the table."""

    def choose_written(self, schema: pa.Schema) -> pa.Schema:
        """The columns of files."""
        return pa.schema([each for each in schema if each.name not in self.left_out])

    def arrange(self, rows: pa.Table) -> Iterator[tuple[Partition, pa.Table, NDArray[np.int64]]]:
        """The rows of each partition in their order, and their numbers in ``rows``, which are not
        copied if they are not arranged."""
        if not rows.num_rows:
            return
        if not self.layout.is_arranged:
            yield (), rows, np.arange(rows.num_rows)
            return
        for partition, numbers in self._number_rows(rows):
            yield partition, rows.take(pa.array(numbers)), numbers

    def _number_rows(self, rows: pa.Table) -> Iterator[tuple[Partition, NDArray[np.int64]]]:
        """The numbers of the rows of each partition, in their order."""
        order = sort_rows(rows, self.layout.sort_by)
        values = self.values(rows)
        if not values:
            yield (), order
            return
        encoded = [each.dictionary_encode(null_encoding="encode") for each in values]
        codes = np.stack([np.asarray(each.indices, np.int64) for each in encoded], axis=1)[order]
        unique, numbers = np.unique(codes, axis=0, return_inverse=True)
        by_part = np.argsort(numbers.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(numbers.reshape(-1), minlength=len(unique)))
        for code, chosen in zip(unique, np.split(order[by_part], ends[:-1]), strict=True):
            partition = (
                each.dictionary[int(n)].as_py() for each, n in zip(encoded, code, strict=True)
            )
            yield tuple(partition), chosen

    def check_values(self, rows: pa.Table) -> None:
        """Raises ReplicaError for rows of a partition that there cannot be."""
        for values in set(zip(*(each.to_pylist() for each in self.values(rows)), strict=True)):
            self.name_folder(values)

    def write(
        self, files: FileMaker, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
    ) -> NewFiles:
        """Writes rows as files. If they are arranged, as many are held as a file has bytes. What
        was written of those that raise is removed."""
        new = NewFiles(files, self.choose_written(schema), self.layout.file_bytes)
        try:
            if not self.layout.is_arranged:
                for group in group_rows(batches, schema):
                    new.write(group)
                new.finish()
                return new
            for rows in hold_rows(batches, schema, self.layout.file_bytes):
                for partition, part, _ in self.arrange(rows):
                    new.write(part, self.name_folder(partition), partition)
                    new.finish()
        except BaseException:
            new.abandon()
            raise
        return new


def sort_rows(rows: pa.Table, names: Sequence[str]) -> NDArray[np.int64]:
    """The numbers of rows in the order of some columns, NULL last."""
    if not names:
        return np.arange(rows.num_rows)
    keys = [(name, "ascending") for name in names]
    order = pc.sort_indices(rows, sort_keys=keys)
    return np.asarray(order).astype(np.int64)


def hold_rows(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, bytes_held: int
) -> Iterator[pa.Table]:
    """Rows, so many at a time as have that many bytes in memory."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= bytes_held:
            yield pa.Table.from_batches(held, schema)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held, schema)
