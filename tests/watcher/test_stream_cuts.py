"""Where windows of a change stream are cut (docs/protocol.md, rule 9): by a count, between commits,
so that together they are the stream, whatever moves meanwhile."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from fixtures.server import connect, spawn
from fixtures.singers import address_of, fetch_now
from fixtures.versions import TABLES, Writes, versions_by_row
from google.cloud.spanner_v1.database import Database
from hypothesis import given
from hypothesis import strategies as st

from watcher import Change, Watcher
from watcher.captures.change_stream import (
    ChangeFilter,
    ChangeStreamCapture,
    cuts,
    find_stream,
    iterate_stream_changes,
    windows,
)
from watcher.captures.change_stream.cuts import StreamCuts, Tally, expect_span
from watcher.captures.change_stream.sizes import RecordSize
from watcher.captures.change_stream.stream_calls import StreamCalls
from watcher.captures.streamed_tables import StreamedTables
from watcher.model.change import Operation
from watcher.model.errors import ConfigurationError, StreamExpiredError
from watcher.model.window import Window
from watcher.planning.limits import WindowLimit
from watcher.settings.spark_parsing import parse_source_options
from watcher.spanner.queries import QueryClient
from watcher.spanner.results.wire import ResultPart
from watcher.tables.discovery import read_schema

STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'OLD_AND_NEW_VALUES')"


def capture_of(database: Database) -> ChangeStreamCapture:
    stream = find_stream(read_schema(database), None, (), database.name)
    return ChangeStreamCapture(QueryClient(address_of(database)), stream)


def read_changes(capture: ChangeStreamCapture, window: Window) -> list[Change]:
    return [
        change
        for rows in capture.read_window(window)
        for change in iterate_stream_changes(rows, "d")
    ]


def cut_to_end(capture: ChangeStreamCapture, whole: Window, limit: WindowLimit) -> list[int]:
    """The ends of the windows that one reader makes of a long one, its start first."""
    found, ends = StreamCuts(capture), [whole.start]
    while ends[-1] < whole.end:
        ends.append(found.find_end(Window(ends[-1], whole.end), limit))
        assert ends[-1] > ends[-2], "every window moves the position"
    return ends


def sizes_by_commit(capture: ChangeStreamCapture, window: Window) -> dict[int, tuple[int, int]]:
    """The changes and bytes of each commit, read without any limit."""
    sizes: dict[int, tuple[int, int]] = {}
    for size in capture.read_sizes(window, window):
        rows, length = sizes.get(size.commit_timestamp, (0, 0))
        sizes[size.commit_timestamp] = (rows + size.rows, length + size.bytes)
    return sizes


def fits(limit: WindowLimit, rows: int, size: int) -> bool:
    return (not limit.rows or rows <= limit.rows) and (not limit.bytes or size <= limit.bytes)


def check_ends(ends: list[int], sizes: dict[int, tuple[int, int]], limit: WindowLimit) -> None:
    """Each window holds what the limit says or one commit, and could not hold one commit more."""
    for start, end in pairwise(ends):
        inside = sorted(at for at in sizes if start < at <= end)
        rows, size = (sum(sizes[at][place] for at in inside) for place in (0, 1))
        assert fits(limit, rows, size) or len(inside) == 1
        after = min((at for at in sizes if at > end), default=None)
        if after is not None:
            more = sizes[after]
            assert not fits(limit, rows + more[0], size + more[1])


# A tally: whatever the order in which partitions are read.

COMMITS = st.lists(
    st.tuples(st.integers(1, 40), st.integers(0, 4), st.integers(0, 9), st.integers(1, 5)),
    max_size=40,
)
"""Records: commit timestamp, partition, rows, bytes a row."""
LIMITS = st.builds(WindowLimit, st.integers(0, 30), st.integers(0, 100)).filter(
    lambda limit: limit.limited
)


def expect_cut(records: list[RecordSize], limit: WindowLimit, end: int) -> int:
    """The last commit timestamp up to which everything fits, at least the first one; the end where
    all of it fits."""
    stamps = sorted({each.commit_timestamp for each in records if each.rows})
    fitting = [
        at
        for at in stamps
        if fits(
            limit,
            sum(r.rows for r in records if r.commit_timestamp <= at),
            sum(r.bytes for r in records if r.commit_timestamp <= at),
        )
    ]
    if len(fitting) == len(stamps):
        return end
    return fitting[-1] if fitting else stamps[0]


@given(COMMITS, LIMITS, st.randoms(use_true_random=False))
def test_a_tally_ends_where_the_sum_reaches_the_limit(
    commits: list[tuple[int, int, int, int]], limit: WindowLimit, order: random.Random
) -> None:
    records = [RecordSize(at, rows, rows * size) for at, _, rows, size in commits]
    partitions: dict[int, list[RecordSize]] = {}
    for record, (_, partition, *_) in zip(records, commits, strict=True):
        partitions.setdefault(partition, []).append(record)
    tally, end = Tally(limit, 50), 50
    names = list(partitions)
    order.shuffle(names)
    for name in names:
        for record in sorted(partitions[name], key=lambda each: each.commit_timestamp):
            if record.commit_timestamp > tally.end:
                break  # what a reader does not read any more
            tally.note(record)
    cut = expect_cut(records, limit, end)
    if cut < end:
        assert tally.newest == cut <= tally.end < end
    else:
        # Full to the last row, it may end with its last commit: nothing lies between.
        assert tally.end == end or (tally.share >= 1 and tally.end == tally.newest)


@given(st.integers(1, 10**12), st.floats(0, 3), st.integers(cuts.SPAN_MIN, 10**12))
def test_the_next_look_is_no_shorter_than_a_second_and_grows_by_so_much_at_most(
    passed: int, share: float, last: int
) -> None:
    assert cuts.SPAN_MIN <= expect_span(passed, share, last) <= last * cuts.SPAN_GROWTH


@given(st.integers(0, 1000), st.integers(0, 10**6), st.just(0.0) | st.floats(1, 10**4))
def test_a_limit_of_bytes_as_rows(rows: int, size: int, average: float) -> None:
    most = WindowLimit(rows, size).limit_rows(average)
    if not size or not average:
        assert most == rows
    else:
        assert most >= 1
        assert not rows or most <= rows
        assert most == 1 or most * average <= size


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("1000", 1_000), ("500kB", 500_000), ("1.5 KiB", 1_536), ("64MiB", 64 * 1024**2)],
)
def test_sizes_are_written_with_units(text: str, size: int) -> None:
    options = {"project": "p1", "instance": "i1", "database": "d1", "table": "T"}
    assert parse_source_options(options | {"maxBytesPerBatch": text}).max_bytes_per_batch == size


@pytest.mark.parametrize("text", ["", "lots", "5 parsecs", "-1"])
def test_an_invalid_size_is_refused_with_what_to_write(text: str) -> None:
    options = {"project": "p1", "instance": "i1", "database": "d1", "table": "T"}
    with pytest.raises(ConfigurationError, match=f"invalid size '{text}': use 500kB, 64MiB"):
        parse_source_options(options | {"maxBytesPerBatch": text})


# Streams of the server.


@dataclass(frozen=True)
class CountedCalls(StreamCalls):
    """Counts the messages of the stream that were taken: one a record."""

    taken: list[int]

    def execute(
        self, name: str, token: str | None, start: int, end: int | None
    ) -> Iterator[ResultPart]:
        for message in super().execute(name, token, start, end):
            self.taken[0] += 1
            yield message


@dataclass(frozen=True)
class CountedCapture(ChangeStreamCapture):
    """The same of a capture."""

    taken: list[int] = field(default_factory=lambda: [0])

    @property
    def calls(self) -> StreamCalls:
        return CountedCalls(self.queries, self.change_stream, self.taken)


@pytest.fixture
def churning() -> Iterator[Database]:
    """A database on a server that moves partitions about all the time."""
    with spawn(change_stream_churn_seconds=0.3) as server:
        database: Database = connect(server.address).database(
            "churn", ddl_statements=[*TABLES, STREAM]
        )
        database.create().result(60)
        yield database


def test_windows_together_are_the_stream_while_partitions_move(churning: Database) -> None:
    capture, begin = capture_of(churning), fetch_now(churning)
    writes = Writes(churning, 3)
    writes.write(60)
    whole = Window(begin, fetch_now(churning))
    sizes = sizes_by_commit(capture, whole)
    average = sum(size for _, size in sizes.values()) // sum(rows for rows, _ in sizes.values())
    for limit in (WindowLimit(12), WindowLimit(0, 40 * average)):
        ends = cut_to_end(capture, whole, limit)
        check_ends(ends, sizes, limit)
        changes = [c for pair in pairwise(ends) for c in read_changes(capture, Window(*pair))]
        assert versions_by_row(changes) == writes.truth
        assert len({change.id for change in changes}) == len(changes)
    assert ends == cut_to_end(capture, whole, limit), "who plans again finds the same"


@pytest.mark.ddl(*TABLES, STREAM)
def test_a_commit_above_the_limit_is_a_window_of_its_own(database: Database) -> None:
    capture, begin = capture_of(database), fetch_now(database)
    for first, count in ((0, 2), (2, 30), (32, 3), (35, 1)):
        with database.batch() as batch:
            keys = range(first, first + count)
            batch.insert("T", ["Id", "Version"], [(key, 0) for key in keys])
    whole = Window(begin, fetch_now(database))
    ends = cut_to_end(capture, whole, WindowLimit(4))
    sizes = [len(read_changes(capture, Window(*pair))) for pair in pairwise(ends)]
    assert [size for size in sizes if size] == [2, 30, 4]


@pytest.mark.ddl(*TABLES, STREAM)
def test_what_the_filter_leaves_out_is_not_counted(database: Database) -> None:
    begin = fetch_now(database)
    for key in range(12):
        with database.batch() as batch:
            batch.insert(
                "T" if key % 3 else "U", ["Id", "Version"], [(key if key % 3 else f"{key}", 1)]
            )
    only = replace(
        capture_of(database),
        change_filter=ChangeFilter(frozenset({"U"}), frozenset({Operation.INSERT})),
    )
    whole = Window(begin, fetch_now(database))
    ends = cut_to_end(only, whole, WindowLimit(2))
    sizes = [len(read_changes(only, Window(*pair))) for pair in pairwise(ends)]
    assert [size for size in sizes if size] == [2, 2]


def test_little_is_read_of_what_is_behind_the_cut(churning: Database) -> None:
    begin = fetch_now(churning)
    Writes(churning, 8).write(60)
    plain = capture_of(churning)
    capture = CountedCapture(plain.queries, plain.change_stream)
    whole = Window(begin, fetch_now(churning))
    records = len(list(capture.read_sizes(whole, whole)))
    found = StreamCuts(capture)
    capture.taken[0] = 0
    end = found.find_end(whole, WindowLimit(10))
    assert 0 < len(read_changes(plain, Window(begin, end))) <= 10
    assert capture.taken[0] < records / 2, "the rest of the backlog is left alone"


@pytest.mark.ddl(*TABLES, STREAM)
def test_batches_of_wide_rows_are_smaller(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a task holds is bounded by bytes, too."""
    begin = fetch_now(database)
    for key in range(8):
        with database.batch() as batch:
            batch.insert("T", ["Id", "Version", "Text"], [(key, 1, "x" * 1_000)])
    monkeypatch.setattr(windows, "BATCH_CHARACTERS", 2_000)
    capture = capture_of(database)
    batches = list(capture.read_window(Window(begin, fetch_now(database))))
    assert [rows.batch.num_rows for rows in batches] == [2, 2, 2, 2]


