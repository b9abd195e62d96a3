"""A transaction sees and commits the same whether or not others take the connection in between."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from fixtures.engine_world import (
    INSERT,
    STRONG,
    UPSERT,
    Row,
    exact_bound,
    open_database,
    query,
    run_dml,
    run_query,
    write,
)

from emulator.engine.database import Database
from emulator.engine.read_write import ReadWriteTransaction
from emulator.errors import SpannerError
from emulator.values.requests import KeySet, RowWrite

TABLES = (
    "CREATE SEQUENCE S OPTIONS (sequence_kind='bit_reversed_positive')",
    "CREATE TABLE P (K INT64 NOT NULL, N INT64, Code STRING(20), "
    "Twice INT64 AS (N * 2) STORED, Thrice INT64 AS (N * 3), "
    "Stamp TIMESTAMP DEFAULT (PENDING_COMMIT_TIMESTAMP()) ON UPDATE (PENDING_COMMIT_TIMESTAMP()) "
    "OPTIONS (allow_commit_timestamp=true), CONSTRAINT Small CHECK (N < 1000)) PRIMARY KEY (K)",
    "CREATE UNIQUE NULL_FILTERED INDEX ByCode ON P (Code)",
    "CREATE INDEX ByTwice ON P (Twice DESC) STORING (N)",
    "CREATE TABLE C (K INT64 NOT NULL, Sub INT64 NOT NULL, Data BYTES(MAX)) "
    "PRIMARY KEY (K, Sub), INTERLEAVE IN PARENT P ON DELETE CASCADE",
    "CREATE TABLE R (Id INT64 NOT NULL DEFAULT (GET_NEXT_SEQUENCE_VALUE(SEQUENCE S)), PK INT64, "
    "FOREIGN KEY (PK) REFERENCES P (K)) PRIMARY KEY (Id)",
    "CREATE TABLE Noise (K INT64 NOT NULL, N INT64) PRIMARY KEY (K)",
    "CREATE CHANGE STREAM Changes FOR ALL OPTIONS (value_capture_type='NEW_ROW')",
)
QUERIES = (
    "SELECT K, N, Code, Twice, Thrice FROM P ORDER BY K",
    "SELECT K FROM P@{FORCE_INDEX=ByTwice} WHERE Twice > 4 ORDER BY Twice DESC, K",
    "SELECT K FROM P@{FORCE_INDEX=ByCode} WHERE Code IS NOT NULL ORDER BY Code",
    "SELECT K, Sub, Data FROM C ORDER BY K, Sub",
    "SELECT PK, COUNT(*) FROM R GROUP BY PK ORDER BY PK",
)
Disturb = Callable[[Database], None]


def leave_alone(_database: Database) -> None:
    """Nobody else writes."""


def commit_mutations(database: Database) -> None:
    """A commit of mutations takes the connection, and a number in SQLite."""
    write(database, UPSERT, "Noise", "K N", (len(query(database, "SELECT K FROM Noise")), 1))


def insert_beside(database: Database) -> None:
    """Commits a row in the same table: it takes the number that SQLite had given to another."""
    keys = query(database, "SELECT MAX(K) FROM P WHERE K >= 1000")
    write(database, INSERT, "P", "K N", (max(int(str(keys[0][0] or 0)), 1000) + 1, 1))


def open_another(database: Database) -> None:
    """Another transaction writes and rolls back."""
    other = database.read_write()
    run_dml(other, "INSERT INTO P (K, N) VALUES (5000, 1)")
    other.rollback()


def steps(choice: random.Random, count: int) -> list[str]:
    """Statements over few rows."""
    texts = (
        "INSERT OR UPDATE INTO P (K, N, Code) VALUES ({k}, {n}, 'c{k}')",
        "INSERT OR IGNORE INTO P (K, N) VALUES ({k}, {n})",
        "UPDATE P SET N = N + {n} WHERE K = {k}",
        "UPDATE P SET Code = 'x{k}' WHERE K = {k}",
        "UPDATE P SET Code = NULL WHERE K = {k}",
        "DELETE FROM C WHERE K = {k}",
        "INSERT OR UPDATE INTO C (K, Sub, Data) SELECT K, {n}, b'\\x00{n}' FROM P WHERE K = {k}",
        "DELETE FROM P WHERE K = {k} AND NOT EXISTS (SELECT 1 FROM R WHERE R.PK = {k})",
        "INSERT INTO R (PK) SELECT K FROM P WHERE K = {k}",
        "DELETE FROM R WHERE PK = {k}",
    )
    return [
        choice.choice(texts).format(k=choice.randrange(1, 7), n=choice.randrange(1, 9))
        for _ in range(count)
    ]


def seen(transaction: ReadWriteTransaction) -> list[list[Row]]:
    """What a transaction sees of the rows that the test writes."""
    limited = (
        sql.replace(" ORDER", " AND K < 1000 ORDER")
        if " WHERE " in sql
        else sql.replace(" FROM P ORDER", " FROM P WHERE K < 1000 ORDER")
        for sql in QUERIES
    )
    return [list(run_query(transaction, sql).rows) for sql in limited]


def run(seed: int, disturb: Disturb) -> list[object]:
    """Everything that one transaction sees, and what is there after it, without timestamps."""
    choice = random.Random(seed)
    with open_database(*TABLES) as database:
        write(database, INSERT, "P", "K N Code", *((k, k, f"c{k}") for k in range(1, 5)))
        write(database, INSERT, "C", "K Sub", (1, 1), (2, 1))
        outcome: list[object] = []
        before = database.read_only(STRONG).read_timestamp_micros
        transaction = database.read_write()
        for text in steps(choice, 25):
            disturb(database)
            outcome.append(run_dml(transaction, text).row_count)
            disturb(database)
            if choice.random() < 0.3:
                outcome.append(seen(transaction))
        disturb(database)
        committed = transaction.commit([RowWrite(UPSERT, "P", ("K", "N"), [(6, 6)])])
        outcome.append(seen(database.read_write()))
        at = exact_bound(committed.commit_timestamp_micros)
        outcome.append(
            [
                query(database, sql, bound)
                for bound in (exact_bound(before), at)
                for sql in ("SELECT K, N FROM P WHERE K < 1000 ORDER BY K", QUERIES[3])
            ]
        )
        stamped = "SELECT COUNT(*) FROM P WHERE Stamp > @t AND K < 1000"
        assert query(database, stamped.replace("@t", "TIMESTAMP '9000-01-01'")) == [(0,)]
        outcome.append(records(database, committed.commit_timestamp_micros))
        return outcome


def records(database: Database, micros: int) -> list[Row]:
    """The records of the change stream at a commit timestamp, without what differs by the clock."""
    connection = database._writer.connection
    rows = connection.execute(
        "SELECT json_extract(data, '$.table_name'), json_extract(data, '$.mod_type') "
        'FROM "$records" WHERE micros = ? ORDER BY sequence',
        (micros,),
    )
    return list(rows)


@pytest.mark.parametrize("disturb", [commit_mutations, insert_beside, open_another])
@pytest.mark.parametrize("seed", range(4))
def test_others_in_between_make_no_difference(seed: int, disturb: Disturb) -> None:
    assert run(seed, disturb) == run(seed, leave_alone)


def both(statements: Sequence[str]) -> list[list[Row]]:
    """The rows of P after statements of two transactions in turns, each on rows of its own."""
    with open_database(*TABLES) as database:
        transactions = [database.read_write() for _ in range(2)]
        for text in statements:
            for place, transaction in enumerate(transactions):
                run_dml(transaction, text.format(k=place * 10, next=place * 10 + 1))
        for transaction in reversed(transactions):
            transaction.commit([])
        return [query(database, sql) for sql in QUERIES]


def test_two_write_in_turns() -> None:
    found = both(
        [
            "INSERT INTO P (K, N, Code) VALUES ({k}, 1, 'a{k}'), ({next}, 2, 'b{k}')",
            "INSERT INTO C (K, Sub, Data) VALUES ({k}, 1, b'x'), ({k}, 2, b'y')",
            "INSERT INTO R (PK) VALUES ({k})",
            "UPDATE P SET Code = 'tmp{k}' WHERE K = {k}",
            "UPDATE P SET Code = 'a{k}' WHERE K = {next}",
            "UPDATE P SET Code = 'b{k}', N = 7 WHERE K = {k}",
            "DELETE FROM C WHERE K = {k} AND Sub = 1",
        ]
    )
    assert found[0] == [
        (0, 7, "b0", 14, 21),
        (1, 2, "a0", 4, 6),
        (10, 7, "b10", 14, 21),
        (11, 2, "a10", 4, 6),
    ]
    assert found[3] == [(0, 2, b"y"), (10, 2, b"y")]
    assert found[4] == [(0, 1), (10, 1)]


def test_returned_rows_and_reads_by_key_show_own_writes() -> None:
    with open_database(*TABLES) as database:
        transaction = database.read_write()
        returned = run_dml(
            transaction, "INSERT INTO P (K, N) VALUES (1, 2) THEN RETURN K, Twice, Thrice"
        )
        assert returned.returned is not None
        assert list(returned.returned.rows) == [(1, 4, 6)]
        commit_mutations(database)
        keys = KeySet(keys=((4,),))
        assert list(transaction.read("P", "ByTwice", ["K", "N"], keys).rows) == [(1, 2)]
        updated = run_dml(transaction, "UPDATE P SET N = 3 WHERE K = 1 THEN RETURN N, Twice")
        assert updated.returned is not None
        assert list(updated.returned.rows) == [(3, 6)]
        commit_mutations(database)
        with pytest.raises(SpannerError, match="pending"):
            list(run_query(transaction, "SELECT Stamp FROM P").rows)
        committed = transaction.commit([RowWrite(UPSERT, "P", ("K", "Code"), [(1, "c")])])
        at = "SELECT N, Code, UNIX_MICROS(Stamp) FROM P"
        assert query(database, at) == [(3, "c", committed.commit_timestamp_micros)]


def test_a_failed_statement_leaves_the_rest() -> None:
    with open_database(*TABLES) as database:
        write(database, INSERT, "P", "K N", (1, 1))
        transaction = database.read_write()
        run_dml(transaction, "UPDATE P SET N = 5 WHERE K = 1")
        commit_mutations(database)
        with pytest.raises(SpannerError, match="zero"):
            run_dml(transaction, "UPDATE P SET N = DIV(N, K - 1) WHERE K = 1")
        commit_mutations(database)
        transaction.commit([])
        assert query(database, "SELECT N FROM P") == [(5,)]


def test_foreign_keys_are_checked_after_each_statement() -> None:
    with open_database(*TABLES) as database:
        good, bad = database.read_write(), database.read_write()
        run_dml(good, "INSERT INTO P (K) VALUES (10)")
        with pytest.raises(SpannerError, match="Foreign key"):
            run_dml(bad, "INSERT INTO R (Id, PK) VALUES (2, 20)")
        run_dml(good, "INSERT INTO R (Id, PK) VALUES (1, 10)")
        run_dml(bad, "INSERT INTO R (Id, PK) VALUES (3, NULL)")
        good.commit([])
        bad.commit([])
        assert query(database, "SELECT Id FROM R ORDER BY Id") == [(1,), (3,)]
