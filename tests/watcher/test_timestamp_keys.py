"""Primary keys with a TIMESTAMP: rows that are a nanosecond apart are two rows, everywhere."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from fixtures.singers import address_of
from google.api_core.datetime_helpers import DatetimeWithNanoseconds
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP
from google.cloud.spanner_v1.database import Database
from hypothesis import given
from hypothesis import strategies as st

from spanner_schema.model.column_types import Type, TypeCode
from watcher import Change, Watcher
from watcher.captures import TableRows
from watcher.captures.change_stream.record_values import DataRecord, StreamMod
from watcher.captures.change_stream.rows import ChangeBuffer
from watcher.captures.changes import compute_change_ids
from watcher.captures.key_ranges import KeyRangeCapture
from watcher.captures.poll import PollCapture
from watcher.captures.poll_tables import PolledTables
from watcher.captures.progress import BackfillProgress
from watcher.envelopes import encode, make_envelope
from watcher.envelopes.order import select_newest
from watcher.model.change import Operation, Shape, ValueCapture
from watcher.model.window import Window
from watcher.runners.spark.shapes import shape_stored, shape_typed
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.queries import QueryClient
from watcher.spanner.results.supported_types import Nanoseconds
from watcher.spanner.results.timestamp_columns import LossyTimestampError, normalize_timestamps
from watcher.tables.discovery import discover_table
from watcher.tables.values import TableSpec, WatchedTable

EVENTS = (
    "CREATE TABLE Events (`At` TIMESTAMP, Id INT64, Seen TIMESTAMP,"
    " Changed TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (`At`, Id)"
)
FIRST = "2026-01-02T03:04:05.123456788Z"
SECOND = "2026-01-02T03:04:05.123456789Z"
EVEN = "2026-01-02T03:04:05.123456Z"
NOWHERE = DatabaseAddress.parse("projects/p1/instances/i1/databases/d1")
TIMES = [FIRST, SECOND, EVEN]

with_events = pytest.mark.ddl(EVENTS)


def write(database: Database, *times: str) -> None:
    moments = [DatetimeWithNanoseconds.from_rfc3339(text) for text in times]
    with database.batch() as batch:
        rows = [(moment, 7, moment, COMMIT_TIMESTAMP) for moment in moments]
        batch.insert_or_update("Events", ("At", "Id", "Seen", "Changed"), rows)


def watch_once(database: Database, **more: object) -> list[Change]:
    """The changes of one run, by key."""
    seen: list[Change] = []
    options: dict[str, Any] = {"start": "earliest", "table": {"Events": {"shard": "none"}}} | more
    watcher = Watcher(database=str(address_of(database)), tables=["Events"], **options)
    watcher.on_change(seen.append)
    watcher.run_once()
    return sorted(seen, key=lambda change: str(change.key["At"]))


def capture_of(database: Database, nanoseconds: Nanoseconds = Nanoseconds.TRUNCATE) -> PollCapture:
    table = discover_table(database, "Events", TableSpec(shard="none"))
    return PollCapture(QueryClient(address_of(database)), table, (), nanoseconds)


def poll_all(capture: PollCapture) -> TableRows:
    """What is in the table, as one batch."""
    window, _ = capture.look(0)
    (rows,) = PolledTables([capture]).read({"Events": window})
    assert isinstance(rows, TableRows)
    return rows


@with_events
def test_keys_and_ids_keep_nanoseconds_and_values_are_cut_off(database: Database) -> None:
    write(database, *TIMES)
    changes = watch_once(database)
    assert [change.key["At"] for change in changes] == sorted(TIMES)
    assert len({change.id for change in changes}) == 3
    assert {(change.new_values or {})["Seen"] for change in changes} == {EVEN}


@with_events
def test_values_are_text_by_choice_and_ids_are_the_same(database: Database) -> None:
    write(database, *TIMES)
    changes = watch_once(database, nanoseconds="string")
    assert [(change.new_values or {})["Seen"] for change in changes] == sorted(TIMES)
    assert [change.key["At"] for change in changes] == sorted(TIMES)
    assert [change.id for change in changes] == [change.id for change in watch_once(database)]


@with_events
def test_nanoseconds_are_refused_by_choice(database: Database) -> None:
    write(database, EVEN)
    assert len(watch_once(database, nanoseconds="refuse")) == 1
    write(database, SECOND)
    with pytest.raises(LossyTimestampError, match="123456789"):
        watch_once(database, nanoseconds="refuse")


@with_events
@pytest.mark.parametrize("nanoseconds", ["truncate", "string"])
def test_a_backfill_keeps_them_page_by_page(database: Database, nanoseconds: str) -> None:
    write(database, *TIMES)
    more = {"start": "latest", "backfill": ["Events"], "backfill_rows": 1}
    changes = watch_once(database, consumer="c", nanoseconds=nanoseconds, **more)
    assert [change.key["At"] for change in changes] == sorted(TIMES)
    assert {change.operation for change in changes} == {Operation.READ}
    seen = {(change.new_values or {})["Seen"] for change in changes}
    assert seen == (set(TIMES) if nanoseconds == "string" else {EVEN})


@with_events
def test_pages_of_a_table_keep_them(database: Database) -> None:
    write(database, *TIMES)
    capture = capture_of(database)
    now, _ = capture.look(0)
    ranges = KeyRangeCapture(capture)
    page = ranges.plan_page(now.end, None, None, 0, 1)
    keys = [k for part in page.slices for rows in ranges.read(part) for k in key_column(rows.batch)]
    assert keys == [EVEN, FIRST, SECOND]
    batches, _ = KeyRangeCapture(capture).read_page(BackfillProgress(now.end, None))
    assert [key for rows in batches for key in key_column(rows.batch)] == keys


def key_column(batch: pa.RecordBatch) -> list[str]:
    keys: list[str] = batch.column("At").to_pylist()
    return keys


@with_events
def test_columns_of_spark_refuse_a_key_that_they_cannot_hold(database: Database) -> None:
    write(database, EVEN)
    capture = capture_of(database)
    shown = shape_stored(poll_all(capture), capture.typed_schema)
    assert shown.schema.field("At").type == pa.timestamp("us", tz="UTC")
    assert shown.column("At").equals(shown.column("Seen"))
    write(database, FIRST, SECOND)
    with pytest.raises(LossyTimestampError, match=r"column At .* primary key of Events .*'string'"):
        shape_stored(poll_all(capture), capture.typed_schema)
    seen = pa.schema([capture.typed_schema.field("Seen"), pa.field("_change_id", pa.string())])
    assert len(set(shape_stored(poll_all(capture), seen).column("_change_id").to_pylist())) == 3
    whole = capture_of(database, Nanoseconds.STRING)
    shown = shape_stored(poll_all(whole), whole.typed_schema)
    assert sorted(shown.column("At").to_pylist()) == sorted(TIMES)


@with_events
def test_the_newest_record_of_each_key_is_of_each_key(database: Database) -> None:
    write(database, *TIMES)
    messages = encode(watch_once(database), make_envelope("debezium", {}))
    assert len(select_newest(messages, "debezium")) == 3


@pytest.mark.ddl(
    "CREATE TABLE Stamped (Id INT64, Changed TIMESTAMP OPTIONS (allow_commit_timestamp=true))"
    " PRIMARY KEY (Changed, Id)"
)
@pytest.mark.parametrize("nanoseconds", list(Nanoseconds))
def test_a_window_ends_behind_a_timestamp_with_nanoseconds(
    database: Database, nanoseconds: Nanoseconds
) -> None:
    times = ["2020-01-01T00:00:00.000001500Z", "2020-01-01T00:00:00.000002Z"]
    with database.batch() as batch:
        rows = [(n, DatetimeWithNanoseconds.from_rfc3339(t)) for n, t in enumerate(times)]
        batch.insert("Stamped", ("Id", "Changed"), rows)
    table = discover_table(database, "Stamped", TableSpec(shard="none"))
    capture = PollCapture(QueryClient(address_of(database)), table, (), nanoseconds)
    end = capture.look(0)[0].end
    start = 1_577_836_800_000_001
    assert capture.find_cut(Window(start, end), 1) == start + 1
    if nanoseconds is not Nanoseconds.REFUSE:
        batches = capture.read(capture.plan(Window(start, end))[0])
        assert [n for rows in batches for n in rows.batch.column("Id").to_pylist()] == [0, 1]


def test_columns_of_spark_refuse_a_key_of_a_change_stream() -> None:
    columns = (("At", Type(TypeCode.TIMESTAMP)), ("Seen", Type(TypeCode.TIMESTAMP)))
    table = WatchedTable("Events", columns, ("At",), "", None, None, None)
    shape = Shape("Events", columns, ("At",))

    def shown(at: str, nanoseconds: Nanoseconds) -> list[dict[str, object]]:
        mod = StreamMod(f'{{"At":"{at}"}}', f'{{"Seen":"{SECOND}"}}', None)
        of_record = (Operation.UPDATE, ValueCapture.NEW_ROW, 1, 1, "", False)
        buffer = ChangeBuffer(Window(0, 9))
        buffer.add(DataRecord(5, "0", "t", True, shape, (mod,), *of_record), "token")
        schema = PollCapture(QueryClient(NOWHERE), table, (), nanoseconds).typed_schema
        typed = shape_typed(buffer.take(), table, schema, nanoseconds)
        rows: list[dict[str, object]] = typed.select(["At", "Seen"]).to_pylist()
        return rows

    assert shown(FIRST, Nanoseconds.STRING) == [{"At": FIRST, "Seen": SECOND}]
    (even,) = shown(EVEN, Nanoseconds.TRUNCATE)
    assert even["At"] == even["Seen"]
    with pytest.raises(LossyTimestampError, match="column At is part of the primary key"):
        shown(FIRST, Nanoseconds.TRUNCATE)


COLUMNS = {
    "At": TypeCode.TIMESTAMP,
    "Id": TypeCode.INT64,
    "St": TypeCode.STRING,
    "Da": TypeCode.DATE,
    "By": TypeCode.BYTES,
    "Nu": TypeCode.NUMERIC,
    "Bo": TypeCode.BOOL,
    "Fl": TypeCode.FLOAT64,
}


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ({"At": "2026-01-02T03:04:05.123456Z", "Id": 7}, "cece6c8ed1b074c6a2b8c2ca600cc265"),
        ({"At": "2026-01-02T03:04:05Z", "Id": -1}, "bd17c5ba1c3d6fff5aa35ec9c80c35fb"),
        ({"At": "2026-01-02T03:04:05.000000000Z", "Id": -1}, "bd17c5ba1c3d6fff5aa35ec9c80c35fb"),
        ({"At": None, "Id": None}, "ed6a8e1dadbf8c94841b0714afd93e45"),
        (
            {
                "St": 'ä"',
                "Da": date(1, 2, 3),
                "By": b"\x00\xff",
                "Nu": Decimal("1.5"),
                "Bo": True,
                "Fl": 0.5,
            },
            "9ae64613a56bd8340a8216096d40c3ba",
        ),
    ],
)
def test_ids_are_what_they_were(key: dict[str, object], expected: str) -> None:
    columns = tuple((name, Type(COLUMNS[name])) for name in key)
    table = WatchedTable("Events", columns, tuple(key), "Changed", None, None, None)
    schema = PollCapture(QueryClient(NOWHERE), table, ()).schema
    row = key | {"_commit_timestamp": 1_700_000_000_123_456, "_shard_id": None}
    arrays = [pa.array([row[field.name]], field.type) for field in schema]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    assert compute_change_ids(TableRows(table, Window(0, 1), batch)).to_pylist() == [expected]


@given(
    st.lists(
        st.one_of(
            st.none(),
            st.tuples(
                st.datetimes().map(lambda t: t.replace(microsecond=0)),
                st.text("0123456789", max_size=9),
            ),
        )
    )
)
def test_one_moment_has_one_text(moments: list[tuple[datetime, str] | None]) -> None:
    texts: list[str | None] = []
    expected: list[str | None] = []
    for each in moments:
        if each is None:
            texts.append(None)
            expected.append(None)
            continue
        seconds, digits = each[0].isoformat().rjust(19, "0"), each[1]
        texts.append(f"{seconds}.{digits}Z" if digits else f"{seconds}Z")
        nanos = digits.ljust(9, "0")
        expected.append(f"{seconds}.{nanos[:6] if nanos[6:] == '000' else nanos}Z")
    assert normalize_timestamps(pa.array(texts, pa.string())).to_pylist() == expected
