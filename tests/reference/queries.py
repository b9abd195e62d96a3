"""Random queries over the two tables of ``tables.py``: joins, groups, sets, subqueries, order."""

from __future__ import annotations

import random
from dataclasses import dataclass

from reference.expressions import HOLE, make_expression
from reference.leaves import COLUMNS
from reference.pipelines import make_pipeline
from reference.rarer_queries import RARER_QUERIES
from reference.rarer_templates import items

GROUPED = "isbdny"
"""Kinds of the columns that queries group by: floats of nearly the same value are two groups."""
JOINS = ("JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT OUTER JOIN")
SETS = (
    "UNION ALL",
    "UNION DISTINCT",
    "INTERSECT ALL",
    "INTERSECT DISTINCT",
    "EXCEPT ALL",
    "EXCEPT DISTINCT",
)
AGGREGATES = {
    "i": items(
        r"""
        COUNT(*); COUNT(<i>); COUNT(DISTINCT <i>); SUM(<i>); SUM(DISTINCT <i>); MIN(<i>); MAX(<i>);
        COUNTIF(<b>); BIT_OR(<i>); BIT_AND(<i>); BIT_XOR(<i>); MAX(<i> HAVING MIN <k>); COUNT(<s>);
        COUNT(DISTINCT <s>)
        """
    ),
    "f": items(
        r"""
        AVG(<i>); AVG(DISTINCT <i>); SUM(<n>); AVG(<n>); MIN(<f>); MAX(<f>); STDDEV(<i>);
        VAR_SAMP(<i>)
        """
    ),
    "s": items(
        r"""
        MIN(<s>); MAX(<s>); STRING_AGG(<s>, '+' ORDER BY <k>);
        STRING_AGG(DISTINCT <s> ORDER BY <s>); STRING_AGG(<s> ORDER BY <k> DESC LIMIT 2)
        """
    ),
    "b": items(r"""LOGICAL_AND(<b>); LOGICAL_OR(<b>)"""),
    "l": items(
        r"""
        ARRAY_AGG(<i> ORDER BY <k>); ARRAY_AGG(<i> IGNORE NULLS ORDER BY <k> DESC);
        ARRAY_AGG(DISTINCT <i> ORDER BY <i>); ARRAY_AGG(<i> ORDER BY <k> LIMIT 1)
        """
    ),
    "d": items(
        r"""
        MIN(<d>); MAX(<d>); MAX(<t>); MIN(<t>)
        """
    ),
}
JOIN_TESTS = items(
    "a.I = b.I; a.K = b.K; a.S = b.S; a.I < b.I; a.D = b.D AND a.K > b.K; a.I = b.I OR a.S = b.S"
)
SUBQUERIES = items(
    """
    (SELECT COUNT(*) FROM B WHERE B.<c> = a.<c>);
    (SELECT MAX(b.K) FROM B AS b WHERE b.K < a.K);
    EXISTS(SELECT 1 FROM B AS b WHERE b.<c> = a.<c> AND b.K <> a.K);
    a.<c> IN (SELECT b.<c> FROM B AS b);
    a.<c> NOT IN (SELECT b.<c> FROM B AS b WHERE b.<c> IS NOT NULL);
    ARRAY(SELECT b.K FROM B AS b WHERE b.K >= a.K ORDER BY b.K);
    ARRAY(SELECT AS STRUCT b.K, b.S FROM B AS b WHERE b.I = a.I ORDER BY b.K DESC);
    (SELECT STRUCT(b.K AS k, b.F AS f) FROM B AS b WHERE b.K = a.K).f;
    (SELECT SUM(e) FROM UNNEST(a.L) AS e);
    (SELECT STRING_AGG(w, '/' ORDER BY w) FROM UNNEST(a.W) AS w WHERE w <> a.S2);
    (SELECT b.S FROM B AS b WHERE b.K = a.I)
    """
)
SUBQUERY_TESTS = (
    "",
    " WHERE EXISTS(SELECT 1 FROM B AS b WHERE b.<c> = a.<c>)",
    " WHERE a.K > (SELECT MIN(K) FROM B)",
)
UNNESTED = items(
    """
    SELECT a.K, e FROM A AS a, a.L AS e;
    SELECT a.K, e, o FROM A AS a CROSS JOIN UNNEST(a.W) AS e WITH OFFSET AS o;
    SELECT a.K, e FROM A AS a LEFT JOIN UNNEST(a.L) AS e;
    SELECT a.K, e FROM A AS a LEFT JOIN UNNEST(a.L) AS e ON e > 1;
    SELECT a.K, e FROM A AS a LEFT JOIN UNNEST(a.L) AS e ON e = a.I;
    SELECT a.K, e FROM A AS a LEFT JOIN UNNEST(a.L) AS e ON FALSE;
    SELECT e.x, e.y FROM UNNEST([STRUCT(1 AS x, 'a' AS y), (2, NULL)]) AS e;
    SELECT x, o FROM UNNEST([3, 1, NULL]) AS x WITH OFFSET o WHERE o <> 1;
    SELECT COUNT(DISTINCT e) AS n, a.B FROM A AS a, UNNEST(a.W) AS e GROUP BY a.B;
    SELECT e, ARRAY_AGG(a.K ORDER BY a.K) AS ks FROM A AS a, UNNEST(a.L) AS e GROUP BY e;
    SELECT K, ARRAY(SELECT e FROM UNNEST(L) AS e WITH OFFSET o WHERE <b> ORDER BY o) AS l FROM A;
    SELECT ARRAY(SELECT AS STRUCT K, S FROM A WHERE K < 3 ORDER BY K) AS rows;
    SELECT x.k, x.l FROM (SELECT AS VALUE STRUCT(K AS k, L AS l) FROM A WHERE K < 4) AS x
    """
)
OVER_COMMON = items(
    """
    SELECT c.K, d.K AS k2 FROM C AS c JOIN C AS d ON c.v = d.v;
    SELECT COUNT(*) AS n, COUNT(v) AS m, MAX(v) AS x FROM C;
    SELECT * FROM C WHERE v = (SELECT MIN(v) FROM C);
    SELECT * FROM C UNION ALL SELECT * FROM C;
    SELECT b.K, c.v FROM B AS b LEFT JOIN C AS c USING (K)
    """
)
MAYBE = 0.4


