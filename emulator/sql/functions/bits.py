"""Operations on the bits of INT64 and BYTES."""

from __future__ import annotations

from collections.abc import Callable

from emulator.errors import out_of_range
from emulator.sql.functions.numbers import INT64_MAX
from emulator.sql.functions.served import ServedFunctions
from emulator.values.types import BOOL, BYTES, INT64


def bit_reverse(value: int, keep_sign: bool) -> int:
    """BIT_REVERSE(value, preserve_sign)."""
    if keep_sign:
        if value < 0:
            raise out_of_range("BIT_REVERSE with preserve_sign needs a value that is not negative")
        return int(f"{value:063b}"[::-1], 2)
    reversed_ = int(f"{value & (2**64 - 1):064b}"[::-1], 2)
    return reversed_ - 2**64 if reversed_ > INT64_MAX else reversed_


def bit_xor(left: int, right: int) -> int:
    """INT64 ^ INT64."""
    return left ^ right


def shift_left(value: int, count: int) -> int:
    """INT64 << INT64: bits that leave are lost."""
    if count < 0:
        raise out_of_range("Bitwise shift by negative offset.")
    return to_signed(value << count) if count < 64 else 0


def shift_right(value: int, count: int) -> int:
    """INT64 >> INT64: zeros come in, also for negative values."""
    if count < 0:
        raise out_of_range("Bitwise shift by negative offset.")
    return to_signed((value & (2**64 - 1)) >> count) if count < 64 else 0


def to_signed(value: int) -> int:
    """The low 64 bits as an INT64."""
    low = value & (2**64 - 1)
    return low - 2**64 if low > INT64_MAX else low


def bytes_operation(operation: Callable[[int, int], int]) -> Callable[[bytes, bytes], bytes]:
    """& | ^ of BYTES of one length."""

    def call(left: bytes, right: bytes) -> bytes:
        if len(left) != len(right):
            raise out_of_range(
                "Bitwise binary operator for BYTES requires equal length of the inputs."
            )
        return bytes(operation(a, b) for a, b in zip(left, right, strict=True))

    return call


def shift_bytes(left: bool) -> Callable[[bytes, int], bytes]:
    """BYTES << INT64, BYTES >> INT64: the length stays, zeros come in."""

    def call(value: bytes, count: int) -> bytes:
        if count < 0:
            raise out_of_range("Bitwise shift by negative offset.")
        size = len(value)
        number = int.from_bytes(value)
        if count >= size * 8:
            return bytes(size)
        moved = number << count if left else number >> count
        return (moved & ((1 << size * 8) - 1)).to_bytes(size)

    return call


def count_bits(value: int) -> int:
    """BIT_COUNT of INT64, in two's complement."""
    return (value & (2**64 - 1)).bit_count()


def count_bits_of_bytes(value: bytes) -> int:
    """BIT_COUNT of BYTES."""
    return int.from_bytes(value).bit_count()


def build_served() -> ServedFunctions:
    """What statements call."""
    served = ServedFunctions("fn_")
    add = served.add
    add("BIT_COUNT", [INT64], INT64, count_bits)
    add("BIT_COUNT", [BYTES], INT64, count_bits_of_bytes, function="fn_bit_count_bytes")
    add("BIT_REVERSE", [INT64, BOOL], INT64, bit_reverse, postgres="SPANNER.BIT_REVERSE")
    return served


SERVED = build_served()
FUNCTIONS: dict[str, Callable[..., object]] = {
    "fn_bytes_and": bytes_operation(lambda a, b: a & b),
    "fn_bytes_or": bytes_operation(lambda a, b: a | b),
    "fn_bytes_xor": bytes_operation(lambda a, b: a ^ b),
    "fn_bytes_not": lambda v: bytes(255 - b for b in v),
    "fn_bytes_shift_left": shift_bytes(left=True),
    "fn_bytes_shift_right": shift_bytes(left=False),
    "fn_bit_xor": bit_xor,
    "fn_shift_left": shift_left,
    "fn_shift_right": shift_right,
    **SERVED.at_run_time,
}
