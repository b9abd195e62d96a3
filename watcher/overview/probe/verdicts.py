"""What a probe says of an assumption: values, so that who reads stored ones imports no probe."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from watcher.model.assumptions.entry import Assumption


class Outcome(StrEnum):
    """What a probe says of an assumption."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNTRIED = "cannot be tried"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An assumption, what a probe says of it, and what was seen."""

    assumption: Assumption
    outcome: Outcome
    seen: str
