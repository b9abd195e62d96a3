"""What applications notice of a plan: it says so, and --hidden leaves less to notice."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from fixtures.commands import run_command
from fixtures.consumers import watcher_of
from fixtures.queries import ask
from fixtures.singers import SINGERS, address_of, make_watchable, write_singers
from google.api_core.exceptions import InvalidArgument
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from ddl.migration.apply import read_schema, roll_back
from ddl.migration.plan import make_plan
from ddl.rules.evolve import parse_schema
from ddl.tracking.lint import lint_schema
from spanner_schema.model.errors import PlanError
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Dialect
from spanner_schema.model.strategies import Strategy
from watcher import Change
from watcher.consumers.clearing import Clearing
from watcher.consumers.positions import SpannerPositions
from watcher.tables.discovery import discover_table

ALL_KEY = "CREATE TABLE Pairs (A INT64, B INT64) PRIMARY KEY (A, B)"


def test_a_plan_says_what_applications_may_notice() -> None:
    schema = parse_schema(SINGERS)
    pending, key, star = make_plan(schema, ["Singers"], WatchOptions()).notes
    assert "reads a table in the transaction in which it has written it by DML" in pending
    assert "--strict-pending-timestamps" in pending
    assert "--strategy change-stream" in pending
    assert "only key columns of a row that exists does not set LastModified" in key
    assert "SELECT * of applications will have the new columns (LastModified, ShardId)" in star
    assert len(make_plan(schema, ["Singers"], WatchOptions(hidden=True)).notes) == 2
    stream = WatchOptions(strategy=Strategy.CHANGE_STREAM)
    assert not make_plan(schema, ["Singers"], stream).notes


@pytest.mark.ddl(SINGERS)
def test_hidden_columns_leave_select_star_as_it_was(database: Database) -> None:
    before, star = read_schema(database), ask(database, "SELECT * FROM Singers").names
    address = ("-d", str(address_of(database)), "-t", "Singers")
    applied = run_command("ddl", "apply", *address, "--hidden", "--json")
    assert applied.returncode == 0, applied.stderr
    assert len(json.loads(applied.stdout)["notes"]) == 2
    assert ask(database, "SELECT * FROM Singers").names == star
    write_singers(database, [1, 2], "n")
    changes: list[Change] = []
    watcher_of(database, changes, consumer="me", start="earliest").run_once()
    assert sorted(str(each.key["SingerId"]) for each in changes) == ["1", "2"]
    Clearing(database, discover_table(database, "Singers"), SpannerPositions(database), 0.0).clear()
    left = "SELECT SingerId FROM Singers WHERE LastModified IS NOT NULL"
    assert not ask(database, left).rows
    for options in (WatchOptions(), WatchOptions(hidden=True)):
        assert make_plan(read_schema(database), ["Singers"], options).empty
    make_watchable(database, "Singers", shards=4)  # another shard is hidden, too
    assert ask(database, "SELECT * FROM Singers").names == star
    roll_back(database)
    after = read_schema(database)
    assert after.table("Singers") == before.table("Singers")


def return_all(t: Transaction) -> object:
    return list(t.execute_sql("UPDATE Singers SET LastName = 'r' WHERE true THEN RETURN *"))


def select_all(t: Transaction) -> object:
    t.execute_update("UPDATE Singers SET LastName = 'u' WHERE true")
    return list(t.execute_sql("SELECT * FROM Singers"))


@pytest.mark.ddl(SINGERS)
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("work", [return_all, select_all])
def test_a_star_returns_no_pending_timestamp(
    database: Database, hidden: bool, work: Callable[[Transaction], object]
) -> None:
    make_watchable(database, hidden=hidden)
    write_singers(database, [1], "n")
    if hidden:
        assert database.run_in_transaction(work)
        return
    with pytest.raises(InvalidArgument, match="pending"):
        database.run_in_transaction(work)


@pytest.mark.ddl(SINGERS)
def test_what_is_shown_stays_shown(database: Database) -> None:
    make_watchable(database)
    with pytest.raises(PlanError, match=r"leave --hidden out, or remove what is there first"):
        make_plan(read_schema(database), ["Singers"], WatchOptions(hidden=True))


def test_the_postgresql_dialect_hides_generated_columns_only() -> None:
    schema = parse_schema("CREATE TABLE t (a bigint PRIMARY KEY)", Dialect.POSTGRESQL)
    with pytest.raises(PlanError, match=r"SELECT \* would still have last_modified"):
        make_plan(schema, ["t"], WatchOptions(hidden=True))
    assert "--hidden" not in make_plan(schema, ["t"], WatchOptions()).notes[-1]


@pytest.mark.ddl(ALL_KEY, SINGERS)
def test_a_write_of_key_columns_alone_is_not_seen_and_lint_says_so(database: Database) -> None:
    make_watchable(database, "Pairs", "Singers")
    (finding,) = (f for f in lint_schema(read_schema(database)) if f.rule == "only-key-columns")
    assert finding.place == "Pairs"
    with database.batch() as batch:
        batch.insert("Pairs", ("A", "B"), [(1, 1)])
    read = {"keyset": KeySet(all_=True), "columns": ("LastModified",)}
    with database.snapshot() as snapshot:
        (first,) = snapshot.read("Pairs", **read)
    with database.batch() as batch:
        batch.insert_or_update("Pairs", ("A", "B"), [(1, 1)])
    with database.snapshot() as snapshot:
        assert list(snapshot.read("Pairs", **read)) == [first]
