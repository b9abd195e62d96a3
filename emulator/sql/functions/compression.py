"""ZSTD_COMPRESS and what undoes it. pyarrow is loaded at the first call: few servers need it.

https://docs.cloud.google.com/spanner/docs/reference/standard-sql/compression-functions
"""

from __future__ import annotations

from io import BytesIO
from pkgutil import resolve_name

from emulator.errors import out_of_range
from emulator.sql.functions.served import ServedFunctions
from emulator.values.types import BYTES, INT64, STRING

LEVEL = 3
LEVELS = range(-5, 23)
SIZE_MAX = 1 << 30
READ_AT_ONCE = 1 << 20


def compress(value: str | bytes, level: int = LEVEL) -> bytes:
    """ZSTD_COMPRESS."""
    if level not in LEVELS:
        raise out_of_range(
            f"ZSTD compression level must be between {LEVELS[0]} and {LEVELS[-1]}; got {level}"
        )
    data = value.encode() if isinstance(value, str) else value
    codec = resolve_name("pyarrow:Codec")("zstd", level)
    compressed: bytes = codec.compress(data, asbytes=True)
    return compressed


def decompress(data: bytes, size_limit: int = SIZE_MAX) -> bytes:
    """ZSTD_DECOMPRESS_TO_BYTES: no more than the limit is held."""
    kept, size = list[bytes](), 0
    try:
        with resolve_name("pyarrow:CompressedInputStream")(BytesIO(data), "zstd") as stream:
            while part := stream.read(READ_AT_ONCE):
                size += len(part)
                if size <= size_limit:
                    kept.append(part)
    except OSError as error:
        raise out_of_range(f"Invalid ZSTD input: {error}") from error
    if size > size_limit:
        raise out_of_range(f"ZSTD output is too large: ({size} bytes) limit ({size_limit} bytes)")
    return b"".join(kept)


def decompress_to_string(data: bytes, size_limit: int = SIZE_MAX) -> str:
    """ZSTD_DECOMPRESS_TO_STRING."""
    try:
        return decompress(data, size_limit).decode()
    except UnicodeDecodeError as error:
        raise out_of_range("ZSTD output is no valid UTF-8 string") from error


def build_served() -> ServedFunctions:
    """What statements call."""
    served = ServedFunctions("fn_")
    add = served.add
    add("ZSTD_COMPRESS", [STRING, INT64], BYTES, compress, optional=1, named="level")
    add("ZSTD_COMPRESS", [BYTES, INT64], BYTES, compress, optional=1, named="level")
    name, limit = "ZSTD_DECOMPRESS_TO_BYTES", "size_limit"
    add(name, [BYTES, INT64], BYTES, decompress, optional=1, named=limit)
    name = "ZSTD_DECOMPRESS_TO_STRING"
    add(name, [BYTES, INT64], STRING, decompress_to_string, optional=1, named=limit)
    return served


SERVED = build_served()
FUNCTIONS = SERVED.at_run_time
