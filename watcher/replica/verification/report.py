"""What a comparison found: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from watcher.replica.cuts.views import WHOLE, View
from watcher.spanner.timestamps import format_timestamp


class DifferenceKind(StrEnum):
    """How a row differs."""

    MISSING = "missing"
    """Spanner has it, the copy has not."""
    EXTRA = "extra"
    """The copy has it, or has it twice; Spanner has not."""
    CHANGED = "changed"
    """Both have it, with other values: a flipped byte, an old version."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that differs, by its key."""

    kind: DifferenceKind
    key: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair of a copy replaces: how many rows were missing, extra and changed, and of how
    many changed rows each column differs. ``version`` is that of the repaired copy, which was
    compared once more; None: nothing was written."""

    missing: int = 0
    extra: int = 0
    changed: int = 0
    columns: Mapping[str, int] = field(default_factory=dict)
    version: int | None = None

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "missing": self.missing,
            "extra": self.extra,
            "changed": self.changed,
            "columns": dict(self.columns),
            "version": self.version,
        }


@dataclass(frozen=True, slots=True)
class Progress:
    """What is proved of a copy after an incremental run: at ``end`` (microseconds since 1970; 0:
    not at all) it was equal, and ``share`` of its rows (0 to 1) were compared whole within
    ``within_seconds``. ``keys`` have changed, and were compared one by one. ``text`` says it for
    people."""

    end: int
    share: float
    within_seconds: float
    keys: int
    text: str

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "proved_at": format_timestamp(self.end) if self.end else None,
            "share": self.share,
            "within_seconds": self.within_seconds,
            "changed_keys": self.keys,
        }


@dataclass(frozen=True, slots=True)
class TableReport:
    """One table. ``found`` counts the differences that were looked at; ``differences`` are those
    that are shown. With ``complete`` False more ranges differ than were looked at. ``uncompared``
    are columns of both that were not compared, ``left_out`` those that the copy was not to have, or
    cannot have. ``caveats`` are those of the cut: what may be missing in the copy at other
    times. ``view``: which rows the copy has, and what in place of their values."""

    table: str
    rows: int
    copy_rows: int
    ranges: int
    found: int
    differences: tuple[Difference, ...]
    complete: bool
    uncompared: tuple[str, ...]
    problem: str = ""
    outside: tuple[str, ...] = ()
    """What others have written to the copy after the version that was compared: readers of the
    newest version see it, and the next window is written on top of it."""
    left_out: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    view: View = WHOLE
    repair: Repair | None = None
    """What differs, and whether it was repaired; None where nothing was to be repaired."""
    progress: Progress | None = None
    """Of an incremental run, whose ``rows`` and ``ranges`` are those that were compared whole."""

    @property
    def equal(self) -> bool:
        """Whether the copy equals the table, as it was or after a repair."""
        repaired = self.repair is not None and self.repair.version is not None
        return (repaired or not self.found) and self.complete and not self.problem

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "table": self.table,
            "equal": self.equal,
            "rows": self.rows,
            "copy_rows": self.copy_rows,
            "ranges": self.ranges,
            "found": self.found,
            "complete": self.complete,
            "differences": [{"kind": d.kind.value, "key": dict(d.key)} for d in self.differences],
            "uncompared": list(self.uncompared),
            "left_out": list(self.left_out),
            "caveats": list(self.caveats),
            "where": self.view.where,
            "masks": {name: str(kind) for name, kind in self.view.masks.items()},
            "problem": self.problem,
            "outside": list(self.outside),
            **({} if self.repair is None else {"repair": self.repair.to_json()}),
            **({} if self.progress is None else {"proof": self.progress.to_json()}),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """All tables, as of a timestamp (microseconds since 1970)."""

    at: int
    tables: tuple[TableReport, ...]
    reasons: str = ""
    """Why the cut was not exact; empty for one that was."""

    @property
    def equal(self) -> bool:
        """Whether every copy equals its table."""
        return all(table.equal for table in self.tables)

    @property
    def untouched(self) -> bool:
        """Whether nobody else has written a copy since."""
        return not any(table.outside for table in self.tables)

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "timestamp": format_timestamp(self.at),
            "equal": self.equal,
            "not_exact": self.reasons,
            "tables": [table.to_json() for table in self.tables],
        }
