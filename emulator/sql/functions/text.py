"""Functions of STRING and BYTES. Positions count characters (STRING) or bytes (BYTES)."""

from __future__ import annotations

import base64
import binascii
import codecs
import hashlib
import json
import re
import uuid
from collections.abc import Callable
from functools import partial

import farmhash

from emulator.errors import out_of_range
from emulator.sql.functions.like_patterns import compile_like, ends_in_backslash
from emulator.sql.functions.normal_forms import Form, normal_form
from emulator.sql.functions.served import ServedFunctions
from emulator.sql.functions.text_sizes import refuse_long, size_in_bytes
from emulator.values import forms
from emulator.values.types import BOOL, BYTES, INT64, STRING, UUID, array

Text = str | bytes
BLANKS = re.compile(r"[ \t\n\v\f\r]")
RANDOM = {"fn_generate_uuid"}


def farm_fingerprint(value: Text) -> int:
    """FarmHash Fingerprint64, read as a signed number."""
    unsigned: int = farmhash.fingerprint64(value)
    return unsigned - 2**64 if unsigned >= 2**63 else unsigned


def substr(value: Text, position: int, length: int | None = None) -> Text:
    """SUBSTR: from 1; a negative position counts from the end."""
    if length is not None and length < 0:
        raise out_of_range("Third argument in SUBSTR() cannot be negative")
    start = position - 1 if position > 0 else max(len(value) + position, 0) if position else 0
    if position < 0 and -position > len(value):
        start = 0
    return value[start:] if length is None else value[start : start + length]


def trim(sides: str) -> Callable[..., Text]:
    """TRIM, LTRIM, RTRIM: of blanks, or of the characters of the second argument."""

    def call(value: Text, characters: Text | None = None) -> Text:
        chosen = characters if characters is not None else None
        if isinstance(value, str):
            strip = {"both": value.strip, "left": value.lstrip, "right": value.rstrip}[sides]
            return strip(chosen if isinstance(chosen, str) else None)
        cut = {"both": value.strip, "left": value.lstrip, "right": value.rstrip}[sides]
        return cut(chosen if isinstance(chosen, bytes) else None)

    return call


def pad(left: bool) -> Callable[..., Text]:
    """LPAD, RPAD: to a length, with blanks or a pattern."""

    def call(value: Text, length: int, pattern: Text | None = None) -> Text:
        if length < 0:
            raise out_of_range("The length of LPAD and RPAD cannot be negative")
        if pattern is None:
            pattern = " " if isinstance(value, str) else b" "
        if not pattern:
            raise out_of_range("The pattern of LPAD and RPAD cannot be empty")
        refuse_long("LPAD/RPAD", length)
        missing = max(length - len(value), 0)
        filling = (pattern * (missing // len(pattern) + 1))[:missing]
        cut = value[:length]
        padded: Text = filling + cut if left else cut + filling  # type: ignore[operator]
        refuse_long("LPAD/RPAD", size_in_bytes(padded))
        return padded

    return call


def replace(value: Text, old: Text, new: Text) -> Text:
    """REPLACE: nothing is replaced for an empty pattern."""
    if not old:
        return value
    times = value.count(old)  # type: ignore[arg-type]
    grows = times * (size_in_bytes(new) - size_in_bytes(old))
    if grows > 0:
        refuse_long("REPLACE", size_in_bytes(value) + grows)
    return value.replace(old, new)  # type: ignore[arg-type]


def repeat(value: Text, count: int) -> Text:
    """REPEAT."""
    if count < 0:
        raise out_of_range("Second argument in REPEAT() cannot be negative")
    refuse_long("REPEAT", size_in_bytes(value) * count)
    return value * count


def split(value: Text, delimiter: Text | None = None) -> str:
    """SPLIT: an array; an empty delimiter gives the characters."""
    if delimiter is None:
        delimiter = "," if isinstance(value, str) else b","
    if not delimiter:
        parts: list[Text] = [value[i : i + 1] for i in range(len(value))]
    else:
        parts = list(value.split(delimiter))  # type: ignore[arg-type]
    return text_array(parts or [value])


def like(value: Text, pattern: Text) -> int:
    """value LIKE pattern."""
    text = pattern if isinstance(pattern, str) else pattern.decode("latin-1")
    if ends_in_backslash(text):
        raise out_of_range("LIKE pattern ends with a backslash")
    return int(compile_like(pattern).matches(value))


def text_array(values: list[Text]) -> str:
    """An array of STRING or BYTES in storage form."""
    texts = [forms.base64_text(value) for value in values]
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))


def to_code_points(value: Text) -> str:
    """TO_CODE_POINTS."""
    return json.dumps([ord(c) if isinstance(c, str) else c for c in value])


