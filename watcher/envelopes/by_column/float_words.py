"""NaN and the infinities in objects of a change stream, where JSON has them as texts.

Arrow reads a column as numbers or as texts. So the words become numbers that stand for them, and
what they stand for again afterwards; where a number is one of these by itself, nothing is replaced.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

WORDS = ("NaN", "Infinity", "-Infinity")
STANDING = (-1.7976931348623101e308, -1.7976931348623103e308, -1.7976931348623105e308)
"""Numbers that stand for the words; close to the least double, and rare."""
VALUES = (math.nan, math.inf, -math.inf)


def replace_words(objects: pa.Scalar, floats: Sequence[str], lists: bool) -> tuple[pa.Scalar, int]:
    """The text of objects with numbers in place of words, and how many. ``floats`` are members that
    are numbers, with plain names; with ``lists`` items of lists are replaced, too."""
    count = 0
    for word, number in zip(WORDS, STANDING, strict=True):
        text, names = re.escape(word), "|".join(floats)
        rules = [(rf'("(?:{names})"\s*:\s*)"{text}"', rf"\1{number!r}")] if floats else []
        # Two words that follow each other have the comma between them in common.
        rules += [(rf'([\[,]\s*)"{text}"(\s*[,\]])', rf"\1{number!r}\2")] * (2 * lists)
        for pattern, after in rules:
            count += pc.count_substring_regex(objects, pattern).as_py()
            objects = pc.replace_substring_regex(objects, pattern, after)
    return objects, count


def restore_words(members: Mapping[str, pa.Array], count: int) -> dict[str, pa.Array] | None:
    """The columns with the words' values. None where not as many were found as were replaced: a
    number looks like a word's."""
    restored: dict[str, pa.Array] = {}
    found = 0
    for name, column in members.items():
        leaf = column.values if pa.types.is_list(column.type) else column
        restored[name] = column
        if not pa.types.is_floating(leaf.type):
            continue
        values = pc.fill_null(leaf, 0.0).to_numpy(zero_copy_only=False).copy()
        for number, value in zip(STANDING, VALUES, strict=True):
            standing = values == number
            found += int(np.count_nonzero(standing))
            values[standing] = value
        nulls = leaf.is_null().to_numpy(zero_copy_only=False)
        new = pa.array(values, leaf.type, mask=nulls)
        restored[name] = new if leaf is column else put_items(column, new)
    return restored if found == count else None


def put_items(lists: pa.Array, items: pa.Array) -> pa.Array:
    """Lists with other items, as many as before."""
    bounds = [lists.buffers()[0], lists.buffers()[1]]
    return pa.Array.from_buffers(
        lists.type, len(lists), bounds, offset=lists.offset, children=[items]
    )
