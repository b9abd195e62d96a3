"""The types of the PostgreSQL dialect: what was written is what a watcher delivers."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from fixtures.server import CreateDatabase
from fixtures.singers import address_of, make_watchable
from google.cloud.spanner_v1 import JsonObject
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.schema import Dialect
from watcher import Watcher
from watcher.model.errors import ConfigurationError, LossyNumericError

pytestmark = pytest.mark.parametrize("dialect", [Dialect.POSTGRESQL], indirect=True, ids=str)
TYPES = {
    "b": "boolean",
    "i": "bigint",
    "r": "real",
    "d": "double precision",
    "n": "numeric",
    "s": "varchar(400)",
    "x": "bytea",
    "day": "date",
    "ts": "timestamptz",
    "j": "jsonb",
    "u": "uuid",
}
ARRAYS = {f"{name}_s": f"{type_}[]" for name, type_ in TYPES.items()}
COLUMNS = TYPES | ARRAYS
TABLE = (
    "CREATE TABLE kinds (id bigint PRIMARY KEY, "
    + ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
    + ")"
)
STREAM = "CREATE CHANGE STREAM s FOR ALL WITH (value_capture_type = 'NEW_ROW')"
FITTING = [Decimal("0"), Decimal("-1.5"), Decimal("9" * 29 + "." + "9" * 9), Decimal("1e-9")]
WIDE = [Decimal("9" * 60 + ".25"), Decimal("NaN"), Decimal("1e-30")]
VALUES: dict[str, list[Any]] = {
    "b": [True, False],
    "i": [0, -1, 2**63 - 1, -(2**63)],
    "r": [0.0, -1.5, math.inf, -math.inf],
    "d": [0.0, -0.1, 1e308, math.inf, math.nan],
    "n": FITTING,
    "s": ["", "ä€𝄞 'quoted' \\ %_ \" ", "line\nbreak", "x" * 300],
    "x": [b"", b"\x00\xff\xfe", b"abc" * 1000],
    "day": [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)],
    "ts": [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
    ],
    "j": ['{"a": [1, null, "ä"]}', "1", '"text"', "[]"],
    "u": ["6f1c7c1e-6d0a-4c3b-9d55-1f7f0c2a9b01", "00000000-0000-0000-0000-000000000000"],
}


def make_rows(numerics: list[Decimal]) -> dict[int, dict[str, Any]]:
    """Rows in which each column walks through its values and NULL at its own pace."""
    rows: dict[int, dict[str, Any]] = {}
    values = VALUES | {"n": numerics}
    for number in range(12):
        row: dict[str, Any] = {}
        for place, (name, some) in enumerate(values.items()):
            choice = [*some, None]
            row[name] = choice[(number + place) % len(choice)]
            arrays: list[Any] = [[*some], [None, some[0]], [], None]
            row[f"{name}_s"] = arrays[(number + place) % len(arrays)]
        rows[number] = row
    return rows


def convert(name: str, value: Any) -> Any:
    """A value as the client takes it."""
    if isinstance(value, list):
        return [convert(name, item) for item in value]
    if isinstance(value, bytes):
        return b64encode(value)
    if isinstance(value, Decimal):
        return f"{value:f}"  # the client bounds numbers as GoogleSQL does
    return JsonObject.from_str(value) if value is not None and name[0] == "j" else value


def write(database: Database, rows: dict[int, dict[str, Any]]) -> None:
    values = [[key, *(convert(n, row[n]) for n in COLUMNS)] for key, row in rows.items()]
    with database.batch() as batch:
        batch.insert_or_update("kinds", ["id", *COLUMNS], values)


@pytest.fixture
def kinds(create_database: CreateDatabase) -> Database:
    database = create_database(TABLE, STREAM)
    make_watchable(database, "kinds")
    return database


def deliver(database: Database, **options: Any) -> dict[int, dict[str, Any]]:
    """The values that come, by key."""
    rows: dict[int, dict[str, Any]] = {}
    watcher = Watcher(database=str(address_of(database)), interval="20ms", **options)
    watcher.on_change(lambda c: rows.update({int(str(c.key["id"])): dict(c.new_values or {})}))
    watcher.run_once()
    return rows


def show(value: Any) -> Any:
    """A value that equals another one if both are the same: NaN, too."""
    if isinstance(value, dict):
        return {name: show(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [show(each) for each in value]
    if isinstance(value, Decimal):
        return str(value.normalize()) if value.is_finite() else "NaN"
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def pick(rows: dict[int, dict[str, Any]], timestamp: Callable[[Any], Any]) -> Any:
    """The columns of the test, to be compared."""
    return {
        key: {
            name: timestamp(row[name]) if name.startswith("ts") else show(row[name])
            for name in COLUMNS
        }
        for key, row in rows.items()
    }


def read_time(value: Any) -> Any:
    """A time of Arrow's, or RFC 3339 text."""
    if isinstance(value, list | tuple):
        return [read_time(each) for each in value]
    if isinstance(value, str):
        return datetime.fromisoformat(value)
    return value.astimezone(UTC) if value is not None else None


def test_polled_rows_have_the_values_that_were_written(kinds: Database) -> None:
    truth = make_rows(FITTING)
    write(kinds, truth)
    rows = deliver(kinds, tables=["*"], start="earliest")
    assert pick(rows, read_time) == pick(truth, read_time)


def test_a_backfill_has_the_values_that_were_written(kinds: Database) -> None:
    truth = make_rows(FITTING)
    write(kinds, truth)
    rows = deliver(kinds, tables=["kinds"], start="latest", backfill=["*"], backfill_rows=5)
    assert pick(rows, read_time) == pick(truth, read_time)


def test_numerics_of_any_size_come_as_text_where_that_is_chosen(kinds: Database) -> None:
    truth = make_rows(WIDE)
    write(kinds, truth)
    table = {"kinds": {"text_columns": ["n", "N_s"]}}
    rows = deliver(kinds, tables=["kinds"], start="earliest", table=table)
    assert {key: row["n"] for key, row in rows.items()} == {
        key: None if row["n"] is None else f"{row['n']:f}" for key, row in truth.items()
    }
    assert rows[0]["n_s"] is None or isinstance(rows[0]["n_s"], list | tuple)


@pytest.mark.parametrize("value", WIDE, ids=["large", "nan", "small"])
def test_a_numeric_is_refused_rather_than_changed(kinds: Database, value: Decimal) -> None:
    write(kinds, {1: make_rows([value])[4] | {"n": value, "n_s": None}})
    with pytest.raises(LossyNumericError, match="name them in 'text_columns'"):
        deliver(kinds, tables=["kinds"], start="earliest")


@pytest.mark.parametrize(("column", "shown"), [("s", "STRING"), ("j", "jsonb")])
def test_only_numerics_are_read_as_text(kinds: Database, column: str, shown: str) -> None:
    table = {"kinds": {"text_columns": [column]}}
    words = rf"kinds\.{column} has type {shown}.*: only numerics"
    with pytest.raises(ConfigurationError, match=words):
        deliver(kinds, tables=["kinds"], start="earliest", table=table)


def test_streamed_changes_have_the_values_that_were_written(kinds: Database) -> None:
    options = {"capture": "change-stream", "tables": ["kinds"], "consumer": "c", "start": "latest"}
    assert deliver(kinds, **options) == {}
    truth = make_rows([*FITTING, *WIDE])
    write(kinds, truth)
    rows = deliver(kinds, **options)
    assert pick(rows, read_time) == pick(truth, read_time)
