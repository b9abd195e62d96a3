"""The plain functions: what they take, what they give, and their names in SQLite."""

from __future__ import annotations

from dataclasses import dataclass

from ddl.model.schema import Type
from emulator import errors
from emulator.sql.coerce import coerce
from emulator.sql.native_calls import render_call
from emulator.sql.scope import Context
from emulator.sql.types import Typed, name_of
from emulator.values.types import (
    BOOL,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT64,
    NUMERIC,
    STRING,
    TIMESTAMP,
    UUID,
    array,
)


@dataclass(frozen=True, slots=True)
class Signature:
    """Arguments in order; the last ``optional`` ones may be left out; ``rest`` repeats the last."""

    arguments: tuple[Type, ...]
    result: Type
    function: str
    optional: int = 0
    rest: bool = False

    def argument_types(self, count: int) -> tuple[Type, ...]:
        """The types of the first ``count`` arguments."""
        if self.rest:
            return self.arguments + self.arguments[-1:] * (count - len(self.arguments))
        return self.arguments[:count]

    def fits(self, items: list[Typed]) -> bool:
        """True when the number of arguments is right."""
        most = len(self.arguments)
        return most - self.optional <= len(items) and (self.rest or len(items) <= most)


class Signatures(dict[str, list[Signature]]):
    """Overloads by name, each in the order in which it is tried."""

    def add(
        self,
        names: str,
        arguments: list[Type],
        result: Type,
        function: str = "",
        *,
        optional: int = 0,
        rest: bool = False,
    ) -> None:
        """One overload of one function or, under several names, of several."""
        for name in names.split():
            sqlite = function or f"fn_{name.lower()}"
            signature = Signature(tuple(arguments), result, sqlite, optional, rest)
            self.setdefault(name, []).append(signature)


def add_text(table: Signatures) -> None:
    """Functions of STRING and BYTES."""
    for text, suffix in ((STRING, ""), (BYTES, "_bytes")):
        table.add("FARM_FINGERPRINT", [text], INT64, "farm_fingerprint")
        table.add("LENGTH", [text], INT64, f"fn_length{suffix}")
        table.add("BYTE_LENGTH OCTET_LENGTH", [text], INT64, "fn_byte_length")
        table.add("REVERSE", [text], text)
        table.add("LOWER LCASE", [text], text, f"fn_lower{suffix}")
        table.add("UPPER UCASE", [text], text, f"fn_upper{suffix}")
        table.add("TRIM LTRIM RTRIM", [text, text], text, optional=1 if text is STRING else 0)
        table.add("SUBSTR SUBSTRING", [text, INT64, INT64], text, "fn_substr", optional=1)
        table.add("STARTS_WITH ENDS_WITH", [text, text], BOOL)
        table.add("STRPOS", [text, text], INT64)
        table.add("REPLACE", [text, text, text], text)
        table.add("REPEAT", [text, INT64], text)
        table.add("LPAD RPAD", [text, INT64, text], text, optional=1)
        table.add("SHA1 SHA256 SHA512 MD5", [text], BYTES)
        table.add("SPLIT", [text, text], array(text), optional=1 if text is STRING else 0)
        table.add("TO_CODE_POINTS", [text], array(INT64))
        table.add("CONCAT", [text], text, f"fn_concat{suffix}", rest=True)
        table.add("REGEXP_CONTAINS", [text, text], BOOL)
        table.add("REGEXP_EXTRACT REGEXP_SUBSTR", [text, text], text, "fn_regexp_extract")
        table.add("REGEXP_EXTRACT_ALL", [text, text], array(text))
        table.add("REGEXP_REPLACE", [text, text, text], text)
    table.add("CHAR_LENGTH CHARACTER_LENGTH", [STRING], INT64, "fn_length")
    table.add("SPLIT_SUBSTR", [STRING, STRING, INT64, INT64], STRING, optional=1)
    table.add("TO_HEX TO_BASE64 TO_BASE32", [BYTES], STRING)
    table.add("FROM_HEX FROM_BASE64 FROM_BASE32", [STRING], BYTES)
    table.add("SAFE_CONVERT_BYTES_TO_STRING", [BYTES], STRING)
    table.add("CODE_POINTS_TO_STRING", [array(INT64)], STRING)
    table.add("CODE_POINTS_TO_BYTES", [array(INT64)], BYTES)
    table.add("SOUNDEX", [STRING], STRING)
    table.add("GENERATE_UUID", [], STRING)
    table.add("NEW_UUID", [], UUID, "fn_generate_uuid")


