"""A table that is watched otherwise than asked for goes over, or the plan says how: it never passes
for what was asked for."""

from __future__ import annotations

import pytest
from fixtures.singers import SINGERS, address_of, make_watchable, write_singers
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ddl.migration.apply import read_schema, roll_back, run_statements
from ddl.migration.plan import make_plan
from ddl.rules.evolve import parse_schema
from ddl.tracking.comparison import list_differences
from ddl.tracking.status import list_statuses
from spanner_schema.model.errors import PlanError
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Dialect
from spanner_schema.watched.records import read_records
from spanner_schema.watched.tracked import find_trackings
from watcher import Change, Watcher

WIDE = (
    "CREATE TABLE Singers (SingerId INT64 NOT NULL, FirstName STRING(9), LastName STRING(9))"
    " PRIMARY KEY (SingerId)"
)


def plan(database: Database, **values: object):  # type: ignore[no-untyped-def]
    schema = read_schema(database)
    return make_plan(schema, ["Singers"], WatchOptions.model_validate(values))


def deliver(database: Database) -> list[int]:
    seen: list[Change] = []
    watcher = Watcher(database=str(address_of(database)), tables=["Singers"], consumer="c")
    watcher.on_change(seen.append)
    watcher.run_once()
    return sorted(int(str(change.key["SingerId"])) for change in seen)


@pytest.mark.both_dialects
@pytest.mark.ddl(SINGERS)
@pytest.mark.parametrize("strategy", ["automatic", "processed"])
def test_consumers_go_over_to_another_number_of_shards(database: Database, strategy: str) -> None:
    before = read_schema(database)
    make_watchable(database, strategy=strategy, shards=4, storing=["LastName"])
    assert deliver(database) == []
    write_singers(database, range(10), "before")
    assert plan(database).empty
    assert plan(database, shards=4).empty
    assert not plan(database, shards=8).empty
    make_watchable(database, strategy=strategy, shards=8)
    write_singers(database, range(5, 15), "after")
    assert deliver(database) == list(range(15))
    schema = read_schema(database)
    (status,) = list_statuses(schema, ["Singers"])
    assert (status.strategy, status.shards) == (strategy, 8)
    (index,) = schema.indexes
    assert index.storing == ("LastName",)
    with database.snapshot() as snapshot:
        rows = snapshot.read("Singers", (index.parts[0].column,), KeySet(all_=True))
        assert {row[0] for row in rows} <= set(range(8))
    (record,) = read_records(database, schema).values()
    assert not [sql for sql in record.down if sql.startswith("CREATE")]
    roll_back(database)
    after = read_schema(database)
    assert (after.table("Singers"), after.indexes) == (before.table("Singers"), before.indexes)


@pytest.mark.both_dialects
@pytest.mark.ddl(SINGERS)
def test_a_migration_that_stopped_anywhere_is_finished_by_the_next(
    database: Database,
) -> None:
    make_watchable(database, shards=4)
    whole = plan(database, shards=8)
    for statement in whole.statements[:-1]:
        run_statements(database, [statement.sql])
        if statement is not whole.statements[-2]:  # the last two go together
            rest = plan(database, shards=8)
            assert [each.sql for each in rest.statements][-2:] == [
                each.sql for each in whole.statements
            ][-2:]


asked = st.fixed_dictionaries(
    {},
    optional={
        "shards": st.integers(1, 5),
        "modulo": st.sampled_from(["positive", "signed"]),
        "shard_key": st.sampled_from([["SingerId"], ["FirstName", "LastName"]]),
        "stored": st.booleans(),
        "storing": st.sampled_from([["FirstName"], ["lastname"]]),
        "index": st.sampled_from(["ByOne", "ByTwo"]),
        "shard_column": st.sampled_from(["Shard", "ShardId"]),
        "timestamp_column": st.sampled_from(["Changed", "lastmodified"]),
        "processed_column": st.sampled_from(["Done", "Processed"]),
        "strategy": st.sampled_from(["automatic", "processed", "manual"]),
    },
)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(first=asked, second=asked, postgres=st.booleans())
def test_whatever_is_planned_is_what_was_asked_for(
    first: dict[str, object], second: dict[str, object], postgres: bool
) -> None:
    dialect = Dialect.POSTGRESQL if postgres else Dialect.GOOGLESQL
    bare = WIDE
    if postgres:
        bare = (
            'CREATE TABLE "Singers" ("SingerId" bigint NOT NULL, "FirstName" varchar(9),'
            ' "LastName" varchar(9), PRIMARY KEY ("SingerId"))'
        )
    script = [bare]
    for values in (first, second):
        schema = parse_schema(script, dialect)
        options = WatchOptions.model_validate(values)
        try:
            planned = make_plan(schema, ["Singers"], options)
        except PlanError:
            continue
        script += [each.sql for each in planned.statements]
        after = parse_schema(script, dialect)
        table = after.table("Singers")
        assert table is not None
        (tracking,) = find_trackings(after, table)
        assert list_differences(tracking, options.for_dialect(dialect)) == ()
        assert make_plan(after, ["Singers"], options).empty
        undone = parse_schema([*script, *planned.down], dialect)
        assert {i.name for i in undone.indexes} == {i.name for i in schema.indexes}


@pytest.mark.ddl(SINGERS)
def test_what_only_a_rollback_makes_possible_says_so(database: Database) -> None:
    make_watchable(database)
    refused: list[tuple[dict[str, object], str]] = [
        ({"strategy": "processed"}, "strategy automatic, but --strategy processed"),
        ({"timestamp_column": "UpdatedAt"}, "timestamp column LastModified, but"),
        ({"shard": "not-null", "shard_column": "LastName"}, "--shard not-null"),
        ({"shards": 5, "shard_column": "ShardId"}, "leave --shard-column out"),
        ({"shards": 5, "index": "SingersByShardAndTime"}, "leave --index out"),
    ]
    for values, words in refused:
        with pytest.raises(PlanError, match=words):
            plan(database, **values)
