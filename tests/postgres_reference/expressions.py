"""Random expressions that PostgreSQL and Spanner's dialect of it have in common."""

from __future__ import annotations

import random
from collections.abc import Callable

DEPTH_MAX = 3
TEXTS = ("''", "'abc'", "'Hello World'", "' x '", "'äöü'", "'a,b,c'", "'12'", "'100%'", "'A_b'")
INTEGERS = ("0", "1", "-1", "2", "7", "10", "-25", "100", "9223372036854775807::bigint")
NUMERICS = ("0.0", "1.50", "-2.25", "0.1", "123456.789", "99999999999999999999.5", "'NaN'::numeric")
DOUBLES = (
    *("1.5::float8", "0.1::float8", "-2.5::float8", "1e20::float8", "0::float8"),
    *("'NaN'::float8", "'Infinity'::float8"),
)
DATES = ("date '2024-02-29'", "date '1999-12-31'", "date '2000-01-01'")
TIMES = (
    "timestamptz '2024-03-10 12:34:56.789012+00'",
    "timestamptz '1999-12-31 23:59:59-08'",
    "timestamptz '2020-06-01T00:00:00Z'",
)
DOCUMENTS = (
    """'{"a": 1, "bb": [1, 2.50, null], "c": {"d": "x"}}'::jsonb""",
    "'[1, \"two\", true]'::jsonb",
    "'null'::jsonb",
    "'\"text\"'::jsonb",
)
KEYS = ("'a'", "'bb'", "'c'", "'zz'", "0", "1", "-1")
FIELDS = ("year", "month", "day", "quarter", "dow", "doy", "isodow", "week", "epoch")
Make = Callable[["Generator", int], str]


