"""What schema changes put away: it goes once no read may ask for it."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from fixtures.engine_world import INSERT, UPDATE, exact_bound, open_database, query, write

from emulator.engine.clock import Clock, wall_micros
from emulator.errors import SpannerError

TABLE = "CREATE TABLE T (K INT64 NOT NULL, V STRING(MAX)) PRIMARY KEY (K)"
HOUR_MICROS = 3_600 * 1_000_000


class Wall:
    """A clock on the wall that a test puts forward."""

    def __init__(self) -> None:
        self.ahead_micros = 0

    def __call__(self) -> int:
        return wall_micros() + self.ahead_micros


def tables(path: Path) -> set[str]:
    """The tables of a database's file that hold rows of a user's tables."""
    connection = apsw.Connection(str(path))
    try:
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        return {str(name) for (name,) in names if str(name)[:2] in {"t$", "h$", "a$", "b$"}}
    finally:
        connection.close()


def test_dropped_columns_and_tables_go_with_the_retention_period(tmp_path: Path) -> None:
    wall, path = Wall(), tmp_path / "d.sqlite"
    with open_database(TABLE, path=path, clock=Clock(wall)) as database:
        write(database, INSERT, "T", "K V", (1, "a"))
        write(database, UPDATE, "T", "K V", (1, "b"))
        before = database.read_only(exact_bound(wall())).read_timestamp_micros
        database.update_ddl(["ALTER TABLE T DROP COLUMN V"])
        database.update_ddl(["DROP TABLE T", TABLE])
        assert tables(path) == {"t$T", "h$T", "a$1", "b$1", "a$2"}
        assert database.sweep() == 0
        assert query(database, "SELECT V FROM T", exact_bound(before)) == [("b",)]
        wall.ahead_micros = HOUR_MICROS
        assert database.sweep() == 2
        assert tables(path) == {"t$T", "h$T"}
        with pytest.raises(SpannerError, match="has exceeded the maximum timestamp staleness"):
            query(database, "SELECT V FROM T", exact_bound(before))


def test_a_longer_retention_does_not_bring_back_what_is_gone(tmp_path: Path) -> None:
    wall, path = Wall(), tmp_path / "d.sqlite"
    with open_database(TABLE, path=path, clock=Clock(wall)) as database:
        before = database.read_only(exact_bound(wall())).read_timestamp_micros
        write(database, INSERT, "T", "K V", (1, "a"))
        database.update_ddl(["DROP TABLE T", TABLE])
        wall.ahead_micros = HOUR_MICROS
        database.sweep()
        database.update_ddl(["ALTER DATABASE d SET OPTIONS (version_retention_period = '7d')"])
    refused = pytest.raises(SpannerError, match="has exceeded the maximum timestamp staleness")
    with open_database(path=path, clock=Clock(wall)) as database, refused:
        query(database, "SELECT V FROM T", exact_bound(before))


def test_a_file_of_before_the_timestamps_opens(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    with open_database(TABLE, path=path) as database:
        committed = write(database, INSERT, "T", "K V", (1, "a")).commit_timestamp_micros
    connection = apsw.Connection(str(path))
    connection.execute('ALTER TABLE "$statements" DROP COLUMN micros')
    connection.execute('DROP TABLE "$archives"')
    connection.close()
    with open_database("ALTER TABLE T DROP COLUMN V", path=path) as database:
        assert query(database, "SELECT * FROM T", exact_bound(committed)) == [(1, "a")]
        assert query(database, "SELECT * FROM T") == [(1,)]


def test_a_statement_that_fails_puts_nothing_away(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    with open_database(TABLE, path=path) as database:
        write(database, INSERT, "T", "K V", (1, None))
        with pytest.raises(SpannerError):
            database.update_ddl(["ALTER TABLE T ALTER COLUMN V BYTES(MAX) NOT NULL"])
        assert tables(path) == {"t$T", "h$T"}
        assert query(database, "SELECT * FROM T") == [(1, None)]
