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
SPANS = (
    "interval '1 year 2 months 15 days'",
    "interval '-3 days 04:05:06.789'",
    "interval 'P1Y2M3DT4H5M6.5S'",
    "interval '50 hours 10 minutes'",
    "interval '1-2 3 4:05:06'",
    "interval '@ 45 days 1 sec ago'",
    "interval '1.5 months'",
)
TEXT_LISTS = (
    "ARRAY['a', 'bb', 'c']",
    "'{a,\"b c\",NULL}'::text[]",
    "'{}'::text[]",
    "ARRAY['two', '1', 'a,b']",
)
NUMBER_LISTS = ("ARRAY[1, 2, 3]::bigint[]", "'{7,NULL,-1}'::bigint[]", "'{}'::bigint[]")
PATTERNS = ("'a'", "'[a-c]+'", "'(l+)o'", "'^H.*d$'", "'\\s'", "'x*'", "'(.)(b|c)'", "'[^,]+'")
CLOCK_TEMPLATES = (
    *("YYYY-MM-DD HH24:MI:SS.US", "FMMonth FMDDth, YYYY", "Dy HH12:MI am", "IYYY-IW-ID"),
    *("DDD Q CC WW J", "MON day TZ OF"),
)
NUMBER_TEMPLATES = ("9999", "FM9,999.00", "S0999", "999PR", "99999MI", "9G999D9", "9g999d9mi")
PATHS = ("'{a}'", "'{c,d}'", "'{bb,1}'", "'{bb,-1}'", "'{0}'", "'{zz}'", "'{1,x}'")
CLOCK_FIELDS = ("year", "month", "day", "hour", "minute", "second", "epoch", "milliseconds")
FIELDS = (
    "year",
    "month",
    "day",
    "quarter",
    "dow",
    "doy",
    "isodow",
    "week",
    "epoch",
    "decade",
    "century",
    "millennium",
    "isoyear",
)
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
    "span": "interval",
    "texts": "text[]",
    "numbers": "bigint[]",
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
            compare("span"),
            chosen("({1} ~ {0})", PATTERNS, "text"),
            chosen("({1} !~ {0})", PATTERNS, "text"),
            chosen("({1} ~* {0})", PATTERNS, "text"),
            chosen("({1} {0} ANY({2}))", COMPARED, "int", "numbers"),
            chosen("({1} {0} ALL({2}))", COMPARED, "text", "texts"),
            chosen("({1} {0} {2})", ("@>", "<@", "&&"), "texts", "texts"),
            chosen("({1} {0} {2})", ("@>", "<@", "&&"), "numbers", "numbers"),
            chosen("({1} {0} {2})", ("?|", "?&"), "jsonb", "texts"),
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
            form("array_length({}, 1)::bigint", "texts"),
            form("array_upper({}, 1)::bigint", "numbers"),
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
            chosen("extract({0} from {1})", CLOCK_FIELDS, "span"),
            form("extract(epoch from ({} - {}))", "time", "time"),
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
            # Spanner's gives NULL where an argument is NULL.
            form("concat(coalesce({}, ''), coalesce({}, 0), {} IS TRUE)", "text", "int", "bool"),
            chosen("regexp_replace({1}, {0}, {2})", PATTERNS, "text", "text"),
            chosen("substring({1} from {0})", PATTERNS, "text"),
            form("quote_ident({})", "text"),
            form("array_to_string({}, {})", "texts", "text"),
            form("array_to_string({}, '-', '*')", "numbers"),
            chosen("to_char({1}, '{0}')", CLOCK_TEMPLATES, "time"),
            chosen("to_char({1}, '{0}')", ("YYYY-MM-DD HH24:MI:SS.MS", "FMDD FMHH12"), "span"),
            chosen("to_char({1}::bigint, '{0}')", NUMBER_TEMPLATES, "int"),
            form("({})::text", "span"),
            form("({})::text", "texts"),
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
            form("({} + {})", "time", "span"),
            form("({} - {})", "time", "span"),
            chosen("date_trunc('{0}', {1}, 'Australia/Sydney')", ("year", "day", "hour"), "time"),
            chosen("date_trunc('{0}', {1})", ("decade", "century", "quarter", "minute"), "time"),
            *cases("time"),
        ],
    ),
    "jsonb": (
        DOCUMENTS,
        [
            chosen("({1} -> {0})", KEYS, "jsonb"),
            form("({} || {})", "jsonb", "jsonb"),
            chosen("({1} - {0})", ("'a'", "'two'", "0", "-1", "9"), "jsonb"),
            chosen("({1} #- {0})", PATHS, "jsonb"),
            chosen("jsonb_set({1}, {0}, {2})", PATHS, "jsonb", "jsonb"),
            chosen("jsonb_set({1}, {0}, {2}, false)", PATHS, "jsonb", "jsonb"),
            chosen("jsonb_insert({1}, {0}, {2})", PATHS, "jsonb", "jsonb"),
            chosen("jsonb_insert({1}, {0}, {2}, true)", PATHS, "jsonb", "jsonb"),
            chosen("jsonb_set_lax({1}, {0}, {2}, true, 'delete_key')", PATHS, "jsonb", "jsonb"),
            form("jsonb_strip_nulls({})", "jsonb"),
            form("to_jsonb({})", "numeric"),
            form("to_jsonb({}::text)", "text"),
            form("to_jsonb({})", "time"),
            form("to_jsonb({})", "texts"),
            form("jsonb_build_array({}, {}, {})", "int", "bool", "jsonb"),
            form("jsonb_build_object('k', {}, 'bb', {})", "numeric", "date"),
            *cases("jsonb"),
        ],
    ),
    "span": (
        SPANS,
        [
            form("({} + {})", "span", "span"),
            form("({} - {})", "span", "span"),
            form("(- {})", "span"),
            chosen("({1} * {0})", ("2", "-1", "1.5", "0.1"), "span"),
            chosen("({1} / {0})", ("2", "-3", "1.5", "0"), "span"),
            chosen("{0}({1})", ("justify_hours", "justify_days", "justify_interval"), "span"),
            chosen(
                "make_interval({0})",
                ("1, 2", "days => 3, secs => 4.5", "weeks => -1"),
            ),
            *cases("span"),
        ],
    ),
    "texts": (
        TEXT_LISTS,
        [
            form("array_cat(coalesce({}, '{{}}'), coalesce({}, '{{}}'))", "texts", "texts"),
            form("ARRAY[{}, {}]::text[]", "text", "text"),
            chosen("regexp_match({1}, {0})", PATTERNS, "text"),
            chosen("regexp_split_to_array({1}, {0})", PATTERNS, "text"),
            form("(CASE WHEN {} THEN {} ELSE {} END)", "bool", "texts", "texts"),
        ],
    ),
    "numbers": (
        NUMBER_LISTS,
        [
            form("ARRAY[{}, {}]::bigint[]", "int", "int"),
            form("(CASE WHEN {} THEN {} ELSE {} END)", "bool", "numbers", "numbers"),
        ],
    ),
}
