"""Functions that a schema defines: CREATE FUNCTION, calls in queries, views, DML and expressions of
tables, and what depends on them."""

from __future__ import annotations

import pytest
from fixtures.queries import ask, change, fill
from fixtures.server import CreateDatabase
from google.api_core.exceptions import (
    FailedPrecondition,
    GoogleAPICallError,
    InvalidArgument,
    MethodNotImplemented,
    NotFound,
)
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database

T = "CREATE TABLE t (k INT64, v INT64) PRIMARY KEY (k)"
INC = "CREATE FUNCTION inc(x INT64) RETURNS INT64 AS (x + 1)"
TWICE = "CREATE FUNCTION s.Twice(x INT64) RETURNS INT64 SQL SECURITY INVOKER AS (x + x)"
NAMED = "CREATE FUNCTION named(a STRING, b STRING DEFAULT 'x') RETURNS STRING AS (CONCAT(a, b))"
TOP = "CREATE FUNCTION top(x INT64) RETURNS INT64 AS ((SELECT MAX(t.k) FROM t) + x)"
pytestmark = pytest.mark.ddl(T, "CREATE SCHEMA s", INC, TWICE, NAMED, TOP)


@pytest.fixture
def rows(database: Database) -> Database:
    fill(database, "INSERT INTO t (k, v) VALUES (1, 10), (2, 20), (3, NULL)")
    return database


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("inc(1)", 2),
        ("INC(1)", 2),
        ("inc(NULL)", None),
        ("s.twice(inc(2))", 6),
        ("S.TWICE(2)", 4),
        ("named('a')", "ax"),
        ("named('a', 'b')", "ab"),
        ("top(1)", 4),
        ("inc((SELECT SUM(u.v) FROM t AS u))", 31),
        ("(SELECT SUM(s.twice(t.v)) FROM t)", 60),
        ("(SELECT s.twice(SUM(inc(t.v))) FROM t)", 64),
        ("(SELECT MAX(top(t.v)) FROM t)", 23),
        ("(SELECT COUNT(*) FROM t WHERE inc(t.k) = 3)", 1),
        ("(SELECT STRING_AGG(CAST(top(t.k) AS STRING), ',' ORDER BY t.k) FROM t)", "4,5,6"),
        ("ARRAY(SELECT s.twice(x) FROM UNNEST([1, 2]) AS x)", [2, 4]),
        ("IF(inc(1) = 2, 'a', 'b')", "a"),
    ],
)
def test_a_call_stands_for_the_body(rows: Database, expression: str, value: object) -> None:
    assert ask(rows, f"SELECT {expression}").rows == [(value,)]


def test_parameters_become_the_types_of_the_arguments(rows: Database) -> None:
    answer = ask(rows, "SELECT inc(@p) AS n, named(@q) AS m", {"p": "4", "q": "z"})
    assert (answer.rows, answer.types) == ([(5, "zx")], ["INT64", "STRING"])
    declared = ask(rows, "SELECT inc(@p)", {"p": 4}, {"p": param_types.INT64})
    assert declared.rows == [(5,)]
    with pytest.raises(InvalidArgument, match="No matching signature for function INC"):
        ask(rows, "SELECT inc(@p)", {"p": "4"}, {"p": param_types.STRING})


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        ("inc()", InvalidArgument, "No matching signature for function INC"),
        ("inc('a')", InvalidArgument, "No matching signature for function INC"),
        ("inc(1, 2)", InvalidArgument, "No matching signature for function INC"),
        ("s.inc(1)", InvalidArgument, "Function not found: s.inc"),
        ("twice(1)", InvalidArgument, "Function not found: twice"),
        ("SAFE.inc(1)", MethodNotImplemented, "SAFE. before"),
        ("(SELECT s.twice(SUM(t.v)) FROM t WHERE x = 1)", InvalidArgument, "Unrecognized name: x"),
        ("top(COUNT(*))", MethodNotImplemented, "An aggregate as an"),
        ("LENGTH(named(GENERATE_UUID())) + inc(9223372036854775807)", GoogleAPICallError, "overf"),
    ],
)
def test_calls_that_are_refused(
    rows: Database, expression: str, error: type[GoogleAPICallError], message: str
) -> None:
    with pytest.raises(error, match=message):
        ask(rows, f"SELECT {expression} FROM t")


