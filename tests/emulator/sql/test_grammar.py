"""The grammar: what GoogleSQL's parser refuses is a syntax error, nothing parsed is ignored."""

from __future__ import annotations

import pytest
from fixtures.queries import ask
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database

from emulator.sql.grammar.generate import make_table
from emulator.sql.grammar.table import read_table_file

DDL = (
    "CREATE TABLE R (Id INT64, Tags ARRAY<STRING(MAX)>) PRIMARY KEY (Id)",
    "CREATE TABLE S (Id INT64, Name STRING(MAX)) PRIMARY KEY (Id)",
)

REFUSED = [
    # LIMIT, SELECT lists, joins.
    ("SELECT Id FROM R LIMIT 1,2", 'Expected end of input but got "," [at 1:25]'),
    ("SELECT ,1", 'Unexpected "," [at 1:8]'),
    ("SELECT * EXCEPT () FROM R", 'Unexpected ")" [at 1:18]'),
    ("SELECT R.Id FROM R LEFT SEMI JOIN S ON TRUE", 'Unexpected identifier "SEMI" [at 1:25]'),
    ("SELECT 1 FROM R STRAIGHT_JOIN S", "Expected"),
    ("SELECT 1 FROM R JOIN S ON TRUE ON TRUE", "The number of join conditions is 2"),
    ("SELECT 1 FROM R, S FULL JOIN S AS t ON TRUE", "FULL JOIN must be parenthesized"),
    ("SELECT 1 FROM R WHERE Id = 1 = TRUE", 'Expected end of input but got "="'),
    # Literals and names.
    (r"SELECT '\q'", r"Invalid string literal: Illegal escape sequence: \q [at 1:9]"),
    (r"SELECT '\x4'", "hex escape must be followed by 2 hex digits"),
    (r"SELECT b'\u0041'", "cannot be used in bytes"),
    (r"SELECT '\ud800'", "Unicode value of \\ud800 is invalid"),
    ("SELECT 1_000", "Missing whitespace between literal and alias [at 1:9]"),
    ("SELECT 1.5x", "Missing whitespace between literal and alias"),
    ("SELECT 'a''b'", "Concatenated string literals must be separated"),
    ("SELECT 'a", "Unclosed string literal [at 1:8]"),
    ("SELECT 1 /* a", "Unclosed comment [at 1:10]"),
    ("SELECT ``", "Invalid empty identifier"),
    ("SELECT 1 AS select", "keyword SELECT [at 1:13]"),
    ("SELECT at FROM R", "Unexpected keyword AT"),
    ("SELECT 1 \\ 2", "Illegal input character"),
    # Expressions.
    ("SELECT 1::STRING", 'got ":"'),
    ("SELECT x -> y", 'got "->"'),
    ("SELECT Id IN () FROM R", 'Unexpected ")"'),
    ("SELECT COUNT(Id) FILTER (WHERE TRUE) FROM R", "Expected end of input"),
    ("SELECT Id FROM R WHERE Id ILIKE 'a'", "Expected end of input"),
    # Queries.
    ("SELECT 1 UNION SELECT 2", "Expected keyword ALL or keyword DISTINCT but got keyword SELECT"),
    ("SELECT 1 UNION ALL SELECT 2 UNION DISTINCT SELECT 3", "Different set operations"),
    ("SELECT 1; SELECT 2", "Expected end of input but got keyword SELECT"),
    ("SELECT 1 FROM R GROUP BY Id WITH ROLLUP", "Expected end of input but got keyword WITH"),
    ("WITH a AS (SELECT 1), SELECT * FROM a", "Unexpected keyword SELECT"),
    ("VALUES (1)", "Unexpected"),
    ("SELECT 1 FROM R FETCH FIRST 1 ROWS ONLY", "Expected"),
    ("FROM R |> FROM S", "Unexpected keyword FROM"),
    ("FROM R |> WHERE", "Unexpected end of statement"),
    ("|> WHERE TRUE", "Unexpected"),
    # DML.
    ("UPDATE S SET Name = 'a', WHERE TRUE", "keyword WHERE"),
    ("DELETE FROM S WHERE TRUE LIMIT 1", "keyword LIMIT"),
    ("INSERT INTO S (Id) VALUES (1) ON DUPLICATE KEY UPDATE Id = 1", "DUPLICATE"),
    ("INSERT INTO S SET Id = 1", "Unexpected keyword SET"),
]  # fmt: skip

