"""Leases: who has lost one writes nothing and delivers nothing more; commands of operators."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from fixtures.consumers import (
    BeforeEveryCall,
    consumers_of,
    error_kinds,
    expire_lease,
    options,
    own_table_rows,
    singers_of,
    watcher_of,
    write,
    write_both,
)
from google.api_core.exceptions import Aborted
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from watcher import Change, Watcher
from watcher.captures.progress import BackfillProgress
from watcher.consumers import leases
from watcher.consumers.clearing import Clearing, Fence
from watcher.consumers.leases import Consumers, lease_clock
from watcher.consumers.positions import (
    TABLE,
    BackfillMove,
    Move,
    Position,
    Registration,
    SpannerPositions,
    consumers_table,
)
from watcher.consumers.states import ConsumerProgress, State
from watcher.model.errors import LeaseHeldError, LeaseLostError
from watcher.tables.discovery import discover_table

SECONDS = 60
AT = 4_102_444_800_000_000
"""A position above every row, so that there is something to clear."""
FIRST_PAGE, SECOND_PAGE = BackfillProgress(AT, None), BackfillProgress(AT, ("3",))


# What an instance that was taken over may still write: nothing.

Write = Callable[[Database, leases.Lease], object]
WRITES: dict[str, Write] = {
    "positions": lambda d, old: SpannerPositions(d).save_all(
        [Move(Position("name", "Singers", AT + 1), AT)], old.owner
    ),
    "positions that are there already": lambda d, old: SpannerPositions(d).save_all(
        [Move(Position("name", "Singers", AT), AT - 1)], old.owner
    ),
    "registration": lambda d, old: SpannerPositions(d).register(
        Registration("name", {"Albums": 5}), old.owner
    ),
    "taking back": lambda d, old: SpannerPositions(d).register(
        Registration("name", {"Singers": 2}, backwards=True), old.owner
    ),
    "removal": lambda d, old: SpannerPositions(d).remove("name", ["Singers"], old.owner),
    "progress of a backfill": lambda d, old: SpannerPositions(d).save_all(
        [], old.owner, [BackfillMove("Singers", SECOND_PAGE, FIRST_PAGE)], "name"
    ),
    "the end of a backfill": lambda d, old: SpannerPositions(d).save_all(
        [], old.owner, [BackfillMove("Singers", None, FIRST_PAGE)], "name"
    ),
    "a finished backfill": lambda d, old: SpannerPositions(d).save_all(
        [], old.owner, [BackfillMove("Albums", SECOND_PAGE, None)], "name"
    ),
    "an error": lambda d, old: consumers_of(d).store_error("name", ValueError("x"), old.owner),
    "a renewal": lambda d, old: consumers_of(d).renew(old, State.RUNNING, ConsumerProgress()),
    "a release": lambda d, old: consumers_of(d).release(old, State.RUNNING, ConsumerProgress()),
    "cleared-to": lambda d, old: Clearing(
        d, discover_table(d, "Singers"), SpannerPositions(d), fence=Fence("name", old.owner)
    ).clear(),
}


def test_an_instance_that_was_taken_over_writes_nothing(music: Database) -> None:
    positions, consumers = SpannerPositions(music), consumers_of(music)
    positions.create()
    old = consumers.acquire("name", 0.0)
    write(music, 1)
    start = Registration("name", {"Singers": AT}, filled=frozenset({"Singers"}))
    positions.register(start, old.owner)
    new = consumers.acquire("name", 3600.0)
    before = own_table_rows(music)
    for name, work in WRITES.items():
        with pytest.raises(LeaseLostError, match="taken over the consumer 'name'"):
            work(music, old)
        assert own_table_rows(music) == before, name
    consumers.release(new, State.NOT_STARTED, ConsumerProgress())
    before = own_table_rows(music)
    for name, work in WRITES.items():  # also when the new one has ended
        with pytest.raises(LeaseLostError):
            work(music, old)
        assert own_table_rows(music) == before, name


# Frozen, taken over, thawed.


class Freezer:
    """Freezes an instance inside of its callback; others act meanwhile, and it is thawed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, database: Database) -> None:
        self._monkeypatch, self._database = monkeypatch, database
        self._renewals: dict[str, threading.Lock] = defaultdict(threading.Lock)
        """Held by the renewal of an owner, or while it is frozen."""
        real = Consumers.renew

        def renew(consumers: Consumers, lease: leases.Lease, *more: Any) -> Any:
            with self._renewals[lease.owner]:
                return real(consumers, lease, *more)

        monkeypatch.setattr(Consumers, "renew", renew)
        self.seen: list[tuple[str, Any]] = []
        """Who was told what, in order."""

    def freeze(self, take_over: Callable[[], object]) -> None:
        """Longer than the lease. By the clock of this machine it has run out afterwards."""
        with self._database.snapshot() as snapshot:
            keys = KeySet(keys=[["name"]])
            ((owner,),) = snapshot.read(consumers_table(TABLE), ("Owner",), keys)
        with self._renewals[owner]:
            expire_lease(self._database, "name")
            take_over()
            self._monkeypatch.setattr(leases, "lease_clock", lambda: lease_clock() + 3600)

    @property
    def tellers(self) -> list[str]:
        return [teller for teller, _ in self.seen]


