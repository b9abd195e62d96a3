"""The pieces around the plan: selection, files, status, advice, histories, change streams."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fixtures.commands import run_command
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, make_watchable
from fixtures.warm_python import WARM_PYTHON
from google.api_core.exceptions import GoogleAPICallError
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from ddl.migration.apply import read_schema
from ddl.migration.plan import make_plan
from ddl.rules import change_streams
from ddl.rules.evolve import parse_schema
from ddl.tracking.changelog import make_history_table
from ddl.tracking.status import count_index_rows, list_statuses
from spanner_schema.model.advice import advise
from spanner_schema.model.errors import PlanError
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import ChangeStream, ChangeStreamTable, Dialect, RowDeletionPolicy
from spanner_schema.model.selection import select_tables
from spanner_schema.model.steps import DropIndex
from spanner_schema.syntax.render import render_step

MUSIC = "; ".join(
    [
        SINGERS,
        "CREATE TABLE Albums (SingerId INT64, AlbumId INT64) PRIMARY KEY (SingerId, AlbumId),"
        " INTERLEAVE IN PARENT Singers",
        "CREATE TABLE SpannerWatcherPositions (a INT64) PRIMARY KEY (a)",
    ]
)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WARM_PYTHON, "-c", "from watcher.cli import main; main()", "ddl", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "200"},
    )


def test_globs_mean_the_users_tables_and_names_mean_any() -> None:
    schema = parse_schema(MUSIC)
    assert select_tables(schema, ["*"]) == ("Singers", "Albums")
    assert select_tables(schema, ["a*"]) == ("Albums",)
    assert select_tables(schema, ["*"], ["ALB*"]) == ("Singers",)
    assert select_tables(schema, ["SpannerWatcherPositions"]) == ("SpannerWatcherPositions",)
    with pytest.raises(PlanError, match="table Nothing does not exist"):
        select_tables(schema, ["Nothing"])
    with pytest.raises(PlanError, match="no table matches"):
        select_tables(schema, ["x*"])


def test_a_file_says_what_to_watch_and_files_come_out(tmp_path: Path) -> None:
    schema, config, out = tmp_path / "s.sql", tmp_path / "w.toml", tmp_path / "migrations"
    schema.write_text(MUSIC)
    config.write_text(
        'tables = ["*"]\n[defaults]\nshards = 4\n[table.albums]\nstrategy = "processed"\n'
    )
    arguments = ("--schema", str(schema), "--config", str(config))
    result = run("plan", *arguments, "--out", str(out), "--json")
    assert result.returncode == 0, result.stderr
    up = (out / "0001_make_watchable.up.sql").read_text()
    down = (out / "0001_make_watchable.down.sql").read_text()
    assert "ALTER TABLE Albums ADD COLUMN Processed BOOL;" in up
    assert "ALTER TABLE Singers ADD COLUMN Processed" not in up
    assert ", 4) + 4, 4)" in up
    assert down.splitlines()[0] == "DROP INDEX AlbumsByShardAndTime;"
    run("plan", *arguments, "--out", str(out))
    assert (out / "0002_make_watchable.up.sql").exists()
    assert run("plan", *arguments, "--check").returncode == 1
    schema.write_text(MUSIC + ";" + up)
    result = run("plan", *arguments, "--check")
    assert (result.returncode, result.stdout) == (0, "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tabels = []", "tabels"),
        ("[defaults]\nshards = 0", "shards"),
        ('[table.X]\nstrategy = "auto"', "strategy"),
        ("tables = [", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, words: str) -> None:
    schema, config = tmp_path / "s.sql", tmp_path / "w.toml"
    schema.write_text(MUSIC)
    config.write_text(text)
    result = run("plan", "--schema", str(schema), "--config", str(config))
    assert result.returncode == 2
    assert words in result.stderr


@pytest.mark.ddl(SINGERS, "CREATE TABLE Other (a JSON, b INT64) PRIMARY KEY (b)")
@pytest.mark.both_dialects
def test_status_tells_each_table_and_counts_the_index(database: Database) -> None:
    make_watchable(database)
    with database.batch() as batch:
        batch.insert("Singers", ("SingerId",), [(1,), (2,)])
    singers, other = list_statuses(read_schema(database), ["Singers", "Other"])
    assert (singers.strategy, singers.shards) == ("automatic", 8)
    assert count_index_rows(database, read_schema(database), singers) == 2
    assert other.strategy is None
    assert len(other.missing) == 5
    result = run("status", "--database", str(address_of(database)), "--json")
    assert [row["table"] for row in json.loads(result.stdout)] == ["Singers", "Other"]
    assert json.loads(result.stdout)[0]["index_rows"] == 2
    schema = read_schema(database)
    database.update_ddl([render_step(DropIndex(schema.indexes[0].name), schema.dialect)]).result(60)
    with pytest.raises(GoogleAPICallError, match=schema.indexes[0].name):
        count_index_rows(database, schema, singers)  # it reads that index, or nothing


def test_status_knows_every_strategy() -> None:
    for strategy, expected in [
        ("processed", "processed"),
        ("change-stream", "change-stream"),
        ("change-set", "change-set"),
    ]:
        schema = parse_schema(MUSIC + ";" + plan_script(strategy))
        (status,) = list_statuses(schema, ["Singers"])
        assert status.strategy == expected


def plan_script(strategy: str) -> str:
    options = WatchOptions.model_validate({"strategy": strategy})
    plan = make_plan(parse_schema(MUSIC), ["Singers"], options)
    return ";".join(statement.sql for statement in plan.statements)


def test_advice_grows_with_writes_and_nodes() -> None:
    assert advise(1, 100).shards == 1
    assert advise(3, 100).shards == 3
    assert advise(3, 20_000).shards == 10
    many = advise(100, 1_000_000)
    assert many.shards == 100
    assert "500 shards" in many.warning
    with pytest.raises(PlanError, match="at least 1"):
        advise(0, 1)


DOCUMENTS = (
    "CREATE TABLE Documents (UserId INT64 NOT NULL, DocumentId INT64 NOT NULL,"
    " Contents STRING(MAX) NOT NULL) PRIMARY KEY (UserId, DocumentId)"
)


def test_a_history_has_the_commit_timestamp_last_in_its_key() -> None:
    schema = parse_schema(DOCUMENTS)
    assert render_step(
        make_history_table(schema, "Documents", name="DocumentHistory", timestamp="Ts")
    ) == (
        "CREATE TABLE DocumentHistory (\n  UserId INT64 NOT NULL,\n  DocumentId INT64 NOT NULL,\n"
        "  Ts TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true),\n"
        "  Contents STRING(MAX),\n) PRIMARY KEY(UserId, DocumentId, Ts),\n"
        "  INTERLEAVE IN PARENT Documents ON DELETE CASCADE"
    )
    apart = render_step(make_history_table(schema, "Documents", interleaved=False, keep_days=30))
    assert "INTERLEAVE" not in apart
    assert "ROW DELETION POLICY (OLDER_THAN(ChangedAt, INTERVAL 30 DAY))" in apart
    refused: list[tuple[dict[str, Any], str]] = [
        ({"table_name": "X"}, "table X does not exist"),
        ({"table_name": "Documents", "timestamp": "Contents"}, "has a column Contents"),
        ({"table_name": "Documents", "keep_days": 0}, "use at least 1"),
    ]
    for arguments, words in refused:
        with pytest.raises(PlanError, match=words):
            make_history_table(schema, **arguments)


@pytest.mark.both_dialects
@pytest.mark.ddl(DOCUMENTS)
def test_a_history_can_be_created_and_written(database: Database, dialect: Dialect) -> None:
    name, stamp = {
        Dialect.GOOGLESQL: ("DocumentsHistory", "ChangedAt"),
        Dialect.POSTGRESQL: ("Documents_history", "changed_at"),
    }[dialect]
    result = run(
        "changelog",
        "-d",
        str(address_of(database)),
        "-t",
        "Documents",
        "--keep-days",
        "7",
        "--apply",
    )
    assert result.returncode == 0, result.stderr
    with database.batch() as batch:
        batch.insert("Documents", ("UserId", "DocumentId", "Contents"), [(1, 1, "a")])
        batch.insert(
            name,
            ("UserId", "DocumentId", stamp, "Contents"),
            [(1, 1, "spanner.commit_timestamp()", "a")],
        )
    with database.snapshot() as snapshot:
        assert len(list(snapshot.read(name, (stamp,), KeySet(all_=True)))) == 1
    history = read_schema(database).table(name)
    assert history is not None
    assert history.row_deletion_policy == RowDeletionPolicy(stamp, 7)


def test_change_streams_are_checked_against_the_limits() -> None:
    schema = parse_schema(MUSIC)
    stream = ChangeStream("S", (change_streams.parse_watch("Singers(FirstName)"),))
    assert render_step(change_streams.create(schema, stream)) == (
        "CREATE CHANGE STREAM S FOR Singers(FirstName)"
    )
    crowded = parse_schema(
        MUSIC + "".join(f"; CREATE CHANGE STREAM S{n} FOR Singers" for n in range(3))
    )
    with pytest.raises(PlanError, match="Spanner allows 3"):
        change_streams.create(crowded, stream)
    many = parse_schema(
        MUSIC + "".join(f"; CREATE CHANGE STREAM S{n} FOR Singers()" for n in range(10))
    )
    with pytest.raises(PlanError, match="10 change streams"):
        change_streams.create(many, stream)
    for text, words in [
        ("Singers(SingerId)", "part of the key"),
        ("Singers(X)", "column Singers.X does not exist"),
    ]:
        with pytest.raises(PlanError, match=words):
            change_streams.create(schema, ChangeStream("S", (change_streams.parse_watch(text),)))
    with pytest.raises(PlanError, match="change stream X does not exist"):
        change_streams.drop(schema, "X")
    with pytest.raises(PlanError, match="use 1d to 30d"):
        change_streams.make_stream_options("1h", None, ())
    with pytest.raises(PlanError, match="invalid value capture type"):
        change_streams.make_stream_options(None, "ALL", ())
    assert change_streams.parse_watch("T()") == ChangeStreamTable("T", ())


@pytest.mark.ddl(SINGERS)
@pytest.mark.both_dialects
def test_change_streams_are_created_altered_and_dropped(database: Database) -> None:
    where = ("-d", str(address_of(database)))
    result = run(
        "change-stream",
        "create",
        "Mine",
        *where,
        "--watch",
        "Singers",
        "--retention",
        "3d",
        "--capture",
        "NEW_ROW",
        "--set",
        "exclude_ttl_deletes",
        "--apply",
    )
    assert result.returncode == 0, result.stderr
    assert (
        run(
            "change-stream", "alter", "mine", *where, "--watch", "singers(FIRSTNAME)", "--apply"
        ).returncode
        == 0
    )
    stream = read_schema(database).change_stream("Mine")
    assert stream is not None
    assert stream.watches == (ChangeStreamTable("Singers", ("FirstName",)),)
    assert dict(stream.options)["retention_period"] == "'3d'"
    more = ("--watch", "Singers", "--set", "exclude_insert")
    assert run("change-stream", "alter", "Mine", *where, *more, "--apply").returncode == 0
    stream = read_schema(database).change_stream("Mine")
    assert stream is not None
    assert stream.watches == (ChangeStreamTable("Singers"),)
    assert dict(stream.options)["exclude_insert"] == "true"
    assert run("change-stream", "drop", "mine", *where, "--apply").returncode == 0
    assert read_schema(database).change_streams == ()


def test_lint_exits_with_1_when_it_finds_something(tmp_path: Path) -> None:
    schema = tmp_path / "s.sql"
    schema.write_text("CREATE TABLE T (a TIMESTAMP) PRIMARY KEY (a)")
    result = run("lint", "--schema", str(schema), "--json")
    assert result.returncode == 1
    assert json.loads(result.stdout)[0]["rule"] == "monotonic-key-first"
    assert json.loads(result.stdout)[0].keys() == {"rule", "place", "why", "fix"}
    schema.write_text("CREATE TABLE T (a INT64) PRIMARY KEY (a)")
    well = run("lint", "--schema", str(schema))
    assert well.returncode == 0
    assert "no findings: polling can watch 0 of 1 tables" in well.stdout


BAD = "CREATE TABLE Bad (a JSON, LastModified INT64, b INT64) PRIMARY KEY (b)"
KEYLESS = "CREATE TABLE Odd (a INT64, ShardId INT64) PRIMARY KEY (a)"


@pytest.mark.ddl(SINGERS, BAD, KEYLESS)
@pytest.mark.both_dialects
def test_a_table_that_cannot_be_planned_is_left_out_and_named(database: Database) -> None:
    address = str(address_of(database))
    postgres = read_schema(database).dialect is Dialect.POSTGRESQL
    arguments: tuple[str, ...] = ("--database", address, "--table", "*", "--json")
    if postgres:  # these are the names of new columns
        arguments += ("--timestamp-column", "LastModified", "--shard-column", "ShardId")
    strict = run("plan", *arguments, "--strict")
    assert (strict.returncode, strict.stdout) == (2, "")
    assert strict.stderr.startswith("error: Bad.LastModified exists and is not a plain")
    planned = json.loads(run("plan", *arguments).stdout)
    assert {each["table"] for each in planned["statements"]} == {"Singers"}
    reasons = {each["table"]: each["reason"] for each in planned["left_out"]}
    assert reasons.keys() == {"Bad", "Odd"}
    assert "choose another name, as --timestamp-column LastModified2" in reasons["Bad"]
    assert "choose another name, as --shard-column ShardId2" in reasons["Odd"]
    shown = run("plan", *arguments[:-1] if not postgres else (*arguments[:4], *arguments[5:]))
    assert shown.returncode == 5
    assert f"error: Odd is left out: {reasons['Odd']}" in " ".join(shown.stderr.split())
    assert "2 of 3 tables are left out" in shown.stderr
    applied = run("apply", *arguments)
    assert applied.returncode == 5, applied.stderr
    assert run("plan", *arguments, "--exclude", "Bad", "--exclude", "Odd").returncode == 0
    assert run("apply", *arguments, "--strict").returncode == 2


def test_where_no_table_can_be_planned_all_reasons_are_given(tmp_path: Path) -> None:
    schema = tmp_path / "s.sql"
    schema.write_text(f"{BAD}; {KEYLESS}")
    result = run("plan", "--schema", str(schema), "--table", "*")
    assert (result.returncode, result.stdout) == (2, "")
    assert "no table can be planned. Bad: Bad.LastModified exists" in result.stderr
    assert "; Odd: Odd.ShardId exists" in result.stderr


def test_advice_for_a_shard_column_that_exists_leads_to_a_watched_table(
    create_database: CreateDatabase,
) -> None:
    """Each way that the refusal names, as it names it, and then again without options."""
    schema = parse_schema(KEYLESS)
    with pytest.raises(PlanError) as refused:
        make_plan(schema, ["Odd"], WatchOptions())
    (other,) = re.findall(r"as --shard-column (\w+)", str(refused.value))
    (kind, own) = re.findall(r"--shard ([\w-]+) --shard-column (\w+)", str(refused.value))[0]
    for flags in (("--shard-column", other), ("--shard", kind, "--shard-column", own)):
        database = create_database(KEYLESS)
        address = str(address_of(database))
        assert run("apply", "-d", address, "-t", "Odd", *flags).returncode == 0
        again = run("plan", "-d", address, "-t", "Odd", "--check")
        assert again.returncode == 0, again.stderr
        with database.batch() as batch:
            batch.insert("Odd", ("a", "ShardId"), [(1, 7)])
        watch: tuple[str, ...] = ("watch", "-d", address, "-t", "Odd", "--once", "--consumer", "c")
        watch += ("--from", "earliest")
        options = flags if "--shard" in flags else ()
        assert '"a": 1' in run_command(*watch, *options).stdout
