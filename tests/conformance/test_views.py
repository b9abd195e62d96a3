"""Views: queries, dependencies, INFORMATION_SCHEMA and the DDL of a database."""

from __future__ import annotations

import pytest
from fixtures.server import CreateDatabase
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

TABLE = "CREATE TABLE T (K INT64 NOT NULL, V STRING(MAX), N INT64) PRIMARY KEY (K)"
NAMES = "CREATE VIEW Names SQL SECURITY INVOKER AS SELECT t.K, t.V AS Name FROM T AS t"
LONG = "CREATE VIEW Long SQL SECURITY DEFINER AS SELECT n.K FROM Names AS n WHERE n.Name > 'b'"


def rows(database: Database, sql: str) -> list[list[object]]:
    with database.snapshot() as snapshot:
        return [list(row) for row in snapshot.execute_sql(sql)]


def ddl(database: Database, *statements: str) -> None:
    database.update_ddl(statements).result(30)


def fill(database: Database) -> None:
    with database.batch() as batch:
        batch.insert("T", ["K", "V", "N"], [(1, "a", 10), (2, "b", 20), (3, "c", 30)])


@pytest.mark.ddl(TABLE, NAMES, LONG)
def test_a_view_is_read_like_a_table_and_a_view_over_it_too(database: Database) -> None:
    fill(database)
    assert rows(database, "SELECT * FROM Names ORDER BY K") == [[1, "a"], [2, "b"], [3, "c"]]
    assert rows(database, "SELECT * FROM Long") == [[3]]
    joined = "SELECT l.K, t.N FROM Long AS l JOIN T AS t USING (K)"
    assert rows(database, joined) == [[3, 30]]
    assert rows(database, "WITH t AS (SELECT 9 AS K) SELECT COUNT(*) FROM Names, t") == [[3]]


@pytest.mark.ddl(TABLE, NAMES)
def test_a_view_shows_a_transactions_own_writes_and_the_past_at_a_timestamp(
    database: Database,
) -> None:
    fill(database)
    with database.snapshot() as snapshot:
        list(snapshot.execute_sql("SELECT 1"))

    def write(transaction: Transaction) -> list[list[object]]:
        transaction.execute_update("DELETE FROM T WHERE K < 3")
        return [list(row) for row in transaction.execute_sql("SELECT K FROM Names")]

    with database.snapshot(multi_use=True) as before:
        assert len(list(before.execute_sql("SELECT K FROM Names"))) == 3
        assert database.run_in_transaction(write) == [[3]]
        assert len(list(before.execute_sql("SELECT K FROM Names"))) == 3
    assert rows(database, "SELECT K FROM Names") == [[3]]


@pytest.mark.ddl(TABLE, NAMES)
def test_a_view_is_not_written_and_not_read_by_key(database: Database) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        database.run_in_transaction(
            lambda transaction: transaction.execute_update("DELETE FROM Names WHERE TRUE")
        )
    with pytest.raises(exceptions.NotFound), database.batch() as batch:
        batch.insert("Names", ["K", "Name"], [(1, "x")])


@pytest.mark.ddl(TABLE)
def test_the_information_schema_follows_a_view(database: Database) -> None:
    asked = "SELECT VIEW_DEFINITION, SECURITY_TYPE FROM INFORMATION_SCHEMA.VIEWS"
    ddl(database, "CREATE VIEW v SQL SECURITY INVOKER AS SELECT true AS t, false AS f")
    assert rows(database, asked) == [["SELECT true AS t, false AS f", "INVOKER"]]
    ddl(database, "CREATE OR REPLACE VIEW v SQL SECURITY DEFINER AS SELECT T.K FROM T")
    assert rows(database, asked) == [["SELECT T.K FROM T", "DEFINER"]]
    tables = "SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = ''"
    listed = rows(database, f"{tables} AND TABLE_TYPE = 'VIEW'")
    assert listed == [["v"]]
    columns = "SELECT COLUMN_NAME, SPANNER_TYPE FROM INFORMATION_SCHEMA.COLUMNS"
    assert rows(database, f"{columns} WHERE TABLE_NAME = 'v'") == [["K", "INT64"]]
    ddl(database, "DROP VIEW v")
    assert rows(database, asked) == []


