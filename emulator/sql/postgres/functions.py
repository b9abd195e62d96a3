"""The functions of the PostgreSQL dialect: what they take, what they give."""

from __future__ import annotations

from sqlglot import exp

from ddl.model.schema import Type
from ddl.syntax import sequences as ddl_sequences
from emulator import errors
from emulator.sql import sequences
from emulator.sql.coercions import Reach, becomes
from emulator.sql.compiler import Call, Compiler
from emulator.sql.postgres import array_calls, casts, json_calls, operators
from emulator.sql.postgres.type_names import show_type
from emulator.sql.scope import Context, Scope
from emulator.sql.signatures import Signature, Signatures
from emulator.sql.types import Typed
from emulator.values.sqlite_text import quote_text
from emulator.values.types import (
    BOOL,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT64,
    INTERVAL,
    PG_JSONB,
    PG_NUMERIC,
    STRING,
    TIMESTAMP,
    UUID,
    array,
)

UNSUPPORTED = """
spanner.ml_predict_row spanner.approx_cosine_distance
spanner.approx_dot_product spanner.approx_euclidean_distance spanner.search spanner.search_ngrams
spanner.search_substring spanner.score spanner.score_ngrams spanner.snippet spanner.token
spanner.tokenize_bool spanner.tokenize_fulltext spanner.tokenize_jsonb spanner.tokenize_ngrams
spanner.tokenize_number spanner.tokenize_substring spanner.tokenlist_concat spanner.debug_tokenlist
"""
"""Functions that Spanner has in this dialect and this server has not."""


def add_text(table: Signatures) -> None:
    """Functions of text and bytea."""
    table.add("LOWER UPPER", [STRING], STRING)
    table.add("LENGTH CHAR_LENGTH CHARACTER_LENGTH", [STRING], INT64, "pg_length")
    table.add("LENGTH", [BYTES], INT64, "pg_length")
    for type_ in (STRING, BYTES):
        table.add("OCTET_LENGTH", [type_], INT64)
        table.add("SUBSTR SUBSTRING", [type_, INT64, INT64], type_, "pg_substring", optional=1)
        table.add("STRPOS POSITION", [type_, type_], INT64, "pg_strpos")
        table.add("MD5", [type_], STRING)
        table.add("SPANNER.FARM_FINGERPRINT", [type_], INT64, "farm_fingerprint")
    table.add("LEFT RIGHT REPEAT", [STRING, INT64], STRING)
    table.add("LPAD RPAD", [STRING, INT64, STRING], STRING, optional=1)
    table.add("BTRIM LTRIM RTRIM", [STRING, STRING], STRING, optional=1)
    table.add("REPLACE TRANSLATE", [STRING, STRING, STRING], STRING)
    table.add("REVERSE", [STRING], STRING)
    table.add("SPLIT_PART", [STRING, STRING, INT64], STRING)
    table.add("STARTS_WITH", [STRING, STRING], BOOL)
    table.add("ASCII", [STRING], INT64)
    table.add("CHR", [INT64], STRING)
    table.add("SHA256 SHA512", [BYTES], BYTES)
    table.add("ENCODE", [BYTES, STRING], STRING)
    table.add("DECODE", [STRING, STRING], BYTES)
    table.add("TO_HEX", [INT64], STRING)


DOUBLES = {"DEXP": "exp", "DLOG10": "log", "DLOG1": "ln", "DSQRT": "sqrt"}
"""The names by which PostgreSQL's own catalog calls functions of double precision."""


def add_patterns(table: Signatures) -> None:
    """Regular expressions, and what else is of text in Spanner."""
    for name in ("REGEXP_MATCH", "REGEXP_SPLIT_TO_ARRAY"):
        table.add(name, [STRING, STRING, STRING], array(STRING), optional=1)
    four = [STRING, STRING, STRING, STRING]
    table.add("REGEXP_REPLACE", four, STRING, optional=1)
    table.add("SUBSTRING", [STRING, STRING], STRING, "pg_regexp_substring")
    table.add("LIKE", [STRING, STRING], BOOL)
    table.add("TEXTCAT", [STRING, STRING], STRING, "pg_concat_bytea")
    table.add("BTRIM", [BYTES, BYTES], BYTES)
    table.add("QUOTE_IDENT", [STRING], STRING)
    table.add("SPANNER.SOUNDEX", [STRING], STRING, "fn_soundex")
    table.add(
        "SPANNER.SPLIT_SUBSTR",
        [STRING, STRING, INT64, INT64],
        STRING,
        "fn_split_substr",
        optional=1,
    )
    table.add("SPANNER.GENERATE_UUID", [], STRING, "fn_generate_uuid")
    table.add("GEN_RANDOM_UUID", [], UUID, "fn_generate_uuid")


