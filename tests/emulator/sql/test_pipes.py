"""Pipe syntax: every operator of Spanner's documentation, names of tables inside, order, errors.

``tests/reference/pipelines.py`` compares random ones with GoogleSQL's reference implementation.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fixtures.queries import ask, fill
from google.api_core import exceptions
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database

DDL = (
    "CREATE TABLE Produce (item STRING(MAX), sales INT64, category STRING(MAX))"
    " PRIMARY KEY (item, sales)",
    "CREATE VIEW Fruit SQL SECURITY INVOKER AS"
    " FROM Produce AS p |> WHERE p.category = 'fruit'"
    " |> AGGREGATE SUM(p.sales) AS sold GROUP BY p.item",
)
ROWS = [
    ("apples", 2, "fruit"),
    ("carrots", 8, "vegetable"),
    ("apples", 7, "fruit"),
    ("bananas", 5, "fruit"),
]
NUMBERS = "FROM UNNEST([1, 2, 3, 3, 4]) AS n |> SELECT n"

# SQL, the names of the columns, rows in order.
QUERIES: list[tuple[str, str, list[tuple[object, ...]]]] = [
    ("FROM Produce |> ORDER BY sales |> LIMIT 1", "item, sales, category",
     [("apples", 2, "fruit")]),
    ("FROM Produce |> WHERE item != 'bananas' AND category IN ('fruit', 'nut')"
     " |> AGGREGATE COUNT(*) AS num_items, SUM(sales) AS total_sales GROUP BY item"
     " |> ORDER BY item DESC;", "item, num_items, total_sales", [("apples", 2, 9)]),
    ("FROM Produce AS p1 JOIN Produce AS p2 USING (item) |> WHERE item = 'bananas'"
     " |> SELECT p1.item, p2.sales", "item, sales", [("bananas", 5)]),
    ("(SELECT 'apples' AS item, 2 AS sales UNION ALL SELECT 'bananas', 8)"
     " |> EXTEND item IN ('bananas', 'lemons') AS is_yellow |> ORDER BY item",
     "item, sales, is_yellow", [("apples", 2, False), ("bananas", 8, True)]),
    ("(SELECT 1 AS x, 11 AS y UNION ALL SELECT 2, 22) |> SET x = x * x, y = 3 |> ORDER BY x",
     "x, y", [(1, 3), (4, 3)]),
    ("SELECT 'apples' AS item, 2 AS sales, 'fruit' AS category |> DROP sales, category", "item",
     [("apples",)]),
    # A table inside still has its own columns.
    ("FROM (SELECT 2 AS x, 3 AS y) AS t |> SET x = x * x, y = 8 |> SELECT t.x AS original_x, x, y",
     "original_x, x, y", [(2, 4, 8)]),
    ("FROM (SELECT 1 AS x, 2 AS y) AS t |> DROP x |> SELECT t.x AS original_x, y",
     "original_x, y", [(1, 2)]),
    ("SELECT 1 AS x, 2 AS y, 3 AS z |> AS t |> RENAME y AS renamed_y |> SELECT *, t.y AS t_y",
     "x, renamed_y, z, t_y", [(1, 2, 3, 2)]),
    ("FROM (SELECT 1 AS x, 2 AS y) AS t |> EXTEND 5 AS z |> DROP y |> SELECT * EXCEPT (z), t.y",
     "x, y", [(1, 2)]),
    ("FROM (SELECT 1 AS x) AS t |> EXTEND 2 AS y |> EXTEND 3 AS z |> AGGREGATE COUNT(*) AS c"
     " GROUP BY t.x, y", "x, y, c", [(1, 2, 1)]),
    ("FROM (SELECT 1 AS x) AS t |> EXTEND 5 AS z |> WHERE EXISTS (FROM (SELECT 1 AS q) AS u"
     " |> EXTEND 0 AS w |> WHERE u.q = t.x) |> SELECT z", "z", [(5,)]),
    ("WITH a AS (SELECT 1 AS x) FROM a |> JOIN a AS b USING (x) |> WHERE x = 1"
     " |> LEFT JOIN (SELECT 1 AS k, 9 AS v) AS c ON a.x = c.k |> SELECT b.x, c.v", "x, v",
     [(1, 9)]),
    # Groups, and their order.
    ("FROM Produce |> AGGREGATE COUNT(*) AS n, SUM(sales) AS s", "n, s", [(4, 22)]),
    ("FROM Produce |> AGGREGATE SUM(sales) AS total_sales GROUP AND ORDER BY category, item DESC",
     "category, item, total_sales",
     [("fruit", "bananas", 5), ("fruit", "apples", 9), ("vegetable", "carrots", 8)]),
    ("FROM Produce |> AGGREGATE SUM(sales) AS total_sales ASC GROUP BY item, category DESC",
     "item, category, total_sales",
     [("carrots", "vegetable", 8), ("bananas", "fruit", 5), ("apples", "fruit", 9)]),
    ("FROM Produce |> AGGREGATE GROUP BY UPPER(category) AS c |> ORDER BY c", "c",
     [("FRUIT",), ("VEGETABLE",)]),
    # Rows stay in their order.
    ("FROM Produce |> ORDER BY sales DESC |> SELECT item |> EXTEND 1 AS one |> LIMIT 2",
     "item, one", [("carrots", 1), ("apples", 1)]),
    ("FROM Produce |> ORDER BY sales DESC |> LIMIT 3 OFFSET 1 |> DROP category |> RENAME sales s",
     "item, s", [("apples", 7), ("bananas", 5), ("apples", 2)]),
    ("SELECT x FROM UNNEST([3, 1, 2]) AS x ORDER BY x DESC |> EXTEND x + 1 AS y |> LIMIT 2", "x, y",
     [(3, 4), (2, 3)]),
    ("FROM Produce AS p |> EXTEND 1 AS one |> JOIN Fruit AS f ON f.item = p.item |> EXTEND 2 AS two"
     " |> ORDER BY p.sales, f.sold |> SELECT p.item, f.sold, one, two |> LIMIT 2",
     "item, sold, one, two", [("apples", 9, 1, 2), ("bananas", 5, 1, 2)]),
    # Sets.
    (f"{NUMBERS} |> UNION ALL (SELECT 1), (SELECT 9) |> ORDER BY n DESC |> LIMIT 2", "n",
     [(9,), (4,)]),
    (f"{NUMBERS} |> UNION DISTINCT (SELECT 1) |> AGGREGATE COUNT(*) AS c", "c", [(4,)]),
    (f"{NUMBERS} |> INTERSECT ALL (FROM UNNEST([2, 3, 3, 5]) AS n |> SELECT n) |> ORDER BY n", "n",
     [(2,), (3,), (3,)]),
    (f"{NUMBERS} |> EXCEPT DISTINCT (SELECT 1 UNION ALL SELECT 2 |> EXCEPT DISTINCT (SELECT 1))"
     " |> ORDER BY n", "n", [(1,), (3,), (4,)]),
    # Where a query may be.
    ("SELECT ARRAY(FROM UNNEST([2, 1]) AS x |> ORDER BY x) AS a", "a", [([1, 2],)]),
    ("SELECT (FROM Produce |> AGGREGATE MAX(sales)) AS m, @p AS p", "m, p", [(8, 7)]),
    ("FROM Fruit |> ORDER BY sold DESC |> LIMIT 1", "item, sold", [("apples", 9)]),
    ("SELECT ARRAY(FROM Produce |> WHERE sales = @p |> SELECT DISTINCT category,"
     " |> SELECT AS STRUCT category)[OFFSET(0)].category", "category", [("fruit",)]),
    ("FROM Produce |> TABLESAMPLE BERNOULLI (100 PERCENT) |> AGGREGATE COUNT(*) AS n", "n", [(4,)]),
    ("FROM Produce@{FORCE_INDEX=_BASE_TABLE} |> JOIN@{JOIN_METHOD=HASH_JOIN} Fruit USING (item)"
     " |> AGGREGATE COUNT(*) AS n", "n", [(3,)]),
]  # fmt: skip
REFUSED = [
    ("FROM Produce |> AGGREGATE", "Pipe AGGREGATE cannot have both an empty"),
    ("FROM Produce |> DROP nothing", "Column nothing"),
    ("FROM Produce |> SET nothing = 1", "Column nothing"),
    ("FROM Produce |> RENAME nothing AS x", "Column nothing"),
    ("FROM Produce AS t |> SELECT sales |> SELECT t.sales", "Unrecognized name: t"),
    ("FROM Produce AS t |> AS u |> WHERE t.sales = 1", "Unrecognized name: t"),
    ("FROM Produce |> SELECT `$pipe1`", "Unrecognized name"),
    ("FROM Produce |> PIVOT(COUNT(*) FOR item IN ('a'))", "Syntax error"),
    ("SELECT * RENAME (item AS x) FROM Produce", "Syntax error"),
    ("FROM Produce |> WHERE item IN (" * 150 + "SELECT 'a'" + ")" * 150, ""),
]


@pytest.fixture(scope="module")
def database(module_database: Callable[..., Database]) -> Database:
    database = module_database(*DDL)
    with database.batch() as batch:
        batch.insert("Produce", ["item", "sales", "category"], ROWS)
    return database


@pytest.mark.parametrize(("sql", "names", "rows"), QUERIES)
def test_operators(
    database: Database, sql: str, names: str, rows: list[tuple[object, ...]]
) -> None:
    answer = ask(database, sql, {"p": 7}, {"p": param_types.INT64})
    assert ", ".join(answer.names) == names
    assert answer.rows == rows


@pytest.mark.parametrize(("sql", "message"), REFUSED)
def test_what_is_refused(database: Database, sql: str, message: str) -> None:
    with pytest.raises(exceptions.InvalidArgument, match=message):
        ask(database, sql)


def test_a_query_that_inserts(module_database: Callable[..., Database]) -> None:
    database = module_database(*DDL)
    fill(
        database,
        "INSERT INTO Produce (item, sales, category) VALUES ('carrots', 8, 'vegetable')",
        "INSERT INTO Produce (item, sales, category)"
        " FROM Produce |> WHERE item = 'carrots' |> SELECT 'peas', sales, category",
    )
    assert ask(database, "FROM Produce |> WHERE item = 'peas' |> SELECT sales").value == 8
