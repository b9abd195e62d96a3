"""Which files of a copy are written anew: those that have lost many rows, and small ones where
there are many."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from watcher.model.errors import ConfigurationError

if TYPE_CHECKING:
    # Settings have a policy where the libraries of copies are not installed.
    from watcher.replica.writing.live_files import F

CompactionSwitch = Literal["on", "off"]
SMALL_SHARE = 16
"""Files below such a part of the size of files are small: 16 MB by default."""
FAN = 8
"""Small files are put together with those of about their size, so that a row is written anew as
often as its file grows by this factor."""
MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class CompactionPolicy:
    """How copies are compacted. ``deleted_percent``: a file of which more rows are gone is written
    anew, if they are as many as ``deleted_rows``: fewer are not worth a commit. ``small_files``: if
    there are more, some become one. ``megabytes``: how much of old files is read in a run, between
    two windows; a rewrite that needs more goes on in the next run. Raises ConfigurationError."""

    deleted_percent: float = 5.0
    small_files: int = 8
    megabytes: float = 32.0
    deleted_rows: int = 10_000

    def __post_init__(self) -> None:
        """Raises ConfigurationError for what no copy can have."""
        if not 0 <= self.deleted_percent <= 100 or self.small_files < 1 or self.megabytes <= 0:
            raise ConfigurationError(
                f"invalid compaction: {self.deleted_percent} % deleted rows, {self.small_files}"
                f" small files, {self.megabytes} MB between two windows; use 0 to 100, 1 or more,"
                " more than 0"
            )

    @property
    def bytes_a_run(self) -> float:
        """The budget of a run."""
        return self.megabytes * MEGABYTE


DEFAULT_POLICY = CompactionPolicy()


class Sized(Protocol):
    """What can be put together with others of about its size."""

    @property
    def size(self) -> int:
        """How many bytes it has."""
        ...


S = TypeVar("S", bound=Sized)


def choose_files(
    files: Iterable[F],
    policy: CompactionPolicy,
    count: Callable[[F], int],
    small_bytes: int,
    full: Collection[str] = (),
) -> Sequence[F]:
    """The files that are written anew next, as one; none if all is well. They are of one partition,
    each of which may have so many small ones. ``count``: the rows of a file, those that are gone
    included; ``full``: the paths of files that are small, and have no room for more rows."""
    listed = list(files)
    worn = [
        (file.vector.rows / max(count(file), 1), file)
        for file in listed
        if file.vector is not None and file.vector.rows >= policy.deleted_rows
    ]
    share, file = max(worn, key=lambda each: each[0], default=(0.0, None))
    if file is not None and share * 100 > policy.deleted_percent:
        return [file]
    small: dict[Hashable, list[F]] = defaultdict(list)
    for each in listed:
        if each.size < small_bytes and each.path not in full:
            small[each.partition].append(each)
    chosen = (choose_small(each, policy.small_files) for each in small.values())
    return max(chosen, key=len, default=())


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
