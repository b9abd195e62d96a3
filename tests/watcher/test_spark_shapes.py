"""What Spark shows of a batch is made by column: the same bytes as the change's own envelope gives,
change by change."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pytest
from fixtures.any_batch import SENT_SELDOM, batch_of, polled_batches, streamed_batches, tables_of
from fixtures.any_change import CHOICES, DATABASE
from fixtures.row_code import decode_rows
from fixtures.written_by_row import uniform_row, write_by_row
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

from benchmarks.reads.shaped_rows import make_polled_rows, make_streamed_rows
from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures import Changed, StreamRows, TableRows
from watcher.captures.change_types import CHANGE_FIELDS
from watcher.captures.changes import compute_change_ids, iterate_changes, to_json
from watcher.envelopes import EnvelopeOptions, make_envelope
from watcher.envelopes.batches import MESSAGE, encode_by_change, encode_by_column
from watcher.envelopes.by_column.cells import render_member
from watcher.envelopes.by_column.sent_objects import SentObjects
from watcher.envelopes.kinds import LackingError
from watcher.envelopes.templates import JsonEnvelope
from watcher.envelopes.values import PLAIN_CELLS
from watcher.model.change import ValueCapture
from watcher.model.errors import EnvelopeError
from watcher.runners.spark.shapes import (
    ENVELOPE,
    STREAM_ENVELOPE,
    shape_messages,
    shape_typed,
)
from watcher.runners.spark.uniform import render_uniform
from watcher.spanner.results.columns import build_schema
from watcher.spanner.results.supported_types import Nanoseconds, is_supported
from watcher.spanner.timestamps import format_timestamp
from watcher.tables.values import WatchedTable

any_batches: st.SearchStrategy[Changed] = st.one_of(polled_batches(), streamed_batches())
whole_batches: st.SearchStrategy[Changed] = streamed_batches(whole=True)
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
json_columns = st.sampled_from(["nested", "text"])
ydb_modes = st.sampled_from(["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"])
OPTIONS: dict[str, st.SearchStrategy[dict[str, object]]] = {
    "plain": st.fixed_dictionaries(
        {},
        optional={
            "int64": st.sampled_from(["number", "text"]),
            "numeric": st.sampled_from(["number", "text"]),
            "timestamps": st.sampled_from(["iso", "millis", "micros", "nanos"]),
            "json_columns": json_columns,
            "bytes_as": st.sampled_from(["base64", "hex"]),
        },
    ),
    "debezium": debezium_options | st.just({"partial": "omit"}),
    "datastream": st.fixed_dictionaries(
        {"partial": st.sampled_from(["refuse", "omit"]), "json_columns": json_columns},
        optional={"stream_name": st.just("s")},
    ),
    "ydb": st.fixed_dictionaries(
        {"mode": ydb_modes | st.just("UPDATES"), "json_columns": json_columns},
        optional={"virtual_timestamps": st.booleans()},
    ),
    "ydb-debezium": st.fixed_dictionaries({"mode": ydb_modes, "json_columns": json_columns}),
    "change-stream": st.fixed_dictionaries({"int64": st.sampled_from(["number", "text"])}),
}
every_envelope = st.fixed_dictionaries(OPTIONS).map(
    lambda drawn: [make_envelope(name, options) for name, options in drawn.items()]
)
some_examples = settings(max_examples=settings().max_examples // 3)
"""Of tests in which an example is a batch in every format."""


def result_of(work: Callable[[], pa.RecordBatch]) -> object:
    """The rows that something gives, or its error."""
    try:
        return work().to_pylist()
    except Exception as error:  # noqa: BLE001
        return type(error), str(error)


EVERY_COLUMN = pa.schema([*STREAM_ENVELOPE, *CHANGE_FIELDS])


def build_batch(rows: Iterable[dict[str, object]], shown: pa.Schema) -> pa.RecordBatch:
    """Rows in some of their columns."""
    listed = list(rows)
    arrays = [pa.array([row[field.name] for row in listed], field.type) for field in shown]
    return pa.RecordBatch.from_arrays(arrays, schema=shown)


def shape_by_row(rows: Changed, shown: pa.Schema) -> pa.RecordBatch:
    """Changes in one form for all tables, change by change."""
    return build_batch(map(uniform_row, iterate_changes(rows, DATABASE)), shown)


def list_by_row(rows: Changed, chosen: EnvelopeOptions) -> Iterator[dict[str, object]]:
    """The messages of changes, change by change."""
    for change in iterate_changes(rows, DATABASE):
        for message in write_by_row(change, chosen):
            yield {
                "table": change.table,
                "_commit_timestamp": change.commit_timestamp,
                "key": message.key,
                "value": message.value,
                "_change_id": change.id,
            }


@given(any_batches)
def test_one_form_for_all_tables_is_the_same_by_column(rows: Changed) -> None:
    by_column = result_of(lambda: render_uniform(rows, EVERY_COLUMN))
    assert by_column == result_of(lambda: shape_by_row(rows, EVERY_COLUMN))


@pytest.mark.parametrize(
    ("code", "value"),
    [
        *[(code, value) for code, values in SENT_SELDOM.items() for value in values],
        # Refused where it is written; by row also where it is not.
        (TypeCode.BYTES, "YQ"),
    ],
)
def test_what_is_sent_seldom_is_written_as_its_value(code: TypeCode, value: object) -> None:
    rows = batch_of(Type(code), [value, None])
    by_column = result_of(lambda: render_uniform(rows, STREAM_ENVELOPE))
    assert by_column == result_of(lambda: shape_by_row(rows, STREAM_ENVELOPE))


@given(polled_batches(), st.sets(st.sampled_from(ENVELOPE.names)))
def test_columns_that_are_not_selected_are_left_out(rows: Changed, names: set[str]) -> None:
    shown = pa.schema([field for field in ENVELOPE if field.name in names])
    assert render_uniform(rows, shown) == shape_by_row(rows, shown)


def assert_written_alike(rows: Changed, chosen: EnvelopeOptions) -> None:
    """Messages are those that are written value by value, or the same change is refused."""
    try:
        expected = build_batch(list_by_row(rows, chosen), MESSAGE)
    except (EnvelopeError, ValueError) as error:
        with pytest.raises(type(error), match=f"^{re.escape(str(error))}"):
            shape_messages(rows, DATABASE, chosen, MESSAGE)
    else:
        assert shape_messages(rows, DATABASE, chosen, MESSAGE) == expected


@some_examples
@given(any_batches | whole_batches, every_envelope)
def test_messages_are_the_same_by_column(rows: Changed, envelopes: list[EnvelopeOptions]) -> None:
    for chosen in envelopes:
        note(repr(chosen))
        assert_written_alike(rows, chosen)


@pytest.mark.parametrize("captured", [None, *ValueCapture])
@pytest.mark.parametrize(("name", "options"), CHOICES)
def test_inserts_updates_and_deletes_are_the_same_by_column(
    name: str, options: dict[str, object], captured: ValueCapture | None
) -> None:
    rows = make_polled_rows(3) if captured is None else make_streamed_rows(60, captured)
    chosen = make_envelope(name, options)
    if isinstance(chosen, JsonEnvelope):
        assert_written_alike(rows, chosen)


@some_examples
@given(polled_batches() | streamed_batches(whole=True, seldom=False), every_envelope)
def test_what_is_not_refused_is_encoded_by_column(
    rows: Changed, envelopes: list[EnvelopeOptions]
) -> None:
    for chosen in envelopes:
        note(repr(chosen))
        assert isinstance(chosen, JsonEnvelope)
        try:
            expected = encode_by_change(iterate_changes(rows, DATABASE), chosen)
        except EnvelopeError:
            with pytest.raises((EnvelopeError, LackingError)):
                encode_by_column(rows, DATABASE, chosen)
        else:
            assert encode_by_column(rows, DATABASE, chosen) == expected


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
    objects = SentObjects(pa.array(texts, pa.string()), MEMBERS)
    assert objects.as_expected
    assert {name: objects.get_sent(name).to_pylist() for name, _ in MEMBERS} == {  # type: ignore[union-attr]
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
    objects = SentObjects(pa.array(texts, pa.string()), MEMBERS)
    cells = {name: render_member(objects, name, type_, PLAIN_CELLS) for name, type_ in MEMBERS}
    assert cells == {
        "Text": pa.array(["null", None, '"\\"Number\\":"', '"Number"', None, None]),
        "Number": pa.array(["1.0", "null", None, None, None, None]),
        "Flags": None,
    }


@pytest.mark.parametrize(
    "text",
    [
        '{"Other":1}',
        '{"Text":1}',
        '{"Text":"a","Text":"b"}',
        '{"Text":"\\ud800"}',
        '{"Number":"1.5"}',
        '{"Number":1e999}',
        '{"Flags":[1]}',
        '{"Text":"a"} {"Text":"b"}',
        "[]",
        "",
    ],
)
def test_what_spanner_sends_seldom_is_left_to_python(text: str) -> None:
    assert not SentObjects(pa.array(['{"Text":"a"}', text]), MEMBERS).as_expected
