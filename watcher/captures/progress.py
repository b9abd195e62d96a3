"""How far a backfill has come: a plain value, kept beside the positions."""

from __future__ import annotations

import json
from dataclasses import dataclass

from watcher.spanner.keys import Key


@dataclass(frozen=True, slots=True)
class BackfillProgress:
    """A backfill under way: the snapshot's timestamp (microseconds since 1970), and the last key
    that was delivered (None: none yet)."""

    at: int
    after: Key | None

    def to_text(self) -> str:
        """As it is stored."""
        return json.dumps({"at": self.at, "after": self.after})

    @classmethod
    def from_text(cls, text: str) -> BackfillProgress:
        """As it was stored."""
        stored = json.loads(text)
        after = stored["after"]
        return cls(stored["at"], tuple(after) if after is not None else None)
