"""DDL: the file follows the schema, data is judged, and a failing statement changes nothing."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import apsw
import grpc
import pytest
from fixtures.engine_world import (
    INSERT,
    UPDATE,
    WATCHED,
    commit_dml,
    exact_bound,
    open_database,
    query,
    run_dml,
    write,
)

from ddl.rules.limits import STATEMENT_BYTES_MAX
from emulator.engine.database import Database
from emulator.errors import SpannerError
from emulator.storage.layout import table_layout
from emulator.values.forms import timestamp_from_micros
from spanner_schema.model.schema import Schema

PLAIN = "CREATE TABLE T (K INT64, A STRING(9), N INT64) PRIMARY KEY (K)"


@pytest.fixture
def table() -> Iterator[Database]:
    with open_database(PLAIN) as database:
        write(database, INSERT, "T", "K A N", (1, "a", 10), (2, None, 20))
        yield database


def test_an_existing_table_is_made_to_watch_itself_without_touching_rows(table: Database) -> None:
    stamps: list[tuple[int, int]] = []
    before = query(table, "SELECT * FROM T ORDER BY K")
    table.update_ddl(
        [
            "ALTER TABLE T ADD COLUMN ChangedAt TIMESTAMP OPTIONS (allow_commit_timestamp=true)",
            "ALTER TABLE T ALTER COLUMN ChangedAt SET DEFAULT (PENDING_COMMIT_TIMESTAMP())",
            "ALTER TABLE T ALTER COLUMN ChangedAt SET ON UPDATE (PENDING_COMMIT_TIMESTAMP())",
            "ALTER TABLE T ADD COLUMN ShardId INT64 AS (MOD(FARM_FINGERPRINT(A), 4)) STORED",
            "CREATE NULL_FILTERED INDEX ByChange ON T (ShardId, ChangedAt)",
        ],
        lambda index, micros: stamps.append((index, micros)),
    )
    assert [index for index, _ in stamps] == list(range(5))
    assert [micros for _, micros in stamps] == sorted(micros for _, micros in stamps)
    assert query(table, "SELECT K, A, N FROM T ORDER BY K") == before
    assert query(table, "SELECT ChangedAt FROM T") == [(None,), (None,)]
    poll = (
        "SELECT K, ChangedAt FROM T@{FORCE_INDEX=ByChange} "
        "WHERE ShardId IS NOT NULL AND ChangedAt IS NOT NULL"
    )
    assert query(table, poll) == []
    committed = write(table, UPDATE, "T", "K N", (1, 11))
    assert query(table, poll) == [(1, timestamp_from_micros(committed.commit_timestamp_micros))]


def test_a_stored_column_is_filled_for_old_rows_only(
    table: Database,
) -> None:
    write(table, UPDATE, "T", "K N", (1, 11))
    middle = write(table, UPDATE, "T", "K N", (1, 12))
    write(table, UPDATE, "T", "K N", (1, 13))
    table.update_ddl(["ALTER TABLE T ADD COLUMN Twice INT64 AS (N * 2) STORED"])
    assert query(table, "SELECT Twice FROM T ORDER BY K") == [(26,), (40,)]
    then = exact_bound(middle.commit_timestamp_micros)
    assert sorted(query(table, "SELECT K, N FROM T", then)) == [(1, 12), (2, 20)]
    with pytest.raises(SpannerError, match="Unrecognized name: Twice"):
        query(table, "SELECT K, Twice FROM T", then)


def test_a_computed_column_can_be_added_indexed_and_dropped(table: Database) -> None:
    table.update_ddl(
        [
            "ALTER TABLE T ADD COLUMN Half INT64 AS (DIV(N, 2))",
            "CREATE INDEX ByHalf ON T (Half)",
        ]
    )
    sql = "SELECT K FROM T@{FORCE_INDEX=ByHalf} WHERE Half = 10"
    assert query(table, sql) == [(2,)]
    table.update_ddl(["DROP INDEX ByHalf", "ALTER TABLE T DROP COLUMN Half"])
    with pytest.raises(SpannerError):
        query(table, "SELECT Half FROM T")


def test_a_default_fills_old_rows_when_the_column_is_added_with_it(table: Database) -> None:
    table.update_ddl(["ALTER TABLE T ADD COLUMN D INT64 NOT NULL DEFAULT (5)"])
    assert query(table, "SELECT D FROM T") == [(5,), (5,)]
    table.update_ddl(["ALTER TABLE T ALTER COLUMN D SET DEFAULT (6)"])
    write(table, INSERT, "T", "K", (3,))
    assert query(table, "SELECT D FROM T ORDER BY K") == [(5,), (5,), (6,)]
    table.update_ddl(["ALTER TABLE T ALTER COLUMN D DROP DEFAULT"])
    with pytest.raises(SpannerError, match="NOT NULL column: D"):
        write(table, INSERT, "T", "K", (4,))


def test_history_survives_a_rebuild(table: Database) -> None:
    before = write(table, UPDATE, "T", "K A", (1, "b"))
    write(table, UPDATE, "T", "K A", (1, "c"))
    table.update_ddl(["ALTER TABLE T ALTER COLUMN N INT64 NOT NULL", "CREATE INDEX I ON T (A)"])
    then = exact_bound(before.commit_timestamp_micros)
    assert sorted(query(table, "SELECT K, A FROM T", then)) == [(1, "b"), (2, None)]


def test_existing_rows_are_judged_by_a_new_rule(table: Database) -> None:
    for statement in (
        "ALTER TABLE T ALTER COLUMN A STRING(9) NOT NULL",
        "ALTER TABLE T ADD CONSTRAINT Small CHECK (N < 15)",
        "ALTER TABLE T ALTER COLUMN A STRING(0)",
    ):
        with pytest.raises(SpannerError) as error:
            table.update_ddl([statement])
        assert error.value.code in {
            grpc.StatusCode.FAILED_PRECONDITION,
            grpc.StatusCode.INVALID_ARGUMENT,
        }
        assert query(table, "SELECT K, A, N FROM T ORDER BY K") == [(1, "a", 10), (2, None, 20)]
    table.update_ddl(["ALTER TABLE T ADD CONSTRAINT Small CHECK (N < 25)"])
    with pytest.raises(SpannerError, match="Small"):
        write(table, UPDATE, "T", "K N", (1, 99))


def test_strings_become_bytes_and_strings_again(table: Database) -> None:
    table.update_ddl(["ALTER TABLE T ALTER COLUMN A BYTES(20)"])
    assert query(table, "SELECT A FROM T ORDER BY K") == [(b"a",), (None,)]
    table.update_ddl(["ALTER TABLE T ALTER COLUMN A STRING(20)"])
    assert query(table, "SELECT A FROM T ORDER BY K") == [("a",), (None,)]


def test_a_column_with_future_timestamps_cannot_hold_commit_timestamps() -> None:
    with open_database("CREATE TABLE T (K INT64, `At` TIMESTAMP) PRIMARY KEY (K)") as database:
        write(database, INSERT, "T", "K At", (1, "2999-01-01T00:00:00.000000000Z"))
        allow = "ALTER TABLE T ALTER COLUMN `At` SET OPTIONS (allow_commit_timestamp=true)"
        with pytest.raises(SpannerError, match="in the future") as error:
            database.update_ddl([allow])
        assert error.value.code is grpc.StatusCode.FAILED_PRECONDITION
        write(database, UPDATE, "T", "K At", (1, None))
        database.update_ddl([allow])


def test_statements_before_a_failing_one_stay(table: Database) -> None:
    done: list[int] = []
    with pytest.raises(SpannerError, match="Nothing"):
        table.update_ddl(
            ["CREATE INDEX I ON T (A)", "DROP TABLE Nothing", "CREATE INDEX J ON T (N)"],
            lambda index, _: done.append(index),
        )
    assert done == [0]
    assert len(table.ddl()) == 2


def test_the_ddl_makes_the_same_schema_again() -> None:
    with open_database(*WATCHED) as database, open_database(*database.ddl()) as again:
        assert again.ddl() == database.ddl()


def test_a_table_can_be_dropped_and_made_anew(table: Database) -> None:
    table.update_ddl(["DROP TABLE T", PLAIN.replace("STRING(9)", "INT64")])
    assert query(table, "SELECT * FROM T") == []
    write(table, INSERT, "T", "K A", (1, 1))


def test_what_is_not_supported_is_named(table: Database) -> None:
    statement = "CREATE FUNCTION F() RETURNS INT64 LANGUAGE REMOTE OPTIONS (endpoint = 'e')"
    with pytest.raises(SpannerError) as error:
        table.update_ddl([statement])
    assert error.value.code is grpc.StatusCode.UNIMPLEMENTED
    assert "The remote function F" in error.value.message
    assert len(table.ddl()) == 1


def test_nonsense_says_where_it_is(table: Database) -> None:
    with pytest.raises(SpannerError, match="line 1") as error:
        table.update_ddl(["CREATE TABBLE X"])
    assert error.value.code is grpc.StatusCode.INVALID_ARGUMENT


def test_version_retention_is_an_option_of_the_database(table: Database) -> None:
    table.update_ddl(["ALTER DATABASE d SET OPTIONS (version_retention_period = '2h')"])
    old = table.oldest_readable()
    table.update_ddl(["ALTER DATABASE d SET OPTIONS (version_retention_period = '1h')"])
    assert table.oldest_readable() > old
    with pytest.raises(SpannerError, match="between 1h and 7d"):
        table.update_ddl(["ALTER DATABASE d SET OPTIONS (version_retention_period = '8d')"])


RELATED = (
    "CREATE TABLE P (K INT64) PRIMARY KEY (K)",
    "CREATE TABLE C (K INT64, L INT64, N INT64) PRIMARY KEY (K, L), INTERLEAVE IN PARENT P",
    "CREATE TABLE Other (K INT64, S STRING(9)) PRIMARY KEY (K)",
    "ALTER TABLE C ALTER COLUMN N INT64 NOT NULL",
    "ALTER TABLE C ADD CONSTRAINT Ref FOREIGN KEY (N) REFERENCES Other (K)",
    "CREATE CHANGE STREAM OfOther FOR Other",
    "ALTER TABLE Other ADD COLUMN T STRING(9)",
    "ALTER TABLE Other ADD COLUMN D INT64 NOT NULL DEFAULT (5)",
    "CREATE INDEX ByS ON Other (S)",
    "ALTER CHANGE STREAM OfOther SET FOR P",
    "ALTER TABLE C SET INTERLEAVE IN PARENT P ON DELETE CASCADE",
    "ALTER TABLE P ADD COLUMN A STRING(9)",
    "ALTER TABLE C DROP CONSTRAINT Ref",
    "DROP CHANGE STREAM OfOther",
    "CREATE SEQUENCE Numbers OPTIONS (sequence_kind='bit_reversed_positive')",
    "CREATE TABLE Numbered (K INT64 DEFAULT (GET_NEXT_SEQUENCE_VALUE(SEQUENCE Numbers)), "
    "M INT64 AS (K + 1) STORED) PRIMARY KEY (K)",
    "DROP INDEX ByS",
    "DROP TABLE C",
    "DROP TABLE Other",
)


@pytest.mark.parametrize("with_rows", [False, True])
def test_a_statement_changes_what_leans_on_its_table_and_nothing_else(
    tmp_path: Path, with_rows: bool
) -> None:
    """After each the file holds the triggers and indexes of a schema that is laid out at once."""
    path = tmp_path / "file"
    with open_database(path=path) as database:
        for statement in RELATED:
            database.update_ddl([statement])
            if with_rows and statement.startswith("CREATE TABLE Other"):
                write(database, INSERT, "P", "K", (1,))
                write(database, INSERT, "Other", "K S", (1, "a"), (2, "b"))
                write(database, UPDATE, "Other", "K S", (2, "c"))
                write(database, INSERT, "C", "K L N", (1, 1, 2))
            assert objects_of(path) == laid_out(database.schema)


def laid_out(schema: Schema) -> set[str]:
    """The triggers and indexes of every table, seen with all the others."""
    rows_read: set[str] = set()
    for table in schema.tables:
        others = tuple(other for other in schema.tables if other is not table)
        indexes = schema.indexes_of(table.name)
        seen = table_layout(replace(schema, tables=(table, *others), indexes=indexes))
        rows_read |= set(seen.objects.values())
    return rows_read


def objects_of(path: Path) -> set[str]:
    with contextlib.closing(apsw.Connection(str(path))) as file:
        kinds = "type IN ('index', 'trigger') AND sql IS NOT NULL"
        return {sql for (sql,) in file.execute(f"SELECT sql FROM sqlite_schema WHERE {kinds}")}


def test_rows_past_their_deletion_policy_are_deleted() -> None:
    with open_database(
        "CREATE TABLE T (K INT64, `At` TIMESTAMP) PRIMARY KEY (K), "
        "ROW DELETION POLICY (OLDER_THAN(`At`, INTERVAL 1 DAY))"
    ) as database:
        old, young = "2020-01-01T00:00:00.000000000Z", "2999-01-01T00:00:00.000000000Z"
        before = write(database, INSERT, "T", "K At", (1, old), (2, young), (3, None))
        assert database.sweep() == 1
        assert query(database, "SELECT K FROM T ORDER BY K") == [(2,), (3,)]
        then = exact_bound(before.commit_timestamp_micros)
        assert query(database, "SELECT COUNT(*) FROM T", then) == [(3,)]


def test_the_schema_changes_under_load_without_a_wrong_answer() -> None:
    """Writers and readers go on while columns and indexes come and go."""
    done = threading.Event()
    failures: list[BaseException] = []
    written: dict[int, int] = {}

    def guard(work: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                while not done.is_set():
                    work()
            except BaseException as error:  # noqa: BLE001 - shown by the assertion below
                failures.append(error)

        return run

    with open_database(*WATCHED) as database:
        rows = [(n, f"n{n}") for n in range(200)]
        write(database, INSERT, "Singers", "SingerId Name", *rows)

        def write_some() -> None:
            key = len(written) % 200
            write(database, UPDATE, "Singers", "SingerId Name", (key, f"n{key}"))
            written[len(written)] = key

        def read_some() -> None:
            rows_read = query(database, "SELECT SingerId, Name FROM Singers ORDER BY SingerId")
            assert rows_read == rows

        threads = [threading.Thread(target=guard(each)) for each in (write_some, read_some)]
        for thread in threads:
            thread.start()
        for _ in range(8):
            database.update_ddl(
                [
                    "ALTER TABLE Singers ADD COLUMN Twice INT64 AS (SingerId * 2) STORED",
                    "CREATE INDEX ByTwice ON Singers (Twice)",
                    "DROP INDEX ByTwice",
                    "ALTER TABLE Singers DROP COLUMN Twice",
                ]
            )
        done.set()
        for thread in threads:
            thread.join()
        assert not failures
        assert len(written) > 0


def test_strings_and_bytes_are_converted_also_in_arrays() -> None:
    ddl = "CREATE TABLE B (K INT64, V BYTES(9), L ARRAY<BYTES(9)>) PRIMARY KEY (K)"
    with open_database(ddl) as database:
        write(database, INSERT, "B", "K V L", (1, "ä".encode(), '["w6Q=",null]'), (2, None, None))
        written = write(database, UPDATE, "B", "K V", (2, b"z"))
        database.update_ddl(
            [
                "ALTER TABLE B ALTER COLUMN V STRING(9)",
                "ALTER TABLE B ALTER COLUMN L ARRAY<STRING(9)>",
            ]
        )
        sql = "SELECT V, L[SAFE_OFFSET(0)] FROM B ORDER BY K"
        assert query(database, sql) == [("ä", "ä"), ("z", None)]
        then = exact_bound(written.commit_timestamp_micros)
        assert query(database, sql, then) == [("ä".encode(), "ä".encode()), (b"z", None)]
        database.update_ddl(["ALTER TABLE B ALTER COLUMN L ARRAY<BYTES(9)>"])
        assert query(database, sql) == [("ä", "ä".encode()), ("z", None)]


@pytest.mark.parametrize(
    ("column", "value", "change"),
    [("V", b"\xff", "V STRING(9)"), ("L", '["/w=="]', "L ARRAY<STRING(9)>")],
)
def test_bytes_that_are_no_text_do_not_become_strings(
    column: str, value: bytes | str, change: str
) -> None:
    ddl = "CREATE TABLE B (K INT64, V BYTES(9), L ARRAY<BYTES(9)>) PRIMARY KEY (K)"
    with open_database(ddl) as database:
        write(database, INSERT, "B", f"K {column}", (7, value))
        with pytest.raises(SpannerError, match=f"column {column} .* invalid UTF-8 .*7"):
            database.update_ddl([f"ALTER TABLE B ALTER COLUMN {change}"])


def test_a_new_identity_column_counts_the_rows_that_are_there(table: Database) -> None:
    column = "Id INT64 NOT NULL GENERATED BY DEFAULT AS IDENTITY (BIT_REVERSED_POSITIVE)"
    table.update_ddl([f"ALTER TABLE T ADD COLUMN {column}"])
    write(table, INSERT, "T", "K", (3,))
    assert query(table, "SELECT COUNT(DISTINCT Id), COUNTIF(Id > 0) FROM T") == [(3, 3)]


IDENTITY = (
    "CREATE TABLE I (Id INT64 GENERATED BY DEFAULT AS IDENTITY (BIT_REVERSED_POSITIVE), N INT64, "
    "CONSTRAINT Small CHECK (N < 9)) PRIMARY KEY (Id)"
)


def test_a_table_is_dropped_whose_insert_failed_after_it_drew_a_value(table: Database) -> None:
    table.update_ddl([IDENTITY])
    with pytest.raises(SpannerError, match="Small"):
        commit_dml(table, "INSERT INTO I (N) VALUES (9)")
    table.update_ddl(["DROP TABLE I", IDENTITY])
    commit_dml(table, "INSERT INTO I (N) VALUES (1)")
    assert query(table, "SELECT N, Id FROM I") == [(1, 1 << 62)]


def test_a_refused_schema_change_leaves_drawn_values_drawn(table: Database) -> None:
    table.update_ddl([IDENTITY])
    transaction = table.read_write()
    run_dml(transaction, "INSERT INTO I (N) VALUES (1)")
    with pytest.raises(SpannerError, match="Nothing"):
        table.update_ddl(["DROP TABLE Nothing"])
    with pytest.raises(SpannerError, match="Existing rows"):
        table.update_ddl(["ALTER TABLE T ADD CONSTRAINT Large CHECK (K > 5)"])
    commit_dml(table, "INSERT INTO I (N) VALUES (2)")
    transaction.commit([])
    assert query(table, "SELECT N, Id FROM I ORDER BY N") == [(1, 1 << 62), (2, 1 << 61)]


def test_expressions_have_the_types_of_their_columns(table: Database) -> None:
    table.update_ddl(
        [
            "ALTER TABLE T ADD COLUMN F FLOAT64 AS (N) STORED",
            "ALTER TABLE T ADD COLUMN D NUMERIC DEFAULT (1)",
        ]
    )
    write(table, INSERT, "T", "K N", (3, 30))
    assert query(table, "SELECT F, F / 4, D = 1 FROM T WHERE K = 1") == [(10.0, 2.5, 1)]


def test_generated_columns_and_checks_look_into_arrays() -> None:
    ddl = (
        "CREATE TABLE A (K INT64, L ARRAY<INT64>, First INT64 AS (ARRAY_FIRST(L)) STORED, "
        "Has BOOL AS (ARRAY_INCLUDES(L, 2)), CONSTRAINT Small CHECK (ARRAY_MAX(L) < 9)) "
        "PRIMARY KEY (K)"
    )
    with open_database(ddl) as database:
        write(database, INSERT, "A", "K L", (1, "[3,2]"), (2, "[4]"), (3, None))
        sql = "SELECT First, Has FROM A ORDER BY K"
        assert query(database, sql) == [(3, 1), (4, 0), (None, None)]
        with pytest.raises(SpannerError, match="Small"):
            write(database, INSERT, "A", "K L", (4, "[9]"))


def test_the_ddl_of_a_database_has_a_greatest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """As GetDatabaseDdl returns it; ten MiB would take half a minute to read."""
    assert STATEMENT_BYTES_MAX == 10 * 1024 * 1024
    monkeypatch.setattr("emulator.engine.schema_changes.STATEMENT_BYTES_MAX", 10_000)

    def set_size(database: Database, size: int) -> None:
        rest = size - sum(len(each) for each in database.ddl())
        database.update_ddl([f"ALTER TABLE T ALTER COLUMN D SET DEFAULT ('{'y' * (rest + 1)}')"])

    table = "CREATE TABLE T (K INT64, D STRING(MAX) DEFAULT ('y')) PRIMARY KEY (K)"
    with open_database(table) as database:
        with pytest.raises(SpannerError, match="10001 bytes, more than the maximum of 10000"):
            set_size(database, 10_001)
        set_size(database, 10_000)
        assert sum(len(each) for each in database.ddl()) == 10_000
        with pytest.raises(SpannerError, match="more than the maximum"):
            database.update_ddl(["CREATE TABLE U (K INT64) PRIMARY KEY (K)"])
        database.update_ddl(["DROP TABLE T", "CREATE TABLE U (K INT64) PRIMARY KEY (K)"])
