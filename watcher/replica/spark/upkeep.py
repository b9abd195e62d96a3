"""Compaction of copies by Spark's statements: limits tell a statement which files it rewrites."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from watcher.model.errors import ReplicaError
from watcher.process.failpoints import failpoint
from watcher.replica.copies import CompactionRun, Needed
from watcher.replica.spark.frames import session_settings
from watcher.replica.writing.compaction import SMALL_SHARE, CompactionPolicy, choose_files
from watcher.replica.writing.live_files import DataFile

F = TypeVar("F", bound=DataFile[Any])


@dataclass(frozen=True, slots=True)
class FileRange:
    """What a statement rewrites: the files of which at least ``deleted_share`` of the rows are
    deleted (None: however many are), and those of fewer than ``below_bytes`` bytes."""

    deleted_share: float | None
    below_bytes: int


class SparkUpkeep(ABC, Generic[F]):
    """Compaction and retention of one copy. ``file_bytes``: the size of files."""

    def __init__(self, spark: SparkSession, policy: CompactionPolicy, file_bytes: int) -> None:
        self._spark = spark
        self._policy = policy
        self._file_bytes = file_bytes

    @abstractmethod
    def remove_before(self, needed: Needed) -> None:
        """As ``StoredCopy.remove_before``."""

    @abstractmethod
    def _list_files(self) -> Mapping[str, F]:
        """The data files of the newest version, by their paths."""

    @abstractmethod
    def _count(self, file: F) -> int:
        """The rows of a file, those that are gone included."""

    @abstractmethod
    def _rewrite(self, chosen: FileRange) -> None:
        """Rewrites the files of a range, in a commit that changes no rows."""

    @abstractmethod
    def _find_version(self) -> int | None:
        """The version after a commit of compaction; None where it is that of a window's end."""

    def compact(self, whole: bool) -> CompactionRun:
        """As ``TableCopy.compact``. What is chosen is rewritten in one statement. Raises
        ReplicaError."""
        before = self._list_files()
        chosen = self._choose(before.values(), math.inf if whole else self._policy.bytes_a_run)
        if chosen is None:
            return describe_run(before)
        failpoint("before-rewrite")
        self._rewrite(chosen)
        failpoint("after-rewrite-commit")
        after = self._list_files()
        old, new = before.keys() - after.keys(), after.keys() - before.keys()
        return describe_run(
            after,
            read=sum(before[path].size for path in old),
            written=sum(after[path].size for path in new),
            replaced=len(old),
            version=self._find_version() if old else None,
            more=bool(old) and self._choose(after.values(), math.inf) is not None,
        )

    def _choose(self, files: Collection[F], budget: float) -> FileRange | None:
        """The files that are rewritten next; None if all is well."""
        small_bytes = self._file_bytes // SMALL_SHARE
        chosen = choose_files(files, self._policy, self._count, small_bytes)
        if not chosen:
            return None
        if len(chosen) > 1:
            return FileRange(None, choose_size(files, chosen, budget))
        shares = [(self._share(file), file.size) for file in files]
        least = choose_share(shares, self._share(chosen[0]), self._policy, budget)
        return FileRange(least, 0)

    def _share(self, file: F) -> float:
        """How many of a file's rows are deleted."""
        return 0.0 if file.vector is None else file.vector.rows / max(self._count(file), 1)

    def _call(self, statement: str, settings: Mapping[str, str] | None = None) -> list[Row]:
        """Runs a statement of upkeep. Raises ReplicaError where it fails: it is tried again."""
        try:
            with session_settings(self._spark, settings or {}):
                return self._spark.sql(statement).collect()
        except (PySparkException, Py4JError) as error:
            text = str(error).partition("\n")[0]
            raise ReplicaError(
                f"{statement.partition('(')[0].strip()} has failed: {text}"
            ) from error


def describe_run(files: Mapping[str, DataFile[Any]], **done: Any) -> CompactionRun:
    """What a run has done, and the files of the copy after it."""
    deleted = sum(file.vector.rows for file in files.values() if file.vector is not None)
    return CompactionRun(**done, files=len(files), deleted=deleted)


def choose_share(
    shares: Sequence[tuple[float, int]], first: float, policy: CompactionPolicy, budget: float
) -> float:
    """The least share of deleted rows with which files are rewritten: those with ``first``, or
    more, in any case, and others that the policy allows while they are not more than the budget.
    ``shares``: for each file, with its size."""
    least, taken = first, 0
    for share, size in sorted(shares, reverse=True):
        taken += size
        if share < first and (taken > budget or share * 100 <= policy.deleted_percent):
            break
        least = min(least, share)
    return least


def choose_size(files: Collection[F], chosen: Sequence[F], budget: float) -> int:
    """Below which size files are rewritten, so that the chosen ones are, two at least, while all
    of them are not more than the budget. A file that is the only one in its partition stays."""
    sizes = sorted(file.size for file in chosen)

    def cost(place: int) -> int:
        together: dict[Hashable, list[int]] = defaultdict(list)
        for file in files:
            if file.size <= sizes[place]:
                together[file.partition].append(file.size)
        return sum(sum(each) for each in together.values() if len(each) > 1)

    place = bisect_right(range(len(sizes)), budget, key=cost) - 1
    return sizes[max(place, 1)] + 1
