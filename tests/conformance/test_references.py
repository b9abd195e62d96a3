"""Foreign keys and interleaved tables: what may be written, what a delete takes along."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1 import KeyRange, KeySet
from google.cloud.spanner_v1.database import Database
from talk import Change, Transaction, change, commit, ddl, delete, dml, insert, read, rows

FOREIGN = (
    "CREATE TABLE Parent (P INT64) PRIMARY KEY (P)",
    "CREATE TABLE Referenced (P INT64, A INT64, B INT64) PRIMARY KEY (P, A),"
    " INTERLEAVE IN PARENT Parent ON DELETE CASCADE",
    "CREATE TABLE Referencing (X INT64, A INT64, B INT64,"
    " CONSTRAINT fk FOREIGN KEY (B, A) REFERENCES Referenced (B, A)) PRIMARY KEY (X)",
)
BASE = (insert("Parent", "P", (1,)), insert("Referenced", "P A B", (1, 2, 3)))
broken = pytest.raises(exceptions.FailedPrecondition, match="Foreign key")


@pytest.mark.parametrize(
    "changes",
    [
        (insert("Referencing", "X A B", (1, 2, 3)),),
        (insert("Referencing", "X A B", (1, 9, 9)), insert("Referenced", "P A B", (1, 9, 9))),
        (insert("Referencing", "X A B", (1, 9, 9)), delete("Referencing", [1])),
        (insert("Referencing", "X A B", (1, None, 3), (2, 9, None), (3, None, None)),),
        (delete("Referenced", [1, 2]),),
        (delete("Referenced", [9, 9]),),
        (delete("Referenced", [1, 2]), insert("Referenced", "P A B", (1, 2, 3))),
    ],
)
@pytest.mark.ddl(*FOREIGN)
def test_references_that_hold_at_the_end_are_fine(
    database: Database, changes: tuple[Change, ...]
) -> None:
    commit(database, *BASE)
    commit(database, *changes)


@pytest.mark.parametrize(
    "changes",
    [
        (insert("Referencing", "X A B", (2, 9, 9)),),
        (insert("Referencing", "X A B", (2, 3, 2)),),
        (change("update", "Referencing", "X A", (1, 9)),),
        (delete("Referenced", [1, 2]),),
        (delete("Parent", [1]),),
        (change("update", "Referenced", "P A B", (1, 2, 9)),),
        (delete("Referenced", [1, 2]), insert("Referencing", "X A B", (2, 2, 3))),
    ],
)
@pytest.mark.ddl(*FOREIGN)
def test_references_that_lead_nowhere_are_refused(
    database: Database, changes: tuple[Change, ...]
) -> None:
    commit(database, *BASE, insert("Referencing", "X A B", (1, 2, 3)))
    with broken:
        commit(database, *changes)
    assert read(database, "Referencing", "X A B") == [[1, 2, 3]]
    assert read(database, "Referenced", "P A B") == [[1, 2, 3]]


@pytest.mark.ddl(*FOREIGN)
def test_a_reference_may_be_updated_nulled_and_deleted(database: Database) -> None:
    commit(database, *BASE, insert("Referenced", "P A B", (1, 5, 6)))
    commit(database, insert("Referencing", "X A B", (1, 2, 3)))
    commit(database, change("update", "Referencing", "X A B", (1, 5, 6)))
    commit(database, delete("Referenced", [1, 2]))
    commit(database, change("update", "Referencing", "X A B", (1, None, 6)))
    commit(database, delete("Parent", [1]))
    assert read(database, "Referencing", "X A B") == [[1, None, 6]]


@pytest.mark.ddl(*FOREIGN)
def test_a_referenced_key_may_be_exchanged_within_a_transaction(database: Database) -> None:
    commit(database, *BASE, insert("Referencing", "X A B", (1, 2, 3)))
    commit(
        database,
        insert("Parent", "P", (7,)),
        delete("Referenced", [1, 2]),
        insert("Referenced", "P A B", (7, 2, 3)),
    )
    assert read(database, "Referenced", "P A B") == [[7, 2, 3]]


@pytest.mark.ddl(*FOREIGN)
def test_foreign_keys_judge_dml(database: Database) -> None:
    commit(database, *BASE)
    dml(database, "INSERT INTO Referencing (X, A, B) VALUES (1, 2, 3)")
    for sql in (
        "INSERT INTO Referencing (X, A, B) VALUES (2, 9, 9)",
        "UPDATE Referencing SET A = 9 WHERE X = 1",
        "DELETE FROM Referenced WHERE A = 2",
    ):
        with broken:
            dml(database, sql)
    dml(
        database,
        "INSERT INTO Referenced (P, A, B) VALUES (1, 9, 9)",
        "UPDATE Referencing SET A = 9, B = 9 WHERE X = 1",
        "DELETE FROM Referenced WHERE A = 2",
    )
    assert rows(database, "SELECT A FROM Referenced") == [[9]]


@pytest.mark.parametrize(
    ("existing", "constraint", "fits"),
    [
        ((1, 2, 3), "FOREIGN KEY (B, A) REFERENCES Referenced (B, A)", True),
        ((1, 2, 3), "FOREIGN KEY (A) REFERENCES Referenced (A)", True),
        ((1, None, 9), "FOREIGN KEY (A, B) REFERENCES Referenced (A, B)", True),
        ((1, 3, 2), "FOREIGN KEY (A, B) REFERENCES Referenced (A, B)", False),
        ((1, 3, 2), "FOREIGN KEY (A, B) REFERENCES Referenced (B, A)", True),
        ((1, 9, 9), "FOREIGN KEY (A) REFERENCES Referenced (A)", False),
        ((1, 9, 9), "FOREIGN KEY (A) REFERENCES Referenced (A) NOT ENFORCED", True),
    ],
)
@pytest.mark.ddl(
    *FOREIGN[:2], "CREATE TABLE Referencing (X INT64, A INT64, B INT64) PRIMARY KEY (X)"
)
def test_a_foreign_key_that_is_added_judges_the_rows_that_are_there(
    database: Database, existing: tuple[object, ...], constraint: str, fits: bool
) -> None:
    commit(database, *BASE, insert("Referencing", "X A B", existing))
    statement = f"ALTER TABLE Referencing ADD CONSTRAINT added {constraint}"
    if fits:
        ddl(database, statement)
        ddl(database, "ALTER TABLE Referencing DROP CONSTRAINT added")
    else:
        with pytest.raises(exceptions.FailedPrecondition):
            ddl(database, statement)


@pytest.mark.ddl(*FOREIGN[:2])
def test_what_is_referenced_must_be_unique(database: Database) -> None:
    commit(database, *BASE, insert("Parent", "P", (2,)), insert("Referenced", "P A B", (2, 2, 3)))
    table = "CREATE TABLE R (X INT64, A INT64, FOREIGN KEY (A) REFERENCES Referenced (A))"
    with pytest.raises(exceptions.FailedPrecondition):
        ddl(database, f"{table} PRIMARY KEY (X)")


@pytest.mark.ddl(
    "CREATE TABLE Customers (Id INT64, Name STRING(9)) PRIMARY KEY (Id)",
    """CREATE TABLE Carts (Id INT64, Customer INT64, Name STRING(9),
      CONSTRAINT fk FOREIGN KEY (Customer) REFERENCES Customers (Id) ON DELETE CASCADE)
      PRIMARY KEY (Id)""",
    "CREATE TABLE Items (Id INT64, N INT64) PRIMARY KEY (Id, N),"
    " INTERLEAVE IN PARENT Carts ON DELETE CASCADE",
    """CREATE TABLE Notes (Id INT64, Cart INT64,
      CONSTRAINT fk2 FOREIGN KEY (Cart) REFERENCES Carts (Id) ON DELETE CASCADE)
      PRIMARY KEY (Id)""",
)
def test_a_delete_takes_along_what_refers_with_cascade(database: Database) -> None:
    commit(
        database,
        insert("Customers", "Id Name", (1, "a"), (2, "b")),
        insert("Carts", "Id Customer", (1, 1), (2, 1), (3, 2), (4, None)),
        insert("Items", "Id N", (1, 1), (1, 2), (3, 1)),
        insert("Notes", "Id Cart", (1, 1), (2, 3), (3, 4)),
    )
    with broken:
        commit(database, insert("Carts", "Id Customer", (9, 9)))
    commit(database, delete("Customers", [1]))
    assert read(database, "Carts", "Id") == [[3], [4]]
    assert read(database, "Items", "Id N") == [[3, 1]]
    assert read(database, "Notes", "Id") == [[2], [3]]
    dml(database, "DELETE FROM Customers WHERE Id = 2")
    assert read(database, "Carts", "Id") == [[4]]
    rule = "SELECT DELETE_RULE FROM INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS"
    assert rows(database, rule) == [["CASCADE"], ["CASCADE"]]


FAMILY = (
    "CREATE TABLE Users (U INT64, Name STRING(MAX)) PRIMARY KEY (U)",
    "CREATE TABLE Threads (U INT64, T INT64, S BOOL) PRIMARY KEY (U, T),"
    " INTERLEAVE IN PARENT Users ON DELETE CASCADE",
    "CREATE TABLE Messages (U INT64, T INT64, M INT64) PRIMARY KEY (U, T, M),"
    " INTERLEAVE IN PARENT Threads ON DELETE CASCADE",
    "CREATE TABLE Snoozes (U INT64, T INT64, Z INT64) PRIMARY KEY (U, T, Z),"
    " INTERLEAVE IN PARENT Threads ON DELETE NO ACTION",
)
PEOPLE = (
    insert("Users", "U", (1,), (2,), (3,)),
    insert("Threads", "U T", (1, 1), (1, 2), (2, 1), (3, 1)),
    insert("Messages", "U T M", (1, 1, 1), (1, 2, 1), (2, 1, 1), (3, 1, 1)),
)
SNOOZES = insert("Snoozes", "U T Z", (1, 1, 1))


@pytest.mark.ddl(*FAMILY)
def test_a_child_needs_its_parent(database: Database) -> None:
    with pytest.raises(exceptions.NotFound):
        commit(database, insert("Threads", "U T", (1, 1)))
    commit(database, insert("Users", "U", (1,)), insert("Threads", "U T", (1, 1)))
    commit(database, insert("Threads", "U T", (1, 2)))
    with pytest.raises((exceptions.NotFound, exceptions.InvalidArgument)):
        commit(database, insert("Threads", "U T", (9, 1)), insert("Users", "U", (9,)))
    with pytest.raises(exceptions.NotFound):
        dml(database, "INSERT INTO Messages (U, T, M) VALUES (1, 9, 1)")


@pytest.mark.ddl(*FAMILY)
def test_a_delete_cascades_through_the_generations(database: Database) -> None:
    commit(database, *PEOPLE)
    for _ in range(2):
        commit(database, delete("Users", [1]))
    assert read(database, "Threads", "U T") == [[2, 1], [3, 1]]
    ranged = KeyRange(start_open=[1], end_closed=[2])
    commit(database, delete("Threads", KeySet(ranges=[ranged])))
    assert read(database, "Messages", "U T M") == [[3, 1, 1]]
    dml(database, "DELETE FROM Users WHERE U = 3")
    assert read(database, "Messages", "U T M") == []


@pytest.mark.parametrize(
    "changes",
    [
        (delete("Threads", [1, 1]),),
        (delete("Users", [1]),),
        (delete("Threads", [1, 1]), delete("Snoozes", [1, 1, 1])),
        (change("replace", "Threads", "U T S", (1, 1, False)),),
    ],
)
@pytest.mark.ddl(*FAMILY)
def test_a_child_without_cascade_keeps_its_parent(
    database: Database, changes: tuple[Change, ...]
) -> None:
    commit(database, *PEOPLE, SNOOZES)
    with pytest.raises(exceptions.FailedPrecondition):
        commit(database, *changes)
    assert [1, 1] in read(database, "Threads", "U T")
    commit(database, delete("Snoozes", [1, 1, 1]), *changes[:1])


@pytest.mark.ddl(*FAMILY)
def test_what_a_transaction_inserted_it_may_delete_child_first(database: Database) -> None:
    insertions = (insert("Users", "U", (1,)), insert("Threads", "U T", (1, 1)), SNOOZES)
    with pytest.raises(exceptions.FailedPrecondition):
        commit(database, *insertions, delete("Threads", [1, 1]))
    commit(database, *insertions, delete("Snoozes", [1, 1, 1]), delete("Threads", [1, 1]))
    assert read(database, "Threads", "U T") == []


@pytest.mark.ddl(*FAMILY)
def test_a_replace_is_a_delete_for_the_children(database: Database) -> None:
    commit(database, *PEOPLE)
    commit(database, change("replace", "Threads", "U T S", (1, 1, False)))
    assert read(database, "Messages", "U T M") == [[1, 2, 1], [2, 1, 1], [3, 1, 1]]


LOOSE = (
    FAMILY[0],
    "CREATE TABLE Threads (U INT64, T INT64) PRIMARY KEY (U, T), INTERLEAVE IN Users",
    "CREATE TABLE Snoozes (U INT64, T INT64, Z INT64) PRIMARY KEY (U, T, Z),"
    " INTERLEAVE IN PARENT Threads ON DELETE NO ACTION",
)


@pytest.mark.ddl(*LOOSE)
def test_interleaved_in_without_parent_binds_nothing(database: Database) -> None:
    commit(database, insert("Users", "U", (1,)), insert("Threads", "U T", (1, 1), (2, 1)))
    commit(database, delete("Users", [1]), insert("Snoozes", "U T Z", (2, 1, 1)))
    assert read(database, "Threads", "U T") == [[1, 1], [2, 1]]
    with pytest.raises(exceptions.NotFound):
        commit(database, insert("Snoozes", "U T Z", (3, 1, 1)))
    with pytest.raises(exceptions.FailedPrecondition):
        commit(database, delete("Threads", [2, 1]))


@pytest.mark.ddl(*LOOSE)
def test_a_table_is_bound_to_its_parent_once_every_row_has_one(database: Database) -> None:
    commit(database, insert("Threads", "U T", (1, 1)))
    bind = "ALTER TABLE Threads SET INTERLEAVE IN PARENT Users"
    with pytest.raises(exceptions.MethodNotImplemented, match="ON DELETE NO ACTION first"):
        ddl(database, f"{bind} ON DELETE CASCADE")
    with pytest.raises(exceptions.FailedPrecondition, match="Parent-child row existence"):
        ddl(database, bind)
    commit(database, insert("Users", "U", (1,)))
    ddl(database, bind)
    ddl(database, f"{bind} ON DELETE CASCADE")
    with pytest.raises(exceptions.NotFound):
        commit(database, insert("Threads", "U T", (2, 1)))
    ddl(database, "ALTER TABLE Threads SET INTERLEAVE IN Users")
    commit(database, insert("Threads", "U T", (2, 1)), delete("Users", [1]))
    assert read(database, "Threads", "U T") == [[1, 1], [2, 1]]


@pytest.mark.ddl(*FAMILY)
def test_a_cascade_is_seen_by_the_transaction_that_made_it(database: Database) -> None:
    commit(database, *PEOPLE)
    transaction = Transaction(database)
    transaction.sql("DELETE FROM Users WHERE U = 1")
    assert transaction.sql("SELECT COUNT(*) FROM Messages") == [["2"]]
    transaction.rollback()
    assert len(read(database, "Messages", "U T M")) == 4
