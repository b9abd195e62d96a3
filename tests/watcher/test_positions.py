"""Positions are compared and set: only one of those who expect the same position moves it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from google.cloud.spanner_v1.database import Database

from watcher.consumers.leases import Consumers
from watcher.consumers.positions import (
    TABLE,
    MemoryPositions,
    Move,
    Position,
    Positions,
    SpannerPositions,
)
from watcher.model.errors import PositionConflictError, WatcherError


@pytest.fixture(params=["memory", "spanner"])
def positions(request: pytest.FixtureRequest, database: Database) -> Positions:
    if request.param == "memory":
        return MemoryPositions()
    kept = SpannerPositions(database)
    kept.create()
    kept.create()
    return kept


def test_a_position_is_kept_to_the_microsecond(positions: Positions) -> None:
    position = Position("reader", "Singers", 1_700_000_000_123_457)
    positions.save(position, None)
    assert positions.load("reader", "Singers") == position
    assert positions.load("reader", "Albums") is None
    assert positions.load("another", "Singers") is None


def test_who_expects_another_position_is_refused_and_changes_nothing(positions: Positions) -> None:
    positions.save(Position("reader", "Singers", 10), None)
    for expected in (None, 9):
        with pytest.raises(PositionConflictError, match="another instance"):
            positions.save(Position("reader", "Singers", 20), expected)
    assert positions.load("reader", "Singers") == Position("reader", "Singers", 10)


def test_a_position_never_goes_back(positions: Positions) -> None:
    positions.save(Position("reader", "Singers", 10), None)
    with pytest.raises(WatcherError, match="go back"):
        positions.save(Position("reader", "Singers", 9), 10)


def test_of_many_who_advance_at_once_one_wins(positions: Positions) -> None:
    positions.save(Position("reader", "Singers", 0), None)

    def advance(to: int) -> bool:
        try:
            positions.save(Position("reader", "Singers", to), 0)
        except PositionConflictError:
            return False
        return True

    with ThreadPoolExecutor(6) as threads:
        won = list(threads.map(advance, range(1, 7)))
    assert won.count(True) == 1
    winner = positions.load("reader", "Singers")
    assert winner is not None
    assert winner.micros == won.index(True) + 1


def test_all_positions_of_all_consumers_are_listed(positions: Positions) -> None:
    positions.save(Position("a", "Singers", 1), None)
    positions.save(Position("b", "Singers", 2), None)
    positions.save(Position("a", "Albums", 3), None)
    assert set(positions.list_all()) == {
        Position("a", "Singers", 1),
        Position("b", "Singers", 2),
        Position("a", "Albums", 3),
    }


def test_a_save_whose_answer_was_lost_may_be_tried_again(database: Database) -> None:
    consumers = Consumers(database, TABLE)
    consumers.create()
    positions = SpannerPositions(database)
    positions.create()
    mine = consumers.acquire("reader", 60, "me").owner
    for _ in range(2):
        positions.save_all([Move(Position("reader", "Singers", 10), None)], mine)
    with pytest.raises(PositionConflictError, match="should be"):
        positions.save_all([Move(Position("reader", "Singers", 20), None)], mine)
    with pytest.raises(PositionConflictError, match="has taken over"):
        positions.save_all([Move(Position("reader", "Singers", 10), None)], "another")
