"""Which files of a copy are written anew: those that have lost many rows, and small ones where
there are many."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from watcher.replica.writing.live_files import F

SMALL_BYTES = 16 << 20
"""Files below this are small."""
FILE_BYTES = 256 << 20
"""As large as files become, about, by loads and compaction: a merge writes two actions into the log
for each file that it takes rows of."""
FAN = 8
"""Small files are put together with those of about their size, so that a row is written anew as
often as its file grows by this factor."""
MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class CompactionPolicy:
    """``deleted_percent``: a file of which more rows are gone is written anew, if they are as many
    as ``deleted_rows``: fewer are not worth a commit. ``small_files``: if
    there are more, some become one. ``megabytes``: how much of old files is read in a run, between
    two windows; a rewrite that needs more goes on in the next run."""

    deleted_percent: float
    small_files: int
    megabytes: float
    deleted_rows: int = 10_000

    @property
    def bytes_a_run(self) -> float:
        """The budget of a run."""
        return self.megabytes * MEGABYTE


class Sized(Protocol):
    """What can be put together with others of about its size."""

    @property
    def size(self) -> int:
        """How many bytes it has."""
        ...


S = TypeVar("S", bound=Sized)


def choose_files(
    files: Iterable[F], policy: CompactionPolicy, count: Callable[[F], int]
) -> Sequence[F]:
    """The files that are written anew next, as one; none if all is well. ``count``: the rows of a
    file, those that are gone included."""
    listed = list(files)
    worn = [
        (file.vector.rows / max(count(file), 1), file)
        for file in listed
        if file.vector is not None and file.vector.rows >= policy.deleted_rows
    ]
    share, file = max(worn, key=lambda each: each[0], default=(0.0, None))
    if file is not None and share * 100 > policy.deleted_percent:
        return [file]
    return choose_small([file for file in listed if file.size < SMALL_BYTES], policy.small_files)


def choose_small(small: Sequence[S], allowed: int) -> Sequence[S]:
    """Of small files, if they are more than is allowed, those of one size of which there are most;
    all, if there are as many sizes as files."""
    if len(small) <= max(allowed, 1):
        return []
    sizes: dict[int, list[S]] = defaultdict(list)
    for file in small:
        sizes[int(math.log(max(file.size, 1), FAN))].append(file)
    fullest = max(sizes.values(), key=len)
    return fullest if len(fullest) > 1 else small
