"""Records that come again are dropped by column as they are record by record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_record_columns import describe_result, messages_of, row_of

from watcher.captures.change_stream import ChangeFilter, record_columns
from watcher.captures.change_stream.record_columns import (
    RecordColumns,
    decode_chunks,
    make_stream_rows,
)
from watcher.captures.change_stream.record_values import DataRecord, StreamMod
from watcher.captures.change_stream.repeats import DeliveredRecords, ReadPoint, Records, list_ids
from watcher.model.change import Operation, Shape, ValueCapture
from watcher.model.window import Window


@pytest.fixture(scope="module", autouse=True)
def _by_column_however_few() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_columns, "FEW_BYTES", 0)
        yield


def record(at: int, name: str, changes: int, table: str = "T") -> DataRecord:
    return DataRecord(
        commit_timestamp=at,
        sequence="0",
        transaction_id=name,
        last_in_partition=True,
        shape=Shape(table, (), ()),
        mods=tuple(StreamMod(f'{{"{name}":{n}}}', "{}", None) for n in range(changes)),
        operation=Operation.INSERT,
        captured=ValueCapture.NEW_VALUES,
        records_in_transaction=1,
        partitions_in_transaction=1,
        tag="",
        system=False,
    )


def by_column(records: Sequence[DataRecord]) -> RecordColumns:
    results = messages_of([row_of(each) for each in records], describe_result(), 1_000)
    (columns,) = decode_chunks(results)
    assert isinstance(columns, RecordColumns)
    return columns


def list_keys(records: Records | None) -> list[str]:
    """The keys of the changes, which are all different."""
    if records is None:
        return []
    if isinstance(records, DataRecord):
        return [mod.key for mod in records.mods]
    rows = make_stream_rows(records, Window(0, 1), {}, "token", ChangeFilter())
    keys: list[str] = rows.batch.column("key").to_pylist() if rows is not None else []
    return keys


@st.composite
def orders(draw: st.DrawFn) -> list[DataRecord]:
    """Records of a partition, in the order of their commits."""
    moments = sorted(draw(st.lists(st.integers(1, 6), min_size=1, max_size=12)))
    counts = [draw(st.integers(1, 3)) for _ in moments]
    return [
        record(at, f"t{n}", count, draw(st.sampled_from(["T", "U"])))
        for n, (at, count) in enumerate(zip(moments, counts, strict=True))
    ]


@given(orders(), st.data())
def test_a_query_that_is_opened_again_gives_each_record_once(
    sent: list[DataRecord], data: st.DataObject
) -> None:
    """It repeats what was committed at the timestamp where it goes on."""
    stopped = data.draw(st.integers(1, len(sent)))
    for one_by_one in (True, False):
        point, keys = ReadPoint(1), list[str]()
        for again, since in ((False, 0), (True, stopped)):
            point.reopened = again
            given_now = (
                [r for r in sent if r.commit_timestamp >= point.at] if since else sent[:stopped]
            )
            places = data.draw(st.sets(st.integers(0, len(given_now))))
            edges = sorted({0, len(given_now), *places})
            for first, after in pairwise(edges):
                some = given_now[first:after]
                for each in some if one_by_one else [by_column(some)]:
                    keys += list_keys(point.take_new(each))
        assert keys == [mod.key for each in sent for mod in each.mods]


@given(orders(), st.integers(0, 7), st.booleans())
def test_what_was_delivered_above_the_watermark_is_dropped_once_queries_are_opened_again(
    sent: list[DataRecord], mark: int, one_by_one: bool
) -> None:
    delivered = DeliveredRecords()
    for each in sent if one_by_one else [by_column(sent)]:
        assert delivered.drop_repeated(each) is each
        delivered.note(each, {"T"}.__contains__)
    delivered.advance(mark)
    delivered.reopen()
    above = [each for each in sent if each.commit_timestamp > mark]
    expected = [m.key for each in above if each.shape.table != "T" for m in each.mods]
    if above:
        assert list_keys(delivered.drop_repeated(by_column(above))) == expected
    delivered.advance(10)
    for each in above:
        assert delivered.drop_repeated(each) is each


def test_the_ids_of_records_are_the_same_by_column() -> None:
    sent = [record(5, "a", 2), record(5, "b", 1), record(7, "c", 3)]
    assert list_ids(by_column(sent)) == [each for r in sent for each in list_ids(r)]
