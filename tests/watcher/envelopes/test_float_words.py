"""NaN and the infinities in the objects of a change stream: by column what Python reads."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from spanner_schema.model.column_types import Type, TypeCode
from watcher.envelopes.by_column.sent_objects import STANDING, SentObjects, read_members

FLOAT, TEXT = Type(TypeCode.FLOAT64), Type(TypeCode.STRING)
COLUMNS = (
    ("F", FLOAT),
    ("G", Type(TypeCode.FLOAT32)),
    ("L", Type(TypeCode.ARRAY, element=FLOAT)),
    ("S", TEXT),
)
WORDS = ("NaN", "Infinity", "-Infinity")
NUMBERS = st.sampled_from(WORDS) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.sampled_from(["NaN", '"NaN"', ':"NaN"', '["NaN"', ',"NaN",', '"F":"NaN"', "x"])
OBJECTS = st.fixed_dictionaries(
    {
        "F": st.none() | NUMBERS,
        "G": st.none() | NUMBERS,
        "L": st.none() | st.lists(st.none() | NUMBERS, max_size=4),
        "S": st.none() | TEXTS,
    }
)


def read(value: Any) -> Any:
    """What is compared: the words as Python's floats, NaN by its text."""
    if isinstance(value, list):
        return [read(each) for each in value]
    number = float(value) if isinstance(value, str | int) else value
    return repr(number)


@given(st.lists(OBJECTS, min_size=1, max_size=5), st.booleans())
@example([{"F": "NaN", "G": None, "L": ["NaN", "NaN", "NaN"], "S": "NaN"}], False)
@example([{"F": STANDING[0], "G": "NaN", "L": None, "S": None}], False)
def test_words_are_read_as_numbers(objects: list[dict[str, Any]], spaced: bool) -> None:
    separators = (", ", " : ") if spaced else (",", ":")
    texts = pa.array([json.dumps(each, separators=separators) for each in objects], pa.string())
    sent = SentObjects(texts, COLUMNS)
    for name in ("F", "G", "L"):
        column = sent.get_sent(name)
        values = column.to_pylist() if isinstance(column, pa.Array) else column
        assert [read(value) for value in values] == [read(each[name]) for each in objects]
    texts_of = sent.get_sent("S")
    got = texts_of.to_pylist() if isinstance(texts_of, pa.Array) else texts_of
    assert got == [each["S"] for each in objects]


def test_one_word_does_not_cost_the_columns() -> None:
    texts = pa.array(['{"F":"NaN","L":["NaN","NaN",1],"S":"a"}', '{"F":1.5,"L":null,"S":"b"}'])
    members = read_members(texts, COLUMNS)
    assert members is not None
    first, second = members["F"].to_pylist()
    assert math.isnan(first)
    assert second == 1.5
