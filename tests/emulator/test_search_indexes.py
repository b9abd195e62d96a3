"""Search indexes and TOKENLIST columns are kept, checked and shown; what searches is refused by
name."""

from __future__ import annotations

import pytest
from fixtures.postgres_databases import CreatePostgres, query
from fixtures.queries import ask, change
from google.api_core.exceptions import GoogleAPICallError, InvalidArgument, MethodNotImplemented
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

TABLE = (
    "CREATE TABLE Albums (Id INT64 NOT NULL, Owner INT64 NOT NULL, Year INT64 NOT NULL, N INT64,"
    " Name STRING(MAX), Doc JSON,"
    " Exact TOKENLIST AS (TOKEN(Name)) HIDDEN,"
    ' Words TOKENLIST AS (TOKENIZE_FULLTEXT(Name, language_tag=>"en")) STORED HIDDEN,'
    " Parts TOKENLIST AS (TOKENIZE_SUBSTRING(Name, ngram_size_max=>3)) HIDDEN,"
    " Grams TOKENLIST AS (TOKENIZE_NGRAMS(Name, ngram_size_min=>3)) HIDDEN,"
    " Number TOKENLIST AS (TOKENIZE_NUMBER(N, min=>0, max=>0x4000, algorithm=>'auto')) HIDDEN,"
    " Flag TOKENLIST AS (TOKENIZE_BOOL(N > 3)) HIDDEN,"
    " Docs TOKENLIST AS (TOKENIZE_JSON(Doc)) HIDDEN,"
    " Both TOKENLIST AS"
    " (TOKENLIST_CONCAT([TOKENIZE_FULLTEXT(Name), TOKENIZE_FULLTEXT('x')])) HIDDEN"
    ") PRIMARY KEY (Id)"
)
INDEX = (
    "CREATE SEARCH INDEX S ON Albums(Exact, Words, Both) STORING (N) PARTITION BY Owner"
    " ORDER BY Year DESC WHERE N IS NOT NULL OPTIONS (sort_order_sharding = true)"
)
pytestmark = pytest.mark.ddl(TABLE, INDEX)


def insert(database: Database, *rows: tuple[int, str | None]) -> None:
    with database.batch() as batch:
        values = [(number, 1, 2000, name) for number, name in rows]
        batch.insert("Albums", ("Id", "Owner", "Year", "Name"), values)


def test_rows_are_written_and_read_without_their_tokens(database: Database) -> None:
    insert(database, (1, "a"), (2, None))
    assert ask(database, "SELECT * FROM Albums ORDER BY Id").rows == [
        (1, 1, 2000, None, "a", None),
        (2, 1, 2000, None, None, None),
    ]
    nulls = ask(database, "SELECT Id, Words IS NULL, Number IS NULL FROM Albums ORDER BY Id")
    assert nulls.rows == [(1, False, True), (2, True, True)]


@pytest.mark.parametrize(
    "text", ["SELECT Words FROM Albums", "SELECT TOKEN('a')", "SELECT [Words] FROM Albums"]
)
def test_a_token_list_is_never_returned(database: Database, text: str) -> None:
    with pytest.raises(InvalidArgument, match="internal-only type"):
        ask(database, text)


def test_neither_dml_nor_a_read_returns_tokens(database: Database) -> None:
    sql = "INSERT INTO Albums (Id, Owner, Year) VALUES (9, 1, 1) THEN RETURN Words"
    with pytest.raises(InvalidArgument, match="internal-only type"):
        database.run_in_transaction(lambda transaction: list(transaction.execute_sql(sql)))
    with database.snapshot() as snapshot, pytest.raises(InvalidArgument, match="internal-only"):
        list(snapshot.read("Albums", ["Words"], KeySet(all_=True)))


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("SELECT Id FROM Albums@{FORCE_INDEX=S} WHERE SEARCH(Words, 'a')", "SEARCH"),
        ("SELECT Id FROM Albums WHERE SEARCH_NGRAMS(Grams, 'a')", "SEARCH_NGRAMS"),
        ("SELECT Id FROM Albums WHERE SEARCH_SUBSTRING(Parts, 'a')", "SEARCH_SUBSTRING"),
        ("SELECT SCORE(Words, 'a') FROM Albums", "SCORE"),
        ("SELECT SNIPPET(Name, 'a') FROM Albums", "SNIPPET"),
        ("SELECT DEBUG_TOKENLIST(Words) FROM Albums", "DEBUG_TOKENLIST"),
    ],
)
def test_what_searches_is_named(database: Database, text: str, function: str) -> None:
    with pytest.raises(MethodNotImplemented, match=f"the function {function} is"):
        ask(database, text)


