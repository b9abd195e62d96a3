"""Faults on request, for tests and benchmarks: off by default, settable while the server runs."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import grpc

from emulator.errors import SpannerError, aborted, invalid_argument, resource_exhausted

METHOD = "/spanner_watcher.emulator.Faults/Set"
"""Takes and returns a google.protobuf.Struct with the fields of ``Faults``."""
COUNTED = ("lost_sessions", "unavailable_streams_max")
"""The faults that so many calls or streams meet, and no more."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults that the server injects.

    ``aborted_commit_probability``: share of commits that are ABORTED (0 to 1).
    ``unavailable_after_rows``: a streaming read or query breaks with UNAVAILABLE at the first chunk
    that reaches so many rows; 0 is never. ``unavailable_streams_max``: how many streams in all are
    broken so; 0 is every stream, and each of them again after so many more rows.
    ``commit_unknown_probability``: share of commits that take place and answer UNAVAILABLE.
    ``latency_seconds``: added before every call. ``lost_sessions``: so many calls that name a
    session are answered as if it did not exist. ``unavailable_call_probability``,
    ``exhausted_call_probability``: share of calls, of any service, that are answered UNAVAILABLE
    (maintenance) or RESOURCE_EXHAUSTED (admission control, quotas) and do nothing.
    ``deadline_stream_probability``: share of streaming reads and queries that end with
    DEADLINE_EXCEEDED after their first part. ``schema_statement_seconds``: each
    statement of a schema update takes so long before it is committed, reports its progress, and
    counts as throttled meanwhile. ``change_stream_churn_seconds``: the interval at which partitions
    of every change stream split, merge or move; 0 is never.
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
    unavailable_call_probability: float = 0.0
    exhausted_call_probability: float = 0.0
    deadline_stream_probability: float = 0.0
    schema_statement_seconds: float = 0.0
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
            self._left: dict[str, int] = {name: getattr(faults, name) for name in COUNTED}
            self.active = faults != Faults(seed=faults.seed)
        self.changed.set()

    def delay(self) -> None:
        """Added latency of a call."""
        if self.active and self.faults.latency_seconds:
            time.sleep(self.faults.latency_seconds)

    def loses_session(self) -> bool:
        """Whether this call is answered as if its session did not exist."""
        return self._takes("lost_sessions")

    def may_refuse(self) -> None:
        """Raises UNAVAILABLE or RESOURCE_EXHAUSTED for the chosen shares of calls."""
        if not self.active:
            return
        if self._choose(self.faults.unavailable_call_probability):
            raise unavailable("The service is being updated (fault injected).")
        if self._choose(self.faults.exhausted_call_probability):
            raise resource_exhausted("The instance is overloaded (fault injected).")

    def exceeds_deadline(self) -> bool:
        """Whether this stream ends with DEADLINE_EXCEEDED after its first part."""
        return self.active and self._choose(self.faults.deadline_stream_probability)

    @property
    def schema_statement_seconds(self) -> float:
        """How long each statement of a schema update takes at least."""
        return self.faults.schema_statement_seconds if self.active else 0.0

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
        return not self.faults.unavailable_streams_max or self._takes("unavailable_streams_max")

    def _takes(self, counted: str) -> bool:
        """Whether the count of a fault is not used up; it is one less then."""
        if not self.active or not self._left[counted]:
            return False
        with self._lock:
            left = self._left[counted]
            self._left[counted] = max(left - 1, 0)
            return left > 0

    def _choose(self, probability: float) -> bool:
        if not probability:
            return False
        with self._lock:
            return self._random.random() < probability


def unavailable(message: str) -> SpannerError:
    """The connection broke; the client may try again."""
    return SpannerError(grpc.StatusCode.UNAVAILABLE, message)


def deadline_exceeded() -> SpannerError:
    """A stream took longer than its call may."""
    return SpannerError(
        grpc.StatusCode.DEADLINE_EXCEEDED, "The stream took too long (fault injected)."
    )
