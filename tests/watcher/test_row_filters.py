"""``where`` of a table: rows that do not satisfy it never leave Spanner, or this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fixtures.any_condition import write_condition
from fixtures.everything import rows, write
from fixtures.server import CreateDatabase
from fixtures.singers import address_of, fetch_now
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP
from google.cloud.spanner_v1.database import Database
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from ddl.rules.evolve import parse_schema
from spanner_schema.model.schema import Dialect
from watcher import Change, Watcher
from watcher.captures.key_ranges import KeyRangeCapture
from watcher.captures.poll import PollCapture
from watcher.captures.row_filters import render_filter
from watcher.captures.snapshot import SnapshotCapture
from watcher.captures.statements import select_window
from watcher.cli import app
from watcher.model.errors import ConfigurationError
from watcher.model.window import BEGINNING, Window
from watcher.settings.watcher import parse_watch_config
from watcher.spanner.dialects import DIALECTS
from watcher.spanner.queries import QueryClient
from watcher.tables.discovery import discover_table, find_watched_table
from watcher.tables.predicate_parser import parse_predicate
from watcher.tables.values import TableSpec

TABLE = """CREATE TABLE People (Id INT64 NOT NULL, Name STRING(MAX), City STRING(MAX), Age INT64,
  Born DATE, Seen TIMESTAMP, Member BOOL, Alias STRING(MAX), Weight FLOAT64, Height FLOAT32,
  Photo BYTES(MAX),
  Stamped TIMESTAMP OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY (Id)"""
NAMES = (
    "Id",
    "Name",
    "City",
    "Age",
    "Born",
    "Seen",
    "Member",
    "Alias",
    "Weight",
    "Height",
    "Stamped",
)
ZURICH = "Z\u00fcrich"
NAN, INFINITY = float("nan"), float("inf")
ROWS = [
    (1, "Anna", "Bern", 30, "1990-05-01", "2026-01-01T00:00:00Z", True, "Anna", 50.5, 1.5),
    (2, "Ben", "Bern", 12, None, "2026-01-01T00:00:00.000000500Z", False, "Bo", NAN, NAN),
    (3, "O'Neil", None, 40, "1980-01-01", None, None, "Zoe", None, None),
    (
        4,
        None,
        "Z\u00fcrich",
        None,
        "2000-02-29",
        "2025-12-31T23:59:59.999999Z",
        True,
        None,
        INFINITY,
        -1.5,
    ),
    (5, "x@example.com", "", 18, "1990-05-02", "2026-06-01T12:00:00Z", False, "y", -0.1, 0.0),
]
CASES = {
    "City = 'Bern'": {1, 2},
    "City <> 'Bern'": {4, 5},
    "NOT City = 'Bern'": {4, 5},
    "City IS NULL": {3},
    "city is not null AND Age IS NOT NULL": {1, 2, 5},
    "Age >= 18 AND (City = 'Bern' OR City IS NULL)": {1, 3},
    "Age BETWEEN 12 AND 18": {2, 5},
    "Age NOT BETWEEN 12 AND 18": {1, 3},
    "Age IN (12, 40, -1)": {2, 3},
    "NOT (Age IN (12, 40) OR Member)": {5},
    "Member": {1, 4},
    "NOT Member": {2, 5},
    "Member = FALSE": {2, 5},
    "Name = 'O''Neil'": {3},
    "Name = 'x@example.com'": {5},
    "STARTS_WITH(Name, 'B')": {2},
    "NOT STARTS_WITH(Name, 'B')": {1, 3, 5},
    "City >= 'Z\u00fc'": {4},
    "Born < DATE '1990-05-02'": {1, 3},
    "Seen >= TIMESTAMP '2026-01-01T00:00:00Z'": {1, 2, 5},
    "Seen < '2026-01-01T01:00:00+01:00'": {4},
    "Age <= 30 OR Name IS NULL": {1, 2, 4, 5},
    "Seen = '2026-01-01T00:00:00Z'": {1, 2},
    "Seen <> '2026-01-01T00:00:00Z'": {4, 5},
    "Seen <= '2026-01-01'": {1, 2, 4},
    "Seen > '2026-01-01'": {5},
    "Seen BETWEEN '2026-01-01' AND '2026-01-02'": {1, 2},
    "Seen IN ('2026-01-01', '2026-06-01T12:00:00Z')": {1, 2, 5},
    "Name = Alias": {1},
    "Name < Alias": {2, 3, 5},
    "NOT Alias <= Name": {2, 3, 5},
    "Id < Age": {1, 2, 3, 5},
    "Age BETWEEN Id AND 18": {2, 5},
    "Name LIKE '%e%'": {2, 3, 5},
    "Name LIKE 'A%'": {1},
    "Name NOT LIKE '%com'": {1, 2, 3},
    "Name LIKE 'Ben'": {2},
    "City LIKE ''": {5},
    "Weight > 0": {1, 2, 4},
    "Weight >= 50.5": {1, 2, 4},
    "Weight < 1e3": {1, 5},
    "Weight = -0.1": {5},
    "Weight <> 50.5": {2, 4, 5},
    "NOT Weight <= 50.5": {2, 4},
    "Weight NOT IN (50.5, 1)": {2, 4, 5},
    "Height BETWEEN -1.5 AND 1": {4, 5},
    "Height > 0": {1, 2},
}


@pytest.fixture
def people(create_database: CreateDatabase) -> Database:
    database: Database = create_database(TABLE)
    with database.batch() as batch:
        batch.insert("People", NAMES, [(*row, COMMIT_TIMESTAMP) for row in ROWS])
    return database


def capture(database: Database, spec: TableSpec) -> PollCapture:
    table = discover_table(database, "People", spec)
    return PollCapture(QueryClient(address_of(database)), table, ())


def read_ids(capture: Any, window: Window) -> set[int]:
    batches = [rows.batch for part in capture.plan(window) for rows in capture.read(part)]
    return {key for batch in batches for key in batch.column("Id").to_pylist()}


@pytest.mark.both_dialects
@pytest.mark.parametrize("chosen", [None, ("Name",)])
def test_windows_backfills_and_snapshots_keep_the_same_rows(
    people: Database, chosen: tuple[str, ...] | None
) -> None:
    now = Window(BEGINNING, fetch_now(people))
    for where, ids in CASES.items():
        spec = TableSpec(shard="none", timestamp_column="Stamped", where=where, columns=chosen)
        poll = capture(people, spec)
        kinds = (poll, KeyRangeCapture(poll), SnapshotCapture(poll))
        assert [(where, read_ids(each, now)) for each in kinds] == [(where, ids)] * 3


@pytest.mark.both_dialects
def test_spanner_and_arrow_keep_the_same_rows_of_any_condition(
    everything: Database, dialect: Dialect
) -> None:
    write(everything, rows(dialect))
    now = Window(BEGINNING, fetch_now(everything))
    random = Random(45)
    for _ in range(100):
        where = write_condition(random, without="Nu" if dialect is Dialect.POSTGRESQL else "")
        table = discover_table(everything, "Everything", TableSpec(columns=("Id",), where=where))
        poll = PollCapture(QueryClient(address_of(everything)), table, ())
        kept = read_ids(SnapshotCapture(poll), now)
        assert (where, kept) == (where, read_ids(KeyRangeCapture(poll), now))


def options(database: Database, where: str, **more: object) -> dict[str, Any]:
    return {
        "database": str(address_of(database)),
        "tables": ["People"],
        "table": {"People": {"shard": "none", "where": where}},
    } | more


def deliver(database: Database, where: str, **more: object) -> list[Change]:
    seen: list[Change] = []
    watcher = Watcher(**options(database, where, **more))
    watcher.on_change(seen.append)
    watcher.run_once()
    return seen


def test_a_watcher_delivers_the_rows_of_its_condition_and_nothing_of_one_that_leaves(
    people: Database,
) -> None:
    more = {"consumer": "c", "backfill": ["*"], "backfill_rows": 2}
    assert [c.key["Id"] for c in deliver(people, "City = 'Bern'", **more)] == [1, 2]
    with people.batch() as batch:
        rows = [(1, "Basel", COMMIT_TIMESTAMP), (4, "Bern", COMMIT_TIMESTAMP)]
        batch.update("People", ("Id", "City", "Stamped"), rows)
    assert [c.key["Id"] for c in deliver(people, "City = 'Bern'", **more)] == [4]


REFUSED = [
    "",
    "TRUE OR 1 = 1",
    "1 = 1",
    "City",
    "City = 'Bern' -- AND\n OR",
    "City = 'Bern'; DROP TABLE People",
    "City = (SELECT 'Bern')",
    "City = 'Bern' UNION ALL SELECT 1",
    "City = @city",
    "City = Age",
    "Weight = Weight",
    "Seen < Stamped",
    "Member < Member",
    "City = NULL",
    "City = DATE",
    "Name LIKE 'a%b'",
    "Name LIKE 'a_'",
    "Name LIKE '%'",
    "Name LIKE Alias",
    "Age LIKE '1%'",
    "Weight = 1e400",
    "Weight = '1'",
    "Height = 0.1",
    "Height = 1e39",
    "City = 'a' 'b",
    "City = r'a'",
    "City = 'a\\' OR TRUE'",
    'City = "Bern"',
    "LOWER(City) = 'bern'",
    "Age = '1'",
    "Age = 1.5",
    "Age + 1 = 2",
    "Age = 99999999999999999999",
    "Member > TRUE",
    "Born = 'yesterday'",
    "Seen < '2026-01-01T00:00:00.0000005Z'",
    "Seen <= '9999-12-31T23:59:59.999999Z'",
    "Seen < '0001-01-01T00:00:00+01:00'",
    "Photo = 'a'",
    "STARTS_WITH(Age, 'a')",
    "Town = 'Bern'",
    "(" * 60 + "Member" + ")" * 60,
]


@pytest.mark.parametrize("where", REFUSED)
def test_everything_else_is_refused_before_anything_is_read(where: str) -> None:
    with pytest.raises(ConfigurationError, match=r"where|column"):
        find_watched_table(parse_schema(TABLE), "People", "d", TableSpec(shard="none", where=where))


@given(
    st.text(max_size=40)
    | st.sampled_from(sorted(CASES)).flatmap(
        lambda case: st.builds(
            lambda cut, more: case[:cut] + more + case[cut:],
            st.integers(0, len(case)),
            st.text(alphabet="'\"`\\;-@()=/*#$ 1aCity", max_size=6),
        )
    )
)
def test_no_text_of_a_condition_is_ever_part_of_a_statement(where: str) -> None:
    """Whatever is written, the statement has names of columns, words of our own and parameters."""
    schema = parse_schema(TABLE)
    try:
        table = find_watched_table(schema, "People", "d", TableSpec(shard="none", where=where))
    except ConfigurationError:
        return
    assert table.row_filter is not None
    for dialect in Dialect:
        condition = render_filter(table.row_filter, DIALECTS[dialect])
        text = condition.sql
        for name in (*NAMES, "Photo"):
            text = text.replace(DIALECTS[dialect].quote_column(name), "")
        for place in reversed(range(len(condition.params))):
            text = text.replace(f"@where{place}", "")
        words = set(text.replace("(", " ").replace(")", " ").replace(",", " ").split())
        allowed = {
            "AND",
            "OR",
            "NOT",
            "IS",
            "NULL",
            "IN",
            "STARTS_WITH",
            "STRPOS",
            "ENDS_WITH",
            "RIGHT",
            "LENGTH",
            "0",
            "<",
            ">",
            "=",
            "<>",
            "<=",
            ">=",
        }
        assert words <= allowed


def test_columns_of_a_condition_are_not_read_unless_they_are_delivered() -> None:
    spec = TableSpec(shard="none", where="City = 'Bern'", columns=("Name",))
    table = find_watched_table(parse_schema(TABLE), "People", "d", spec)
    statement = select_window(table, Window(0, 1))
    assert statement.sql.startswith("SELECT `Id`, `Name`, `Stamped` FROM `People` WHERE ")
    assert statement.sql.endswith(" AND (`City` = @where0)")
    assert "Bern" not in statement.sql


def test_a_condition_of_a_change_stream_is_refused() -> None:
    common = {
        "database": "spanner://projects/p1/instances/i1/databases/d1",
        "tables": ["People"],
        "table": {"People": {"where": "Age > 1"}},
    }
    with pytest.raises(ConfigurationError, match=r"has where, which Spanner evaluates"):
        parse_watch_config(common | {"capture": "change-stream"})
    with pytest.raises(ConfigurationError, match="is not a condition at column 5"):
        parse_watch_config(common | {"table": {"People": {"where": "Age ~ 1"}}})


def test_a_text_of_the_other_dialect_is_read_by_its_rules() -> None:
    assert parse_predicate("\"City\" = 'a'", Dialect.POSTGRESQL) == parse_predicate("City = 'a'")


def test_flags_name_the_table(people: Database, tmp_path: Path) -> None:
    run: Callable[..., Any] = CliRunner().invoke
    common = ["watch", "-d", str(address_of(people)), "-t", "People", "--shard", "none", "--once"]
    common += ["--from", "earliest"]
    out = tmp_path / "changes.jsonl"
    flags = ["--where", "people=City = 'Bern'", "--columns", "People=Name", "--to", str(out)]
    result = run(app, [*common, *flags])
    assert result.exit_code == 0, result.output
    lines = out.read_text().splitlines()
    assert len(lines) == 2
    assert all('"Age"' not in line and '"City"' not in line for line in lines)
    for flag, value in (("--where", "City > 1"), ("--columns", "=a"), ("--mask", "City=hash")):
        result = run(app, [*common, flag, value])
        assert isinstance(result.exception, ConfigurationError)
