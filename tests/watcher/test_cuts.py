"""What it costs to find where a window is cut: the index is not counted to its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest
from fixtures.singers import SINGERS, capture_of, make_watchable
from google.api_core.exceptions import GoogleAPICallError
from google.cloud.spanner_v1 import ExecuteSqlRequest, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from watcher.captures import sampling, statements
from watcher.captures.poll import PollCapture, Wait
from watcher.captures.poll_tables import PolledTables
from watcher.captures.sampling import SampledCuts
from watcher.model.window import Window
from watcher.planning.limits import WindowLimit
from watcher.spanner.requests import build_param_types
from watcher.spanner.timestamps import to_micros

PROFILE = ExecuteSqlRequest.QueryMode.PROFILE
ROWS = 200


def write(database: Database, first: int, count: int) -> int:
    """Rows of one commit; its timestamp."""
    with database.batch() as batch:
        rows = [(key, "x") for key in range(first, first + count)]
        batch.insert_or_update("Singers", ("SingerId", "LastName"), rows)
    assert batch.committed is not None
    return to_micros(batch.committed)


def counts(database: Database) -> int:
    """How many counts to the end of a window the server was asked for."""
    query = (
        "SELECT SUM(EXECUTION_COUNT) FROM SPANNER_SYS.QUERY_STATS_TOP_HOUR"
        " WHERE STARTS_WITH(TEXT, 'SELECT COUNT(*) FROM `Singers`')"
    )
    with database.snapshot() as snapshot:
        return next(iter(snapshot.execute_sql(query)))[0] or 0


def test_a_count_with_a_limit_reads_no_further(singers: Database) -> None:
    capture = capture_of(singers)
    write(singers, 0, ROWS)
    whole, _ = capture.look(0)
    assert capture.start_count(whole, 8)() == 8
    assert capture.start_count(whole, ROWS + 1)() == ROWS
    query = statements.count_window_up_to(capture.table, whole, 8)
    types = build_param_types(query)
    with singers.snapshot() as snapshot:
        results = snapshot.execute_sql(query.sql, query.params, types, query_mode=PROFILE)
        assert [row[0] for row in results] == [8]
        assert int(results.stats.query_stats["rows_scanned"]) <= 8


def test_a_commit_above_the_limit_is_looked_at_once(singers: Database) -> None:
    capture = capture_of(singers)
    committed = write(singers, 0, ROWS)
    write(singers, ROWS, ROWS)
    whole, _ = capture.look(0)
    before = counts(singers)
    assert PolledTables([capture]).cut({"Singers": whole}, WindowLimit(rows=7)) == committed
    assert counts(singers) == before + 1


def test_far_behind_the_rest_is_not_counted(singers: Database) -> None:
    capture = capture_of(singers)
    committed = [write(singers, first, 5) for first in range(0, ROWS, 5)]
    whole, _ = capture.look(0)
    before = counts(singers)
    assert PolledTables([capture]).cut({"Singers": whole}, WindowLimit(rows=10)) == committed[1]
    assert counts(singers) == before + 1


SHARDS = 8
COMMIT = 500
MAX_ROWS = 4_096
WRITE = (
    "INSERT OR UPDATE INTO Singers (SingerId, LastName)"
    " SELECT k, 'x' FROM UNNEST(GENERATE_ARRAY(@low, @high)) AS k"
)


def commit(database: Database, low: int, rows: int = COMMIT) -> None:
    """A transaction that writes so many rows."""

    def work(transaction: Transaction) -> None:
        values = {"low": low, "high": low + rows - 1}
        types = dict.fromkeys(values, param_types.INT64)
        transaction.execute_update(WRITE, params=values, param_types=types)

    database.run_in_transaction(work)


def read_windows(
    tables: PolledTables, start: int = 0, max_rows: int = MAX_ROWS
) -> list[dict[int, int]]:
    """Everything, window by window: the commit timestamp of each key."""
    windows: list[dict[int, int]] = []
    end = tables.look({"Singers": start}).end
    while start < end:
        cut = tables.cut({"Singers": Window(start, end)}, WindowLimit(rows=max_rows))
        rows: dict[int, int] = {}
        for each in tables.read({"Singers": Window(start, cut)}):
            keys = each.batch.column("SingerId").to_pylist()
            stamps = each.batch.column("_commit_timestamp").cast(pa.int64()).to_pylist()
            rows |= dict(zip(keys, stamps, strict=True))
        windows.append(rows)
        start = cut
    return windows


def shard_and_capture(database: Database, shards: int = SHARDS) -> PollCapture:
    make_watchable(database, shards=shards)
    return capture_of(database)


@pytest.mark.ddl(SINGERS)
def test_a_backlog_costs_an_index_entry_a_row_and_two_shards_beside_its_rows(
    database: Database,
) -> None:
    capture, rows = shard_and_capture(database), 40_000
    for low in range(0, rows, COMMIT):
        commit(database, low)
    stream = capture.queries.stream
    stream.counts_scans, before = True, stream.scanned_rows
    windows = read_windows(PolledTables([capture]))
    scanned = stream.scanned_rows - before
    assert sum(map(len, windows)) == rows
    assert {key for window in windows for key in window} == set(range(rows))
    assert max(len(window) for window in windows) <= MAX_ROWS * 1.1
    assert len(windows) <= 2 * rows / MAX_ROWS
    assert rows < scanned <= rows * (1 + 2 / SHARDS + 0.05)


@pytest.mark.ddl(SINGERS)
def test_rows_that_have_changed_again_do_not_make_windows_larger(database: Database) -> None:
    capture, rows = shard_and_capture(database), 6_000
    for _ in range(6):
        for low in range(0, rows, COMMIT):
            commit(database, low)
    windows = read_windows(PolledTables([capture]))
    assert max(len(window) for window in windows) <= MAX_ROWS * 1.2
    newest: dict[int, int] = {}
    for window in windows:
        assert all(newest.get(key, 0) < stamp for key, stamp in window.items())
        newest |= window
    with database.snapshot() as snapshot:
        kept = snapshot.execute_sql("SELECT SingerId, LastModified FROM Singers")
        assert newest == {key: to_micros(stamp) for key, stamp in kept}


@pytest.mark.ddl(SINGERS)
def test_one_commit_above_the_limit_is_a_window_of_its_own(database: Database) -> None:
    capture = shard_and_capture(database)
    rows = 3 * MAX_ROWS
    commit(database, 0, rows)
    commit(database, rows)
    assert [len(window) for window in read_windows(PolledTables([capture])) if window] == [
        rows,
        COMMIT,
    ]


BURST = 5_000
BURST_LIMIT = 1_000
JAVA_SHARDS = 19
"""As ``bench run java`` has them: ``equal_rows``, ``equal_limit``, ``shards``."""


def count_scans(capture: PollCapture, read: Callable[[], list[dict[int, int]]]) -> tuple[int, int]:
    """How many rows were scanned for how many that came."""
    stream = capture.queries.stream
    stream.counts_scans, before = True, stream.scanned_rows
    rows = sum(map(len, read()))
    return stream.scanned_rows - before, rows


@pytest.mark.ddl(SINGERS)
def test_commits_above_the_limit_cost_at_most_two_scans_a_row(database: Database) -> None:
    capture = shard_and_capture(database, JAVA_SHARDS)
    for low in range(0, 3 * BURST, BURST):
        commit(database, low, BURST)
    tables = PolledTables([capture])
    scanned, rows = count_scans(capture, lambda: read_windows(tables, 0, BURST_LIMIT))
    assert rows == 3 * BURST
    assert scanned <= 2 * rows


@pytest.mark.ddl(SINGERS)
def test_who_keeps_up_with_commits_above_the_limit_scans_at_most_two_rows_a_row(
    database: Database,
) -> None:
    capture = shard_and_capture(database, JAVA_SHARDS)
    tables = PolledTables([capture])

    def keep_up() -> list[dict[int, int]]:
        windows, start = list[dict[int, int]](), 0
        for low in range(0, 3 * BURST, BURST):
            commit(database, low, BURST)
            for first in range(low, low + 1_500, 500):
                write(database, first, 500)
                windows += read_windows(tables, start, BURST_LIMIT)
                start = max(max(window.values(), default=0) for window in windows)
        return windows

    scanned, rows = count_scans(capture, keep_up)
    assert rows >= 3 * BURST
    assert scanned <= 2 * rows


@pytest.mark.parametrize("reach", [1, sampling.REACH_MIN])
@pytest.mark.ddl(SINGERS)
def test_a_burst_at_the_start_of_a_window_does_not_make_the_next_ones_empty(
    database: Database, monkeypatch: pytest.MonkeyPatch, reach: int
) -> None:
    monkeypatch.setattr(sampling, "REACH_MIN", reach)
    capture, few = shard_and_capture(database, JAVA_SHARDS), 200
    burst = write(database, 0, BURST)
    for low in range(BURST, BURST + few, 10):
        commit(database, low, 10)
    windows = read_windows(PolledTables([capture]), burst - 1, BURST_LIMIT)
    assert [len(window) for window in windows] == [BURST, few]


@pytest.mark.ddl(SINGERS)
def test_small_windows_are_cut_by_some_shards(database: Database) -> None:
    capture, rows = shard_and_capture(database, JAVA_SHARDS), 10_000
    for low in range(0, rows, 50):
        commit(database, low, 50)
    tables = PolledTables([capture])
    sizes: list[int] = []

    def read() -> list[dict[int, int]]:
        windows = read_windows(tables, 0, BURST_LIMIT)
        sizes.extend(map(len, windows))
        return windows

    scanned, count = count_scans(capture, read)
    assert count == rows
    assert max(sizes) <= BURST_LIMIT * 1.2
    assert len(sizes) <= 2 * rows / BURST_LIMIT
    assert scanned <= 2 * rows


MILLISECOND = 1_000
KEPT_UP = 50


def read_one(tables: PolledTables, window: Window, max_rows: int) -> Window:
    """One window as a consumer reads it; where it was cut."""
    name = tables.tables[0]
    cut = Window(window.start, tables.cut({name: window}, WindowLimit(rows=max_rows)))
    for _ in tables.read({name: cut}):
        pass
    return cut


def end_with(committed: int, milliseconds: int = 1) -> Window:
    """A window so long that ends with a commit."""
    return Window(committed - milliseconds * MILLISECOND, committed)


def test_who_keeps_up_scans_each_row_once(singers: Database) -> None:
    capture = capture_of(singers)
    tables = PolledTables([capture])
    stream = capture.queries.stream
    stream.counts_scans = True
    scanned = []
    for low in range(0, 4 * KEPT_UP, KEPT_UP):
        window = end_with(write(singers, low, KEPT_UP))
        before = stream.scanned_rows
        assert read_one(tables, window, MAX_ROWS) == window
        scanned.append(stream.scanned_rows - before)
    assert scanned[0] > KEPT_UP
    assert scanned[1:] == [KEPT_UP] * 3


@dataclass(frozen=True)
class Indexed(PollCapture):
    """Reads a table whose index was made at a timestamp: what Spanner refuses before is asked of
    the server with an index that is not there."""

    since: Callable[[], int] = int

    def capture_at(self, window: Window) -> PollCapture:
        """A capture of the table as it was at the window's end."""
        index = self.table.index if window.end >= self.since() else "NotYet"
        return PollCapture(self.queries, replace(self.table, index=index), self.groups)

    def start_count(self, window: Window, limit: int | None = None) -> Wait:
        return self.capture_at(window).start_count(window, limit)

    def start_find_cut(self, window: Window, max_rows: int) -> Wait:
        return self.capture_at(window).start_find_cut(window, max_rows)

    def find_nth_of_shards(self, window: Window, shards: Sequence[int], number: int) -> list[int]:
        return self.capture_at(window).find_nth_of_shards(window, shards, number)