def add_network(table: Signatures) -> None:
    """Functions of IP addresses and URLs."""
    table.add("NET.HOST", [STRING], STRING, "fn_net_host")
    table.add("NET.IP_FROM_STRING", [STRING], BYTES, "fn_ip_from_string")
    table.add("NET.SAFE_IP_FROM_STRING", [STRING], BYTES, "safe_fn_ip_from_string")
    table.add("NET.IP_TO_STRING", [BYTES], STRING, "fn_ip_to_string")
    table.add("NET.IP_NET_MASK", [INT64, INT64], BYTES, "fn_ip_net_mask")
    table.add("NET.IP_TRUNC", [BYTES, INT64], BYTES, "fn_ip_trunc")
    table.add("NET.IPV4_FROM_INT64", [INT64], BYTES, "fn_ipv4_from_int64")
    table.add("NET.IPV4_TO_INT64", [BYTES], INT64, "fn_ipv4_to_int64")


def add_numbers(table: Signatures) -> None:
    """Arithmetic and rounding."""
    kinds = ((INT64, "int64"), (NUMERIC, "numeric"), (FLOAT32, "float64"), (FLOAT64, "float64"))
    for number, kind in kinds:
        table.add("ABS", [number], number, f"fn_abs_{kind}")
        table.add("SIGN", [number], number, f"fn_sign_{kind}")
        table.add("SAFE_NEGATE", [number], number, f"safe_{kind}_negate")
        if kind != "float64":
            table.add("MOD", [number, number], number, f"{kind}_mod")
    table.add("DIV", [INT64, INT64], INT64, "int64_div")
    table.add("DIV", [NUMERIC, NUMERIC], NUMERIC, "numeric_quotient")
    for name, operator in (("ADD", "add"), ("SUBTRACT", "sub"), ("MULTIPLY", "mul")):
        for number, kind in ((INT64, "int64"), (NUMERIC, "numeric"), (FLOAT64, "float64")):
            table.add(f"SAFE_{name}", [number, number], number, f"safe_{kind}_{operator}")
    # Of INT64 the result is FLOAT64: between two conversions the first listed is taken.
    table.add("SAFE_DIVIDE", [FLOAT64, FLOAT64], FLOAT64, "safe_float64_div")
    table.add("SAFE_DIVIDE", [NUMERIC, NUMERIC], NUMERIC, "safe_numeric_div")
    table.add("IEEE_DIVIDE", [FLOAT64, FLOAT64], FLOAT64)
    table.add("CEIL CEILING", [FLOAT64], FLOAT64, "fn_ceil")
    table.add("CEIL CEILING", [NUMERIC], NUMERIC, "fn_ceil_numeric")
    table.add("FLOOR", [FLOAT64], FLOAT64)
    table.add("FLOOR", [NUMERIC], NUMERIC, "fn_floor_numeric")
    for name in ("ROUND", "TRUNC"):
        function = f"fn_{name.lower()}"
        table.add(name, [FLOAT64, INT64], FLOAT64, function, optional=1)
        table.add(name, [NUMERIC, INT64], NUMERIC, f"{function}_numeric", optional=1)
    table.add("BIT_COUNT", [INT64], INT64)
    table.add("BIT_COUNT", [BYTES], INT64, "fn_bit_count_bytes")
    table.add("BIT_REVERSE", [INT64, BOOL], INT64)


