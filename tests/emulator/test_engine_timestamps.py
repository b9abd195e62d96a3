"""Exact timestamps: a read at T shows every commit at or below T and none above, at any time."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import grpc
import pytest
from fixtures.engine_world import (
    INSERT,
    REPLACE,
    STRONG,
    UPDATE,
    UPSERT,
    WATCHED,
    Row,
    commit_dml,
    delete,
    exact_bound,
    open_database,
    query,
    read,
    run_query,
    write,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.engine.clock import Clock
from emulator.engine.database import Database
from emulator.engine.timeline import Timeline
from emulator.errors import SpannerError
from emulator.values.forms import micros_from_timestamp, timestamp_from_micros
from emulator.values.requests import BoundKind, Committed, TimestampBound

ALL = "SELECT SingerId, Name FROM Singers"


@pytest.fixture
def singers() -> Iterator[Database]:
    with open_database(*WATCHED) as database:
        yield database


class HistoryModel:
    """Every state that the table ever had, by the commit that made it."""

    def __init__(self) -> None:
        self.rows: dict[object, object] = {}
        self.states: list[tuple[int, dict[object, object]]] = []

    def record(self, committed: Committed) -> None:
        self.states.append((committed.commit_timestamp_micros, dict(self.rows)))

    def rows_at(self, micros: int) -> set[Row]:
        recorded = [rows for when, rows in self.states if when <= micros]
        return set((recorded[-1] if recorded else {}).items())  # type: ignore[arg-type]


def step(database: Database, model: HistoryModel, choice: random.Random) -> None:
    """One random commit, and what it does to the model."""
    key, name = choice.randrange(12), f"n{choice.randrange(1000)}"
    there = key in model.rows
    action = choice.randrange(7)
    if action == 0 and there:
        committed = delete(database, "Singers", (key,))
        del model.rows[key]
    elif action == 1 and there:
        committed = write(database, UPDATE, "Singers", "SingerId Name", (key, name))
        model.rows[key] = name
    elif action == 2:
        committed = write(database, REPLACE, "Singers", "SingerId Name", (key, name))
        model.rows[key] = name
    elif action == 3:
        _, committed = commit_dml(
            database,
            f"UPDATE Singers SET Name = '{name}' WHERE SingerId <= {key}",
            f"DELETE FROM Singers WHERE SingerId = {key}",
        )
        model.rows = {k: name if k <= key else v for k, v in model.rows.items() if k != key}  # type: ignore[operator]
    elif action == 4 and not there:
        _, committed = commit_dml(
            database,
            f"INSERT INTO Singers (SingerId, Name) VALUES ({key}, 'first')",
            f"UPDATE Singers SET Name = '{name}' WHERE SingerId = {key}",
        )
        model.rows[key] = name
    else:
        committed = write(database, UPSERT, "Singers", "SingerId Name", (key, name))
        model.rows[key] = name
    model.record(committed)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_every_timestamp_shows_the_state_of_its_time(seed: int) -> None:
    choice = random.Random(seed)
    with open_database(*WATCHED) as database:
        model = HistoryModel()
        for _ in range(60):
            step(database, model, choice)
        for micros, _ in model.states:
            for moment in (micros - 1, micros, micros + 1):
                assert set(query(database, ALL, exact_bound(moment))) == model.rows_at(moment), (
                    f"seed {seed}"
                )
            rows = read(database, "Singers", "SingerId Name", exact_bound(micros))
            assert rows == sorted(model.rows_at(micros)), f"seed {seed}"
        assert set(query(database, ALL)) == model.rows_at(2**62)


def test_commit_timestamps_grow_strictly_over_all_threads_and_databases() -> None:
    clock = Clock()
    stamps: list[list[int]] = [[] for _ in range(4)]
    with (
        open_database(*WATCHED, clock=clock) as first,
        open_database(*WATCHED, clock=clock) as second,
    ):

        def work(number: int) -> None:
            database = (first, second)[number % 2]
            for n in range(100):
                committed = write(database, UPSERT, "Singers", "SingerId", (number * 1000 + n,))
                stamps[number].append(committed.commit_timestamp_micros)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for own in stamps:
        assert own == sorted(own)
    everything = [micros for own in stamps for micros in own]
    assert len(set(everything)) == len(everything)


def test_reads_while_writing_see_each_commit_whole_or_not_at_all(singers: Database) -> None:
    """Every commit writes one number into all rows: a read must never see two numbers."""
    keys = range(20)
    log: list[tuple[int, int]] = []
    failures: list[str] = []
    done = threading.Event()

    def writer() -> None:
        for number in range(300):
            if number % 10 == 9:
                _, committed = commit_dml(
                    singers, f"UPDATE Singers SET Name = '{number}' WHERE SingerId < 100"
                )
            else:
                rows = [(key, str(number)) for key in keys]
                committed = write(singers, UPSERT, "Singers", "SingerId Name", *rows)
            log.append((committed.commit_timestamp_micros, number))
        done.set()

    seen: list[tuple[int, str]] = []

    def reader() -> None:
        while not done.is_set():
            transaction = singers.read_only(STRONG)
            for _ in range(2):
                rows = list(run_query(transaction, ALL).rows)
                numbers = {str(row[1]) for row in rows}
                if len(numbers) > 1 or (rows and len(rows) != len(keys)):
                    failures.append(f"{transaction.read_timestamp_micros}: {rows}")
                seen.append((transaction.read_timestamp_micros, numbers.pop() if numbers else ""))

    write(singers, UPSERT, "Singers", "SingerId Name", *((key, "x") for key in keys))
    threads = [threading.Thread(target=target) for target in (writer, reader, reader)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for micros, number in seen:
        recorded = [n for when, n in log if when <= micros]
        assert number == (str(recorded[-1]) if recorded else "x")


def test_a_strong_read_sees_what_was_acknowledged_before_it(singers: Database) -> None:
    for number in range(200):
        committed = write(singers, UPSERT, "Singers", "SingerId Name", (1, str(number)))
        transaction = singers.read_only(STRONG)
        assert transaction.read_timestamp_micros >= committed.commit_timestamp_micros
        assert list(run_query(transaction, ALL).rows) == [(1, str(number))]


def test_nothing_commits_at_or_below_a_timestamp_that_was_read(singers: Database) -> None:
    for number in range(200):
        served = singers.read_only(STRONG).read_timestamp_micros
        committed = write(singers, UPSERT, "Singers", "SingerId", (number,))
        assert committed.commit_timestamp_micros > served


def test_a_read_in_the_future_waits_and_then_sees_everything_before_it(singers: Database) -> None:
    write(singers, UPSERT, "Singers", "SingerId Name", (1, "a"))
    ahead = Clock().now() + 300_000
    rows = query(singers, ALL, exact_bound(ahead))
    assert Clock().now() >= ahead
    assert rows == [(1, "a")]
    after = write(singers, UPSERT, "Singers", "SingerId", (2,))
    assert after.commit_timestamp_micros > ahead


def test_a_read_at_an_exact_timestamp_waits_for_the_commit_below_it() -> None:
    clock = Clock()
    timeline = Timeline(clock)
    committing = timeline.begin_commit()
    assert timeline.strong() < committing
    readable = threading.Event()

    def wait() -> None:
        timeline.wait_until_readable(committing)
        readable.set()

    timeline.wait_until_readable(committing - 1)
    waiting = threading.Thread(target=wait)
    waiting.start()
    assert not readable.wait(0.05)
    timeline.end_commit()
    waiting.join()
    assert timeline.strong() >= committing


def test_a_clock_that_stands_still_gives_growing_timestamps() -> None:
    clock = Clock(wall=lambda: 1_000)
    assert [clock.next(), clock.next()] == [1_000, 1_001]
    assert clock.now() == 1_001
    assert clock.next() == 1_002
    clock.observe(5_000)
    assert clock.next() == 5_001


def test_a_read_past_version_collection_is_refused(singers: Database) -> None:
    two_hours = 7_200 * 1_000_000
    for bound in (
        exact_bound(Clock().now() - two_hours),
        TimestampBound(BoundKind.EXACT_STALENESS, two_hours),
    ):
        with pytest.raises(SpannerError, match="maximum timestamp staleness") as error:
            query(singers, ALL, bound)
        assert error.value.code is grpc.StatusCode.FAILED_PRECONDITION


def test_bounded_staleness_may_be_fresh(singers: Database) -> None:
    committed = write(singers, UPSERT, "Singers", "SingerId Name", (1, "a"))
    for bound in (
        TimestampBound(BoundKind.MAX_STALENESS, 10_000_000),
        TimestampBound(BoundKind.MIN_READ_TIMESTAMP, committed.commit_timestamp_micros),
    ):
        assert query(singers, ALL, bound) == [(1, "a")]


def test_history_is_removed_when_no_read_may_ask_for_it(singers: Database) -> None:
    for name in ("a", "b", "c"):
        last = write(singers, UPSERT, "Singers", "SingerId Name", (1, name))
    assert singers.sweep() == 0
    singers._cleared_to = last.commit_timestamp_micros
    assert singers.sweep() == 2
    assert query(singers, ALL, exact_bound(last.commit_timestamp_micros)) == [(1, "c")]
    with pytest.raises(SpannerError, match="maximum timestamp staleness"):
        query(singers, ALL, exact_bound(last.commit_timestamp_micros - 1))


def test_an_open_result_keeps_its_snapshot(singers: Database) -> None:
    write(singers, INSERT, "Singers", "SingerId", *((n,) for n in range(1000)))
    rows = run_query(singers.read_only(STRONG), "SELECT SingerId FROM Singers")
    first = next(rows.rows)
    commit_dml(singers, "DELETE FROM Singers WHERE TRUE")
    assert len([first, *rows.rows]) == 1000
    assert query(singers, "SELECT COUNT(*) FROM Singers") == [(0,)]


def test_a_result_can_be_closed_before_its_end(singers: Database) -> None:
    write(singers, INSERT, "Singers", "SingerId", *((n,) for n in range(1000)))
    for _ in range(50):
        rows = run_query(singers.read_only(STRONG), "SELECT SingerId FROM Singers")
        next(rows.rows)
        rows.close()
    assert len(singers._storage._readers) + len(singers._snapshots._kept) <= 17


@pytest.mark.parametrize("changed_before", [False, True])
def test_a_broken_stream_goes_on_in_the_same_order(singers: Database, changed_before: bool) -> None:
    """Rows move when they change (history comes last); a stream that is resumed must not see it."""
    write(singers, INSERT, "Singers", "SingerId Name", *((n, f"n{n}") for n in range(500)))
    micros = singers.read_only(STRONG).read_timestamp_micros
    if changed_before:
        write(singers, UPDATE, "Singers", "SingerId Name", *((n, "x") for n in range(0, 500, 5)))
    whole = query(singers, ALL, exact_bound(micros))
    rows = run_query(singers.read_only(exact_bound(micros)), ALL)
    got = [next(rows.rows) for _ in range(200)]
    rows.close()
    write(singers, UPDATE, "Singers", "SingerId Name", *((n, "y") for n in range(0, 500, 3)))
    delete(singers, "Singers", *((n,) for n in range(1, 500, 7)))
    again = list(run_query(singers.read_only(exact_bound(micros)), ALL).rows)
    assert got + again[200:] == whole


def test_a_query_ends_when_nobody_waits_for_it(singers: Database) -> None:
    write(singers, INSERT, "Singers", "SingerId", *((n,) for n in range(2000)))

    def raise_gone() -> None:
        raise SpannerError(grpc.StatusCode.CANCELLED, "gone")

    endless = "SELECT COUNT(*) FROM Singers a, Singers b, Singers c"
    with pytest.raises(SpannerError, match="gone"):
        list(run_query(singers.read_only(STRONG), endless, check=raise_gone).rows)
    assert query(singers, "SELECT COUNT(*) FROM Singers") == [(2000,)]


@given(micros=st.integers(-62_135_596_799_999_999, 253_402_300_799_999_999))
def test_timestamps_keep_their_microseconds_and_their_order(micros: int) -> None:
    assert micros_from_timestamp(timestamp_from_micros(micros)) == micros
    assert timestamp_from_micros(micros - 1) < timestamp_from_micros(micros)


def test_time_goes_on_from_a_last_commit_that_is_ahead_of_the_clock() -> None:
    wall = [1_000]
    clock = Clock(wall=lambda: wall[0])
    Timeline(clock).restart(601_000)
    assert clock.wall() == 601_000
    wall[0] += 50
    assert clock.wall() == 601_050
    assert clock.next() == 601_050