@pytest.fixture
def freezer(monkeypatch: pytest.MonkeyPatch, music: Database, sooner: None) -> Freezer:
    return Freezer(monkeypatch, music)


@pytest.fixture
def sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are tried again at once."""
    monkeypatch.setattr("watcher.runners.watcher_run.recovery.PAUSE_SECONDS_MAX", 0.01)


def successor(music: Database, freezer: Freezer, **more: object) -> None:
    """The second instance changes what the first one has not delivered yet, and delivers all."""
    write(music, *singers_of(music), name="new")
    second = Watcher(**options(music, consumer="name", lease="1h", **more))
    second.on_change(lambda change: freezer.seen.append(("second", change)))
    second.run_once()


@pytest.mark.parametrize("phase", ["backfill", "window"])
@pytest.mark.parametrize("refused", [False, True], ids=["next change", "next attempt"])
def test_a_thawed_instance_delivers_no_further_change(
    music: Database, freezer: Freezer, phase: str, refused: bool
) -> None:
    write(music, *range(9), name="old")
    more: dict[str, object] = {}
    if phase == "backfill":
        more = {"backfill": ["*"], "backfill_rows": 4, "start": "latest"}

    def take(change: Change) -> None:
        freezer.seen.append(("first", change))
        if freezer.tellers.count("first") == 3:
            freezer.freeze(lambda: successor(music, freezer, **more))
            if refused:
                raise RuntimeError("not now")

    first = Watcher(**options(music, consumer="name", lease="1h", **more))
    first.on_change(take)
    with pytest.raises(LeaseLostError):
        first.run_once()
    assert freezer.tellers[:3] == ["first"] * 3
    assert set(freezer.tellers[3:]) == {"second"}
    last = {c.key["SingerId"]: (c.new_values or {})["LastName"] for _, c in freezer.seen}
    assert last == singers_of(music)
    assert SpannerPositions(music).load_backfills("name") == {}


def test_a_lease_that_ran_out_is_stored_and_is_no_outage(
    music: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, sooner: None
) -> None:
    write(music, *range(9), name="old")
    delivered: list[Change] = []

    def freeze_once(change: Change) -> None:
        delivered.append(change)
        if len(delivered) == 3:
            monkeypatch.setattr(leases, "lease_clock", lambda: lease_clock() + 3600)

    watcher = Watcher(**options(music, consumer="name", lease="1h"))
    watcher.on_change(freeze_once)
    watcher.run_once()
    assert {change.key["SingerId"] for change in delivered} == set(range(9))
    assert error_kinds(music, "name") == ["LeaseExpiredError"]
    assert "does not answer" not in caplog.text


def test_a_run_that_cannot_release_its_lease_now_ends_well(
    music: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Everything is delivered and saved; the lease runs out by itself."""
    write(music, 1)

    def refuse(*_arguments: object) -> None:
        raise Aborted("retry the whole transaction")

    delivered: list[Change] = []
    watcher = Watcher(**options(music, consumer="name", lease="1h"))
    watcher.on_change(delivered.append)
    with monkeypatch.context() as patched:
        patched.setattr(Consumers, "release", refuse)
        watcher.run_once()
    assert [change.key["SingerId"] for change in delivered] == [1]
    assert "could not be released" in caplog.text


@pytest.mark.parametrize("frozen_in", [2, 3], ids=["in the middle", "before the last"])
def test_a_thawed_instance_delivers_no_further_transaction(
    music: Database, freezer: Freezer, frozen_in: int
) -> None:
    for key in range(4):
        write(music, key)

    def take(changes: tuple[Change, ...]) -> None:
        freezer.seen.append(("first", changes))
        if len(freezer.seen) == frozen_in:
            freezer.freeze(lambda: successor(music, freezer))

    first = Watcher(**options(music, consumer="name", transactions=True))
    first.on_transaction(take)
    with pytest.raises(LeaseLostError):
        first.run_once()
    assert freezer.tellers[:frozen_in] == ["first"] * frozen_in
    assert set(freezer.tellers[frozen_in:]) == {"second"}


