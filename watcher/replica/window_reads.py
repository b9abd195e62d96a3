"""What a replica asks of Spanner for a window, apart from its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from watcher.captures.poll import PollCapture
from watcher.model.errors import VersionExpiredError
from watcher.spanner.sql import Statement
from watcher.spanner.timestamps import measure_age


def is_readable(capture: PollCapture, at: int) -> bool:
    """Whether versions of a timestamp are still kept; then they were until now."""
    table = capture.table
    statement = Statement(f"SELECT 1 FROM {table.sql.quote(table.name)} LIMIT 1")  # noqa: S608
    try:
        capture.queries.stream.query_numbers(statement, at)
    except VersionExpiredError:
        return False
    return True


def whole_capture(capture: PollCapture) -> PollCapture:
    """The capture that reads the table whole. The timestamps of change sets are in another
    table: its rows have none."""
    if capture.table.change_sets is None:
        return capture
    table = replace(capture.table, change_sets=None, timestamp_column="", shard_column=None)
    return replace(capture, table=table)


def measure_lag(captures: Mapping[str, PollCapture], end: int) -> float:
    """How many seconds ago the end of a window was, by Spanner's time where it is known."""
    times = (capture.queries.stream.estimate_now() for capture in captures.values())
    return measure_age(end, next(filter(None, times), None))
