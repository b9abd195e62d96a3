"""Generated columns, defaults, ON UPDATE, CHECK, NOT NULL and lengths."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database
from talk import SENTINEL, change, commit, ddl, delete, dml, insert, read, rows

OPTION = "OPTIONS (allow_commit_timestamp = true)"
GENERATED = (
    """CREATE TABLE T (K INT64, V1 INT64, V2 INT64, V3 INT64,
      G1 INT64 AS (G2 + 1) STORED, G2 INT64 NOT NULL AS (V1 + V2) STORED,
      G3 INT64 AS (G1) STORED) PRIMARY KEY (K)""",
    "CREATE UNIQUE INDEX ByG3 ON T (G3)",
    """CREATE TABLE Refers (K INT64, G INT64 AS (K) STORED, FOREIGN KEY (G) REFERENCES T (G3))
      PRIMARY KEY (K)""",
)


@pytest.mark.ddl(*GENERATED)
def test_a_generated_column_follows_every_kind_of_mutation(database: Database) -> None:
    for method, key, value in (
        ("insert", 1, 1),
        ("update", 1, 2),
        ("insert_or_update", 1, 3),
        ("insert_or_update", 2, 4),
        ("replace", 1, 5),
        ("replace", 2, 6),
    ):
        commit(database, change(method, "T", "K V1 V2", (key, value, value)))
        twice = 2 * value
        assert read(database, "T", "K G1 G2 G3")[key - 1] == [key, twice + 1, twice, twice + 1]
        assert [key, twice + 1] in read(database, "T", "K G3", index="ByG3")
    commit(database, delete("T", [2]))
    assert read(database, "T", "K G3", index="ByG3") == [[1, 11]]
    with pytest.raises(exceptions.AlreadyExists, match=r"(?i)unique"):
        commit(database, insert("T", "K V1 V2", (2, 5, 5)))


@pytest.mark.ddl(*GENERATED)
def test_a_generated_column_follows_dml_and_many_mutations_of_a_row(database: Database) -> None:
    dml(
        database,
        "INSERT INTO T (K, V1, V2, V3) VALUES (1, 1, 1, 1)",
        "UPDATE T SET V1 = 2, V2 = 2, V3 = 2 WHERE K = 1",
    )
    assert rows(database, "SELECT G1, G2, G3 FROM T") == [[5, 4, 5]]
    commit(
        database,
        insert("T", "K V1 V2", (2, 1, 1)),
        change("update", "T", "K V1 V2", (2, 1, 2)),
        change("update", "T", "K V1 V2", (2, 3, 3)),
    )
    assert rows(database, "SELECT G1, G2, G3 FROM T WHERE K = 2") == [[7, 6, 7]]


@pytest.mark.ddl(*GENERATED)
def test_constraints_judge_a_generated_column(database: Database) -> None:
    with pytest.raises(exceptions.FailedPrecondition, match=r"(?i)null"):
        commit(database, insert("T", "K V1", (1, 1)))
    with pytest.raises(exceptions.FailedPrecondition, match="Foreign key"):
        commit(database, insert("Refers", "K", (3,)))
    commit(database, insert("T", "K V1 V2", (1, 1, 1)), insert("Refers", "K", (3,)))
    with pytest.raises(exceptions.FailedPrecondition, match="Foreign key"):
        commit(database, delete("T", [1]))


@pytest.mark.parametrize("method", ["insert", "update", "insert_or_update", "replace"])
@pytest.mark.ddl(*GENERATED)
def test_a_generated_column_is_not_written(database: Database, method: str) -> None:
    with pytest.raises(exceptions.FailedPrecondition, match="generated column"):
        commit(database, change(method, "T", "K V1 V2 G1", (1, 1, 1, 3)))
    for sql in (
        "INSERT INTO T (k, v1, v2, g1) VALUES (2, 2, 2, 5)",
        "UPDATE T SET g1 = 4 WHERE k = 1",
    ):
        with pytest.raises(exceptions.InvalidArgument):
            dml(database, sql)


@pytest.mark.ddl(
    """CREATE TABLE T (K1 INT64, K2 INT64, K3 INT64 NOT NULL AS (K2) STORED, V INT64 NOT NULL)
      PRIMARY KEY (K1, K3)"""
)
def test_a_generated_key_is_computed_and_names_the_row(database: Database) -> None:
    commit(database, insert("T", "K1 K2 V", (1, 1, 5), (1, 2, 6), (2, 1, 7)))
    with pytest.raises(exceptions.AlreadyExists):
        commit(database, insert("T", "K1 K2 V", (1, 2, 9)))
    with pytest.raises(exceptions.FailedPrecondition):
        commit(database, insert("T", "K1 K3 V", (3, 4, 9)))
    commit(database, change("update", "T", "K1 K3 V", (1, 2, 100)))
    commit(database, change("insert_or_update", "T", "K1 K2 V", (2, 1, 200), (9, 9, 9)))
    commit(database, delete("T", [1, 1]))
    stored = read(database, "T", "K1 K2 K3 V")
    assert stored == [[1, 2, 2, 100], [2, 1, 1, 200], [9, 9, 9, 9]]
    with pytest.raises(exceptions.FailedPrecondition):
        commit(database, change("update", "T", "K1 V", (1, 1000)))
    with pytest.raises(exceptions.FailedPrecondition):
        commit(database, delete("T", [1]))


DEFAULTS = (
    """CREATE TABLE T (K INT64, D1 INT64 DEFAULT (1), G INT64 AS (D1 + 1) STORED,
      D2 INT64 NOT NULL DEFAULT (2)) PRIMARY KEY (K)""",
    "CREATE UNIQUE INDEX ByD2 ON T (D2)",
    "CREATE TABLE Nothing (K INT64, A INT64, B INT64 NOT NULL DEFAULT (NULL)) PRIMARY KEY (K)",
    """CREATE TABLE Converted (K INT64, N NUMERIC DEFAULT (CAST(1 AS NUMERIC)),
      F FLOAT64 DEFAULT (CAST(1 AS FLOAT64))) PRIMARY KEY (K)""",
    "CREATE TABLE Refers (K INT64, D INT64 DEFAULT (3), FOREIGN KEY (D) REFERENCES T (D2))"
    " PRIMARY KEY (K)",
    f"""CREATE TABLE Timed (K INT64, `At` TIMESTAMP {OPTION},
      Made TIMESTAMP DEFAULT (PENDING_COMMIT_TIMESTAMP()) {OPTION}) PRIMARY KEY (K)""",
)


@pytest.mark.ddl(*DEFAULTS)
def test_a_default_fills_what_an_insert_leaves_out(database: Database) -> None:
    commit(database, insert("T", "K", (1,)), insert("T", "K D2", (2, 3)))
    commit(database, insert("T", "K D1 D2", (3, 11, 4)), insert("Converted", "K", (1,)))
    assert read(database, "T", "K D1 G D2") == [[1, 1, 2, 2], [2, 1, 2, 3], [3, 11, 12, 4]]
    assert read(database, "Converted", "N F") == [[Decimal(1), 1.0]]
    for row in ((1, 9), (9, 2)):
        with pytest.raises(exceptions.AlreadyExists):
            commit(database, insert("T", "K D2", row))
    with pytest.raises(exceptions.FailedPrecondition, match=r"(?i)null"):
        commit(database, insert("T", "K D2", (9, None)))


@pytest.mark.ddl(*DEFAULTS)
def test_an_update_does_not_fill_defaults_and_a_replace_does(database: Database) -> None:
    commit(database, change("insert_or_update", "T", "K D1 D2", (1, 11, 22)))
    commit(database, change("insert_or_update", "T", "K", (1,)))
    commit(database, change("insert_or_update", "T", "K D2", (2, 3)))
    commit(database, change("update", "T", "K D1", (2, 111)))
    assert read(database, "T", "K D1 G D2") == [[1, 11, 12, 22], [2, 111, 112, 3]]
    with pytest.raises(exceptions.AlreadyExists):
        commit(database, change("replace", "T", "K D2", (2, 22)))
    commit(database, change("replace", "T", "K D2", (1, 22)))
    assert read(database, "T", "K D1 G D2")[0] == [1, 1, 2, 22]
    with pytest.raises(exceptions.NotFound):
        commit(database, change("update", "T", "K D2", (9, 9)))


@pytest.mark.ddl(*DEFAULTS)
def test_a_default_is_judged_by_foreign_keys(database: Database) -> None:
    with pytest.raises(exceptions.FailedPrecondition, match="Foreign key"):
        commit(database, insert("Refers", "K", (3,)))
    commit(database, insert("T", "K D2", (1, 3)))
    commit(database, insert("Refers", "K", (3,)))
    with pytest.raises(exceptions.FailedPrecondition, match="Foreign key"):
        commit(database, delete("T", [1]))


@pytest.mark.ddl(*DEFAULTS)
def test_dml_says_default(database: Database) -> None:
    dml(database, "INSERT INTO T (K, D1, D2) VALUES (3, 300, DEFAULT), (4, DEFAULT, 400)")
    assert rows(database, "SELECT K, D1, G, D2 FROM T ORDER BY K") == [
        [3, 300, 301, 2],
        [4, 1, 2, 400],
    ]
    dml(database, "UPDATE T SET D1 = DEFAULT WHERE K = 3")
    assert rows(database, "SELECT D1 FROM T WHERE K = 3") == [[1]]
    for sql in ("DELETE FROM T WHERE D1 = DEFAULT", "UPDATE T SET D2 = 4 WHERE D1 = DEFAULT"):
        with pytest.raises(exceptions.InvalidArgument):
            dml(database, sql)
    dml(database, "INSERT INTO T (K, D2) SELECT K + 10, D2 + 10 FROM T")
    assert rows(database, "SELECT D1 FROM T WHERE K = 13") == [[1]]


@pytest.mark.ddl(*DEFAULTS)
def test_a_default_commit_timestamp_is_written_at_insert_only(database: Database) -> None:
    early = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
    commit(database, insert("Timed", "K At Made", (1, early, early)))
    at = commit(database, insert("Timed", "K At", (2, SENTINEL)))
    commit(database, change("insert_or_update", "Timed", "K", (1,)))
    dml(database, "INSERT INTO Timed (K, `At`) VALUES (3, PENDING_COMMIT_TIMESTAMP())")
    assert read(database, "Timed", "K Made")[:2] == [[1, early], [2, at]]
    assert rows(database, "SELECT K FROM Timed WHERE `At` = Made ORDER BY K") == [[1], [2], [3]]


ON_UPDATE = f"""CREATE TABLE T (K INT64, `At` TIMESTAMP {OPTION},
  Touched TIMESTAMP DEFAULT (PENDING_COMMIT_TIMESTAMP()) ON UPDATE (PENDING_COMMIT_TIMESTAMP())
  {OPTION}) PRIMARY KEY (K)"""


def second(number: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(number, datetime.UTC)


@pytest.mark.ddl(ON_UPDATE)
def test_on_update_follows_mutations_of_other_columns(database: Database) -> None:
    commit(database, insert("T", "K Touched", (1, second(10)), (2, second(20))))
    commit(database, change("update", "T", "K", (1,)))
    commit(database, change("update", "T", "K Touched", (2, second(30))))
    assert read(database, "T", "K Touched") == [[1, second(10)], [2, second(30)]]
    at = commit(database, change("update", "T", "K At", (1, SENTINEL)))
    assert read(database, "T", "At Touched")[0] == [at, at]
    at = commit(database, insert("T", "K", (3,)))
    assert read(database, "T", "K Touched")[2] == [3, at]


@pytest.mark.ddl(ON_UPDATE)
def test_on_update_follows_dml_of_other_columns(database: Database) -> None:
    values = "(1, TIMESTAMP_SECONDS(10)), (2, TIMESTAMP_SECONDS(20))"
    dml(database, f"INSERT INTO T (K, Touched) VALUES {values}")
    dml(database, "INSERT OR UPDATE INTO T (K) VALUES (1)")
    dml(database, "UPDATE T SET Touched = TIMESTAMP_SECONDS(30) WHERE K = 2")
    assert read(database, "T", "K Touched") == [[1, second(10)], [2, second(30)]]
    dml(database, "UPDATE T SET `At` = PENDING_COMMIT_TIMESTAMP() WHERE K = 1")
    assert rows(database, "SELECT K FROM T WHERE `At` = Touched") == [[1]]
    with pytest.raises(exceptions.InvalidArgument):
        dml(database, "UPDATE T SET `At` = TIMESTAMP_SECONDS(1) WHERE K = 1 THEN RETURN Touched")


CHECKED = (
    """CREATE TABLE T (K INT64, V INT64, S STRING(MAX), CONSTRAINT positive CHECK (V > 0),
      CONSTRAINT later CHECK (S > '0')) PRIMARY KEY (K)""",
    """CREATE TABLE G (K INT64, V INT64, A INT64 AS (V) STORED, B INT64 AS (V + 5) STORED,
      CONSTRAINT a_positive CHECK (A > 0), CONSTRAINT b_over_ten CHECK (B > 10))
      PRIMARY KEY (K)""",
)


@pytest.mark.ddl(*CHECKED)
def test_a_check_lets_true_and_null_pass(database: Database) -> None:
    commit(database, insert("T", "K V S", (1, 10, "10"), (2, None, None)))
    commit(database, insert("G", "K V", (1, 10), (2, None)))
    commit(database, change("update", "T", "K V", (1, None)))
    commit(database, change("insert_or_update", "T", "K V S", (1, 5, "5")))
    dml(database, "UPDATE G SET V = 20 WHERE K = 1")
    assert read(database, "G", "K V A B") == [[1, 20, 20, 25], [2, None, None, None]]
    assert read(database, "T", "K V S") == [[1, 5, "5"], [2, None, None]]


@pytest.mark.parametrize("method", ["insert", "update", "insert_or_update", "replace"])
@pytest.mark.ddl(*CHECKED)
def test_a_check_refuses_every_kind_of_write(database: Database, method: str) -> None:
    if method != "insert":
        commit(database, insert("T", "K V S", (1, 10, "10")), insert("G", "K V", (1, 10)))
    for table, columns, row, name in (
        ("T", "K V S", (1, -1, "10"), "`T`.`positive`"),
        ("T", "K V S", (1, 1, "-1"), "`T`.`later`"),
        ("G", "K V", (1, 1), "`G`.`b_over_ten`"),
    ):
        with pytest.raises(exceptions.OutOfRange, match=f"Check constraint {name} is violated"):
            commit(database, change(method, table, columns, row))


@pytest.mark.ddl(*CHECKED)
def test_a_check_refuses_dml_and_the_ddl_that_adds_it(database: Database) -> None:
    for sql in ("INSERT INTO T (K, V) VALUES (1, -1)", "INSERT INTO G (K, V) VALUES (1, 1)"):
        with pytest.raises(exceptions.OutOfRange, match="is violated"):
            dml(database, sql)
    commit(database, insert("T", "K V", (1, 5)))
    with pytest.raises(exceptions.OutOfRange, match="is violated"):
        dml(database, "UPDATE T SET V = -5 WHERE K = 1")
    with pytest.raises(exceptions.FailedPrecondition):
        ddl(database, "ALTER TABLE T ADD CONSTRAINT over_nine CHECK (V > 9)")
    ddl(database, "ALTER TABLE T DROP CONSTRAINT positive")
    dml(database, "UPDATE T SET V = -5 WHERE K = 1")


@pytest.mark.ddl(
    "CREATE TABLE T (K INT64 NOT NULL, S STRING(5) NOT NULL, B BYTES(4)) PRIMARY KEY (K)"
)
def test_not_null_and_lengths(database: Database) -> None:
    for columns, row in (("K", (1,)), ("K S", (2, None))):
        with pytest.raises(exceptions.FailedPrecondition):
            commit(database, insert("T", columns, row))
    commit(database, insert("T", "K S", (1, "\U0001f021" * 5)))
    for method in ("insert_or_update", "replace"):
        with pytest.raises(exceptions.FailedPrecondition):
            commit(database, change(method, "T", "K B", (1, b"1234")))
    commit(database, change("update", "T", "K B", (1, b"1234")))
    for columns, too_long in (("K S", (2, "123456")), ("K S B", (2, "a", b"12345"))):
        with pytest.raises(exceptions.FailedPrecondition):
            commit(database, insert("T", columns, too_long))
    for columns in ("K K S", "K S S"):
        with pytest.raises(exceptions.InvalidArgument):
            commit(database, insert("T", columns, (1, 1, "a")))


@pytest.mark.parametrize("kind", ["FLOAT32", "FLOAT64"])
def test_a_vector_has_its_length_and_no_nulls(database: Database, kind: str) -> None:
    vector = f"ARRAY<{kind}>(vector_length=>2)"
    ddl(database, f"CREATE TABLE V (K INT64, E {vector}) PRIMARY KEY (K)")
    commit(database, insert("V", "K E", (1, [1.5, 2.5]), (2, None)))
    for wrong in ([1.5], [1.5, 2.5, 3.5], [1.5, None], []):
        with pytest.raises(exceptions.InvalidArgument):
            commit(database, insert("V", "K E", (3, wrong)))
    with pytest.raises(exceptions.InvalidArgument):
        dml(database, "UPDATE V SET E = [1.0] WHERE K = 1")
    assert read(database, "V", "K E") == [[1, [1.5, 2.5]], [2, None]]
    options = rows(
        database,
        "SELECT SPANNER_TYPE FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME = 'V'"
        " AND COLUMN_NAME = 'E'",
    )
    assert options == [[vector]]
    with pytest.raises((exceptions.FailedPrecondition, exceptions.InvalidArgument)):
        ddl(database, f"ALTER TABLE V ALTER COLUMN E ARRAY<{kind}>(vector_length=>3)")
    database.reload()
    assert vector in "".join(database.ddl_statements)
    assert rows(database, "SELECT DOT_PRODUCT(E, [2, 2]) FROM V WHERE K = 1") == [[8.0]]


@pytest.mark.parametrize(
    "wrong", ["ARRAY<INT64>(vector_length=>2)", "ARRAY<FLOAT64>(vector_length=>2) AS ([1.0, 2.0])"]
)
def test_only_arrays_of_floats_that_are_kept_are_vectors(database: Database, wrong: str) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        ddl(database, f"CREATE TABLE V (K INT64, E {wrong}) PRIMARY KEY (K)")
