"""Limits that tell a statement of Spark which files of a copy it rewrites."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from watcher.replica.writing.compaction import SMALL_SHARE, CompactionPolicy, choose_files
from watcher.replica.writing.live_files import DataFile

F = TypeVar("F", bound=DataFile[Any])


@dataclass(frozen=True, slots=True)
class FileRange:
    """What a statement rewrites: the files of which at least ``deleted_share`` of the rows are
    deleted (None: however many are), and those of fewer than ``below_bytes`` bytes."""

    deleted_share: float | None
    below_bytes: int


def choose_range(
    files: Collection[F],
    count: Callable[[F], int],
    policy: CompactionPolicy,
    file_bytes: int,
    budget: float,
) -> FileRange | None:
    """The files that are rewritten next; None if all is well. ``count``: the rows of a file, those
    that are gone included; ``file_bytes``: the size that files are to have."""
    chosen = choose_files(files, policy, count, file_bytes // SMALL_SHARE)
    if not chosen:
        return None
    if len(chosen) > 1:
        return FileRange(None, choose_size(files, chosen, budget))

    def share(file: F) -> float:
        return 0.0 if file.vector is None else file.vector.rows / max(count(file), 1)

    shares = [(share(file), file.size) for file in files]
    return FileRange(choose_share(shares, share(chosen[0]), policy, budget), 0)


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

    def cost(index: int) -> int:
        together: dict[Hashable, list[int]] = defaultdict(list)
        for file in files:
            if file.size <= sizes[index]:
                together[file.partition].append(file.size)
        return sum(sum(each) for each in together.values() if len(each) > 1)

    index = bisect_right(range(len(sizes)), budget, key=cost) - 1
    return sizes[max(index, 1)] + 1