TAKEN = [
    ("SELECT Id FROM R JOIN S USING (Id) LIMIT (1) OFFSET 0", []),
    ("SELECT 1 AS value, 2 AS offset, 3 AS date, 4 AS `select`", [(1, 2, 3, 4)]),
    ("SELECT ((SELECT 1)) + ((SELECT 2))", [(3,)]),
    ("SELECT 'a' 'b', 0x1F, .5, 1., 1e3, r'\\q'", [("ab", 31, 0.5, 1.0, 1000.0, "\\q")]),
    ("SELECT 7 >> 1, ARRAY<STRUCT<x ARRAY<INT64>>>[STRUCT([1])][OFFSET(0)].x[OFFSET(0)]", [(3, 1)]),
    ("SELECT STRUCT(5 AS `end`).end", [(5,)]),
    ("SELECT 1 IS NOT NULL, NOT 1 BETWEEN 2 AND 3 AND TRUE", [(True, True)]),
    ("SELECT COUNT(*) FROM (SELECT 1 AS a UNION ALL (SELECT 2)) AS t HASH JOIN S ON FALSE", [(0,)]),
    ("SELECT x.a FROM (SELECT [1, 2] AS l) AS t, t.l AS a WITH OFFSET AS o JOIN (SELECT 1 AS a) x "
     "ON o = x.a", [(1,)]),
    ("SELECT (SELECT 1) EXCEPT DISTINCT (SELECT 2)", [(1,)]),
    ("SELECT 1, -- a comment\n /* another */ 2 # a third", [(1, 2)]),
    ("SELECT 1,", [(1,)]),
    ("SELECT 1;", [(1,)]),
    ("SELECT WITH(a AS 1, b AS a + 2, a + WITH(a AS 5, a * b))", [(16,)]),
    ("SELECT WITH(n AS COUNT(x), s AS SUM(x), s / n) FROM UNNEST([1, 2, 6]) AS x", [(3.0,)]),
    ("SELECT Id FROM R WHERE Id = 1 FOR UPDATE", []),
    ("SELECT Id FROM R@{other.x=1+2, FORCE_INDEX=_BASE_TABLE, other.y='a'} WHERE Id = 1", []),
    # A third table: its condition comes before that of the second.
    ("SELECT COUNT(*) FROM (SELECT 1 AS a) r JOIN (SELECT 1 AS a) s JOIN (SELECT 2 AS a) t "
     "ON s.a < t.a ON r.a = s.a", [(1,)]),
]  # fmt: skip

LACKING = [
    ("SELECT R.(a.b)(1) FROM R", "An extension as the name of a function"),
    ("SELECT * FROM S PIVOT(COUNT(Id) FOR Name IN ('a', 'b'))", "PIVOT"),
    ("SELECT * FROM S UNPIVOT(v FOR n IN (Id, Name))", "UNPIVOT"),
    ("SELECT * FROM R NATURAL JOIN S", "NATURAL JOIN"),
    ("SELECT Id FROM R FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP()", "FOR SYSTEM_TIME AS OF"),
    ("WITH RECURSIVE a AS (SELECT 1) SELECT * FROM a", "WITH RECURSIVE"),
    ("SELECT COUNT(*, 1) FROM R", "1"),
    ("SELECT LENGTH(Name AS n) FROM S", "alias of an argument"),
    ("SELECT DATETIME '2024-01-01 00:00:00'", "DATETIME"),
]


@pytest.mark.ddl(*DDL)
@pytest.mark.parametrize(("sql", "message"), REFUSED)
def test_what_is_no_googlesql_is_a_syntax_error(database: Database, sql: str, message: str) -> None:
    with pytest.raises(exceptions.InvalidArgument) as refused:
        database.run_in_transaction(lambda transaction: transaction.execute_update(sql))
    assert refused.value.message.startswith("Syntax error: ")
    assert message in refused.value.message


