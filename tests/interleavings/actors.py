"""What actors do: the real components, against the world's database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from conformance.truth import Commit, Write
from interleavings.record import Delivered, Record
from interleavings.scheduler import Crashed, Ended, current_scheduler, current_unit
from interleavings.world import World
from watcher import Watcher
from watcher.captures.changes import iterate_changes
from watcher.consumers.clearing import Clearing
from watcher.consumers.positions import Position, SpannerPositions
from watcher.model.change import Change, Operation
from watcher.spanner.timestamps import to_micros
from watcher.tables.discovery import discover_table
from watcher.tables.values import WatchedTable

RESTART_SECONDS = 20.0
"""What is started again after a crash comes so much later: short leases have run out."""
LONG_SECONDS, SHORT_SECONDS = 1800.0, 5.0
"""Leases that nobody outlives, and those that run out when time passes. After a schedule the long
ones run out, too: that is within version retention, so a batch that is repeated reads the same."""

Put = tuple[str, int, str | None]
"""A table, a key, and the version that its row gets; None deletes it."""


@dataclass
class Run:
    """One schedule: its world, what happens in it, and what lives across restarts of its actors."""

    world: World
    record: Record = field(default_factory=Record)
    watched: dict[str, WatchedTable] = field(default_factory=dict)
    lives: dict[str, int] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    slow_callbacks: bool = False
    """Whether others may go on between two changes of a batch."""

    @property
    def database(self) -> Database:
        """The client of the actor that runs."""
        unit = current_unit()
        return self.world.database(unit.actor if unit is not None else "")

    def discover_once(self, name: str) -> WatchedTable:
        """How a table is watched, by the schema that the scenario's world began with."""
        if name not in self.world.watched:
            self.world.watched[name] = discover_table(self.world.database(), name)
        return self.world.watched[name]

    @property
    def source_options(self) -> dict[str, str]:
        """Where the database is, as options of the Spark source."""
        address = self.world.address
        return {
            "project": address.project,
            "instance": address.instance,
            "database": address.database,
        }

    # Writing.

    def write(self, *puts: Put, columns: Mapping[str, Any] | None = None) -> int:
        """A transaction; its commit timestamp."""
        more = dict(columns or {})
        with self.database.batch() as batch:
            for table, key, version in puts:
                if version is None:
                    batch.delete(table, KeySet(keys=[[key]]))
                else:
                    batch.insert_or_update(
                        table, ("Id", "Version", *more), [(key, version, *more.values())]
                    )
        at = to_micros(batch.committed)
        writes = tuple(Write((table, (key,)), version) for table, key, version in puts)
        self.record.truth.add(Commit(at, writes))
        for table, key, version in puts:
            if version is not None:
                self.record.values[(table, (key,)), at] = {"Id": key, "Version": version} | more
        return at

    # Watching.

    def watcher(self, consumer: str, **options: Any) -> Watcher:
        """A watcher that records what it delivers; its callback ``takes`` changes, batches or
        transactions. It is recorded under the name of ``reader``, whatever the consumer is called
        now."""
        takes, reader = options.pop("takes", "changes"), options.pop("reader", consumer)
        life = self.lives[consumer] = self.lives.get(consumer, 0) + 1
        unit = current_unit()
        instance = f"{unit.actor if unit is not None else 'end'}#{life}"
        options = {"lease": LONG_SECONDS} | options
        watcher = Watcher(database=self.world.address.path, consumer=consumer, **options)
        path = self.world.address.path

        def take(changes: Iterable[Change]) -> None:
            for change in changes:
                self._deliver(reader, instance, change)
            self._pause()

        def take_one(change: Change) -> None:
            take([change])

        if takes == "batches":
            watcher.on_batch(lambda batch: take(iterate_changes(batch, path)))
        elif takes == "transactions":
            watcher.on_transaction(take)
        else:
            watcher.on_change(take_one)
        return watcher

    def _pause(self) -> None:
        """A callback has taken what it got."""
        if current_unit() is not None and self.slow_callbacks:
            current_scheduler().gate("a callback is done")

    def _deliver(self, consumer: str, instance: str, change: Change) -> None:
        key = tuple(change.key.values())
        values = None if change.new_values is None else {**change.key, **change.new_values}
        row = (change.table, key)
        self.record.deliver(
            Delivered(
                self.record.part_of.get(row, consumer),
                instance,
                row,
                change.commit_timestamp,
                values,
                change.operation is Operation.READ,
                (change.window.start, change.window.end),
            )
        )

    def register(self, consumer: str, tables: Sequence[str]) -> None:
        """Registers a consumer now, as one that has delivered everything."""
        at = self.now()
        positions = SpannerPositions(self.database)
        for table in tables:
            positions.save(Position(consumer, table, at), None)

    def now(self) -> int:
        """The server's time."""
        return self.world.server.registry.clock.now()

    def clear(self, *tables: str) -> None:
        """Clears tables behind their consumers."""
        positions = SpannerPositions(self.database)
        for table in tables:
            Clearing(self.database, self.discover_once(table), positions).clear()

    # Living.

    def run_with_restarts(
        self, name: str, body: Callable[[], object], allowed: tuple[type, ...]
    ) -> None:
        """Runs an actor, and again after each crash. The judges report its errors, but those that
        are ``allowed`` just end it."""
        unit = current_unit()
        while True:
            try:
                body()
            except Crashed:
                assert unit is not None
                if unit.killed is Ended:
                    raise Ended from None
                unit.killed = None
                self.world.clock.advance(RESTART_SECONDS)
                continue
            except Exception as error:  # noqa: BLE001 (the judges blame it)
                if not isinstance(error, allowed):
                    self.record.endings.append((name, error))
            return

    def pass_time(self, seconds: float) -> None:
        """A step at which time passes: leases of whoever does not renew them run out."""
        scheduler = current_scheduler()
        scheduler.gate(f"{seconds:.0f} seconds pass")
        scheduler.clock.advance(seconds)