def code_points_to_string(points: str) -> str | None:
    """CODE_POINTS_TO_STRING: NULL if any is."""
    items = json.loads(points)
    if None in items:
        return None
    for item in items:
        if not 0 <= item <= 0x10FFFF or 0xD800 <= item <= 0xDFFF:
            raise out_of_range(f"Invalid codepoint {item}")
    return "".join(map(chr, items))


def code_points_to_bytes(points: str) -> bytes | None:
    """CODE_POINTS_TO_BYTES: NULL if any is."""
    items = json.loads(points)
    if None in items:
        return None
    if any(not 0 <= item <= 255 for item in items):
        raise out_of_range(f"Invalid extended ASCII code points: {points}")
    return bytes(items)


def split_substr(value: str, delimiter: str, start: int, count: int | None = None) -> str:
    """SPLIT_SUBSTR: so many splits from one on."""
    if not delimiter:
        raise out_of_range("The delimiter of SPLIT_SUBSTR cannot be empty")
    if count is not None and count < 0:
        raise out_of_range("The count of SPLIT_SUBSTR cannot be negative")
    parts = value.split(delimiter)
    first = start - 1 if start > 0 else max(len(parts) + start, 0) if start else 0
    return delimiter.join(parts[first:] if count is None else parts[first : first + count])


SOUND_GROUPS = ("BFPV", "CGJKQSXZ", "DT", "L", "MN", "R")
SOUNDS = {letter: digit for digit, group in enumerate(SOUND_GROUPS, 1) for letter in group}


def soundex(value: str) -> str:
    """SOUNDEX: the first letter as it is, and three digits; vowels do not part equal sounds."""
    written = [c for c in value if c.isascii() and c.isalpha()]
    if not written:
        return ""
    letters = [c.upper() for c in written]
    code, last = written[0], SOUNDS.get(letters[0])
    for letter in letters[1:]:
        sound = SOUNDS.get(letter)
        if sound is not None and sound != last:
            code += str(sound)
            last = sound
    return code[:4].ljust(4, "0")


def from_base32(text: str) -> bytes:
    """FROM_BASE32."""
    try:
        return base64.b32decode(text)
    except ValueError as error:
        raise out_of_range(f"Failed to decode invalid base32 string: {text!r}") from error


def replace_byte(error: UnicodeError) -> tuple[str, int]:
    """What stands for a byte that is not UTF-8, and where decoding goes on."""
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd", error.start + 1


codecs.register_error("replace_byte", replace_byte)


def from_hex(text: str) -> bytes:
    """FROM_HEX: an odd number of digits gets a zero in front."""
    try:
        return binascii.unhexlify(text if len(text) % 2 == 0 else "0" + text)
    except ValueError as error:
        raise out_of_range(f"Failed to decode invalid hexadecimal string: {text!r}") from error


def from_base64(text: str) -> bytes:
    """FROM_BASE64: blanks do not count; padding is = or a dot, all of it or none."""
    padded = BLANKS.sub("", text)
    digits = padded.rstrip("=.")
    padding = "=" * (-len(digits) % 4)
    try:
        if len(padded) - len(digits) not in (0, len(padding)):
            raise ValueError("too much padding, or too little")
        return base64.b64decode(digits + padding, validate=True)
    except ValueError as error:
        raise out_of_range(f"Failed to decode invalid base64 string: {text!r}") from error


def hash_with(name: str) -> Callable[[Text], bytes]:
    """A digest of BYTES or of the UTF-8 of a STRING."""

    digest = partial(getattr(hashlib, name), usedforsecurity=False)

    def call(value: Text) -> bytes:
        hashed: bytes = digest(value.encode() if isinstance(value, str) else value).digest()
        return hashed

    return call


def concatenate_bytes(*values: bytes) -> bytes:
    """CONCAT of BYTES."""
    return b"".join(values)


def normalize(value: str, form: Form, folded: int) -> str:
    """NORMALIZE, NORMALIZE_AND_CASEFOLD."""
    normal = normal_form(form, value)
    return normal_form(form, normal.casefold()) if folded else normal


def reverse(value: Text) -> Text:
    """REVERSE."""
    return value[::-1]


def starts_with(value: Text, start: Text) -> int:
    """STARTS_WITH."""
    return int(value.startswith(start))  # type: ignore[arg-type]


def ends_with(value: Text, end: Text) -> int:
    """ENDS_WITH."""
    return int(value.endswith(end))  # type: ignore[arg-type]


def find(value: Text, part: Text) -> int:
    """STRPOS: from 1; 0 where it is not."""
    return value.find(part) + 1  # type: ignore[arg-type]


