"""A batch read of changes does not leave out silently what was cleared before its end."""

from __future__ import annotations

import logging

import pytest
from fixtures.consumers import write
from fixtures.singers import capture_of, fetch_now
from fixtures.spark import options_of, read_keys
from google.cloud.spanner_v1.database import Database

from watcher.consumers.clearing import Clearing
from watcher.consumers.positions import Position, SpannerPositions
from watcher.model.errors import ClearedError, ConfigurationError
from watcher.runners.spark.batch import make_batch_reader
from watcher.runners.spark.resolution import resolve_scan
from watcher.settings.spark_parsing import parse_source_options
from watcher.spanner.timestamps import format_timestamp


def clear(database: Database) -> None:
    """Everything up to now, behind a consumer that has delivered it."""
    positions = SpannerPositions(database)
    positions.create()
    before = positions.load_all("reader").get("Singers")
    positions.save(Position("reader", "Singers", fetch_now(database)), before)
    Clearing(database, capture_of(database).table, positions).clear()


def keys_between(database: Database, begin: int | str, end: int, **more: str) -> list[int]:
    """The keys that Spark reads for ``(begin, end]``."""
    options = options_of(
        database,
        startingTimestamp=begin if isinstance(begin, str) else format_timestamp(begin),
        endingTimestamp=format_timestamp(end),
        **more,
    )
    reader = make_batch_reader(resolve_scan(parse_source_options(options)))
    return read_keys(reader, reader.partitions())


def test_cleared_rows_are_refused_with_what_to_do(singers: Database) -> None:
    begin = fetch_now(singers)
    first = write(singers, 1)
    clear(singers)
    write(singers, 2)
    end = fetch_now(singers)
    with pytest.raises(ClearedError) as error:
        keys_between(singers, begin, end)
    for words in ("Singers", format_timestamp(begin), format_timestamp(first), "snapshotTimestamp"):
        assert words in str(error.value)
    assert error.value.exit_code == 7
    assert keys_between(singers, first, end) == [2]


def test_what_was_cleared_after_the_end_is_still_there_then(singers: Database) -> None:
    begin = fetch_now(singers)
    write(singers, 1)
    end = fetch_now(singers)
    assert keys_between(singers, begin, end) == [1]
    clear(singers)
    assert keys_between(singers, begin, end) == [1]
    write(singers, 2)
    clear(singers)
    assert keys_between(singers, begin, end) == [1]


def test_what_is_left_is_read_by_choice(
    singers: Database, caplog: pytest.LogCaptureFixture
) -> None:
    begin = fetch_now(singers)
    write(singers, 1)
    clear(singers)
    write(singers, 2)
    end = fetch_now(singers)
    with caplog.at_level(logging.WARNING, "watcher.spark"):
        assert keys_between(singers, begin, end, onClearedRows="ignore") == [2]
    assert "may have been cleared" in caplog.text
    assert keys_between(singers, "earliest", end) == [2]


def test_the_option_is_checked() -> None:
    where = {"project": "p1", "instance": "i1", "database": "d1", "table": "T"}
    with pytest.raises(ConfigurationError, match="onClearedRows"):
        parse_source_options(where | {"onClearedRows": "maybe"})
