"""What clients of the PostgreSQL dialect write: metadata queries, names, casts, inserts, errors."""

from __future__ import annotations

from functools import partial

import pytest
from fixtures.postgres_databases import CreatePostgres, query, refusal, write
from google.cloud.spanner_v1.database import Database

SCHEMA = [
    "CREATE TABLE parents (id bigint PRIMARY KEY, name varchar(20))",
    "CREATE TABLE kids (id bigint PRIMARY KEY, parent bigint REFERENCES parents (id), v text[])",
    "CREATE INDEX kids_by_parent ON kids (parent)",
    "CREATE SCHEMA s1",
    "CREATE TABLE s1.x (id bigint PRIMARY KEY, y text)",
]


@pytest.fixture
def database(create_postgres: CreatePostgres) -> Database:
    return create_postgres(*SCHEMA)


# As the metadata of Spanner's JDBC driver ask: names in upper case, catalogs that may be NULL,
# patterns as parameters.
METADATA = [
    (
        'SELECT TABLE_CATALOG AS "TABLE_CAT", TABLE_NAME AS "TABLE_NAME",'
        " CASE WHEN TABLE_TYPE = 'BASE TABLE' THEN 'TABLE' ELSE TABLE_TYPE END AS \"TABLE_TYPE\","
        ' NULL AS "REMARKS" FROM INFORMATION_SCHEMA.TABLES AS T'
        " WHERE UPPER(COALESCE(TABLE_CATALOG, '')) LIKE $1 AND UPPER(TABLE_SCHEMA) LIKE 'PUBLIC'"
        " ORDER BY TABLE_CATALOG, TABLE_SCHEMA, TABLE_NAME",
        [["kids", "TABLE", None], ["parents", "TABLE", None]],
    ),
    (
        'SELECT IDX.TABLE_CATALOG AS "TABLE_CAT", COLS.COLUMN_NAME AS "COLUMN_NAME",'
        ' ORDINAL_POSITION AS "KEY_SEQ", IDX.INDEX_NAME AS "PK_NAME"'
        " FROM INFORMATION_SCHEMA.INDEXES IDX INNER JOIN INFORMATION_SCHEMA.INDEX_COLUMNS COLS"
        " ON COALESCE(IDX.TABLE_CATALOG, '') = COALESCE(COLS.TABLE_CATALOG, '')"
        " AND IDX.TABLE_SCHEMA = COLS.TABLE_SCHEMA AND IDX.TABLE_NAME = COLS.TABLE_NAME"
        " AND IDX.INDEX_NAME = COLS.INDEX_NAME WHERE IDX.INDEX_TYPE = 'PRIMARY_KEY'"
        " AND UPPER(COALESCE(IDX.TABLE_CATALOG, '')) LIKE $1 AND UPPER(IDX.TABLE_NAME) LIKE 'KIDS'",
        [["id", 1, "PRIMARY_KEY"]],
    ),
    (
        'SELECT PARENT.TABLE_CATALOG AS "PKTABLE_CAT", PARENT.COLUMN_NAME, CHILD.COLUMN_NAME'
        " FROM INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS C"
        " INNER JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE CHILD"
        " ON COALESCE(C.CONSTRAINT_CATALOG, '') = COALESCE(CHILD.CONSTRAINT_CATALOG, '')"
        " AND C.CONSTRAINT_NAME = CHILD.CONSTRAINT_NAME"
        " INNER JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE PARENT"
        " ON COALESCE(C.UNIQUE_CONSTRAINT_CATALOG, '') = COALESCE(PARENT.CONSTRAINT_CATALOG, '')"
        " AND C.UNIQUE_CONSTRAINT_NAME = PARENT.CONSTRAINT_NAME"
        " AND PARENT.ORDINAL_POSITION = CHILD.POSITION_IN_UNIQUE_CONSTRAINT"
        " WHERE UPPER(COALESCE(CHILD.TABLE_CATALOG, '')) LIKE $1",
        [["id", "parent"]],
    ),
    (
        'SELECT CATALOG_NAME AS "TABLE_CATALOG", SCHEMA_NAME AS "TABLE_SCHEM"'
        " FROM INFORMATION_SCHEMA.SCHEMATA WHERE UPPER(COALESCE(CATALOG_NAME, '')) LIKE $1"
        " AND UPPER(SCHEMA_NAME) LIKE 'S1'",
        [["s1"]],
    ),
]


