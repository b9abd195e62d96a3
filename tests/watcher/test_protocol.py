"""Registration by the rules of docs/protocol.md: what others do in between never loses a row."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import Any, cast

import pytest
from fixtures.consumers import (
    ALBUMS,
    BeforeEveryCall,
    Query,
    clear,
    clear_bounds,
    names_by_key,
    own_table_rows,
    positions_with_times,
    singers_of,
    watcher_of,
    write,
)
from fixtures.singers import SINGERS, make_watchable
from google.cloud.spanner_v1.database import Database

from watcher import Change
from watcher.consumers.leases import Consumers
from watcher.consumers.positions import (
    Move,
    Position,
    Registered,
    Registration,
    SpannerPositions,
    consumers_table,
)
from watcher.consumers.positions.unregister import unregister
from watcher.consumers.positions.values import TABLE
from watcher.spanner.timestamps import format_timestamp, to_micros

SECOND = 1_000_000
LONG_AGO = "1970-01-02T00:00:00Z"
DAY = 86_400 * SECOND


class Overtaker:
    """Once, at a step of a consumer that starts, somebody else acts first."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.registered: list[Registered] = []

    def act_before(self, owner: type, step: str, consumer: str, act: Callable[[], object]) -> None:
        """``step`` is a method whose first argument names the consumer."""
        real, acts = getattr(owner, step), [act]

        def overtaken(this: object, named: str | Registration, *more: object) -> object:
            name = named.consumer if isinstance(named, Registration) else named
            if name == consumer and acts:
                acts.pop()()
            result = real(this, named, *more)
            if isinstance(result, Registered) and name == consumer:
                self.registered.append(result)
            return result

        self._monkeypatch.setattr(owner, step, overtaken)

    @property
    def start(self) -> int:
        """Where the consumer was registered first."""
        return self.registered[0].positions["Singers"]


@pytest.fixture
def overtaker(monkeypatch: pytest.MonkeyPatch) -> Overtaker:
    return Overtaker(monkeypatch)


def change_and_clear(database: Database, *keys: int) -> None:
    """Rows change, another consumer delivers them and clears. The consumer that starts has not
    stored what it watches, as earlier releases did not, and those of change streams."""
    at = write(database, *keys, name="changed")
    watcher_of(database, [], consumer="fast").run_once()
    with database.batch() as batch:
        names = [row[0] for row in own_table_rows(database)[consumers_table(TABLE)]]
        batch.update(consumers_table(TABLE), ("Consumer", "Selection"), [(n, None) for n in names])
    clear(database)
    assert clear_bounds(database)["Singers"] == at


def test_a_consumer_that_starts_now_begins_above_what_was_cleared_meanwhile(
    music: Database, overtaker: Overtaker
) -> None:
    write(music, 1)
    overtaker.act_before(
        SpannerPositions, "register", "late", lambda: change_and_clear(music, 2, 3)
    )
    seen: list[Change] = []
    watcher_of(music, seen, consumer="late", start="latest").run_once()
    assert overtaker.start >= clear_bounds(music)["Singers"]
    write(music, 4)
    watcher_of(music, seen, consumer="late", start="latest").run_once()
    assert names_by_key(seen) == {4: ["name"]}


def test_a_snapshot_is_no_older_than_what_was_cleared_before_it_is_registered(
    music: Database, overtaker: Overtaker
) -> None:
    write(music, 1, 2, 3)
    overtaker.act_before(
        SpannerPositions, "register", "late", lambda: change_and_clear(music, 2, 4)
    )
    seen: list[Change] = []
    watcher_of(music, seen, consumer="late", start="latest", backfill=["*"]).run_once()
    assert {key: names[-1] for key, names in names_by_key(seen).items()} == singers_of(music)


@pytest.mark.parametrize("step", [(Consumers, "acquire"), (SpannerPositions, "register")])
def test_a_query_that_starts_now_begins_above_what_was_cleared_meanwhile(
    music: Database, overtaker: Overtaker, step: tuple[type, str]
) -> None:
    write(music, 1)
    overtaker.act_before(*step, "late", lambda: change_and_clear(music, 2, 3))
    overtaker.act_before(SpannerPositions, "register", "nobody", lambda: None)
    query = Query(music, "late", startingTimestamp="latest")
    end = query.plan()
    begin = cast(int, query.reader._planner.offsets.parse(end).began_at)
    assert (
        clear_bounds(music)["Singers"]
        <= begin
        == SpannerPositions(music).load_all("late")["Singers"]
    )
    query.finish(end)
    write(music, 4)
    assert query.run() == {4: ["name"]}
    query.reader.stop()


