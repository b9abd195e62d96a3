"""The JSON objects of a change stream, and their members as columns of what was sent.

Arrow reads them, without a Python object for a member. It gives NULL for a member that is not there
as for one that is NULL; and it does not take names that JSON writes in several ways, names that are
not expected, and values of an unusual kind. Then the objects are parsed.

NaN and the infinities are texts in JSON, and Arrow reads a column as numbers or as texts. So these
words become numbers that stand for them, and what they stand for again afterwards; where a number
is one of these by itself, nothing is replaced.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from spanner_schema.model.column_types import Type, TypeCode
from watcher.model.value_types import FLOATS, Form, describe_values
from watcher.spanner.json_columns.objects import replace_items
from watcher.spanner.results.sent_values import UnexpectedValueError

EMPTY = "{}"
SentObject = dict[str, object]
"""A JSON object of a mod, parsed."""
SENT_KINDS: dict[pa.DataType, set[type]] = {
    pa.bool_(): {bool},
    pa.float64(): {int, float},
    pa.string(): {str},
}
WORDS = ("NaN", "Infinity", "-Infinity")
STANDING = (-1.7976931348623101e308, -1.7976931348623103e308, -1.7976931348623105e308)
"""Numbers that stand for the words; close to the least double, and rare."""
VALUES = (math.nan, math.inf, -math.inf)


class SentObjects:
    """The objects of a column; NULL is an empty one. ``columns`` are those that they are expected
    to have."""

    def __init__(self, texts: pa.Array, columns: Sequence[tuple[str, Type]]) -> None:
        self._texts = pc.fill_null(texts, EMPTY)
        self._types = dict(columns)
        self._members = read_members(self._texts, columns)

    @property
    def as_expected(self) -> bool:
        """Whether they have the expected columns only, with values of their usual kinds."""
        return self._members is not None

    @cached_property
    def parsed(self) -> list[SentObject]:
        """The objects. Raises UnexpectedValueError for a text that is not one."""
        return parse_objects(self._texts)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that they may have."""
        if self._members is not None:
            return frozenset(self._members)
        return frozenset().union(*self.parsed)

    def get_sent(self, name: str) -> pa.Array | list[object]:
        """The values of a column as they were sent; a list if not all are of their usual kind. NULL
        where an object does not have it."""
        if self._members is not None:
            return self._members[name]
        values = [each.get(name) for each in self.parsed]
        column = convert_sent_values(values, self._types[name])
        return values if column is None else column

    def find_having(self, name: str) -> pa.Array:
        """Which objects have a column, be it NULL."""
        if self._members is not None:
            return find_objects_with(name, self._members[name], self._texts)
        return pa.array([name in each for each in self.parsed], pa.bool_())


def read_members(
    texts: pa.Array, columns: Sequence[tuple[str, Type]]
) -> dict[str, pa.Array] | None:
    """The members of objects as they were sent, each as a column; NULL where an object does not
    have it. None where objects have other members, or a value is not of its usual kind."""
    types = {name: choose_sent_type(type_) for name, type_ in columns}
    if not all(map(is_plain, types)):
        return None
    joined = pc.binary_join(single_list(texts), "\n")[0]
    members = parse_members(joined, types, len(texts))
    if members is not None:
        return members
    floats = [name for name, type_ in types.items() if type_ == pa.float64()]
    lists = pa.list_(pa.float64()) in types.values()
    replaced, count = replace_words(joined, floats, lists)
    members = parse_members(replaced, types, len(texts)) if count else None
    return None if members is None else restore_words(members, count)


def parse_members(
    joined: pa.Scalar, types: Mapping[str, pa.DataType], rows: int
) -> dict[str, pa.Array] | None:
    """As ``read_members``, of lines."""
    content = joined.as_buffer()
    try:
        read = pj.read_json(
            pa.BufferReader(content),
            read_options=pj.ReadOptions(use_threads=False, block_size=content.size + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema(types.items()), unexpected_field_behavior="error"
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if read.num_rows != rows:
        return None
    return {name: pa.concat_arrays(read.column(name).chunks) for name in types}


def single_list(values: pa.Array) -> pa.Array:
    """A column as the only value of a column of lists."""
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def is_plain(name: str) -> bool:
    """Whether JSON has one way to write a name."""
    return name.isascii() and name.isidentifier()


def find_objects_with(name: str, values: pa.Array, texts: pa.Array) -> pa.Array:
    """Which objects have a member, be it NULL. ``name`` is a plain one."""
    unsure = pc.and_(values.is_null(), pc.not_equal(texts, EMPTY))
    if not pc.any(unsure).as_py():
        return values.is_valid()
    # In a string a quote has a backslash before it: what matches is the name of a member.
    named = pc.match_substring_regex(texts.filter(unsure), rf'"{name}"\s*:')
    return pc.replace_with_mask(values.is_valid(), unsure, named)


def parse_objects(texts: pa.Array) -> list[SentObject]:
    """The JSON objects of a column, parsed in one call."""
    joined = pc.binary_join(single_list(texts), ",")[0].as_py()
    objects: list[SentObject] = json.loads(f"[{joined}]")
    if len(objects) != len(texts):
        raise UnexpectedValueError("Spanner sent a text that is not one JSON object")
    return objects


def convert_sent_values(values: list[object], type_: Type) -> pa.Array | None:
    """Values as they were sent, as an Arrow column; None if not all are of their usual kind."""
    target = choose_sent_type(type_)
    kinds = set(map(type, values)) - {type(None)}
    if pa.types.is_list(target):
        if not kinds <= {list}:
            return None
        kinds = set(map(type, chain.from_iterable(v for v in values if v))) - {type(None)}  # type: ignore[arg-type]
    if not kinds <= SENT_KINDS[leaf_type(target)]:
        return None
    try:
        return pa.array(values, target)
    except (pa.ArrowInvalid, UnicodeEncodeError):
        return None


def leaf_type(type_: pa.DataType) -> pa.DataType:
    """The type of the values in lists, or the type itself."""
    return leaf_type(type_.value_type) if pa.types.is_list(type_) else type_


def choose_sent_type(type_: Type) -> pa.DataType:
    """The Arrow type of the values of JSON that a column's values are sent as."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return pa.list_(choose_sent_type(type_.element))
    form = describe_values(type_).form
    if form is Form.BOOL:
        return pa.bool_()
    return pa.float64() if form in FLOATS else pa.string()


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
        leaf = column.flatten() if pa.types.is_list(column.type) else column
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
        restored[name] = new if leaf is column else replace_items(column, new)
    return restored if found == count else None
