"""Watching and clearing follow how a table is tracked: by change sets, by a shard that applications
write, by a change stream."""

from __future__ import annotations

import json
import subprocess

import pytest
from fixtures.singers import address_of, fetch_now, make_watchable
from fixtures.warm_python import WARM_PYTHON
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP
from google.cloud.spanner_v1.database import Database

from watcher.change_sets import ChangeSets
from watcher.consumers.positions import Position, SpannerPositions
from watcher.model.errors import ConfigurationError, NotWatchableError
from watcher.settings.spark_parsing import parse_source_options
from watcher.tables.discovery import discover_table, find_table_to_clear, read_schema
from watcher.tables.values import TableSpec

SONGS = "CREATE TABLE Songs (Id INT64 NOT NULL, Title STRING(MAX)) PRIMARY KEY (Id)"
EVENTS = (
    "CREATE TABLE Ev (Id INT64, Hour STRING(20), TheTime TIMESTAMP"
    " OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (Id)"
)
BY_HOUR = "CREATE NULL_FILTERED INDEX EvByHour ON Ev(Hour, TheTime)"


def run(database: Database, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["-c", "from watcher.cli import main; main()", *arguments]
    address = ["--database", str(address_of(database))]
    return subprocess.run(
        [*WARM_PYTHON, *command, *address], capture_output=True, text=True, check=False
    )


def keys(output: str) -> list[object]:
    return sorted(json.loads(line)["key"]["Id"] for line in output.splitlines())


@pytest.mark.ddl(SONGS)
@pytest.mark.both_dialects
def test_change_sets_are_found_by_watch_and_clear(database: Database) -> None:
    make_watchable(database, "Songs", strategy="change-set")
    schema = read_schema(database)
    (sets,) = [each.name for each in schema.tables if each.name.casefold() == "change_sets"]
    table = discover_table(database, "Songs")
    assert table.change_sets is not None
    assert table.change_sets.table == sets
    id_column = table.change_sets.rows_column
    changes = ChangeSets(database, ["Songs"], sets, id_column, table.timestamp_column)
    first = run(database, "watch", "--table", "*", "--consumer", "c", "--once")
    assert (first.returncode, first.stdout) == (0, ""), first.stderr
    with changes.batch() as batch:
        batch.insert("Songs", ("Id", "Title"), [(1, "one"), (2, "two")])
    second = run(database, "watch", "--table", "Songs", "--consumer", "c", "--once")
    assert keys(second.stdout) == [1, 2], second.stderr
    named = find_table_to_clear(schema, sets, database.name)
    assert named.change_sets == table.change_sets
    cleared = run(database, "clear", "--table", sets, "--json")
    assert json.loads(cleared.stdout)["rows"] == 1, cleared.stderr
    again = run(database, "clear", "--table", "Songs", "--json")
    assert json.loads(again.stdout)["rows"] == 0, again.stderr


@pytest.mark.ddl(EVENTS, BY_HOUR)
def test_a_shard_of_the_application_is_spelled_alike_everywhere(database: Database) -> None:
    with pytest.raises(NotWatchableError, match=r"--shard-column Hour.*shardColumn = Hour"):
        discover_table(database, "Ev")
    with database.batch() as batch:
        rows = [(key, f"2026-01-01T0{key}", COMMIT_TIMESTAMP) for key in range(3)]
        batch.insert("Ev", ("Id", "Hour", "TheTime"), rows)
    shard = ("--table", "Ev", "--shard", "time", "--shard-column", "Hour")
    watched = run(database, "watch", *shard, "--from", "earliest", "--consumer", "c", "--once")
    assert keys(watched.stdout) == [0, 1, 2], watched.stderr
    refused = run(database, "clear", *shard)
    assert refused.returncode == 5
    assert "--take-over TheTime" in refused.stderr
    manual = ("--strategy", "manual", "--timestamp-column", "TheTime")
    planned = run(database, "ddl", "plan", *shard, *manual)
    assert "nothing to do: Ev is watched (manual, EvByHour)" in planned.stderr
    applied = run(database, "ddl", "apply", *shard, *manual, "--take-over", "TheTime")
    assert "takes over Ev.TheTime: clearing would set it to NULL" in applied.stdout, applied.stderr
    assert run(database, "clear", *shard, "--json").returncode == 0
    assert run(database, "watch", "--table", "E*", *shard[2:], "--once").returncode == 2


@pytest.mark.ddl(SONGS, "CREATE CHANGE STREAM S FOR Songs")
def test_a_table_of_a_change_stream_says_so(database: Database) -> None:
    with pytest.raises(NotWatchableError, match="--stream S"):
        discover_table(database, "Songs")


def test_the_options_of_spark_say_what_a_section_of_a_table_says() -> None:
    place = {"project": "p1", "instance": "i1", "database": "d1"}
    spec = TableSpec(shard="time", shard_column="Hour")
    options = {"shard": "time", "shardColumn": "Hour"}
    assert parse_source_options(place | {"table": "Ev"} | options).specs == {"Ev": spec}
    several = {"tables": "E*", "tableOptions": json.dumps({"Ev": options})}
    assert parse_source_options(place | several).specs == {"Ev": spec}
    fixed = {"table": "Ev", "shard": "fixed", "shardColumn": "N", "shardValues": "1, 2"}
    assert parse_source_options(place | fixed).specs["Ev"].shard_values == (1, 2)
    for wrong, words in (
        ({"tables": "E*"} | options, "use 'tableOptions'"),
        ({"table": "Ev", "shard": "time"}, "needs shard_column"),
        ({"table": "Ev", "capture": "change-stream"} | options, "is for polling"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            parse_source_options(place | wrong)


@pytest.mark.ddl(SONGS)
def test_the_status_of_a_table_and_its_plan_agree(database: Database) -> None:
    make_watchable(database, "Songs", strategy="change-set", shards=4)
    SpannerPositions(database).create()
    SpannerPositions(database).save(Position("c", "Songs", fetch_now(database)), None)
    table = ("--table", "Songs", "--strategy", "change-set")
    assert run(database, "ddl", "plan", *table, "--shards", "4", "--check").returncode == 0
    assert run(database, "ddl", "plan", *table, "--shards", "8", "--check").returncode == 1
