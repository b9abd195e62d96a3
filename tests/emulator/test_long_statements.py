"""Long statements that call functions in Python take turns, and nobody is left waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from google.cloud.spanner_v1.database import Database

from emulator.engine.long_statements import LongStatement, Turns, calls_python

SECONDS = 30
ROWS = 4_000
HASHED = (
    "SELECT COUNT(*), BIT_XOR(FARM_FINGERPRINT(TO_HEX(SHA256(CAST(t.Id AS STRING))))) FROM T AS t"
)


class GoneError(Exception):
    """Nobody waits for the statement any more."""


def nobody_left() -> None:
    raise GoneError


def be_patient() -> None:
    """A check that never raises."""


def wait_for(turns: Turns, number: int) -> None:
    """Returns when so many wait for the turn."""
    while len(turns._places) < number:
        threading.Event().wait(0.001)


def start(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_the_turn_is_handed_over_in_the_order_of_asking() -> None:
    turns, order = Turns(), list[int]()
    turns.take(be_patient)

    def work(number: int) -> None:
        turns.take(be_patient)
        order.append(number)
        turns.give()

    threads = []
    for number in range(5):
        threads.append(start(lambda number=number: work(number)))  # type: ignore[misc]
        wait_for(turns, number + 1)
    assert order == []
    turns.give()
    for thread in threads:
        thread.join(SECONDS)
    assert order == [0, 1, 2, 3, 4]
    turns.take(nobody_left)  # it is free again


def test_who_is_gone_gives_its_place_up() -> None:
    turns, done = Turns(), threading.Event()
    turns.take(be_patient)

    def leave() -> None:
        with pytest.raises(GoneError):
            turns.take(nobody_left)
        done.set()

    leaving = start(leave)
    assert done.wait(SECONDS)
    leaving.join(SECONDS)
    turns.give()
    turns.take(nobody_left)


def test_who_is_gone_as_its_turn_comes_hands_it_on() -> None:
    turns = Turns()
    turns.take(be_patient)

    def get_and_go() -> None:
        turns.give()  # the turn comes while this check is about to raise
        raise GoneError

    with pytest.raises(GoneError):
        turns.take(get_and_go)
    turns.take(nobody_left)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ('SELECT count(*), sum("a") FROM "t"', False),
        ('SELECT fn_sha256("a") FROM "t"', True),
        ('SELECT COALESCE(cast_numeric_string("a"), 1) FROM "t"', True),
    ],
)
def test_only_functions_of_ours_take_turns(sql: str, expected: bool) -> None:
    assert calls_python(sql) is expected


def test_a_statement_that_pauses_lets_others_run() -> None:
    first, second = (LongStatement("SELECT fn_sha256(1)", be_patient) for _ in range(2))
    for _ in range(5):
        first.note_check()
    finished = threading.Event()

    def run() -> None:
        for _ in range(5):
            second.note_check()
        second.pause()
        finished.set()

    thread = start(run)
    assert not finished.wait(0.1)  # it waits while the first one runs
    first.pause()
    assert finished.wait(SECONDS)
    thread.join(SECONDS)


@pytest.mark.ddl("CREATE TABLE T (Id INT64 NOT NULL) PRIMARY KEY (Id)")
def test_queries_side_by_side_have_the_answers_of_one_alone(database: Database) -> None:
    with database.batch() as batch:
        batch.insert("T", ("Id",), [(n,) for n in range(ROWS)])

    def ask() -> list[object]:
        with database.snapshot() as snapshot:
            (row,) = snapshot.execute_sql(HASHED)
        return list(row)

    alone = ask()
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda _: ask(), range(12))) == [alone] * 12