def test_an_index_is_shown_and_makes_the_same_schema(database: Database) -> None:
    database.reload()
    assert database.ddl_statements[1] == INDEX
    shown = ask(
        database,
        "SELECT INDEX_TYPE, SEARCH_PARTITION_BY, SEARCH_ORDER_BY, FILTER"
        " FROM INFORMATION_SCHEMA.INDEXES WHERE INDEX_NAME = 'S'",
    )
    assert shown.rows == [("SEARCH", ["Owner"], ["Year DESC"], "N IS NOT NULL")]
    columns = ask(
        database,
        "SELECT COLUMN_NAME, ORDINAL_POSITION, SPANNER_TYPE FROM INFORMATION_SCHEMA.INDEX_COLUMNS"
        " WHERE INDEX_NAME = 'S' ORDER BY ORDINAL_POSITION, COLUMN_NAME",
    )
    assert columns.rows == [
        ("N", None, "INT64"),
        ("Exact", 1, "TOKENLIST"),
        ("Words", 2, "TOKENLIST"),
        ("Both", 3, "TOKENLIST"),
    ]


def test_columns_come_and_go(database: Database) -> None:
    for action in ("ADD COLUMN Flag", "ADD STORED COLUMN Name", "DROP COLUMN Both"):
        change(database, f"ALTER SEARCH INDEX S {action}")
    database.reload()
    expected = INDEX.replace("Words, Both", "Words, Flag").replace("(N)", "(N, Name)")
    assert database.ddl_statements[1] == expected
    change(database, "ALTER SEARCH INDEX S DROP STORED COLUMN Name")
    change(database, "ALTER TABLE Albums DROP COLUMN Both")
    change(database, "DROP SEARCH INDEX S")
    change(database, "DROP SEARCH INDEX IF EXISTS S")
    change(database, "ALTER TABLE Albums DROP COLUMN Words")
    change(database, "DROP TABLE Albums")


def test_an_index_goes_with_its_table(database: Database) -> None:
    change(database, "RENAME TABLE Albums TO Records")
    database.reload()
    assert database.ddl_statements[1] == INDEX.replace("Albums", "Records")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (INDEX, "Duplicate name in schema: S"),
        ("CREATE SEARCH INDEX W ON Nobody(Words)", "Table not found: Nobody"),
        ("CREATE SEARCH INDEX W ON Albums()", "does not specify any key columns"),
        ("CREATE SEARCH INDEX W ON Albums(Nothing)", "specifies key column Nothing which does not"),
        ("CREATE SEARCH INDEX W ON Albums(N)", "Cannot reference INT64 N in the creation of"),
        ("CREATE SEARCH INDEX W ON Albums(Words, Words)", "specifies key column Words twice"),
        ("CREATE SEARCH INDEX W ON Albums(Words DESC)", "Token key Words in search index W does"),
        ("CREATE SEARCH INDEX W ON Albums(Words) STORING (Words)", "already specified as primary"),
        ("CREATE SEARCH INDEX W ON Albums(Words) STORING (N, N)", "stored column N twice"),
        ("CREATE SEARCH INDEX W ON Albums(Words) PARTITION BY Exact", "cannot be partitioned by"),
        ("CREATE SEARCH INDEX W ON Albums(Words) ORDER BY N", "N in search index W must be NOT"),
        (
            "CREATE SEARCH INDEX W ON Albums(Words) ORDER BY Name WHERE Name IS NOT NULL",
            "ordered by column Name with invalid type STRING",
        ),
        ("CREATE SEARCH INDEX W ON Albums(Words) OPTIONS (a = 1)", "Option: a is unknown"),
        (
            "CREATE SEARCH INDEX W ON Albums(Words) OPTIONS (sort_order_sharding = 1)",
            "Unexpected value for option: sort_order_sharding",
        ),
        (
            "CREATE SEARCH INDEX W ON Albums(Words) PARTITION BY Id, INTERLEAVE IN Albums",
            "needs sort_order_sharding = true",
        ),
        (
            "CREATE SEARCH INDEX W ON Albums(Words) PARTITION BY Owner, INTERLEAVE IN Albums"
            " OPTIONS (sort_order_sharding = true)",
            "must begin with the key of Albums",
        ),
        ("CREATE SEARCH INDEX IF NOT EXISTS S ON Albums(Words)", "Syntax error"),
        ("CREATE INDEX W ON Albums(Words)", "unsupported type TOKENLIST"),
        ("ALTER SEARCH INDEX W ADD COLUMN Flag", "Index not found: W"),
        ("ALTER SEARCH INDEX S ADD COLUMN Words", "specifies key column Words twice"),
        ("ALTER SEARCH INDEX S DROP COLUMN Flag", "Flag is not a column of index S"),
        ("ALTER SEARCH INDEX S RENAME", "Syntax error"),
        ("DROP SEARCH INDEX W", "Index not found: W"),
        ("ALTER TABLE Albums DROP COLUMN Words", "used by index S"),
        ("ALTER TABLE Albums DROP COLUMN Year", "used by index S"),
        ("ALTER TABLE Albums ALTER COLUMN Year INT64", "Year in search index S must be NOT NULL"),
        ("DROP TABLE Albums", "Cannot drop table Albums with indices: S"),
        ("ALTER TABLE Albums ADD COLUMN T TOKENLIST AS (TOKEN(Name))", "Albums.T must be HIDDEN"),
        ("ALTER TABLE Albums ADD COLUMN T TOKENLIST HIDDEN", "must be a generated column"),
        ("ALTER TABLE Albums ADD COLUMN T TOKENLIST AS (Name) HIDDEN", "Expected type TOKENLIST"),
    ],
)
def test_what_spanner_refuses_is_refused(database: Database, statement: str, message: str) -> None:
    with pytest.raises(GoogleAPICallError) as refused:
        change(database, statement)
    assert message in str(refused.value)
    database.reload()
    assert len(database.ddl_statements) == 2


