"""What a replica asks of Spanner for a window, apart from its rows."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from watcher.captures.poll import PollCapture
from watcher.model.errors import VersionExpiredError
from watcher.replica.copies import CopyState
from watcher.replica.cuts import Cut
from watcher.replica.rows import compare_columns
from watcher.spanner.schema_changes import read_restored_at
from watcher.spanner.sql import Statement
from watcher.spanner.timestamps import measure_age
from watcher.tables.added import read_column_steps
from watcher.tables.replaced import read_replaced

LOG = logging.getLogger("watcher.replica")


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


def needs_no_load(
    capture: PollCapture, state: CopyState, start: int, end: int, keep_dropped: bool
) -> bool:
    """Whether a copy lacks nothing but columns that the table got in the window, and whose value is
    NULL in every row that the window does not have; and has nothing more than columns that the
    table lost, if these are to be kept. A part of a table keeps none."""
    changes = compare_columns(state.schema, capture)
    table = capture.table
    keeps = keep_dropped and state.progress is None
    alike = not (changes.missing or changes.gone)
    if alike or changes.other or (changes.gone and not keeps) or state.end > start:
        return False
    # Between the copy's end and the start nothing may have happened to the table either.
    queries = capture.queries
    steps = read_column_steps(queries.address, table.name, state.end, end, table.dialect)
    if not steps.explain(changes.missing, changes.gone):
        return False
    later = read_column_steps(queries.address, table.name, start, end, table.dialect)
    return later.explain(changes.missing, ())


def find_replaced_copies(last: Cut | None, captures: Mapping[str, PollCapture]) -> set[str]:
    """Tables that were dropped and created again since the last cut, or have the name of one that
    was renamed: their copy is that of another table, whose rows nobody deletes. Of a database that
    was restored from a backup since, under its old name: all of them, as rows went back."""
    capture = next(iter(captures.values()), None)
    if last is None or capture is None:
        return set()
    known = {name: last.end for name in last.tables if name in captures}
    if read_restored_at(capture.queries.address) > last.end:
        LOG.warning("the database was restored from a backup: every table is loaded again")
        return set(known)
    return set(read_replaced(capture.queries.address, known, capture.table.dialect))