class Generator:
    """Makes expressions of a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def expression(self) -> str:
        """An expression of any type."""
        return self.of(self.random.choice(list(MAKERS)))

    def of(self, kind: str, depth: int = 0) -> str:
        """An expression of a type."""
        constants, makers = MAKERS[kind]
        if depth >= DEPTH_MAX or self.random.random() < 0.2:
            return "NULL::" + NULLS[kind] if self.random.random() < 0.08 else self.pick(constants)
        return self.random.choice(makers)(self, depth + 1)

    def pick(self, items: tuple[str, ...]) -> str:
        """One of them."""
        return self.random.choice(items)


def form(text: str, *kinds: str) -> Make:
    """Fills the places of a text with expressions of types."""
    return lambda g, depth: text.format(*(g.of(kind, depth) for kind in kinds))


def chosen(text: str, items: tuple[str, ...], *kinds: str) -> Make:
    """The same, with one of several words first."""
    return lambda g, depth: text.format(g.pick(items), *(g.of(kind, depth) for kind in kinds))


COMPARED = ("=", "<>", "<", "<=", ">", ">=")
SMALL = ("0", "1", "2", "3", "5", "-2")


def compare(kind: str) -> Make:
    """A comparison of two of one type."""

    def make(g: Generator, depth: int) -> str:
        return f"({g.of(kind, depth)} {g.pick(COMPARED)} {g.of(kind, depth)})"

    return make


def cases(kind: str) -> list[Make]:
    """What there is for every type."""
    return [
        form("(CASE WHEN {} THEN {} ELSE {} END)", "bool", kind, kind),
        form("coalesce({}, {})", kind, kind),
        form("nullif({}, {})", kind, kind) if kind not in {"jsonb"} else form("{}", kind),
    ]


NULLS = {
    "bool": "boolean",
    "int": "bigint",
    "numeric": "numeric",
    "double": "float8",
    "text": "text",
    "date": "date",
    "time": "timestamptz",
    "jsonb": "jsonb",
}
ARITHMETIC = ("+", "-", "*", "/")
MAKERS: dict[str, tuple[tuple[str, ...], list[Make]]] = {
    "bool": (
        ("true", "false"),
        [
            *(compare(kind) for kind in ("int", "numeric", "double", "text", "date", "time")),
            form("({} AND {})", "bool", "bool"),
            form("({} OR {})", "bool", "bool"),
            form("(NOT {})", "bool"),
            form("({} IS NULL)", "text"),
            form("({} IS NOT TRUE)", "bool"),
            form("({} IS DISTINCT FROM {})", "int", "int"),
            form("({} BETWEEN {} AND {})", "numeric", "int", "numeric"),
            form("({} IN ({}, {}))", "int", "int", "int"),
            form("({} = ANY(ARRAY[{}, {}]))", "text", "text", "text"),
            chosen("({1} LIKE {0})", ("'%a%'", "'a_c'", "'%\\%'", "'Hello%'"), "text"),
            chosen("({1} ILIKE {0})", ("'%A%'", "'a_C'"), "text"),
            chosen("({1} ? {0})", ("'a'", "'zz'", "'two'"), "jsonb"),
            form("({} @> {})", "jsonb", "jsonb"),
            form("starts_with({}, {})", "text", "text"),
            form("({} = {})", "jsonb", "jsonb"),
            *cases("bool"),
        ],
    ),
    "int": (
        INTEGERS,
        [
            chosen(
                "({1}::bigint {0} {2}::bigint)", (*ARITHMETIC, "%", "&", "|", "#"), "int", "int"
            ),
            form("abs({}::bigint)", "int"),
            form("(-({})::bigint)", "int"),
            form("length({})::bigint", "text"),
            form("strpos({}, {})::bigint", "text", "text"),
            form("{}::bigint", "numeric"),
            form("{}::bigint", "double"),
            form("greatest({}, {})", "int", "int"),
            form("least({}, {})", "int", "int"),
            form("octet_length({})::bigint", "text"),
            form("mod({}::bigint, {}::bigint)", "int", "int"),
            form("({} - {})::bigint", "date", "date"),
            form("ascii({})::bigint", "text"),
            *cases("int"),
        ],
    ),
    "numeric": (
        NUMERICS,
        [
            chosen("({1} {0} {2})", (*ARITHMETIC, "%"), "numeric", "numeric"),
            chosen("({1} {0} {2})", ARITHMETIC, "numeric", "int"),
            form("{}::numeric", "int"),
            form("{}::numeric", "double"),
            form("abs({})", "numeric"),
            chosen("round({1}, {0})", SMALL, "numeric"),
            chosen("trunc({1}, {0})", SMALL, "numeric"),
            form("ceil({})", "numeric"),
            form("floor({})", "numeric"),
            form("sign({})", "numeric"),
            form("div({}, {})", "numeric", "numeric"),
            chosen("extract({0} from {1})", FIELDS, "date"),
            chosen("extract({0} from {1})", (*FIELDS, "hour", "minute", "second"), "time"),
            *cases("numeric"),
        ],
    ),
    "double": (
        DOUBLES,
        [
            chosen("({1} {0} {2})", ARITHMETIC, "double", "double"),
            chosen("({1} {0} {2})", ARITHMETIC, "double", "int"),
            form("{}::float8", "int"),
            form("{}::float8", "numeric"),
            chosen("{0}({1})", ("abs", "ceil", "floor", "round", "trunc", "sign"), "double"),
            chosen("{0}({1})", ("sqrt", "exp", "ln"), "double"),
            form("power({}, {})", "double", "double"),
            *cases("double"),
        ],
    ),
    "text": (
        TEXTS,
        [
            form("({} || {})", "text", "text"),
            chosen(
                "{0}({1})", ("lower", "upper", "reverse", "btrim", "ltrim", "rtrim", "md5"), "text"
            ),
            chosen("substr({1}, {0})", SMALL, "text"),
            chosen("substring({1} from {0} for 2)", SMALL, "text"),
            chosen("{0}({1}, 2)", ("left", "right", "repeat"), "text"),
            chosen("left({1}, {0})", SMALL, "text"),
            chosen("right({1}, {0})", SMALL, "text"),
            form("replace({}, {}, {})", "text", "text", "text"),
            form("translate({}, {}, {})", "text", "text", "text"),
            chosen("lpad({1}, 7, {0})", ("'xy'", "' '", "''"), "text"),
            chosen("rpad({1}, {0})", SMALL, "text"),
            chosen("split_part({1}, ',', {0})", ("1", "2", "-1", "9"), "text"),
            form("concat({}, {}, {})", "text", "int", "bool"),
            form("concat_ws({}, {}, {})", "text", "text", "numeric"),
            form("({})::text", "int"),
            form("({})::text", "numeric"),
            form("({})::text", "double"),
            form("({})::text", "bool"),
            form("({})::text", "date"),
            form("({})::text", "time"),
            form("({})::varchar(3)", "text"),
            chosen("({1} ->> {0})", KEYS, "jsonb"),
            form("jsonb_typeof({})", "jsonb"),
            *cases("text"),
        ],
    ),
    "date": (
        DATES,
        [
            chosen("({1} + {0})", SMALL, "date"),
            chosen("({1} - {0})", SMALL, "date"),
            form("({})::date", "time"),
            *cases("date"),
        ],
    ),
    "time": (
        TIMES,
        [
            chosen("date_trunc('{0}', {1})", ("year", "month", "day", "hour", "week"), "time"),
            form("({})::timestamptz", "date"),
            form("greatest({}, {})", "time", "time"),
            *cases("time"),
        ],
    ),
    "jsonb": (DOCUMENTS, [chosen("({1} -> {0})", KEYS, "jsonb"), *cases("jsonb")]),
}
