"""A DEFAULT, a generated column and a backfilled column hold what an INSERT of the same expression
would have written, for every type, in both dialects, by every way to write."""

from __future__ import annotations

from fixtures.music import BUNDLE, DESCRIPTORS, GENRE, HOME, SINGER
from fixtures.postgres_databases import CreatePostgres
from fixtures.server import CreateDatabase
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

GOOGLESQL = [
    ("BOOL", "TRUE"),
    ("INT64", "7"),
    ("FLOAT64", "1"),
    ("FLOAT64", "1.5"),
    ("FLOAT32", "1"),
    ("FLOAT32", "0.1"),
    ("NUMERIC", "0"),
    ("NUMERIC", "1.25"),
    ("NUMERIC", "CAST(3 AS INT64)"),
    ("NUMERIC", "NUMERIC '0.5'"),
    ("STRING(MAX)", "'a'"),
    ("BYTES(MAX)", "b'a'"),
    ("DATE", "'2024-1-2'"),
    ("DATE", "DATE '2024-01-02'"),
    ("TIMESTAMP", "'2024-01-02 03:04:05+01'"),
    ("TIMESTAMP", "TIMESTAMP '2024-01-02T03:04:05.123456789Z'"),
    ("JSON", 'JSON \'{"b": 1, "a": 1.0}\''),
    ("UUID", "'6F1C7C1E-6D0A-4C3B-9D55-1F7F0C2A9B01'"),
    ("ARRAY<INT64>", "[1, NULL]"),
    ("ARRAY<FLOAT64>", "[1, 2]"),
    ("ARRAY<NUMERIC>", "[1.5, 2.5]"),
    ("ARRAY<NUMERIC>", "[1, 2.5]"),
    ("ARRAY<DATE>", "['2024-01-02']"),
    ("ARRAY<TIMESTAMP>", "['2024-01-02T03:04:05Z']"),
    ("ARRAY<STRING(MAX)>", "[]"),
    ("ARRAY<BYTES(MAX)>", "[b'a']"),
    ("ARRAY<FLOAT32>", "[0.1]"),
    ("STRING(MAX)", "NULL"),
    ("NUMERIC", "IF(TRUE, 1, 2)"),
    ("FLOAT64", "COALESCE(NULL, 1)"),
]
PROTOS = [
    (GENRE, "3"),
    (GENRE, "'FOLK'"),
    (GENRE, f"CAST('ROCK' AS {GENRE})"),
    (GENRE, f"CAST(2 AS {GENRE})"),
    ("Mood", "7"),
    (f"ARRAY<{GENRE}>", f"[CAST(1 AS {GENRE}), NULL]"),
    (f"ARRAY<{GENRE}>", "[1, 2]"),
    (SINGER, "'singer_id: 1 genre: FOLK songs: \"a\"'"),
    (SINGER, "b'\\x08\\x05'"),
    (SINGER, f"NEW {SINGER}(1 AS singer_id, NEW {HOME}(1999 AS start_year) AS home)"),
    (SINGER, f"CAST('nationality: \"FR\"' AS {SINGER})"),
    (f"ARRAY<{HOME}>", f"[NEW {HOME}(2000 AS start_year), NULL]"),
    ("Note", "NULL"),
]
"""Messages and enums, also from literals that become one."""
POSTGRESQL = [
    ("boolean", "true"),
    ("boolean", "'t'"),
    ("bigint", "7"),
    ("bigint", "'7'"),
    ("double precision", "1"),
    ("double precision", "1.5"),
    ("real", "1"),
    ("real", "0.1"),
    ("numeric", "0"),
    ("numeric", "1.250"),
    ("numeric", "'1.5'"),
    ("text", "'a'"),
    ("varchar(10)", "'a'"),
    ("bytea", "'\\x61'"),
    ("date", "'2024-01-02'"),
    ("timestamptz", "'2024-01-02 03:04:05+01'"),
    ("jsonb", '\'{"b": 1, "a": 1.0}\''),
    ("uuid", "'6F1C7C1E-6D0A-4C3B-9D55-1F7F0C2A9B01'"),
    ("bigint[]", "'{1,NULL}'"),
    ("bigint[]", "ARRAY[1, 2]"),
    ("double precision[]", "ARRAY[1.5, 2]"),
    ("numeric[]", "'{1,2.5}'"),
    ("text[]", "'{a}'"),
    ("numeric", "1 + 1"),
]


def check(database: Database, cases: list[tuple[str, str]], table: str) -> None:
    """Row 1 is written by INSERT; each other one takes the value from the schema."""
    numbered = list(enumerate(cases))

    def change(statement: str) -> None:
        database.update_ddl(
            [statement.format(t=f"t{n}", type=type_, value=value) for n, (type_, value) in numbered]
        ).result(60)

    def run(*statements: str) -> None:
        def work(transaction: Transaction) -> None:
            for n, (_, value) in numbered:
                for statement in statements:
                    transaction.execute_update(statement.format(t=f"t{n}", value=value))

        database.run_in_transaction(work)

    change(table)
    run(
        "INSERT INTO {t} (id, v, d, a) VALUES (1, {value}, {value}, {value})",
        "INSERT INTO {t} (id) VALUES (2)",
        "INSERT INTO {t} (id, d) VALUES (3, DEFAULT)",
        "INSERT INTO {t} (id, d) VALUES (4, NULL)",
        "UPDATE {t} SET d = DEFAULT WHERE id = 4",
    )
    change("ALTER TABLE {t} ALTER COLUMN a SET DEFAULT ({value})")
    with database.batch() as batch:
        for n, _ in numbered:
            batch.insert(f"t{n}", ["id"], [[5]])
            batch.insert_or_update(f"t{n}", ["id"], [[6]])
            batch.replace(f"t{n}", ["id"], [[7]])
    change("ALTER TABLE {t} ADD COLUMN b {type} DEFAULT ({value})")
    for n, case in numbered:
        with database.snapshot() as snapshot:
            found = snapshot.execute_sql(f"SELECT id, v, d, a, g, b FROM t{n}")
            rows = {row[0]: row[1:] for row in found}
        wanted = rows[1][0]
        assert rows[1] == [wanted] * 5, case
        for number in range(2, 8):
            _, by_default, by_alter, by_generation, backfilled = rows[number]
            assert [by_default, by_generation, backfilled] == [wanted] * 3, (case, number)
            assert by_alter == (wanted if number > 4 else None), (case, number)


COLUMNS = "id INT64 NOT NULL, v {type}, d {type} DEFAULT ({value}), a {type}"
TABLE = f"CREATE TABLE {{t}} ({COLUMNS}, g {{type}} AS ({{value}}) STORED) PRIMARY KEY (id)"


def test_a_default_is_what_an_insert_writes(create_database: CreateDatabase) -> None:
    check(create_database(), GOOGLESQL, TABLE)


def test_a_default_of_a_message_or_an_enum_is_what_an_insert_writes(
    create_database: CreateDatabase,
) -> None:
    check(create_database(BUNDLE, proto_descriptors=DESCRIPTORS), PROTOS, TABLE)


def test_a_default_is_what_an_insert_writes_in_postgresql(create_postgres: CreatePostgres) -> None:
    columns = "id bigint PRIMARY KEY, v {type}, d {type} DEFAULT ({value}), a {type}"
    generated = "g {type} GENERATED ALWAYS AS ({value}) STORED"
    check(create_postgres(), POSTGRESQL, f"CREATE TABLE {{t}} ({columns}, {generated})")
