"""Faults on request, for tests and benchmarks: off by default, settable while the server runs."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import grpc

from emulator.errors import SpannerError, aborted, invalid_argument

METHOD = "/spanner_watcher.emulator.Faults/Set"
"""Takes and returns a google.protobuf.Struct with the fields of ``Faults``."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults that the server injects.

    ``aborted_commit_probability``: share of commits that are ABORTED (0 to 1).
    ``unavailable_after_rows``: a streaming read or query breaks with UNAVAILABLE at the first chunk
    that reaches so many rows; 0 is never. ``unavailable_streams_max``: how many streams in all are
    broken so; 0 is every stream, and each of them again after so many more rows.
    ``commit_unknown_probability``: share of commits that take place and answer UNAVAILABLE.
    ``latency_seconds``: added before every call. ``lost_sessions``: so many calls that name a
    session are answered as if it did not exist. ``change_stream_churn_seconds``: the interval at
    which partitions of every change stream split, merge or move; 0 is never.
    ``strict_pending_timestamps``: 1 makes a table, with its indexes, unreadable in a transaction in
    which DML has written a pending commit timestamp into it, by DEFAULT and ON UPDATE, too: the
    worst that Spanner's documentation allows. ``versions_kept_seconds``: versions are collected
    after so many seconds, however long ``version_retention_period`` is; 0 is as that says. ``seed``
    makes the choices repeatable.
    """

    aborted_commit_probability: float = 0.0
    commit_unknown_probability: float = 0.0
    unavailable_after_rows: int = 0
    unavailable_streams_max: int = 0
    latency_seconds: float = 0.0
    lost_sessions: int = 0
    change_stream_churn_seconds: float = 0.0
    strict_pending_timestamps: int = 0
    versions_kept_seconds: float = 0.0
    seed: int = 0

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Faults:
        """Faults from plain numbers. Raises INVALID_ARGUMENT for unknown names."""
        whole = {field.name for field in fields(cls) if isinstance(field.default, int)}
        names = sorted(field.name for field in fields(cls))
        unknown = sorted(set(values) - set(names))
        if unknown:
            raise invalid_argument(f"Unknown fault {unknown[0]}: use one of {', '.join(names)}.")
        numbers: dict[str, int | float] = {}
        for name, value in values.items():
            if not isinstance(value, int | float) or value < 0:
                raise invalid_argument(
                    f"Invalid value for the fault {name}: use a number of 0 or more."
                )
            numbers[name] = int(value) if name in whole else float(value)
        return replace(cls(), **numbers)  # type: ignore[arg-type]


FAULT_HELP = "Inject a fault, for example aborted_commit_probability=0.1 (may be repeated)."
"""What the command lines say of --fault; ``parse_faults`` reads its values."""


def parse_faults(pairs: Sequence[str]) -> Faults:
    """Faults from texts of the form name=number. Raises INVALID_ARGUMENT for others."""
    values: dict[str, object] = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        try:
            values[name] = float(text)
        except ValueError:
            raise invalid_argument(
                f"Invalid fault {pair!r}: write name=number, for example seed=7."
            ) from None
    return Faults.from_mapping(values)


class FaultInjector:
    """The faults of a running server. Every question is one attribute when nothing is set."""

    def __init__(self, faults: Faults | None = None) -> None:
        self._lock = threading.Lock()
        self.changed = threading.Event()
        self.set(faults or Faults())

    def set(self, faults: Faults) -> None:
        """Replaces all faults and starts their counts anew."""
        with self._lock:
            self.faults = faults
            self._random = random.Random(faults.seed)
            self._lost_left = faults.lost_sessions
            self._streams_left = faults.unavailable_streams_max
            self.active = faults != Faults(seed=faults.seed)
        self.changed.set()

    def delay(self) -> None:
        """Added latency of a call."""
        if self.active and self.faults.latency_seconds:
            time.sleep(self.faults.latency_seconds)

    def loses_session(self) -> bool:
        """Whether this call is answered as if its session did not exist."""
        if not self.active or not self._lost_left:
            return False
        with self._lock:
            self._lost_left -= 1
            return self._lost_left >= 0

    @property
    def strict_pending_timestamps(self) -> bool:
        """Whether tables with pending commit timestamps are unreadable as a whole."""
        return self.active and bool(self.faults.strict_pending_timestamps)

    @property
    def versions_kept_micros(self) -> int | None:
        """For how long versions are kept at most; None: as the database says."""
        seconds = self.faults.versions_kept_seconds
        return round(seconds * 1_000_000) if self.active and seconds else None

    def may_abort_commit(self) -> None:
        """Raises ABORTED for the chosen share of commits."""
        if self.active and self._choose(self.faults.aborted_commit_probability):
            raise aborted("Transaction was aborted (fault injected).")

    def may_lose_answer(self) -> None:
        """Raises UNAVAILABLE though the commit took place, for those that are chosen."""
        if self.active and self._choose(self.faults.commit_unknown_probability):
            raise unavailable("The response to the commit was lost (fault injected).")

    def breaks_stream(self, rows: int) -> bool:
        """Whether a stream breaks after so many rows."""
        limit = self.faults.unavailable_after_rows
        if not self.active or not limit or rows < limit:
            return False
        with self._lock:
            if self.faults.unavailable_streams_max:
                self._streams_left -= 1
                return self._streams_left >= 0
            return True

    def _choose(self, probability: float) -> bool:
        if not probability:
            return False
        with self._lock:
            return self._random.random() < probability


def unavailable(message: str) -> SpannerError:
    """The connection broke; the client may try again."""
    return SpannerError(grpc.StatusCode.UNAVAILABLE, message)
