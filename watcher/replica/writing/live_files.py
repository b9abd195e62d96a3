"""What the index of keys, the live rows and rewrites ask of a format's data files and versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyroaring import BitMap

from watcher.replica.copies import VersionRows


class Mark(Protocol):
    """What says which rows of a data file are gone, as a version of the table names it: a deletion
    vector, or position deletes. Two that are equal remove the same rows."""

    @property
    def rows(self) -> int:
        """How many they are."""
        ...

    def to_stored(self) -> dict[str, Any]:
        """As the list of an index has it."""
        ...


M = TypeVar("M", bound=Mark)
M_co = TypeVar("M_co", bound=Mark, covariant=True)
M_contra = TypeVar("M_contra", bound=Mark, contravariant=True)


class DataFile(Protocol[M_co]):
    """A data file of a version."""

    @property
    def path(self) -> str:
        """How the version names it."""
        ...

    @property
    def size(self) -> int:
        """How many bytes it has."""
        ...

    @property
    def partition(self) -> tuple[Any, ...]:
        """The values of its partition."""
        ...

    @property
    def vector(self) -> M_co | None:
        """The rows that are not there any more; None: all are there."""
        ...

    @property
    def rows(self) -> int | None:
        """How many rows it has, those that are gone included; None where the version does not say
        it."""
        ...


F = TypeVar("F", bound=DataFile[Any])
F_co = TypeVar("F_co", bound=DataFile[Any], covariant=True)
F_contra = TypeVar("F_contra", bound=DataFile[Any], contravariant=True)


class TableVersion(Protocol[F_co]):
    """A version of a table."""

    @property
    def id(self) -> str:
        """What tells the table from another one in the same place."""
        ...

    @property
    def files(self) -> Mapping[str, F_co]:
        """The data files by their paths."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        ...


class RowFiles(Protocol[F_contra, M_contra]):
    """Reads the files of a table."""

    def iterate_rows(
        self, file: F_contra, schema: pa.Schema, names: Sequence[str]
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """All rows of a data file in their order, in batches; with each the number of its first
        row."""
        ...

    def read_vector(self, vector: M_contra | None) -> BitMap:
        """The rows that are gone. Raises OSError where they cannot be read any more, ReplicaError
        where they are torn."""
        ...


class SomeRows(Protocol[F_contra]):
    """Reads single rows of the files of a table."""

    def read_rows(self, file: F_contra, schema: pa.Schema, rows: NDArray[np.int64]) -> pa.Table:
        """Some rows of a data file, in their order: only the groups that have one are read."""
        ...


@dataclass(frozen=True, slots=True)
class RowIndexes:
    """Where some rows of a Parquet file are: the ``groups`` that have one, and the numbers of the
    rows in these."""

    groups: list[int]
    indexes: NDArray[np.int64]

    @classmethod
    def find(cls, counts: Sequence[int], rows: NDArray[np.int64]) -> RowIndexes:
        """Those of rows, of a file whose groups have so many rows each."""
        starts = np.cumsum([0, *counts])
        groups = np.searchsorted(starts, rows, side="right") - 1
        chosen, indexes = np.unique(groups, return_inverse=True)
        before = np.cumsum([0, *np.diff(starts)[chosen]])[:-1]
        return cls(chosen.tolist(), before[indexes] + rows - starts[groups])


def find_rows(
    files: RowFiles[F, Any],
    version: TableVersion[F],
    names: Sequence[str],
    choose: Callable[[pa.RecordBatch], NDArray[np.bool_]],
) -> dict[str, BitMap]:
    """The numbers of the rows that are chosen by some of their columns, in each data file of a
    version that has one, together with those that are gone."""
    found = {}
    for path, file in version.files.items():
        parts = [
            np.flatnonzero(choose(batch)) + start
            for start, batch in files.iterate_rows(file, version.schema, names)
        ]
        there = BitMap(np.concatenate(parts or [np.empty(0, np.int64)]).astype(np.uint32))
        before = files.read_vector(file.vector)
        if there - before:
            found[path] = there | before
    return found


def compare_versions(
    files: RowFiles[F, Any],
    old: TableVersion[F],
    new: TableVersion[F],
    schema: pa.Schema,
    names: Sequence[str],
) -> Iterator[VersionRows]:
    """Some columns of the rows that only one of two versions has, as
    ``ComparableCopy.compare_versions``: only files in which they differ are read."""
    for path in sorted(old.files.keys() | new.files.keys()):
        was, is_ = old.files.get(path), new.files.get(path)
        if was is not None and is_ is not None and was.vector == is_.vector:
            continue
        # None: no row is there, because the file is not.
        before, after = (
            None if each is None else files.read_vector(each.vector) for each in (was, is_)
        )
        file = is_ or was
        if before != after and file is not None:
            for start, batch in files.iterate_rows(file, schema, names):
                yield from compare_rows(start, batch, before, after)


def compare_rows(
    start: int, batch: pa.RecordBatch, before: BitMap | None, after: BitMap | None
) -> Iterator[VersionRows]:
    """Of a batch of a file, by the rows that are gone in two versions."""
    inside = BitMap(range(start, start + batch.num_rows))
    gone_before = inside if before is None else before & inside
    gone_after = inside if after is None else after & inside
    for rows, came in ((gone_before - gone_after, True), (gone_after - gone_before, False)):
        if rows:
            indexes = pa.array([row - start for row in rows], pa.int64())
            yield VersionRows(batch.take(indexes), came)


def mask_rows(gone: BitMap, start: int, count: int) -> np.ndarray:
    """Which rows of a batch are there."""
    mask = np.ones(count, np.bool_)
    first, last = gone.rank(start - 1) if start else 0, gone.rank(start + count - 1)
    if last > first:
        mask[np.array(gone[first:last].to_array(), np.int64) - start] = False
    return mask
