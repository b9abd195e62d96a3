"""Mutations and DML: what each kind of write does to a row, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from fixtures.engine_world import (
    INSERT,
    INT64,
    REPLACE,
    STRING,
    UPDATE,
    UPSERT,
    WATCHED,
    commit_dml,
    delete,
    open_database,
    query,
    read,
    run_dml,
    run_query,
    write,
)

from emulator.engine.database import Database
from emulator.errors import SpannerError
from emulator.values.forms import timestamp_from_micros
from emulator.values.requests import COMMIT_TIMESTAMP, KeyDelete, KeyRange, KeySet, RowWrite

ALL = "SELECT SingerId, Name FROM Singers ORDER BY SingerId"
FUTURE = "2999-01-01T00:00:00.000000000Z"
PAST = "2001-02-03T04:05:06.000007000Z"


@pytest.fixture
def singers() -> Iterator[Database]:
    with open_database(*WATCHED) as database:
        write(database, INSERT, "Singers", "SingerId Name", (1, "a"), (2, "b"))
        yield database


def read_changed_at(database: Database, key: int) -> object:
    rows = query(database, f"SELECT ChangedAt FROM Singers WHERE SingerId = {key}")
    return rows[0][0]


def code(error: pytest.ExceptionInfo[SpannerError]) -> grpc.StatusCode:
    return error.value.code


def test_an_insert_of_an_existing_row_is_refused_and_leaves_nothing(singers: Database) -> None:
    with pytest.raises(SpannerError, match=r"Row \[2\] in table Singers already exists") as error:
        write(singers, INSERT, "Singers", "SingerId Name", (3, "c"), (2, "x"))
    assert code(error) is grpc.StatusCode.ALREADY_EXISTS
    assert query(singers, ALL) == [(1, "a"), (2, "b")]


def test_an_update_of_a_missing_row_is_refused_and_leaves_nothing(singers: Database) -> None:
    with pytest.raises(SpannerError, match=r"Row \[9\]") as error:
        write(singers, UPDATE, "Singers", "SingerId Name", (1, "x"), (9, "x"))
    assert code(error) is grpc.StatusCode.NOT_FOUND
    assert query(singers, ALL) == [(1, "a"), (2, "b")]


def test_insert_or_update_keeps_what_it_does_not_name() -> None:
    with open_database(
        "CREATE TABLE T (K INT64, A STRING(9), B STRING(9)) PRIMARY KEY (K)"
    ) as database:
        write(database, UPSERT, "T", "K A B", (1, "a", "b"))
        write(database, UPSERT, "T", "K A", (1, "x"), (2, "y"))
        assert query(database, "SELECT * FROM T ORDER BY K") == [(1, "x", "b"), (2, "y", None)]


def test_replace_forgets_what_it_does_not_name() -> None:
    with open_database(
        "CREATE TABLE T (K INT64, A STRING(9), B STRING(9)) PRIMARY KEY (K)"
    ) as database:
        write(database, INSERT, "T", "K A B", (1, "a", "b"))
        write(database, REPLACE, "T", "K A", (1, "x"), (2, "y"))
        assert query(database, "SELECT * FROM T ORDER BY K") == [(1, "x", None), (2, "y", None)]


def test_a_deleted_row_that_is_not_there_is_no_error(singers: Database) -> None:
    delete(singers, "Singers", (1,), (77,))
    assert query(singers, ALL) == [(2, "b")]


def test_null_is_a_key_like_any_other() -> None:
    with open_database(
        "CREATE TABLE T (A INT64, B STRING(9), V INT64) PRIMARY KEY (A, B DESC)"
    ) as database:
        write(database, INSERT, "T", "A B V", (None, None, 1), (None, "x", 2), (1, None, 3))
        write(database, UPSERT, "T", "A B V", (None, None, 10), (None, "y", 4))
        write(database, UPDATE, "T", "A B V", (1, None, 30))
        with pytest.raises(SpannerError) as error:
            write(database, INSERT, "T", "A B V", (None, "x", 0))
        assert code(error) is grpc.StatusCode.ALREADY_EXISTS
        delete(database, "T", (None, "x"))
        expected = [(None, "y", 4), (None, None, 10), (1, None, 30)]
        assert read(database, "T", "A B V") == expected


def test_a_range_is_deleted_in_key_order() -> None:
    with open_database("CREATE TABLE T (A INT64, B INT64) PRIMARY KEY (A, B DESC)") as database:
        write(database, INSERT, "T", "A B", *((a, b) for a in range(4) for b in range(4)))
        keys = KeySet(ranges=(KeyRange((1, 2), (2, 1), True, False),))
        database.write([KeyDelete("T", keys)])
        gone = {(1, 2), (1, 1), (1, 0), (2, 3), (2, 2)}
        everything = {(a, b) for a in range(4) for b in range(4)}
        assert set(read(database, "T", "A B")) == everything - gone


def test_default_and_on_update_stamp_an_insert(singers: Database) -> None:
    committed = write(singers, INSERT, "Singers", "SingerId Name", (3, "c"))
    assert read_changed_at(singers, 3) == timestamp_from_micros(committed.commit_timestamp_micros)


@pytest.mark.parametrize("kind", [UPDATE, UPSERT, REPLACE])
def test_on_update_fires_for_a_mutation_even_when_nothing_changes(
    singers: Database, kind: object
) -> None:
    committed = write(singers, kind, "Singers", "SingerId Name", (1, "a"))  # type: ignore[arg-type]
    assert read_changed_at(singers, 1) == timestamp_from_micros(committed.commit_timestamp_micros)


def test_on_update_fires_for_dml(singers: Database) -> None:
    counts, committed = commit_dml(singers, "UPDATE Singers SET Name = Name WHERE SingerId = 1")
    assert counts == [1]
    assert read_changed_at(singers, 1) == timestamp_from_micros(committed.commit_timestamp_micros)
    assert read_changed_at(singers, 2) != read_changed_at(singers, 1)


def test_on_update_fires_for_insert_or_update_by_dml(singers: Database) -> None:
    _, committed = commit_dml(
        singers, "INSERT OR UPDATE INTO Singers (SingerId, Name) VALUES (1, 'z')"
    )
    assert read_changed_at(singers, 1) == timestamp_from_micros(committed.commit_timestamp_micros)


def test_a_write_of_the_key_alone_does_not_fire(singers: Database) -> None:
    before = read_changed_at(singers, 1)
    write(singers, UPSERT, "Singers", "SingerId", (1,))
    write(singers, UPDATE, "Singers", "SingerId", (1,))
    commit_dml(singers, "INSERT OR UPDATE INTO Singers (SingerId) VALUES (1)")
    assert read_changed_at(singers, 1) == before


def test_an_explicit_value_wins(singers: Database) -> None:
    write(singers, UPDATE, "Singers", "SingerId Name ChangedAt", (1, "x", PAST))
    assert read_changed_at(singers, 1) == PAST
    before = read_changed_at(singers, 2)
    commit_dml(singers, "UPDATE Singers SET Name = 'y', ChangedAt = ChangedAt WHERE SingerId = 2")
    assert read_changed_at(singers, 2) == before
    commit_dml(singers, "UPDATE Singers SET ChangedAt = NULL WHERE SingerId = 2")
    assert read_changed_at(singers, 2) is None


def test_the_placeholder_is_the_commit_timestamp(singers: Database) -> None:
    committed = write(singers, UPDATE, "Singers", "SingerId ChangedAt", (1, COMMIT_TIMESTAMP))
    assert read_changed_at(singers, 1) == timestamp_from_micros(committed.commit_timestamp_micros)


def test_the_placeholder_needs_the_column_option() -> None:
    with open_database("CREATE TABLE T (K INT64, `At` TIMESTAMP) PRIMARY KEY (K)") as database:
        with pytest.raises(SpannerError, match="allow_commit_timestamp") as error:
            write(database, INSERT, "T", "K At", (1, COMMIT_TIMESTAMP))
        assert code(error) is grpc.StatusCode.FAILED_PRECONDITION


def test_the_future_cannot_be_written(singers: Database) -> None:
    with pytest.raises(SpannerError, match="in the future") as error:
        write(singers, UPDATE, "Singers", "SingerId ChangedAt", (1, FUTURE))
    assert code(error) is grpc.StatusCode.FAILED_PRECONDITION
    transaction = singers.read_write()
    with pytest.raises(SpannerError, match="in the future"):
        run_dml(
            transaction,
            "UPDATE Singers SET ChangedAt = TIMESTAMP '2999-01-01 00:00:00Z' WHERE SingerId = 1",
            {},
            {},
        )
    transaction.rollback()


def test_a_generated_column_cannot_be_written(singers: Database) -> None:
    with pytest.raises(SpannerError, match="generated column") as error:
        write(singers, INSERT, "Singers", "SingerId ShardId", (5, 1))
    assert code(error) is grpc.StatusCode.FAILED_PRECONDITION


def test_lengths_count_characters_and_bytes() -> None:
    ddl = "CREATE TABLE T (K INT64, S STRING(3), B BYTES(3), A ARRAY<STRING(2)>) PRIMARY KEY (K)"
    with open_database(ddl) as database:
        write(database, INSERT, "T", "K S B A", (1, "äöü", b"\0\1\2", '["äö",null]'))
        write(database, INSERT, "T", "K S", (2, "a\0b"))
        for column, value in (("S", "a\0bc"), ("S", "äöüß"), ("B", b"\0" * 4), ("A", '["abc"]')):
            with pytest.raises(SpannerError, match=column) as error:
                write(database, INSERT, "T", f"K {column}", (3, value))
            assert code(error) is grpc.StatusCode.FAILED_PRECONDITION


def test_what_is_not_there_is_named(singers: Database) -> None:
    with pytest.raises(SpannerError, match="Table not found: Nobody"):
        write(singers, INSERT, "Nobody", "K", (1,))
    with pytest.raises(SpannerError, match="Column not found in table Singers: Age"):
        write(singers, INSERT, "Singers", "SingerId Age", (1, 2))
    with pytest.raises(SpannerError, match="Index not found"):
        read(singers, "Singers", "SingerId", index="ByAge")


def test_one_commit_is_all_or_nothing(singers: Database) -> None:
    with pytest.raises(SpannerError):
        singers.write(
            [
                RowWrite(INSERT, "Singers", ("SingerId",), [(10,)]),
                KeyDelete("Singers", KeySet(keys=((1,),))),
                RowWrite(UPDATE, "Singers", ("SingerId", "Name"), [(99, "x")]),
            ]
        )
    assert query(singers, ALL) == [(1, "a"), (2, "b")]


def test_a_statement_that_cannot_be_computed_leaves_the_transaction_usable(
    singers: Database,
) -> None:
    transaction = singers.read_write()
    run_dml(transaction, "UPDATE Singers SET Name = 'x' WHERE SingerId = 1")
    with pytest.raises(SpannerError):
        run_dml(transaction, "INSERT INTO Singers (SingerId) VALUES (3), (DIV(1, 0))")
    transaction.commit([])
    assert query(singers, ALL) == [(1, "x"), (2, "b")]


def test_a_transaction_sees_its_own_dml_and_nobody_else_does(singers: Database) -> None:
    transaction = singers.read_write()
    run_dml(transaction, "UPDATE Singers SET Name = 'x' WHERE SingerId = 1")
    assert list(run_query(transaction, ALL).rows) == [(1, "x"), (2, "b")]
    assert query(singers, ALL) == [(1, "a"), (2, "b")]
    transaction.rollback()
    assert query(singers, ALL) == [(1, "a"), (2, "b")]


def test_a_pending_commit_timestamp_cannot_be_read(singers: Database) -> None:
    transaction = singers.read_write()
    run_dml(transaction, "UPDATE Singers SET Name = 'x' WHERE SingerId = 1")
    with pytest.raises(SpannerError, match="pending CommitTimestamp") as error:
        run_query(transaction, "SELECT ChangedAt FROM Singers")
    assert code(error) is grpc.StatusCode.INVALID_ARGUMENT
    transaction.rollback()


def test_then_return_gives_the_new_row(singers: Database) -> None:
    transaction = singers.read_write()
    result = run_dml(
        transaction,
        "UPDATE Singers AS s SET Name = CONCAT(s.Name, '!') WHERE s.SingerId > 0 "
        "THEN RETURN SingerId, Name AS N",
        {},
        {},
    )
    assert result.returned is not None
    assert [c.name for c in result.returned.columns] == ["SingerId", "N"]
    assert sorted(result.returned.rows) == [(1, "a!"), (2, "b!")]
    inserted = run_dml(
        transaction, "INSERT INTO Singers (SingerId, Name) VALUES (3, 'c') THEN RETURN Name"
    )
    assert inserted.returned is not None
    assert list(inserted.returned.rows) == [("c",)]
    gone = run_dml(transaction, "DELETE FROM Singers WHERE SingerId = 2 THEN RETURN SingerId")
    assert gone.returned is not None
    assert list(gone.returned.rows) == [(2,)]
    transaction.commit([])
    assert query(singers, ALL) == [(1, "a!"), (3, "c")]


def test_insert_or_ignore_counts_what_it_inserted(singers: Database) -> None:
    counts, _ = commit_dml(singers, "INSERT OR IGNORE INTO Singers (SingerId) VALUES (1), (7), (7)")
    assert counts == [1]
    assert query(singers, ALL) == [(1, "a"), (2, "b"), (7, None)]


def test_dml_takes_parameters_without_regard_to_case(singers: Database) -> None:
    transaction = singers.read_write()
    run_dml(
        transaction,
        "UPDATE Singers SET Name = @NewName WHERE SingerId = @id",
        {"newname": "p", "Id": 2},
        {"newname": STRING, "Id": INT64},
    )
    transaction.commit([])
    assert query(singers, ALL) == [(1, "a"), (2, "p")]


def test_a_mutation_follows_the_dml_of_its_transaction(singers: Database) -> None:
    transaction = singers.read_write()
    run_dml(transaction, "INSERT INTO Singers (SingerId, Name) VALUES (5, 'd')")
    committed = transaction.commit([RowWrite(UPDATE, "Singers", ("SingerId", "Name"), [(5, "m")])])
    stamp = timestamp_from_micros(committed.commit_timestamp_micros)
    rows = query(singers, "SELECT Name, ChangedAt FROM Singers WHERE SingerId = 5")
    assert rows == [("m", stamp)]


def test_a_closed_transaction_is_refused(singers: Database) -> None:
    transaction = singers.read_write()
    transaction.commit([])
    with pytest.raises(SpannerError, match="after it has been committed"):
        run_query(transaction, ALL)


def test_defaults_are_computed_for_rows_that_do_not_name_the_column() -> None:
    ddl = (
        "CREATE TABLE T (K INT64, V INT64 DEFAULT (7), "
        "`At` TIMESTAMP NOT NULL DEFAULT (CURRENT_TIMESTAMP())) PRIMARY KEY (K)"
    )
    with open_database(ddl) as database:
        committed = write(database, INSERT, "T", "K", (1,))
        write(database, INSERT, "T", "K V", (2, None))
        commit_dml(database, "INSERT INTO T (K, V) VALUES (3, DEFAULT)")
        assert query(database, "SELECT K, V FROM T ORDER BY K") == [(1, 7), (2, None), (3, 7)]
        rows = query(database, "SELECT `At` FROM T WHERE K = 1")
        assert rows == [(timestamp_from_micros(committed.commit_timestamp_micros),)]


def test_an_identity_column_draws_values_that_are_far_apart() -> None:
    ddl = (
        "CREATE TABLE T (Id INT64 GENERATED BY DEFAULT AS IDENTITY (BIT_REVERSED_POSITIVE), "
        "V INT64) PRIMARY KEY (Id)"
    )
    with open_database(ddl) as database:
        write(database, INSERT, "T", "V", (1,), (2,))
        commit_dml(database, "INSERT INTO T (V) VALUES (3)")
        write(database, INSERT, "T", "Id V", (5, 4))
        rows = query(database, "SELECT V, Id FROM T ORDER BY V")
        assert rows == [(1, 1 << 62), (2, 1 << 61), (3, 3 << 61), (4, 5)]


def test_a_table_without_a_key_has_one_row() -> None:
    with open_database("CREATE TABLE T (V INT64) PRIMARY KEY ()") as database:
        write(database, UPSERT, "T", "V", (1,))
        write(database, UPSERT, "T", "V", (2,))
        with pytest.raises(SpannerError, match=r"Row \[\] in table T already exists"):
            write(database, INSERT, "T", "V", (3,))
        assert read(database, "T", "V") == [(2,)]
        delete(database, "T", ())
        assert read(database, "T", "V") == []


def test_a_shared_key_takes_the_commit_timestamp_only_when_the_family_agrees() -> None:
    with open_database(
        "CREATE TABLE P (`At` TIMESTAMP) PRIMARY KEY (`At`)",
        "CREATE TABLE C (`At` TIMESTAMP OPTIONS (allow_commit_timestamp=true), K INT64) "
        "PRIMARY KEY (`At`, K), INTERLEAVE IN PARENT P",
    ) as database:
        with pytest.raises(SpannerError, match="allow_commit_timestamp"):
            write(database, INSERT, "C", "At K", (COMMIT_TIMESTAMP, 1))
        database.update_ddl(
            ["ALTER TABLE P ALTER COLUMN `At` SET OPTIONS (allow_commit_timestamp=true)"]
        )
        committed = database.write(
            [
                RowWrite(INSERT, "P", ("At",), [(COMMIT_TIMESTAMP,)]),
                RowWrite(INSERT, "C", ("At", "K"), [(COMMIT_TIMESTAMP, 1)]),
            ]
        )
        stamp = timestamp_from_micros(committed.commit_timestamp_micros)
        assert query(database, "SELECT `At`, K FROM C") == [(stamp, 1)]


def test_a_commit_has_a_greatest_number_of_mutations() -> None:
    ddl = ("CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)", "CREATE INDEX ByV ON T (V)")
    rows = [(n, n) for n in range(26_667)]
    with open_database(*ddl) as database:
        assert write(database, INSERT, "T", "K V", *rows[:-1]).mutation_count == 79_998
        with pytest.raises(SpannerError, match="too many mutations") as error:
            write(database, UPSERT, "T", "K V", *rows)
        assert code(error) is grpc.StatusCode.INVALID_ARGUMENT
        _, committed = commit_dml(
            database, "DELETE FROM T WHERE K < 10", "UPDATE T SET V = 1 WHERE K < 20"
        )
        assert committed.mutation_count == 10 * 2 + 10 * 4
        commit_dml(database, *["UPDATE T SET V = V + 1 WHERE K < 20000"] * 2)
        write(database, INSERT, "T", "K V", *[(-n, n) for n in range(1, 50)])
        with pytest.raises(SpannerError, match="too many mutations"):
            commit_dml(database, "UPDATE T SET V = V + 1 WHERE K < 20000")
        # Before a row is looked at: most of these are there.
        with pytest.raises(SpannerError, match="too many mutations"):
            commit_dml(database, "INSERT INTO T (K, V) SELECT K + 1, V FROM T")
        assert query(database, "SELECT COUNT(*), MAX(V) FROM T") == [(26_705, 26_665)]


def test_index_entries_are_counted_as_spanner_counts_them() -> None:
    ddl = (
        "CREATE TABLE T (K INT64, A INT64, B INT64) PRIMARY KEY (K)",
        "CREATE INDEX ByA ON T (A) STORING (B)",
        "CREATE INDEX ByKey ON T (A, K)",
    )
    with open_database(*ddl) as database:
        assert write(database, INSERT, "T", "K", (1,)).mutation_count == 1 + 2
        assert write(database, INSERT, "T", "K A B", (2, 1, 1)).mutation_count == 3 + 2
        assert write(database, UPDATE, "T", "K B", (1, 5)).mutation_count == 2 + 2 * 1
        assert write(database, UPDATE, "T", "K A", (1, 5)).mutation_count == 2 + 2 * 2
        assert write(database, UPDATE, "T", "K", (1,)).mutation_count == 1
        _, committed = commit_dml(database, "UPDATE T SET B = 7 WHERE K = 1")
        assert committed.mutation_count == 2 + 2 * 1


def test_a_range_of_deleted_keys_is_one_mutation() -> None:
    rows = [(n, n) for n in range(39_000)]
    with open_database("CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)") as database:
        for offset in (0, 39_000, 78_000):
            write(database, INSERT, "T", "K V", *[(k + offset, v) for k, v in rows])
        assert database.write([KeyDelete("T", KeySet(all=True))]).mutation_count == 1
        assert query(database, "SELECT COUNT(*) FROM T") == [(0,)]
        database.update_ddl(["CREATE INDEX ByV ON T (V)"])
        write(database, INSERT, "T", "K V", *rows[:100])
        span = KeyRange((10,), (19,), start_closed=True, end_closed=True)
        some = KeySet(keys=((1,), (2,), (1_000,)), ranges=(span,))
        assert database.write([KeyDelete("T", some)]).mutation_count == 4 + 12


def test_generated_columns_and_keys_are_counted_as_spanner_counts_them() -> None:
    ddl = "CREATE TABLE T (A INT64, B INT64, V INT64, G INT64 AS (A + B) STORED) PRIMARY KEY (A, B)"
    with open_database(ddl) as database:
        assert write(database, INSERT, "T", "A B", (1, 2)).mutation_count == 5
        assert write(database, UPDATE, "T", "A B V", (1, 2, 3)).mutation_count == 6


def test_max_is_not_endless() -> None:
    ddl = "CREATE TABLE T (K INT64, S STRING(MAX), B BYTES(MAX)) PRIMARY KEY (K)"
    with open_database(ddl) as database:
        write(database, INSERT, "T", "K S B", (1, "ä" * 2_621_440, b"b" * 10_485_760))
        with pytest.raises(SpannerError, match="maximum size limit for this column: S"):
            write(database, INSERT, "T", "K S", (2, "ä" * 2_621_441))
        with pytest.raises(SpannerError, match="maximum size limit for this column: B"):
            write(database, INSERT, "T", "K B", (2, b"b" * 10_485_761))


def test_a_key_part_that_is_left_out_is_null() -> None:
    with open_database(
        "CREATE TABLE T (A INT64 NOT NULL, B INT64, V INT64) PRIMARY KEY (A, B)"
    ) as database:
        write(database, INSERT, "T", "A V", (1, 1))
        write(database, UPSERT, "T", "V A", (2, 1))
        assert read(database, "T", "A B V") == [(1, None, 2)]
        with pytest.raises(SpannerError) as error:
            write(database, INSERT, "T", "A V", (1, 3))
        assert code(error) is grpc.StatusCode.ALREADY_EXISTS
        for kind, columns in ((UPDATE, "A V"), (INSERT, "B V")):
            with pytest.raises(SpannerError) as error:
                write(database, kind, "T", columns, (1, 3))
            assert code(error) is grpc.StatusCode.FAILED_PRECONDITION


def test_malformed_rows_are_refused(singers: Database) -> None:
    with pytest.raises(SpannerError, match="size mismatch") as error:
        write(singers, INSERT, "Singers", "SingerId Name", (5,))
    assert code(error) is grpc.StatusCode.INVALID_ARGUMENT


def test_a_key_has_a_greatest_size() -> None:
    with open_database(
        "CREATE TABLE T (A STRING(MAX), B BYTES(MAX)) PRIMARY KEY (A, B)"
    ) as database:
        write(database, INSERT, "T", "A B", ("a" * 4_096, b"b" * 4_096))
        with pytest.raises(SpannerError, match="exceeds the maximum of 8192 bytes") as error:
            write(database, INSERT, "T", "A B", ("a" * 4_096, b"b" * 4_097))
        assert code(error) is grpc.StatusCode.INVALID_ARGUMENT


def test_defaults_and_generated_keys_are_converted_to_the_type_of_their_column() -> None:
    table = (
        "CREATE TABLE T (K INT64, G NUMERIC AS (K) STORED, N NUMERIC NOT NULL DEFAULT (0), "
        "F FLOAT64 DEFAULT (1), D DATE DEFAULT ('2024-01-02')) PRIMARY KEY (K, G)"
    )
    with open_database(table) as database:
        write(database, INSERT, "T", "K", (3,))
        write(database, UPDATE, "T", "K F", (3, 2.5))
        text = "SELECT CAST(G AS STRING), CAST(N AS STRING), CAST(F AS STRING), D FROM T"
        assert query(database, text) == [("3", "0", "2.5", "2024-01-02")]
        write(database, INSERT, "T", "K", (4,))
        assert query(database, "SELECT CAST(N AS STRING) FROM T WHERE G = 4") == [("0",)]
