"""How much a window may hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WindowLimit:
    """The most rows, bytes, and microseconds since the first change of a window; 0 is no limit. One
    commit is never split: a window of a single commit may hold more."""

    rows: int = 0
    bytes: int = 0
    span_micros: int = 0

    @property
    def limited(self) -> bool:
        """Whether the size is limited."""
        return self.rows > 0 or self.bytes > 0

    def measure_share(self, rows: int, size: int) -> float:
        """How much of the limit so many rows and bytes are: 1 is full, more is too much."""
        shares = ((rows, self.rows), (size, self.bytes))
        return max((used / most for used, most in shares if most), default=0.0)

    def limit_rows(self, bytes_per_row: float) -> int:
        """The most rows where a row has so many bytes on average; 0 is no limit."""
        if not self.bytes or not bytes_per_row:
            return self.rows
        fitting = max(1, int(self.bytes // max(1.0, bytes_per_row)))
        return min(fitting, self.rows or fitting)
