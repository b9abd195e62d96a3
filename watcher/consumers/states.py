"""The states of a consumer, the commands of operators, and what both sides see: plain values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """The life of a consumer, in the words that operators know from Datastream."""

    NOT_STARTED = "NOT_STARTED"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    DRAINING = "DRAINING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    """It retries by itself."""
    FAILED_PERMANENTLY = "FAILED_PERMANENTLY"
    """An operator must fix the cause."""


class Command(StrEnum):
    """What an operator asks of a running consumer."""

    PAUSE = "pause"
    RESUME = "resume"
    DRAIN = "drain"
    """Deliver everything up to now, then stop."""
    STOP = "stop"
    """Stop after the window in progress."""


@dataclass(frozen=True, slots=True)
class ConsumerProgress:
    """What an instance reports with every renewal of its lease."""

    windows: int = 0
    rows: int = 0
    rows_per_second: float = 0.0
    dead_letters: int = 0


@dataclass(frozen=True, slots=True)
class ConsumerStatus:
    """A consumer as everybody can see it; timestamps in microseconds since 1970.

    ``alive`` is False when its lease has run out.
    """

    consumer: str
    state: State
    command: Command | None
    alive: bool
    updated_at: int
    progress: ConsumerProgress


@dataclass(frozen=True, slots=True)
class StoredError:
    """An error that a consumer met; ``occurred_at`` in microseconds since 1970."""

    consumer: str
    occurred_at: int
    kind: str
    message: str
