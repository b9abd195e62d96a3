"""``--positions-table`` with any name: it works in both dialects, or is refused before anything."""

from __future__ import annotations

import pytest
from fixtures.consumers import watcher_of
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, fetch_now, make_watchable
from google.cloud.spanner_v1.database import Database
from hypothesis import example, given
from hypothesis import strategies as st

from ddl.migration.apply import read_schema
from spanner_schema.model.names import NAME_LENGTH_MAX
from spanner_schema.model.schema import Dialect
from spanner_schema.syntax.postgres.reserved import QUOTED
from watcher import Change
from watcher.consumers.clearing import Clearing
from watcher.consumers.leases import Consumers
from watcher.consumers.positions import SpannerPositions, own_tables
from watcher.consumers.positions.own_names import LONGEST, check_positions_table
from watcher.consumers.positions.unregister import unregister
from watcher.consumers.states import Command
from watcher.model.errors import ConfigurationError, WatcherError
from watcher.overview.reader import StaleReader
from watcher.overview.stored import read_own_columns, read_stored_state
from watcher.tables.discovery import discover_table

GOOGLESQL_RESERVED = ("ORDER", "select", "Table", "GROUP", "from", "CONSTRAINT", "GRAPH_TABLE")
words = st.text("aZ_9 .`\"'-é\\", max_size=12)
names = st.one_of(
    words,
    st.sampled_from((*GOOGLESQL_RESERVED, *sorted(QUOTED))),
    st.builds(
        lambda n, end: "x" * n + end, st.integers(40, 140), st.sampled_from(("", "Positions"))
    ),
)
paths = st.one_of(names, st.builds(lambda a, b: f"{a}.{b}", names, names))


@given(paths, st.sampled_from(Dialect))
@example("Positions", Dialect.GOOGLESQL)
def test_own_names_can_be_names_or_are_refused(name: str, dialect: Dialect) -> None:
    try:
        check_positions_table(name, dialect)
    except ConfigurationError:
        return
    tables = own_tables(name)
    assert tables[0] == name
    assert len({each.casefold() for each in tables}) == len(tables)
    for table in tables:
        for part in table.split("."):
            assert 0 < len(part) <= NAME_LENGTH_MAX[dialect]
            assert part.replace("_", "").isalnum()
            assert part.isascii()
    assert {each.rpartition(".")[0] for each in tables} == {name.rpartition(".")[0]}


def use(database: Database, name: str) -> None:
    """Everything that reads and writes the own tables, under their names."""
    changes: list[Change] = []
    watcher = watcher_of(
        database, changes, consumer="me", positions={"table": name}, start="earliest"
    )
    assert watcher.run_once() == 1
    positions, consumers = SpannerPositions(database, name), Consumers(database, name)
    assert [each.table for each in positions.list_all()] == ["Singers"]
    consumers.ask("me", Command.PAUSE)
    assert consumers.command("me") is Command.PAUSE
    Clearing(database, discover_table(database, "Singers"), positions).clear()
    reader = StaleReader(database, fetch_now(database))
    state = read_stored_state(reader, name, read_own_columns(reader, name))
    assert list(state.statuses) == ["me"]
    assert unregister(database, name, "me") == {"me": ("Singers",)}
    assert positions.list_all() == ()


def prepare(create: CreateDatabase, *more: str) -> Database:
    database = create(*more, SINGERS)
    make_watchable(database)
    with database.batch() as batch:
        batch.insert("Singers", ("SingerId", "LastName"), [(1, "name")])
    return database


def longest(dialect: Dialect) -> str:
    return "L" + "o" * (NAME_LENGTH_MAX[dialect] - LONGEST - 1)


@pytest.mark.both_dialects
def test_names_that_need_quotes_or_are_as_long_as_they_may_be_work(
    create_database: CreateDatabase, dialect: Dialect
) -> None:
    database = prepare(create_database, "CREATE SCHEMA sales")
    for name in ("Order", "Select", "sales.Table", longest(dialect), f"sales.{longest(dialect)}"):
        before = {table.name for table in read_schema(database).tables}
        with database.batch() as batch:
            batch.update("Singers", ("SingerId", "LastName"), [(1, name[:20])])
        use(database, name)
        made = {table.name for table in read_schema(database).tables} - before
        assert made == set(own_tables(name))


@pytest.mark.both_dialects
def test_another_spelling_is_refused_with_the_right_one(
    create_database: CreateDatabase, dialect: Dialect
) -> None:
    database = prepare(create_database)
    for name, other in (("MyPositions", "mypositions"), ("foo", "Foo")):
        SpannerPositions(database, name).create()
        before = read_schema(database)
        for refused in (SpannerPositions(database, other), Consumers(database, other)):
            with pytest.raises(ConfigurationError, match=f"exists as '{name}': use that spelling"):
                refused.create()
        Consumers(database, name).create()
        assert read_schema(database) == before


REFUSED = (
    "",
    "a.b.c",
    "my table",
    "`x`",
    '"x"',
    "x;y",
    "1x",
    "_x",
    "tëst",
    "public.x",
    "a..b",
    "x.",
    ".x",
)


@pytest.mark.both_dialects
def test_other_names_are_refused_before_anything(
    create_database: CreateDatabase, dialect: Dialect
) -> None:
    database = prepare(create_database)
    before = read_schema(database)
    for name in (*REFUSED, longest(dialect) + "o", f"{'s' * 129}.x"):
        with pytest.raises(WatcherError) as refusal:
            watcher_of(database, [], consumer="me", positions={"table": name}).run_once()
        assert refusal.value.exit_code == ConfigurationError.exit_code, name
        with pytest.raises(ConfigurationError):
            SpannerPositions(database, name).create()
    assert read_schema(database) == before


@pytest.mark.both_dialects
def test_tables_of_the_application_are_left_alone(
    create_database: CreateDatabase, dialect: Dialect
) -> None:
    members = "CREATE TABLE Members (MemberId INT64, Name STRING(9)) PRIMARY KEY (MemberId)"
    database = prepare(create_database, members)
    before = read_schema(database)
    for name in ("Positions", "Singers"):
        with pytest.raises(ConfigurationError, match="exists and is not one of spanner-watcher's"):
            watcher_of(database, [], consumer="me", positions={"table": name}).run_once()
        reader = StaleReader(database, fetch_now(database))
        with pytest.raises(ConfigurationError, match="is not one of spanner-watcher's"):
            read_own_columns(reader, name)
    assert read_schema(database) == before
