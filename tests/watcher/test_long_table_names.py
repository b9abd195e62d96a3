"""Names of tables as long as Spanner allows, in a named schema: 257 characters."""

from __future__ import annotations

import pytest
from fixtures.commands import run_command
from fixtures.consumers import watcher_of
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, make_watchable
from google.cloud.spanner_v1.database import Database

from ddl.migration.apply import read_schema, roll_back
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.names import TABLE_NAME_CHARACTERS_MAX
from spanner_schema.model.schema import Column, Dialect
from spanner_schema.model.steps import redefine_column
from spanner_schema.syntax.render import render_step
from spanner_schema.watched.records import TABLE as RECORDS
from watcher import Change
from watcher.consumers.clearing import Clearing
from watcher.consumers.positions import SpannerPositions
from watcher.consumers.positions.tables import WATCHED
from watcher.tables.discovery import discover_table

NAME = f"{'s' * 128}.{'T' * 128}"


def watch(database: Database, table: str) -> list[Change]:
    changes: list[Change] = []
    watcher_of(database, changes, tables=[table], consumer="me", start="earliest").run_once()
    return changes


def test_a_table_with_the_longest_name_goes_the_whole_way(create_database: CreateDatabase) -> None:
    assert len(NAME) == TABLE_NAME_CHARACTERS_MAX
    schema, _, _ = NAME.partition(".")
    database = create_database(
        f"CREATE SCHEMA {schema}", f"CREATE TABLE {NAME} (Id INT64, V INT64) PRIMARY KEY (Id)"
    )
    before = read_schema(database)
    make_watchable(database, NAME)
    with database.batch() as batch:
        batch.insert(NAME, ("Id", "V"), [(1, 1)])
    assert [each.table for each in watch(database, NAME)] == [NAME]
    positions = SpannerPositions(database)
    Clearing(database, discover_table(database, NAME), positions, 0.0).clear()
    roll_back(database)
    after = read_schema(database)
    assert after.table(NAME) == before.table(NAME)


def list_lengths(database: Database) -> dict[str, int | None]:
    """How many characters the name of a table may have in each of the own tables."""
    columns = {table.name: table.column(WATCHED) for table in read_schema(database).tables}
    return {name: column.type.length for name, column in columns.items() if column is not None}


@pytest.mark.ddl(SINGERS)
@pytest.mark.both_dialects
def test_own_tables_of_earlier_releases_are_widened_by_what_changes_the_schema(
    database: Database, dialect: Dialect
) -> None:
    make_watchable(database)
    watch(database, "Singers")
    lengths = list_lengths(database)
    assert RECORDS in lengths
    assert len(lengths) > 3
    assert set(lengths.values()) == {TABLE_NAME_CHARACTERS_MAX}
    shorter = Column(WATCHED, Type(TypeCode.STRING, 256), not_null=True)
    steps = [redefine_column(name, shorter, dialect) for name in lengths]
    database.update_ddl([render_step(step, dialect) for step in steps]).result(60)
    narrow = list_lengths(database)
    for command in (["status"], ["ddl", "status"], ["ddl", "plan", "-t", "*"]):
        assert run_command(*command, "-d", str(address_of(database))).returncode == 0
    assert list_lengths(database) == narrow
    watch(database, "Singers")
    assert list_lengths(database) == lengths | {RECORDS: 256}
    make_watchable(database, "Singers", storing=["LastName"])
    assert list_lengths(database) == lengths
