"""What constraints refuse, in the words of Spanner, which programs look for: they name the row.

The texts are those that tests of Google's on Spanner itself expect (DataflowTemplates,
``DatastreamToSpannerExceptionClassifierIT``).
"""

from __future__ import annotations

import pytest
from fixtures.queries import ask
from fixtures.server import CreateDatabase
from google.api_core.exceptions import FailedPrecondition, GoogleAPICallError
from google.cloud.spanner_v1 import KeyRange, KeySet
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.schema import Dialect

SCHEMAS = {
    Dialect.GOOGLESQL: (
        "CREATE TABLE authors (author_id INT64 NOT NULL, name STRING(200), active BOOL, photo"
        " BYTES(9), lower_name STRING(200) AS (LOWER(name)) STORED,"
        " CONSTRAINT check_author_id CHECK (author_id < 200)) PRIMARY KEY (author_id)",
        "CREATE UNIQUE INDEX by_name ON authors (lower_name, active, photo)",
        "CREATE TABLE books (author_id INT64 NOT NULL, title STRING(200) NOT NULL, pages INT64"
        " NOT NULL) PRIMARY KEY (author_id, title), INTERLEAVE IN PARENT authors",
        "CREATE TABLE parents (id INT64 NOT NULL, code INT64) PRIMARY KEY (id)",
        "CREATE UNIQUE INDEX by_code ON parents (code)",
        "CREATE TABLE children (id INT64 NOT NULL, parent_id INT64, CONSTRAINT fk FOREIGN KEY"
        " (parent_id) REFERENCES parents (id)) PRIMARY KEY (id)",
        "CREATE TABLE keyed (id1 INT64 NOT NULL, part1 STRING(9), id2 STRING(9) NOT NULL"
        " AS (CONCAT(part1, 'x')) STORED, name STRING(9)) PRIMARY KEY (id1, id2)",
    ),
    Dialect.POSTGRESQL: (
        "CREATE TABLE authors (author_id bigint PRIMARY KEY, name varchar(200), active boolean,"
        " photo bytea, lower_name varchar(200) GENERATED ALWAYS AS (lower(name)) STORED,"
        " CONSTRAINT check_author_id CHECK (author_id < 200))",
        "CREATE UNIQUE INDEX by_name ON authors (lower_name, active, photo)",
        "CREATE TABLE books (author_id bigint, title varchar(200), pages bigint NOT NULL,"
        " PRIMARY KEY (author_id, title)) INTERLEAVE IN PARENT authors",
        "CREATE TABLE parents (id bigint PRIMARY KEY, code bigint)",
        "CREATE UNIQUE INDEX by_code ON parents (code)",
        "CREATE TABLE children (id bigint PRIMARY KEY, parent_id bigint,"
        " CONSTRAINT fk FOREIGN KEY (parent_id) REFERENCES parents (id))",
        "CREATE TABLE keyed (id1 bigint, part1 varchar(9), id2 varchar(9) GENERATED ALWAYS AS"
        " (part1 || 'x') STORED NOT NULL, name varchar(9), PRIMARY KEY (id1, id2))",
    ),
}
AUTHOR = "author_id name active photo"
SAME_NAME = (
    "Unique index violation on index by_name at index key [jane austen,true,AQ==,1]. "
    "It conflicts with row [1] in table authors."
)
SAME_CODE = (
    "Unique index violation on index by_code at index key [{},{}]. "
    "It conflicts with row [{}] in table parents."
)
NO_PARENT = "Parent row for row [100,Emma] in table books is missing. Row cannot be written."
CHILD = (
    "Integrity constraint violation during DELETE/REPLACE. Found child row [1,Emma] in table books."
)
NULL_PAGES = "pages must not be NULL in table books."
REFERENCED = (
    "Foreign key constraint violation when deleting or updating referenced row(s): referencing "
    "row(s) found in table `children`."
)
MUTATIONS = [
    ("insert", "authors", AUTHOR, (2, "JANE AUSTEN", True, b"AQ=="), SAME_NAME),
    ("insert_or_update", "authors", AUTHOR, (2, "Jane Austen", True, b"AQ=="), SAME_NAME),
    ("replace", "authors", AUTHOR, (3, "jane austen", True, b"AQ=="), SAME_NAME),
    ("update", "authors", "author_id name", (3, "Jane AUSTEN"), SAME_NAME),
    ("insert_or_update", "authors", "author_id name", (3, "Jane AUSTEN"), SAME_NAME),
    ("insert", "authors", "author_id name", (1, "X"), "Row [1] in table authors already exists"),
    ("insert", "books", "author_id title pages", (1, "Emma", 5), "Row [1,Emma] in table books alr"),
    (
        "update",
        "books",
        "author_id title pages",
        (1, "Z", 5),
        "Row [1,Z] in table books is missing",
    ),
    (
        "insert",
        "authors",
        "author_id name",
        (300, "New Author"),
        "Check constraint `authors`.`check_author_id` is violated for key (300)",
    ),
    ("insert", "books", "author_id title pages", (100, "Emma", 5), NO_PARENT),
    (
        "insert",
        "books",
        "author_id title pages",
        (1, "A", None),
        "pages must not be NULL in table books.",
    ),
    ("insert", "parents", "id code", (9, None), SAME_CODE.format("NULL", 2, 2)),
]


