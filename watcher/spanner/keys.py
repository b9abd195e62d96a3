"""Primary keys and ranges of them, in the JSON of Spanner's API: plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Key = tuple[Any, ...]
"""A primary key in the JSON of Spanner's API: INT64 and TIMESTAMP as strings."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """A range of primary keys. A bound that is None is the table's own first or last key."""

    start: Key | None = None
    end: Key | None = None
    start_inside: bool = False
    end_inside: bool = True

    @property
    def key_set(self) -> dict[str, object]:
        """The range as a KeySet of Spanner's API."""
        if self.start is None and self.end is None:
            return {"all_": True}
        # An empty key comes before, or after, every key; it must be inside.
        start_closed = self.start_inside or self.start is None
        end_closed = self.end_inside or self.end is None
        bounds = {
            "start_closed" if start_closed else "start_open": list(self.start or ()),
            "end_closed" if end_closed else "end_open": list(self.end or ()),
        }
        return {"ranges": [bounds]}
