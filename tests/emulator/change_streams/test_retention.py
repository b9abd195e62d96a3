"""What goes by itself: rows past their policy, and records past the stream's retention."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fixtures.engine_world import open_database

from emulator.engine.change_streams.reading import Caller, ReadArguments
from emulator.engine.clock import Clock, wall_micros
from emulator.engine.database import Database
from emulator.errors import SpannerError
from emulator.values.forms import timestamp_from_micros
from emulator.values.requests import MutationKind, RowWrite
from emulator.wrong import set_wrong

DAY = 86_400 * 1_000_000
CALLER = Caller(lambda: None, lambda _wake: None)


class Shifted:
    """A clock that can be set forward."""

    def __init__(self) -> None:
        self.ahead = 0

    def __call__(self) -> int:
        return wall_micros() + self.ahead


def read(database: Database, stream: str, start: int) -> Iterator[list[Any]]:
    """The data change records since a timestamp."""
    end = wall_of(database)
    roots = database.change_streams.read(
        ReadArguments(stream, start, end, None, 1000), None, CALLER
    )
    for _, text in [each for ready in roots for each in ready]:
        token = json.loads(text)[0][2][0][2][0][0]
        asked = ReadArguments(stream, start, end, token, 1000)
        for ready in database.change_streams.read(asked, None, CALLER):
            for _, record in ready:
                yield from json.loads(record)[0][0]


def wall_of(database: Database) -> int:
    return database.change_streams.clock.now()


def insert(database: Database, key: int, stamp: int) -> int:
    row = (key, timestamp_from_micros(stamp))
    written = database.write([RowWrite(MutationKind.INSERT, "T", ("Id", "At"), [row])])
    return written.commit_timestamp_micros


TABLE = "CREATE TABLE T (Id INT64, `At` TIMESTAMP) PRIMARY KEY (Id)"
EXPIRING = f"{TABLE}, ROW DELETION POLICY (OLDER_THAN(`At`, INTERVAL 1 DAY))"


def test_expired_rows_are_system_transactions_unless_they_are_left_out() -> None:
    streams = (
        "CREATE CHANGE STREAM S FOR ALL",
        "CREATE CHANGE STREAM Without FOR ALL OPTIONS (exclude_ttl_deletes = true)",
    )
    with open_database(EXPIRING, *streams) as database:
        start = insert(database, 1, wall_micros() - 2 * DAY)
        assert database.sweep() == 1
        records = {(r[7], r[11], r[12]) for r in read(database, "S", start)}
        assert records == {("INSERT", "", False), ("DELETE", "RowDeletionPolicy", True)}
        assert [r[7] for r in read(database, "Without", start)] == ["INSERT"]


@pytest.mark.parametrize("names", [(), ("stream-marks-ttl",)])
def test_the_mark_of_a_system_transaction_can_be_made_wrong(names: tuple[str, ...]) -> None:
    with open_database(EXPIRING, "CREATE CHANGE STREAM S FOR ALL") as database:
        start = insert(database, 1, wall_micros() - 2 * DAY)
        set_wrong(names)
        assert database.sweep() == 1
        set_wrong(())
        marks = [r[12] for r in read(database, "S", start) if r[7] == "DELETE"]
        assert marks == [not names]


def test_records_go_after_the_retention_period() -> None:
    wall = Shifted()
    stream = "CREATE CHANGE STREAM S FOR ALL OPTIONS (retention_period = '1d')"
    with open_database(TABLE, stream, clock=Clock(wall)) as database:
        early = insert(database, 1, 0)
        wall.ahead = 2 * DAY
        late = insert(database, 2, 0)
        database.sweep()
        with pytest.raises(SpannerError, match="too far in the past"):
            list(read(database, "S", early))
        assert [r[6][0][0] for r in read(database, "S", late)] == ['{"Id":"2"}']
