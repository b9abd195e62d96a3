"""Columns of BYTES against Python's own base64, a value at a time."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error, a2b_base64
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watcher.spanner.json_columns.scalars import encode_base64
from watcher.spanner.results import base64_column
from watcher.spanner.results.base64_column import decode_base64

PADDED = st.lists(st.sampled_from(b"QA=").map(lambda letter: bytes([letter])), max_size=8)
"""Letters, with padding at any place."""
VALUES = st.lists(st.none() | st.binary(max_size=8) | st.binary(min_size=250, max_size=400))


@given(VALUES, st.integers(0, 3))
def test_columns_are_what_python_makes_of_each_value(
    values: list[bytes | None], start: int
) -> None:
    texts = [None if value is None else b64encode(value) for value in values]
    column = pa.array(values, pa.binary()).slice(start)
    encoded = encode_base64(column)
    encoded.validate(full=True)
    assert encoded.cast(pa.binary()).to_pylist() == texts[start:]
    decoded = decode_base64(pa.array(texts, pa.binary()).slice(start))
    decoded.validate(full=True)
    assert decoded.to_pylist() == values[start:]


@pytest.mark.parametrize("text", [b"A", b"AAA", b"=QQQ", b"A=="])
def test_what_is_not_base64_is_refused(text: bytes) -> None:
    with pytest.raises(Error):
        decode_base64(pa.array([b"QUJD", text], pa.binary()))


@pytest.mark.parametrize("text", [b"QQ\n==", b"QU-JD", b"QUI=QUJD", b"QU!!"])
def test_letters_between_are_read_as_python_reads_them(text: bytes) -> None:
    read = pa.array([b"QUJD", text], pa.binary())
    try:
        expected = b64decode(text)
    except Error:
        with pytest.raises(Error):
            decode_base64(read)
    else:
        assert decode_base64(read).to_pylist() == [b"ABC", expected]


def read_each(texts: list[bytes]) -> list[bytes] | None:
    """As Python reads each; None for an error."""
    try:
        return [a2b_base64(text) for text in texts]
    except Error:
        return None


@pytest.mark.parametrize("of_python", [False, True], ids=["pybase64", "python"])
@given(letters=st.lists(PADDED, max_size=4))
def test_padding_at_any_place_is_read_as_python_reads_it(
    of_python: bool, letters: list[list[bytes]]
) -> None:
    texts = [b"".join(each) for each in letters]
    with pytest.MonkeyPatch.context() as patch:
        if of_python:
            strictly = partial(a2b_base64, strict_mode=True)
            patch.setattr(base64_column, "decode_text", strictly)
        try:
            decoded = decode_base64(pa.array(texts, pa.binary())).to_pylist()
        except Error:
            decoded = None
    assert decoded == read_each(texts)
