"""Probes of the timestamps of reads."""

from __future__ import annotations

from collections.abc import Iterable

from google.cloud.spanner_v1 import ExecuteSqlRequest, KeySet

from watcher.captures import statements
from watcher.model.window import Window
from watcher.overview.probe.context import CannotTryError, Observation, ProbeContext
from watcher.overview.probe.tables import KEY, VALUE
from watcher.spanner.keys import KeyRange
from watcher.spanner.queries import QueryClient
from watcher.spanner.requests import build_read_only, build_statement
from watcher.spanner.results.wire import ResultPart, join_chunks, parse_cell
from watcher.spanner.sessions import get_shared_session
from watcher.spanner.timestamps import to_datetime

WIDE, WIDE_ROWS = 10_000, 200
"""Characters of a value, and rows: together they are several messages of a result."""
CLEARED_ROWS = 100
ROUNDS = 20


def probe_strong_reads(context: ProbeContext) -> Observation:
    """Commits right after strong reads."""
    key = context.take_key()
    context.insert(key)
    least: int | None = None
    for number in range(ROUNDS):
        read_at = context.queries.fetch_read_timestamp()
        committed = context.update(key, f"round {number}")
        if committed <= read_at:
            return Observation(
                False,
                f"a transaction that began after a strong read at {read_at} committed at"
                f" {committed}",
            )
        least = committed - read_at if least is None else min(least, committed - read_at)
    return Observation(True, f"{ROUNDS} commits, each at least {least} us after the read before it")


def probe_exact_reads(context: ProbeContext) -> Observation:
    """Reads a row at the timestamps of its versions, after it has changed again."""
    key = context.take_key()
    versions = [(context.insert(key, "version 0"), "version 0")]
    for number in range(1, 4):
        value = f"version {number}"
        versions.append((context.update(key, value), value))
    for at, value in (*versions, *versions):
        row = context.read((VALUE,), key, at)
        if row != [value]:
            return Observation(False, f"a read at {at} shows {row}, not the version of then")
    before = context.read((VALUE,), key, versions[0][0] - 1)
    if before is not None:
        return Observation(False, "a read before the row was inserted shows it")
    return Observation(
        True, f"{len(versions)} versions, each read twice after the last was written"
    )


def probe_partitions(context: ProbeContext) -> Observation:
    """Reads a table whole, by the partitions that Spanner makes of a query, and of a read."""
    statement = statements.select_table(context.marked, ())
    stream = context.queries.stream
    at = context.write(lambda b: b.insert(context.marked.name, (KEY, VALUE), wide_rows(context)))
    with context.database.snapshot(read_timestamp=to_datetime(at)) as snapshot:
        expected = sorted(
            row[0] for row in snapshot.read(context.marked.name, (KEY,), KeySet(all_=True))
        )
    partitions = stream.partition(statement, at)
    index = [name for name, _ in statements.list_selected_columns(context.marked, ())].index(KEY)
    width = len(statements.list_selected_columns(context.marked, ()))
    found = sorted(
        int(parse_cell(value).text)
        for partition in partitions
        for value in read_values(stream.read_partition(statement, partition, False))[index::width]
    )
    what = (context.marked.name, (KEY,), KeyRange())
    ranges = stream.partition_range(*what, at)
    read = sorted(
        int(parse_cell(value).text)
        for partition in ranges
        for value in read_values(stream.read_range_partition(*what, partition, False))
    )
    return Observation(
        found == read == expected,
        f"{len(found)} of {len(expected)} rows in {len(partitions)} partitions of a query,"
        f" {len(read)} in {len(ranges)} of a read",
    )


def wide_rows(context: ProbeContext) -> list[tuple[int, str]]:
    """Rows that are more than one message of a result."""
    return [(context.take_key(), str(number % 10) * WIDE) for number in range(WIDE_ROWS)]


def read_values(messages: Iterable[ResultPart]) -> list[bytes]:
    """The values of a result, one after another."""
    return [value for values, _ in join_chunks(messages) for value in values]


def probe_resume_tokens(context: ProbeContext) -> Observation:
    """Breaks a stream at its first resume token, and continues it."""
    at = context.write(lambda b: b.insert(context.marked.name, (KEY, VALUE), wide_rows(context)))
    session = get_shared_session(context.address)
    name = session.name
    sent = build_statement(statements.select_table(context.marked, ()), context.sql)
    request = ExecuteSqlRequest(
        session=name,
        sql=sent.sql,
        transaction={"single_use": {"read_only": build_read_only(at)}},
    )

    def execute() -> list[ResultPart]:
        return list(session.execute(request, metadata=session.build_metadata(name), timeout=60))

    whole = execute()
    tokens = [number for number, message in enumerate(whole[:-1]) if message.resume_token]
    if not tokens:
        raise CannotTryError("the result came without a resume token before its end")
    first = whole[: tokens[0] + 1]
    request.resume_token = first[-1].resume_token
    again = read_values([*first, *execute()])
    expected = read_values(whole)
    return Observation(
        again == expected,
        f"broken after {len(first)} of {len(whole)} messages: {len(again)} values in place of"
        f" {len(expected)}",
    )


def probe_index(context: ProbeContext) -> Observation:
    """Polls a table of which most rows are not in the index."""
    marked, columns = context.marked, (KEY, VALUE, context.marked.processed_column or "")
    cleared = [(context.take_key(), "cleared", True) for _ in range(CLEARED_ROWS)]
    start = context.write(lambda batch: batch.insert(marked.name, columns, cleared))
    end = context.insert(context.take_key(), table=marked.name)
    stream = QueryClient(context.address).stream
    stream.counts_scans = True
    rows = read_values(stream.query(statements.count_window(marked, Window(start, end)), end))
    scanned = stream.scanned_rows
    if not scanned:
        raise CannotTryError("the statistics of the query do not say how many rows it scanned")
    return Observation(
        scanned < CLEARED_ROWS,
        f"{scanned} rows scanned to count {parse_cell(rows[0]).text} in the index, beside"
        f" {CLEARED_ROWS} that are not in it",
    )