def add_intervals(table: Signatures) -> None:
    """Intervals, and times of Spanner's own."""
    for name in ("JUSTIFY_HOURS", "JUSTIFY_DAYS", "JUSTIFY_INTERVAL"):
        table.add(name, [INTERVAL], INTERVAL)
    table.add("EXTRACT", [STRING, INTERVAL], PG_NUMERIC, "pg_extract_interval")
    table.add("DATE_TRUNC", [STRING, TIMESTAMP, STRING], TIMESTAMP)
    table.add("SPANNER.DATE", [TIMESTAMP, STRING], DATE, "pg_spanner_date")
    stride = [STRING, TIMESTAMP, TIMESTAMP]
    table.add("SPANNER.DATE_BIN", stride, TIMESTAMP, "pg_spanner_date_bin")
    for name in ("TIMESTAMPTZ_ADD", "TIMESTAMPTZ_SUBTRACT"):
        function = f"pg_spanner_{name.lower()}"
        table.add(f"SPANNER.{name}", [TIMESTAMP, STRING], TIMESTAMP, function)


def add_formats(table: Signatures) -> None:
    """Template patterns."""
    kinds = ((INT64, "int8"), (PG_NUMERIC, "numeric"), (FLOAT64, "float8"))
    others = ((TIMESTAMP, "timestamptz"), (INTERVAL, "interval"))
    for type_, kind in (*kinds, *others):
        table.add("TO_CHAR", [type_, STRING], STRING, f"pg_to_char_{kind}")
    table.add("TO_NUMBER", [STRING, STRING], PG_NUMERIC)
    table.add("TO_DATE", [STRING, STRING], DATE)
    table.add("TO_TIMESTAMP", [STRING, STRING], TIMESTAMP, "pg_to_timestamp_text")


def add_jsonb(table: Signatures) -> None:
    """Functions that read and change documents."""
    path = [PG_JSONB, array(STRING), PG_JSONB]
    table.add("JSONB_SET JSONB_INSERT", [*path, BOOL], PG_JSONB, optional=1)
    table.add("JSONB_SET_LAX", [*path, BOOL, STRING], PG_JSONB, optional=2)
    table.add("JSONB_STRIP_NULLS", [PG_JSONB], PG_JSONB)
    table.add("JSONB_OBJECT_KEYS", [PG_JSONB], array(STRING))
    query_array = "SPANNER.JSONB_QUERY_ARRAY JSONB_ARRAY_ELEMENTS"
    table.add(query_array, [PG_JSONB], array(PG_JSONB), "pg_jsonb_query_array")
    for name, element in JSON_ARRAYS.items():
        function = f"pg_jsonb_{name.lower()}_array"
        table.add(f"SPANNER.{name}_ARRAY", [PG_JSONB], array(element), function)


JSON_ARRAYS = {
    "BOOL": BOOL,
    "INT64": INT64,
    "FLOAT32": FLOAT32,
    "FLOAT64": FLOAT64,
    "STRING": STRING,
}


