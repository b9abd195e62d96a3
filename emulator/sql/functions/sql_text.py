"""Values as FORMAT writes them: %t for people, %T as SQL literals."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

from emulator.sql.functions.casts import float32_text, float_text
from emulator.sql.functions.intervals import parse_iso
from emulator.sql.functions.numbers import read_float
from emulator.values import forms
from emulator.values.local_times import timestamp_in_zone
from emulator.values.timestamp_texts import UTC_ZONE


def to_readable(type_: Any, value: Any) -> str:
    """%t: readable."""
    if value is None:
        return "NULL"
    if isinstance(type_, list):
        return write_composite(type_, value, to_readable)
    if type_ == "BOOL":
        return "true" if value else "false"
    if type_ in {"FLOAT64", "FLOAT32"}:
        return add_point(float32_text(value) if type_ == "FLOAT32" else float_text(value))
    if type_ == "NUMERIC":
        return forms.numeric_to_text(value)
    if type_ == "TIMESTAMP":
        return timestamp_in_zone(value, UTC_ZONE)
    if type_ == "INTERVAL":
        return parse_iso(value).text()
    if type_ == "BYTES":
        return escape_bytes(forms.bytes_of(value), "\"'`")
    return str(value)


def to_literal(type_: Any, value: Any) -> str:
    """%T: as SQL writes it."""
    if value is None:
        return "NULL"
    if isinstance(type_, list):
        text = write_composite(type_, value, to_literal)
        return f"STRUCT{text}" if type_[0] == "STRUCT" and len(type_[1]) <= 1 else text
    if type_ == "STRING":
        return quote_string(value)
    if type_ == "BYTES":
        raw = forms.bytes_of(value)
        quote = choose_quote(raw.decode("latin-1"))
        return f"b{quote}{escape_bytes(raw, quote)}{quote}"
    plain = to_readable(type_, value)
    if type_ in {"FLOAT64", "FLOAT32"} and not math.isfinite(read_float(value)):
        return f'CAST("{plain}" AS {type_})'
    if type_ in {"DATE", "TIMESTAMP", "NUMERIC", "JSON"}:
        return f"{type_} {quote_string(plain)}"
    if type_ == "INTERVAL":
        return f'INTERVAL "{plain}" YEAR TO SECOND'
    if type_ == "UUID":
        return f"CAST('{plain}' AS UUID)"
    return plain


def write_composite(type_: Any, value: Any, each: Callable[[Any, Any], str]) -> str:
    """[a, b] and (a, b)."""
    items = json.loads(value) if isinstance(value, str) else value
    if type_[0] == "ARRAY":
        return "[" + ", ".join(each(type_[1], item) for item in items) + "]"
    parts = [each(inner, item) for (_, inner), item in zip(type_[1], items, strict=True)]
    return "(" + ", ".join(parts) + ")"


def add_point(text: str) -> str:
    """A float that looks like one."""
    return text + ".0" if re.fullmatch(r"-?\d+", text) else text


def escape_bytes(value: bytes, quotes: str) -> str:
    """BYTES as printable ASCII; backslashes and the quotes named are escaped."""
    escaped = "\\" + quotes
    return "".join(
        f"\\x{b:02x}" if not 32 <= b < 127 else f"\\{chr(b)}" if chr(b) in escaped else chr(b)
        for b in value
    )


def choose_quote(text: str) -> str:
    """Double quotes, unless the text has some and no single ones."""
    return "'" if '"' in text and "'" not in text else '"'


def quote_string(value: str) -> str:
    """A string literal."""
    quote = choose_quote(value)
    escapes = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", quote: f"\\{quote}"}
    text = "".join(
        escapes.get(c) or (f"\\x{ord(c):02x}" if ord(c) < 32 or ord(c) == 127 else c) for c in value
    )
    return f"{quote}{text}{quote}"
