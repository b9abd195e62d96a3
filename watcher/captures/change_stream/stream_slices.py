"""The parts of a window of a change stream, which can be read side by side."""

from __future__ import annotations

from dataclasses import dataclass

from watcher.model.window import Slice


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSlice(Slice):
    """A part of a window of a change stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSlice(StreamSlice):
    """A partition of a stream that is active when the window begins, and those of its children that
    are its to read. Without a token: the records that the query for the partitions itself returned;
    with ``with_partitions``, all that the window holds. ``function`` is without ``READ_``;
    ``began`` is set for a partition that begins inside the window."""

    function: str
    token: str | None
    began: int = 0
    with_partitions: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingSlice(StreamSlice):
    """All that functions tell of a window, where keys move between partitions."""

    functions: tuple[str, ...]