@pytest.mark.ddl(TABLE, LONG.replace("Long", "Early").replace("Names", "T").replace("Name", "V"))
def test_the_ddl_creates_views_in_an_order_that_works(
    database: Database,
    create_database: CreateDatabase,
) -> None:
    ddl(database, "CREATE VIEW Late SQL SECURITY INVOKER AS SELECT 1 AS One")
    ddl(database, "CREATE OR REPLACE VIEW Early SQL SECURITY INVOKER AS SELECT l.One FROM Late l")
    database.reload()
    statements = list(database.ddl_statements)
    assert [s.split(" SQL")[0] for s in statements[1:]] == ["CREATE VIEW Late", "CREATE VIEW Early"]
    copy = create_database(*statements)
    copy.reload()
    assert list(copy.ddl_statements) == statements


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE VIEW x AS SELECT 1 AS a", "missing the SQL SECURITY clause"),
        ("CREATE VIEW x SQL SECURITY INVOKER AS SELECT m.a FROM Missing m", "Table not found"),
        ("CREATE VIEW x SQL SECURITY INVOKER AS SELECT * FROM T", r"SELECT \* is not allowed"),
        ("CREATE VIEW x SQL SECURITY INVOKER AS SELECT K FROM T", "without a qualifier"),
        ("CREATE VIEW x SQL SECURITY INVOKER AS SELECT t.K + 1 FROM T t", "has no name"),
        (
            "CREATE VIEW x SQL SECURITY INVOKER AS SELECT t.K, t.K FROM T t",
            "duplicate name K",
        ),
        ("CREATE VIEW x SQL SECURITY INVOKER AS SELECT @p AS a", "parameters"),
        (
            "CREATE VIEW x SQL SECURITY INVOKER AS WITH w AS (SELECT 1 AS a) SELECT w.a FROM w",
            "WITH",
        ),
        (
            "CREATE VIEW x SQL SECURITY INVOKER AS SELECT t.TABLE_NAME"
            " FROM INFORMATION_SCHEMA.TABLES t",
            "may not read",
        ),
    ],
)
@pytest.mark.ddl(TABLE)
def test_a_view_without_sense_is_an_invalid_argument(
    database: Database, statement: str, message: str
) -> None:
    with pytest.raises(exceptions.InvalidArgument, match=message):
        ddl(database, statement)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE VIEW Names SQL SECURITY INVOKER AS SELECT 1 AS a", "Duplicate name"),
        ("CREATE TABLE Names (K INT64) PRIMARY KEY (K)", "Duplicate name"),
        ("DROP VIEW Names", "Cannot drop VIEW `Names` .* dependent views: Long"),
        ("DROP TABLE T", "Cannot drop TABLE `T` .* dependent views: Names"),
        ("ALTER TABLE T DROP COLUMN V", r"Cannot drop column `V` .* dependent views: Names"),
        ("ALTER TABLE T ALTER COLUMN V BYTES(MAX)", "T.V.*VIEW `(Names|Long)`"),
        (
            "CREATE OR REPLACE VIEW Names SQL SECURITY INVOKER AS SELECT 1 AS K",
            "definition of VIEW `Long` to become invalid",
        ),
        (
            "CREATE OR REPLACE VIEW Names SQL SECURITY INVOKER AS SELECT 'a' AS K, 'b' AS Name",
            "change the type of an output column for VIEW `Long` from `INT64` to `STRING`",
        ),
        (
            "CREATE OR REPLACE VIEW Names SQL SECURITY INVOKER AS"
            " SELECT l.K, 'b' AS Name FROM Long l",
            "Cannot replace VIEW `Names` because new definition is recursive",
        ),
    ],
)
@pytest.mark.ddl(TABLE, NAMES, LONG)
def test_what_a_view_reads_does_not_go_or_change_under_it(
    database: Database, statement: str, message: str
) -> None:
    with pytest.raises(exceptions.FailedPrecondition, match=message):
        ddl(database, statement)
    assert rows(database, "SELECT * FROM Long") == []


