"""Tables and indexes in named schemas: how statements and reads name them, in each dialect."""

from __future__ import annotations

import pytest
from fixtures.queries import ask
from fixtures.server import CreateDatabase
from google.api_core import exceptions
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.schema import Dialect

pytestmark = pytest.mark.both_dialects
SCHEMA = (
    "CREATE SCHEMA sales",
    "CREATE SCHEMA archive",
    *(
        statement
        for owner in ("", "sales.", "archive.")
        for statement in (
            f"CREATE TABLE {owner}orders (id INT64, total INT64) PRIMARY KEY (id)",
            f"CREATE INDEX {owner}by_total ON {owner}orders (total)",
        )
    ),
    "CREATE INDEX archive.old ON archive.orders (total)",
)
TAKEN = {
    Dialect.GOOGLESQL: (
        'sales.orders@{FORCE_INDEX="sales.by_total"}',
        "sales.orders@{FORCE_INDEX='Sales.By_Total'}",
        "sales.orders@{FORCE_INDEX=r'''sales.by_total'''}",
        "sales.orders@{FORCE_INDEX=`sales.by_total`}",
        "sales.orders@{FORCE_INDEX=by_total}",
        'Sales.Orders@{spanner.force_index="sales.by_total"}',
        "sales.orders@{FORCE_INDEX=_BASE_TABLE}",
        "orders@{FORCE_INDEX=by_total}",
    ),
    Dialect.POSTGRESQL: (
        "sales.orders /*@ FORCE_INDEX = by_total */",
        'sales.orders /*@ force_index="by_total" */',
        "sales.orders /*@ force_index=BY_TOTAL */",
        "sales.orders /*@ force_index='sales.by_total' */",
        "sales.orders /*@ force_index=_base_table */",
        "public.orders /*@ force_index=by_total */",
        "orders /*@ force_index=by_total */",
    ),
}
REFUSED = {
    Dialect.GOOGLESQL: (
        ("sales.orders@{FORCE_INDEX=sales.by_total}", "Unrecognized name: sales"),
        ("sales.orders@{FORCE_INDEX=`sales`.`by_total`}", "Unrecognized name: sales"),
        ('sales.orders@{FORCE_INDEX="archive.by_total"}', "secondary index"),
        ("sales.orders@{FORCE_INDEX=old}", "secondary index"),
        ('orders@{FORCE_INDEX="sales.by_total"}', "secondary index"),
        ("orders@{FORCE_INDEX=old}", "secondary index"),
    ),
    Dialect.POSTGRESQL: (
        ("sales.orders /*@ force_index=sales.by_total */", "Too many names in hint value"),
        ('sales.orders /*@ force_index="sales"."by_total" */', "Too many names in hint value"),
        ("sales.orders /*@ force_index='archive.by_total' */", "secondary index"),
        ("sales.orders /*@ force_index=old */", "secondary index"),
        ("orders /*@ force_index=old */", "secondary index"),
    ),
}
FORCED = {
    Dialect.GOOGLESQL: 'sales.orders@{FORCE_INDEX="sales.by_total"}',
    Dialect.POSTGRESQL: "sales.orders /*@ force_index=by_total */",
}


@pytest.fixture
def orders(create_database: CreateDatabase) -> Database:
    """Tables of one name in three schemas, each with rows of its own."""
    database: Database = create_database(*SCHEMA)
    with database.batch() as batch:
        for number, owner in enumerate(("", "sales.", "archive."), 1):
            batch.insert(f"{owner}orders", ("id", "total"), [(number, 10 * number)])
    return database


def run(database: Database, sql: str) -> int:
    """How many rows a DML statement has changed."""
    return int(database.run_in_transaction(lambda transaction: transaction.execute_update(sql)))


def test_a_hint_names_an_index_of_a_named_schema(orders: Database, dialect: Dialect) -> None:
    for source in TAKEN[dialect]:
        expected = 2 if source.casefold().startswith("sales") else 1
        answer = ask(orders, f"SELECT id FROM {source} WHERE total > 0")
        assert answer.rows == [(expected,)], source


def test_a_path_or_an_index_of_another_schema_is_no_hint(
    orders: Database, dialect: Dialect
) -> None:
    for source, message in REFUSED[dialect]:
        with pytest.raises(exceptions.InvalidArgument, match=message):
            ask(orders, f"SELECT id FROM {source} WHERE total > 0")


def test_joins_and_dml_take_such_hints(orders: Database, dialect: Dialect) -> None:
    forced = FORCED[dialect]
    other = forced.replace("sales", "archive")
    joined = f"SELECT s.id, a.id FROM {forced} s JOIN {other} a ON a.total = s.total + 10"
    assert ask(orders, joined).rows == [(2, 3)]
    assert run(orders, f"UPDATE {forced} SET total = 21 WHERE total = 20") == 1
    assert orders.execute_partitioned_dml(f"UPDATE {forced} SET total = 22 WHERE total > 20") == 1
    assert ask(orders, "SELECT total FROM sales.orders").rows == [(22,)]
    assert run(orders, f"DELETE FROM {forced} WHERE total = 22") == 1
    left = "SELECT (SELECT COUNT(*) FROM orders), (SELECT COUNT(*) FROM archive.orders)"
    assert ask(orders, left).rows == [(1, 1)]
    for path in (REFUSED[dialect][0][0], REFUSED[dialect][3][0]):
        for sql in (
            f"UPDATE {path} SET total = 1 WHERE total > 0",
            f"DELETE FROM {path} WHERE true",
        ):
            with pytest.raises(exceptions.InvalidArgument):
                run(orders, sql)


def test_the_hint_of_a_statement_forces_no_index(orders: Database, dialect: Dialect) -> None:
    written = {
        Dialect.GOOGLESQL: "@{{FORCE_INDEX={}}}",
        Dialect.POSTGRESQL: "/*@ FORCE_INDEX={} */",
    }
    hint = written[dialect] + " SELECT id FROM sales.orders"
    assert ask(orders, hint.format("_BASE_TABLE")).rows == [(2,)]
    with pytest.raises(exceptions.InvalidArgument, match="statement-level"):
        ask(orders, hint.format("by_total"))


def test_reads_name_an_index_with_its_schema(orders: Database) -> None:
    with orders.snapshot(multi_use=True) as snapshot:
        everything = KeySet(all_=True)
        rows = list(snapshot.read("sales.orders", ("id",), everything, index="sales.by_total"))
        assert rows == [[2]]
        with pytest.raises(exceptions.NotFound):
            list(snapshot.read("sales.orders", ("id",), everything, index="archive.by_total"))
