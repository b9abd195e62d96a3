"""A cut: a window end, and the version of each copy that is Spanner's table at it; or the reasons
why it is not known to be. Plain values.

Where something is not known to equal Spanner, ``CutWriter`` adds a ``Reason`` of a ``Cause`` (a
new kind of reason is a new member of it) to the table in the cut, or to the cut. The cut is then
not exact and says why, and readers do not use it. A reason holds for that window alone; only those
of a cause that ``stays`` are carried from cut to cut, until the table is loaded or ``verify`` has
found it equal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from watcher.model.errors import ReplicaError
from watcher.replica.cuts.modes import LATEST, Mode
from watcher.replica.cuts.stored import (
    FORMAT,
    FORMAT_OF_MODES,
    FORMAT_OF_VIEWS,
    UNPROVED,
    parse_stored,
)
from watcher.replica.cuts.views import WHOLE, View, list_cleared
from watcher.spanner.timestamps import format_timestamp, to_datetime
from watcher.tables.values import WatchedTable

DELTA = "delta"
"""The format of copies where a cut does not state it: version 1.0.0 had no other."""
PREFIX = "spanner-watcher."
CONSUMER, END, KIND = (f"{PREFIX}{name}" for name in ("consumer", "end", "kind"))
"""Properties of a snapshot of Iceberg: who has written it, the window's end, load or merge."""


