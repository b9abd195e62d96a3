"""The jsonb of the PostgreSQL dialect: its normal form, in which it is stored and sent."""

from __future__ import annotations

import json
import re
from decimal import Decimal

from emulator.values import pg_numeric

Document = None | bool | Decimal | str | list["Document"] | dict[str, "Document"]
DEPTH_MAX = 80
HALF_CHARACTER = re.compile("[\ud800-\udfff]")
ESCAPED = re.compile(r'[\x00-\x1f"\\]')
ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def parse_document(text: str) -> Document:
    """JSON text as a document: numbers keep their digits, of equal keys the last counts.

    Raises ValueError with PostgreSQL's sentence.
    """
    try:
        document: Document = json.loads(
            text,
            parse_int=pg_numeric.parse_numeric,
            parse_float=pg_numeric.parse_numeric,
            parse_constant=refuse_constant,
        )
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError("invalid input syntax for type json") from error
    return document


def refuse_constant(word: str) -> Document:
    """NaN and Infinity are not JSON."""
    raise ValueError(f'invalid input syntax for type json: token "{word}" is invalid')


def write_document(document: Document, depth: int = 0) -> str:
    """A document as PostgreSQL prints it: short keys first. Raises ValueError."""
    if depth > DEPTH_MAX:
        raise ValueError(f"the document nests more than {DEPTH_MAX} levels deep")
    if document is None:
        return "null"
    if isinstance(document, bool):
        return "true" if document else "false"
    if isinstance(document, Decimal):
        return pg_numeric.numeric_text(document)
    if isinstance(document, str):
        return write_string(document)
    if isinstance(document, list):
        return f"[{', '.join(write_document(item, depth + 1) for item in document)}]"
    members = sorted(document.items(), key=lambda pair: key_order(pair[0]))
    written = (f"{write_string(key)}: {write_document(value, depth + 1)}" for key, value in members)
    return f"{{{', '.join(written)}}}"


def key_order(key: str) -> tuple[int, bytes]:
    """Keys sort by their length in bytes, then by their bytes."""
    encoded = key.encode()
    return len(encoded), encoded


def write_string(text: str) -> str:
    """A string with PostgreSQL's escapes. Raises ValueError for half a character."""
    if HALF_CHARACTER.search(text):
        raise ValueError("Unicode low surrogate must follow a high surrogate")
    return f'"{ESCAPED.sub(escape, text)}"'


def escape(match: re.Match[str]) -> str:
    """A character that stands for itself behind a backslash only."""
    character = match[0]
    return ESCAPES.get(character) or f"\\u{ord(character):04x}"


def jsonb_form(text: str) -> str:
    """JSON text -> the normal form. Raises ValueError, also for a NUL, which jsonb cannot hold."""
    written = write_document(parse_document(text))
    if ESCAPED_NUL.search(written):
        raise ValueError("unsupported Unicode escape sequence: \\u0000 cannot be converted to text")
    return written


def jsonb_key(text: str) -> str:
    """A text that is the same for equal documents: 1.0 and 1.00 are equal."""
    return write_document(without_scales(parse_document(text)))


def without_scales(document: Document) -> Document:
    """The document with its numbers in their shortest form."""
    if isinstance(document, Decimal):
        return document.normalize(pg_numeric.CONTEXT)
    if isinstance(document, list):
        return [without_scales(item) for item in document]
    if isinstance(document, dict):
        return {key: without_scales(value) for key, value in document.items()}
    return document