def test_a_schema_of_dataflow_templates(database: Database) -> None:
    told = change(
        database,
        "CREATE SCHEMA `my_schema`",
        "CREATE FUNCTION `my_schema`.`MyCustomFunction`(`input_val` INT64) RETURNS INT64 AS"
        " (`input_val` * 2)",
        "CREATE OR REPLACE SCHEMA my_schema",
        "CREATE FUNCTION quoted(`order` STRUCT<a INT64>, b ARRAY<INTERVAL>, c DATE DEFAULT NULL)"
        " RETURNS ARRAY<STRUCT<INT64, STRING>> LANGUAGE SQL AS ([(`order`.a, 'x')])",
    )
    assert (
        "CREATE FUNCTION `my_schema`.`MyCustomFunction`(`input_val` INT64) RETURNS INT64"
        in "".join(told)
    )
    assert ask(database, "SELECT my_schema.MyCustomFunction(21)").rows == [(42,)]
    answer = ask(database, "SELECT (quoted(STRUCT(7 AS a), [])[OFFSET(0)]).*")
    assert answer.rows == [(7, "x")]


def test_an_argument_is_computed_once(rows: Database) -> None:
    """Nested calls that use their argument twice do not take twice the time each."""
    nested = "1"
    for _ in range(40):
        nested = f"s.twice({nested})"
    assert ask(rows, f"SELECT {nested}").rows == [(2**40,)]
    change(rows, "CREATE FUNCTION same(x STRING) RETURNS BOOL AS (x = x AND x LIKE x)")
    with pytest.raises(MethodNotImplemented, match="A value of chance"):
        ask(rows, "SELECT same(GENERATE_UUID())")


def test_the_catalog_and_the_ddl_tell_functions(
    rows: Database, create_database: CreateDatabase
) -> None:
    told = change(rows, "CREATE VIEW w SQL SECURITY INVOKER AS SELECT top(t.k) AS n FROM t")
    assert told[:2] == ["CREATE SCHEMA s", INC]
    assert (
        told[told.index(T.replace("(k", "(\n  k").replace(", v", ",\n  v")) if 0 else 0 :] == told
    )
    assert told.index(TOP) > [each.startswith("CREATE TABLE t") for each in told].index(True)
    again = create_database(*told)
    again.reload()
    assert list(again.ddl_statements) == told
    routines = ask(
        rows,
        "SELECT SPECIFIC_SCHEMA, SPECIFIC_NAME, ROUTINE_TYPE, DATA_TYPE, ROUTINE_BODY,"
        " ROUTINE_DEFINITION, SECURITY_TYPE FROM INFORMATION_SCHEMA.ROUTINES ORDER BY 2",
    ).rows
    assert routines[0] == ("s", "Twice", "FUNCTION", "INT64", "SQL", "x + x", "INVOKER")
    assert [row[1] for row in routines] == ["Twice", "inc", "named", "top"]
    parameters = "SELECT * FROM INFORMATION_SCHEMA.PARAMETERS WHERE SPECIFIC_NAME = 'named'"
    assert ask(rows, f"{parameters} ORDER BY ORDINAL_POSITION").rows == [
        ("", "", "named", 1, "a", "STRING", None),
        ("", "", "named", 2, "b", "STRING", "'x'"),
    ]


def test_expressions_of_tables_call_functions(rows: Database) -> None:
    table = (
        "CREATE TABLE u (k INT64, g INT64 AS (inc(k)) STORED, d INT64 DEFAULT (inc(s.twice(4))),"
        " CONSTRAINT small CHECK (inc(k) < 10)) PRIMARY KEY (k)"
    )
    told = change(rows, table, "CREATE INDEX by_g ON u (g)")
    assert "CHECK(inc(k) < 10)" in next(each for each in told if each.startswith("CREATE TABLE u"))
    fill(rows, "INSERT INTO u (k) VALUES (1)")
    assert ask(rows, "SELECT * FROM u@{FORCE_INDEX=by_g} WHERE g = 2").rows == [(1, 2, 9)]
    with pytest.raises(GoogleAPICallError, match=r"Check constraint `u`\.`small`"):
        fill(rows, "INSERT INTO u (k) VALUES (9)")
    for name, dependent in (("inc", r"column: u\.g"), ("s.Twice", r"column: u\.d")):
        with pytest.raises(FailedPrecondition, match=f"drop UDF `{name}` on which .* {dependent}"):
            change(rows, f"DROP FUNCTION {name}")
    other = "CREATE OR REPLACE FUNCTION inc(x BOOL) RETURNS BOOL AS (x)"
    with pytest.raises(FailedPrecondition, match=r"alter UDF `inc`.* column `u\.g` to become"):
        change(rows, other)
    change(rows, "CREATE OR REPLACE FUNCTION inc(x INT64) RETURNS INT64 AS (x + 2)")
    assert ask(rows, "SELECT g FROM u").rows == [(3,)]
    fill(rows, "INSERT INTO u (k) VALUES (2)")
    assert ask(rows, "SELECT k, g, d FROM u ORDER BY k").rows == [(1, 3, 9), (2, 4, 10)]
    with pytest.raises(InvalidArgument, match="top has a query"):
        change(rows, "ALTER TABLE u ADD COLUMN h INT64 AS (top(k))")
    change(rows, "CREATE FUNCTION chance() RETURNS STRING AS (GENERATE_UUID())")
    with pytest.raises(FailedPrecondition, match="non-deterministic"):
        change(rows, "ALTER TABLE u ADD COLUMN h STRING(MAX) AS (chance())")


