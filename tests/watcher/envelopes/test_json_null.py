"""The JSON value null and NULL, which formats with JSON columns as JSON write alike by default."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from fixtures.singers import address_of, fetch_now
from google.cloud.spanner_v1.database import Database

from watcher.captures.change_stream import ChangeStreamCapture, find_stream
from watcher.captures.changes import iterate_changes
from watcher.envelopes import encode, make_envelope
from watcher.envelopes.batches import encode_batch
from watcher.model.window import Window
from watcher.spanner.queries import QueryClient
from watcher.tables.discovery import read_schema

TABLE = "CREATE TABLE J (Id INT64, J JSON, Js ARRAY<JSON>) PRIMARY KEY (Id)"
STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW_AND_OLD_VALUES')"
Read = Callable[[Any], Any]

FORMATS: list[tuple[str, Read]] = [
    ("datastream", lambda record: record["payload"]),
    ("ydb", lambda record: record["newImage"]),
    ("ydb-debezium", lambda record: record["payload"]["after"]),
]


@pytest.mark.ddl(TABLE, STREAM)
@pytest.mark.parametrize(("name", "read"), FORMATS)
@pytest.mark.parametrize(("option", "null"), [("nested", None), ("text", "null")])
def test_json_null_is_told_from_null_by_choice(
    database: Database, name: str, read: Read, option: str, null: object
) -> None:
    begin = fetch_now(database)
    with database.batch() as batch:
        batch.insert("J", ("Id", "J", "Js"), [(1, "null", ["null", None]), (2, None, None)])
    stream = find_stream(read_schema(database), "S", (), database.name)
    capture = ChangeStreamCapture(QueryClient(address_of(database)), stream)
    (rows,) = capture.read_window(Window(begin, fetch_now(database)))
    chosen = make_envelope(name, {"json_columns": option})
    changes = list(iterate_changes(rows, database.name))
    values = [value for _, value in encode(changes, chosen)]
    cells = {
        each.key["Id"]: read(json.loads(value or b""))
        for each, value in zip(changes, values, strict=True)
    }
    assert (cells[1]["J"], cells[1]["Js"]) == (null, [null, None])
    assert (cells[2]["J"], cells[2]["Js"]) == (None, None)
    assert encode_batch(rows, database.name, chosen).column("value").to_pylist() == values
