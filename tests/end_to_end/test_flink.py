"""Flink reads the events of ``debezium`` by its own format, as the table that they come from."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from fixtures.commands import run_command
from fixtures.flink import read_changes
from fixtures.server import CreateDatabase
from fixtures.singers import address_of
from google.cloud.spanner_v1 import KeySet

TABLE = (
    "CREATE TABLE T (Id INT64, Name STRING(MAX), Ok BOOL, Rate FLOAT64, Price NUMERIC,"
    " Tags ARRAY<STRING(MAX)>, Seen TIMESTAMP) PRIMARY KEY (Id)"
)
STREAM = "CREATE CHANGE STREAM S FOR T OPTIONS (value_capture_type = 'NEW_ROW_AND_OLD_VALUES')"
COLUMNS = ("Id", "Name", "Ok", "Rate", "Price", "Tags", "Seen")
IN_FLINK = (
    *("Id BIGINT", "Name STRING", "Ok BOOLEAN", "Rate DOUBLE", "Price DECIMAL(38, 9)"),
    *("Tags ARRAY<STRING>", "Seen STRING"),
)
AT = "2026-01-01T00:00:00.123456789Z"


def test_flink_makes_the_same_table_of_the_events(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database(TABLE, STREAM)
    start = datetime.now(UTC).isoformat()
    with database.batch() as batch:
        batch.insert(
            "T",
            COLUMNS,
            [
                (1, 'a "quoted" Ünï\\code', True, 1.5, "12.5", ["x", None], AT),
                (2, None, None, None, None, None, None),
                (2**63 - 1, "", False, -0.1, "-99999999999999999999999999999.999999999", [], AT),
            ],
        )
    with database.batch() as batch:
        batch.update("T", ("Id", "Name", "Rate"), [(1, "b", None)])
        batch.delete("T", KeySet(keys=[[2]]))
    place = ("-d", str(address_of(database)), "--stream", "S")
    watched = run_command("watch", *place, "--once", "--from", start, "--envelope", "debezium")
    assert watched.returncode == 0, watched.stderr
    events = [json.loads(line)["value"] for line in watched.stdout.splitlines()]
    file = tmp_path / "events.jsonl"
    file.write_text("".join(f"{json.dumps(event)}\n" for event in events if event is not None))

    rows: dict[str, list[str]] = {}
    kinds = []
    for kind, key, *fields in read_changes(file, IN_FLINK):
        kinds.append(kind)
        if kind in {"-U", "-D"}:
            assert rows.pop(key) == fields, "what goes is what was there"
        else:
            rows[key] = fields
    assert sorted(kinds) == ["+I"] * 3 + ["+U", "-D", "-U"]
    assert rows == {
        "1": ["b", "true", "null", "12.500000000", "[x, null]", AT],
        str(2**63 - 1): [
            *("", "false", "-0.1", "-99999999999999999999999999999.999999999", "[]", AT),
        ],
    }