@pytest.mark.ddl(*DDL)
@pytest.mark.parametrize(("sql", "rows"), TAKEN)
def test_what_is_googlesql_has_its_meaning(
    database: Database, sql: str, rows: list[tuple[object, ...]]
) -> None:
    assert ask(database, sql).rows == rows


@pytest.mark.ddl(*DDL)
@pytest.mark.parametrize(("sql", "feature"), LACKING)
def test_what_the_server_lacks_is_refused_by_its_name(
    database: Database, sql: str, feature: str
) -> None:
    with pytest.raises(exceptions.MethodNotImplemented, match=feature):
        database.run_in_transaction(lambda transaction: transaction.execute_update(sql))


@pytest.mark.ddl(*DDL)
@pytest.mark.parametrize("name", ["VARCHAR", "INTEGER", "TEXT", "FLOAT", "DATETIME", "ARRAY<INT>"])
def test_a_type_of_another_database_is_not_found(database: Database, name: str) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="Type not found: "):
        ask(database, f"SELECT CAST(NULL AS {name})")


@pytest.mark.ddl(*DDL)
@pytest.mark.parametrize(
    "name",
    ["STRING(50)", "STRING(MAX)", "BYTES(3)", "NUMERIC(3, 2)", "INT64(3)", "ARRAY<STRING(3)>"],
)
def test_a_type_in_a_query_has_no_length(database: Database, name: str) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="Parameterized types are not supported"):
        ask(database, f"SELECT CAST(NULL AS {name})")


@pytest.mark.ddl(*DDL)
def test_insert_modes_need_no_or(database: Database) -> None:
    for mode in ("IGNORE", "UPDATE", "OR UPDATE"):
        sql = f"INSERT {mode} INTO S (Id, Name) VALUES (1, '{mode}')"
        database.run_in_transaction(lambda transaction, sql=sql: transaction.execute_update(sql))
    assert ask(database, "SELECT Name FROM S").rows == [("OR UPDATE",)]


@pytest.mark.ddl(*DDL)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT@{NO_SUCH=1} 1",
        "SELECT 1 FROM R GROUP@{NO_SUCH=1} BY Id",
        "SELECT 1 FROM R JOIN@{NO_SUCH=1} S ON TRUE",
        "SELECT 1 FROM R ORDER@{NO_SUCH=1} BY Id",
        "SELECT 1 FROM R WHERE Id IN @{NO_SUCH=1} (SELECT 1)",
    ],
)
def test_an_unknown_hint_is_refused_wherever_it_stands(database: Database, sql: str) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="Unsupported hint: NO_SUCH"):
        ask(database, sql)
    assert ask(database, sql.replace("NO_SUCH", "other_engine.NO_SUCH")) is not None


@pytest.mark.ddl(*DDL)
def test_a_message_repeats_little_of_a_long_line(database: Database) -> None:
    with pytest.raises(exceptions.InvalidArgument) as refused:
        ask(database, f"SELECT '{'a' * 50_000}' 'b' b'c', {'1, ' * 10_000} 2")
    assert len(refused.value.message) < 1_000


@pytest.mark.ddl(*DDL)
def test_deep_nesting_is_no_internal_error(database: Database) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="nested too deeply"):
        ask(database, f"SELECT {'(' * 5_000}1{')' * 5_000}")


def test_the_parse_table_is_of_the_grammar() -> None:
    """Else: ``python -m emulator.sql.grammar.generate``."""
    assert make_table() == read_table_file()


@pytest.mark.ddl(*DDL)
@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT 'none' AS none1, none FROM S", "1:25"),
        ("SELECT 1 AS none -- none\nFROM S WHERE\n none = 1", "3:2"),
        ("SELECT s.Id, `none` FROM S AS s", "1:14"),
        ("SELECT @none, none", "1:15"),
        ("SELECT 1 FROM none.T", "1:15"),
    ],
)
def test_a_name_that_is_unknown_has_its_place(database: Database, sql: str, place: str) -> None:
    with pytest.raises(exceptions.InvalidArgument, match=rf"none.* \[at {place}\]"):
        ask(database, sql)
