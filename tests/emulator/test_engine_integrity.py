"""Constraints between rows: interleaving, foreign keys, unique indexes, checks."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from fixtures.engine_world import (
    INSERT,
    REPLACE,
    UPDATE,
    UPSERT,
    commit_dml,
    delete,
    exact_bound,
    open_database,
    query,
    write,
)

from emulator.engine.database import Database
from emulator.errors import SpannerError
from emulator.values.requests import KeyDelete, KeyRange, KeySet, Mutation, RowWrite

PARENT = "CREATE TABLE P (A INT64, V STRING(9)) PRIMARY KEY (A)"
CHILD = "CREATE TABLE C (A INT64, B INT64) PRIMARY KEY (A, B), INTERLEAVE IN PARENT P"
GRANDCHILD = (
    "CREATE TABLE G (A INT64, B INT64, D INT64) PRIMARY KEY (A, B, D), "
    "INTERLEAVE IN PARENT C ON DELETE CASCADE"
)
ORDERS = (
    "CREATE TABLE Customers (Id INT64, Code STRING(9)) PRIMARY KEY (Id)",
    "CREATE TABLE Orders (Id INT64, Customer INT64, "
    "CONSTRAINT FK_Customer FOREIGN KEY (Customer) REFERENCES Customers (Id)) PRIMARY KEY (Id)",
)


@pytest.fixture
def orders() -> Iterator[Database]:
    with open_database(*ORDERS) as database:
        write(database, INSERT, "Customers", "Id", (1,), (2,))
        write(database, INSERT, "Orders", "Id Customer", (10, 1), (11, None))
        yield database


def check_refusal(code: grpc.StatusCode, error: pytest.ExceptionInfo[SpannerError]) -> None:
    assert error.value.code is code


def test_a_child_needs_its_parent() -> None:
    with open_database(PARENT, CHILD) as database:
        with pytest.raises(SpannerError, match=r"Parent row for row \[1,1\] in table C") as error:
            write(database, INSERT, "C", "A B", (1, 1))
        check_refusal(grpc.StatusCode.NOT_FOUND, error)
        database.write(
            [RowWrite(INSERT, "P", ("A",), [(1,)]), RowWrite(INSERT, "C", ("A", "B"), [(1, 1)])]
        )
        with pytest.raises(SpannerError, match=r"Parent row for row \[2,1\] in table C"):
            commit_dml(database, "INSERT INTO C (A, B) VALUES (2, 1)")
        with pytest.raises(SpannerError, match=r"Found child row \[1,1\] in table C") as error:
            delete(database, "P", (1,))
        check_refusal(grpc.StatusCode.FAILED_PRECONDITION, error)
        database.write(
            [KeyDelete("C", KeySet(keys=((1, 1),))), KeyDelete("P", KeySet(keys=((1,),)))]
        )
        assert query(database, "SELECT COUNT(*) FROM P") == [(0,)]


def test_a_cascade_deletes_all_descendants_and_keeps_their_history() -> None:
    with open_database(PARENT, CHILD + " ON DELETE CASCADE", GRANDCHILD) as database:
        write(database, INSERT, "P", "A", (1,), (2,))
        write(database, INSERT, "C", "A B", (1, 1), (2, 1))
        before = write(database, INSERT, "G", "A B D", (1, 1, 1), (1, 1, 2), (2, 1, 1))
        commit_dml(database, "DELETE FROM P WHERE A = 1")
        assert query(database, "SELECT A, B, D FROM G") == [(2, 1, 1)]
        assert query(database, "SELECT A FROM C") == [(2,)]
        then = exact_bound(before.commit_timestamp_micros)
        assert query(database, "SELECT COUNT(*) FROM G", then) == [(3,)]
        write(database, REPLACE, "P", "A", (2,))
        assert query(database, "SELECT COUNT(*) FROM G") == [(0,)]


def test_interleave_without_parent_asks_for_nothing() -> None:
    with open_database(PARENT, CHILD.replace("IN PARENT", "IN")) as database:
        write(database, INSERT, "C", "A B", (1, 1))
        with pytest.raises(SpannerError, match="Parent-child row existence"):
            database.update_ddl(["ALTER TABLE C SET INTERLEAVE IN PARENT P"])
        write(database, INSERT, "P", "A", (1,))
        database.update_ddl(["ALTER TABLE C SET INTERLEAVE IN PARENT P"])
        with pytest.raises(SpannerError):
            write(database, INSERT, "C", "A B", (2, 1))


def test_a_reference_must_lead_somewhere(orders: Database) -> None:
    for attempt in (
        lambda: write(orders, INSERT, "Orders", "Id Customer", (12, 9)),
        lambda: write(orders, UPDATE, "Orders", "Id Customer", (11, 9)),
        lambda: commit_dml(orders, "UPDATE Orders SET Customer = 9 WHERE Id = 10"),
    ):
        with pytest.raises(SpannerError, match=r"FK_Customer.*referenced values") as error:
            attempt()
        check_refusal(grpc.StatusCode.FAILED_PRECONDITION, error)
    rows = query(orders, "SELECT Id, Customer FROM Orders ORDER BY Id")
    assert rows == [(10, 1), (11, None)]


def test_a_referenced_row_stays(orders: Database) -> None:
    with pytest.raises(SpannerError, match="when deleting or updating referenced row") as error:
        delete(orders, "Customers", (1,))
    check_refusal(grpc.StatusCode.FAILED_PRECONDITION, error)
    delete(orders, "Customers", (2,))


def test_foreign_keys_are_judged_at_the_end_of_a_commit_and_of_a_statement(
    orders: Database,
) -> None:
    orders.write(
        [
            RowWrite(INSERT, "Orders", ("Id", "Customer"), [(12, 3)]),
            RowWrite(INSERT, "Customers", ("Id",), [(3,)]),
        ]
    )
    referring = "INSERT INTO Orders (Id, Customer) VALUES (13, 4)"
    referenced = "INSERT INTO Customers (Id) VALUES (4)"
    with pytest.raises(SpannerError, match=r"referenced values in Customers\(Id\)") as error:
        commit_dml(orders, referring, referenced)
    check_refusal(grpc.StatusCode.FAILED_PRECONDITION, error)
    commit_dml(orders, referenced, referring)
    orders.write(
        [KeyDelete("Customers", KeySet(keys=((1,),))), KeyDelete("Orders", KeySet(keys=((10,),)))]
    )
    assert query(orders, "SELECT Id FROM Customers ORDER BY Id") == [(2,), (3,), (4,)]


def test_a_foreign_key_may_cascade() -> None:
    cascading = ORDERS[1].replace("(Id))", "(Id) ON DELETE CASCADE)")
    with open_database(ORDERS[0], cascading) as database:
        write(database, INSERT, "Customers", "Id", (1,), (2,))
        before = write(database, INSERT, "Orders", "Id Customer", (10, 1), (11, 2))
        delete(database, "Customers", (1,))
        assert query(database, "SELECT Id FROM Orders") == [(11,)]
        then = exact_bound(before.commit_timestamp_micros)
        assert query(database, "SELECT COUNT(*) FROM Orders", then) == [(2,)]


CARTS = (
    "CREATE TABLE Customers (Id INT64, Name STRING(9)) PRIMARY KEY (Id)",
    "CREATE TABLE Carts (Id INT64, Customer INT64, CONSTRAINT FK FOREIGN KEY (Customer)"
    " REFERENCES Customers (Id) ON DELETE CASCADE) PRIMARY KEY (Id)",
)
ONE = KeySet(keys=((1,),))
UP_TO_FIVE = KeySet(ranges=(KeyRange((), (5,), start_closed=True, end_closed=True),))
CUSTOMER = RowWrite(INSERT, "Customers", ("Id",), [(1,)])
CART = RowWrite(INSERT, "Carts", ("Id", "Customer"), [(7, 9)])
WRITTEN_AND_DELETED = "Cannot write a value for the referenced column `Customers.Id` and delete it"
NOT_THERE = r"`FK` is violated on table `Carts`. Cannot find referenced values in Customers\(Id\)"


@pytest.mark.parametrize(
    ("mutations", "message"),
    [
        ([CUSTOMER, KeyDelete("Customers", ONE)], WRITTEN_AND_DELETED),
        ([KeyDelete("Customers", UP_TO_FIVE), CUSTOMER], WRITTEN_AND_DELETED),
        ([KeyDelete("Customers", KeySet(all=True)), CUSTOMER], WRITTEN_AND_DELETED),
        ([RowWrite(REPLACE, "Customers", ("Id",), [(9,)])], WRITTEN_AND_DELETED),
        ([CART, KeyDelete("Customers", KeySet(keys=((9,),)))], NOT_THERE),
        ([KeyDelete("Customers", KeySet(keys=((9,),))), CART], NOT_THERE),
    ],
)
def test_a_commit_does_not_write_and_delete_a_row_whose_delete_cascades(
    mutations: list[Mutation], message: str
) -> None:
    with open_database(*CARTS) as database:
        write(database, INSERT, "Customers", "Id", (9,))
        with pytest.raises(SpannerError, match=message) as error:
            database.write(mutations)
        check_refusal(grpc.StatusCode.FAILED_PRECONDITION, error)
        assert query(database, "SELECT Id FROM Customers") == [(9,)]


def test_other_writes_and_deletes_of_rows_whose_delete_cascades_are_allowed() -> None:
    with open_database(*CARTS) as database:
        write(database, INSERT, "Customers", "Id", (9,))
        database.write([CART, CUSTOMER, KeyDelete("Customers", KeySet(keys=((8,),)))])
        database.write(
            [
                RowWrite(UPDATE, "Customers", ("Id", "Name"), [(9, "x")]),
                KeyDelete("Customers", ONE),
            ]
        )
        commit_dml(
            database, "INSERT INTO Customers (Id) VALUES (2)", "DELETE FROM Customers WHERE Id = 2"
        )
        assert query(database, "SELECT Id FROM Customers") == [(9,)]
        assert query(database, "SELECT Id FROM Carts") == [(7,)]


def test_a_foreign_key_is_added_only_when_it_holds(orders: Database) -> None:
    orders.update_ddl(["ALTER TABLE Orders DROP CONSTRAINT FK_Customer"])
    write(orders, INSERT, "Orders", "Id Customer", (12, 9))
    add = "ALTER TABLE Orders ADD CONSTRAINT FK2 FOREIGN KEY (Customer) REFERENCES Customers (Id)"
    with pytest.raises(SpannerError, match="no referenced key") as error:
        orders.update_ddl([add])
    check_refusal(grpc.StatusCode.FAILED_PRECONDITION, error)
    delete(orders, "Orders", (12,))
    orders.update_ddl([add])
    with pytest.raises(SpannerError, match="FK2"):
        write(orders, INSERT, "Orders", "Id Customer", (12, 9))


@pytest.mark.parametrize("kind", ["UNIQUE", "UNIQUE NULL_FILTERED"])
def test_a_unique_index_takes_null_for_a_value_unless_it_is_filtered(kind: str) -> None:
    with open_database(
        "CREATE TABLE T (K INT64, A INT64, B BYTES(9)) PRIMARY KEY (K)",
        f"CREATE {kind} INDEX U ON T (A, B)",
    ) as database:
        write(database, INSERT, "T", "K A B", (1, 1, b""), (2, 1, None), (3, None, b""))
        with pytest.raises(SpannerError, match="Unique index violation on index U") as error:
            write(database, INSERT, "T", "K A B", (4, 1, b""))
        check_refusal(grpc.StatusCode.ALREADY_EXISTS, error)
        if "NULL_FILTERED" in kind:
            write(database, INSERT, "T", "K A B", (4, 1, None))
        else:
            with pytest.raises(SpannerError, match="Unique index violation on index U"):
                write(database, INSERT, "T", "K A B", (4, 1, None))
        assert query(database, "SELECT K FROM T@{FORCE_INDEX=U} WHERE A = 1 AND B = b''") == [(1,)]


def test_a_unique_index_is_not_built_over_duplicates() -> None:
    with open_database("CREATE TABLE T (K INT64, A INT64) PRIMARY KEY (K)") as database:
        write(database, INSERT, "T", "K A", (1, 5), (2, 5))
        with pytest.raises(SpannerError, match="Unique index violation on index U") as error:
            database.update_ddl(["CREATE UNIQUE INDEX U ON T (A)"])
        check_refusal(grpc.StatusCode.FAILED_PRECONDITION, error)
        assert len(database.ddl()) == 1


def test_a_check_judges_the_row_as_it_will_be() -> None:
    with open_database(
        "CREATE TABLE T (K INT64, A INT64, B INT64, "
        "CONSTRAINT Ordered CHECK (A < B AND B IS NOT NULL)) PRIMARY KEY (K)"
    ) as database:
        write(database, INSERT, "T", "K A B", (1, 1, 5))
        write(database, UPSERT, "T", "K A", (1, 2))
        for attempt in (
            lambda: write(database, UPSERT, "T", "K A", (1, 9)),
            lambda: write(database, UPSERT, "T", "K A", (2, 1)),
            lambda: commit_dml(database, "UPDATE T SET A = 7 WHERE K = 1"),
        ):
            with pytest.raises(SpannerError, match=r"`T`\.`Ordered` is violated") as error:
                attempt()
            check_refusal(grpc.StatusCode.OUT_OF_RANGE, error)
        assert query(database, "SELECT K, A, B FROM T") == [(1, 2, 5)]


def test_not_null_is_held() -> None:
    with open_database("CREATE TABLE T (K INT64, A INT64 NOT NULL) PRIMARY KEY (K)") as database:
        for columns, row, text in (
            ("K A", (1, None), "A must not be NULL in table T"),
            ("K", (1,), "NOT NULL column: A"),
        ):
            with pytest.raises(SpannerError, match=text) as error:
                write(database, INSERT, "T", columns, row)
            check_refusal(grpc.StatusCode.FAILED_PRECONDITION, error)
