"""Digests of a column of texts, as a column."""

from __future__ import annotations

from hashlib import blake2b
from itertools import pairwise

import numpy as np
import pyarrow as pa

DIGEST_BYTES = 16
EMPTY = blake2b(digest_size=DIGEST_BYTES)
"""A copy of it takes a fifth less time than a new one."""


def hash_texts(texts: pa.Array) -> pa.Array:
    """The BLAKE2b digest of each text, in 32 hexadecimal digits."""
    _, offsets, content = texts.buffers()
    if not len(texts) or content is None:
        return pa.array([hash_text(b"")] * len(texts), pa.string())
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data, spans = memoryview(content), pairwise(bounds.tolist())
    digests = b"".join([digest_text(data[a:b]) for a, b in spans])
    ends = np.arange(len(texts) + 1, dtype=np.int32) * (2 * DIGEST_BYTES)
    return pa.StringArray.from_buffers(
        len(texts), pa.py_buffer(ends), pa.py_buffer(digests.hex().encode())
    )


def digest_text(text: bytes | memoryview) -> bytes:
    """The bytes of one digest."""
    digest = EMPTY.copy()
    digest.update(text)
    return digest.digest()


def hash_text(text: bytes) -> str:
    """The digest of one text."""
    return digest_text(text).hex()