@pytest.mark.ddl(*TABLES, STREAM)
def test_a_start_that_the_stream_no_longer_keeps_is_refused(database: Database) -> None:
    with pytest.raises(StreamExpiredError, match="cannot be read from"):
        StreamCuts(capture_of(database)).find_end(Window(1, fetch_now(database)), WindowLimit(1))


@pytest.mark.ddl(*TABLES, STREAM)
def test_who_keeps_up_reads_a_window_once(database: Database) -> None:
    plain, begin = capture_of(database), fetch_now(database)
    writes = Writes(database, 6)
    writes.write(10)
    window = Window(begin, fetch_now(database))
    messages = CountedCapture(plain.queries, plain.change_stream)
    assert list(messages.read_window(window))
    capture = CountedCapture(plain.queries, plain.change_stream)
    tables = StreamedTables(capture, [])
    windows_of_tables = {"T": window, "U": window}
    assert tables.cut(windows_of_tables, WindowLimit(rows=1_000)) == window.end
    first, again = (list(tables.read(windows_of_tables)) for _ in range(2))
    assert capture.taken[0] == 2 * messages.taken[0], "once for the first, once for the retry"
    for rows in (first, again):
        changes = [change for each in rows for change in iterate_stream_changes(each, "d")]
        assert versions_by_row(changes) == writes.truth
    # One that has more than fits is counted, and cut.
    cut = tables.cut(windows_of_tables, WindowLimit(rows=3))
    shorter = {name: Window(begin, cut) for name in windows_of_tables}
    assert sum(rows.batch.num_rows for rows in tables.read(shorter)) <= max(3, 6)
    assert cut < window.end