def add_numbers(table: Signatures) -> None:
    """Arithmetic, rounding, mathematics; between two conversions double precision is taken."""
    kinds = ((INT64, "int8"), (FLOAT64, "float8"), (PG_NUMERIC, "numeric"), (FLOAT32, "float8"))
    for type_, kind in kinds:
        table.add("ABS", [type_], type_, f"pg_{kind}_abs")
    for name in ("CEIL", "CEILING", "FLOOR", "ROUND", "TRUNC", "SIGN"):
        word = "ceil" if name == "CEILING" else name.lower()
        table.add(name, [FLOAT64], FLOAT64, f"pg_float8_{word}")
        table.add(name, [PG_NUMERIC], PG_NUMERIC, f"pg_numeric_{word}")
    table.add("ROUND", [PG_NUMERIC, INT64], PG_NUMERIC, "pg_numeric_round")
    table.add("TRUNC", [PG_NUMERIC, INT64], PG_NUMERIC, "pg_numeric_trunc")
    table.add("MOD", [INT64, INT64], INT64, "pg_int8_mod")
    table.add("MOD", [PG_NUMERIC, PG_NUMERIC], PG_NUMERIC, "pg_numeric_mod")
    table.add("DIV", [PG_NUMERIC, PG_NUMERIC], PG_NUMERIC, "pg_numeric_quotient")
    for names, word in DOUBLES.items():
        table.add(names, [FLOAT64], FLOAT64, f"pg_float8_{word}")
    for name in ("SQRT", "EXP", "LN", "SIN", "COS", "TAN", "ASIN", "ACOS", "ATAN"):
        table.add(name, [FLOAT64], FLOAT64, f"pg_float8_{name.lower()}")
    table.add("LOG LOG10", [FLOAT64], FLOAT64, "pg_float8_log")
    table.add("ATAN2", [FLOAT64, FLOAT64], FLOAT64, "pg_float8_atan2")
    for vector in (FLOAT32, FLOAT64):
        for name in ("COSINE_DISTANCE", "DOT_PRODUCT", "EUCLIDEAN_DISTANCE"):
            both = [array(vector), array(vector)]
            table.add(f"SPANNER.{name}", both, FLOAT64, f"fn_{name.lower()}")
    both = [array(INT64), array(INT64)]
    table.add("SPANNER.DOT_PRODUCT", both, FLOAT64, "fn_dot_product")
    table.add("POWER POW DPOW", [FLOAT64, FLOAT64], FLOAT64, "pg_float8_power")
    table.add("SPANNER.BIT_REVERSE", [INT64, BOOL], INT64, "fn_bit_reverse")


def add_other(table: Signatures) -> None:
    """Functions of jsonb and times."""
    table.add("JSONB_TYPEOF", [PG_JSONB], STRING)
    table.add("JSONB_ARRAY_LENGTH", [PG_JSONB], INT64)
    table.add("EXTRACT", [STRING, DATE], PG_NUMERIC, "pg_extract_date")
    table.add("EXTRACT", [STRING, TIMESTAMP], PG_NUMERIC, "pg_extract_timestamptz")
    table.add("DATE_TRUNC", [STRING, TIMESTAMP], TIMESTAMP)
    table.add("TO_TIMESTAMP", [FLOAT64], TIMESTAMP)
    table.add("MAKE_DATE", [INT64, INT64, INT64], DATE)


SHARED = {
    *("fn_bit_reverse", "fn_cosine_distance", "fn_dot_product", "fn_euclidean_distance"),
    *("fn_soundex", "fn_split_substr", "fn_generate_uuid"),
}
"""Functions at run time that both dialects have."""


def build_signatures() -> Signatures:
    """All of them, with the names that SQLite knows them by."""
    plain = Signatures()
    for add in (
        add_text,
        add_numbers,
        add_other,
        add_patterns,
        add_intervals,
        add_jsonb,
        add_formats,
    ):
        add(plain)
    table = Signatures()
    for name, overloads in plain.items():
        for each in overloads:
            function = each.function
            if function.startswith("fn_") and function not in SHARED:
                function = f"pg_{function.removeprefix('fn_')}"
            added = Signature(each.arguments, each.result, function, each.optional, each.rest)
            table.setdefault(name, []).append(added)
    return table


SIGNATURES = build_signatures()
CONSTANTS = {"CURRENT_SCHEMA": "public", "VERSION": "PostgreSQL 14.1"}


