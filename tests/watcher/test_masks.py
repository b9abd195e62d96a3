"""Masks of columns: personal data never leaves the process, and what need not be read is not."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from fixtures.server import CreateDatabase
from fixtures.singers import address_of
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeySet
from google.cloud.spanner_v1.database import Database
from pyspark.sql.datasource import EqualTo
from typer.testing import CliRunner

from ddl.rules.evolve import parse_schema
from spanner_schema.model.schema import Dialect
from watcher import Change, Operation, Watcher
from watcher.captures.statements import select_table, select_window
from watcher.cli import app
from watcher.cli.config import read_mask_key
from watcher.envelopes import encode, make_envelope
from watcher.model.errors import ConfigurationError
from watcher.model.window import Window
from watcher.runners.spark.batch import push_filters
from watcher.runners.spark.resolution import resolve_scan
from watcher.runners.spark.slices import PlannedSlice, read_slice
from watcher.settings.spark_parsing import parse_source_options
from watcher.settings.watcher import parse_watch_config
from watcher.tables.discovery import find_watched_table
from watcher.tables.masks import REDACTED
from watcher.tables.values import TableSpec

KEY = "0123456789abcdef0123456789abcdef"
STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = '{}')"
TABLE = """CREATE TABLE People (Id INT64 NOT NULL, Email STRING(MAX), Name STRING(MAX),
  Phone INT64, Photo BYTES(MAX), City STRING(MAX), Stamped TIMESTAMP OPTIONS
  (allow_commit_timestamp = true)) PRIMARY KEY (Id)"""
NAMES = ("Id", "Email", "Name", "Phone", "Photo", "City", "Stamped")
MASKS = {"email": "hash", "Name": "redact", "Phone": "null", "Photo": "hash"}
SECRETS = ("ann@example.com", "Ann Secret", "5550199", "bob@example.com", "Bob Secret", "5550200")
ANN = (1, "ann@example.com", "Ann Secret", 5550199, b64encode(b"ann"), "Bern", COMMIT_TIMESTAMP)
BOB = (2, "bob@example.com", "Bob Secret", 5550200, None, None, COMMIT_TIMESTAMP)


def sign(value: bytes) -> bytes:
    return hmac.digest(KEY.encode(), value, hashlib.sha256)


MASKED = {
    "Email": sign(b"ann@example.com").hex(),
    "Name": REDACTED,
    "Phone": None,
    "Photo": sign(b"ann"),
    "City": "Bern",
}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASK_KEY", KEY)


@pytest.fixture
def people(create_database: CreateDatabase) -> Database:
    database: Database = create_database(TABLE, STREAM.format("NEW_ROW_AND_OLD_VALUES"))
    with database.batch() as batch:
        batch.insert("People", NAMES, [ANN, BOB])
    return database


def options(database: Database, **more: object) -> dict[str, Any]:
    return {
        "database": str(address_of(database)),
        "tables": ["People"],
        "mask_key": {"env": "MASK_KEY"},
        "table": {"People": {"shard": "none", "masks": MASKS}},
    } | more


def deliver(database: Database, **more: object) -> list[Change]:
    seen: list[Change] = []
    watcher = Watcher(**options(database, **more))
    watcher.on_change(seen.append)
    watcher.run_once()
    return seen


def values_of(change: Change) -> dict[str, object]:
    values: dict[str, object] = dict(change.new_values or {})
    values.pop("Stamped", None)
    return values


def check_nothing_is_shown(changes: list[Change]) -> None:
    for name in ("plain", "debezium", "datastream"):
        text = b"".join(
            (key or b"") + (value or b"") for key, value in encode(changes, make_envelope(name, {}))
        ).decode()
        for secret in (*SECRETS, b64encode(b"ann").decode()):
            assert secret not in text
    assert not any(secret in repr(changes) for secret in SECRETS)


@pytest.mark.both_dialects
def test_polls_and_backfills_deliver_masked_values(people: Database) -> None:
    for more in ({"start": "earliest"}, {"backfill": ["*"]}):
        ann, bob = deliver(people, **more)
        assert values_of(ann) == MASKED
        assert values_of(bob) == {
            "Email": sign(b"bob@example.com").hex(),
            "Name": REDACTED,
            "Phone": None,
            "Photo": None,
            "City": None,
        }
        check_nothing_is_shown([ann, bob])


@pytest.mark.both_dialects
@pytest.mark.parametrize("capture", ["NEW_ROW_AND_OLD_VALUES", "OLD_AND_NEW_VALUES"])
def test_a_change_stream_has_new_and_old_values_masked(
    create_database: CreateDatabase, capture: str
) -> None:
    database: Database = create_database(TABLE, STREAM.format(capture))
    stream = {"name": "S", "whole_rows": capture == "OLD_AND_NEW_VALUES"}
    more = {
        "consumer": "c",
        "capture": "change-stream",
        "stream": stream,
        "table": {"People": {"masks": MASKS}},
    }
    deliver(database, **more)
    with database.batch() as batch:
        batch.insert("People", NAMES, [ANN])
    with database.batch() as batch:
        batch.update("People", ("Id", "Email", "Stamped"), [(1, "new", COMMIT_TIMESTAMP)])
    with database.batch() as batch:
        batch.delete("People", KeySet([[1]]))
    insert, update, delete = deliver(database, **more)
    assert values_of(insert) == MASKED
    assert values_of(update) == MASKED | {"Email": sign(b"new").hex()}
    assert (update.old_values or {})["Email"] == MASKED["Email"]
    old = dict(delete.old_values or {})
    assert (old["Name"], old["Phone"], old["Photo"]) == (REDACTED, None, MASKED["Photo"])
    assert delete.operation is Operation.DELETE
    check_nothing_is_shown([insert, update, delete])


def test_lines_of_many_rows_are_masked(people: Database, tmp_path: Path) -> None:
    """Batches of this size are encoded by column."""
    with people.batch() as batch:
        rows = [(10 + n, f"u{n}@example.com", f"User Secret {n}", n, None, "x") for n in range(600)]
        batch.insert("People", NAMES, [(*row, COMMIT_TIMESTAMP) for row in rows])
    for envelope in ("plain", "debezium", "datastream"):
        out = tmp_path / f"{envelope}.jsonl"
        flags = ["--envelope", envelope, "--to", str(out), "--from", "earliest", "--once"]
        flags += ["-d", str(address_of(people)), "-t", "People", "--shard", "none"]
        flags += [f"--mask=People.{name}={kind}" for name, kind in MASKS.items()]
        result = CliRunner().invoke(app, ["watch", *flags, "--mask-key", "env:MASK_KEY"])
        assert result.exit_code == 0, result.output
        text = out.read_text()
        assert len(text.splitlines()) == 602
        assert "Secret" not in text
        assert "@example.com" not in text
        assert sign(b"u7@example.com").hex() in text


def test_what_a_mask_replaces_is_not_read() -> None:
    masks = {"Name": "redact", "Phone": "null"}
    spec = TableSpec(shard="none", masks=masks)  # type: ignore[arg-type]
    table = find_watched_table(parse_schema(TABLE), "People", "d", spec)
    read = "SELECT `Id`, `Email`, `Photo`, `City`, `Stamped` FROM `People`"
    assert select_window(table, Window(0, 1)).sql.startswith(f"{read} WHERE")
    assert select_table(table, ()).sql == read


@pytest.mark.parametrize(
    ("masks", "problem"),
    [
        ({"Id": "null"}, r"People\.Id cannot be masked: it is part of the key"),
        ({"Stamped": "null"}, r"People\.Stamped cannot be masked"),
        ({"Mail": "null"}, "has no column 'Mail'"),
        ({"Phone": "hash"}, "has type INT64, which 'hash' does not mask: use 'null'"),
        ({"Photo": "redact"}, r"has type BYTES\(MAX\), which 'redact' does not mask"),
        ({"Name": "null"}, r"People\.Upper is computed from Name, which is masked"),
    ],
)
def test_a_mask_that_cannot_be_is_refused_by_the_schema(masks: Any, problem: str) -> None:
    column = "Upper STRING(MAX) AS (UPPER(Name)) STORED, Stamped"
    schema = parse_schema(TABLE.replace("Stamped", column))
    with pytest.raises(ConfigurationError, match=problem):
        find_watched_table(schema, "People", "d", TableSpec(shard="none", masks=masks))
    both = TableSpec(shard="none", masks={"Name": "null"}, exclude_columns=("Upper",))  # type: ignore[dict-item]
    assert "Upper" not in dict(find_watched_table(schema, "People", "d", both).columns)


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ("Name", "Upper")},
        {"exclude_columns": ("Upper",)},
        {"hidden_columns": True, "exclude_columns": ("Shout",)},
    ],
)
def test_what_shows_a_masked_column_is_found_behind_other_columns_and_when_it_is_hidden(
    options: Any,
) -> None:
    column = (
        "Upper STRING(MAX) AS (UPPER(Name)) STORED HIDDEN,"
        " Shout STRING(MAX) AS (CONCAT(Upper, '!')) STORED, Stamped"
    )
    schema = parse_schema(TABLE.replace("Stamped", column))
    spec = TableSpec(shard="none", masks={"Name": "null"}, **options)  # type: ignore[dict-item]
    with pytest.raises(ConfigurationError, match=r"is computed from Name, which is masked"):
        find_watched_table(schema, "People", "d", spec)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"mask_key": None}, "needs mask_key"),
        ({"mask_key": {"env": "NO_SUCH"}}, "the environment variable NO_SUCH is not set"),
        ({"mask_key": {"env": "SHORT"}}, "fewer than 16 characters"),
        ({"mask_key": {}}, "it is not shown"),
        ({"mask_key": {"file": "/no/such/file"}}, "/no/such/file"),
        ({"mask_key": KEY}, "it is not shown"),
        ({"table": {"People": {"masks": {"Email": "md5"}}}}, "masks"),
    ],
)
def test_a_key_that_cannot_be_used_is_refused_and_not_shown(
    more: dict[str, object], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHORT", "hunter2")
    values = {
        "database": "spanner://projects/p1/instances/i1/databases/d1",
        "tables": ["People"],
        "mask_key": {"env": "MASK_KEY"},
        "table": {"People": {"masks": MASKS}},
    }
    with pytest.raises(ConfigurationError, match=problem) as caught:
        parse_watch_config(values | more)
    assert KEY not in str(caught.value)
    assert "hunter2" not in str(caught.value)


def make_scan_options(database: Database, **more: str) -> Any:
    address = address_of(database)
    common = {
        "project": address.project,
        "instance": address.instance,
        "database": address.database,
        "table": "People",
        "shard": "none",
        "maskKey": '{"env": "MASK_KEY"}',
        "tableOptions": json.dumps({"People": {"masks": MASKS, "shard": "none"}}),
    }
    return parse_source_options(common | more)


def test_spark_shows_masked_columns_and_does_not_look_for_their_values(people: Database) -> None:
    scan = resolve_scan(make_scan_options(people))
    capture = scan.captures[0]
    window = Window(0, capture.look(0)[0].end)
    (part,) = capture.plan(window)
    rows = [
        row for batch in read_slice(scan, PlannedSlice(part, capture)) for row in batch.to_pylist()
    ]
    by_key = {row["Id"]: row for row in rows}
    assert {name: by_key[1][name] for name in MASKED} == MASKED
    pushed, left = push_filters(scan, [EqualTo(("Email",), "ann@example.com")])
    assert left
    assert pushed.captures[0].table.row_filter is None


def test_spark_reads_masked_columns_of_a_change_stream_too(people: Database) -> None:
    more = {"capture": "change-stream", "tableOptions": json.dumps({"People": {"masks": MASKS}})}
    values = make_scan_options(people).model_dump(exclude_unset=True, by_alias=True)
    texts = {name: str(values[name]) for name in ("project", "instance", "database", "table")}
    texts["maskKey"] = '{"env": "MASK_KEY"}'
    scan = resolve_scan(parse_source_options(texts | more))
    assert scan.stream is not None
    with people.batch() as batch:
        batch.update("People", NAMES, [ANN])
    window = Window(scan.known_at, scan.queries.fetch_read_timestamp())
    rows = [
        row
        for part in scan.stream.plan(window)
        for batch in read_slice(scan, PlannedSlice(part, scan.stream))
        for row in batch.to_pylist()
    ]
    by_key = {row["Id"]: row for row in rows}
    assert {name: by_key[1][name] for name in MASKED} == MASKED
    with pytest.raises(ConfigurationError, match="is for polling"):
        parse_source_options(texts | more | {"tableOptions": '{"People": {"where": "Phone > 1"}}'})


def test_a_key_is_not_written_into_options() -> None:
    for run in (
        lambda: parse_source_options({"maskKey": KEY, "table": "T"}),
        lambda: read_mask_key(KEY),
    ):
        with pytest.raises(ConfigurationError) as caught:
            run()
        assert KEY not in str(caught.value)


def test_a_table_in_two_spellings_is_refused(people: Database) -> None:
    """One of them would count, and the other one may have the masks."""
    tables = {"People": {"masks": MASKS}, "people": {"shard": "none"}}
    with pytest.raises(ConfigurationError, match=r"\[table\] has the table people also as People"):
        parse_watch_config(options(people, table=tables))
    with pytest.raises(ConfigurationError, match="has the table people also as People"):
        make_scan_options(people, tableOptions=json.dumps(tables))


def test_a_condition_reads_the_value_that_a_mask_hides(people: Database) -> None:
    """Who may see the rows is decided by the value; what is sent is the mask."""
    table = {"shard": "none", "masks": MASKS, "where": "Email = 'ann@example.com'"}
    for more in ({"start": "earliest"}, {"backfill": ["*"]}):
        (ann,) = deliver(people, table={"People": table}, **more)
        assert values_of(ann) == MASKED


def test_both_dialects_spell_columns_by_the_schema() -> None:
    columns = 'id bigint PRIMARY KEY, "Email" text, stamped spanner.commit_timestamp'
    ddl = f"CREATE TABLE people ({columns})"
    schema = parse_schema(ddl, Dialect.POSTGRESQL)
    spec = TableSpec(shard="none", masks={"email": "null"})  # type: ignore[dict-item]
    table = find_watched_table(schema, "people", "d", spec)
    assert [mask.column for mask in table.masks] == ["Email"]