def concatenate(*values: str) -> str:
    """CONCAT of STRING."""
    return "".join(values)


def to_base64(value: bytes) -> str:
    """TO_BASE64."""
    return base64.b64encode(value).decode()


def to_base32(value: bytes) -> str:
    """TO_BASE32."""
    return base64.b32encode(value).decode()


def convert_bytes(value: bytes) -> str:
    """SAFE_CONVERT_BYTES_TO_STRING: another character for what is not UTF-8."""
    return value.decode(errors="replace_byte")


def generate_uuid() -> str:
    """GENERATE_UUID, NEW_UUID."""
    return str(uuid.uuid4())


TRIMS = {"TRIM": trim("both"), "LTRIM": trim("left"), "RTRIM": trim("right")}
PADS = {"LPAD": pad(left=True), "RPAD": pad(left=False)}
DIGESTS = {name: hash_with(name.lower()) for name in ("SHA1", "SHA256", "SHA512", "MD5")}


def build_served() -> ServedFunctions:
    """What statements call."""
    served = ServedFunctions("fn_")
    add = served.add
    for text, suffix in ((STRING, ""), (BYTES, "_bytes")):
        is_text = text is STRING
        add(
            "FARM_FINGERPRINT",
            [text],
            INT64,
            farm_fingerprint,
            function="farm_fingerprint",
            postgres="SPANNER.FARM_FINGERPRINT",
        )
        add("LENGTH", [text], INT64, len, function=f"fn_length{suffix}")
        add("BYTE_LENGTH OCTET_LENGTH", [text], INT64, size_in_bytes)
        add("REVERSE", [text], text, reverse)
        for name, trimmed in TRIMS.items():
            add(name, [text, text], text, trimmed, optional=int(is_text))
        add("SUBSTR SUBSTRING", [text, INT64, INT64], text, substr, optional=1)
        add("STARTS_WITH", [text, text], BOOL, starts_with)
        add("ENDS_WITH", [text, text], BOOL, ends_with)
        add("STRPOS", [text, text], INT64, find)
        add("REPLACE", [text, text, text], text, replace)
        add("REPEAT", [text, INT64], text, repeat)
        for name, padded in PADS.items():
            add(name, [text, INT64, text], text, padded, optional=1)
        add("SPLIT", [text, text], array(text), split, optional=int(is_text))
        add("TO_CODE_POINTS", [text], array(INT64), to_code_points)
        for name, digest in DIGESTS.items():
            add(name, [text], BYTES, digest)
    add("LOWER LCASE", [STRING], STRING, str.lower)
    add("UPPER UCASE", [STRING], STRING, str.upper)
    add("LOWER LCASE", [BYTES], BYTES, bytes.lower, function="fn_lower_bytes")
    add("UPPER UCASE", [BYTES], BYTES, bytes.upper, function="fn_upper_bytes")
    add("CONCAT", [STRING], STRING, concatenate, rest=True)
    add("CONCAT", [BYTES], BYTES, concatenate_bytes, function="fn_concat_bytes", rest=True)
    add("CHAR_LENGTH CHARACTER_LENGTH", [STRING], INT64, "fn_length")
    splits = [STRING, STRING, INT64, INT64]
    add("SPLIT_SUBSTR", splits, STRING, split_substr, optional=1, postgres="SPANNER.SPLIT_SUBSTR")
    add("TO_HEX", [BYTES], STRING, bytes.hex)
    add("TO_BASE64", [BYTES], STRING, to_base64)
    add("TO_BASE32", [BYTES], STRING, to_base32)
    add("FROM_HEX", [STRING], BYTES, from_hex)
    add("FROM_BASE64", [STRING], BYTES, from_base64)
    add("FROM_BASE32", [STRING], BYTES, from_base32)
    add("SAFE_CONVERT_BYTES_TO_STRING", [BYTES], STRING, convert_bytes)
    add("CODE_POINTS_TO_STRING", [array(INT64)], STRING, code_points_to_string)
    add("CODE_POINTS_TO_BYTES", [array(INT64)], BYTES, code_points_to_bytes)
    add("SOUNDEX", [STRING], STRING, soundex, postgres="SPANNER.SOUNDEX")
    add("GENERATE_UUID", [], STRING, generate_uuid, postgres="SPANNER.GENERATE_UUID")
    add("NEW_UUID", [], UUID, "fn_generate_uuid", postgres="GEN_RANDOM_UUID")
    return served


SERVED = build_served()
FUNCTIONS: dict[str, Callable[..., object]] = {
    "fn_like": like,
    "fn_normalize": normalize,
    **SERVED.at_run_time,
}
