"""What an application stored stays what it stored: whatever its columns are called, apply, the
application's writes, clearing and rollback erase nothing that nobody gave up."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from fixtures.server import CreateDatabase
from fixtures.singers import fetch_now
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ddl.migration.apply import apply_plan, plan_rollback, read_schema, roll_back
from ddl.migration.plan import make_plan
from ddl.tracking.status import list_statuses
from spanner_schema.model.errors import DdlError, PlanError
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Dialect
from spanner_schema.model.strategies import Strategy
from spanner_schema.watched.records import read_ownership
from watcher.consumers.clearing import Clearing
from watcher.consumers.positions import Position, SpannerPositions
from watcher.model.errors import NotOursError, WatcherError
from watcher.tables.discovery import discover_table, find_table_to_clear
from watcher.tables.discovery import read_schema as read_watched_schema

STAMP = "OPTIONS (allow_commit_timestamp=true)"
PENDING = "(PENDING_COMMIT_TIMESTAMP())"
FORMS = {
    "plain": "TIMESTAMP{null}",
    "option": "TIMESTAMP{null} " + STAMP,
    "option and default": "TIMESTAMP{null} DEFAULT " + PENDING + " " + STAMP,
    "other default": "TIMESTAMP{null} DEFAULT (CURRENT_TIMESTAMP())",
    "flag": "BOOL{null}",
    "flag with default": "BOOL{null} DEFAULT (FALSE)",
    "number": "INT64{null}",
    "text": "STRING(36){null}",
    "computed": "INT64 AS (MOD(Id, 4)) STORED",
    "computed from a flag": "INT64 AS (IF(Flag, NULL, MOD(Id, 4))) STORED",
}
PG = Dialect.POSTGRESQL


@dataclass(frozen=True)
class Case:
    """A table with columns of the application's own, by their names, and what is asked for."""

    columns: Mapping[str, str]
    options: WatchOptions

    @property
    def ddl(self) -> str:
        columns = "".join(f", `{name}` {form}" for name, form in self.columns.items())
        first = "Id INT64 NOT NULL, Flag BOOL, Text STRING(9)"
        return f"CREATE TABLE Kept ({first}{columns}) PRIMARY KEY (Id)"

    @property
    def written(self) -> tuple[str, ...]:
        """The columns that the application writes."""
        own = (name for name, form in self.columns.items() if " AS " not in form)
        return ("Id", "Flag", "Text", *own)


LIKELY = {
    "timestamp_column": ("plain", "option", "option and default"),
    "shard_column": ("number", "computed", "computed from a flag"),
    "processed_column": ("flag", "flag with default"),
    "change_set_column": ("text",),
}
"""The forms that a column of such a name is likely to have, and that are most like ours."""


