"""What apply puts in, rollback takes out, and nothing else: schema and rows are what they were."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from fixtures.dialects import translate
from fixtures.singers import SINGERS, address_of
from fixtures.warm_python import WARM_PYTHON, WarmProcess
from google.api_core.exceptions import GoogleAPICallError
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ddl.migration.apply import apply_plan, plan_rollback, read_schema, roll_back
from ddl.migration.plan import make_plan
from ddl.rules.evolve import apply_step, parse_schema, reverse_step
from spanner_schema.model.errors import PlanError
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Dialect, Index, KeyPart, Schema
from spanner_schema.model.steps import CreateIndex
from spanner_schema.model.strategies import Strategy
from spanner_schema.syntax.parse import parse_statement
from spanner_schema.syntax.render import render_schema, render_step
from spanner_schema.watched.records import read_ownership, read_records

CHILD = (
    "CREATE TABLE Albums (SingerId INT64, AlbumId STRING(36), Title STRING(MAX))"
    " PRIMARY KEY (SingerId, AlbumId), INTERLEAVE IN PARENT Singers ON DELETE CASCADE"
)
STAMPED = (
    "CREATE TABLE Stamped (Id INT64, `At` TIMESTAMP OPTIONS (allow_commit_timestamp=true))"
    " PRIMARY KEY (Id)"
)
STRATEGIES = [s for s in Strategy if s is not Strategy.MANUAL]


def rows(database: Database) -> list[list[object]]:
    with database.snapshot() as snapshot:
        columns = ("SingerId", "FirstName", "LastName")
        return list(snapshot.read("Singers", columns, KeySet(all_=True)))


@pytest.mark.ddl(SINGERS, CHILD)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.both_dialects
def test_apply_then_plan_is_empty_then_rollback_restores(
    database: Database, strategy: Strategy
) -> None:
    with database.batch() as batch:
        batch.insert("Singers", ("SingerId", "LastName"), [(k, f"n{k}") for k in range(30)])
    before, data = read_schema(database), rows(database)
    options = WatchOptions(strategy=strategy, shards=5)
    apply_plan(database, make_plan(before, ["Singers", "Albums"], options))
    assert make_plan(read_schema(database), ["Singers", "Albums"], options).empty
    assert rows(database) == data
    roll_back(database)
    assert read_schema(database) == before
    assert rows(database) == data


@pytest.mark.ddl(STAMPED)
@pytest.mark.both_dialects
def test_what_was_there_before_stays(database: Database) -> None:
    before = read_schema(database)
    options = WatchOptions(strategy=Strategy.MANUAL, timestamp_column="At", shards=3)
    apply_plan(database, make_plan(before, ["Stamped"], options))
    assert len(read_schema(database).indexes) == 1
    roll_back(database, ["stamped"])
    assert read_schema(database) == before


@pytest.mark.ddl(SINGERS, CHILD)
@pytest.mark.both_dialects
def test_one_table_is_taken_out_and_the_other_stays(database: Database) -> None:
    apply_plan(database, make_plan(read_schema(database), ["Singers", "Albums"], WatchOptions()))
    roll_back(database, ["Albums"])
    schema = read_schema(database)
    assert [index.table for index in schema.indexes] == ["Singers"]
    assert make_plan(schema, ["Singers"], WatchOptions()).empty
    with pytest.raises(PlanError, match="table Albums has no record"):
        roll_back(database, ["Albums"])


@pytest.mark.both_dialects
@pytest.mark.ddl(SINGERS)
def test_what_somebody_has_come_to_depend_on_is_not_taken_out(
    database: Database, dialect: Dialect
) -> None:
    apply_plan(database, make_plan(read_schema(database), ["Singers"], WatchOptions()))
    index = Index(
        "Mine", "Singers", (KeyPart(WatchOptions().for_dialect(dialect).timestamp_column),)
    )
    database.update_ddl([render_step(CreateIndex(index), dialect)]).result(60)
    before = read_schema(database)
    with pytest.raises(PlanError, match="is used by index Mine"):
        roll_back(database)
    assert read_schema(database) == before


VIEW = "CREATE VIEW Mine SQL SECURITY INVOKER AS "
OTHER = "CREATE TABLE Other (Id INT64, LastModified TIMESTAMP, V INT64) PRIMARY KEY (Id)"
DEPENDENTS = {
    "view Mine": VIEW + "SELECT s.SingerId, s.LastModified AS m FROM Singers AS s",
    "view Mine ": VIEW
    + "SELECT Singers.SingerId FROM Singers WHERE Singers.LastModified IS NOT NULL",
    "view Mine (FORCE_INDEX)": VIEW + "SELECT s.SingerId FROM"
    " Singers@{FORCE_INDEX=SingersByShardAndTime} s"
    " WHERE s.ShardId IS NOT NULL AND s.LastModified IS NOT NULL",
    "change stream Mine": "CREATE CHANGE STREAM Mine FOR Singers(LastModified)",
    "index Mine": "CREATE INDEX Mine ON Singers(FirstName) STORING (LastModified)",
    "generated column Singers.Mine": "ALTER TABLE Singers ADD COLUMN Mine INT64 AS (ShardId + 1)",
    "constraint Mine of Singers": "ALTER TABLE Singers ADD CONSTRAINT Mine CHECK (ShardId < 99)",
    "the row deletion policy of Singers": "ALTER TABLE Singers ADD ROW DELETION POLICY"
    " (OLDER_THAN(LastModified, INTERVAL 30 DAY))",
    "foreign key Mine of Other": "ALTER TABLE Other ADD CONSTRAINT Mine FOREIGN KEY (V)"
    " REFERENCES Singers (ShardId)",
}
HARMLESS = (
    VIEW + "SELECT s.SingerId, o.LastModified AS m FROM Singers AS s JOIN Other AS o ON TRUE",
    VIEW + "SELECT s.SingerId, s.BirthDate AS LastModified FROM Singers s",
    VIEW + "SELECT o.LastModified FROM Other o",
    "CREATE CHANGE STREAM Mine FOR Singers",
    "CREATE CHANGE STREAM Mine FOR Other(LastModified)",
)


@pytest.mark.ddl(SINGERS, OTHER)
@pytest.mark.parametrize("name", DEPENDENTS)
def test_rollback_names_what_depends_on_its_columns_and_changes_nothing(
    database: Database, name: str
) -> None:
    before = read_schema(database)
    # A foreign key to a column that is not stored makes an index on it.
    options = WatchOptions(stored=True)
    apply_plan(database, make_plan(before, ["Singers"], options))
    database.update_ddl([DEPENDENTS[name]]).result(60)
    watched = read_schema(database)
    with pytest.raises(PlanError) as refused:
        roll_back(database)
    assert f"is used by {name.strip()}" in str(refused.value)
    assert read_schema(database) == watched
    down = read_records(database, watched)["Singers"].down
    with pytest.raises(GoogleAPICallError):  # the server refuses it, too: midway
        database.update_ddl(down).result(60)


@pytest.mark.ddl(SINGERS, OTHER)
@pytest.mark.parametrize("statement", HARMLESS)
def test_rollback_is_not_kept_from_by_what_only_looks_like_it(
    database: Database, statement: str
) -> None:
    apply_plan(database, make_plan(read_schema(database), ["Singers"], WatchOptions()))
    database.update_ddl([statement]).result(60)
    assert roll_back(database)
    after = read_schema(database).table("Singers")
    assert after is not None
    assert after.column("LastModified") is None


@pytest.mark.ddl(SINGERS)
@pytest.mark.both_dialects
def test_rollback_goes_on_where_it_was_interrupted(database: Database) -> None:
    before = read_schema(database)
    apply_plan(database, make_plan(before, ["Singers"], WatchOptions()))
    statements, _ = plan_rollback(database)
    database.update_ddl(statements[:2]).result(60)
    assert plan_rollback(database)[0] == statements[2:]
    roll_back(database)
    assert read_schema(database) == before


@pytest.mark.both_dialects
@pytest.mark.ddl(SINGERS)
def test_what_an_application_has_made_anew_under_the_same_name_stays(database: Database) -> None:
    schema = read_schema(database)
    (table,) = schema.tables
    apply_plan(database, make_plan(schema, [table.name], WatchOptions()))
    (index,) = read_schema(database).indexes
    stamp = index.parts[1].column
    own = {
        Dialect.GOOGLESQL: f"(K INT64, {stamp} TIMESTAMP OPTIONS (allow_commit_timestamp=true))"
        " PRIMARY KEY (K)",
        Dialect.POSTGRESQL: f"(k bigint PRIMARY KEY, {stamp} spanner.commit_timestamp)",
    }
    anew = f"CREATE TABLE {table.name} {own[schema.dialect]}"
    database.update_ddl([f"DROP INDEX {index.name}", f"DROP TABLE {table.name}", anew]).result(60)
    with database.batch() as batch:
        batch.insert(table.name, ("k", stamp), [(1, datetime(2001, 1, 1, tzinfo=UTC))])
    schema = read_schema(database)
    with pytest.raises(PlanError, match=f"--take-over {stamp}"):
        make_plan(schema, [table.name], WatchOptions(), read_ownership(database, schema))
    assert roll_back(database) == []
    assert read_schema(database).table(table.name) == schema.table(table.name)


@pytest.mark.both_dialects
@pytest.mark.ddl(SINGERS)
def test_a_table_of_change_sets_stays_once_it_has_columns_of_an_application(
    database: Database,
) -> None:
    schema = read_schema(database)
    (table,) = schema.tables
    options = WatchOptions(strategy=Strategy.CHANGE_SET)
    apply_plan(database, make_plan(schema, [table.name], options))
    sets = options.for_dialect(schema.dialect).change_sets
    kind = {Dialect.GOOGLESQL: "STRING(MAX)", Dialect.POSTGRESQL: "varchar"}[schema.dialect]
    database.update_ddl([f"ALTER TABLE {sets} ADD COLUMN why {kind}"]).result(60)
    roll_back(database)
    after = read_schema(database)
    assert after.table(table.name) == table
    kept = after.table(sets)
    assert kept is not None
    assert kept.column("why") is not None


@pytest.mark.both_dialects
@pytest.mark.parametrize("taken", [0, 1, 2])
@pytest.mark.ddl(*(f"CREATE TABLE {name} (Id INT64) PRIMARY KEY (Id)" for name in "ABC"))
def test_the_other_tables_of_a_change_stream_are_watched_on(database: Database, taken: int) -> None:
    before = read_schema(database)
    names = [table.name for table in before.tables]
    for name in names:
        options = WatchOptions(strategy=Strategy.CHANGE_STREAM)
        apply_plan(database, make_plan(read_schema(database), [name], options))
    roll_back(database, [names[taken]])
    (stream,) = read_schema(database).change_streams
    others = [name for name in names if name != names[taken]]
    assert [watched.table for watched in stream.watches] == others
    roll_back(database)
    left = [each.watches for each in read_schema(database).change_streams]
    assert left == ([()] if taken == 0 else []), "who made the stream is gone from the records"


@pytest.mark.both_dialects
@pytest.mark.parametrize("delay", [0.0, 0.05, 0.15, 0.4])
def test_apply_killed_at_any_moment_is_finished_by_the_next(
    create_database: Callable[..., Database], dialect: Dialect, delay: float
) -> None:
    database = create_database(SINGERS, CHILD)
    before = read_schema(database)
    with database.batch() as batch:
        batch.insert("Singers", ("SingerId", "LastName"), [(k, "n") for k in range(2_000)])
    arguments = ["ddl", "apply", "-d", str(address_of(database)), "-t", "*", "--stored"]
    command = ["-u", "-c", "from watcher.cli import main; main()", *arguments]
    process = WarmProcess(command, stdout=subprocess.PIPE, env=os.environ | {"COLUMNS": "80"})
    assert process.stdout is not None
    process.stdout.readline()  # the plan is shown: what follows is the work
    time.sleep(delay)  # where in the work it strikes; every place must do
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    options = WatchOptions(stored=True)
    again = subprocess.run([*WARM_PYTHON, *command], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    after = read_schema(database)
    assert make_plan(after, ["Singers", "Albums"], options).empty
    suffix = "_by_shard_and_time" if dialect is Dialect.POSTGRESQL else "ByShardAndTime"
    assert {index.name for index in after.indexes} == {f"Singers{suffix}", f"Albums{suffix}"}
    roll_back(database)
    assert read_schema(database) == before


KEYS: dict[str, list[object]] = {
    "INT64": [1, -5],
    "STRING(40)": ["a", "it's"],
    "BYTES(9)": [b"eA==", b"eQ=="],
    "DATE": ["2026-01-31", "1999-12-31"],
    "TIMESTAMP": ["2026-01-31T00:00:00Z", "1999-12-31T00:00:00.123456789Z"],
    "BOOL": [True, False],
    "NUMERIC": ["1.5", "-2"],
    "FLOAT64": [1.5, float("inf")],
}
KINDS = {
    Dialect.GOOGLESQL: sorted(KEYS),
    Dialect.POSTGRESQL: sorted(KEYS.keys() - {"BYTES(9)", "TIMESTAMP", "NUMERIC"}),
}
"""The types of keys that have shards."""


@pytest.mark.both_dialects
def test_any_key_and_any_strategy_is_planned_whole_and_taken_out_whole(
    create_database: Callable[..., Database], dialect: Dialect
) -> None:
    kinds = st.lists(st.sampled_from(KINDS[dialect]), min_size=1, max_size=3)
    shard = WatchOptions().for_dialect(dialect).shard_column

    @settings(max_examples=24, deadline=None, suppress_health_check=list(HealthCheck))
    @given(kinds, st.sampled_from(STRATEGIES), st.booleans(), st.integers(1, 20))
    def check(key: list[str], strategy: Strategy, stored: bool, shards: int) -> None:
        names = [f"Key Part {n}".replace(" ", "_") for n in range(len(key))]
        columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, key, strict=True))
        table = (
            f"CREATE TABLE `Order` ({columns}, Other STRING(MAX)) PRIMARY KEY ({', '.join(names)})"
        )
        database = create_database(table)
        with database.batch() as batch:
            rows = [[KEYS[kind][n] for kind in key] for n in range(2)]
            batch.insert("Order", names, rows)
        before = read_schema(database)
        assert before == parse_schema(
            translate(table) if dialect is Dialect.POSTGRESQL else table, dialect
        )
        options = WatchOptions(strategy=strategy, stored=stored, shards=shards)
        apply_plan(database, make_plan(before, ["Order"], options))
        after = read_schema(database)
        assert make_plan(after, ["Order"], options).empty
        table_after = after.table("Order")
        assert table_after is not None
        if table_after.column(shard) is not None:
            with database.snapshot() as snapshot:
                rows = snapshot.read("Order", (shard,), KeySet(all_=True))
                assert all(row[0] in range(shards) for row in rows)
        roll_back(database)
        assert read_schema(database) == before
        with database.snapshot() as snapshot:
            assert len(list(snapshot.read("Order", names, KeySet(all_=True)))) == 2

    check()


COLUMN_STEPS = [
    "ALTER TABLE T ADD COLUMN c{n} INT64",
    "ALTER TABLE T ADD COLUMN s{n} TIMESTAMP OPTIONS (allow_commit_timestamp = true)",
    "ALTER TABLE T ALTER COLUMN b STRING(20)",
    "ALTER TABLE T ALTER COLUMN b SET DEFAULT ('x')",
    "CREATE INDEX I{n} ON T(b)",
    "CREATE TABLE U{n} (k INT64) PRIMARY KEY (k)",
    "CREATE CHANGE STREAM S{n} FOR T",
    "ALTER TABLE T ADD CONSTRAINT k{n} CHECK (a > 0)",
    "ALTER TABLE T ADD ROW DELETION POLICY (OLDER_THAN(w, INTERVAL {d} DAY))",
]


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(chosen=st.lists(st.sampled_from(range(len(COLUMN_STEPS))), max_size=12))
def test_the_reverse_of_any_steps_restores_the_schema(chosen: list[int]) -> None:
    start = parse_schema("CREATE TABLE T (a INT64, b STRING(10), w TIMESTAMP) PRIMARY KEY (a)")
    now, back = start, []
    for number, which in enumerate(chosen):
        if which == 8 and now.tables[0].row_deletion_policy is not None:
            continue
        step = parse_statement(COLUMN_STEPS[which].format(n=number, d=number + 1))
        back.append(reverse_step(step, now))
        now = apply_step(now, step)
    for undo in reversed(back):
        for step in undo:
            now = apply_step(now, step)
    assert statements_of(now) == statements_of(start)


def statements_of(schema: Schema) -> list[str]:
    return render_schema(schema)