@pytest.mark.parametrize(("sql", "rows"), METADATA)
def test_metadata_name_the_database_as_the_catalog(
    database: Database, sql: str, rows: list[list[object]]
) -> None:
    catalog = str(database.database_id)
    answer = query(database, sql, p1="%")
    assert [(row[0], row[1:]) for row in answer] == [(catalog, row) for row in rows]


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT current_schema()", "public"),
        ("SELECT current_schema", "public"),
        ("SELECT version()", "PostgreSQL 14.1"),
        ("SELECT 3000000000::int", 3_000_000_000),
        ("SELECT '5'::int4", 5),
        ("SELECT '{1,2}'::integer[]", [1, 2]),
        ("SELECT 'abc'::varchar(2)", "ab"),
        ("WITH c AS (SELECT NULL AS x) SELECT coalesce(x, 'a') FROM c", "a"),
        ("SELECT x FROM generate_series(5, 1, -4) AS x ORDER BY x LIMIT 1", 1),
        ("SELECT count(*) FROM generate_series(1, 10, 3)", 4),
        ("SELECT (array[10, 20, 30, 40])[2:3]", [20, 30]),
        ("SELECT (array[10, 20, 30, 40])[:2]", [10, 20]),
        ("SELECT (array[10, 20, 30, 40])[3:]", [30, 40]),
        ("SELECT (array[10, 20])[5:1]", []),
        ("SELECT (array[10, 20])[NULL:1]", None),
    ],
)
def test_values(database: Database, sql: str, value: object) -> None:
    assert query(database, sql) == [[value]]


def test_columns_may_be_written_with_the_schema_of_their_table(database: Database) -> None:
    write(database, "INSERT INTO s1.x VALUES (1, 'a')", "INSERT INTO parents VALUES (1)")
    assert query(database, "SELECT s1.x.y FROM s1.x WHERE s1.x.id = 1") == [["a"]]
    assert query(database, "SELECT s1.x.* FROM s1.x") == [[1, "a"]]
    assert query(database, "SELECT public.parents.* FROM parents") == [[1, None]]
    for wrong in ("SELECT s2.x.y FROM s1.x", "SELECT s1.x.y FROM parents"):
        error = refusal(partial(query, database, wrong))
        assert 'missing FROM-clause entry for table "x"' in str(error)


def test_insert_without_a_list_of_columns_writes_the_first_ones(database: Database) -> None:
    write(database, "INSERT INTO parents VALUES (1), (2)", "INSERT INTO parents SELECT 3")
    write(database, "INSERT INTO parents SELECT id + 10, name FROM parents WHERE id = 1")
    ids = query(database, "SELECT id, name FROM parents ORDER BY id")
    assert ids == [[1, None], [2, None], [3, None], [11, None]]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (
            "INSERT INTO parents VALUES (1, 'a', 2)",
            "INSERT has more expressions than target columns",
        ),
        ("INSERT INTO parents (id, name) VALUES (1)", "INSERT has more target columns than"),
        ("INSERT INTO parents VALUES (1), (2, 'b')", "VALUES lists must all be the same length"),
        ("SELECT * FROM nothing", 'relation "nothing" does not exist'),
        ("SELECT nothing(1, 'a')", "function nothing(bigint, unknown) does not exist"),
        ("SELECT name, count(*) FROM parents", 'column "parents.name" must appear in the GROUP BY'),
        ("SELECT nothing FROM parents", 'column "nothing" does not exist'),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_postgresql(
    database: Database, sql: str, words: str
) -> None:
    assert words in str(refusal(lambda: write(database, sql)))


def test_arrays_have_other_spellings_in_ddl(create_postgres: CreatePostgres) -> None:
    database = create_postgres(
        "CREATE TABLE t (id bigint PRIMARY KEY, a integer[4], b bigint ARRAY, c text ARRAY[3],"
        " v float8[] NOT NULL VECTOR LENGTH 2)"
    )
    database.reload()
    (table,) = [each for each in database.ddl_statements if "TABLE t" in each]
    assert "a bigint[],\n  b bigint[],\n  c character varying[],\n" in table
    assert "v double precision[] vector length 2 NOT NULL" in table
