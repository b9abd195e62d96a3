"""How far each consumer was behind over the last day, in a ring: the worst of every five minutes.
It is lost with the process; a time-series database keeps the metrics longer."""

from __future__ import annotations

from dataclasses import dataclass

from watcher.overview.values import Overview

SLOT_MICROS = 300_000_000
SLOTS_MAX = 288


@dataclass(frozen=True, slots=True)
class Lag:
    """The worst lag, in seconds, in the five minutes that begin ``at``."""

    at: int
    seconds: float


class LagHistory:
    """The lag of each consumer that there is; one that has gone is forgotten."""

    def __init__(self) -> None:
        self._lags: dict[str, tuple[Lag, ...]] = {}

    def record(self, overview: Overview) -> None:
        """Adds what was read now."""
        slot = overview.read_at - overview.read_at % SLOT_MICROS
        self._lags = {
            each.consumer: add_lag(self.find(each.consumer), each.lag_seconds, slot)
            for each in overview.consumers
        }

    def find(self, consumer: str) -> tuple[Lag, ...]:
        """The lag of a consumer, the oldest first; empty for one that is unknown."""
        return self._lags.get(consumer, ())


def add_lag(lags: tuple[Lag, ...], seconds: float | None, slot: int) -> tuple[Lag, ...]:
    """A ring with the lag that there is now. One that has ended has none, which leaves a gap."""
    if seconds is None:
        return lags
    if lags and lags[-1].at == slot:
        return (*lags[:-1], Lag(slot, max(seconds, lags[-1].seconds)))
    return (*lags, Lag(slot, seconds))[-SLOTS_MAX:]
