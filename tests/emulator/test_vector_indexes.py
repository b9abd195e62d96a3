"""Vector indexes are kept and shown, and distances that are approximate in Spanner are exact."""

from __future__ import annotations

import pytest
from fixtures.postgres_databases import CreatePostgres, query, write
from fixtures.queries import ask, change
from google.api_core.exceptions import GoogleAPICallError, MethodNotImplemented
from google.cloud.spanner_v1.database import Database

TABLE = (
    "CREATE TABLE T (Id INT64, E ARRAY<FLOAT32>(vector_length=>3), S STRING(9), P ARRAY<FLOAT64>,"
    " N ARRAY<FLOAT64>(vector_length=>2) NOT NULL) PRIMARY KEY (Id)"
)
INDEX = (
    "CREATE VECTOR INDEX V ON T(E, Id) STORING (S) WHERE E IS NOT NULL"
    " OPTIONS (distance_type = 'COSINE', tree_depth = 2, num_leaves = 100)"
)
pytestmark = pytest.mark.ddl(TABLE, INDEX)


def test_the_nearest_are_found_by_exact_distances(database: Database) -> None:
    with database.batch() as batch:
        rows = [(1, [0.0, 1.0, 0.0]), (2, [1.0, 0.0, 0.0]), (3, None)]
        batch.insert("T", ("Id", "E", "N"), [(*row, [1.0, 2.0]) for row in rows])
    nearest = (
        "SELECT Id, APPROX_COSINE_DISTANCE([1.0, 0.0, 0.0], E, options => JSON"
        " '{\"num_leaves_to_search\": 10}') AS d FROM T@{FORCE_INDEX=V} WHERE E IS NOT NULL"
        " ORDER BY d LIMIT 5"
    )
    assert ask(database, nearest).rows == [(2, 0.0), (1, 1.0)]
    others = "SELECT APPROX_DOT_PRODUCT([1.0, 2.0], N), APPROX_EUCLIDEAN_DISTANCE([1.0, 4.0], N)"
    assert ask(database, f"{others} FROM T WHERE Id = 1").rows == [(5.0, 2.0)]


def test_an_index_is_shown_and_makes_the_same_schema(database: Database) -> None:
    database.reload()
    assert database.ddl_statements[1] == INDEX
    shown = ask(
        database,
        "SELECT INDEX_NAME, INDEX_TYPE FROM INFORMATION_SCHEMA.INDEXES"
        " WHERE TABLE_NAME = 'T' ORDER BY INDEX_NAME",
    )
    assert shown.rows == [("PRIMARY_KEY", "PRIMARY_KEY"), ("V", "VECTOR")]
    columns = ask(
        database,
        "SELECT COLUMN_NAME, ORDINAL_POSITION FROM INFORMATION_SCHEMA.INDEX_COLUMNS"
        " WHERE INDEX_NAME = 'V' ORDER BY ORDINAL_POSITION",
    )
    assert sorted(columns.rows, key=str) == [("E", 1), ("Id", 2), ("S", None)]


def test_an_index_that_exists_stays_as_it_is(database: Database) -> None:
    change(database, INDEX.replace("INDEX V", "INDEX IF NOT EXISTS V").replace("COSINE", "NONE"))
    database.reload()
    assert database.ddl_statements[1] == INDEX
    new = "CREATE VECTOR INDEX IF NOT EXISTS W ON T(N) OPTIONS (distance_type = 'EUCLIDEAN')"
    change(database, new)
    database.reload()
    assert database.ddl_statements[2] == new.replace(" IF NOT EXISTS", "")
    change(database, "DROP VECTOR INDEX W")
    change(database, "DROP INDEX V")
    change(database, "DROP TABLE T")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (INDEX, "Duplicate name in schema: V"),
        (INDEX.replace("INDEX V", "INDEX T"), "Duplicate name in schema: T"),
        (INDEX.replace("INDEX V", "INDEX W").replace("ON T", "ON U"), "Table not found: U"),
        (INDEX.replace("INDEX V", "INDEX W").replace("(S)", "(X)"), "Column not found in table T"),
        ("CREATE VECTOR INDEX W ON T(E) OPTIONS (distance_type = 'COSINE')", "E IS NOT NULL"),
        (INDEX.replace("INDEX V", "INDEX W").replace("WHERE E", "WHERE S"), "must name E"),
        ("CREATE VECTOR INDEX W ON T(S) OPTIONS (distance_type = 'COSINE')", "vector_length first"),
        ("CREATE VECTOR INDEX W ON T(P) OPTIONS (distance_type = 'COSINE')", "vector_length first"),
        ("CREATE VECTOR INDEX W ON T(N) OPTIONS (distance_type = 'L1')", "distance_type, one of"),
        ("CREATE VECTOR INDEX W ON T(N)", "distance_type, one of"),
        ("CREATE VECTOR INDEX W ON T(N) OPTIONS (wrong = 1)", "Option: wrong is unknown"),
        ("CREATE VECTOR INDEX W ON T", "Syntax error"),
        ("ALTER TABLE T DROP COLUMN E", "used by index V"),
        ("ALTER TABLE T DROP COLUMN S", "used by index V"),
        ("ALTER VECTOR INDEX W DROP STORED COLUMN S", "Index not found: W"),
        ("ALTER VECTOR INDEX V DROP STORED COLUMN Id", "Id in index V is not a stored column"),
        ("ALTER VECTOR INDEX V ADD STORED COLUMN S", "specifies stored column S twice"),
        ("ALTER VECTOR INDEX V ADD STORED COLUMN Id", "already specified as primary key"),
        ("ALTER VECTOR INDEX V ADD STORED COLUMN X", "Column not found in table T: X"),
        ("ALTER VECTOR INDEX V SET OPTIONS (wrong = 1)", "Option: wrong is unknown"),
        ("ALTER VECTOR INDEX V ADD COLUMN P", "Syntax error"),
        ("DROP TABLE T", "Cannot drop table T with indices: V"),
    ],
)
def test_what_spanner_refuses_is_refused(database: Database, statement: str, message: str) -> None:
    with pytest.raises(GoogleAPICallError) as refused:
        change(database, statement)
    assert message in str(refused.value)
    database.reload()
    assert len(database.ddl_statements) == 2


