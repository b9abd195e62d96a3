"""What Spark shows of a batch is made by column: the same bytes as the change's own envelope gives,
change by change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import pyarrow as pa
import pytest
from fixtures.any_batch import SENT_SELDOM, batch_of, polled_batches, streamed_batches, tables_of
from fixtures.any_change import DATABASE
from fixtures.row_code import decode_rows
from hypothesis import assume, given
from hypothesis import strategies as st

from ddl.model.schema import Type, TypeCode
from watcher.captures import Changed, StreamRows, TableRows
from watcher.captures.changes import compute_change_ids, iterate_changes, to_json
from watcher.envelopes import AnyEnvelope, make_envelope
from watcher.envelopes.by_column.batches import encode_batch
from watcher.envelopes.by_column.cells import SPACED_CELLS
from watcher.envelopes.by_column.messages import MESSAGE
from watcher.envelopes.by_column.sent_members import read_members, render_members
from watcher.runners.spark.change_columns import CHANGE_FIELDS
from watcher.runners.spark.shapes import (
    ENVELOPE,
    STREAM_ENVELOPE,
    shape_changes,
    shape_encoded,
    shape_envelope,
    shape_messages,
    shape_typed,
)
from watcher.runners.spark.uniform import render_uniform
from watcher.spanner.results.columns import build_schema
from watcher.spanner.results.supported_types import Nanoseconds, is_supported
from watcher.spanner.timestamps import format_timestamp
from watcher.tables.values import WatchedTable

any_batches: st.SearchStrategy[Changed] = st.one_of(polled_batches(), streamed_batches())
whole_batches: st.SearchStrategy[Changed] = st.one_of(
    polled_batches(), streamed_batches(whole=True)
)
debezium_options = st.fixed_dictionaries(
    {},
    optional={
        "tombstones": st.booleans(),
        "before": st.sampled_from(["known", "required", "never"]),
        "low_watermark": st.booleans(),
        "with_schema": st.booleans(),
        "stream": st.just("Changes"),
    },
)
envelopes = st.one_of(
    debezium_options.map(lambda options: make_envelope("debezium", options)),
    st.just(make_envelope("debezium", {"partial": "omit"})),
    st.tuples(st.sampled_from(["refuse", "omit"]), st.sampled_from(["nested", "text"])).map(
        lambda each: make_envelope("datastream", {"partial": each[0], "json_columns": each[1]})
    ),
    st.sampled_from(["plain", "ydb", "change-stream"]).map(make_envelope),
)


def result_of(work: Callable[[], pa.RecordBatch]) -> object:
    """The rows that something gives, or its error."""
    try:
        return work().to_pylist()
    except Exception as error:  # noqa: BLE001
        return type(error), str(error)


EVERY_COLUMN = pa.schema([*STREAM_ENVELOPE, *CHANGE_FIELDS])


@given(any_batches)
def test_one_form_for_all_tables_is_the_same_by_column(rows: Changed) -> None:
    def by_row() -> pa.RecordBatch:
        return shape_changes(iterate_changes(rows, DATABASE), EVERY_COLUMN)

    by_column = result_of(lambda: shape_envelope(rows, DATABASE, EVERY_COLUMN))
    assert by_column == result_of(by_row)


@pytest.mark.parametrize(
    ("code", "value"), [(code, value) for code, values in SENT_SELDOM.items() for value in values]
)
def test_what_is_sent_seldom_is_written_as_its_value(code: TypeCode, value: object) -> None:
    rows = batch_of(Type(code), [value, None])

    def by_row() -> pa.RecordBatch:
        return shape_changes(iterate_changes(rows, DATABASE), STREAM_ENVELOPE)

    by_column = result_of(lambda: shape_envelope(rows, DATABASE, STREAM_ENVELOPE))
    assert by_column == result_of(by_row)


@given(polled_batches(), st.sets(st.sampled_from(ENVELOPE.names)))
def test_columns_that_are_not_selected_are_left_out(rows: Changed, names: set[str]) -> None:
    shown = pa.schema([field for field in ENVELOPE if field.name in names])
    expected = shape_changes(iterate_changes(rows, DATABASE), shown)
    assert shape_envelope(rows, DATABASE, shown) == expected


@given(polled_batches() | streamed_batches(seldom=False))
def test_one_form_for_all_tables_needs_no_change_by_itself(rows: Changed) -> None:
    assert render_uniform(rows, EVERY_COLUMN).num_rows == rows.batch.num_rows


@given(any_batches, envelopes)
def test_messages_are_the_same_by_column(rows: Changed, chosen: AnyEnvelope) -> None:
    def by_row() -> pa.RecordBatch:
        return shape_encoded(iterate_changes(rows, DATABASE), chosen, MESSAGE)

    by_column = result_of(lambda: shape_messages(rows, DATABASE, chosen, MESSAGE))
    assert by_column == result_of(by_row)


@pytest.mark.parametrize("name", ["debezium", "datastream"])
@given(rows=polled_batches() | streamed_batches(whole=True, seldom=False))
def test_messages_need_no_change_by_itself(name: str, rows: Changed) -> None:
    batch = encode_batch(rows, DATABASE, make_envelope(name))
    assert batch.num_rows >= rows.batch.num_rows


@given(streamed_batches(tables=1), st.sampled_from(list(Nanoseconds)))
def test_columns_of_a_change_stream_are_the_same_by_column(
    rows: StreamRows, nanoseconds: Nanoseconds
) -> None:
    for table in tables_of(rows):
        columns = tuple(pair for pair in table.columns if is_supported(pair[1]))
        shown = build_schema(columns, nanoseconds, table.primary_key)

        def by_row(
            table: WatchedTable = table,
            columns: tuple = columns,  # type: ignore[type-arg]
        ) -> pa.RecordBatch:
            return decode_rows(rows.batch, columns, table.primary_key, nanoseconds)

        def by_column(table: WatchedTable = table, shown: pa.Schema = shown) -> pa.RecordBatch:
            return shape_typed(rows, table, shown, nanoseconds)

        assert str(result_of(by_column)) == str(result_of(by_row))


@given(polled_batches())
def test_ids_are_digests_of_table_key_and_commit_timestamp(rows: TableRows) -> None:
    changes = list(iterate_changes(rows, DATABASE))
    texts = [
        json.dumps(
            [
                change.table,
                [to_json(change.key[name]) for name in rows.table.primary_key],
                format_timestamp(change.commit_timestamp),
            ],
            ensure_ascii=False,
        )
        for change in changes
    ]
    nanoseconds = any(
        rows.table.column_type(name).code is TypeCode.TIMESTAMP for name in rows.table.primary_key
    )
    assume(not nanoseconds)  # the texts of those are normalized first: test_timestamp_keys.py
    digests = [hashlib.blake2b(text.encode(), digest_size=16).hexdigest() for text in texts]
    assert compute_change_ids(rows).to_pylist() == digests


MEMBERS = (
    ("Text", Type(TypeCode.STRING)),
    ("Number", Type(TypeCode.FLOAT64)),
    ("Flags", Type(TypeCode.ARRAY, element=Type(TypeCode.BOOL))),
)


def test_members_of_objects_are_columns() -> None:
    texts = ['{"Text":"a\\n\\ud83d\\ude00","Number":2}', None, '{"Flags":[true,null],"Text":null}']
    columns = read_members(pa.array(texts, pa.string()), MEMBERS)
    assert columns is not None
    assert {name: column.to_pylist() for name, column in columns.items()} == {
        "Text": ["a\n\U0001f600", None, None],
        "Number": [2.0, None, None],
        "Flags": [None, None, [True, None]],
    }


def test_a_member_that_is_null_is_not_one_that_is_missing() -> None:
    texts = [
        '{"Text":null,"Number":1}',
        '{"Number" : null}',
        '{"Text":"\\"Number\\":"}',
        '{"Text":"Number"}',
        "{}",
        None,
    ]
    assert render_members(pa.array(texts, pa.string()), MEMBERS, SPACED_CELLS) == {
        "Text": pa.array(["null", None, '"\\"Number\\":"', '"Number"', None, None]),
        "Number": pa.array(["1.0", "null", None, None, None, None]),
    }


@pytest.mark.parametrize(
    "text",
    [
        '{"Other":1}',
        '{"Text":1}',
        '{"Text":"a","Text":"b"}',
        '{"Text":"\\ud800"}',
        '{"Number":"NaN"}',
        '{"Number":1e999}',
        '{"Flags":[1]}',
        '{"Text":"a"} {"Text":"b"}',
        "[]",
        "",
    ],
)
def test_what_spanner_sends_seldom_is_left_to_python(text: str) -> None:
    assert read_members(pa.array(['{"Text":"a"}', text]), MEMBERS) is None