def test_a_thawed_instance_delivers_no_further_batch(music: Database, freezer: Freezer) -> None:
    for key in range(4):
        write_both(music, key)

    def take(rows: object) -> None:
        freezer.seen.append(("first", rows))
        if len(freezer.seen) == 1:
            freezer.freeze(lambda: successor(music, freezer))

    first = Watcher(**options(music, consumer="name", tables=["*"]))
    first.on_batch(take)
    with pytest.raises(LeaseLostError):
        first.run_once()
    assert freezer.tellers[:1] == ["first"]
    assert set(freezer.tellers[1:]) == {"second"}


def test_transactions_come_whole_wherever_a_window_fails(
    music: Database, monkeypatch: pytest.MonkeyPatch, sooner: None
) -> None:
    """Once, at each of the checks, the lease has run out; nobody has taken the name."""
    for key in range(3):
        write_both(music, key)
    whole = [{("Albums", key), ("Singers", key)} for key in range(3)]
    for place in range(12):
        checks: list[int] = []

        def clock(place: int = place, checks: list[int] = checks) -> float:
            checks.append(0)
            return lease_clock() + (3600 if len(checks) == place else 0)

        monkeypatch.setattr(leases, "lease_clock", clock)
        seen: list[tuple[Change, ...]] = []
        more = {"consumer": f"name{place}", "tables": ["*"], "transactions": True}
        watcher = Watcher(**options(music, lease="1h", **more))
        watcher.on_transaction(seen.append)
        watcher.run_once()
        transactions = [[(c.table, *c.key.values()) for c in changes] for changes in seen]
        assert all(len(each) == 2 and set(each) in whole for each in transactions), place
        assert {tuple(sorted(each)) for each in transactions} == {tuple(sorted(w)) for w in whole}


# Taking a name.


def test_a_name_is_taken_together_with_its_lease(
    music: Database, intercept_calls: BeforeEveryCall
) -> None:
    """Nobody ever sees an owner without a lease: he would take the name from it."""
    consumers_of(music).create()
    seen: list[tuple[object, bool]] = []

    def look(_: str) -> None:
        with music.snapshot() as snapshot:
            query = f"SELECT Owner, LeaseUntil > CURRENT_TIMESTAMP() FROM {consumers_table(TABLE)}"
            seen.extend((row[0], row[1]) for row in snapshot.execute_sql(query))

    intercept_calls(look)
    watcher = watcher_of(music, [], consumer="name")
    watcher.run_once()
    watcher.run_once()
    validity = [lease for owner, lease in seen if owner is not None]
    assert validity
    assert all(validity)


def test_of_four_that_stand_by_one_wins_and_none_loses_its_lease(music: Database) -> None:
    consumers_of(music).create()
    for round_ in range(6):
        start, outcomes = threading.Barrier(4), []

        def stand_by(name: str = f"name{round_}", start: threading.Barrier = start) -> None:
            own = consumers_of(music)
            start.wait(SECONDS)
            try:
                lease = own.acquire(name, 3600.0)
            except LeaseHeldError:
                start.wait(SECONDS)
                outcomes.append("held")  # noqa: B023 (the threads end within the round)
                return
            start.wait(SECONDS)  # all have asked
            try:
                own.renew(lease, State.RUNNING, ConsumerProgress())
            except LeaseLostError:
                outcomes.append("lost")  # noqa: B023
            else:
                outcomes.append("won")  # noqa: B023

        threads = [threading.Thread(target=stand_by) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
        assert sorted(outcomes) == ["held", "held", "held", "won"]


def test_the_clock_of_leases_goes_on_while_the_machine_is_suspended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def read_clock(clock: int) -> float:
        asked.append(clock)
        return 3600.0 if clock == getattr(time, "CLOCK_BOOTTIME", None) else 0.0

    lease = leases.Lease("name", "owner", 15.0, renewed_at=0.0)
    monkeypatch.setattr(time, "clock_gettime", read_clock)
    assert lease.valid is not hasattr(time, "CLOCK_BOOTTIME")
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    assert lease.valid
    assert asked[-1] == time.CLOCK_MONOTONIC
