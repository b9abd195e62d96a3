"""Which windows are counted before they are read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures import TableRows
from watcher.captures.write_rate import WriteRate
from watcher.model.window import Window
from watcher.tables.values import WatchedTable

TABLE = WatchedTable("T", (("Id", Type(TypeCode.INT64)),), ("Id",), "At", None, None, None)
SECOND = 1_000_000
START = 1_700_000_000 * SECOND
LIMIT = 1_000


def read_window(rate: WriteRate, rows: int, micros: int, cut: bool = False) -> None:
    """A window that was counted, then read in two batches."""
    window = Window(START, START + micros)
    parts = [rows // 2, rows - rows // 2]
    batches = (TableRows(TABLE, window, pa.record_batch({"Id": range(part)})) for part in parts)
    rate.note_cut(cut)
    assert sum(each.batch.num_rows for each in rate.follow({"T": window}, batches)) == rows


def counts(rate: WriteRate, micros: int) -> bool:
    """Whether a window so long is counted."""
    return rate.must_count({"T": Window(START, START + micros)}, LIMIT)


@pytest.mark.parametrize(
    ("rows", "micros", "counted"),
    [
        (100, SECOND, False),
        (500, SECOND, False),
        (501, SECOND, True),
        (250, 2 * SECOND, False),
        (251, 2 * SECOND, True),
        (0, 2 * SECOND, False),
        (0, 2 * SECOND + 1, True),
    ],
)
def test_a_window_is_counted_where_twice_its_rows_would_be_too_many(
    rows: int, micros: int, counted: bool
) -> None:
    rate = WriteRate()
    assert counts(rate, micros)
    read_window(rate, rows, SECOND)
    assert counts(rate, micros) is counted


def test_behind_a_cut_every_window_is_counted() -> None:
    rate = WriteRate()
    read_window(rate, 10, 2 * SECOND, cut=True)
    assert counts(rate, 10)
    read_window(rate, 10, 2 * SECOND)
    assert not counts(rate, 10)


def test_of_a_long_window_nothing_follows() -> None:
    rate = WriteRate()
    read_window(rate, 10, 2 * SECOND + 1)
    assert counts(rate, 10)


def test_of_a_window_that_was_left_nothing_follows() -> None:
    rate = WriteRate()
    read_window(rate, 10, SECOND)
    window = Window(START, START + SECOND)
    batch = TableRows(TABLE, window, pa.record_batch({"Id": [1]}))
    next(rate.follow({"T": window}, iter([batch, batch])))
    assert counts(rate, 10)


def test_a_window_of_several_tables_lasts_from_the_first_start_to_the_last_end() -> None:
    rate = WriteRate()
    read_window(rate, 500, SECOND)
    late = Window(START + SECOND // 2, START + SECOND)
    assert not rate.must_count({"A": late, "B": late}, LIMIT)
    assert rate.must_count({"A": late, "B": Window(START - 1, START)}, LIMIT)