def test_what_a_function_reads_cannot_be_dropped(rows: Database) -> None:
    change(
        rows,
        "CREATE INDEX by_v ON t (v)",
        "CREATE VIEW w SQL SECURITY INVOKER AS SELECT inc(t.k) AS n FROM t",
        "CREATE FUNCTION seen() RETURNS INT64 AS ((SELECT MAX(w.n) FROM w))",
        "CREATE FUNCTION by_index() AS ((SELECT MAX(t.v) FROM t@{FORCE_INDEX=by_v}))",
        "CREATE FUNCTION outer_one(x INT64) RETURNS INT64 AS (seen() + x)",
    )
    assert ask(rows, "SELECT outer_one(1), by_index()").rows == [(5, 20)]
    for statement, message in (
        ("DROP VIEW w", "Cannot drop VIEW `w` on which there is a dependent function: seen."),
        ("DROP INDEX by_v", "Cannot drop INDEX `by_v` on which .* function: by_index."),
        ("DROP FUNCTION seen", "Cannot drop UDF `seen` on which .* function: outer_one."),
        ("DROP FUNCTION inc", "Cannot drop UDF `inc` on which there are dependent views: w."),
        (
            "CREATE OR REPLACE FUNCTION inc(x INT64) RETURNS INT64 AS (outer_one(x))",
            "Cannot replace FUNCTION `inc` because new definition is recursive",
        ),
        (
            "CREATE OR REPLACE FUNCTION inc(x INT64) RETURNS INT64 AS (nothing(x))",
            "Cannot replace FUNCTION `inc` because new definition is invalid",
        ),
        ("DROP SCHEMA s", r"Dependent functions: s\.Twice"),
    ):
        with pytest.raises(FailedPrecondition, match=message):
            change(rows, statement)
    change(rows, "DROP FUNCTION outer_one", "DROP FUNCTION IF EXISTS outer_one")
    with pytest.raises(NotFound, match="Function not found: outer_one"):
        change(rows, "DROP FUNCTION outer_one")


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        (INC, FailedPrecondition, "Duplicate name in schema: inc"),
        (INC.replace("inc", "t"), FailedPrecondition, "Duplicate name in schema: t"),
        ("CREATE FUNCTION abs(x INT64) AS (x)", FailedPrecondition, "as builtin function `abs`"),
        ("CREATE FUNCTION z.f(x INT64) AS (x)", NotFound, "Schema not found: z"),
        ("CREATE FUNCTION f(x STRING(9)) AS (x)", InvalidArgument, "types .* function arguments"),
        (
            "CREATE FUNCTION f(x STRING) RETURNS STRING(MAX) AS (x)",
            InvalidArgument,
            "types .* function signatures",
        ),
        (
            "CREATE FUNCTION f(x INT64) RETURNS INT64 AS (x + g(x))",
            InvalidArgument,
            "analyzing the definition of function `f`: Function not found: g",
        ),
        (
            "CREATE FUNCTION f(x INT64) RETURNS INT64 AS (x + 1.5)",
            InvalidArgument,
            "declared to return INT64 but the function body produces incompatible type FLOAT64",
        ),
        ("CREATE FUNCTION f(x INT64) AS (y)", InvalidArgument, "Unrecognized name: y"),
        ("CREATE FUNCTION f(x INT64, X INT64) AS (x)", InvalidArgument, "Duplicate argument"),
        (
            "CREATE FUNCTION f() RETURNS INT64 SQL SECURITY DEFINER AS (1)",
            InvalidArgument,
            "unsupported SQL SECURITY DEFINER",
        ),
        ("CREATE FUNCTION f(x ANY TYPE) AS (x)", InvalidArgument, "Encountered 'ANY'"),
        ("CREATE FUNCTION f(x INT64) IMMUTABLE AS (x)", InvalidArgument, "found 'IMMUTABLE'"),
        ("CREATE FUNCTION f(x INT64)", InvalidArgument, "Expecting 'AS'"),
        ("CREATE FUNCTION f(x) AS (x)", InvalidArgument, "a type"),
        ("CREATE FUNCTION f() AS (1", InvalidArgument, "found 'EOF'"),
        ("DROP FUNCTION inc()", InvalidArgument, "found '\\('"),
        (
            "CREATE FUNCTION f(x INT64) RETURNS INT64 NOT DETERMINISTIC LANGUAGE REMOTE"
            " OPTIONS (endpoint = 'https://e.test')",
            MethodNotImplemented,
            "The remote function f",
        ),
    ],
)
def test_definitions_that_are_refused(
    database: Database, statement: str, error: type[GoogleAPICallError], message: str
) -> None:
    with pytest.raises(error, match=message):
        change(database, statement)
