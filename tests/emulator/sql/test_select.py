"""Queries: joins, subqueries, set operations, arrays, structs, grouping; rows and types."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from fixtures.queries import ask
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database

DDL = (
    "CREATE TABLE Singers (Id INT64 NOT NULL, Name STRING(MAX), Tags ARRAY<STRING(MAX)>, "
    "Score FLOAT64) PRIMARY KEY (Id)",
    "CREATE TABLE Albums (Id INT64 NOT NULL, AlbumId INT64 NOT NULL, Title STRING(MAX), "
    "Sold INT64) PRIMARY KEY (Id, AlbumId), INTERLEAVE IN PARENT Singers",
    "CREATE INDEX ByTitle ON Albums (Title)",
)

# SQL, types of the columns, rows in order.
QUERIES: list[tuple[str, list[str], list[tuple[object, ...]]]] = [
    # SELECT lists.
    ("SELECT * FROM Albums WHERE Id = 2", ["INT64", "INT64", "STRING", "INT64"],
     [(2, 1, "Blue", None)]),
    ("SELECT * EXCEPT (Tags, Score) FROM Singers WHERE Id = 1", ["INT64", "STRING"], [(1, "Ann")]),
    ("SELECT s.* EXCEPT (Tags) FROM Singers AS s WHERE Id = 1", ["INT64", "STRING", "FLOAT64"],
     [(1, "Ann", 2.5)]),
    ("SELECT * REPLACE (Id * 2 AS Id, 'x' AS Name) FROM (SELECT Id, Name FROM Singers) "
     "ORDER BY 1 LIMIT 1", ["INT64", "STRING"], [(2, "x")]),
    ("SELECT 1 AS a, 2 AS a, 3", ["INT64", "INT64", "INT64"], [(1, 2, 3)]),
    ("SELECT DISTINCT Sold IS NULL AS n FROM Albums ORDER BY n", ["BOOL"], [(False,), (True,)]),
    ("SELECT ALL Id FROM Albums WHERE AlbumId = 2", ["INT64"], [(1,)]),
    ("SELECT DISTINCT a.n AS m FROM (SELECT x AS n FROM UNNEST([2, 1, 2]) AS x) AS a"
     " ORDER BY n", ["INT64"], [(1,), (2,)]),
    ("SELECT DISTINCT x AS y, -x AS x FROM UNNEST([1, 2]) AS x ORDER BY x", ["INT64", "INT64"],
     [(2, -2), (1, -1)]),
    ("SELECT DISTINCT a.Title FROM Albums a ORDER BY a.Title DESC LIMIT 1", ["STRING"],
     [("Red",)]),
    ("SELECT Id FROM Singers WHERE FALSE", ["INT64"], []),
    # Joins.
    ("SELECT s.Name, a.Title FROM Singers s JOIN Albums a ON s.Id = a.Id ORDER BY s.Id, a.AlbumId",
     ["STRING", "STRING"], [("Ann", "Red"), ("Ann", "Green"), ("Bob", "Blue")]),
    ("SELECT s.Id, a.Title FROM Singers s LEFT JOIN Albums a ON s.Id = a.Id AND a.Sold > 5 "
     "ORDER BY s.Id", ["INT64", "STRING"], [(1, "Red"), (2, None), (3, None)]),
    ("SELECT Id, Name, Title FROM Singers JOIN Albums USING (Id) ORDER BY Id, AlbumId LIMIT 1",
     ["INT64", "STRING", "STRING"], [(1, "Ann", "Red")]),
    ("SELECT x.Id, Id FROM (SELECT 7 AS Id) x RIGHT JOIN (SELECT 8 AS Id) y USING (Id)",
     ["INT64", "INT64"], [(None, 8)]),
    ("SELECT Id FROM (SELECT 7 AS Id) x FULL JOIN (SELECT 8 AS Id) y USING (Id) ORDER BY Id",
     ["INT64"], [(7,), (8,)]),
    ("SELECT * FROM (SELECT 1 AS k, 'a' AS x) JOIN (SELECT 1 AS k, 'b' AS y) USING (k)",
     ["INT64", "STRING", "STRING"], [(1, "a", "b")]),
    ("SELECT COUNT(*) FROM Singers, Albums", ["INT64"], [(9,)]),
    ("SELECT COUNT(*) FROM Singers CROSS JOIN Albums", ["INT64"], [(9,)]),
    ("SELECT s.Id, x.Title FROM (Singers s JOIN Albums x ON s.Id = x.Id) JOIN Singers t "
     "ON t.Id = s.Id WHERE x.AlbumId = 2", ["INT64", "STRING"], [(1, "Green")]),
    ("SELECT a.Id FROM Albums@{FORCE_INDEX=ByTitle} a JOIN@{JOIN_METHOD=HASH_JOIN} Singers s "
     "ON s.Id = a.Id WHERE a.Title = 'Blue'", ["INT64"], [(2,)]),
    # Subqueries.
    ("SELECT Name FROM Singers s WHERE EXISTS (SELECT 1 FROM Albums a WHERE a.Id = s.Id AND "
     "a.AlbumId = 2)", ["STRING"], [("Ann",)]),
    ("SELECT Name FROM Singers WHERE Id NOT IN (SELECT Id FROM Albums)", ["STRING"], [(None,)]),
    ("SELECT Id, (SELECT COUNT(*) FROM Albums a WHERE a.Id = s.Id) AS n FROM Singers s ORDER BY 1",
     ["INT64", "INT64"], [(1, 2), (2, 1), (3, 0)]),
    ("SELECT n FROM (SELECT Id + 1 AS n FROM Singers) AS t WHERE t.n > 3", ["INT64"], [(4,)]),
    ("SELECT 1 IN (SELECT NULL)", ["BOOL"], [(None,)]),
    ("SELECT (SELECT Title FROM Albums WHERE Id = 9)", ["STRING"], [(None,)]),
    # WITH.
    ("WITH t AS (SELECT Id, Name FROM Singers), u AS (SELECT Id FROM t WHERE Name IS NULL) "
     "SELECT t.Id FROM t JOIN u USING (Id)", ["INT64"], [(3,)]),
    ("WITH Singers AS (SELECT 42 AS Id) SELECT Id FROM Singers", ["INT64"], [(42,)]),
    ("SELECT (WITH t AS (SELECT 5 AS x) SELECT x FROM t)", ["INT64"], [(5,)]),
    ("WITH t AS (SELECT 1 AS x) (SELECT x FROM t) UNION ALL (SELECT x + 1 FROM t) ORDER BY 1 DESC",
     ["INT64"], [(2,), (1,)]),
    # Set operations.
    ("SELECT 1 UNION ALL SELECT 1", ["INT64"], [(1,), (1,)]),
    ("SELECT 1 UNION DISTINCT SELECT 1", ["INT64"], [(1,)]),
    ("SELECT 1 AS x UNION ALL SELECT 2.5 ORDER BY x DESC", ["FLOAT64"], [(2.5,), (1.0,)]),
    ("SELECT NULL AS x UNION ALL SELECT 'a' ORDER BY x", ["STRING"], [(None,), ("a",)]),
    ("SELECT * FROM UNNEST([1, 1, 2, 3]) EXCEPT DISTINCT SELECT * FROM UNNEST([1, 2])", ["INT64"],
     [(3,)]),
    ("SELECT * FROM UNNEST([1, 1, 1, 2]) AS x EXCEPT ALL SELECT 1 ORDER BY x", ["INT64"],
     [(1,), (1,), (2,)]),
    ("SELECT * FROM UNNEST([1, 1, 2]) AS x INTERSECT ALL SELECT * FROM UNNEST([1, 1, 1]) "
     "ORDER BY x", ["INT64"], [(1,), (1,)]),
    ("SELECT * FROM UNNEST([1, 1, 2]) INTERSECT DISTINCT SELECT * FROM UNNEST([1, 1])", ["INT64"],
     [(1,)]),
    ("(SELECT 3 AS n UNION ALL SELECT 1) ORDER BY n LIMIT 1", ["INT64"], [(1,)]),
    ("SELECT [1] UNION ALL SELECT []", ["ARRAY<INT64>"], [([1],), ([],)]),
    # Grouping.
    ("SELECT Id, COUNT(*), SUM(Sold), MAX(Title) FROM Albums GROUP BY Id ORDER BY Id",
     ["INT64", "INT64", "INT64", "STRING"], [(1, 2, 13, "Red"), (2, 1, None, "Blue")]),
    ("SELECT COUNT(*), SUM(Sold) FROM Albums WHERE FALSE", ["INT64", "INT64"], [(0, None)]),
    ("SELECT Id + 1 AS k, COUNT(*) FROM Albums GROUP BY k HAVING COUNT(*) > 1",
     ["INT64", "INT64"], [(2, 2)]),
    ("SELECT Id * 10, COUNT(*) FROM Albums GROUP BY 1 ORDER BY 2 DESC", ["INT64", "INT64"],
     [(10, 2), (20, 1)]),
    ("SELECT 5 AS five, COUNT(*) FROM Albums GROUP BY five ORDER BY five", ["INT64", "INT64"],
     [(5, 3)]),
    ("SELECT UPPER(Title) FROM Albums GROUP BY UPPER(Title) ORDER BY UPPER(Title)", ["STRING"],
     [("BLUE",), ("GREEN",), ("RED",)]),
    ("SELECT COUNT(*) AS n FROM Albums HAVING n > 100", ["INT64"], []),
    ("SELECT Id AS k, COUNT(*) AS n FROM Albums GROUP BY k HAVING n > 1 ORDER BY n + 1",
     ["INT64", "INT64"], [(1, 2)]),
    ("SELECT Id FROM Albums GROUP BY Id ORDER BY COUNT(*) DESC", ["INT64"], [(1,), (2,)]),
    ("SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM Albums GROUP BY Id)", ["INT64"], [(3,)]),
    ("SELECT MOD(x, 2) AS r, ARRAY_AGG(x ORDER BY x DESC) FROM UNNEST([1, 2, 3]) AS x GROUP BY r "
     "ORDER BY r", ["INT64", "ARRAY<INT64>"], [(0, [2]), (1, [3, 1])]),
    # Order of NULL and of what is no number.
    ("SELECT x FROM UNNEST([2, NULL, 1]) AS x ORDER BY x", ["INT64"], [(None,), (1,), (2,)]),
    ("SELECT x FROM UNNEST([2, NULL, 1]) AS x ORDER BY x DESC", ["INT64"], [(2,), (1,), (None,)]),
    ("SELECT CAST(x AS STRING) FROM UNNEST([CAST('nan' AS FLOAT64), 1, NULL, "
     "CAST('-inf' AS FLOAT64), CAST('inf' AS FLOAT64)]) AS x ORDER BY x", ["STRING"],
     [(None,), ("nan",), ("-inf",), ("1",), ("inf",)]),
    ("SELECT DISTINCT x FROM UNNEST([2.0, NULL, 1.0]) AS x ORDER BY x DESC", ["FLOAT64"],
     [(2.0,), (1.0,), (None,)]),
    ("SELECT Title FROM Albums ORDER BY Sold DESC, Title LIMIT 2 OFFSET 1", ["STRING"],
     [("Green",), ("Blue",)]),
    # UNNEST.
    ("SELECT * FROM UNNEST(['a', 'b']) AS x WITH OFFSET ORDER BY offset DESC",
     ["STRING", "INT64"], [("b", 1), ("a", 0)]),
    ("SELECT x, o FROM UNNEST([b'a', NULL]) AS x WITH OFFSET AS o ORDER BY o", ["BYTES", "INT64"],
     [(b"YQ==", 0), (None, 1)]),
    ("SELECT x FROM UNNEST([IEEE_DIVIDE(1, 0), 2]) AS x ORDER BY x", ["FLOAT64"],
     [(2.0,), (math.inf,)]),
    ("SELECT s.Id, t FROM Singers s, UNNEST(s.Tags) AS t ORDER BY 1, 2", ["INT64", "STRING"],
     [(1, "pop"), (1, "rock"), (2, None)]),
    ("SELECT s.Id, t FROM Singers s, s.Tags AS t WHERE t = 'pop'", ["INT64", "STRING"],
     [(1, "pop")]),
    ("SELECT s.Id, t, n FROM Singers s LEFT JOIN UNNEST(s.Tags) AS t WITH OFFSET AS n ON TRUE "
     "ORDER BY s.Id, n", ["INT64", "STRING", "INT64"],
     [(1, "rock", 0), (1, "pop", 1), (2, None, 0), (3, None, None)]),
    ("SELECT Id FROM Singers s WHERE 'pop' IN UNNEST(s.Tags)", ["INT64"], [(1,)]),
    ("SELECT Id FROM Singers s WHERE EXISTS (SELECT 1 FROM UNNEST(s.Tags) t WHERE t LIKE 'r%')",
     ["INT64"], [(1,)]),
    ("SELECT x FROM UNNEST(CAST(NULL AS ARRAY<INT64>)) AS x", ["INT64"], []),
    ("SELECT COUNT(x) FROM UNNEST([TRUE, NULL]) AS x", ["INT64"], [(1,)]),
    # Structs.
    ("SELECT a, b FROM UNNEST([STRUCT(1 AS a, 'x' AS b), STRUCT(2, NULL)])", ["INT64", "STRING"],
     [(1, "x"), (2, None)]),
    ("SELECT s.a + 1, s.b FROM UNNEST([STRUCT(1 AS a, b'x' AS b)]) AS s", ["INT64", "BYTES"],
     [(2, b"eA==")]),
    ("SELECT * FROM UNNEST([STRUCT(1 AS a, 2.5 AS b)]) AS s WITH OFFSET AS o",
     ["INT64", "FLOAT64", "INT64"], [(1, 2.5, 0)]),
    ("SELECT s.* FROM (SELECT STRUCT(1 AS a, 'x' AS b) AS s)", ["INT64", "STRING"], [(1, "x")]),
    ("SELECT STRUCT(1 AS a, STRUCT('x' AS c) AS b).b.c", ["STRING"], [("x",)]),
    ("SELECT ARRAY(SELECT AS STRUCT Id, Name FROM Singers ORDER BY Id)",
     ["ARRAY<STRUCT<Id INT64, Name STRING>>"], [([[1, "Ann"], [2, "Bob"], [3, None]],)]),
    ("SELECT ARRAY(SELECT STRUCT<n INT64, t ARRAY<STRING>>(Id, Tags) FROM Singers WHERE Id = 1)",
     ["ARRAY<STRUCT<n INT64, t ARRAY<STRING>>>"], [([[1, ["rock", "pop"]]],)]),
    ("SELECT ARRAY(SELECT STRUCT<INT64>(1))", ["ARRAY<STRUCT<INT64>>"], [([[1]],)]),
    ("SELECT ARRAY(SELECT AS STRUCT x, ARRAY(SELECT AS STRUCT x + 1 AS y) AS inner_ "
     "FROM UNNEST([1]) AS x)", ["ARRAY<STRUCT<x INT64, inner_ ARRAY<STRUCT<y INT64>>>>"],
     [([[1, [[2]]]],)]),
    ("SELECT ARRAY<STRUCT<INT64>>[]", ["ARRAY<STRUCT<INT64>>"], [([],)]),
    ("SELECT (SELECT AS STRUCT 1 AS a, 2 AS b).b", ["INT64"], [(2,)]),
    ("SELECT v.a FROM (SELECT AS STRUCT 1 AS a) AS v", ["INT64"], [(1,)]),
    ("SELECT v.a, a FROM (SELECT AS VALUE STRUCT(1 AS a)) AS v", ["INT64", "INT64"], [(1, 1)]),
    ("SELECT AS VALUE Id FROM Singers ORDER BY 1 LIMIT 1", ["INT64"], [(1,)]),
    ("SELECT (1, 'a') = (1, 'a')", ["BOOL"], [(True,)]),
    ("SELECT STRUCT(1, NULL) = STRUCT(1, 2)", ["BOOL"], [(None,)]),
    ("SELECT STRUCT(1, NULL) = STRUCT(2, 2)", ["BOOL"], [(False,)]),
    ("SELECT (1, 2) IN ((1, 2), (3, 4))", ["BOOL"], [(True,)]),
    ("SELECT Id FROM Albums WHERE (Id, AlbumId) IN UNNEST([(1, 2), (5, 5)])", ["INT64"], [(1,)]),
    ("SELECT Id FROM Albums WHERE (Id, AlbumId) IN (SELECT (2, 1))", ["INT64"], [(2,)]),
    ("SELECT TO_JSON(a) FROM Albums AS a WHERE Id = 2", ["JSON"],
     [({"Id": 2, "AlbumId": 1, "Title": "Blue", "Sold": None},)]),
    ("SELECT ARRAY_LENGTH(ARRAY(SELECT a FROM Albums AS a))", ["INT64"], [(3,)]),
    # Samples.
    ("SELECT COUNT(*) FROM Singers TABLESAMPLE RESERVOIR (2 ROWS)", ["INT64"], [(2,)]),
    ("SELECT COUNT(*) FROM Singers AS s TABLESAMPLE RESERVOIR (200 ROWS) WHERE s.Id > 0", ["INT64"],
     [(3,)]),
    ("SELECT COUNT(*) FROM Singers TABLESAMPLE BERNOULLI (100 PERCENT)", ["INT64"], [(3,)]),
    ("SELECT COUNT(*) FROM Singers TABLESAMPLE BERNOULLI (0 PERCENT)", ["INT64"], [(0,)]),
    ("SELECT COUNT(*) FROM (SELECT 1) AS t TABLESAMPLE RESERVOIR (0 ROWS)", ["INT64"], [(0,)]),
]  # fmt: skip

REFUSED: list[tuple[str, type[Exception], str]] = [
    ("SELECT Id FROM Singers, Albums", exceptions.InvalidArgument, "ambiguous"),
    (
        "SELECT STRUCT(1 AS a, 2 AS a).a",
        exceptions.InvalidArgument,
        "Struct field name a is ambiguous",
    ),
    ("SELECT x.Nope FROM Singers x", exceptions.InvalidArgument, "Nope"),
    ("SELECT * FROM Nope", exceptions.InvalidArgument, "Table not found: Nope"),
    ("SELECT *", exceptions.InvalidArgument, "FROM"),
    ("SELECT 1 AS x ORDER BY x", exceptions.InvalidArgument, "cannot have an ORDER BY"),
    ("SELECT Id, COUNT(*) FROM Albums", exceptions.InvalidArgument, "neither grouped"),
    ("SELECT * FROM Albums GROUP BY Id", exceptions.InvalidArgument, "neither grouped"),
    ("SELECT Id FROM Albums WHERE COUNT(*) > 1", exceptions.InvalidArgument, "WHERE"),
    ("SELECT SUM(COUNT(*)) FROM Albums", exceptions.InvalidArgument, "ggregat"),
    ("SELECT Id FROM Albums HAVING Id > 1", exceptions.InvalidArgument, "HAVING"),
    ("SELECT Tags FROM Singers GROUP BY Tags", exceptions.InvalidArgument, "Grouping"),
    ("SELECT DISTINCT Id AS n FROM Singers ORDER BY Name", exceptions.InvalidArgument, "Name"),
    ("SELECT DISTINCT Tags FROM Singers", exceptions.InvalidArgument, "DISTINCT"),
    ("SELECT Tags FROM Singers ORDER BY Tags", exceptions.InvalidArgument, "ORDER BY"),
    ("SELECT Id FROM Singers ORDER BY 'a', Id", exceptions.InvalidArgument, "literal values"),
    (
        "SELECT (SELECT Id.Id FROM Singers AS s LIMIT 1) FROM Singers AS Id",
        exceptions.InvalidArgument,
        "Cannot access field Id on a value with type INT64",
    ),
    ("SELECT 1 UNION ALL SELECT 1, 2", exceptions.InvalidArgument, "column count"),
    ("SELECT 1 UNION ALL SELECT 'a'", exceptions.InvalidArgument, "UNION ALL"),
    ("SELECT [1] UNION DISTINCT SELECT [2]", exceptions.InvalidArgument, "set operation"),
    ("SELECT 1 LIMIT -1", exceptions.InvalidArgument, "LIMIT"),
    ("SELECT 1 FROM Singers ORDER BY 2", exceptions.InvalidArgument, "out of range"),
    ("SELECT (SELECT 1, 2)", exceptions.InvalidArgument, "one output column"),
    ("SELECT ARRAY(SELECT [1])", exceptions.InvalidArgument, "nested arrays"),
    ("SELECT [[1]]", exceptions.InvalidArgument, "nested arrays"),
    ("SELECT * FROM UNNEST(1)", exceptions.InvalidArgument, "UNNEST"),
    ("SELECT s.Nope FROM UNNEST([STRUCT(1 AS a)]) AS s", exceptions.InvalidArgument, "Nope"),
    ("SELECT x FROM Singers x JOIN Albums y", exceptions.InvalidArgument, "ON or USING"),
    ("SELECT 1 FROM Singers TABLESAMPLE BERNOULLI (101 PERCENT)", exceptions.OutOfRange, "PERCENT"),
    ("SELECT STRUCT(1 AS a)", exceptions.MethodNotImplemented, "struct"),
    ("SELECT s FROM Singers AS s", exceptions.MethodNotImplemented, "struct"),
    ("WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT n "
     "FROM t",
     exceptions.MethodNotImplemented, "RECURSIVE"),
    ("SELECT Id FROM Albums GROUP BY ROLLUP (Id)", exceptions.MethodNotImplemented, "ROLLUP"),
    (
        "SELECT Id FROM Albums GROUP BY GROUPING SETS (Id)",
        exceptions.MethodNotImplemented,
        "GROUPING SETS",
    ),
    ("SELECT Id FROM Albums GROUP BY CUBE (Id)", exceptions.MethodNotImplemented, "CUBE"),
    ("SELECT Id FROM Albums GROUP BY CUBE (Id)", exceptions.MethodNotImplemented, "CUBE"),
    ("SELECT GET_NEXT_SEQUENCE_VALUE(SEQUENCE s)", exceptions.InvalidArgument,
     "Sequence not found: s"),
    ("SELECT ML.PREDICT(1)", exceptions.MethodNotImplemented, "ML.PREDICT"),
    ("SELECT 1 IN ()", exceptions.InvalidArgument, "IN"),
    ("SELECT Id FROM Singers QUALIFY TRUE", exceptions.InvalidArgument, "QUALIFY"),
    ("SELECT " + "1" * 1_000_000, exceptions.InvalidArgument, "length"),
    ("SELECT a0.Id FROM Singers a0 " + " ".join(
        f"JOIN Singers a{n} ON a{n}.Id = a0.Id" for n in range(1, 22)),
     exceptions.InvalidArgument, "joins exceeds"),
]  # fmt: skip


@pytest.fixture(scope="module")
def music(module_database: Callable[..., Database]) -> Database:
    database = module_database(*DDL)
    with database.batch() as batch:
        batch.insert(
            "Singers",
            ("Id", "Name", "Tags", "Score"),
            [(1, "Ann", ["rock", "pop"], 2.5), (2, "Bob", [None], None), (3, None, None, 0.0)],
        )
        batch.insert(
            "Albums",
            ("Id", "AlbumId", "Title", "Sold"),
            [(1, 1, "Red", 10), (1, 2, "Green", 3), (2, 1, "Blue", None)],
        )
    return database


@pytest.mark.parametrize(("sql", "types", "rows"), QUERIES, ids=[q[0] for q in QUERIES])
def test_a_query_has_its_rows_and_types(
    music: Database, sql: str, types: list[str], rows: list[tuple[object, ...]]
) -> None:
    answer = ask(music, sql)
    assert answer.types == types
    assert answer.rows == rows


@pytest.mark.parametrize(("sql", "error", "message"), REFUSED, ids=[r[0][:60] for r in REFUSED])
def test_a_query_is_refused_by_name(
    music: Database, sql: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ask(music, sql)


def test_columns_have_the_names_that_the_query_gives(music: Database) -> None:
    names = ask(music, "SELECT Id, s.Name, Id + 1, Id AS x, s.Tags[OFFSET(0)] FROM Singers s").names
    assert names == ["Id", "Name", "", "x", ""]
    assert ask(music, "SELECT * FROM UNNEST([1]) AS n WITH OFFSET").names == ["n", "offset"]
    assert ask(music, "SELECT 1 AS a UNION ALL SELECT 2 AS b").names == ["a"]
