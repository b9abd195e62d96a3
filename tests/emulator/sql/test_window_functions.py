"""Window functions: partitions, order, frames, NULLs, types, named windows, QUALIFY, refusals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from fixtures.queries import ask, fill, plain
from google.api_core import exceptions
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database

PRODUCE = (
    "CREATE TABLE Produce (Item STRING(MAX), Kind STRING(MAX), Bought INT64) PRIMARY KEY (Item)",
)
FROM = "FROM Produce"

# SQL, types of the columns, rows in order.
QUERIES: list[tuple[str, str, list[tuple[object, ...]]]] = [
    (
        f"SELECT Item, SUM(Bought) OVER () {FROM} ORDER BY Item LIMIT 2",
        "STRING, INT64",
        [("apple", 56), ("banana", 56)],
    ),
    (
        "SELECT Item, SUM(Bought) OVER (PARTITION BY Kind ORDER BY Bought, Item "
        f"ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) {FROM} ORDER BY Kind, Bought, Item",
        "STRING, INT64",
        [("banana", 2), ("orange", 4), ("apple", 12), ("leek", 2), ("cabbage", 11),
         ("lettuce", 21), ("kale", 44)],
    ),
    (
        f"SELECT Item, SUM(Bought) OVER (ORDER BY Bought) {FROM} ORDER BY Bought, Item",
        "STRING, INT64",
        [("banana", 6), ("leek", 6), ("orange", 6), ("apple", 14), ("cabbage", 23),
         ("lettuce", 33), ("kale", 56)],
    ),
    (
        "SELECT Item, RANK() OVER w, DENSE_RANK() OVER w, ROW_NUMBER() OVER (ORDER BY Bought, Item)"
        f", PERCENT_RANK() OVER w, CUME_DIST() OVER w {FROM} WINDOW w AS (ORDER BY Bought) "
        "ORDER BY Bought, Item LIMIT 4",
        "STRING, INT64, INT64, INT64, FLOAT64, FLOAT64",
        [("banana", 1, 1, 1, 0.0, 3 / 7), ("leek", 1, 1, 2, 0.0, 3 / 7),
         ("orange", 1, 1, 3, 0.0, 3 / 7), ("apple", 4, 2, 4, 0.5, 4 / 7)],
    ),
    (
        f"SELECT Item, NTILE(3) OVER (ORDER BY Item) {FROM} ORDER BY Item",
        "STRING, INT64",
        [("apple", 1), ("banana", 1), ("cabbage", 1), ("kale", 2), ("leek", 2), ("lettuce", 3),
         ("orange", 3)],
    ),
    (
        "SELECT Item, LAG(Item) OVER w, LEAD(Item, 2) OVER w, LAG(Bought, 1, -1) OVER w "
        f"{FROM} WINDOW w AS (PARTITION BY Kind ORDER BY Item) ORDER BY Kind, Item LIMIT 3",
        "STRING, STRING, STRING, INT64",
        [("apple", None, "orange", -1), ("banana", "apple", None, 8),
         ("orange", "banana", None, 2)],
    ),
    (
        "SELECT Item, FIRST_VALUE(Item) OVER w, LAST_VALUE(Item) OVER w, NTH_VALUE(Item, 2) OVER w "
        f"{FROM} WINDOW w AS (PARTITION BY Kind ORDER BY Bought DESC, Item "
        "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) ORDER BY Kind, Bought DESC, Item LIMIT 3",
        "STRING, STRING, STRING, STRING",
        [("apple", "apple", "banana", "banana"), ("banana", "apple", "orange", "banana"),
         ("orange", "banana", "orange", "orange")],
    ),
    (
        "SELECT COUNT(*) OVER (ORDER BY Bought RANGE BETWEEN 2 PRECEDING AND 2 FOLLOWING) "
        f"{FROM} ORDER BY Bought, Item",
        "INT64",
        [(3,), (3,), (3,), (3,), (3,), (3,), (1,)],
    ),
    # A window over groups, in ORDER BY, over its own name, and of expressions.
    (
        "SELECT Kind, COUNT(*), SUM(COUNT(*)) OVER (), RANK() OVER (ORDER BY SUM(Bought)) "
        f"{FROM} GROUP BY Kind ORDER BY Kind",
        "STRING, INT64, INT64, INT64",
        [("fruit", 3, 7, 1), ("vegetable", 4, 7, 2)],
    ),
    (
        f"SELECT SUM(COUNT(*)) OVER () {FROM}",
        "INT64",
        [(7,)],
    ),
    (
        f"SELECT Item {FROM} ORDER BY ROW_NUMBER() OVER (ORDER BY Bought DESC) LIMIT 1",
        "STRING",
        [("kale",)],
    ),
    (
        "SELECT AVG(Bought) OVER (w ROWS 1 PRECEDING) - 1, 2 * COUNT(*) OVER v "
        f"{FROM} WINDOW u AS (PARTITION BY Kind), w AS (u ORDER BY Item), v AS w "
        "ORDER BY Kind, Item LIMIT 2",
        "FLOAT64, INT64",
        [(7.0, 2), (4.0, 4)],
    ),
    (
        "SELECT DISTINCT Kind, MAX(Bought) OVER (PARTITION BY Kind) AS m FROM Produce ORDER BY m",
        "STRING, INT64",
        [("fruit", 8), ("vegetable", 23)],
    ),
    # QUALIFY.
    (
        f"SELECT Item {FROM} WHERE Bought < 20 "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY Kind ORDER BY Bought DESC) = 1 ORDER BY Bought",
        "STRING",
        [("apple",), ("lettuce",)],
    ),
    (
        f"SELECT Item, RANK() OVER (ORDER BY Bought DESC) AS place {FROM} WHERE TRUE "
        "QUALIFY place <= 3 ORDER BY place DESC LIMIT 2",
        "STRING, INT64",
        [("cabbage", 3), ("lettuce", 2)],
    ),
    (
        f"SELECT DISTINCT Kind {FROM} WHERE TRUE QUALIFY COUNT(*) OVER (PARTITION BY Kind) > 3",
        "STRING",
        [("vegetable",)],
    ),
    # NULLs, NaN and order.
    (
        "SELECT x, ROW_NUMBER() OVER (ORDER BY x), ROW_NUMBER() OVER (ORDER BY x DESC) "
        "FROM UNNEST([1.5, CAST('nan' AS FLOAT64), NULL, CAST('-inf' AS FLOAT64)]) AS x ORDER BY x",
        "FLOAT64, INT64, INT64",
        [(None, 1, 4), ("nan", 2, 3), (-math.inf, 3, 2), (1.5, 4, 1)],
    ),
    (
        "SELECT o, FIRST_VALUE(x IGNORE NULLS) OVER w, LAST_VALUE(x IGNORE NULLS) OVER w, "
        "NTH_VALUE(x, 2 IGNORE NULLS) OVER w, FIRST_VALUE(x RESPECT NULLS) OVER w "
        "FROM UNNEST([NULL, 'a', NULL, 'b']) AS x WITH OFFSET o WINDOW w AS (ORDER BY o) "
        "ORDER BY o",
        "INT64, STRING, STRING, STRING, STRING",
        [(0, None, None, None, None), (1, "a", "a", None, None), (2, "a", "a", None, None),
         (3, "a", "b", "b", None)],
    ),
    (
        "SELECT LAST_VALUE(x IGNORE NULLS) OVER (ORDER BY o ROWS BETWEEN 1 FOLLOWING AND "
        "2 FOLLOWING) FROM UNNEST([1, 2, NULL, NULL]) AS x WITH OFFSET o ORDER BY o",
        "INT64",
        [(2,), (None,), (None,), (None,)],
    ),
    (
        "SELECT LEAD(x, 1, 0.5) OVER (ORDER BY o), LAG(d) OVER (ORDER BY o) FROM "
        "(SELECT NUMERIC '1.5' AS x, DATE '2024-01-01' AS d, 1 AS o) ORDER BY o",
        "NUMERIC, DATE",
        [(Decimal("0.5"), None)],
    ),
    # Aggregates of every type.
    (
        "SELECT COUNTIF(x > 1) OVER w, LOGICAL_AND(x > 1) OVER w, LOGICAL_OR(x > 1) OVER w, "
        "ANY_VALUE(x) OVER w, BIT_XOR(x) OVER w, ARRAY_AGG(x) OVER w, "
        "STRING_AGG(CAST(x AS STRING), '+') OVER w FROM UNNEST([1, 2]) AS x "
        "WINDOW w AS (ORDER BY x ROWS CURRENT ROW) ORDER BY x",
        "INT64, BOOL, BOOL, INT64, INT64, ARRAY<INT64>, STRING",
        [(0, False, False, 1, 1, [1], "1"), (1, True, True, 2, 2, [2], "2")],
    ),
    (
        "SELECT SUM(x) OVER w FROM UNNEST([9223372036854775807, -1, 9223372036854775807]) AS x "
        "WITH OFFSET o WINDOW w AS (ORDER BY o ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) "
        "ORDER BY o",
        "INT64",
        [(2**63 - 1,), (2**63 - 2,), (2**63 - 2,)],
    ),
    (
        "SELECT AVG(x) OVER (ORDER BY o ROWS 1 PRECEDING) FROM UNNEST([1e308, -1e308, 0.1]) AS x "
        "WITH OFFSET o ORDER BY o",
        "FLOAT64",
        [(1e308,), (0.0,), (-5e307,)],
    ),
    (
        "SELECT SUM(x) OVER (ORDER BY o ROWS 1 PRECEDING) FROM UNNEST([CAST('inf' AS FLOAT64), "
        "CAST('-inf' AS FLOAT64), 1, 2]) AS x WITH OFFSET o ORDER BY o",
        "FLOAT64",
        [(math.inf,), ("nan",), (-math.inf,), (3.0,)],
    ),
]  # fmt: skip

REFUSED: list[tuple[str, type[Exception], str]] = [
    (f"SELECT Item {FROM} WHERE RANK() OVER (ORDER BY Item) = 1", exceptions.InvalidArgument,
     "not allowed here"),
    (f"SELECT 1 {FROM} GROUP BY RANK() OVER (ORDER BY Item)", exceptions.InvalidArgument,
     "not allowed here"),
    (f"SELECT COUNT(*) {FROM} HAVING RANK() OVER (ORDER BY COUNT(*)) = 1",
     exceptions.InvalidArgument, "not allowed here"),
    (f"SELECT SUM(RANK() OVER (ORDER BY Item)) {FROM}", exceptions.InvalidArgument,
     "not allowed here"),
    (f"SELECT SUM(COUNT(*) OVER ()) OVER () {FROM}", exceptions.InvalidArgument,
     "not allowed here"),
    (f"SELECT Item, COUNT(*) OVER (ORDER BY Item) {FROM} GROUP BY Kind",
     exceptions.InvalidArgument, "neither grouped nor aggregated"),
    (f"SELECT RANK() OVER () {FROM}", exceptions.InvalidArgument, "ORDER BY is required"),
    (f"SELECT RANK() {FROM}", exceptions.InvalidArgument, "without an OVER clause"),
    (f"SELECT UPPER(Item) OVER () {FROM}", exceptions.InvalidArgument, "does not support an OVER"),
    (f"SELECT LAG(Item) OVER (ORDER BY Item ROWS 1 PRECEDING) {FROM}", exceptions.InvalidArgument,
     "framing clause is not allowed"),
    (f"SELECT LAG(Item IGNORE NULLS) OVER (ORDER BY Item) {FROM}", exceptions.InvalidArgument,
     "LAG"),
    (f"SELECT COUNT(*) OVER w {FROM}", exceptions.InvalidArgument, "window alias w"),
    (f"SELECT 1 {FROM} WINDOW w AS (), W AS ()", exceptions.InvalidArgument, "Duplicate"),
    (f"SELECT COUNT(*) OVER (w PARTITION BY Kind) {FROM} WINDOW w AS ()",
     exceptions.InvalidArgument, "PARTITION BY"),
    (f"SELECT COUNT(*) OVER (w ORDER BY Kind) {FROM} WINDOW w AS (ORDER BY Item)",
     exceptions.InvalidArgument, "ORDER BY already"),
    ("SELECT COUNT(*) OVER (PARTITION BY x) FROM UNNEST([1.5]) AS x", exceptions.InvalidArgument,
     "FLOAT64 does not support partitioning"),
    (f"SELECT COUNT(*) OVER (ORDER BY Item RANGE 1 PRECEDING) {FROM}", exceptions.InvalidArgument,
     "exactly one numeric"),
    ("SELECT COUNT(*) OVER (ORDER BY x RANGE 1 PRECEDING) FROM UNNEST([1.5]) AS x",
     exceptions.MethodNotImplemented, "RANGE window with an offset over FLOAT64"),
    (f"SELECT COUNT(*) OVER (ORDER BY Item ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) {FROM}",
     exceptions.InvalidArgument, "cannot go from"),
    (f"SELECT COUNT(*) OVER (ORDER BY Item ROWS BETWEEN 1 FOLLOWING AND Bought FOLLOWING) {FROM}",
     exceptions.InvalidArgument, "literal or parameter"),
    (f"SELECT COUNT(DISTINCT Kind) OVER () {FROM}", exceptions.MethodNotImplemented,
     "DISTINCT in COUNT"),
    (f"SELECT ARRAY_AGG(Kind ORDER BY Item) OVER () {FROM}", exceptions.InvalidArgument,
     "ORDER BY and LIMIT"),
    (f"SELECT PERCENTILE_CONT(Bought, 0.5) OVER () {FROM}", exceptions.MethodNotImplemented,
     "PERCENTILE_CONT"),
    (f"SELECT NTILE(0) OVER (ORDER BY Item) {FROM}", exceptions.OutOfRange, "NTILE"),
    (f"SELECT NTH_VALUE(Item, 0) OVER (ORDER BY Item) {FROM}", exceptions.OutOfRange, "NTH_VALUE"),
    (f"SELECT NTH_VALUE(Item, 0 IGNORE NULLS) OVER (ORDER BY Item) {FROM}", exceptions.OutOfRange,
     "NTH_VALUE"),
    ("SELECT SUM(x) OVER () FROM UNNEST([9223372036854775807, 1]) AS x", exceptions.OutOfRange,
     "int64 overflow"),
]  # fmt: skip


@pytest.fixture(scope="module")
def produce(module_database: Callable[..., Database]) -> Database:
    database = module_database(*PRODUCE)
    fill(
        database,
        "INSERT INTO Produce (Item, Kind, Bought) VALUES ('kale', 'vegetable', 23), "
        "('banana', 'fruit', 2), ('cabbage', 'vegetable', 9), ('apple', 'fruit', 8), "
        "('leek', 'vegetable', 2), ('lettuce', 'vegetable', 10), ('orange', 'fruit', 2)",
    )
    return database


@pytest.mark.parametrize(("sql", "types", "rows"), QUERIES)
def test_a_window_query_gives_rows_and_types(
    produce: Database, sql: str, types: str, rows: list[tuple[object, ...]]
) -> None:
    answer = ask(produce, sql)
    assert ", ".join(answer.types) == types
    assert [tuple(map(plain, row)) for row in answer.rows] == rows


@pytest.mark.parametrize(("sql", "refusal", "message"), REFUSED)
def test_what_a_window_cannot_be_is_refused(
    produce: Database, sql: str, refusal: type[Exception], message: str
) -> None:
    with pytest.raises(refusal, match=message):
        ask(produce, sql)


def test_numbers_of_a_window_may_be_parameters(produce: Database) -> None:
    sql = (
        "SELECT SUM(Bought) OVER (ORDER BY Item ROWS BETWEEN @n PRECEDING AND @n FOLLOWING), "
        "LAG(Bought, @n) OVER (ORDER BY Item) FROM Produce ORDER BY Item LIMIT 2"
    )
    types = {"n": param_types.INT64}
    assert ask(produce, sql, {"n": 1}, types).rows == [(10, None), (19, 8)]
    assert ask(produce, sql, {"n": 1}).rows == [(10, None), (19, 8)]
    for wrong in (-1, None):
        with pytest.raises(exceptions.OutOfRange):
            ask(produce, sql, {"n": wrong}, types)
    with pytest.raises(exceptions.OutOfRange, match="LAG"):
        ask(produce, "SELECT LAG(1, @n) OVER (ORDER BY Item) FROM Produce", {"n": -1}, types)


Given = list[Any]
AGGREGATES: dict[str, Callable[[Given], Any]] = {
    "COUNT(V)": len,
    "SUM(V)": lambda values: sum(values) if values else None,
    "AVG(V)": lambda values: sum(values) / len(values) if values else None,
    "MIN(V)": lambda values: min(values, default=None),
    "MAX(V)": lambda values: max(values, default=None),
    "FIRST_VALUE(V IGNORE NULLS)": lambda values: values[0] if values else None,
    "LAST_VALUE(V IGNORE NULLS)": lambda values: values[-1] if values else None,
    "NTH_VALUE(V, 2 IGNORE NULLS)": lambda values: values[1] if len(values) > 1 else None,
}


def random_bound(rng: Random) -> tuple[str, float]:
    """A frame's end, as SQL and as a distance in rows."""
    far = rng.randint(0, 3)
    return rng.choice(
        [
            ("UNBOUNDED PRECEDING", -math.inf),
            (f"{far} PRECEDING", -far - 0.5 * (far == 0)),
            ("CURRENT ROW", 0),
            (f"{far} FOLLOWING", far + 0.5 * (far == 0)),
            ("UNBOUNDED FOLLOWING", math.inf),
        ]
    )


