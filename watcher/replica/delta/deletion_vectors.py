"""Deletion vectors of Delta, as bytes: which rows of a data file are not there any more.

The format is in Delta's protocol, "Deletion Vector Format": a 64-bit roaring bitmap, in a file with
others or as text within the log.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from base64 import b85decode, b85encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any

from pyroaring import BitMap

from watcher.model.errors import ReplicaError
from watcher.replica.stores.stored_files import LOAD_ADVICE

FOLDER = "_vectors"
"""Where those of this product are: VACUUM of delta-rs removes files that it does not know, and it
knows no vectors; it leaves folders with an underscore alone."""
VERSION = b"\x01"
MAGIC = 1681511377
HEAD, SIZE = struct.Struct("<Iq"), struct.Struct(">I")
"""Magic number and number of maps; the size of a vector, and its checksum."""
KEY = struct.Struct("<I")
Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
"""The digits of Z85, which Delta has, and those of Python's, which are the same numbers."""
UUID_DIGITS = 20
INLINE, RELATIVE = "i", "u"


@dataclass(frozen=True, slots=True)
class VectorDescriptor:
    """Where a vector is stored, as the log says it. ``digits`` are the name of a file in the
    table's folder or the vector itself; ``rows`` is how many rows it removes."""

    kind: str
    digits: str
    offset: int
    size: int
    rows: int

    @classmethod
    def from_action(cls, stored: Mapping[str, Any]) -> VectorDescriptor:
        """As an ``add`` or a ``remove`` has it."""
        return cls(
            stored["storageType"],
            stored["pathOrInlineDv"],
            stored.get("offset") or 0,
            stored["sizeInBytes"],
            stored["cardinality"],
        )

    def to_action(self) -> dict[str, Any]:
        """As an ``add`` or a ``remove`` has it."""
        offset = {} if self.kind == INLINE else {"offset": self.offset}
        return {
            "storageType": self.kind,
            "pathOrInlineDv": self.digits,
            **offset,
            "sizeInBytes": self.size,
            "cardinality": self.rows,
        }

    def to_stored(self) -> dict[str, Any]:
        """As ``Mark.to_stored``."""
        return asdict(self)

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> VectorDescriptor:
        """As it was stored."""
        return cls(**stored)

    @property
    def path(self) -> PurePosixPath:
        """The file, in the table's folder. Raises ReplicaError for one elsewhere."""
        if self.kind != RELATIVE:
            raise ReplicaError(f"a deletion vector is at {self.digits}, not in its table's folder")
        prefix, digits = self.digits[:-UUID_DIGITS], self.digits[-UUID_DIGITS:]
        name = f"deletion_vector_{uuid.UUID(bytes=decode_z85(digits))}.bin"
        return PurePosixPath(prefix) / name


class VectorFile:
    """A file of vectors that is about to be written."""

    def __init__(self) -> None:
        self._id = uuid.uuid4()
        self.content = bytearray(VERSION)

    @property
    def digits(self) -> str:
        """How the log names the file."""
        return FOLDER + encode_z85(self._id.bytes)

    @property
    def path(self) -> PurePosixPath:
        """Where it is to be, in the table's folder."""
        return VectorDescriptor(RELATIVE, self.digits, 0, 0, 0).path

    def add(self, rows: BitMap) -> VectorDescriptor:
        """Adds a vector: where it is."""
        data = encode_vector(rows)
        vector = VectorDescriptor(RELATIVE, self.digits, len(self.content), len(data), len(rows))
        self.content += SIZE.pack(len(data)) + data + SIZE.pack(zlib.crc32(data))
        return vector


def encode_vector(rows: BitMap) -> bytes:
    """Numbers of rows, which are below 2^32, as one map."""
    return HEAD.pack(MAGIC, 1) + KEY.pack(0) + bytes(rows.serialize())


def decode_vector(data: bytes) -> BitMap:
    """The numbers of rows. Raises ReplicaError for what is not a vector."""
    if len(data) < HEAD.size:
        raise ReplicaError("a deletion vector is shorter than its head")
    magic, maps = HEAD.unpack_from(data)
    rest = data[HEAD.size :]
    if magic != MAGIC or maps not in (0, 1) or (maps and KEY.unpack_from(rest) != (0,)):
        raise ReplicaError(
            "a deletion vector has a format that this release does not know, or rows above 2^32:"
            f" magic number {magic}, {maps} maps"
        )
    try:
        return BitMap.deserialize(rest[KEY.size :]) if maps else BitMap()
    except (ValueError, OverflowError) as error:
        raise ReplicaError(f"a deletion vector is no roaring bitmap: {error}") from error


def read_stored(stored: bytes, vector: VectorDescriptor, path: str) -> BitMap:
    """A vector out of what a file has at its offset: size, vector, checksum. Raises ReplicaError
    where they do not fit; ``path``: the file."""
    data, rest = stored[SIZE.size : SIZE.size + vector.size], stored[SIZE.size + vector.size :]
    if stored[: SIZE.size] != SIZE.pack(vector.size) or rest != SIZE.pack(zlib.crc32(data)):
        raise ReplicaError(
            f"{path} is damaged (the checksum of a deletion vector differs): restore it from a"
            f" backup, or {LOAD_ADVICE}"
        )
    return check_rows(decode_vector(data), vector)


def read_inline(vector: VectorDescriptor) -> BitMap:
    """A vector that is in the log."""
    return check_rows(decode_vector(decode_z85(vector.digits)[: vector.size]), vector)


def stored_size(vector: VectorDescriptor) -> int:
    """How many bytes of a file ``read_stored`` takes."""
    return vector.size + 2 * SIZE.size


def check_rows(rows: BitMap, vector: VectorDescriptor) -> BitMap:
    """The rows. Raises ReplicaError unless they are as many as the log says."""
    if len(rows) != vector.rows:
        raise ReplicaError(f"a deletion vector has {len(rows)} rows; the log says {vector.rows}")
    return rows


def encode_z85(data: bytes) -> str:
    """Bytes, four by four, as five digits each."""
    return b85encode(data).translate(bytes.maketrans(B85, Z85)).decode()


def decode_z85(text: str) -> bytes:
    """The bytes of digits. Raises ReplicaError for others."""
    digits = text.encode()
    try:
        if set(digits) - set(Z85):
            raise ValueError("a character that is none of the digits")
        return b85decode(digits.translate(bytes.maketrans(Z85, B85)))
    except ValueError as error:
        raise ReplicaError(f"a deletion vector has a name that is not Z85: {text}") from error
