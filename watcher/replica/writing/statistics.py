"""Statistics of data files, as Delta's log has them: readers skip files by them."""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

COLUMNS_MAX = 32
"""As many columns as Delta has statistics of, by default."""
TEXT_MAX = 32
"""Longer texts have no bounds here."""
ROWS, TIGHT = "numRecords", "tightBounds"
COMPACT = (",", ":")


class FileStatistics:
    """Those of a file that is written batch by batch."""

    def __init__(self) -> None:
        self.rows = 0
        self._nulls: dict[str, int] = {}
        self._bounds: dict[str, tuple[Any, Any]] = {}

    def add(self, rows: pa.Table | pa.RecordBatch) -> None:
        """More rows of the file."""
        self.rows += rows.num_rows
        for name in rows.schema.names[:COLUMNS_MAX]:
            column = rows.column(name)
            self._nulls[name] = self._nulls.get(name, 0) + column.null_count
            if has_bounds(column.type) and column.null_count < len(column):
                bounds = pc.min_max(column)
                self._widen(name, bounds["min"].as_py(), bounds["max"].as_py())

    def _widen(self, name: str, low: Any, high: Any) -> None:
        known = self._bounds.get(name, (low, high))
        self._bounds[name] = (min(low, known[0]), max(high, known[1]))

    def to_json(self) -> str:
        """How many rows and NULLs, and the bounds of columns whose values are exact in JSON."""
        lowest: dict[str, Any] = {}
        highest: dict[str, Any] = {}
        for name, (least, most) in self._bounds.items():
            low, high = write_bound(least, upper=False), write_bound(most, upper=True)
            if low is not None and high is not None:
                lowest[name], highest[name] = low, high
        bounds_of = {"minValues": lowest, "maxValues": highest, "nullCount": self._nulls}
        return json.dumps({ROWS: self.rows, **bounds_of, TIGHT: True}, separators=COMPACT)


def describe_rows(rows: pa.Table) -> str:
    """The statistics of a new file."""
    statistics = FileStatistics()
    statistics.add(rows)
    return statistics.to_json()


def has_bounds(type_: pa.DataType) -> bool:
    """Whether values of a type have bounds here."""
    kinds = (pa.types.is_integer, pa.types.is_date32, pa.types.is_timestamp, pa.types.is_string)
    return any(is_kind(type_) for is_kind in kinds)


def write_bound(value: Any, upper: bool) -> Any:
    """A bound as JSON has it; None where it has none. Times are whole milliseconds there."""
    if isinstance(value, datetime):
        return write_time(value, upper)
    if isinstance(value, str):
        return value if len(value) <= TEXT_MAX else None
    return value if isinstance(value, int) else value.isoformat()


def write_time(value: datetime, upper: bool) -> str | None:
    """A time, to the millisecond below or above it."""
    rest = timedelta(microseconds=value.microsecond % 1000)
    try:
        moved = value - rest + timedelta(milliseconds=1 if upper and rest else 0)
    except OverflowError:
        return None
    return moved.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_rows(stats: str | None) -> int | None:
    """How many rows a file has, those that are gone included; None where it is not said."""
    rows = json.loads(stats or "{}").get(ROWS)
    return None if rows is None else int(rows)


def loosen(stats: str | None, rows: int) -> str:
    """The statistics of a file with a vector, whose bounds are those of all its rows. Numbers keep
    their digits, of which a float would lose some."""
    marker = secrets.token_hex(8)
    values = json.loads(stats or "{}", parse_float=lambda text: f"{marker}{text}{marker}")
    text = json.dumps({**values, ROWS: rows, TIGHT: False}, separators=COMPACT)
    return text.replace(f'"{marker}', "").replace(f'{marker}"', "")
