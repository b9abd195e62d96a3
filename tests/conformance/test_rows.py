"""Reads and deletes by key and range; indexes: order, filters, uniqueness, backfill."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1 import JsonObject, KeyRange, KeySet
from google.cloud.spanner_v1.database import Database
from talk import ALL, change, commit, ddl, delete, dml, insert, read, rows

THREADS = (
    "CREATE TABLE Users (U INT64, Name STRING(MAX)) PRIMARY KEY (U)",
    "CREATE TABLE Threads (U INT64, T INT64, S BOOL) PRIMARY KEY (U, T),"
    " INTERLEAVE IN PARENT Users ON DELETE CASCADE",
)
ROWS = [[1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1]]


def fill(database: Database) -> None:
    commit(
        database,
        insert("Users", "U", *[(u,) for u in (1, 2, 3)]),
        insert("Threads", "U T", *[tuple(row) for row in ROWS]),
    )


def key_range(start: str, first: Sequence[object], end: str, last: Sequence[object]) -> KeySet:
    return KeySet(ranges=[KeyRange(**{f"start_{start}": first, f"end_{end}": last})])


RANGES = [
    (("closed", [1, 1], "open", [1, 4]), [[1, 1], [1, 2], [1, 3]]),
    (("open", [1, 2], "open", [1, 1]), []),
    (("closed", [1], "open", [2]), ROWS[:4]),
    (("closed", [1], "closed", [2]), ROWS[:6]),
    (("open", [1], "open", [3]), ROWS[4:6]),
    (("open", [1], "closed", [2]), ROWS[4:6]),
    (("closed", [2], "closed", [2]), ROWS[4:6]),
    (("open", [1], "open", [1]), []),
    (("closed", [1, 1], "closed", [1]), ROWS[:4]),
    (("closed", [1, 3], "closed", [1]), ROWS[2:4]),
    (("closed", [2, 1], "closed", [2, 9]), ROWS[4:6]),
]


@pytest.mark.parametrize(("bounds", "expected"), RANGES)
@pytest.mark.ddl(*THREADS)
def test_a_range_reads_and_deletes_the_rows_between_its_bounds(
    database: Database, bounds: tuple[str, list[object], str, list[object]], expected: list[object]
) -> None:
    fill(database)
    keys = key_range(*bounds)
    assert read(database, "Threads", "U T", keys) == expected
    commit(database, delete("Threads", keys))
    assert read(database, "Threads", "U T") == [row for row in ROWS if row not in expected]


@pytest.mark.ddl(*THREADS)
def test_points_ranges_and_limits_together(database: Database) -> None:
    fill(database)
    keys = KeySet(
        keys=[[2, 2], [9, 9], [1, 1]], ranges=[KeyRange(start_closed=[1, 3], end_open=[2])]
    )
    assert read(database, "Threads", "U T", keys) == [[1, 1], [1, 3], [1, 4], [2, 2]]
    with database.snapshot() as snapshot:
        assert list(snapshot.read("Threads", ["T"], keys, limit=2)) == [[1], [3]]
    commit(database, delete("Threads", [2, 2]), delete("Threads", [8, 8]))
    assert [2, 2] not in read(database, "Threads", "U T")
    commit(database, delete("Threads", key_range("open", [1, 2], "open", [1, 1])))
    with pytest.raises(exceptions.FailedPrecondition):
        read(database, "Threads", "U T", KeySet(keys=[[1]]))


@pytest.mark.ddl(*THREADS)
def test_a_delete_of_a_range_varies_in_its_last_part_only(database: Database) -> None:
    fill(database)
    for bounds in (
        ("closed", [1, 3], "closed", [2, 2]),
        ("closed", [1, 2], "open", [2, 1]),
        ("closed", [1], "open", [2, 3]),
    ):
        with pytest.raises(exceptions.MethodNotImplemented):
            commit(database, delete("Threads", key_range(*bounds)))
    assert read(database, "Threads", "U T") == ROWS


@pytest.mark.ddl("CREATE TABLE N (K NUMERIC, V INT64) PRIMARY KEY (K)")
def test_numeric_keys_are_in_the_order_of_numbers(database: Database) -> None:
    values = [Decimal(text) for text in ("-10", "-9.5", "0", "0.000000001", "9", "10", "100.5")]
    commit(database, insert("N", "K V", *[(value, 1) for value in reversed(values)]))
    assert read(database, "N", "K") == [[value] for value in values]
    keys = key_range("closed", [Decimal("-9.5")], "open", [Decimal(10)])
    assert read(database, "N", "K", keys) == [[value] for value in values[1:5]]


@pytest.mark.ddl("CREATE TABLE L (K INT64, V STRING(MAX)) PRIMARY KEY (K)")
def test_a_large_result_comes_whole_and_in_order(database: Database) -> None:
    long = "x" * 100_000
    for start in range(0, 100, 20):
        commit(database, insert("L", "K V", *[(k, long) for k in range(start, start + 20)]))
    assert [row[0] for row in read(database, "L", "K V")] == list(range(100))
    values = read(database, "L", "V", key_range("closed", [10], "open", [60]))
    assert [len(str(row[0])) for row in values] == [len(long)] * 50


USERS = (
    "CREATE TABLE Users (Id INT64 NOT NULL, Name STRING(MAX), Age INT64) PRIMARY KEY (Id)",
    "CREATE INDEX Up ON Users (Name)",
    "CREATE INDEX Down ON Users (Name DESC)",
    "CREATE NULL_FILTERED INDEX Filtered ON Users (Name, Age)",
    "CREATE UNIQUE INDEX OneNameAge ON Users (Name, Age)",
    "CREATE UNIQUE NULL_FILTERED INDEX OneName ON Users (Name)",
    "CREATE INDEX Known ON Users (Name, Age) WHERE Name IS NOT NULL AND Age IS NOT NULL",
    "CREATE INDEX Stored ON Users (Name) STORING (Age) WHERE Age IS NOT NULL",
)


@pytest.mark.ddl(*USERS)
def test_an_index_orders_and_follows_its_table(database: Database) -> None:
    assert read(database, "Users", "Name Id", index="Up") == []
    people = [(0, "Adam", 20), (1, "John", 22), (2, "Peter", 41), (5, None, 18)]
    commit(database, insert("Users", "Id Name Age", *people))
    names = [[None, 5], ["Adam", 0], ["John", 1], ["Peter", 2]]
    assert read(database, "Users", "Name Id", index="Up") == names
    assert read(database, "Users", "Name Id", index="Down") == names[::-1]
    commit(database, change("update", "Users", "Id Name", (2, "Alice")), delete("Users", [0]))
    assert read(database, "Users", "Name Id", index="Up") == [[None, 5], ["Alice", 2], ["John", 1]]
    ids = read(database, "Users", "Id", KeySet(keys=[["John"]]), index="Up")
    assert ids == [[1]]
    ids = read(database, "Users", "Id", key_range("closed", ["B"], "open", ["Z"]), index="Up")
    assert ids == [[1]]


@pytest.mark.ddl(*USERS)
def test_a_filtered_index_leaves_nulls_out(database: Database) -> None:
    people = [(0, "Adam", 20), (1, "", 22), (2, None, 41), (3, "John", 28), (4, "Matthew", None)]
    commit(database, insert("Users", "Id Name Age", *people))
    whole = [["", 22, 1], ["Adam", 20, 0], ["John", 28, 3]]
    assert read(database, "Users", "Name Age Id", index="Filtered") == whole
    assert read(database, "Users", "Name Age Id", index="Known") == whole
    assert read(database, "Users", "Name Age Id", index="Stored") == [[None, 41, 2], *whole]


@pytest.mark.ddl(*USERS)
def test_a_unique_index_takes_nulls_for_equal_unless_it_leaves_them_out(
    database: Database,
) -> None:
    people = [(0, "Adam", 20), (1, "", 22), (2, None, 41), (3, None, 42)]
    commit(database, insert("Users", "Id Name Age", *people))
    for row in ((9, "Adam", 20), (9, "", 22), (9, None, 41), (9, "Adam", 99)):
        with pytest.raises(exceptions.AlreadyExists):
            commit(database, insert("Users", "Id Name Age", row))
    commit(database, insert("Users", "Id", (7,)))
    with pytest.raises(exceptions.AlreadyExists):
        commit(database, insert("Users", "Id", (8,)))
    with pytest.raises(exceptions.AlreadyExists):
        commit(
            database, change("insert_or_update", "Users", "Id", (7,)), insert("Users", "Id", (8,))
        )


@pytest.mark.ddl(*USERS)
def test_a_key_of_an_index_has_a_length(database: Database) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        commit(database, insert("Users", "Id Name Age", (1, "a" * 8192, 20)))


@pytest.mark.ddl(
    "CREATE TABLE One (V INT64) PRIMARY KEY ()",
    "CREATE INDEX OneByV ON One (V)",
)
def test_a_table_without_a_key_has_one_row(database: Database) -> None:
    commit(database, insert("One", "V", (20,)))
    with pytest.raises(exceptions.AlreadyExists):
        commit(database, insert("One", "V", (30,)))
    assert read(database, "One", "V", index="OneByV") == [[20]]
    commit(database, change("update", "One", "V", (30,)))
    assert read(database, "One", "V", KeySet(keys=[[]])) == [[30]]
    commit(database, delete("One", []))
    assert read(database, "One", "V") == []


@pytest.mark.ddl(
    "CREATE TABLE A (Id INT64, Name STRING(MAX), M NUMERIC, C JSON) PRIMARY KEY (Id)",
    "CREATE INDEX ByM ON A (M)",
    "CREATE INDEX ByName ON A (Name) STORING (M, C)",
)
def test_an_index_keeps_numbers_and_json(database: Database) -> None:
    amounts = [Decimal("-9999999999999999123.456789"), Decimal(0), Decimal("123.456789")]
    documents = [JsonObject({"role": "a"}), JsonObject({"floor": 2}), None]
    people = list(zip((0, 1, 2), "zyx", amounts, documents, strict=True))
    commit(database, insert("A", "Id Name M C", *people))
    assert read(database, "A", "M", index="ByM") == [[amount] for amount in amounts]
    entries = read(database, "A", "Name M C", index="ByName")
    assert entries == [list(row[1:]) for row in reversed(people)]


@pytest.mark.ddl(
    "CREATE TABLE P (Name STRING(MAX)) PRIMARY KEY (Name)",
    "CREATE TABLE T (Id INT64, Name STRING(MAX), V STRING(MAX)) PRIMARY KEY (Id)",
    "CREATE INDEX Remote ON T (Name) STORING (V), INTERLEAVE IN P",
)
def test_an_index_interleaved_in_another_table_needs_no_parent_row(database: Database) -> None:
    commit(database, insert("P", "Name", ("a",)), insert("T", "Id Name V", (1, "a", "x")))
    commit(database, insert("T", "Id Name V", (2, "b", "y")), delete("P", ["a"]))
    assert read(database, "T", "Name V", index="Remote") == [["a", "x"], ["b", "y"]]
    commit(database, change("update", "T", "Id V", (1, "z")), delete("T", [2]))
    assert read(database, "T", "Name V", index="Remote") == [["a", "z"]]


@pytest.mark.ddl(*THREADS)
def test_an_index_is_filled_with_the_rows_that_are_there(database: Database) -> None:
    fill(database)
    dml(database, "UPDATE Threads SET S = TRUE WHERE T = 1")
    ddl(
        database,
        "CREATE INDEX ByT ON Threads (T DESC)",
        "CREATE NULL_FILTERED INDEX ByS ON Threads (S)",
        "CREATE UNIQUE INDEX Both ON Threads (T, U)",
    )
    assert [row[0] for row in read(database, "Threads", "T", index="ByT")] == [4, 3, 2, 2, 1, 1, 1]
    assert read(database, "Threads", "U T", index="ByS") == [[1, 1], [2, 1], [3, 1]]
    commit(database, delete("Users", [1]))
    assert read(database, "Threads", "U T", index="ByS") == [[2, 1], [3, 1]]
    for statement in (
        "CREATE UNIQUE INDEX OneT ON Threads (T)",
        "CREATE INDEX ByT ON Threads (T)",
    ):
        with pytest.raises(exceptions.FailedPrecondition):
            ddl(database, statement)


@pytest.mark.ddl("CREATE TABLE T (K INT64, V STRING(MAX), N NUMERIC) PRIMARY KEY (K)")
def test_an_index_is_not_filled_where_its_key_would_be_too_long(database: Database) -> None:
    commit(database, insert("T", "K V N", (1, "a" * 9000, Decimal(1)), (2, None, Decimal(1))))
    with pytest.raises(exceptions.FailedPrecondition):
        ddl(database, "CREATE INDEX ByV ON T (V)")
    with pytest.raises(exceptions.FailedPrecondition):
        ddl(database, "CREATE UNIQUE INDEX ByN ON T (N)")
    ddl(database, "CREATE INDEX ByN ON T (N) STORING (V)")
    assert len(read(database, "T", "N V", ALL, index="ByN")) == 2
    assert rows(database, "SELECT COUNT(*) FROM T@{FORCE_INDEX=ByN}") == [[2]]


FLOATS_UP: list[list[Any]] = [[None], [math.nan], [-math.inf], [-1.5], [0.0], [2.5], [math.inf]]


@pytest.mark.parametrize("down", [False, True])
def test_a_key_of_floats_is_ordered_from_null_over_nan_to_infinity(
    database: Database, down: bool
) -> None:
    word = "DESC" if down else "ASC"
    ddl(
        database,
        f"CREATE TABLE F (K FLOAT64) PRIMARY KEY (K {word})",
        "CREATE TABLE G (Id INT64, V FLOAT64) PRIMARY KEY (Id)",
        f"CREATE INDEX ByV ON G (V {word})",
    )
    ordered = FLOATS_UP[::-1] if down else FLOATS_UP
    mixed = ordered[3:] + ordered[:3]
    commit(database, insert("F", "K", *mixed))
    commit(database, insert("G", "Id V", *[[n, *row] for n, row in enumerate(mixed)]))
    for first, start in enumerate(ordered):
        for last, end in enumerate(ordered[first:], first):
            bounds = [
                ("closed", start, "closed", end, ordered[first : last + 1]),
                ("open", start, "open", end, ordered[first + 1 : last]),
                ("closed", end, "open", start, []),
            ]
            for lower, low, upper, high, expected in bounds:
                keys = key_range(lower, list(low), upper, list(high))
                assert value_texts(read(database, "F", "K", keys)) == value_texts(expected)
                assert value_texts(read(database, "G", "V", keys, index="ByV")) == value_texts(
                    expected
                )
    assert value_texts(read(database, "F", "K")) == value_texts(ordered)
    assert value_texts(read(database, "F", "K", KeySet(keys=mixed))) == value_texts(ordered)
    assert value_texts(read(database, "G", "V", index="ByV")) == value_texts(ordered)
    for index, table, column in (("", "F", "K"), ("ByV", "G", "V")):
        assert sorted(read_partitions(database, table, column, index)) == sorted(
            value_texts(ordered)
        )


def read_partitions(database: Database, table: str, column: str, index: str) -> list[str]:
    """The values of every partition."""
    snapshot = database.batch_snapshot()
    batches = snapshot.generate_read_batches(table, [column], ALL, index=index)
    values = [row for batch in batches for row in snapshot.process_read_batch(batch)]
    snapshot.close()
    return value_texts(values)


def value_texts(values: Sequence[Sequence[float | None]]) -> list[str]:
    """Values in a form in which NaN equals NaN."""
    return [str(row[0]) for row in values]
