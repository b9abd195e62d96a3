"""A position is that of a table, not of a name: tables dropped and created again while nobody
looked, of which INFORMATION_SCHEMA shows no difference."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.singers import SINGERS, make_watchable
from google.cloud.spanner_v1.database import Database
from hypothesis import given
from hypothesis import strategies as st

from ddl.migration.apply import read_schema
from spanner_schema.model.schema import Dialect
from watcher import Watcher
from watcher.spanner.schema_changes import SchemaChange
from watcher.tables.replaced import find_replaced, list_gone

pytestmark = pytest.mark.ddl(SINGERS)


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("DROP TABLE Singers", ["Singers"]),
        ("-- gone\ndrop table if exists sales.`Order`;", ["sales.Order"]),
        ("ALTER TABLE A RENAME TO B", ["A", "B"]),
        ("ALTER TABLE A RENAME TO B, ADD SYNONYM A", ["A", "B"]),
        ("RENAME TABLE A TO B, C TO A", ["A", "B", "C", "A"]),
        ("ALTER TABLE A ADD COLUMN Renamed STRING(MAX)", []),
        ("DROP INDEX Singers", []),
        ("ALTER INDEX I ADD STORED COLUMN c", []),
    ],
)
def test_which_names_a_statement_takes_from_tables(statement: str, names: list[str]) -> None:
    assert list(list_gone(statement, Dialect.GOOGLESQL)) == names


def test_a_renamed_table_of_the_postgresql_dialect() -> None:
    statement = 'ALTER TABLE "a" RENAME WITH SYNONYM TO "B"'
    assert list(list_gone(statement, Dialect.POSTGRESQL)) == ["a", "B"]


@given(st.lists(st.tuples(st.integers(1, 9), st.sampled_from("AB"))), st.integers(0, 9))
def test_a_table_is_another_one_where_its_name_was_free_after_the_position(
    drops: list[tuple[int, str]], position: int
) -> None:
    changes = [SchemaChange(at, f"DROP TABLE {name}") for at, name in sorted(drops)]
    since = [change for change in changes if change.committed_at > position]
    expected = {n.lower(): at for at, n in sorted(drops) if at > position}
    found = find_replaced(since, {"a": position, "b": position}, Dialect.GOOGLESQL)
    assert found == expected


def deliver(database: Database, **settings: object) -> list[object]:
    delivered: list[object] = []
    watcher = Watcher(
        database=database.name,
        tables=["*"],
        consumer="c",
        refresh=0,
        **settings,  # type: ignore[arg-type]
    )
    watcher.on_change(lambda change: delivered.append(change.key["SingerId"]))
    watcher.run_once()
    return delivered


def write(database: Database, *keys: int) -> None:
    with database.batch() as batch:
        batch.insert("Singers", ("SingerId", "LastName"), [(key, "name") for key in keys])


def recreate(database: Database, *before_watching: int) -> None:
    index = read_schema(database).indexes[0].name
    database.update_ddl([f"DROP INDEX {index}", "DROP TABLE Singers", SINGERS]).result(60)
    if before_watching:
        write(database, *before_watching)
    make_watchable(database)


def test_rows_that_a_new_table_had_before_it_was_watchable_are_filled_in(
    database: Database,
) -> None:
    make_watchable(database)
    write(database, 1)
    assert deliver(database, backfill=["*"]) == [1]
    recreate(database, 2, 3)
    write(database, 4)
    assert deliver(database, backfill=["*"]) == [2, 3, 4]
    assert deliver(database, backfill=["*"]) == []


def test_the_only_table_of_a_consumer_is_read_from_the_beginning_when_it_is_back(
    database: Database,
) -> None:
    make_watchable(database)
    write(database, 1)
    assert deliver(database, start="earliest") == [1]
    recreate(database)
    write(database, 2)
    assert deliver(database) == [2]
    assert deliver(database) == []


def test_positions_in_a_file_are_those_of_a_table_too(database: Database, tmp_path: Path) -> None:
    place = {"keep": "file", "path": str(tmp_path / "positions.json")}
    make_watchable(database)
    write(database, 1)
    assert deliver(database, backfill=["*"], positions=place) == [1]
    recreate(database, 2)
    assert deliver(database, backfill=["*"], positions=place) == [2]
