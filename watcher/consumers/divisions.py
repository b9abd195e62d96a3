"""How the tables of a shared consumer are divided, and the first positions of its parts: rules 10
to 13 of docs/protocol.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass

from google.cloud.spanner_v1 import COMMIT_TIMESTAMP
from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.positions import Registration, SpannerPositions
from watcher.consumers.positions.own_names import divisions_table
from watcher.consumers.positions.rows import MovedConsumer, MovedRows, StoredConsumer, merge_states
from watcher.consumers.positions.values import Registered
from watcher.consumers.starts import Standing, choose_start
from watcher.model.errors import ConfigurationError, DivisionChangedError
from watcher.spanner.transactions import run_optimistically
from watcher.tables.parts import Part, count_parts, list_parts
from watcher.tables.selection import Selection

COLUMNS = ("Consumer", "WatchedTable", "Division", "UpdatedAt")


@dataclass(frozen=True, slots=True)
class Beginning:
    """What an instance knows of a shared consumer that nobody has divided yet: the tables that it
    polls, where a new one starts (microseconds since 1970; None is now), and the read timestamp
    that now is."""

    selection: Selection
    start: int | None
    now: int


class Divisions:
    """The table ``...Divisions`` beside those of positions, as one instance uses it."""

    def __init__(self, positions: SpannerPositions, shared: str, of: int) -> None:
        self._positions = positions
        self._table = divisions_table(positions.table)
        self._shared = shared
        self._parts = list_parts(of)
        self._names = tuple(part.name_consumer(shared) for part in self._parts)
        self._known: dict[str, str] = {}

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts of the consumer."""
        return self._parts

    def settle(
        self, divisions: Mapping[str, str], read_beginning: Callable[[], Beginning]
    ) -> Registered | None:
        """From now on tables are divided so, and every part has a position in each of them; both
        are written in one transaction, so that no part can begin later than another.

        The registration of the first part stands for all; None where nothing was new. Raises
        DivisionChangedError for a table that is divided in another way, and where the consumer was
        merged or unregistered since this instance has settled a table.
        """
        if divisions.items() <= self._known.items():
            return None
        beginning = read_beginning()

        def write(transaction: Transaction) -> Registered | None:
            rows = MovedRows(transaction, self._positions.table, self._positions.sql)
            stored = rows.read_divisions(self._shared)
            self._check(divisions, stored)
            new = {name: each for name, each in divisions.items() if name not in stored}
            if not new:
                return None
            transaction.insert(
                self._table,
                COLUMNS,
                [(self._shared, *each, COMMIT_TIMESTAMP) for each in sorted(new.items())],
            )
            starts, reached = self._move_to_parts(rows, new.keys(), divisions.keys(), beginning)
            registered = self._register_parts(transaction, starts, beginning.now)
            for name in self._names:
                self._positions.plan_ends_in(transaction, name, reached)
            return registered

        registered = run_optimistically(self._positions.database, write)
        self._known |= divisions
        return registered

    def _check(self, divisions: Mapping[str, str], stored: Mapping[str, str]) -> None:
        if self._known and not stored:
            raise DivisionChangedError(
                f"consumer '{self._shared}' was merged or unregistered while this instance held"
                " parts of it; start it again"
            )
        counts = {count_parts(each) for each in stored.values()}
        changed = [n for n, division in divisions.items() if stored.get(n, division) != division]
        if changed or not counts <= {len(self._parts)}:
            of_table = f"of table {changed[0]}" if changed else "of its tables"
            raise DivisionChangedError(
                f"the shards {of_table}, or the number of parts, are not those that consumer"
                f" '{self._shared}' began with: stop all its instances, run 'spanner-watcher ctl"
                f" merge {self._shared}', and start them again"
            )

    def _move_to_parts(
        self, rows: MovedRows, new: Set[str], watched: Set[str], beginning: Beginning
    ) -> tuple[dict[str, int | None], dict[str, int | None]]:
        """Where each part begins in new tables (None: now): at the position that the consumer has
        itself, from a time when it was not shared, or where it was last known to lack the table;
        and how far rows of what it takes over were handed over at most."""
        own = rows.read(self._shared)
        rows.check_ended(own)
        selection = own.read_selection()
        if selection is not None and selection.streamed:
            raise ConfigurationError(
                f"consumer '{self._shared}' reads a change stream and cannot be divided into parts,"
                " which poll: choose another name"
            )
        parts = [rows.read(name) for name in self._names]
        # Clearing waits for parts that nobody has run yet, in tables that are watchable later.
        unknown = [each.name for each in parts if not each.exists]
        rows.write_state(unknown, MovedConsumer(beginning.selection, own.command))
        least = find_least([own, *parts], watched)
        standing = Standing(least, merge_states([own, *parts]).selection)
        taken = {name: own.positions[name] for name in sorted(new) if name in own.positions}
        starts = {name: choose_start(standing, name, beginning.start) for name in sorted(new)}
        rows.move_away(own, tuple(taken))
        return (
            starts | {name: each.position for name, each in taken.items()},
            {name: each.reached for name, each in taken.items()},
        )

    def _register_parts(
        self, transaction: Transaction, starts: Mapping[str, int | None], now: int
    ) -> Registered:
        """Every part begins there; None is now, or where something later was cleared, there."""
        floating = frozenset(name for name, at in starts.items() if at is None)
        begins = {name: now if at is None else at for name, at in starts.items()}
        registered = [
            self._positions.register_in(transaction, Registration(name, begins, floating))
            for name in self._names
        ]
        return registered[0]


def find_least(consumers: Iterable[StoredConsumer], watched: Set[str]) -> dict[str, int]:
    """The least position of a consumer and its parts in each of the tables that are watched."""
    least: dict[str, int] = {}
    for each in consumers:
        for name, stored in each.positions.items():
            if name in watched:
                least[name] = min(stored.position, least.get(name, stored.position))
    return least