def compile_call(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """A function, or what is written like one."""
    special = CALLS.get(node.name)
    if special is not None:
        return special(compiler, node, scope, context)
    name = node.name.lower()
    if node.name not in SIGNATURES:
        if name in UNSUPPORTED.split():
            raise errors.unimplemented(f"the function {name}")
        shown = show_types([compiler.compile(each, scope, context) for each in node.expressions])
        raise errors.invalid_argument(f"function {name}({shown}) does not exist")
    items = [compiler.compile(each, scope, context) for each in node.expressions]
    return choose_overload(node.name, items, context)


def choose_overload(name: str, items: list[Typed], context: Context) -> Typed:
    """A call by the signature that needs the fewest conversions."""
    signature = find_signature(name, items)
    types = signature.argument_types(len(items))
    converted = [casts.coerce(i, t, context) for i, t in zip(items, types, strict=True)]
    listed = ", ".join(each.sql for each in converted if each is not None)
    return Typed(f"{signature.function}({listed})", signature.result)


def find_signature(name: str, items: list[Typed]) -> Signature:
    """The signature that needs the fewest conversions. Raises INVALID_ARGUMENT."""
    fitting = [each for each in SIGNATURES[name] if each.fits(items)]
    for signature in sorted(fitting, key=lambda each: count_conversions(each, items)):
        types = signature.argument_types(len(items))
        if all(may_be(item, type_) for item, type_ in zip(items, types, strict=True)):
            return signature
    raise errors.invalid_argument(f"function {name.lower()}({show_types(items)}) does not exist")


def show_types(items: list[Typed]) -> str:
    """The types of arguments as messages write them."""
    return ", ".join("unknown" if casts.is_unknown(i) else show_type(i.type) for i in items)


def may_be(item: Typed, type_: Type) -> bool:
    """Whether an argument becomes of a type by itself."""
    if item.type is None or casts.is_unknown(item) or item.type == type_:
        return True
    return becomes(item.type.code, type_.code, casts.POSTGRESQL, Reach.EXPRESSION)


def count_conversions(signature: Signature, items: list[Typed]) -> int:
    """How many arguments are of another type; a text without a type is a text first."""
    count = 0
    for item, type_ in zip(items, signature.argument_types(len(items)), strict=True):
        if item.type is None or casts.is_unknown(item):
            count += type_ != STRING
        else:
            count += 2 * (item.type != type_)
    return count


def compile_coalesce(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """COALESCE."""
    items = [compiler.compile(each, scope, context) for each in node.expressions]
    unified, type_ = casts.unify(items, context, "COALESCE")
    if len(unified) == 1:
        return Typed(unified[0].sql, type_)
    return Typed(f"coalesce({', '.join(each.sql for each in unified)})", type_)


def compile_nullif(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """NULLIF: the first, unless both are equal."""
    items = [compiler.compile(each, scope, context) for each in node.expressions]
    (left, right), type_ = operators.match(items, "=", context)
    test = operators.compare(left, "=", right, type_)
    first = items[0] if items[0].type is not None else left
    return Typed(f"CASE WHEN {test} THEN NULL ELSE {first.sql} END", first.type)


def compile_extreme(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """GREATEST and LEAST: NULLs do not count."""
    items = [compiler.compile(each, scope, context) for each in node.expressions]
    unified, type_ = casts.unify(items, context, node.name)
    sign = ">=" if node.name == "GREATEST" else "<="
    result = unified[0]
    for item in unified[1:]:
        test = operators.compare(result, sign, item, type_)
        result = Typed(
            f"CASE WHEN {item.sql} IS NULL OR {test} THEN {result.sql} ELSE {item.sql} END", type_
        )
    return Typed(f"({result.sql})", type_)


def compile_concat(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """concat and concat_ws: of values of any type."""
    items = [compiler.compile(each, scope, context) for each in node.expressions]
    if not items:
        raise errors.invalid_argument(f"function {node.name.lower()}() does not exist")
    texts = [concatenated_text(item, context) for item in items]
    listed = ", ".join(each.sql for each in texts if each is not None)
    return Typed(f"pg_{node.name.lower()}({listed})", STRING)


def concatenated_text(item: Typed, context: Context) -> Typed | None:
    """An argument of concat as text: a boolean is t or f there."""
    if item.type == BOOL:
        return Typed(f"CASE {item.sql} WHEN 1 THEN 't' WHEN 0 THEN 'f' END", STRING)
    return casts.assign(item, STRING, context)


INTERVAL_PARTS = ("years", "months", "weeks", "days", "hours", "mins", "secs")


def compile_make_interval(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """make_interval, by place and by name; what is missing is 0."""
    given: dict[str, Typed] = {}
    for place, each in enumerate(node.expressions):
        named = isinstance(each, exp.Kwarg)
        name = each.this.name if named else (*INTERVAL_PARTS, "")[min(place, len(INTERVAL_PARTS))]
        if name not in INTERVAL_PARTS or name in given:
            raise errors.invalid_argument("function make_interval does not exist with these names")
        item = compiler.compile(each.expression if named else each, scope, context)
        converted = casts.coerce(item, FLOAT64 if name == "secs" else INT64, context)
        if converted is None:
            raise errors.invalid_argument(f"make_interval: {name} is of another type")
        given[name] = converted
    zero = Typed("0", INT64)
    listed = ", ".join(given.get(name, zero).sql for name in INTERVAL_PARTS)
    return Typed(f"pg_make_interval({listed})", INTERVAL)


def compile_now(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """now() and CURRENT_TIMESTAMP: one for the whole statement."""
    refuse_arguments(node)
    context.uses_now = True
    return Typed(":now_", TIMESTAMP)


def compile_constant(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """current_schema() and version(), which clients ask for when they connect."""
    refuse_arguments(node)
    return Typed(quote_text(CONSTANTS[node.name]), STRING)


def compile_today(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """CURRENT_DATE."""
    refuse_arguments(node)
    context.uses_now = True
    return Typed("pg_timestamptz_to_date(:now_)", DATE)


def compile_pending(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """spanner.pending_commit_timestamp()."""
    refuse_arguments(node)
    context.uses_commit = True
    return Typed(":commit_", TIMESTAMP)


def refuse_arguments(node: exp.Anonymous) -> None:
    """Raises INVALID_ARGUMENT where a function has any."""
    if node.expressions:
        raise errors.invalid_argument(f"function {node.name.lower()} takes no arguments")


def compile_nextval(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """nextval('sequence'): drawn anew for each row."""
    context.draws = True
    return Typed(f"next_value_({quote_text(counter_of(compiler, node, scope, context))})", INT64)


def compile_sequence_state(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """spanner.get_internal_sequence_state('sequence')."""
    return sequences.counter_state(counter_of(compiler, node, scope, context))


def without_cast(node: exp.Expr) -> exp.Expr:
    """A text without its type: 's'::text names what 's' names."""
    if not isinstance(node, exp.Cast):
        return node
    written = node.args["to"]
    for name in ("this", "kind"):
        written.args.get(name)
    inner: exp.Expr = node.this
    return inner


def counter_of(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> str:
    """The counter of the sequence that a text names."""
    items = [compiler.compile(without_cast(each), scope, context) for each in node.expressions]
    if len(items) != 1 or not casts.is_unknown(items[0]):
        raise errors.unimplemented(f"{node.name.lower()} of anything but a name in quotes")
    written = str(items[0].literal)
    name = written[1:-1] if written.startswith('"') else written.lower()
    sequence = ddl_sequences.find_sequence(context.schema, name.removeprefix("public."))
    if sequence is None:
        raise errors.invalid_argument(f"Sequence not found: {name}")
    return sequences.sequence_counter(sequence.name)


CALLS: dict[str, Call] = {
    **operators.CALLS,
    "COALESCE": compile_coalesce,
    "NULLIF": compile_nullif,
    **dict.fromkeys(("GREATEST", "LEAST"), compile_extreme),
    **dict.fromkeys(("CONCAT", "CONCAT_WS"), compile_concat),
    **array_calls.CALLS,
    **json_calls.CALLS,
    "MAKE_INTERVAL": compile_make_interval,
    **dict.fromkeys(("NOW", "CURRENT_TIMESTAMP"), compile_now),
    "CURRENT_DATE": compile_today,
    **dict.fromkeys(CONSTANTS, compile_constant),
    "PENDING_COMMIT_TIMESTAMP": compile_pending,
    "NEXTVAL": compile_nextval,
    "SPANNER.GET_INTERNAL_SEQUENCE_STATE": compile_sequence_state,
    "SPANNER.GET_TABLE_COLUMN_IDENTITY_STATE": sequences.FUNCTIONS[
        "GET_TABLE_COLUMN_IDENTITY_STATE"
    ],
}