@pytest.mark.ddl(TABLE, "CREATE INDEX ByN ON T (N)")
def test_an_index_that_a_view_forces_is_not_dropped(database: Database) -> None:
    forced = "SELECT t.N FROM T@{FORCE_INDEX=ByN} AS t"
    ddl(database, f"CREATE VIEW x SQL SECURITY INVOKER AS {forced}")
    with pytest.raises(exceptions.FailedPrecondition, match="Cannot drop INDEX `ByN`"):
        ddl(database, "DROP INDEX ByN")
    ddl(database, "DROP VIEW x", "DROP INDEX ByN")


@pytest.mark.ddl(TABLE, NAMES)
def test_a_column_that_no_view_reads_may_change(database: Database) -> None:
    fill(database)
    ddl(database, "ALTER TABLE T DROP COLUMN N", "ALTER TABLE T ADD COLUMN W BOOL")
    assert len(rows(database, "SELECT * FROM Names")) == 3


@pytest.mark.ddl(TABLE)
def test_a_view_that_is_not_there_is_not_found(database: Database) -> None:
    with pytest.raises(exceptions.NotFound, match="View not found: Missing"):
        ddl(database, "DROP VIEW Missing")
    ddl(database, "DROP VIEW IF EXISTS Missing")


@pytest.mark.ddl(TABLE, NAMES)
def test_a_query_over_a_view_is_not_cut_into_partitions(database: Database) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="root partitionable"):
        list(database.batch_snapshot().generate_query_batches("SELECT K FROM Names"))


ARRAYS = "CREATE TABLE A (K INT64 NOT NULL, Tags ARRAY<STRING(10)>) PRIMARY KEY (K)"


@pytest.mark.ddl(ARRAYS)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT A.K, tag AS Tag FROM A, UNNEST(A.Tags) AS tag", [[1, "x"], [1, "y"]]),
        (
            "SELECT A.K, place AS P FROM A, UNNEST(A.Tags) AS t WITH OFFSET AS place",
            [[1, 0], [1, 1]],
        ),
        ("SELECT A.K, Tag FROM A, A.Tags AS Tag", [[1, "x"], [1, "y"]]),
        ("SELECT x AS Number FROM UNNEST([1, 2]) AS x", [[1], [2]]),
        ("SELECT s.x AS Number FROM UNNEST([STRUCT(1 AS x)]) AS s", [[1]]),
        ("SELECT A.K, ARRAY(SELECT t FROM UNNEST(A.Tags) AS t) AS Tags FROM A", [[1, ["x", "y"]]]),
        ("SELECT Twice AS D FROM (SELECT A.K * 2 AS Twice FROM A) AS q", [[2]]),
    ],
)
def test_a_view_over_an_array_names_its_elements_without_a_table(
    database: Database, query: str, expected: list[list[object]]
) -> None:
    """As GoogleSQL's strict name resolution: an alias is no column of a table."""
    with database.batch() as batch:
        batch.insert("A", ["K", "Tags"], [(1, ["x", "y"])])
    ddl(database, f"CREATE VIEW V SQL SECURITY INVOKER AS {query}")
    assert rows(database, "SELECT * FROM V ORDER BY 1") == expected


@pytest.mark.ddl(ARRAYS)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT K FROM A",
        "SELECT x AS Number FROM UNNEST([STRUCT(1 AS x)]) AS s",
        "SELECT A.K FROM A, UNNEST(Tags) AS t",
    ],
)
def test_a_column_in_a_view_is_named_with_its_table(database: Database, query: str) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="without a qualifier"):
        ddl(database, f"CREATE VIEW V SQL SECURITY INVOKER AS {query}")


@pytest.mark.parametrize("value", ["true", "false", "null", "'x'", "1"])
def test_key_visualizer_is_an_option_that_is_true_or_false(database: Database, value: str) -> None:
    option = f"OPTIONS (enable_key_visualizer = {value})"
    statement = f"ALTER DATABASE `{database.database_id}` SET {option}"
    if value not in {"true", "false", "null"}:
        with pytest.raises(exceptions.InvalidArgument, match="enable_key_visualizer"):
            ddl(database, statement)
        return
    ddl(database, statement)
    database.reload()
    assert [option in each for each in database.ddl_statements] == [True] * (value != "null")