@dataclass(frozen=True, slots=True)
class Query:
    """``sql`` without the tables: ``with_tables`` is the clause that defines them, or empty.
    ``is_ordered``: the order of its rows is defined."""

    sql: str
    common: str = ""
    is_ordered: bool = False

    def text(self, with_tables: str = "") -> str:
        """The statement."""
        if not with_tables:
            return f"WITH {self.common} {self.sql}" if self.common else self.sql
        return f"{with_tables}{', ' + self.common if self.common else ''} {self.sql}"


def make_query(choice: random.Random) -> Query:
    """A query of a random shape."""
    return choice.choice(MAKERS)(choice)


def expression(choice: random.Random, kind: str, depth: int = 2) -> str:
    """An expression over the columns of the only table."""
    return make_expression(choice, kind, depth)


def some_kind(choice: random.Random) -> str:
    return choice.choice("ifgnsybdtjvulwxehmq")


def condition(choice: random.Random) -> str:
    """A WHERE clause, or none."""
    return f" WHERE {expression(choice, 'b', 2)}" if choice.random() < 0.6 else ""


def columns(choice: random.Random, count: int | None = None) -> str:
    """Items of a SELECT list, with names."""
    number = choice.randint(1, 4) if count is None else count
    return ", ".join(
        f"{expression(choice, some_kind(choice), 1)} AS c{place}" for place in range(number)
    )


def plain(choice: random.Random) -> Query:
    """A table, a condition, an order and a limit."""
    star = choice.choice(
        ["A.*", "*", "* EXCEPT (J, L, W)", "* REPLACE (K + 1 AS K)", "", "", "", ""]
    )
    items = star or columns(choice)
    distinct = "DISTINCT " if not star and choice.random() < 0.2 else ""
    if distinct:
        items = ", ".join(choice.sample([each for k in GROUPED for each in COLUMNS[k]], 2))
        return Query(f"SELECT DISTINCT {items} FROM A{condition(choice)}")
    order, is_ordered = order_by(choice)
    return Query(f"SELECT {items} FROM A{condition(choice)}{order}", "", is_ordered)


def order_by(choice: random.Random, key: str = "K") -> tuple[str, bool]:
    """An ORDER BY that ends with a key, and perhaps LIMIT and OFFSET."""
    if choice.random() < 0.4:
        return "", False
    kind = choice.choice("insydt")
    way = choice.choice(["", " ASC", " DESC"])
    limit = choice.choice(
        ["", "", " LIMIT 3", " LIMIT 2 OFFSET 1", " LIMIT 0", " LIMIT 10 OFFSET 4"]
    )
    return f" ORDER BY {choice.choice(COLUMNS[kind])}{way}, {key}{limit}", True


def joined(choice: random.Random) -> Query:
    """Two tables, or three."""
    kind = choice.choice(JOINS)
    column = choice.choice(COLUMNS[choice.choice("iisd")])
    items = "a.K AS k1, b.K AS k2, a.S, b.I"
    shape = choice.randrange(5)
    if shape == 0:
        return Query(f"SELECT {items} FROM A AS a CROSS JOIN B AS b WHERE a.{column} = b.{column}")
    if shape == 1:
        using = choice.choice(["K", "I", "S", "K, I"])
        sides = [f"(SELECT K, I, S FROM {table})" for table in "AB"]
        return Query(f"SELECT * FROM {sides[0]} {kind} {sides[1]} USING ({using})")
    if shape == 2:
        first = f"A AS a {kind} B AS b ON a.{column} = b.{column}"
        third = f"{choice.choice(JOINS[:3])} A AS c ON c.I = b.I"
        return Query(f"SELECT a.K AS k1, b.K AS k2, c.K AS k3 FROM {first} {third}")
    where = choice.choice(["", " WHERE a.K IS NULL OR b.K IS NULL", " WHERE a.B", " WHERE b.F > 1"])
    method = choice.choice(["", "", "@{JOIN_METHOD=HASH_JOIN}"]) if kind == "JOIN" else ""
    test = choice.choice(JOIN_TESTS)
    return Query(f"SELECT {items} FROM A AS a {kind}{method} B AS b ON {test}{where}")


