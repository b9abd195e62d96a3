"""An assumption: a behaviour of Spanner that the product relies on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

DOCS = "https://docs.cloud.google.com/spanner/docs/"


class Consequence(StrEnum):
    """What happens where an assumption is wrong."""

    LOST = "lost rows"
    DOUBLED = "doubled rows"
    WRONG = "wrong rows"
    ERROR = "an error"
    SLOW = "slow"

    @property
    def unsafe(self) -> bool:
        """Whether nobody would notice: the output is wrong without an error."""
        return self in {Consequence.LOST, Consequence.DOUBLED, Consequence.WRONG}


class Mode(StrEnum):
    """A way to use the product, as its settings choose it."""

    POLL = "poll"
    STREAM = "change-stream"
    PUSH = "push"
    CLEAR = "clear"
    CONSUMER = "consumer"
    SNAPSHOT = "snapshot"
    WHOLE_ROWS = "whole rows"
    VERIFY = "verify"


@dataclass(frozen=True, slots=True)
class Assumption:
    """One entry of the ledger.

    ``page`` is the page of Spanner's documentation that says it, below ``DOCS``; empty where none
    does. ``broken`` is what happens where it is wrong, and ``advice`` how to avoid that.
    ``untried`` is why no probe can try it; empty where one does.
    """

    name: str
    sentence: str
    page: str
    consequence: Consequence
    broken: str
    advice: str
    modes: tuple[Mode, ...]
    untried: str = ""

    @property
    def documentation(self) -> str:
        """Where the documentation says it, for people."""
        return f"{DOCS}{self.page}" if self.page else "not documented"

    def makes_unsafe(self, modes: Collection[Mode]) -> bool:
        """Whether one of these modes is unsafe where it is wrong."""
        return self.consequence.unsafe and bool(set(self.modes) & set(modes))
