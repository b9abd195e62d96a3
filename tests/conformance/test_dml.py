"""DML: what a statement changes, counts, returns and refuses."""

from __future__ import annotations

import pytest
from fixtures.queries import ask
from google.api_core import exceptions
from google.cloud.spanner_v1 import Type, TypeCode, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

pytestmark = pytest.mark.ddl(
    "CREATE TABLE Users (Id INT64 NOT NULL, Name STRING(MAX), Age INT64, Updated TIMESTAMP "
    "OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY (Id)",
    "CREATE TABLE Loose (K INT64, V STRING(MAX)) PRIMARY KEY (K)",
    "CREATE INDEX LooseByV ON Loose (V)",
    "CREATE TABLE Single (A STRING(MAX), B STRING(MAX)) PRIMARY KEY ()",
    "CREATE TABLE Lists (K INT64, L ARRAY<INT64>, J JSON) PRIMARY KEY (K)",
    "CREATE TABLE Numbers (K NUMERIC, V INT64) PRIMARY KEY (K)",
    "CREATE TABLE Made (K INT64, A INT64 NOT NULL, B INT64 AS (A + 1) STORED, "
    "D INT64 NOT NULL DEFAULT (2)) PRIMARY KEY (K)",
)


def run(database: Database, *statements: str) -> list[int]:
    """Executes statements in one transaction; the numbers of rows."""

    def work(transaction: Transaction) -> list[int]:
        return [transaction.execute_update(statement) for statement in statements]

    counts: list[int] = database.run_in_transaction(work)
    return counts


def rows_returned(database: Database, statement: str) -> list[list[object]]:
    """The rows of THEN RETURN."""
    rows: list[list[object]] = database.run_in_transaction(
        lambda transaction: [list(row) for row in transaction.execute_sql(statement)]
    )
    return rows


def users(database: Database) -> list[tuple[object, ...]]:
    return ask(database, "SELECT Id, Name, Age FROM Users ORDER BY Id").rows


FILL = "INSERT INTO Users (Id, Name, Age) VALUES (1, 'Levin', 27), (2, 'Mark', 32), (10, 'D', 31)"


def test_a_statement_sees_what_came_before_it_in_the_transaction(database: Database) -> None:
    counts = run(
        database,
        "INSERT INTO Users (Id, Name, Age) VALUES (1, 'Levin', 27)",
        "UPDATE Users SET Name = 'Mark', Age = Age + 1 WHERE Id = 1",
        "INSERT INTO Users (Id, Name) SELECT Id + 1, CONCAT(Name, '2') FROM Users",
        "DELETE FROM Users WHERE Id = 1",
        "UPDATE Users SET Name = 'nobody' WHERE Id = 1",
    )
    assert counts == [1, 1, 1, 1, 0]
    assert users(database) == [(2, "Mark2", None)]


def test_columns_that_are_not_named_are_null(database: Database) -> None:
    run(database, "INSERT INTO Users (Id) VALUES (10)", "INSERT INTO Loose (V) VALUES ('x')")
    assert users(database) == [(10, None, None)]
    assert ask(database, "SELECT K, V FROM Loose").rows == [(None, "x")]


@pytest.mark.parametrize(
    ("where", "left"), [("TRUE", []), ("FALSE", [1, 2, 10]), ("Id > 1 AND Id < 10", [1, 10])]
)
def test_delete_takes_the_rows_for_which_the_condition_is_true(
    database: Database, where: str, left: list[int]
) -> None:
    run(database, FILL)
    assert run(database, f"DELETE FROM Users WHERE {where}") == [3 - len(left)]
    assert [row[0] for row in users(database)] == left


def test_a_condition_that_is_null_changes_nothing(database: Database) -> None:
    run(database, FILL, "UPDATE Users SET Name = NULL WHERE Id = 1")
    assert run(database, "UPDATE Users SET Age = 0 WHERE Name = CAST(NULL AS STRING)") == [0]
    assert run(database, "DELETE FROM Users WHERE NOT (Name = 'Levin')") == [2]
    assert users(database) == [(1, None, 27)]


