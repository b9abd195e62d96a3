"""Refuses to write on top of what another instance of the consumer has written: rule 7 of
docs/replica-protocol.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from watcher.model.errors import CopyConflictError
from watcher.replica.loads import CopyLoad
from watcher.spanner.timestamps import format_timestamp

TRIES_MAX = 5
"""How often a commit is tried when somebody else has committed meanwhile."""
Mark = Mapping[str, Any]
"""What a commit says of itself."""
T = TypeVar("T")


class Fence:
    """Of the writer of one copy."""

    def __init__(self, path: str, consumer: str, load: CopyLoad) -> None:
        self._path = path
        self.consumer = consumer
        self._load = load
        self.known: int | None = None
        """The end of the newest commit that this writer has seen; None before it has looked."""

    def check(self, end: int, find_mark: Callable[[], Mark | None]) -> None:
        """Raises CopyConflictError where another instance has written since. ``end`` is that of the
        newest commit, and ``find_mark`` finds its mark: two chunks may have the same end."""
        known = self.known is None or end == self.known
        if known and self._load.progress is not None:
            known = self._load.is_newest(find_mark())
        if not known:
            raise self.refuse(end)

    def retry(self, attempt: Callable[[], T | None], find_end: Callable[[], int]) -> T:
        """What an attempt to commit returns, which is made again where somebody else has committed
        meanwhile: None. Raises CopyConflictError where that goes on and on."""
        for _ in range(TRIES_MAX):
            if (done := attempt()) is not None:
                return done
        raise self.refuse(find_end())

    def refuse_version(self, version: int) -> CopyConflictError:
        """The error where rows of a version were to be replaced, and it is not the newest."""
        return CopyConflictError(
            f"somebody else has changed {self._path}, which was at version {version}: stop who"
            " writes there, and try again"
        )

    def refuse(self, end: int) -> CopyConflictError:
        """The error where another one has written up to an end."""
        return CopyConflictError(
            f"another writer has changed {self._path}, which is at window end"
            f" {format_timestamp(end)} now: run one instance of consumer '{self.consumer}' at a"
            " time; the window is tried again"
        )
