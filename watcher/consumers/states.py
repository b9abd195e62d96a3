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
    STOPPED = "STOPPED"
    """It has ended as it was asked to. Releases before 0.2 stored NOT_STARTED here."""


class Command(StrEnum):
    """What an operator asks of a running consumer."""

    PAUSE = "pause"
    RESUME = "resume"
    DRAIN = "drain"
    """Deliver everything up to now, then stop."""
    STOP = "stop"
    """Stop after the window in progress."""
    REPLAY = "replay"
    """Deliver the dead letters again, once; it takes back a pause or a drain as RESUME does."""


def parse_command(stored: str | None) -> Command | None:
    """A command as it is stored; one that only a newer release knows is none."""
    return next((each for each in Command if each == stored), None)


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

    ``alive`` is False when its lease has run out. ``reason`` says why it has ended, where it could
    still store that.
    """

    consumer: str
    state: State
    command: Command | None
    alive: bool
    updated_at: int
    progress: ConsumerProgress
    reason: str | None = None

    @property
    def ended(self) -> bool:
        """True when its last run has ended and no other instance runs."""
        return not self.alive and self.state in ENDED


ENDED = frozenset({State.NOT_STARTED, State.STOPPED, State.FAILED_PERMANENTLY})
"""The states that an instance leaves behind when it gives its name back."""


@dataclass(frozen=True, slots=True)
class StoredError:
    """An error that a consumer met; ``occurred_at`` in microseconds since 1970."""

    consumer: str
    occurred_at: int
    kind: str
    message: str
