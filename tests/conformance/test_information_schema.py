"""INFORMATION_SCHEMA tells the schema as Spanner does."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database
from talk import rows

OPTION = "OPTIONS (allow_commit_timestamp = true)"
SCHEMA = (
    f"""CREATE TABLE Base (
      A INT64, B STRING(9), C BYTES(MAX) NOT NULL, D ARRAY<FLOAT64>, E TIMESTAMP {OPTION},
      F INT64 AS (A + 1) STORED, G STRING(MAX) DEFAULT ('x'), H NUMERIC,
      CONSTRAINT positive CHECK (A > 0)) PRIMARY KEY (A, B DESC)""",
    """CREATE TABLE Child (A INT64, B STRING(9), K BOOL,
      CONSTRAINT fk FOREIGN KEY (A) REFERENCES Other (X) ON DELETE CASCADE)
      PRIMARY KEY (A, B DESC, K), INTERLEAVE IN PARENT Base ON DELETE CASCADE""",
    "CREATE TABLE Other (X INT64) PRIMARY KEY (X)",
    "CREATE UNIQUE NULL_FILTERED INDEX ByH ON Base (H DESC) STORING (G)",
    "CREATE CHANGE STREAM Changes FOR Base(G), Child OPTIONS (retention_period = '36h')",
)
ORDERED = (SCHEMA[2], SCHEMA[0], SCHEMA[1], *SCHEMA[3:])
pytestmark = pytest.mark.ddl(*ORDERED)
FROM = "FROM INFORMATION_SCHEMA"


def test_tables_and_their_families(database: Database) -> None:
    columns = "TABLE_NAME, TABLE_TYPE, PARENT_TABLE_NAME, ON_DELETE_ACTION, INTERLEAVE_TYPE"
    tables = rows(database, f"SELECT {columns} {FROM}.TABLES WHERE TABLE_SCHEMA = '' ORDER BY 1")
    assert tables == [
        ["Base", "BASE TABLE", None, None, None],
        ["Child", "BASE TABLE", "Base", "CASCADE", "IN PARENT"],
        ["Other", "BASE TABLE", None, None, None],
    ]
    system = f"SELECT COUNT(*) {FROM}.TABLES WHERE TABLE_SCHEMA = 'INFORMATION_SCHEMA'"
    assert rows(database, f"{system} AND TABLE_TYPE = 'VIEW'")[0][0] > 10
    named = rows(database, f"SELECT SCHEMA_NAME {FROM}.SCHEMATA ORDER BY 1")
    assert named == [[""], ["INFORMATION_SCHEMA"], ["SPANNER_SYS"]]


def test_columns_in_their_order(database: Database) -> None:
    columns = "COLUMN_NAME, SPANNER_TYPE, IS_NULLABLE, IS_GENERATED, IS_STORED, COLUMN_DEFAULT"
    listed = rows(
        database,
        f"SELECT {columns}, GENERATION_EXPRESSION {FROM}.COLUMNS WHERE TABLE_NAME = 'Base'"
        " ORDER BY ORDINAL_POSITION",
    )
    assert listed == [
        ["A", "INT64", "YES", "NEVER", None, None, None],
        ["B", "STRING(9)", "YES", "NEVER", None, None, None],
        ["C", "BYTES(MAX)", "NO", "NEVER", None, None, None],
        ["D", "ARRAY<FLOAT64>", "YES", "NEVER", None, None, None],
        ["E", "TIMESTAMP", "YES", "NEVER", None, None, None],
        ["F", "INT64", "YES", "ALWAYS", "YES", None, "A + 1"],
        ["G", "STRING(MAX)", "YES", "NEVER", None, "'x'", None],
        ["H", "NUMERIC", "YES", "NEVER", None, None, None],
    ]
    options = f"SELECT COLUMN_NAME, OPTION_NAME, OPTION_TYPE, OPTION_VALUE {FROM}.COLUMN_OPTIONS"
    assert rows(database, options) == [["E", "allow_commit_timestamp", "BOOL", "TRUE"]]


def test_indexes_with_the_primary_keys(database: Database) -> None:
    columns = "INDEX_NAME, INDEX_TYPE, IS_UNIQUE, IS_NULL_FILTERED, INDEX_STATE"
    where = "WHERE TABLE_NAME = 'Base' ORDER BY INDEX_TYPE, 1"
    assert rows(database, f"SELECT {columns} {FROM}.INDEXES {where}") == [
        ["ByH", "INDEX", True, True, "READ_WRITE"],
        ["PRIMARY_KEY", "PRIMARY_KEY", True, False, None],
    ]
    parts = "INDEX_NAME, COLUMN_NAME, ORDINAL_POSITION, COLUMN_ORDERING, IS_NULLABLE, SPANNER_TYPE"
    where = "WHERE TABLE_NAME = 'Base' ORDER BY INDEX_NAME, ORDINAL_POSITION"
    assert rows(database, f"SELECT {parts} {FROM}.INDEX_COLUMNS {where}") == [
        ["ByH", "G", None, None, "YES", "STRING(MAX)"],
        ["ByH", "H", 1, "DESC", "NO", "NUMERIC"],
        ["PRIMARY_KEY", "A", 1, "ASC", "YES", "INT64"],
        ["PRIMARY_KEY", "B", 2, "DESC", "YES", "STRING(9)"],
    ]


def test_constraints(database: Database) -> None:
    named = "('PK_Base', 'positive', 'fk', 'PK_Child')"
    columns = "CONSTRAINT_NAME, TABLE_NAME, CONSTRAINT_TYPE"
    where = f"WHERE CONSTRAINT_NAME IN {named} ORDER BY 1"
    assert rows(database, f"SELECT {columns} {FROM}.TABLE_CONSTRAINTS {where}") == [
        ["PK_Base", "Base", "PRIMARY KEY"],
        ["PK_Child", "Child", "PRIMARY KEY"],
        ["fk", "Child", "FOREIGN KEY"],
        ["positive", "Base", "CHECK"],
    ]
    clause = f"SELECT CHECK_CLAUSE {FROM}.CHECK_CONSTRAINTS WHERE CONSTRAINT_NAME = 'positive'"
    assert rows(database, clause) == [["A > 0"]]
    columns = "CONSTRAINT_NAME, UNIQUE_CONSTRAINT_NAME, MATCH_OPTION, UPDATE_RULE, DELETE_RULE"
    assert rows(database, f"SELECT {columns} {FROM}.REFERENTIAL_CONSTRAINTS") == [
        ["fk", "PK_Other", "SIMPLE", "NO ACTION", "CASCADE"]
    ]
    columns = "CONSTRAINT_NAME, COLUMN_NAME, ORDINAL_POSITION, POSITION_IN_UNIQUE_CONSTRAINT"
    where = "WHERE CONSTRAINT_NAME IN ('PK_Base', 'fk') ORDER BY 1, 3"
    assert rows(database, f"SELECT {columns} {FROM}.KEY_COLUMN_USAGE {where}") == [
        ["PK_Base", "A", 1, None],
        ["PK_Base", "B", 2, None],
        ["fk", "A", 1, 1],
    ]
    usage = f"SELECT TABLE_NAME, COLUMN_NAME {FROM}.CONSTRAINT_COLUMN_USAGE"
    assert rows(database, f"{usage} WHERE CONSTRAINT_NAME = 'fk'") == [["Other", "X"]]
    usage = f"SELECT TABLE_NAME {FROM}.CONSTRAINT_TABLE_USAGE WHERE CONSTRAINT_NAME = 'positive'"
    assert rows(database, usage) == [["Base"]]


def test_not_null_is_a_check_too(database: Database) -> None:
    where = "WHERE CONSTRAINT_NAME = 'CK_IS_NOT_NULL_Base_C'"
    clause = f"SELECT CHECK_CLAUSE {FROM}.CHECK_CONSTRAINTS {where}"
    assert rows(database, clause) == [["C IS NOT NULL"]]


def test_change_streams(database: Database) -> None:
    assert rows(database, f"SELECT CHANGE_STREAM_NAME, `ALL` {FROM}.CHANGE_STREAMS") == [
        ["Changes", False]
    ]
    tables = f"SELECT TABLE_NAME, ALL_COLUMNS {FROM}.CHANGE_STREAM_TABLES ORDER BY 1"
    assert rows(database, tables) == [["Base", False], ["Child", True]]
    columns = f"SELECT TABLE_NAME, COLUMN_NAME {FROM}.CHANGE_STREAM_COLUMNS"
    assert rows(database, columns) == [["Base", "G"]]
    options = f"SELECT OPTION_NAME, OPTION_VALUE {FROM}.CHANGE_STREAM_OPTIONS"
    assert rows(database, options) == [["retention_period", "36h"]]


def test_the_dialect_is_an_option(database: Database) -> None:
    options = f"SELECT OPTION_VALUE {FROM}.DATABASE_OPTIONS"
    assert rows(database, f"{options} WHERE OPTION_NAME = 'database_dialect'") == [
        ["GOOGLE_STANDARD_SQL"]
    ]


def test_it_is_read_only_and_named_in_any_case(database: Database) -> None:
    lower = "select table_name from information_schema.tables where table_name = 'Other'"
    assert rows(database, lower) == [["Other"]]
    with pytest.raises(exceptions.InvalidArgument, match="Table not found"):
        rows(database, f"SELECT * {FROM}.NOTHING")
    with pytest.raises(exceptions.InvalidArgument):
        database.run_in_transaction(
            lambda t: t.execute_update("DELETE FROM INFORMATION_SCHEMA.TABLES WHERE TRUE")
        )


@pytest.mark.ddl(*ORDERED, "CREATE ROLE auditor")
def test_roles_routines_and_dependencies(database: Database) -> None:
    roles = rows(database, f"SELECT ROLE_NAME, IS_SYSTEM {FROM}.ROLES ORDER BY IS_SYSTEM, 1")
    assert roles[0] == ["auditor", False]
    assert ["public", True] in roles
    routines = rows(database, f"SELECT ROUTINE_NAME, ROUTINE_TYPE {FROM}.ROUTINES")
    assert routines == [["READ_Changes", "FUNCTION"]]
    names = rows(
        database,
        f"SELECT PARAMETER_NAME {FROM}.PARAMETERS WHERE SPECIFIC_NAME = 'READ_Changes'"
        " ORDER BY ORDINAL_POSITION",
    )
    assert [name for (name,) in names] == [
        "start_timestamp",
        "end_timestamp",
        "partition_token",
        "heartbeat_milliseconds",
        "read_options",
    ]
    usage = rows(
        database, f"SELECT TABLE_NAME, COLUMN_NAME, DEPENDENT_COLUMN {FROM}.COLUMN_COLUMN_USAGE"
    )
    assert usage == [["Base", "A", "F"]]


@pytest.mark.ddl(
    "CREATE TABLE P (A INT64, B INT64) PRIMARY KEY (A)",
    "CREATE TABLE C (K INT64, A INT64, B INT64, FOREIGN KEY (A) REFERENCES P (A),"
    " FOREIGN KEY (B) REFERENCES P (B), FOREIGN KEY (K) REFERENCES P (A)) PRIMARY KEY (K)",
)
def test_foreign_keys_have_indexes_of_their_own(database: Database) -> None:
    managed = rows(
        database,
        f"SELECT TABLE_NAME, IS_UNIQUE, IS_NULL_FILTERED, INDEX_NAME {FROM}.INDEXES"
        " WHERE SPANNER_IS_MANAGED ORDER BY TABLE_NAME, INDEX_NAME",
    )
    assert [row[:3] for row in managed] == [
        *(["C", False, True] for _ in "ABK"),
        ["P", True, True],
    ]
    assert managed[0][3].startswith("IDX_C_A_N_")
    columns = rows(
        database,
        f"SELECT COLUMN_NAME {FROM}.INDEX_COLUMNS WHERE INDEX_NAME = '{managed[3][3]}'",
    )
    assert columns == [["B"]]


@pytest.mark.ddl(
    "CREATE SCHEMA S",
    "CREATE TABLE P (A INT64 NOT NULL, B INT64 NOT NULL, C INT64 NOT NULL) PRIMARY KEY (A, B DESC)",
    "CREATE TABLE S.P (A INT64, B INT64) PRIMARY KEY (A)",
    "CREATE TABLE C (K INT64, X INT64, Y INT64,"
    " CONSTRAINT F FOREIGN KEY (X, Y) REFERENCES P (C, B),"
    " CONSTRAINT G FOREIGN KEY (X, Y) REFERENCES P (B, A)) PRIMARY KEY (K)",
    "CREATE TABLE S.C (K INT64, X INT64, Y INT64,"
    " CONSTRAINT F FOREIGN KEY (X) REFERENCES S.P (A), CHECK (X > 0)) PRIMARY KEY (K)",
)
def test_a_foreign_key_refers_to_a_unique_constraint(database: Database) -> None:
    """The primary key, in whichever order, or an index that Spanner keeps; each in its schema."""
    keys = rows(
        database,
        "SELECT R.CONSTRAINT_SCHEMA, R.CONSTRAINT_NAME, C.COLUMN_NAME, P.TABLE_NAME, P.COLUMN_NAME,"
        " STARTS_WITH(T.CONSTRAINT_NAME, 'IDX_P_B_C_U_'), T.CONSTRAINT_TYPE"
        f" {FROM}.REFERENTIAL_CONSTRAINTS R JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE C"
        " ON C.CONSTRAINT_SCHEMA = R.CONSTRAINT_SCHEMA AND C.CONSTRAINT_NAME = R.CONSTRAINT_NAME"
        " JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE P"
        " ON P.CONSTRAINT_SCHEMA = R.UNIQUE_CONSTRAINT_SCHEMA"
        " AND P.CONSTRAINT_NAME = R.UNIQUE_CONSTRAINT_NAME"
        " AND P.ORDINAL_POSITION = C.POSITION_IN_UNIQUE_CONSTRAINT"
        " JOIN INFORMATION_SCHEMA.TABLE_CONSTRAINTS T"
        " ON T.CONSTRAINT_SCHEMA = P.CONSTRAINT_SCHEMA AND T.CONSTRAINT_NAME = P.CONSTRAINT_NAME"
        " ORDER BY 1, 2, C.ORDINAL_POSITION",
    )
    assert keys == [
        ["", "F", "X", "P", "C", True, "UNIQUE"],
        ["", "F", "Y", "P", "B", True, "UNIQUE"],
        ["", "G", "X", "P", "B", False, "PRIMARY KEY"],
        ["", "G", "Y", "P", "A", False, "PRIMARY KEY"],
        ["S", "F", "X", "P", "A", False, "PRIMARY KEY"],
    ]
    names = rows(
        database,
        f"SELECT CONSTRAINT_NAME {FROM}.TABLE_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'S'"
        " AND CONSTRAINT_TYPE = 'CHECK' AND NOT STARTS_WITH(CONSTRAINT_NAME, 'CK_IS_')",
    )
    assert names[0][0].startswith("CK_C_")
    usage = rows(
        database,
        f"SELECT COLUMN_NAME {FROM}.CONSTRAINT_COLUMN_USAGE"
        " WHERE STARTS_WITH(CONSTRAINT_NAME, 'IDX_P_B_C_U_') ORDER BY 1",
    )
    assert usage == [["B"], ["C"]]


EMPTY = (
    *("INFORMATION_SCHEMA.SPANNER_STATISTICS", "INFORMATION_SCHEMA.TABLE_PRIVILEGES"),
    *("INFORMATION_SCHEMA.COLUMN_PRIVILEGES", "INFORMATION_SCHEMA.ROLE_GRANTEES"),
    *("INFORMATION_SCHEMA.ROUTINE_OPTIONS", "INFORMATION_SCHEMA.ROUTINE_PRIVILEGES"),
    *("INFORMATION_SCHEMA.CHANGE_STREAM_PRIVILEGES", "INFORMATION_SCHEMA.ROLE_TABLE_GRANTS"),
    *("INFORMATION_SCHEMA.PLACEMENT_OPTIONS", "INFORMATION_SCHEMA.LOCALITY_GROUP_OPTIONS"),
    *("INFORMATION_SCHEMA.MODELS", "INFORMATION_SCHEMA.PROPERTY_GRAPHS"),
    *("SPANNER_SYS.TXN_STATS_TOP_MINUTE", "SPANNER_SYS.TXN_STATS_TOTAL_HOUR"),
    *("SPANNER_SYS.LOCK_STATS_TOP_10MINUTE", "SPANNER_SYS.LOCK_STATS_TOTAL_MINUTE"),
    *("SPANNER_SYS.READ_STATS_TOP_HOUR", "SPANNER_SYS.READ_STATS_TOTAL_10MINUTE"),
    *("SPANNER_SYS.OLDEST_ACTIVE_QUERIES", "SPANNER_SYS.TABLE_OPERATIONS_STATS_HOUR"),
    "SPANNER_SYS.ROW_DELETION_POLICIES",
)


@pytest.mark.parametrize("table", EMPTY)
def test_what_is_not_known_is_an_empty_table(database: Database, table: str) -> None:
    assert rows(database, f"SELECT * FROM {table}") == []


def test_the_versions_of_the_optimizer(database: Database) -> None:
    versions = rows(
        database,
        "SELECT VERSION, IS_DEFAULT FROM SPANNER_SYS.SUPPORTED_OPTIMIZER_VERSIONS ORDER BY 1",
    )
    assert versions[7] == [8, True]
    assert len(versions) == 9


def test_statistics_of_all_queries_together(database: Database) -> None:
    rows(database, "SELECT 1")
    rows(database, "SELECT 2")
    total = rows(
        database,
        "SELECT SUM(EXECUTION_COUNT) FROM SPANNER_SYS.QUERY_STATS_TOTAL_HOUR",
    )
    assert total[0][0] >= 2
    shown = rows(database, "SELECT AVG_BYTES, QUERY_TYPE FROM SPANNER_SYS.QUERY_STATS_TOP_HOUR")
    assert [None, "QUERY"] in shown