def test_a_table_without_a_key_holds_one_row(database: Database) -> None:
    assert run(database, "UPDATE Single SET A = 'x' WHERE TRUE") == [0]
    run(database, "INSERT INTO Single (A, B) VALUES ('a', 'b')")
    with pytest.raises(exceptions.AlreadyExists):
        run(database, "INSERT INTO Single (A, B) VALUES ('c', 'd')")
    assert run(database, "UPDATE Single SET A = 'x', B = A WHERE TRUE") == [1]
    assert ask(database, "SELECT A, B FROM Single").rows == [("x", "a")]
    assert run(database, "DELETE FROM Single WHERE TRUE") == [1]


def test_arrays_and_json_are_written(database: Database) -> None:
    run(
        database,
        'INSERT INTO Lists (K, L, J) VALUES (1, [1, NULL], JSON \'{"a": "s"}\'), (2, [], NULL), '
        "(3, NULL, JSON 'null')",
        "UPDATE Lists SET L = ARRAY_CONCAT(L, [7]), J = JSON_SET(J, '$.b', 2) WHERE K = 1",
    )
    rows = ask(database, "SELECT K, L, TO_JSON_STRING(J), J IS NULL FROM Lists ORDER BY K").rows
    assert rows == [
        (1, [1, None, 7], '{"a":"s","b":2}', False),
        (2, [], "null", True),
        (3, None, "null", False),
    ]


def test_rows_come_from_an_array_of_structs(database: Database) -> None:
    struct = Type(
        code=TypeCode.ARRAY,
        array_element_type=param_types.Struct(
            [param_types.StructField("Id", param_types.INT64),
             param_types.StructField("Name", param_types.STRING)]
        ),
    )  # fmt: skip
    sql = "INSERT INTO Users (Id, Name) SELECT * FROM UNNEST(@rows)"
    count = database.run_in_transaction(
        lambda transaction: transaction.execute_update(
            sql, {"rows": [(1, "abc"), (2, None)]}, {"rows": struct}
        )
    )
    assert count == 2
    assert users(database) == [(1, "abc", None), (2, None, None)]


def test_numeric_keys_compare_by_value(database: Database) -> None:
    run(
        database,
        "INSERT INTO Numbers (K, V) VALUES (NUMERIC '-12.3', -1), (0, 0), (NUMERIC '12.3', 1)",
        "UPDATE Numbers SET V = 2 WHERE K = 12.3",
        "DELETE FROM Numbers n WHERE n.K < 0",
    )
    assert ask(database, "SELECT V FROM Numbers ORDER BY K").rows == [(0,), (2,)]


def test_hints_name_an_index(database: Database) -> None:
    run(database, "INSERT INTO Loose (K, V) VALUES (1, 'Peter'), (2, 'James')")
    hinted = "Loose@{FORCE_INDEX=LooseByV}"
    run(database, f"UPDATE {hinted} n SET n.V = 'Smith' WHERE n.V = 'Peter'")
    run(database, f"DELETE FROM {hinted} WHERE V = 'James'")
    assert ask(database, "SELECT K, V FROM Loose").rows == [(1, "Smith")]
    with pytest.raises(exceptions.InvalidArgument):
        run(database, "DELETE FROM Loose@{FORCE_INDEX=Nope} WHERE TRUE")


def test_set_takes_the_alias_of_its_table_only(database: Database) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="Unrecognized name: other"):
        run(database, "UPDATE Loose n SET other.V = 'Smith' WHERE TRUE")


def test_then_return_gives_the_rows_that_changed(database: Database) -> None:
    insert = "INSERT INTO Users (Id, Name, Age) VALUES (1, 'Levin', 27) THEN RETURN Age + 1 AS a, *"
    assert rows_returned(database, insert.replace(", *", ", Name")) == [[28, "Levin"]]
    update = "UPDATE Users SET Age = Age + 1 WHERE Id = 1 THEN RETURN Age, Name"
    assert rows_returned(database, update) == [[28, "Levin"]]
    delete = "DELETE FROM Users WHERE Id = 1 THEN RETURN Name, Age"
    assert rows_returned(database, delete) == [["Levin", 28]]
    insertion = "INSERT INTO Made (K, A) VALUES (1, 1) THEN RETURN *"
    assert rows_returned(database, insertion) == [[1, 1, 2, 2]]
    assert rows_returned(
        database, "UPDATE Made SET A = 3, D = DEFAULT WHERE K = 1 THEN RETURN B, D"
    ) == [[4, 2]]


