"""Random queries in pipe syntax: operators in any order, over the columns that are left."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from reference.expressions import make_expression
from reference.leaves import COLUMNS

ALL = {name: kind for kind, names in COLUMNS.items() for name in names} | {"K": "k"}
JOINED = (
    *(" ON {a}.K = r.K", " ON {a}.I < r.I", " ON {a}.S = r.S OR r.B", " USING (K)"),
    " USING (K, I)",
)
WAYS = ("", " ASC", " DESC")
OPERATORS_MAX = 6


@dataclass
class Pipeline:
    """A query so far: its columns by name, with the kind of each; ``alias`` of the table inside,
    while it can be named; ``key``: a column by which rows have one order."""

    choice: random.Random
    text: str
    columns: dict[str, str]
    alias: str = ""
    key: str = "K"
    inside: dict[str, str] = field(default_factory=dict)
    joined: bool = False
    ordered: bool = False
    count: int = 0

    def add(self, operator: str) -> None:
        """One operator more."""
        self.text += f" |> {operator}"

    def value(self, kind: str = "") -> str:
        """An expression over what there is."""
        kind = kind or self.choice.choice("ifnsbdt")
        if self.columns.keys() >= {each for names in COLUMNS.values() for each in names}:
            return make_expression(self.choice, kind, 1)
        fitting = [name for name, each in self.columns.items() if each == kind]
        if self.inside and self.choice.random() < 0.4:
            fitting = [f"{self.alias}.{n}" for n, each in self.inside.items() if each == kind]
        return self.choice.choice(fitting) if fitting else make_literal(kind)

    def pick(self) -> str:
        """A column beside the key; empty where there is none."""
        return self.choice.choice([n for n in self.columns if n != self.key] or [""])

    def name(self) -> str:
        """A name that no column has."""
        self.count += 1
        return f"p{self.count}"


def make_literal(kind: str) -> str:
    """A value of a kind."""
    return {
        "i": "7",
        "f": "1.5",
        "n": "NUMERIC '2.5'",
        "s": "'abc'",
        "b": "TRUE",
        "d": "DATE '2020-01-01'",
        "t": "TIMESTAMP '2024-02-29 10:00:00+00'",
    }[kind]


def where(query: Pipeline) -> None:
    query.add(f"WHERE {query.value('b')}")
    query.ordered = False


def extend(query: Pipeline) -> None:
    kind, name = query.choice.choice("ifnsbdt"), query.name()
    query.add(f"EXTEND {query.value(kind)} AS {name}")
    query.columns[name] = kind


def change(query: Pipeline) -> None:
    name = query.pick()
    kind = query.columns.get(name, "")
    if kind and kind in "ifnsbdt":
        query.add(f"SET {name} = {query.value(kind)}")


def drop(query: Pipeline) -> None:
    others = [name for name in query.columns if name != query.key]
    names = query.choice.sample(others, min(2, len(others)))
    if names:
        query.add(f"DROP {', '.join(names)}")
        for name in names:
            del query.columns[name]


def rename(query: Pipeline) -> None:
    name, fresh = query.pick(), query.name()
    if not name:
        return
    query.add(f"RENAME {name} AS {fresh}")
    query.columns = {fresh if n == name else n: kind for n, kind in query.columns.items()}


def name_it(query: Pipeline) -> None:
    query.alias, query.inside = query.name(), dict(query.columns)
    query.add(f"AS {query.alias}")


def select(query: Pipeline) -> None:
    others = [name for name in query.columns if name != query.key]
    kept = [query.key, *query.choice.sample(others, min(len(others), query.choice.randint(1, 4)))]
    items, columns = list(kept), {name: query.columns[name] for name in kept}
    if query.choice.random() < 0.5:
        kind, name = query.choice.choice("ifnsbdt"), query.name()
        items.append(f"{query.value(kind)} AS {name}")
        columns[name] = kind
    query.add(f"SELECT {', '.join(items)}")
    query.columns, query.inside, query.alias = columns, {}, ""


def order(query: Pipeline) -> None:
    kind = query.choice.choice("insydt")
    names = [n for n, each in query.columns.items() if each == kind and n != query.key]
    first = f"{query.choice.choice(names)}{query.choice.choice(WAYS)}, " if names else ""
    query.add(f"ORDER BY {first}{query.key}{query.choice.choice(WAYS)}")
    query.ordered = not query.joined


def limit(query: Pipeline) -> None:
    if query.ordered:
        query.add(query.choice.choice(["LIMIT 3", "LIMIT 2 OFFSET 1", "LIMIT 10"]))


def aggregate(query: Pipeline) -> None:
    """Groups by the key and another column, so that the key stays one."""
    others = [n for n, kind in query.columns.items() if kind in "isbdn" and n != query.key]
    keys = [query.key, *others[: query.choice.randint(0, 1)]]
    total, way = query.name(), query.choice.choice(WAYS)
    group = query.choice.choice(["GROUP BY", "GROUP AND ORDER BY"])
    if way and group == "GROUP BY":
        way = ""
    query.add(f"AGGREGATE COUNT(*) AS {total}{way} {group} {', '.join(keys)}")
    query.columns = {name: query.columns[name] for name in keys} | {total: "i"}
    query.inside, query.alias, query.ordered = {}, "", group != "GROUP BY"


def join(query: Pipeline) -> None:
    """Once, with columns that both have: only those of one side are named from then on."""
    alias = query.alias
    if query.joined or not alias or not query.inside.keys() >= {"K", "I", "S"}:
        return
    condition = query.choice.choice(JOINED).format(a=alias)
    kind = query.choice.choice(["JOIN", "LEFT JOIN", "INNER JOIN"])
    query.add(f"{kind} (SELECT K, I, S, B FROM B AS q) AS r{condition}")
    name = query.name()
    query.add(f"SELECT {alias}.K AS {name}, r.K AS other, {alias}.S, r.I")
    query.columns = {name: "k", "other": "k", "S": "s", "I": "i"}
    query.key, query.inside, query.alias, query.joined = name, {}, "", True
    query.ordered = False
    query.add(f"ORDER BY {name}, other, S, I")


def combine(query: Pipeline) -> None:
    """With the other table, while all columns are there."""
    if list(query.columns) == list(ALL):
        operator = query.choice.choice(["UNION ALL", "EXCEPT ALL", "INTERSECT ALL"])
        tables = query.choice.choice(["(FROM B)", "(FROM B |> WHERE K > 1), (SELECT * FROM A)"])
        items = "SELECT K, I, S, D, N"
        query.add(f"{items} |> {operator} {tables.replace(')', f' |> {items})')}")
        query.columns = {"K": "k", "I": "i", "S": "s", "D": "d", "N": "n"}
        query.inside, query.alias, query.ordered = {}, "", False


STEPS: tuple[Callable[[Pipeline], None], ...] = (
    *(where, where, extend, extend, change, drop, rename, name_it, select),
    *(order, limit, aggregate, join, combine),
)


def make_pipeline(choice: random.Random) -> tuple[str, bool]:
    """A query, and whether the order of its rows is defined."""
    columns = dict(ALL)
    begin, alias = choice.choice([("FROM A", "A"), ("FROM A AS a", "a"), ("SELECT * FROM A", "")])
    query = Pipeline(choice, begin, columns, alias, inside=dict(columns) if alias else {})
    for _ in range(choice.randint(1, OPERATORS_MAX)):
        choice.choice(STEPS)(query)
    if choice.random() < 0.5:
        order(query)
        return query.text, query.ordered
    return query.text, False
