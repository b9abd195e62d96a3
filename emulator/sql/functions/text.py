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
from emulator.sql.functions.text_sizes import refuse_long, size_in_bytes
from emulator.values import forms

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


def ascii_case(upper: bool) -> Callable[[bytes], bytes]:
    """UPPER, LOWER of BYTES: ASCII letters only."""
    return bytes.upper if upper else bytes.lower


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


FUNCTIONS: dict[str, Callable[..., object]] = {
    "farm_fingerprint": farm_fingerprint,
    "fn_length": len,
    "fn_length_bytes": len,
    "fn_byte_length": lambda v: len(v.encode() if isinstance(v, str) else v),
    "fn_lower": lambda v: v.lower(),
    "fn_upper": lambda v: v.upper(),
    "fn_reverse": lambda v: v[::-1],
    "fn_trim": trim("both"),
    "fn_ltrim": trim("left"),
    "fn_rtrim": trim("right"),
    "fn_substr": substr,
    "fn_starts_with": lambda v, p: int(v.startswith(p)),
    "fn_ends_with": lambda v, p: int(v.endswith(p)),
    "fn_strpos": lambda v, p: v.find(p) + 1,
    "fn_replace": replace,
    "fn_repeat": repeat,
    "fn_lpad": pad(left=True),
    "fn_rpad": pad(left=False),
    "fn_split": split,
    "fn_concat": lambda *values: "".join(values),
    "fn_concat_bytes": concatenate_bytes,
    "fn_like": like,
    "fn_to_code_points": to_code_points,
    "fn_code_points_to_string": code_points_to_string,
    "fn_code_points_to_bytes": code_points_to_bytes,
    "fn_split_substr": split_substr,
    "fn_soundex": soundex,
    "fn_normalize": normalize,
    "fn_to_base32": lambda v: base64.b32encode(v).decode(),
    "fn_from_base32": from_base32,
    "fn_lower_bytes": ascii_case(upper=False),
    "fn_upper_bytes": ascii_case(upper=True),
    "fn_to_hex": lambda v: v.hex(),
    "fn_from_hex": from_hex,
    "fn_to_base64": lambda v: base64.b64encode(v).decode(),
    "fn_from_base64": from_base64,
    "fn_sha1": hash_with("sha1"),
    "fn_sha256": hash_with("sha256"),
    "fn_sha512": hash_with("sha512"),
    "fn_md5": hash_with("md5"),
    "fn_safe_convert_bytes_to_string": lambda v: v.decode(errors="replace_byte"),
    "fn_generate_uuid": lambda: str(uuid.uuid4()),
}
