"""Position deletes of Iceberg's format 2: files that say which rows of data files are gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

from watcher.replica.iceberg.schemas import FIELD_ID

PATH, POSITION = 2147483546, 2147483545
"""The IDs that the format reserves for both columns."""
SCHEMA = pa.schema(
    [
        pa.field("file_path", pa.string(), False, {FIELD_ID: str(PATH).encode()}),
        pa.field("pos", pa.int64(), False, {FIELD_ID: str(POSITION).encode()}),
    ]
)
Gone = Mapping[str, BitMap]
"""The rows of data files, by their paths."""


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """The ``Mark`` of a data file: the files of position deletes that have rows of it, and how many
    these are."""

    path: str
    files: tuple[str, ...]
    rows: int

    def to_stored(self) -> dict[str, Any]:
        """As ``Mark.to_stored``."""
        return asdict(self)

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> DeletedRows:
        """As it was stored."""
        return cls(stored["path"], tuple(stored["files"]), stored["rows"])


def encode_deletes(gone: Gone) -> bytes:
    """A file of position deletes, in the order that the format asks for."""
    paths = sorted(gone)
    rows = [np.array(gone[path].to_array(), np.int64) for path in paths]
    numbers = np.repeat(np.arange(len(paths), dtype=np.int32), [len(each) for each in rows])
    names = pa.DictionaryArray.from_arrays(numbers, pa.array(paths, pa.string()))
    positions = pa.array(np.concatenate(rows))
    table = pa.Table.from_arrays([names.cast(pa.string()), positions], schema=SCHEMA)
    content = BytesIO()
    pq.write_table(
        table,
        content,
        compression="zstd",
        use_dictionary=["file_path"],
        column_encoding={"pos": "DELTA_BINARY_PACKED"},
    )
    return content.getvalue()


def decode_deletes(stream: BinaryIO | pa.NativeFile) -> Gone:
    """The rows that a file says are gone."""
    table = pq.read_table(stream, columns=[field.name for field in SCHEMA])
    paths = table.column("file_path").combine_chunks().dictionary_encode()
    numbers, positions = np.asarray(paths.indices), table.column("pos").to_numpy()
    return {
        path: BitMap(positions[numbers == number].astype(np.uint32))
        for number, path in enumerate(paths.dictionary.to_pylist())
    }