@pytest.mark.parametrize(
    "call",
    [
        "TOKEN(Name, 15)",
        "TOKEN(N)",
        "TOKEN()",
        "TOKENIZE_BOOL(Name)",
        "TOKENIZE_FULLTEXT(Name, 'en')",
        "TOKENIZE_FULLTEXT(Name, tag=>'en')",
        "TOKENIZE_FULLTEXT(Name, language_tag=>'en', language_tag=>'de')",
        "TOKENIZE_NUMBER(N, min=>'a')",
        "TOKENIZE_JSON(Name)",
    ],
)
def test_arguments_of_tokenizers_are_checked(database: Database, call: str) -> None:
    name = call.partition("(")[0]
    with pytest.raises(InvalidArgument, match=f"No matching signature for function SPANNER:{name}"):
        change(database, f"ALTER TABLE Albums ADD COLUMN T TOKENLIST AS ({call}) HIDDEN")


def test_the_postgresql_dialect_has_them_too(create_postgres: CreatePostgres) -> None:
    index = (
        "CREATE SEARCH INDEX s ON t(words, docs) INCLUDE (n) PARTITION BY id ORDER BY n DESC"
        " WHERE n IS NOT NULL WITH (sort_order_sharding = true)"
    )
    database = create_postgres(
        "CREATE TABLE t (id bigint PRIMARY KEY, n bigint, name text, doc jsonb,"
        " words spanner.tokenlist GENERATED ALWAYS AS"
        " (spanner.tokenize_fulltext(name, language_tag=>'en')) STORED HIDDEN,"
        " docs spanner.tokenlist GENERATED ALWAYS AS (spanner.tokenize_jsonb(doc)) VIRTUAL HIDDEN)",
        index,
    )
    change(database, "ALTER SEARCH INDEX s ADD INCLUDE COLUMN name")
    database.reload()
    assert database.ddl_statements[1] == index.replace("(n)", "(n, name)")
    with database.batch() as batch:
        batch.insert("t", ["id", "name"], [[1, "a"]])
    assert query(database, "SELECT * FROM t") == [[1, None, "a", None]]
    shown = "SELECT index_type, search_order_by FROM information_schema.indexes WHERE index_name"
    assert query(database, f"{shown} = 's'") == [["SEARCH", ["n DESC"]]]
    with pytest.raises(MethodNotImplemented, match=r"spanner\.search is"):
        query(database, "SELECT id FROM t WHERE spanner.search(words, 'a')")
    for statement, message in (
        ("CREATE SEARCH INDEX w ON t(words DESC)", "Ordering is not supported for tokenlist"),
        ("CREATE SEARCH INDEX w ON t(words) WITH (a = true)", "Invalid search index option 'a'"),
        (
            "CREATE SEARCH INDEX w ON t(words) WITH (sort_order_sharding = 7)",
            "Failed to provide valid option value for 'sort_order_sharding'",
        ),
        ("ALTER TABLE t ADD COLUMN w spanner.tokenlist HIDDEN", "must be a generated column"),
    ):
        with pytest.raises(GoogleAPICallError, match=message):
            change(database, statement)
    with pytest.raises(InvalidArgument, match=r"function spanner\.token\(INT64\) does not exist"):
        query(database, "SELECT spanner.token(7)")


def test_change_streams_do_not_tell_tokens(database: Database) -> None:
    change(database, "CREATE CHANGE STREAM C FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')")
    insert(database, (1, "a"))
    with pytest.raises(GoogleAPICallError, match="Words"):
        change(database, "CREATE CHANGE STREAM D FOR Albums (Words)")