@pytest.fixture
def library(create_database: CreateDatabase, dialect: Dialect) -> Database:
    database = create_database(*SCHEMAS[dialect])
    with database.batch() as batch:
        rows = [(1, "Jane Austen", True, b"AQ=="), (3, "Other", True, b"AQ==")]
        batch.insert("authors", AUTHOR.split(), rows)
        batch.insert("books", ["author_id", "title", "pages"], [(1, "Emma", 474)])
        batch.insert("parents", ["id", "code"], [(1, 10), (2, None), (3, 30)])
        batch.insert("children", ["id", "parent_id"], [(1, 1)])
    return database


def message_of(error: GoogleAPICallError) -> str:
    """What the server said; the client adds the number of its request."""
    return str(error.message).partition(", request_id")[0]


def refuse_dml(database: Database, *statements: str) -> str:
    def work(transaction: object) -> None:
        for statement in statements:
            transaction.execute_update(statement)  # type: ignore[attr-defined]

    with pytest.raises(GoogleAPICallError) as error:
        database.run_in_transaction(work)
    return message_of(error.value)


@pytest.mark.both_dialects
def test_a_refused_mutation_names_the_row(library: Database) -> None:
    for kind, table, columns, row, text in MUTATIONS:
        with pytest.raises(GoogleAPICallError) as error, library.batch() as batch:
            getattr(batch, kind)(table, columns.split(), [row])
        assert message_of(error.value).startswith(text)
    for table, text in (("authors", CHILD), ("parents", REFERENCED)):
        with pytest.raises(GoogleAPICallError) as error, library.batch() as batch:
            batch.delete(table, KeySet(keys=[(1,)]))
        assert message_of(error.value) == text
    assert ask(library, "SELECT author_id, name FROM authors ORDER BY author_id").rows == [
        (1, "Jane Austen"),
        (3, "Other"),
    ]


WRONG_SIZE = "Wrong number of key parts for {}. Expected: {}. Got: {}"


@pytest.mark.both_dialects
def test_a_key_of_another_size_is_told(library: Database) -> None:
    for table, key, size, values in (
        ("books", (1,), 2, '["1"]'),
        ("books", (1, "Emma", 3), 2, '["1","Emma","3"]'),
        ("authors", (None, True), 1, "[null,true]"),
    ):
        with pytest.raises(FailedPrecondition) as error, library.batch() as batch:
            batch.delete(table, KeySet(keys=[key]))
        assert message_of(error.value) == WRONG_SIZE.format(table, size, values)
    for index, keys in (
        ("by_name", KeySet(keys=[("a",)])),
        ("by_name", KeySet(ranges=[KeyRange(start_closed=["a"] * 5, end_closed=["a"])])),
    ):
        with pytest.raises(FailedPrecondition) as error, library.snapshot() as snapshot:
            list(snapshot.read("authors", ["author_id"], keys, index=index))
        assert message_of(error.value).startswith("Wrong number of key parts for by_name. Expected")
    with library.snapshot() as snapshot:
        whole = KeySet(keys=[("jane austen", True, b"AQ==")])
        assert list(snapshot.read("authors", ["author_id"], whole, index="by_name")) == [[1]]