def test_insert_or_update_and_or_ignore(database: Database) -> None:
    run(database, FILL)
    rows = "INTO Users (Id, Name, Age) VALUES (1, 'Bob', 1), (3, 'John', 30)"
    assert run(database, f"INSERT OR IGNORE {rows}") == [1]
    assert users(database)[0] == (1, "Levin", 27)
    assert run(database, f"INSERT OR UPDATE {rows}") == [2]
    assert users(database)[0] == (1, "Bob", 1)


def test_a_pending_commit_timestamp_is_written_as_the_commit_s(database: Database) -> None:
    def work(transaction: Transaction) -> Transaction:
        transaction.execute_update(
            "INSERT INTO Users (Id, Updated) VALUES (1, PENDING_COMMIT_TIMESTAMP())"
        )
        return transaction

    committed = database.run_in_transaction(work).committed
    assert ask(database, "SELECT Updated FROM Users").rows == [(committed,)]
    for wrong in (
        "INSERT INTO Users (Id, Name) VALUES (2, CAST(PENDING_COMMIT_TIMESTAMP() AS STRING))",
        "UPDATE Users SET Updated = TIMESTAMP_ADD(PENDING_COMMIT_TIMESTAMP(), INTERVAL 1 DAY) "
        "WHERE TRUE",
    ):
        with pytest.raises(exceptions.InvalidArgument, match="PENDING_COMMIT_TIMESTAMP"):
            run(database, wrong)


REFUSED: list[tuple[str, type[Exception]]] = [
    ("INSERT INTO Users (Id, Name) VALUES (1, 'a'), (1, 'b')", exceptions.AlreadyExists),
    ("INSERT INTO Users (Id, Id) VALUES (1, 1)", exceptions.InvalidArgument),
    ("INSERT INTO Users (Id) VALUES (1, 2)", exceptions.InvalidArgument),
    ("INSERT INTO Users (Nope) VALUES (1)", exceptions.InvalidArgument),
    ("INSERT INTO Nope (Id) VALUES (1)", exceptions.InvalidArgument),
    ("INSERT INTO Users (Id) VALUES ('a')", exceptions.InvalidArgument),
    ("INSERT INTO Users (Name) VALUES ('a')", exceptions.FailedPrecondition),
    ("INSERT INTO Users (Id) VALUES (NULL)", exceptions.FailedPrecondition),
    ("INSERT INTO Made (K, A, B) VALUES (1, 1, 1)", exceptions.InvalidArgument),
    ("UPDATE Users SET Name = 'x'", exceptions.InvalidArgument),
    ("UPDATE Users SET Id = 2 WHERE TRUE", exceptions.InvalidArgument),
    ("UPDATE Users SET Age = 1, Age = 2 WHERE TRUE", exceptions.InvalidArgument),
    ("UPDATE Made SET B = 2 WHERE TRUE", exceptions.InvalidArgument),
    ("UPDATE Made SET A = NULL WHERE TRUE", exceptions.FailedPrecondition),
    ("UPDATE Users SET Age = Age / 0 WHERE TRUE", exceptions.InvalidArgument),
    ("UPDATE Users SET Age = DIV(Age, 0) WHERE TRUE", exceptions.OutOfRange),
    ("UPDATE Users SET Name = Nope WHERE TRUE", exceptions.InvalidArgument),
    ("DELETE FROM Users", exceptions.InvalidArgument),
    ("DELETE FROM Users WHERE Age", exceptions.InvalidArgument),
    ("MERGE INTO Users USING Loose ON TRUE", exceptions.InvalidArgument),
]


@pytest.mark.parametrize(("statement", "error"), REFUSED, ids=[r[0] for r in REFUSED])
def test_a_wrong_statement_is_refused_and_changes_nothing(
    database: Database, statement: str, error: type[Exception]
) -> None:
    run(database, FILL.replace("1,", "5,", 1), "INSERT INTO Made (K, A) VALUES (1, 1)")
    before = users(database)
    with pytest.raises(error):
        run(database, statement)
    assert users(database) == before


