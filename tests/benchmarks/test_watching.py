"""The benchmark of the watcher: it runs in a tiny size, and a loss or an invention is caught."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow as pa
import pytest

from benchmarks import watching
from benchmarks.watching import ROWS_A_COMMIT, backlog, compared, truth

COMMITS = [(0, 1_000), (ROWS_A_COMMIT, 2_000), (0, 3_000)]


@pytest.fixture(autouse=True)
def same_server_afterwards() -> Iterator[None]:
    before = os.environ.get("SPANNER_EMULATOR_HOST")
    yield
    os.environ.pop("SPANNER_EMULATOR_HOST", None)
    if before is not None:
        os.environ["SPANNER_EMULATOR_HOST"] = before


def delivered(table: pa.Table) -> pa.Table:
    return table.append_column("late", pa.array([500_000] * table.num_rows, pa.int64()))


def content() -> dict[str, object]:
    return {"seconds": 1.0, "commits": COMMITS}


def test_what_arrived_whole_is_accepted() -> None:
    result = compared(100, content(), delivered(truth(COMMITS)))
    assert (result.missing, result.invented) == (0, 0)
    assert result.written == 3 * ROWS_A_COMMIT
    assert result.latency_p50 == 0.5


def test_superseded_versions_may_be_left_out_and_newest_ones_may_not() -> None:
    newest = truth(COMMITS[1:])
    result = compared(100, content(), delivered(newest))
    assert (result.missing, result.superseded) == (0, ROWS_A_COMMIT)
    result = compared(100, content(), delivered(newest.slice(1)))
    assert result.missing == 1


def test_a_version_that_was_never_written_is_caught() -> None:
    more = pa.concat_tables([truth(COMMITS), pa.table({"key": [7], "at": [9_999]})])
    assert compared(100, content(), delivered(more)).invented == 1


def test_a_small_backlog_is_drained_and_counted() -> None:
    result = backlog(2_000)
    assert result.rows == 2_000
    assert result.scanned_per_row == 1.0


@pytest.mark.slow
def test_a_slow_writer_is_kept_up_with() -> None:
    result = watching.steady(rate=500, seconds=3)
    assert result.written == 1_500
    assert (result.missing, result.invented) == (0, 0)