def test_an_index_goes_with_its_table(database: Database) -> None:
    change(database, "RENAME TABLE T TO U")
    database.reload()
    assert database.ddl_statements[1] == INDEX.replace("ON T", "ON U")


def test_stored_columns_and_options_change(database: Database) -> None:
    change(database, "ALTER VECTOR INDEX V ADD STORED COLUMN P")
    change(database, "ALTER VECTOR INDEX V DROP STORED COLUMN S")
    change(database, "ALTER VECTOR INDEX V SET OPTIONS (disable_search = true, num_leaves = null)")
    database.reload()
    changed = INDEX.replace("STORING (S)", "STORING (P)")
    assert database.ddl_statements[1] == changed.replace(
        "num_leaves = 100", "disable_search = true"
    )
    with pytest.raises(GoogleAPICallError, match="disable_search is true"):
        ask(database, "SELECT Id FROM T@{FORCE_INDEX=V}")
    change(database, "ALTER VECTOR INDEX V SET OPTIONS (disable_search = false)")
    assert ask(database, "SELECT Id FROM T@{FORCE_INDEX=V}").rows == []


def test_the_postgresql_dialect_has_them_too(create_postgres: CreatePostgres) -> None:
    index = (
        "CREATE INDEX i ON t USING scann (e) INCLUDE (s) WITH (distance_type = 'COSINE',"
        " tree_depth = 2) WHERE e IS NOT NULL"
    )
    database = create_postgres(
        "CREATE TABLE t (k bigint PRIMARY KEY, e float4[] VECTOR LENGTH 3, s text, u text)",
        index.replace("INDEX", "INDEX IF NOT EXISTS"),
        index.replace("INDEX", "INDEX IF NOT EXISTS"),
    )
    change(database, "ALTER INDEX i ADD INCLUDE COLUMN u")
    change(database, "ALTER INDEX i DROP INCLUDE COLUMN s")
    database.reload()
    assert database.ddl_statements[1] == index.replace("(s)", "(u)")
    shown = "SELECT index_type FROM information_schema.indexes WHERE index_name = 'i'"
    assert query(database, shown) == [["VECTOR"]]
    write(database, "INSERT INTO t (k, e) VALUES (1, '{1,0,0}'), (2, '{0,1,0}')")
    nearest = (
        "SELECT k, spanner.approx_cosine_distance(ARRAY[1,0,0]::float4[], e,"
        " options => jsonb '{\"num_leaves_to_search\": 10}') AS d"
        " FROM t /*@ FORCE_INDEX=i */ WHERE e IS NOT NULL ORDER BY d"
    )
    assert query(database, nearest) == [[1, 0.0], [2, 1.0]]
    others = "SELECT spanner.approx_dot_product(e, e), spanner.approx_euclidean_distance(e, e)"
    assert query(database, f"{others} FROM t WHERE k = 1") == [[1.0, 0.0]]
    for statement, message in (
        (index, "Duplicate name in schema: i"),
        ("CREATE INDEX j ON t USING scann (s)", "vector_length first"),
        (index.replace("INDEX i", "INDEX j").replace("COSINE", "L1"), "distance_type, one of"),
        ("ALTER TABLE t DROP COLUMN e", "used by index i"),
        ("ALTER INDEX i ADD INCLUDE COLUMN u", "stored column u twice"),
    ):
        with pytest.raises(GoogleAPICallError, match=message):
            change(database, statement)
    change(database, "DROP INDEX i")
    change(database, "DROP TABLE t")


def test_an_embedding_stays_what_its_index_needs(database: Database) -> None:
    change(database, "CREATE VECTOR INDEX W ON T(N) OPTIONS (distance_type = 'COSINE')")
    with pytest.raises(GoogleAPICallError, match="W needs WHERE N IS NOT NULL"):
        change(database, "ALTER TABLE T ALTER COLUMN N ARRAY<FLOAT64>(vector_length=>2)")


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        ("GRAPH G MATCH (n) RETURN n", "GRAPH"),
        ("SELECT * FROM GRAPH_TABLE(G MATCH (n) RETURN n.Id)", "GRAPH_TABLE"),
        ("SELECT SEARCH(S, 'a') FROM T", "SEARCH"),
    ],
)
def test_what_is_not_served_is_named(database: Database, text: str, feature: str) -> None:
    with pytest.raises(MethodNotImplemented, match=feature):
        ask(database, text)
