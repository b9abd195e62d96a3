"""Sequences and IDENTITY columns: values, counters, options, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

SEQUENCE = "CREATE SEQUENCE seq OPTIONS (sequence_kind = 'bit_reversed_positive')"
USERS = """CREATE TABLE Users (
  Id INT64 DEFAULT (GET_NEXT_SEQUENCE_VALUE(SEQUENCE seq)),
  Counter INT64 DEFAULT (GET_INTERNAL_SEQUENCE_STATE(SEQUENCE seq)),
  Reversed INT64 AS (BIT_REVERSE(Id, TRUE)) STORED,
  Name STRING(MAX),
) PRIMARY KEY (Id)"""
STATE = "SELECT GET_INTERNAL_SEQUENCE_STATE(SEQUENCE seq)"
HALF = 1 << 62
LAST = (1 << 63) - 1


def rows(database: Database, sql: str) -> list[list[Any]]:
    with database.snapshot() as snapshot:
        return [list(row) for row in snapshot.execute_sql(sql)]


def state(database: Database) -> object:
    return rows(database, STATE)[0][0]


def ddl(database: Database, *statements: str) -> None:
    database.update_ddl(statements).result(30)


def dml(database: Database, sql: str) -> list[list[Any]]:
    def work(transaction: Transaction) -> list[list[Any]]:
        return [list(row) for row in transaction.execute_sql(sql)]

    inserted: list[list[Any]] = database.run_in_transaction(work)
    return inserted


def insert(database: Database, *names: str) -> None:
    with database.batch() as batch:
        batch.insert("Users", ["Name"], [(name,) for name in names])


@pytest.mark.ddl(SEQUENCE, USERS)
def test_a_default_draws_a_positive_value_with_its_bits_reversed(database: Database) -> None:
    assert state(database) is None
    insert(database, "a", "b", "c")
    users = rows(database, "SELECT Id, Reversed FROM Users ORDER BY Reversed")
    assert [reversed_ for _, reversed_ in users] == [1, 2, 3]
    assert min(id_ for id_, _ in users) > 1 << 32
    assert state(database) == 4


@pytest.mark.ddl(SEQUENCE, USERS)
def test_dml_draws_for_every_row_and_returns_the_values(database: Database) -> None:
    inserted = dml(
        database, "INSERT INTO Users (Name) VALUES ('a'), ('b') THEN RETURN Id, Reversed"
    )
    assert [reversed_ for _, reversed_ in inserted] == [1, 2]
    explicit = "INSERT INTO Users (Id, Name) VALUES (GET_NEXT_SEQUENCE_VALUE(SEQUENCE seq), 'c')"
    assert dml(database, f"{explicit} THEN RETURN Reversed, Counter") == [[3, 4]]
    update = "UPDATE Users SET Name = CAST(GET_NEXT_SEQUENCE_VALUE(SEQUENCE seq) AS STRING)"
    dml(database, f"{update} WHERE TRUE THEN RETURN Name")
    assert len(rows(database, "SELECT DISTINCT Name FROM Users")) == 3
    assert state(database) == 7


@pytest.mark.ddl(SEQUENCE, USERS)
def test_an_upsert_of_a_new_row_draws_and_a_given_key_does_not(database: Database) -> None:
    with database.batch() as batch:
        batch.insert_or_update("Users", ["Name"], [("a",)])
        batch.insert("Users", ["Id", "Name"], [(7, "b")])
    assert state(database) == 2
    assert rows(database, "SELECT Name FROM Users WHERE Id = 7") == [["b"]]


@pytest.mark.ddl(SEQUENCE)
def test_a_value_is_drawn_in_a_read_write_transaction_only(database: Database) -> None:
    draw = "SELECT GET_NEXT_SEQUENCE_VALUE(SEQUENCE seq)"
    assert dml(database, draw) == [[1 << 62]]
    assert state(database) == 2
    with pytest.raises(exceptions.InvalidArgument, match="only allowed in read-write"):
        rows(database, draw)


@pytest.mark.ddl(SEQUENCE, USERS)
def test_no_value_is_drawn_in_a_condition(database: Database) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="not supported in a WHERE clause"):
        dml(database, "SELECT 1 FROM Users WHERE Id = GET_NEXT_SEQUENCE_VALUE(SEQUENCE seq)")
    with pytest.raises(exceptions.InvalidArgument, match="Sequence not found: nothing"):
        dml(database, "SELECT GET_NEXT_SEQUENCE_VALUE(SEQUENCE nothing)")


@pytest.mark.ddl(SEQUENCE, USERS)
def test_the_counter_moves_forward_and_backward_by_ddl(database: Database) -> None:
    insert(database, "a")
    ddl(database, "ALTER SEQUENCE seq SET OPTIONS (start_with_counter = 50001)")
    insert(database, "b")
    ddl(database, "ALTER SEQUENCE seq SET OPTIONS (start_with_counter = 100)")
    insert(database, "c")
    users = rows(database, "SELECT Name, Reversed FROM Users ORDER BY Name")
    assert users == [["a", 1], ["b", 50001], ["c", 100]]


@pytest.mark.parametrize(("low", "high"), [(0, HALF), (HALF, LAST)])
@pytest.mark.ddl(SEQUENCE, USERS)
def test_a_skipped_range_is_skipped(database: Database, low: int, high: int) -> None:
    bounds = f"skip_range_min = {low}, skip_range_max = {high}"
    ddl(database, f"ALTER SEQUENCE seq SET OPTIONS ({bounds})")
    assert state(database) is None
    insert(database, *"abcdef")
    ids = [int(str(id_)) for (id_,) in rows(database, "SELECT Id FROM Users")]
    assert len(ids) == 6
    assert all(id_ > 0 and not low <= id_ <= high for id_ in ids)


@pytest.mark.ddl(SEQUENCE, USERS)
def test_a_sequence_that_skips_everything_is_exhausted_until_it_is_altered(
    database: Database,
) -> None:
    ddl(database, f"ALTER SEQUENCE seq SET OPTIONS (skip_range_min = 0, skip_range_max = {LAST})")
    with pytest.raises(exceptions.FailedPrecondition, match="Sequence seq is exhausted"):
        insert(database, "a")
    ddl(database, "ALTER SEQUENCE seq SET OPTIONS (skip_range_min = NULL, skip_range_max = NULL)")
    insert(database, "a")
    assert rows(database, "SELECT Name FROM Users") == [["a"]]


@pytest.mark.ddl(SEQUENCE, USERS)
def test_a_sequence_that_is_created_again_begins_again(database: Database) -> None:
    insert(database, "a")
    with pytest.raises(exceptions.FailedPrecondition, match="Cannot drop SEQUENCE `seq`"):
        ddl(database, "DROP SEQUENCE seq")
    ddl(
        database,
        "ALTER TABLE Users ALTER COLUMN Id DROP DEFAULT",
        "ALTER TABLE Users ALTER COLUMN Counter DROP DEFAULT",
        "DROP SEQUENCE seq",
        SEQUENCE,
        "ALTER TABLE Users ALTER COLUMN Id SET DEFAULT (GET_NEXT_SEQUENCE_VALUE(SEQUENCE seq))",
    )
    assert state(database) is None


@pytest.mark.ddl(SEQUENCE, USERS)
def test_a_column_added_with_a_default_draws_for_the_rows_that_are_there(
    database: Database,
) -> None:
    insert(database, "a", "b", "c")
    added = "ALTER TABLE Users ADD COLUMN More INT64"
    ddl(database, f"{added} DEFAULT (GET_NEXT_SEQUENCE_VALUE(SEQUENCE seq))")
    drawn = rows(database, "SELECT BIT_REVERSE(More, TRUE) AS n FROM Users ORDER BY n")
    assert drawn == [[4], [5], [6]]
    assert state(database) == 7


@pytest.mark.ddl(
    "CREATE SEQUENCE s BIT_REVERSED_POSITIVE SKIP RANGE 1, 1000 START COUNTER WITH 50", SEQUENCE
)
def test_schema_tables_and_ddl_tell_the_options(database: Database) -> None:
    listed = rows(database, "SELECT * FROM INFORMATION_SCHEMA.SEQUENCES ORDER BY NAME")
    assert listed == [["", "", "s", "INT64"], ["", "", "seq", "INT64"]]
    asked = "SELECT OPTION_NAME, OPTION_VALUE FROM INFORMATION_SCHEMA.SEQUENCE_OPTIONS"
    assert rows(database, f"{asked} WHERE NAME = 's' ORDER BY 1") == [
        ["sequence_kind", "bit_reversed_positive"],
        ["skip_range_max", "1000"],
        ["skip_range_min", "1"],
        ["start_with_counter", "50"],
    ]
    ddl(database, "ALTER SEQUENCE s NO SKIP RANGE RESTART COUNTER WITH 9")
    database.reload()
    assert list(database.ddl_statements) == [
        "CREATE SEQUENCE s BIT_REVERSED_POSITIVE START COUNTER WITH 9",
        "CREATE SEQUENCE seq OPTIONS (sequence_kind = 'bit_reversed_positive')",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("sequence_kind = 'monotonic'", "Invalid Sequence Kind"),
        ("sequence_kind = 'bit_reversed_positive', step = 2", "Unsupported sequence option: step"),
        (
            "sequence_kind = 'bit_reversed_positive', skip_range_min = 1",
            "have to be set together",
        ),
        (
            "sequence_kind = 'bit_reversed_positive', skip_range_min = 9, skip_range_max = 1",
            "lesser than or equal",
        ),
        (
            "sequence_kind = 'bit_reversed_positive', skip_range_min = -9, skip_range_max = -1",
            "at least one positive value",
        ),
        (
            "sequence_kind = 'bit_reversed_positive', start_with_counter = -1",
            "has to be a positive INT64",
        ),
    ],
)
@pytest.mark.ddl
def test_options_without_sense_are_refused(database: Database, options: str, message: str) -> None:
    with pytest.raises(exceptions.FailedPrecondition, match=message):
        ddl(database, f"CREATE SEQUENCE s OPTIONS ({options})")


@pytest.mark.ddl(SEQUENCE)
def test_a_name_is_taken_once(database: Database) -> None:
    with pytest.raises(exceptions.FailedPrecondition, match="Duplicate name"):
        ddl(database, SEQUENCE)
    ddl(database, SEQUENCE.replace("SEQUENCE", "SEQUENCE IF NOT EXISTS"))
    with pytest.raises(exceptions.NotFound, match="Sequence not found: other"):
        ddl(database, "ALTER SEQUENCE other SET OPTIONS (start_with_counter = 5)")
    with pytest.raises(exceptions.NotFound, match="Sequence not found: other"):
        ddl(database, "DROP SEQUENCE other")
    ddl(database, "ALTER SEQUENCE IF EXISTS other SET OPTIONS (start_with_counter = 5)")
    ddl(database, "DROP SEQUENCE IF EXISTS other")


@pytest.mark.ddl
def test_a_sequence_without_a_kind_takes_that_of_the_database(database: Database) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="default_sequence_kind"):
        ddl(database, "CREATE SEQUENCE s")
    default = "default_sequence_kind = 'bit_reversed_positive'"
    ddl(database, f"ALTER DATABASE d SET OPTIONS ({default})", "CREATE SEQUENCE s")
    draw = "SELECT GET_NEXT_SEQUENCE_VALUE(SEQUENCE s)"
    assert dml(database, draw) == [[1 << 62]]


@pytest.mark.ddl(
    "CREATE SCHEMA s1",
    "CREATE SEQUENCE s1.seq OPTIONS (sequence_kind = 'bit_reversed_positive')",
    "CREATE TABLE s1.T (K INT64 DEFAULT (GET_NEXT_SEQUENCE_VALUE(SEQUENCE s1.seq)), V INT64)"
    " PRIMARY KEY (K)",
)
def test_a_sequence_may_stand_in_a_named_schema(database: Database) -> None:
    with database.batch() as batch:
        batch.insert("s1.T", ["V"], [(1,), (2,)])
    assert rows(database, "SELECT GET_INTERNAL_SEQUENCE_STATE(SEQUENCE s1.seq)") == [[3]]
    assert rows(database, "SELECT SCHEMA, NAME FROM INFORMATION_SCHEMA.SEQUENCES") == [
        ["s1", "seq"]
    ]


IDENTITY = """CREATE TABLE T (
  Id INT64 GENERATED BY DEFAULT AS IDENTITY (BIT_REVERSED_POSITIVE START COUNTER WITH 1000),
  V INT64,
) PRIMARY KEY (Id)"""


@pytest.mark.ddl(IDENTITY)
def test_an_identity_column_counts_and_tells_its_state(database: Database) -> None:
    asked = "SELECT GET_TABLE_COLUMN_IDENTITY_STATE('T.Id')"
    assert rows(database, asked) == [[None]]
    inserted = dml(database, "INSERT INTO T (V) VALUES (1), (2) THEN RETURN BIT_REVERSE(Id, TRUE)")
    assert inserted == [[1000], [1001]]
    assert rows(database, asked) == [[1002]]
    assert rows(database, "SELECT NAME FROM INFORMATION_SCHEMA.SEQUENCES") == []
    with pytest.raises(exceptions.InvalidArgument, match="Identity column not found"):
        rows(database, "SELECT GET_TABLE_COLUMN_IDENTITY_STATE('T.V')")
    with pytest.raises(exceptions.InvalidArgument, match="Table not found"):
        rows(database, "SELECT GET_TABLE_COLUMN_IDENTITY_STATE('X.Id')")


@pytest.mark.ddl(IDENTITY)
def test_an_identity_column_is_altered(database: Database) -> None:
    identity = "ALTER TABLE T ALTER COLUMN Id ALTER IDENTITY"
    dml(database, "INSERT INTO T (V) VALUES (1) THEN RETURN Id")
    ddl(database, f"{identity} RESTART COUNTER WITH 5", f"{identity} SET SKIP RANGE 1, {HALF}")
    ((drawn,),) = dml(database, "INSERT INTO T (V) VALUES (1) THEN RETURN BIT_REVERSE(Id, TRUE)")
    assert drawn == 5
    database.reload()
    assert f"SKIP RANGE 1, {HALF} START COUNTER WITH 5" in database.ddl_statements[0]
    ddl(database, f"{identity} SET NO SKIP RANGE")
    columns = (
        "SELECT IS_IDENTITY, IDENTITY_START_WITH_COUNTER, IDENTITY_SKIP_RANGE_MIN"
        " FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME = 'T' ORDER BY ORDINAL_POSITION"
    )
    assert rows(database, columns) == [["YES", "5", None], ["NO", None, None]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("Id INT64", "to drop the identity property"),
        ("Id INT64 DEFAULT (1)", "to a generated or default column"),
        ("V INT64 GENERATED BY DEFAULT AS IDENTITY (BIT_REVERSED_POSITIVE)", "to an identity"),
        ("V ALTER IDENTITY SET NO SKIP RANGE", "not an identity column in table T: V"),
    ],
)
@pytest.mark.ddl(IDENTITY)
def test_a_column_is_an_identity_from_beginning_to_end(
    database: Database, change: str, message: str
) -> None:
    with pytest.raises(exceptions.InvalidArgument, match=message):
        ddl(database, f"ALTER TABLE T ALTER COLUMN {change}")
