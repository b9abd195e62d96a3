"""What ``ddl apply`` says of a plan before it applies it, beside what the server then counts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from fixtures.singers import SINGERS, address_of
from google.cloud.spanner_v1.database import Database
from typer.testing import CliRunner

from ddl.migration import estimate
from ddl.migration.apply import apply_plan, read_schema
from ddl.migration.estimate import TableEstimate, describe_pace, estimate_plan
from ddl.migration.plan import Plan, make_plan
from ddl.rules.evolve import parse_schema
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Dialect
from watcher.cli import app

COLUMNS = ("SingerId", "FirstName", "LastName", "BirthDate", "Picture")
PICTURE = "cGljdHVyZQ=="
ROWS = 30


def insert(database: Database, *keys: int) -> int:
    """The mutations that the commit counts."""
    database.log_commit_stats = True
    with database.batch() as batch:
        rows = [(key, "First", "L" * 100, "2000-01-31", PICTURE) for key in keys]
        batch.insert("Singers", COLUMNS, rows)
    return int(batch.commit_stats.mutation_count)


def plan(database: Database) -> Plan:
    return make_plan(read_schema(database), ["Singers"], WatchOptions())


def estimate_singers(database: Database) -> TableEstimate:
    (estimated,) = estimate_plan(database, read_schema(database), plan(database))
    return estimated


@pytest.mark.both_dialects
@pytest.mark.ddl(SINGERS)
def test_rows_sizes_and_mutations_are_estimated(database: Database, dialect: Dialect) -> None:
    before = insert(database, *range(ROWS)) // ROWS
    estimated = estimate_singers(database)
    assert estimated.rows == estimated.rows_min == ROWS
    assert estimated.table_bytes == estimated.read_bytes
    assert estimated.table_bytes is not None
    assert estimated.table_bytes > ROWS * 100
    assert estimated.storage_bytes is not None
    assert estimated.backfill_hours is not None
    apply_plan(database, plan(database))
    assert estimated.mutations == (before, insert(database, ROWS))


@pytest.mark.both_dialects
@pytest.mark.ddl(SINGERS)
def test_a_table_that_is_not_counted_is_estimated_by_its_size(
    database: Database, dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(database, *range(600))
    monkeypatch.setattr(estimate, "ROWS_COUNTED_MAX", 100)
    estimated = estimate_singers(database)
    assert estimated.rows_min == 101
    assert estimated.rows is not None
    assert 200 < estimated.rows < 2_000
    assert "about " in estimated.describe()


@pytest.mark.ddl(SINGERS)
def test_no_statement_reads_more_than_a_few_rows(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(database, *range(600))
    texts: list[str] = []
    read = estimate.read_number

    def note(database: Database, text: str) -> float | None:
        texts.append(text)
        return read(database, text)

    monkeypatch.setattr(estimate, "read_number", note)
    monkeypatch.setattr(estimate, "ROWS_COUNTED_MAX", 100)
    estimate_singers(database)
    limits = [text.rpartition("LIMIT ")[2].split(")")[0] for text in texts]
    assert limits == ["101", "100", "100"]


@pytest.mark.ddl("CREATE TABLE Empty (Id INT64) PRIMARY KEY (Id)")
def test_an_empty_table_has_an_estimate(database: Database) -> None:
    migration = make_plan(read_schema(database), ["Empty"], WatchOptions())
    (estimated,) = estimate_plan(database, read_schema(database), migration)
    assert (estimated.rows, estimated.storage_bytes) == (0, 0)
    assert "0 rows" in estimated.describe()


def test_what_is_not_known_is_said() -> None:
    unknown = TableEstimate("T", None, 10_001, None, None, None, None, (3, 7))
    assert unknown.describe() == (
        "more than 10,000 rows, an unknown size; reads an unknown size in the background; an"
        " unknown size more once every row is written again; an insert of a row counts 7"
        " mutations (now 3): at most 11,428 in a commit"
    )
    hidden = replace(unknown, rows_min=0)
    assert hidden.describe().startswith("an unknown number of rows, ")


@pytest.mark.ddl(*[f"CREATE TABLE T{number} (Id INT64) PRIMARY KEY (Id)" for number in range(4)])
def test_the_largest_of_many_tables_are_estimated(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.batch() as batch:
        batch.insert("T2", ("Id",), [(key,) for key in range(2_000)])
    monkeypatch.setattr(estimate, "TABLES_MAX", 1)
    schema = read_schema(database)
    migration = make_plan(schema, ["T0", "T1", "T2", "T3"], WatchOptions())
    assert [each.table for each in estimate_plan(database, schema, migration)] == ["T2"]


@pytest.mark.both_dialects
@pytest.mark.ddl(SINGERS)
def test_a_dry_run_shows_the_estimate_and_changes_nothing(
    database: Database, dialect: Dialect
) -> None:
    insert(database, 1)
    before = read_schema(database)
    command = ["ddl", "apply", "--dry-run", "-d", str(address_of(database)), "-t", "Singers"]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0
    assert "-- estimate, Singers: 1 rows" in shown.stdout
    loaded = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    (estimated,) = loaded["estimates"]
    assert (estimated["table"], estimated["rows"]) == ("Singers", 1)
    assert read_schema(database) == before


def test_many_backfills_at_once_are_advised_against() -> None:
    names = [f"T{number}" for number in range(4)]
    schema = parse_schema([f"CREATE TABLE {name} (Id INT64) PRIMARY KEY (Id)" for name in names])
    assert describe_pace(make_plan(schema, names[:3], WatchOptions())) is None
    pace = describe_pace(make_plan(schema, names, WatchOptions()))
    assert pace is not None
    assert "at most 3 new indexes" in pace
