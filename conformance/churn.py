"""Churn: partitions, the schema and the writers change all the time, as a seed chooses."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from conformance.output import now_micros
from conformance.recording import ChurnEvent, RunFailedError
from conformance.schema_changes import SchemaChange, list_changes
from conformance.settings import STREAM, Settings
from conformance.spanner import RunSpanner
from conformance.writers import Writers

JOIN_SECONDS_MAX = 90.0
PARTITION_PAUSES = (0.5, 1.0, 3.0)
SCHEMA_PAUSES = (0.5, 1.5, 4.0)
WRITER_PAUSES = (0.5, 1.5, 4.0)
"""The choices, in pauses between two blows: a system that is slow to start has longer ones."""
WRITERS_MAX = 6


@dataclass(frozen=True, slots=True)
class Churn:
    """So often, in seconds, changes each: the partitions of the change stream, exactly; the schema
    and the writers, on average. 0 is never."""

    seed: int
    partition_seconds: float
    schema_seconds: float
    writer_seconds: float


@dataclass(frozen=True, slots=True)
class ChurnReport:
    """What changed in a run."""

    churn: Churn
    events: dict[str, int]


def choose_churn(settings: Settings) -> Churn | None:
    """The churn of a run; None without the option."""
    if not settings.churn:
        return None
    choice = random.Random(f"churn {settings.seed}")
    partitions, schema, writers = (
        round(choice.choice(pauses) * settings.pause_seconds, 3)
        for pauses in (PARTITION_PAUSES, SCHEMA_PAUSES, WRITER_PAUSES)
    )
    ours = settings.prepare == "stream" and not settings.database
    return Churn(settings.seed, partitions if ours else 0.0, schema, writers)


def report_churn(settings: Settings, events: Sequence[ChurnEvent]) -> ChurnReport | None:
    """What changed, by kind; None without the option."""
    churn = choose_churn(settings)
    if churn is None:
        return None
    return ChurnReport(churn, dict(Counter(event.kind for event in events)))


@dataclass(slots=True)
class Churner:
    """Changes the schema and the writers, each in a thread. The server changes the partitions."""

    churn: Churn
    settings: Settings
    spanner: RunSpanner
    writers: Writers
    events: list[ChurnEvent] = field(default_factory=list)
    failure: Exception | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Begins."""
        changes = list_changes(
            STREAM if self.settings.prepare == "stream" else None, self.settings.value_captures
        )
        schema = random.Random(f"schema churn {self.churn.seed}")
        writers = random.Random(f"writer churn {self.churn.seed}")
        self._repeat(
            schema, self.churn.schema_seconds, lambda: self._change_schema(schema.choice(changes))
        )
        self._repeat(writers, self.churn.writer_seconds, lambda: self._change_writers(writers))

    def stop(self) -> None:
        """No more changes; returns when the last one is done. Raises RunFailedError."""
        self._stop.set()
        for thread in self._threads:
            thread.join(JOIN_SECONDS_MAX)
        if self.failure is not None:
            raise RunFailedError(f"the churn failed: {self.failure!r}") from self.failure

    def _repeat(self, choice: random.Random, seconds: float, work: Callable[[], None]) -> None:
        def repeat() -> None:
            try:
                while not self._stop.wait(choice.uniform(0, 2 * seconds)):
                    work()
            except Exception as error:  # noqa: BLE001 (handed to the main thread)
                self.failure = error

        thread = threading.Thread(target=repeat, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _change_schema(self, change: SchemaChange) -> None:
        statement = self.spanner.change_schema(change)
        if statement is not None:
            self._record("schema", statement)

    def _change_writers(self, choice: random.Random) -> None:
        count = self.writers.count
        if count < WRITERS_MAX and (count == 1 or choice.random() < 0.5):
            self._record("writer_started", f"writer {self.writers.start()}")
        else:
            self._record("writer_ended", f"writer {self.writers.end(choice)}")

    def _record(self, kind: str, text: str) -> None:
        self.events.append(ChurnEvent(now_micros(), kind, text))