def frame_indexes(values: Sequence[Any], place: int, low: float, high: float) -> Given:
    """The values of the rows between two distances that are not NULL."""
    return [v for n, v in enumerate(values) if v is not None and low <= float(n - place) <= high]


@pytest.mark.parametrize("kind", ["INT64", "FLOAT64", "NUMERIC"])
@pytest.mark.parametrize("seed", range(8))
def test_frames_of_rows_hold_what_a_model_says(blank: Database, kind: str, seed: int) -> None:
    rng = Random(seed)
    values = [rng.choice([None, rng.randint(-9, 9)]) for _ in range(rng.randint(1, 12))]
    (first, low), (last, high) = sorted([random_bound(rng), random_bound(rng)], key=lambda b: b[1])
    if first == "UNBOUNDED FOLLOWING" or last == "UNBOUNDED PRECEDING":
        first, low, last, high = "UNBOUNDED PRECEDING", -math.inf, "CURRENT ROW", 0
    listed = ", ".join("NULL" if v is None else str(v) for v in values)
    calls = ", ".join(f"{call} OVER w" for call in AGGREGATES)
    sql = (
        f"SELECT {calls} FROM (SELECT CAST(x AS {kind}) AS V, o FROM UNNEST([{listed}]) AS x "
        f"WITH OFFSET o) WINDOW w AS (ORDER BY o ROWS BETWEEN {first} AND {last}) ORDER BY o"
    )
    for place, row in enumerate(ask(blank, sql).rows):
        result = frame_indexes(values, place, whole(low), whole(high))
        expected = [call(result) for call in AGGREGATES.values()]
        for mine, theirs in zip(row, expected, strict=True):
            assert (mine is None) == (theirs is None)
            assert theirs is None or float(str(mine)) == pytest.approx(float(theirs))


def whole(distance: float) -> float:
    """Without the half that tells 0 PRECEDING from CURRENT ROW when bounds are sorted."""
    return distance if math.isinf(distance) else float(math.trunc(distance))