def aggregate(choice: random.Random) -> str:
    """An aggregate over the columns of the only table."""
    template = choice.choice(AGGREGATES[choice.choice("iifsbld")])
    filled = template.replace("<k>", "K")
    for kind in "ifnsbdt":
        # All holes of a kind are one column: DISTINCT is ordered by its argument only.
        filled = filled.replace(f"<{kind}>", choice.choice(COLUMNS[kind]))
    return filled


def grouped(choice: random.Random) -> Query:
    """GROUP BY columns or expressions, HAVING, or one group of all."""
    kinds = choice.sample(GROUPED, choice.choice([0, 1, 1, 2]))
    keys = [choice.choice(COLUMNS[kind]) for kind in kinds]
    if keys and choice.random() < 0.3:
        keys[0] = choice.choice(
            ["MOD(I, 2)", "LENGTH(S)", "EXTRACT(YEAR FROM D)", "B IS NULL", "UPPER(S2)"]
        )
    items = [f"{each} AS g{n}" for n, each in enumerate(keys)]
    items += [f"{aggregate(choice)} AS x{n}" for n in range(choice.randint(1, 3))]
    by = ", ".join(choice.choice([each, f"g{n}", str(n + 1)]) for n, each in enumerate(keys))
    having = choice.choice(
        [
            "",
            "",
            " HAVING COUNT(*) > 1",
            " HAVING MAX(I) IS NOT NULL",
            " HAVING SUM(I) > 2 OR MIN(S) < 'b'",
        ]
    )
    if not keys:
        having = "" if "HAVING COUNT" not in having else having
    group = f" GROUP BY {by}" if keys else ""
    source = choice.choice(["A", "B", "(SELECT * FROM A UNION ALL SELECT * FROM B)"])
    return Query(f"SELECT {', '.join(items)} FROM {source}{condition(choice)}{group}{having}")


def combined(choice: random.Random) -> Query:
    """A set operation, also of types that must be widened."""
    operator = choice.choice(SETS)
    pairs = [
        ("I", "I"),
        ("S", "S2"),
        ("I, S", "K, S"),
        ("I", "N"),
        ("I", "F"),
        ("D", "D"),
        ("B, I", "B, K"),
        ("U", "U"),
    ]
    first, second = choice.choice(pairs)
    third = choice.choice(["", "", f" {operator} SELECT {first} FROM A WHERE K > 3"])
    text = f"SELECT {first} FROM A{condition(choice)} {operator} SELECT {second} FROM B{third}"
    if choice.random() < MAYBE:
        return Query(f"SELECT COUNT(*) AS n FROM ({text})")
    if "ALL" in operator and choice.random() < MAYBE:
        return Query(f"({text}) ORDER BY 1 LIMIT 100") if "," not in first else Query(text)
    return Query(text)


def nested(choice: random.Random) -> Query:
    """Subqueries: scalar, EXISTS, IN, ARRAY, of the outer row and not."""
    column = choice.choice(COLUMNS[choice.choice("isd")])
    found = choice.choice(SUBQUERIES).replace("<c>", column)
    where = choice.choice(SUBQUERY_TESTS).replace("<c>", column)
    return Query(f"SELECT a.K, {found} AS found FROM A AS a{where} ORDER BY a.K", "", True)


def unnested(choice: random.Random) -> Query:
    """Arrays in FROM: correlated, with offsets, of structs."""
    text = choice.choice(UNNESTED)
    return Query(text.replace("<b>", expression(choice, "b", 1)))


def common(choice: random.Random) -> Query:
    """A common table expression that is used twice."""
    value = expression(choice, choice.choice("ifs"), 2)
    inner = f"SELECT K, {value} AS v FROM A{condition(choice)}"
    return Query(choice.choice(OVER_COMMON), f"C AS ({inner})")


def rarer(choice: random.Random) -> Query:
    """A query of a shape that is met less often."""
    template = choice.choice(RARER_QUERIES)
    text = HOLE.sub(lambda hole: expression(choice, hole[1], 1), template)
    return Query(text, "", "ORDER BY" in template.rsplit(")", maxsplit=1)[-1])


def piped(choice: random.Random) -> Query:
    """A query in pipe syntax."""
    text, is_ordered = make_pipeline(choice)
    return Query(text, "", is_ordered)


MAKERS = (
    *(piped, piped),
    *(plain, plain, joined, joined, grouped, grouped),
    *(combined, nested, unnested, common, rarer, rarer, rarer),
)
