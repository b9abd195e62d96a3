"""How long the texts are that functions give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import AnyStr

from emulator.errors import out_of_range
from emulator.limits import JOINED_BYTES_MAX, TEXT_FUNCTION_BYTES_MAX


def size_in_bytes(value: str | bytes) -> int:
    """The size of a STRING or BYTES value."""
    return len(value.encode()) if isinstance(value, str) else len(value)


def refuse_long(function: str, size: int) -> None:
    """Raises OUT_OF_RANGE for an output above GoogleSQL's limit."""
    if size > TEXT_FUNCTION_BYTES_MAX:
        raise out_of_range(f"Output of {function} exceeds max allowed output size of 1MB")


def join_texts(delimiter: AnyStr, texts: Sequence[AnyStr]) -> AnyStr:
    """Texts with a delimiter between them. Raises OUT_OF_RANGE for more than a value may have."""
    size = sum(map(len, texts)) + len(delimiter) * max(len(texts) - 1, 0)
    if size > JOINED_BYTES_MAX:
        raise out_of_range(
            f"The joined text would have {size} characters or bytes: {JOINED_BYTES_MAX} is the"
            " limit of this server"
        )
    return delimiter.join(texts)
