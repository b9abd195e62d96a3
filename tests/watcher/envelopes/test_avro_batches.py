"""Batches in Avro: by column are the same bytes as change by change, by Avro's own writer."""

from __future__ import annotations

import io
from dataclasses import replace

import fastavro
import pyarrow as pa
import pytest
from fixtures.any_batch import polled_batches
from fixtures.any_change import CHOICES, DATABASE
from fixtures.everything import rows, write
from fixtures.singers import capture_of, fetch_now
from google.cloud.spanner_v1.database import Database
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.reads.shaped_rows import make_polled_rows
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Dialect
from watcher.captures import TableRows
from watcher.captures.changes import iterate_changes
from watcher.envelopes import make_envelope
from watcher.envelopes.batches import encode_by_change, try_by_column
from watcher.envelopes.by_column.avro_cells import encode_floats, encode_longs, encode_texts
from watcher.envelopes.message import EnvelopeOptions
from watcher.model.errors import EnvelopeError
from watcher.model.window import Window

ENVELOPES = [make_envelope(name, options) for name, options in CHOICES if name == "plain-avro"]


def assert_written_alike(batch: TableRows, chosen: EnvelopeOptions) -> None:
    try:
        expected = encode_by_change(iterate_changes(batch, DATABASE), chosen)
    except EnvelopeError:
        assert try_by_column(batch, DATABASE, chosen) is None
    else:
        assert try_by_column(batch, DATABASE, chosen) == expected


@settings(max_examples=settings().max_examples // 3)
@given(polled_batches(), st.sampled_from(ENVELOPES))
def test_any_batch_is_the_same_by_column(batch: TableRows, chosen: EnvelopeOptions) -> None:
    assert_written_alike(batch, chosen)


@pytest.mark.both_dialects
@pytest.mark.parametrize("chosen", ENVELOPES, ids=repr)
def test_every_type_is_the_same_by_column(everything: Database, chosen: EnvelopeOptions) -> None:
    postgresql = everything.database_dialect.name == "POSTGRESQL"
    write(everything, rows(Dialect.POSTGRESQL if postgresql else Dialect.GOOGLESQL))
    capture = capture_of(everything, "Everything")
    window = Window(0, fetch_now(everything))
    batches = [batch for part in capture.plan(window) for batch in capture.read(part)]
    assert sum(batch.batch.num_rows for batch in batches) == 40
    for batch in batches:
        assert try_by_column(batch, DATABASE, chosen) is not None
        assert_written_alike(batch, chosen)


def test_a_batch_of_some_rows_is_written_by_column() -> None:
    assert try_by_column(make_polled_rows(300), DATABASE, ENVELOPES[0]) is not None


def test_a_zero_with_a_sign_is_the_same_key() -> None:
    rows = make_polled_rows(3)
    columns = (("Id", Type(TypeCode.FLOAT64)), *rows.table.columns[1:])
    place = rows.batch.schema.get_field_index("Id")
    batch = rows.batch.set_column(place, "Id", pa.array([-0.0, 0.0, -1.5]))
    floats = replace(rows, table=replace(rows.table, columns=columns), batch=batch)
    written = try_by_column(floats, DATABASE, ENVELOPES[0])
    assert written is not None
    negative, positive, other = written.column("key").to_pylist()
    assert negative == positive != other
    assert_written_alike(floats, ENVELOPES[0])


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_longs_are_those_of_avros_writer(values: list[int | None]) -> None:
    encoded = encode_longs(pa.array(values, pa.int64())).to_pylist()
    assert encoded == [datum("long", value or 0) for value in values]


@given(st.lists(st.text(), min_size=1), st.integers(0, 3))
def test_texts_are_those_of_avros_writer(values: list[str], first: int) -> None:
    column = pa.array(values, pa.string()).slice(min(first, len(values) - 1))
    expected = [datum("string", value) for value in column.to_pylist()]
    assert encode_texts(column).to_pylist() == expected


@pytest.mark.parametrize(("width", "avro"), [(32, "float"), (64, "double")])
@given(data=st.data())
def test_floats_are_those_of_avros_writer(width: int, avro: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.floats(width=width, allow_nan=False), min_size=1))  # type: ignore[arg-type]
    column = pa.array(values, pa.float32() if width == 32 else pa.float64())
    assert encode_floats(column).to_pylist() == [datum(avro, value) for value in values]


def datum(avro: str, value: object) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(avro), value)
    return buffer.getvalue()