def add_mathematics(table: Signatures) -> None:
    """Functions of FLOAT64, and of NUMERIC where Spanner is exact."""
    table.add("SQRT EXP LN LOG10 SIN COS TAN ASIN ACOS ATAN", [FLOAT64], FLOAT64)
    table.add("SINH COSH TANH ASINH ACOSH ATANH", [FLOAT64], FLOAT64)
    table.add("POW POWER", [FLOAT64, FLOAT64], FLOAT64, "fn_pow")
    table.add("ATAN2", [FLOAT64, FLOAT64], FLOAT64)
    table.add("LOG", [FLOAT64, FLOAT64], FLOAT64, optional=1)
    table.add("LOG", [NUMERIC, NUMERIC], NUMERIC, "fn_log_numeric", optional=1)
    table.add("POW POWER", [NUMERIC, NUMERIC], NUMERIC, "fn_pow_numeric")
    for name in ("SQRT", "EXP", "LN", "LOG10"):
        table.add(name, [NUMERIC], NUMERIC, f"fn_{name.lower()}_numeric")
    table.add("IS_NAN IS_INF", [FLOAT64], BOOL)
    for number in (FLOAT64, FLOAT32):
        pair = [array(number), array(number)]
        table.add("COSINE_DISTANCE EUCLIDEAN_DISTANCE DOT_PRODUCT", pair, FLOAT64)
    table.add("DOT_PRODUCT", [array(INT64), array(INT64)], FLOAT64)


def add_time(table: Signatures) -> None:
    """Functions of TIMESTAMP and DATE without a part or a zone in words."""
    for unit in ("SECONDS", "MILLIS", "MICROS"):
        table.add(f"UNIX_{unit}", [TIMESTAMP], INT64)
        table.add(f"TIMESTAMP_{unit}", [INT64], TIMESTAMP)
    table.add("UNIX_DATE", [DATE], INT64)
    table.add("DATE_FROM_UNIX_DATE", [INT64], DATE)
    table.add("PARSE_DATE", [STRING, STRING], DATE)
    table.add("PARSE_TIMESTAMP", [STRING, STRING, STRING], TIMESTAMP, optional=1)
    table.add("FORMAT_DATE", [STRING, DATE], STRING)
    table.add("FORMAT_TIMESTAMP", [STRING, TIMESTAMP, STRING], STRING, optional=1)


def build_signatures() -> Signatures:
    """All of them."""
    table = Signatures()
    for add in (add_text, add_network, add_numbers, add_mathematics, add_time):
        add(table)
    return table


SIGNATURES = build_signatures()


def overload(name: str, items: list[Typed], context: Context) -> Typed:
    """The first signature that the arguments fit, exactly or by conversion."""
    fitting = [s for s in SIGNATURES[name] if s.fits(items) and not is_forced(s, items)]
    for signature in sorted(fitting, key=lambda s: conversions(s, items)):
        types = signature.argument_types(len(items))
        converted = [coerce(i, t, context) for i, t in zip(items, types, strict=True)]
        arguments = [each.sql for each in converted if each is not None]
        if len(arguments) == len(converted):
            return Typed(render_call(signature.function, arguments), signature.result)
    types_given = ", ".join(name_of(item.type) for item in items)
    raise errors.invalid_argument(
        f"No matching signature for function {name} for argument types: {types_given}"
    )


def is_forced(signature: Signature, items: list[Typed]) -> bool:
    """Whether only literals of FLOAT64 would become NUMERIC: they do so beside a NUMERIC."""
    pairs = list(zip(items, signature.argument_types(len(items)), strict=True))
    floats = any(item.type == FLOAT64 and type_ == NUMERIC for item, type_ in pairs)
    return floats and all(item.type != NUMERIC for item, _ in pairs)


def conversions(signature: Signature, items: list[Typed]) -> int:
    """How many arguments are of another type: a literal, which converts easily, counts less."""
    types = signature.argument_types(len(items))
    return sum(
        1 if item.literal is not None else 10
        for item, type_ in zip(items, types, strict=True)
        if item.type is not None and item.type != type_
    )