@pytest.mark.parametrize("step", [(Consumers, "acquire"), (SpannerPositions, "register")])
def test_a_query_over_everything_misses_nothing_that_was_cleared_meanwhile(
    music: Database, overtaker: Overtaker, step: tuple[type, str]
) -> None:
    write(music, 1, 2, 3)
    overtaker.act_before(*step, "late", lambda: change_and_clear(music, 2, 4))
    query = Query(music, "late", startingTimestamp="earliest")
    assert {key: names[-1] for key, names in query.run().items()} == singers_of(music)
    query.reader.stop()


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_query_is_not_taken_back_below_what_its_former_instance_delivered_and_cleared(
    music: Database, overtaker: Overtaker, start: str
) -> None:
    """A new checkpoint under the old name: between the timestamp at which it starts and its lease
    the former instance delivers, the rows are cleared, and it ends."""
    write(music, 1)
    former = Query(music, "name", startingTimestamp="1970-01-02T00:00:00Z")
    former.run()

    def deliver_clear_and_end() -> None:
        write(music, 1, 2, name="changed")
        former.run()
        clear(music)
        former.reader.stop()

    query = Query(music, "name", startingTimestamp=start)
    overtaker.act_before(Consumers, "acquire", "name", deliver_clear_and_end)
    query.reader.prepareForTriggerAvailableNow()
    end = query.plan()
    assert SpannerPositions(music).load_all("name")["Singers"] >= clear_bounds(music)["Singers"]
    query.finish(end)
    query.reader.stop()
    write(music, 3)
    again = Query(music, "name", startingTimestamp=start)
    again.offset, again.names = query.offset, query.names
    expected = {1: "changed", 2: "changed", 3: "name"} if start == "earliest" else {3: "name"}
    assert {key: names[-1] for key, names in again.run().items()} == expected
    again.reader.stop()


@pytest.mark.parametrize("kind", ["watcher", "query"])
def test_a_consumer_that_starts_below_what_was_cleared_is_told_both_timestamps(
    music: Database, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    change_and_clear(music, 1)
    caplog.set_level(logging.WARNING, "watcher")
    if kind == "watcher":
        watcher_of(music, [], consumer="late", start=LONG_AGO).run_once()
    else:
        query = Query(music, "late", startingTimestamp=LONG_AGO)
        query.plan()
        query.reader.stop()
    (text,) = [r.getMessage() for r in caplog.records if "starts reading table" in r.getMessage()]
    assert "consumer 'late' starts reading table Singers at 1970-01-02T00:00:00" in text
    assert f"rows up to {format_timestamp(clear_bounds(music)['Singers'])} may have been" in text


# Taking positions back.


def test_positions_are_taken_back_in_one_commit_and_only_those_of_the_query(
    create_database: Callable[..., Database], intercept_calls: BeforeEveryCall
) -> None:
    songs = "CREATE TABLE Songs (SongId INT64) PRIMARY KEY (SongId)"
    database = create_database(SINGERS, ALBUMS, songs)
    make_watchable(database, "Singers", "Albums", "Songs")
    positions = SpannerPositions(database)
    positions.create()
    late = write(database, 1)
    moves = [Move(Position("name", t, late), None) for t in ("Singers", "Albums", "Songs")]
    positions.save_all(moves)
    kept = positions_with_times(database, "name")
    seen: list[dict[str, Any]] = []
    intercept_calls(lambda _: seen.append(positions_with_times(database, "name")))
    query = Query(database, "name", tables="Singers,Albums", startingTimestamp=LONG_AGO)
    query.plan()
    query.reader.stop()
    changed = [each for each in seen if each != kept]
    assert changed
    assert all(each["Songs"] == kept["Songs"] for each in changed)
    assert all(each["Singers"] == each["Albums"] == changed[0]["Albums"] for each in changed)
    assert to_micros(changed[0]["Singers"][0]) == DAY


def test_no_clearing_between_two_calls_of_a_query_that_starts_earlier_passes_it(
    music: Database, intercept_calls: BeforeEveryCall, caplog: pytest.LogCaptureFixture
) -> None:
    """What is not delivered was cleared before it came, and it says so."""
    caplog.set_level(logging.WARNING, "watcher")
    positions = SpannerPositions(music)
    positions.create()
    calls: list[str] = []
    places: list[int] = []

    def clear_at_its_place(_: str) -> None:
        if len(calls) == places[-1]:
            clear(music)
        calls.append("")

    intercept_calls(clear_at_its_place)
    for place in itertools.count():
        key, name = place + 1, f"name-{place}"
        caplog.clear()
        calls.clear()
        places.append(-1)
        at = write(music, key)
        positions.save(Position(name, "Singers", at), None)
        query = Query(music, name, startingTimestamp=format_timestamp(at - 1))
        places.append(len(calls) + place)
        delivered = query.run(1)
        made = len(calls)
        query.reader.stop()
        warned = any("may have been cleared" in record.getMessage() for record in caplog.records)
        assert (delivered == {key: ["name"]}) is not warned, f"clearing before call {place}"
        unregister(music, TABLE, name)
        if made <= places[-1]:
            break
    assert place > 5