def forms(names: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Definitions of columns."""
    null = st.sampled_from(("", "", " NOT NULL"))
    return st.builds(lambda name, n: FORMS[name].format(null=n), st.sampled_from(names), null)


@st.composite
def cases(draw: st.DrawFn, dialect: Dialect) -> Case:
    ours = WatchOptions().for_dialect(dialect)
    known = tuple(sorted(FORMS.keys() - ({"computed from a flag"} if dialect is PG else set())))
    strategy, shards = draw(st.sampled_from(Strategy)), draw(st.integers(1, 4))
    values: dict[str, object] = {"strategy": strategy, "shards": shards}
    if draw(st.booleans()):
        values["timestamp_column"] = "UpdatedAt"
    chosen = draw(st.lists(st.sampled_from(sorted(LIKELY)), min_size=1, max_size=3, unique=True))
    columns = {}
    for each in chosen:
        likely = tuple(form for form in LIKELY[each] if form in known)
        column = values.get(each, getattr(ours, each))
        columns[str(column)] = draw(st.one_of(forms(likely), forms(likely), forms(known)))
    return Case(columns, WatchOptions.model_validate(values))


def make_value(form: str, source: random.Random) -> object:
    """A value that an application might store."""
    if form.startswith("TIMESTAMP"):
        value: object = datetime(
            2001, 1, 1 + source.randrange(28), source.randrange(24), tzinfo=UTC
        )
    elif form.startswith("BOOL"):
        value = source.random() < 0.5
    elif form.startswith("INT64"):
        value = source.randrange(-9, 9)
    else:
        value = f"text {source.randrange(9)}"
    return None if "NOT NULL" not in form and source.random() < 0.2 else value


def write_rows(database: Database, case: Case, source: random.Random) -> dict[int, list[object]]:
    """Rows of the application, some of them changed afterwards; what it stored, by key."""
    rows = {}
    for key in range(4):
        own = [
            make_value(form, source) for name, form in case.columns.items() if name in case.written
        ]
        rows[key] = [key, None, "one", *own]
    with database.batch() as batch:
        batch.insert_or_update("Kept", case.written, list(rows.values()))
    for key in range(2):
        rows[key][2] = "two"
        with database.batch() as batch:  # as an application that knows nothing of the others
            batch.update("Kept", ("Id", "Text"), [(key, "two")])
    return rows


def read_rows(database: Database, case: Case) -> dict[int, list[object]]:
    with database.snapshot() as snapshot:
        rows = snapshot.read("Kept", case.written, KeySet(all_=True))
        return {row[0]: list(row) for row in rows}


def clear_if_allowed(database: Database) -> None:
    """Clears behind a consumer that has delivered everything."""
    try:
        table = find_table_to_clear(read_watched_schema(database), "Kept", database.name)
        positions = SpannerPositions(database)
        positions.create()
        now = fetch_now(database)
        for name in {"Kept", table.name}:
            positions.save(Position("c", name, now), None)
        Clearing(database, table, positions).clear()
    except WatcherError:
        return


@pytest.mark.both_dialects
@pytest.mark.parametrize("seed", range(2))
def test_what_an_application_stored_survives_all_that_nobody_let_it_lose(
    create_database: CreateDatabase, dialect: Dialect, seed: int
) -> None:
    source = random.Random(seed)

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=cases(dialect))
    def check(case: Case) -> None:
        database = create_database(case.ddl)
        before = read_schema(database)
        written = write_rows(database, case, source)
        assert read_rows(database, case) == written
        try:
            plan = make_plan(before, ["Kept"], case.options)
        except DdlError:
            assert read_schema(database) == before
            return
        assert plan.taken_over == ()
        apply_plan(database, plan)
        assert read_rows(database, case) == written
        written = write_rows(database, case, source)
        assert read_rows(database, case) == written
        clear_if_allowed(database)
        assert read_rows(database, case) == written
        roll_back(database)
        after = read_schema(database)
        assert after.table("Kept") == before.table("Kept")
        assert read_rows(database, case) == written

    check()


MANUAL = f"CREATE TABLE Kept (Id INT64 NOT NULL, UpdatedAt TIMESTAMP {STAMP}) PRIMARY KEY (Id)"


@pytest.mark.both_dialects
@pytest.mark.ddl(MANUAL)
def test_clearing_waits_for_the_word_that_it_may(database: Database) -> None:
    def plan(**values: object):  # type: ignore[no-untyped-def]
        options = {"strategy": "manual", "timestamp_column": "updatedat", "shards": 3} | values
        schema = read_schema(database)
        asked = WatchOptions.model_validate(options)
        return make_plan(schema, ["Kept"], asked, read_ownership(database, schema))

    before = read_schema(database)
    first = plan()
    assert "--take-over UpdatedAt" in first.statements[-1].reason
    apply_plan(database, first)
    with database.batch() as batch:
        batch.insert("Kept", ("Id", "UpdatedAt"), [(1, "spanner.commit_timestamp()")])
    positions = SpannerPositions(database)
    positions.create()
    positions.save(Position("c", "Kept", fetch_now(database)), None)
    clearing = Clearing(database, discover_table(database, "Kept"), positions)
    for forbidden in (clearing.clear, clearing.count, clearing.explain):
        with pytest.raises(NotOursError, match="--take-over UpdatedAt"):
            forbidden()
    second = plan(take_over=["UPDATEDAT"])
    (taken,) = second.taken_over
    assert (taken.name, taken.effect) == ("UpdatedAt", "clearing would set it to NULL")
    assert not second.statements
    assert not second.empty
    apply_plan(database, second)
    assert plan(take_over=["UpdatedAt"]).empty
    assert clearing.clear().rows == 1
    roll_back(database)
    assert read_schema(database).table("Kept") == before.table("Kept")
    with pytest.raises(NotOursError):  # with the record went the word
        clearing.clear()


@pytest.mark.both_dialects
@pytest.mark.ddl("CREATE TABLE Kept (Id INT64 NOT NULL, N INT64) PRIMARY KEY (Id)")
def test_no_clearing_keeps_rows_from_their_deletion(database: Database) -> None:
    def plan(**values: object):  # type: ignore[no-untyped-def]
        asked = WatchOptions.model_validate({"shards": 3} | values)
        return make_plan(read_schema(database), ["Kept"], asked)

    apply_plan(database, plan())
    watched = discover_table(database, "Kept")
    stamp = watched.timestamp_column
    policy = {
        Dialect.GOOGLESQL: f"ADD ROW DELETION POLICY (OLDER_THAN({stamp}, INTERVAL 9 DAY))",
        PG: f"ADD TTL INTERVAL '9 days' ON {stamp}",
    }
    database.update_ddl([f"ALTER TABLE {watched.name} {policy[watched.dialect]}"]).result(60)
    with database.batch() as batch:
        batch.insert(watched.name, ("Id", "N"), [(1, 1)])
    positions = SpannerPositions(database)
    positions.create()
    positions.save(Position("c", watched.name, fetch_now(database)), None)
    with pytest.raises(NotOursError, match="then never deletes the row"):
        Clearing(database, watched, positions).clear()
    database.update_ddl([f"DROP INDEX {watched.index}"]).result(60)
    with pytest.raises(PlanError, match="is the column of the table's row deletion policy"):
        plan()
    assert not plan(strategy="processed", shard_column="other").empty


@pytest.mark.ddl(
    f"CREATE TABLE Kept (Id INT64 NOT NULL, Archived BOOL, Changed TIMESTAMP {STAMP},"
    " Shard INT64 AS (CASE WHEN Archived THEN NULL ELSE MOD(Id, 4) END)) PRIMARY KEY (Id)",
    "CREATE NULL_FILTERED INDEX KeptByShard ON Kept(Shard, Changed)",
)
def test_clearing_marks_no_row_by_a_column_that_means_something_else(database: Database) -> None:
    with database.batch() as batch:
        columns = ("Id", "Archived", "Changed")
        batch.insert("Kept", columns, [(1, False, "spanner.commit_timestamp()")])
    positions = SpannerPositions(database)
    positions.create()
    positions.save(Position("c", "Kept", fetch_now(database)), None)
    clearing = Clearing(database, discover_table(database, "Kept"), positions)
    with pytest.raises(NotOursError, match="--processed-column Archived --take-over Archived"):
        clearing.clear()
    asked = {
        "strategy": "processed",
        "timestamp_column": "Changed",
        "shard_column": "Shard",
        "processed_column": "Archived",
        "take_over": ["Archived"],
    }
    plan = make_plan(read_schema(database), ["Kept"], WatchOptions.model_validate(asked))
    assert [each.effect for each in plan.taken_over] == ["clearing would set it to TRUE"]
    apply_plan(database, plan)
    assert clearing.clear().rows == 1


@pytest.mark.both_dialects
@pytest.mark.ddl(MANUAL)
def test_what_is_taken_over_is_given_back_as_it_was(database: Database) -> None:
    before = read_schema(database)
    options = WatchOptions(timestamp_column="UpdatedAt", take_over=("UpdatedAt",))
    plan = make_plan(before, ["Kept"], options)
    (taken,) = plan.taken_over
    assert "overwrite" in taken.effect
    apply_plan(database, plan)
    schema = read_schema(database)
    (status,) = list_statuses(schema, ["Kept"])
    assert status.strategy == "automatic"
    assert make_plan(schema, ["Kept"], options, read_ownership(database, schema)).empty
    with pytest.raises(DdlError, match="no record"):
        plan_rollback(database, ["Others"])
    roll_back(database)
    assert read_schema(database).table("Kept") == before.table("Kept")