# A watcher: its windows hold max_rows, and transactions stay whole.


@pytest.mark.ddl(*TABLES, STREAM)
@pytest.mark.parametrize("max_rows", [1, 7])
def test_windows_of_a_watcher_hold_no_more_than_max_rows(
    database: Database, caplog: pytest.LogCaptureFixture, max_rows: int
) -> None:
    def make_watcher(take: Callable[[Change], object]) -> Watcher:
        watcher = Watcher(
            database=database.name,
            tables=["*"],
            consumer="c",
            capture="change-stream",
            max_rows=max_rows,
        )
        watcher.on_change(take)
        return watcher

    delivered: list[Change] = []
    make_watcher(delivered.append).run_once()
    writes = Writes(database, 4)
    writes.write(25)
    caplog.clear()
    with caplog.at_level("INFO", logger="watcher"):
        make_watcher(delivered.append).run_once()
    assert versions_by_row(delivered) == writes.truth
    stamps = sorted(Counter(change.commit_timestamp for change in delivered).items())
    sizes = [
        int(str(record.args["rows"]))
        for record in caplog.records
        if isinstance(record.args, dict) and record.msg.startswith("window to")
    ]
    assert [rows for rows in sizes if rows] == [
        *expect_windows([count for _, count in stamps], max_rows)
    ]


def expect_windows(commits: list[int], most: int) -> Iterator[int]:
    """The rows of windows of whole commits, each as full as it can be."""
    rows = 0
    for count in commits:
        if rows and rows + count > most:
            yield rows
            rows = 0
        rows += count
    yield rows