def index_since(capture: PollCapture, since: int) -> Indexed:
    return Indexed(capture.queries, capture.table, capture.groups, since=lambda: since)


def test_a_window_is_not_cut_where_its_index_was_not_there(singers: Database) -> None:
    capture = capture_of(singers)
    committed = [write(singers, first, 5) for first in range(0, 30, 5)]
    whole, _ = capture.look(0)
    windows = {"Singers": whole}
    for since, end in ((committed[3], whole.end), (committed[1], committed[1]), (0, committed[1])):
        assert PolledTables([index_since(capture, since)]).cut(windows, WindowLimit(rows=10)) == end
    with pytest.raises(GoogleAPICallError, match="NotYet"):
        PolledTables([index_since(capture, whole.end + 1)]).cut(windows, WindowLimit(rows=10))


def test_a_cut_goes_back_to_the_last_end_that_was_counted(singers: Database) -> None:
    capture = capture_of(singers)
    first, second = write(singers, 0, 40), write(singers, 0, 35)
    whole, _ = capture.look(0)
    windows = {"Singers": whole}
    assert PolledTables([capture]).cut(windows, WindowLimit(rows=10)) == first
    assert (
        PolledTables([index_since(capture, first + 1)]).cut(windows, WindowLimit(rows=10)) == second
    )


@pytest.mark.ddl(SINGERS)
def test_a_sample_is_not_asked_where_its_index_was_not_there(database: Database) -> None:
    capture = shard_and_capture(database)
    start = write(database, 0, 1)
    stamps = [write(database, low, 2_500) for low in range(0, 15_000, 2_500)]
    window = Window(start, capture.look(0)[0].end)
    assert SampledCuts(capture).find_end(window, MAX_ROWS) == stamps[1]
    assert SampledCuts(index_since(capture, window.end)).find_end(window, MAX_ROWS) == window.end
    with pytest.raises(GoogleAPICallError, match="NotYet"):
        SampledCuts(index_since(capture, window.end + 1)).find_end(window, MAX_ROWS)
    since = [0]
    samples = SampledCuts(replace(index_since(capture, 0), since=lambda: since[0]))
    assert samples.find_end(window, MAX_ROWS) == stamps[1]
    since[0] = stamps[3]
    assert samples.find_end(Window(stamps[1], window.end), MAX_ROWS) == stamps[3]