@pytest.mark.both_dialects
def test_an_update_without_a_generated_part_of_the_key_is_told(library: Database) -> None:
    with library.batch() as batch:
        batch.insert("keyed", ["id1", "part1", "name"], [(1, "a", "n")])
    with pytest.raises(FailedPrecondition) as error, library.batch() as batch:
        batch.update("keyed", ["id1", "name"], [(1, "m")])
    assert message_of(error.value) == (
        "For an Update, the value of a generated primary key `id2` must be explicitly specified, or"
        " else its non-key dependent column `part1` must be specified. Key: [1,<default>]"
    )
    with library.batch() as batch:
        batch.update("keyed", ["id1", "id2", "name"], [(1, "ax", "k")])
        batch.update("keyed", ["id1", "part1", "name"], [(1, "a", "m")])
    assert ask(library, "SELECT id1, id2, name FROM keyed").rows == [(1, "ax", "m")]


@pytest.mark.both_dialects
def test_a_refused_statement_names_the_row(library: Database) -> None:
    assert refuse_dml(
        library, "INSERT INTO parents (id, code) VALUES (7, 70), (8, 10), (9, 90)"
    ) == SAME_CODE.format(10, 1, 1)
    update = "UPDATE authors SET name = 'JANE austen' WHERE author_id = 3"
    assert refuse_dml(library, update) == SAME_NAME
    both = "INSERT INTO parents (id, code) VALUES (7, 70), (8, 70)"
    assert refuse_dml(library, both) == SAME_CODE.format(70, 7, 7)
    earlier = (
        "INSERT INTO parents (id, code) VALUES (7, 70)",
        "UPDATE parents SET code = 70 WHERE id = 3",
    )
    assert refuse_dml(library, *earlier) == SAME_CODE.format(70, 7, 7)
    assert refuse_dml(library, "UPDATE parents SET code = 5 WHERE id > 0") in {
        SAME_CODE.format(5, other, other) for other in (1, 2, 3)
    }
    nulled = "UPDATE books SET pages = NULL WHERE title = 'Emma'"
    assert refuse_dml(library, nulled) == NULL_PAGES
    assert refuse_dml(library, "DELETE FROM authors WHERE author_id = 1") == CHILD
    assert refuse_dml(library, "DELETE FROM parents WHERE id = 1") == REFERENCED
    assert ask(library, "SELECT id, code FROM parents ORDER BY id").rows == [
        (1, 10),
        (2, None),
        (3, 30),
    ]


@pytest.mark.both_dialects
def test_the_transaction_of_a_refused_statement_keeps_what_it_has_written(
    library: Database,
) -> None:
    with pytest.raises(GoogleAPICallError, match="by_code at index key"):
        library.run_in_transaction(write_and_fail)
    with library.batch() as batch:
        batch.insert("parents", ["id", "code"], [(4, 40)])
    assert ask(library, "SELECT id FROM parents ORDER BY id").rows == [(1,), (2,), (3,), (4,)]


def write_and_fail(transaction: object) -> None:
    execute = transaction.execute_update  # type: ignore[attr-defined]
    execute("INSERT INTO parents (id, code) VALUES (5, 50)")
    with pytest.raises(GoogleAPICallError):
        execute("UPDATE parents SET code = 50 WHERE id = 3")
    rows = transaction.execute_sql("SELECT id FROM parents WHERE code = 50")  # type: ignore[attr-defined]
    assert list(rows) == [[5]]