def test_dml_needs_a_read_write_transaction(database: Database) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        ask(database, "INSERT INTO Users (Id) VALUES (1)")


CONFLICTS: list[tuple[str, list[list[object]]]] = [
    ("ON CONFLICT (Id) DO NOTHING", [[2, "Eva", 5, "INSERT"]]),
    ("ON CONFLICT DO NOTHING", [[2, "Eva", 5, "INSERT"]]),
    (
        "ON CONFLICT (Id) DO UPDATE SET Age = Users.Age + excluded.Age",
        [[1, "Levin", 32, "UPDATE"], [2, "Eva", 5, "INSERT"]],
    ),
    (
        "ON CONFLICT (Id) DO UPDATE SET Name = excluded.Name WHERE Users.Age > 100",
        [[2, "Eva", 5, "INSERT"]],
    ),
]


@pytest.mark.parametrize(("clause", "returned"), CONFLICTS)
def test_on_conflict_leaves_or_updates_the_row_that_is_there(
    database: Database, clause: str, returned: list[list[object]]
) -> None:
    run(database, "INSERT INTO Users (Id, Name, Age) VALUES (1, 'Levin', 27)")
    insert = (
        f"INSERT INTO Users (Id, Name, Age) VALUES (1, 'Eva', 5), (2, 'Eva', 5) {clause}"
        " THEN RETURN WITH ACTION Id, Name, Age"
    )
    assert rows_returned(database, insert) == returned


def test_with_action_says_what_was_done_with_each_row(database: Database) -> None:
    run(database, "INSERT INTO Users (Id, Name) VALUES (1, 'Levin')")
    upsert = "INSERT UPDATE Users (Id, Name) VALUES (1, 'a'), (2, 'b') THEN RETURN WITH ACTION Id"
    assert rows_returned(database, upsert) == [[1, "UPDATE"], [2, "INSERT"]]
    ignore = "INSERT IGNORE Users (Id) VALUES (2), (3) THEN RETURN WITH ACTION AS done Id"
    assert rows_returned(database, ignore) == [[3, "INSERT"]]
    delete = "DELETE FROM Users WHERE Id = 3 THEN RETURN WITH ACTION Id"
    assert rows_returned(database, delete) == [[3, "DELETE"]]


def test_then_return_may_query_other_rows(database: Database) -> None:
    run(database, "INSERT INTO Users (Id, Age) VALUES (1, 27), (2, 5)")
    run(database, "INSERT INTO Numbers (K, V) VALUES (1, 27), (2, 28)")
    other = "(SELECT o.Age FROM Users AS o WHERE o.Id = u.Id + 1)"
    number = "(SELECT K FROM Numbers AS Age WHERE V = u.Age)"
    update = f"UPDATE Users AS u SET Age = Age + 1 WHERE Id = 1 THEN RETURN Id, {other}, {number}"
    assert rows_returned(database, update) == [[1, 5, 2]]
    insert = (
        "INSERT INTO Users (Id, Age) VALUES (3, 27) THEN RETURN (SELECT MAX(K) FROM Numbers"
        + (" WHERE V = Users.Age)")
    )
    assert rows_returned(database, insert) == [[1]]
    delete = f"DELETE FROM Users AS u WHERE Id = 1 THEN RETURN Id, {number}"
    assert rows_returned(database, delete) == [[1, 2]]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT OR IGNORE INTO Users (Id) VALUES (1) ON CONFLICT DO NOTHING",
        "INSERT INTO Users (Id) VALUES (1) ON CONFLICT DO UPDATE SET Age = 1",
        "INSERT INTO Users (Id) VALUES (1) ON CONFLICT (Age) DO NOTHING",
        "INSERT INTO Users (Id) VALUES (1) ON CONFLICT (Id) DO UPDATE SET Id = 2",
        "INSERT INTO Users (Id) VALUES (1) ON CONFLICT ON UNIQUE CONSTRAINT Nope DO NOTHING",
        "INSERT INTO Users (Id) VALUES (1) ON CONFLICT (Id) DO SOMETHING",
    ],
)
def test_wrong_conflict_clauses_are_refused(database: Database, statement: str) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        run(database, statement)
