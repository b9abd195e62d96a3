"""Keys are the same where Spanner takes them for the same, however they are written."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import pyarrow as pa
import pytest
from fixtures.replicas import read_rows, replicate
from google.cloud.spanner_v1.database import Database
from hypothesis import given
from hypothesis import strategies as st

from spanner_schema.model.column_types import Type, TypeCode
from watcher.spanner.key_values import identify_column, identify_key

SAME = [
    (TypeCode.FLOAT64, -0.0, 0),
    (TypeCode.FLOAT64, 1, 1.0),
    (TypeCode.FLOAT64, "NaN", math.nan),
    (TypeCode.FLOAT64, "-Infinity", -math.inf),
    (TypeCode.FLOAT32, 0.1, struct.unpack("f", struct.pack("f", 0.1))[0]),
    (TypeCode.NUMERIC, "1", "1.000"),
    (TypeCode.PG_NUMERIC, "NaN", "NaN"),
    (TypeCode.INT64, "7", 7),
    (TypeCode.TIMESTAMP, "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000000Z"),
    (TypeCode.TIMESTAMP, "2026-01-31T12:00:00.1Z", "2026-01-31T12:00:00.100000000Z"),
    (TypeCode.UUID, "0F0E", "0f0e"),
    (TypeCode.STRING, None, None),
]
OTHER = [
    (TypeCode.FLOAT64, "NaN", None),
    (TypeCode.FLOAT64, math.nan, 0.0),
    (TypeCode.TIMESTAMP, "2026-01-31T12:00:00.000000001Z", "2026-01-31T12:00:00Z"),
    (TypeCode.STRING, "-0.0", "0.0"),
    (TypeCode.BYTES, "AA==", "AQ=="),
    (TypeCode.STRING, "", None),
]


@pytest.mark.parametrize(("code", "first", "second"), SAME)
def test_values_that_are_the_same_key(code: TypeCode, first: object, second: object) -> None:
    keys = [identify_key([each], [Type(code)]) for each in (first, second)]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 1


@pytest.mark.parametrize(("code", "first", "second"), OTHER)
def test_values_that_are_other_keys(code: TypeCode, first: object, second: object) -> None:
    assert identify_key([first], [Type(code)]) != identify_key([second], [Type(code)])


@given(st.lists(st.one_of(st.none(), st.floats(), st.sampled_from([0.0, -0.0])), min_size=1))
def test_a_column_has_as_many_groups_as_keys(values: list[float | None]) -> None:
    column = identify_column(pa.array(values, pa.float64()))
    groups = pa.table({"key": column}).group_by("key").aggregate([]).num_rows
    assert groups == len({identify_key([value], [Type(TypeCode.FLOAT64)]) for value in values})


FLOAT_TABLE = "CREATE TABLE F (A FLOAT64, V INT64, G INT64 AS (V) STORED) PRIMARY KEY (A)"


@pytest.mark.ddl(FLOAT_TABLE, "CREATE CHANGE STREAM S FOR ALL")
def test_a_replica_by_change_stream_knows_rows_whose_key_is_negative_zero(
    database: Database, tmp_path: Path
) -> None:

    replicate(database, tmp_path, capture="change-stream")
    with database.batch() as batch:
        batch.insert("F", ("A", "V"), [(-0.0, 1), (math.nan, 2), (1.0, 3)])
    with database.batch() as batch:
        batch.update("F", ("A", "V"), [(0.0, 4), (math.nan, 5)])
    replicate(database, tmp_path, capture="change-stream")
    copy = read_rows(tmp_path, "F")
    rows = {str(row["A"]).removeprefix("-"): (row["V"], row["G"]) for row in copy}
    assert rows == {"0.0": (4, 4), "nan": (5, 5), "1.0": (3, 3)}
