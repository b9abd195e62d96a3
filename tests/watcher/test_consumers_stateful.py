"""Positions, leases and clearing together: two consumers with two instances each, in any order."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable

import pytest
from fixtures.singers import SINGERS, address_of, make_watchable
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.instance import Instance
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from watcher.captures import Changed
from watcher.captures.changes import iterate_changes
from watcher.captures.poll import PollCapture
from watcher.captures.poll_tables import PolledTables
from watcher.consumers.clearing import Clearing
from watcher.consumers.leases import Consumers, Lease
from watcher.consumers.positions import TABLE, Registration, SpannerPositions
from watcher.consumers.states import ConsumerProgress, State
from watcher.model.change import Change
from watcher.model.errors import (
    ConfigurationError,
    LeaseHeldError,
    LeaseLostError,
    PositionConflictError,
)
from watcher.planning.limits import WindowLimit
from watcher.runners.delivery.instance import Instance as Holder
from watcher.runners.delivery.windows import WindowDelivery
from watcher.sinks.functions import CallbackSink
from watcher.spanner.queries import QueryClient
from watcher.tables.discovery import discover_table
from watcher.tables.shards import group_shards

CONSUMERS = ("one", "two")
INSTANCES = ("a", "b")
FOR_EVER, OVER_AT_ONCE = 3600.0, 0.0
NUMBERS = itertools.count()

consumers = st.sampled_from(CONSUMERS)
instances = st.sampled_from(INSTANCES)


class Instances(RuleBasedStateMachine):
    """The model: who holds each name, what is in the table, what each consumer has seen."""

    database: Database

    def __init__(self) -> None:
        super().__init__()
        self.positions = SpannerPositions(self.database)
        self.consumers = Consumers(self.database, TABLE)
        self.table = discover_table(self.database, "Singers")
        self.prefix = next(NUMBERS)
        self.leases: dict[tuple[str, str], Lease] = {}
        self.holder: dict[str, tuple[str, bool]] = {}
        self.written: dict[int, str] = {}
        self.cleared_before: dict[str, dict[int, str]] = {}
        self.seen: dict[str, dict[int, str]] = {consumer: {} for consumer in CONSUMERS}

    def name(self, consumer: str) -> str:
        return f"{consumer}-{self.prefix}"

    def open_delivery(self, consumer: str, instance: str) -> WindowDelivery:
        capture = PollCapture(
            QueryClient(address_of(self.database)),
            self.table,
            group_shards(self.table.shard_values, 2),
        )
        lease = self.leases[consumer, instance]

        def take(change: Change) -> None:
            key, name = change.key["SingerId"], (change.new_values or {})["LastName"]
            assert isinstance(key, int)
            assert isinstance(name, str)
            self.seen[consumer][key] = name

        def take_all(rows: Changed) -> None:
            for change in iterate_changes(rows, ""):
                take(change)

        sink = CallbackSink(take_all)
        return WindowDelivery(
            PolledTables([capture]),
            self.positions,
            Holder(self.name(consumer), lease.owner, lambda: None),
            sink,
            WindowLimit(rows=3),
        )

    @rule(keys=st.sets(st.integers(0, 9), min_size=1, max_size=4))
    def write(self, keys: set[int]) -> None:
        version = f"version {next(NUMBERS)}"
        with self.database.batch() as batch:
            rows = [(key, version) for key in keys]
            batch.insert_or_update("Singers", ("SingerId", "LastName"), rows)
        self.written |= dict.fromkeys(keys, version)

    @rule(consumer=consumers, instance=instances, lasts=st.booleans())
    def acquire(self, consumer: str, instance: str, lasts: bool) -> None:
        """A name is taken when it is free, one's own, or its lease is over."""
        holder = self.holder.get(consumer)
        mine = self.leases.get((consumer, instance))
        owner = mine.owner if mine is not None else None
        seconds = FOR_EVER if lasts else OVER_AT_ONCE
        try:
            lease = self.consumers.acquire(self.name(consumer), seconds, owner)
        except LeaseHeldError:
            assert holder is not None
            assert holder[0] != instance
            assert holder[1]
            return
        assert holder is None or holder[0] == instance or not holder[1]
        self.leases[consumer, instance] = lease
        self.holder[consumer] = (instance, lasts)
        self.positions.register(Registration(self.name(consumer), {"Singers": 0}), lease.owner)
        if consumer not in self.cleared_before:
            self.cleared_before[consumer] = self.read_cleared_names()

    @rule(consumer=consumers, instance=instances)
    def renew(self, consumer: str, instance: str) -> None:
        """Only the holder renews."""
        lease = self.leases.get((consumer, instance))
        if lease is None:
            return
        if self.holder[consumer][0] == instance:
            self.consumers.renew(lease, State.RUNNING, ConsumerProgress())
        else:
            with pytest.raises(LeaseLostError):
                self.consumers.renew(lease, State.RUNNING, ConsumerProgress())

    @rule(consumer=consumers, instance=instances)
    def poll(self, consumer: str, instance: str) -> None:
        """The holder's position advances; nobody else's does."""
        if (consumer, instance) not in self.leases:
            return
        before = self.positions.load_all(self.name(consumer))
        delivery = self.open_delivery(consumer, instance)
        if self.holder[consumer][0] == instance:
            end = delivery.poll().end
            assert self.positions.load_all(self.name(consumer)) == {"Singers": end}
            return
        with pytest.raises(PositionConflictError):
            delivery.poll()
        assert self.positions.load_all(self.name(consumer)) == before

    @rule()
    def clear(self) -> None:
        """Behind every consumer that is registered; refused while there is none."""
        clearing = Clearing(self.database, self.table, self.positions)
        try:
            clearing.clear()
        except ConfigurationError:
            assert not self.positions.list_all()

    def teardown(self) -> None:
        """Whoever holds the name in the end delivers the rest: nothing was lost to anybody."""
        for consumer, (instance, _) in self.holder.items():
            delivery = self.open_delivery(consumer, instance)
            while delivery.poll().more:
                pass
            assert {
                key: version
                for key, version in self.written.items()
                if self.seen[consumer].get(key) != version
                and self.cleared_before[consumer].get(key) != version
            } == {}
        for consumer in self.holder:
            self.positions.remove(self.name(consumer), ["Singers"])

    def read_cleared_names(self) -> dict[int, str]:
        """What a consumer that registers now cannot see any more."""
        with self.database.snapshot() as snapshot:
            query = "SELECT SingerId, LastName FROM Singers WHERE LastModified IS NULL"
            return {row[0]: row[1] for row in snapshot.execute_sql(query)}


def test_any_order_of_instances_and_clearing_loses_nothing(
    create_database: Callable[..., Database], instance: Instance
) -> None:
    assert os.environ["SPANNER_EMULATOR_HOST"]
    assert instance.name
    database = create_database(SINGERS)
    make_watchable(database)
    SpannerPositions(database).create()
    Consumers(database, TABLE).create()
    machine = type("OnOneDatabase", (Instances,), {"database": database})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=12,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
