"""Texts -> JSON strings, escaped as ``json`` does with ``ensure_ascii=False``."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BACKSLASH, QUOTE, FIRST_PRINTABLE = ord("\\"), ord('"'), ord(" ")


def quote_strings(texts: pa.Array) -> pa.Array:
    """Texts as JSON strings; NULL stays NULL."""
    for character in find_escaped(texts):
        escaped = json.dumps(character)[1:-1]
        texts = pc.replace_substring(texts, character, escaped)
    return wrap(texts, '"', '"')


def find_escaped(texts: pa.Array) -> list[str]:
    """The characters of a column that JSON escapes, the backslash first: escapes contain it."""
    content = texts.buffers()[2]
    if content is None:
        return []
    data = np.frombuffer(content, np.uint8)
    escaped = data[(data < FIRST_PRINTABLE) | (data == QUOTE) | (data == BACKSLASH)]
    codes = [int(code) for code in np.unique(escaped)]
    return [chr(code) for code in sorted(codes, key=lambda code: code != BACKSLASH)]


def wrap(texts: pa.Array, before: str, after: str) -> pa.Array:
    """Texts between two others; NULL stays NULL."""
    return pc.binary_join_element_wise(before, texts, after, "")