class Cause(StrEnum):
    """What makes a cut inexact."""

    AHEAD = "ahead"
    """The newest commit of a copy is of a later window end."""
    READ_LATE = "read-late"
    """Rows were read later than at the end, which Spanner no longer kept."""
    OUTSIDE_WRITE = "outside-write"
    """Somebody else has changed the rows or the columns of a copy."""
    PARTIAL_STREAM = "partial-stream"
    """The change stream leaves changes out."""
    LOADING = "loading"
    """A table is not loaded to its end."""
    REPLACED = "replaced"
    """The copy is that of another table, which had the name before."""
    NOT_STATED = "not-stated"
    """Another release has written the cut, and its reason is not known here."""

    @property
    def stays(self) -> bool:
        """Whether it holds from cut to cut until the table is loaded or verified."""
        return self in (Cause.OUTSIDE_WRITE, Cause.PARTIAL_STREAM)

    @property
    def comparable(self) -> bool:
        """Whether ``verify`` can tell if it matters; else the copies are known to be of other
        timestamps than the cut's end."""
        return self in (Cause.OUTSIDE_WRITE, Cause.PARTIAL_STREAM, Cause.REPLACED)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a cut, or a copy in it, is not known to equal Spanner. ``detail`` is a clause for people:
    what happened, and where. ``since``, of a cause that ``stays``, is the end of the first cut that
    it concerns: a comparison at or after it settles the matter."""

    cause: Cause
    detail: str
    since: int = 0

    def to_stored(self) -> dict[str, Any]:
        """As it is stored."""
        return {"cause": self.cause.value, "detail": self.detail, "since": self.since}

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> Reason:
        """As it was stored. A cause that this release does not know is not lost: its detail says
        it."""
        known = stored["cause"] in list(Cause)
        cause = Cause(stored["cause"]) if known else Cause.NOT_STATED
        return cls(cause, stored["detail"], stored.get("since", 0))


EARLIER_RELEASE = Reason(Cause.NOT_STATED, "the release that wrote the cut stored no reasons")


def parse_reasons(stored: Mapping[str, Any]) -> tuple[Reason, ...]:
    """The reasons of a stored cut or table; files of earlier releases have none."""
    return tuple(Reason.from_stored(each) for each in stored.get("reasons", ()))


@dataclass(frozen=True, slots=True)
class RowSource:
    """What else the rows of a copy are made of. ``stamp``: the column that
    ``_spanner_commit_timestamp`` has the values of; None: a row that is read has none."""

    stamp: str | None = None

    def to_stored(self) -> dict[str, Any]:
        """As it is stored."""
        return {"stamp": self.stamp}

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> RowSource:
        """As it was stored."""
        return cls(stored["stamp"])

    @classmethod
    def of_table(cls, table: WatchedTable) -> RowSource:
        """That of a table. The timestamps of change sets are in another table."""
        return cls(table.timestamp_column or None if table.change_sets is None else None)


@dataclass(frozen=True, slots=True)
class TableCut:
    """A copy in a cut. ``uncompared`` are the columns that clearing changes in Spanner without a
    change; ``deleted`` is the soft-delete column, whose rows are not in the copy. ``left_out`` are
    the columns that the copy does not have: those that were excluded by name, and those whose type
    cannot be read. ``caveats`` are clauses for people: what may be missing in the copy, and nothing
    tells. ``reasons``: why the version is not known to be the table at the cut's end. ``source`` is
    None where an earlier release has written the cut. ``view``: what of the table is shown."""

    version: int
    key: tuple[str, ...]
    uncompared: tuple[str, ...] = ()
    deleted: str | None = None
    reasons: tuple[Reason, ...] = ()
    left_out: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    source: RowSource | None = None
    view: View = WHOLE

    @property
    def loading(self) -> bool:
        """Whether the copy has a part of its table."""
        return any(each.cause is Cause.LOADING for each in self.reasons)

    def to_stored(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            "version": self.version,
            "key": self.key,
            "uncompared": self.uncompared,
            "deleted": self.deleted,
            "left_out": self.left_out,
            "caveats": self.caveats,
            "reasons": [each.to_stored() for each in self.reasons],
            **({} if self.source is None else {"source": self.source.to_stored()}),
            **({} if self.view.whole else {"view": self.view.to_stored()}),
        }

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> TableCut:
        """As it was stored."""
        source = stored.get("source")
        return cls(
            stored["version"],
            tuple(stored["key"]),
            tuple(stored["uncompared"]),
            stored["deleted"],
            parse_reasons(stored),
            tuple(stored.get("left_out", ())),
            tuple(stored.get("caveats", ())),
            None if source is None else RowSource.from_stored(source),
            View.from_stored(stored["view"]) if "view" in stored else WHOLE,
        )


@dataclass(frozen=True, slots=True)
class Cut:
    """The state of a replica after a window. ``end`` is in microseconds since 1970.

    Only an ``exact`` cut is known to equal Spanner at its end. Cuts before ``exact_from`` are not:
    something up to there was read as of that time. ``reasons`` are those that concern every table.
    """

    database: str
    consumer: str
    end: int
    tables: Mapping[str, TableCut] = field(default_factory=dict)
    exact_from: int = 0
    copies: str = DELTA
    """The format of the copies."""
    reasons: tuple[Reason, ...] = ()
    looked: int = 0
    """Up to which timestamp it is known whether another table has the name of one of these."""
    mode: Mode = LATEST
    """What the copies keep."""
    absent: Mapping[str, Reason] = field(default_factory=dict)
    """Of tables that are left out for a while: why their copies are not known to equal Spanner."""

    @property
    def exact(self) -> bool:
        """Whether nothing is known that speaks against it."""
        return not self.reasons and not any(each.reasons for each in self.tables.values())

    @property
    def comparable(self) -> bool:
        """Whether ``verify`` can judge it: nothing is known to be of another timestamp."""
        reasons = [*self.reasons, *(r for each in self.tables.values() for r in each.reasons)]
        return all(reason.cause.comparable for reason in reasons)

    def settle(self, table: str) -> Cut:
        """The cut after a comparison has found a table equal."""
        described = self.tables[table]
        left = tuple(reason for reason in described.reasons if not reason.cause.stays)
        return replace(self, tables={**self.tables, table: replace(described, reasons=left)})

    def explain(self) -> str:
        """Why it is not exact, in one line; empty for an exact cut."""
        of_tables = [
            f"{name}: {reason.detail}"
            for name, each in sorted(self.tables.items())
            for reason in each.reasons
        ]
        return "; ".join([*(reason.detail for reason in self.reasons), *of_tables])

    def to_text(self) -> str:
        """As it is stored."""
        tables = {name: each.to_stored() for name, each in sorted(self.tables.items())}
        absent = {name: each.to_stored() for name, each in sorted(self.absent.items())}
        return json.dumps(
            {
                "format": self._choose_format(),
                "database": self.database,
                "consumer": self.consumer,
                "end": self.end,
                "timestamp": format_timestamp(self.end),
                "exact": self.exact,
                "reasons": [each.to_stored() for each in self.reasons],
                "exact_from": self.exact_from,
                "copies": self.copies,
                **({} if self.mode == LATEST else {"mode": self.mode}),
                "looked": self.looked,
                "tables": tables,
                **({"absent": absent} if absent else {}),
            },
            indent=1,
        )

    def _choose_format(self) -> int:
        if not all(each.view.whole for each in self.tables.values()):
            return FORMAT_OF_VIEWS
        return FORMAT if self.mode == LATEST else FORMAT_OF_MODES

    @classmethod
    def from_text(cls, text: str, path: str) -> Cut:
        """As it was stored. Raises CheckpointError for what no release up to this one writes."""
        return parse_stored(text, path, cls.from_stored, UNPROVED)

    @classmethod
    def from_stored(cls, stored: dict[str, Any]) -> Cut:
        """As it was stored."""
        tables = {name: TableCut.from_stored(each) for name, each in stored["tables"].items()}
        cut = cls(
            stored["database"],
            stored["consumer"],
            stored["end"],
            tables,
            stored["exact_from"],
            stored.get("copies", DELTA),
            parse_reasons(stored),
            stored.get("looked", stored["end"]),
            stored.get("mode", LATEST),
            {name: Reason.from_stored(each) for name, each in stored.get("absent", {}).items()},
        )
        return cut if stored["exact"] or not cut.exact else replace(cut, reasons=(EARLIER_RELEASE,))


def describe_table(table: WatchedTable, version: int) -> TableCut:
    """A copy of a table in a cut."""
    return TableCut(
        version,
        table.primary_key,
        list_uncompared(table),
        table.deleted,
        left_out=table.left_out,
        caveats=table.caveats,
        source=RowSource.of_table(table),
        view=View.of_table(table),
    )


def list_uncompared(table: WatchedTable) -> tuple[str, ...]:
    """The columns of a copy that clearing writes in Spanner."""
    names = {name for name, _ in table.columns}
    return tuple(name for name in list_cleared(table) if name in names)


@dataclass(frozen=True)
class TablesAt:
    """The tables of a replica at one Spanner timestamp. No transaction is torn over them."""

    cut: Cut

    @property
    def timestamp(self) -> datetime:
        """The timestamp: every transaction at or below it is in the tables, and no other."""
        return to_datetime(self.cut.end)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self.cut.tables)

    def find_version(self, table: str) -> int:
        """The version of a table's copy. Raises ReplicaError."""
        if table not in self.cut.tables:
            raise ReplicaError(f"the cut has no table {table}; it has: {', '.join(self.tables)}")
        return self.cut.tables[table].version
