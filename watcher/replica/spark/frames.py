"""Copies that Spark writes and reads: what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from watcher.process.spark.arrow_schemas import convert_to_arrow_schema
from watcher.replica.copies import CopyState, StoredCopy
from watcher.replica.loads import LoadProgress
from watcher.replica.merge_sql import SPARK


@dataclass(frozen=True, slots=True)
class FrameChunk:
    """As ``Chunk``, for rows that are a data frame."""

    first: bool = True
    progress: LoadProgress | None = None


WHOLE = FrameChunk()


class FrameCopy(StoredCopy, Protocol):
    """A copy that Spark writes, from data frames. ``takes_chunks``: it can be loaded in chunks."""

    takes_chunks: bool

    def load_frame(
        self, rows: DataFrame, end: int, chunk: FrameChunk = WHOLE
    ) -> tuple[CopyState, int]:
        """Puts the rows in the place of all that was there, or, unless the chunk is the first,
        beside them: the copy's state, and how many rows. A copy that is at the end of a first
        chunk, or above it, stays as it is."""
        ...

    def merge_frame(self, rows: DataFrame, key: Sequence[str], end: int) -> CopyState:
        """Puts each row in the place of that of its key, if it is newer; removes those that are
        ``DELETED_COLUMN``."""
        ...

    def read_frame(self, version: int) -> DataFrame:
        """The rows of a version. Raises ReplicaError where it cannot be read."""
        ...


OpenFrameCopy = Callable[[SparkSession, str], FrameCopy]
"""The copy of a table in a session, by the table's name."""


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """The columns of a data frame as the rest of a replica knows them."""
    return convert_to_arrow_schema(frame.schema)


def scan_frame(frame: DataFrame, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    """The rows of a data frame, which the driver holds meanwhile."""
    chosen = frame if columns is None else frame.select(*map(SPARK.quote, columns))
    table = chosen.toArrow()
    return iter(table.cast(arrow_schema(chosen)).to_batches())


@contextmanager
def session_settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Settings of a session for one statement."""
    before = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            spark.conf.unset(name) if earlier is None else spark.conf.set(name, earlier)


def first_line(error: PySparkException) -> str:
    """What Spark says, without its plan."""
    return str(error).partition("\n")[0]
