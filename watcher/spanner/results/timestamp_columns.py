"""Columns of TIMESTAMPs that may be finer than the microseconds of Arrow and Spark: truncated,
refused, or exact text.

Spanner: a TIMESTAMP has nanoseconds; its API writes RFC 3339 in UTC with up to nine digits, and
leaves out digits that are zero.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from watcher.model.errors import WatcherError

MICROSECONDS = pa.timestamp("us", tz="UTC")

SECONDS_LENGTH = len("YYYY-MM-DDTHH:MM:SS")
MICROSECONDS_LENGTH = len("YYYY-MM-DDTHH:MM:SS.ffffffZ")
DIGITS_MAX = 9
DIGITS_KEPT = 6
FINER = r"\.\d{6}\d*[1-9]\d*Z$"


class LossyTimestampError(WatcherError):
    """A TIMESTAMP is finer than microseconds where that is refused, or in a primary key."""


def truncate_timestamps(texts: pa.Array) -> pa.Array:
    """Timestamps as Arrow's: what is finer than microseconds is truncated."""
    if max_length(texts) > MICROSECONDS_LENGTH:
        short = pc.utf8_slice_codeunits(pc.utf8_rtrim(texts, "Z"), 0, MICROSECONDS_LENGTH - 1)
        texts = pc.binary_join_element_wise(short, "Z", "")
    return texts.cast(MICROSECONDS)


def round_up_timestamps(texts: pa.Array) -> pa.Array:
    """Timestamps as microseconds since 1970, rounded up."""
    finer = pc.match_substring_regex(texts, FINER).cast(pa.int64())
    return pc.add(truncate_timestamps(texts).cast(pa.int64()), finer)


def find_finer(texts: pa.Array) -> str | None:
    """The first timestamp with other digits than zero after its microseconds; None without one."""
    if max_length(texts) <= MICROSECONDS_LENGTH:
        return None
    finer = texts.filter(pc.match_substring_regex(texts, FINER))
    return str(finer[0].as_py()) if len(finer) else None


def refuse_finer(texts: pa.Array) -> pa.Array:
    """The same texts. Raises LossyTimestampError when one is finer than microseconds."""
    finer = find_finer(texts)
    if finer is not None:
        raise LossyTimestampError(
            f"the TIMESTAMP {finer} is finer than the microseconds that Arrow and Spark keep;"
            " choose to truncate it, or to read it as a string"
        )
    return texts


def parse_key_timestamps(texts: pa.Array, table: str, column: str) -> pa.Array:
    """Timestamps of a primary key as Arrow's. Raises LossyTimestampError instead of truncating one:
    two rows would look like one."""
    finer = find_finer(texts)
    if finer is not None:
        raise LossyTimestampError(
            f"column {column} is part of the primary key of {table} and has nanoseconds ({finer}),"
            " which a timestamp in microseconds would lose, and two rows would have one key: set"
            " nanoseconds = 'string'"
        )
    return truncate_timestamps(texts)


def normalize_timestamps(texts: pa.Array) -> pa.Array:
    """One text for each moment: with six digits, or with nine where six would lose some."""
    lengths = pc.min_max(pc.binary_length(texts))
    if lengths["min"].as_py() == lengths["max"].as_py() == MICROSECONDS_LENGTH:
        return texts
    seconds = pc.utf8_slice_codeunits(texts, 0, SECONDS_LENGTH)
    fraction = pc.utf8_trim(pc.utf8_slice_codeunits(texts, SECONDS_LENGTH), ".Z")
    digits = pc.utf8_rpad(fraction, DIGITS_MAX, "0")
    micros = pc.utf8_slice_codeunits(digits, 0, DIGITS_KEPT)
    nanos = pc.utf8_slice_codeunits(digits, DIGITS_KEPT)
    kept = pc.if_else(pc.equal(nanos, "0" * (DIGITS_MAX - DIGITS_KEPT)), micros, digits)
    return pc.binary_join_element_wise(seconds, ".", pc.binary_join_element_wise(kept, "Z", ""), "")


def max_length(texts: pa.Array) -> int:
    """The length of the longest text in bytes."""
    return int(pc.max(pc.binary_length(texts)).as_py() or 0)
