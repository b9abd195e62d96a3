"""Files of a replica, on this machine or in an object store."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

import pyarrow as pa
from pyarrow.dataset import (
    Dataset,
    ParquetFileFormat,
    ParquetFragmentScanOptions,
    ParquetReadOptions,
)
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from watcher.errors import ConfigurationError

BATCH_ROWS = 16_384
READ_OPTIONS = ParquetReadOptions(coerce_int96_timestamp_unit="us")
"""Spark writes INT96, which Arrow reads as nanoseconds otherwise: those of 64 bits end in 2262."""
PARQUET_FORMAT = ParquetFileFormat(read_options=READ_OPTIONS)
READ_BY_PIECES = ParquetFragmentScanOptions(use_buffered_stream=True, pre_buffer=False)


def open_file_system(folder: str) -> tuple[FileSystem, str]:
    """The file system of a folder, and its path there. Raises ConfigurationError."""
    if "://" not in folder:
        return LocalFileSystem(), str(PurePosixPath(folder))
    try:
        files, path = FileSystem.from_uri(folder)
    except pa.ArrowInvalid as error:
        raise ConfigurationError(f"cannot open the folder {folder}: {error}") from error
    return files, path


def scan_dataset(dataset: Dataset, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of Parquet files. Without limits Arrow reads ahead as fast as it can: a table would
    be in memory before a slower reader has seen its first rows."""
    yield from dataset.to_batches(
        columns=list(names),
        batch_size=BATCH_ROWS,
        batch_readahead=1,
        fragment_readahead=1,
        fragment_scan_options=READ_BY_PIECES,
        use_threads=False,
    )


def write_whole(files: FileSystem, folder: PurePosixPath, name: str, content: bytes) -> None:
    """Writes a file, whole or not at all; one of the same name is replaced."""
    files.create_dir(str(folder), recursive=True)
    # A local file is written in steps, a rename is atomic; object stores show whole objects.
    local = isinstance(files, LocalFileSystem)
    target = folder / (f".{name}.{secrets.token_hex(4)}" if local else name)
    with files.open_output_stream(str(target)) as stream:
        stream.write(content)
    if local:
        files.move(str(target), str(folder / name))


def remove_folder(folder: str, name: str) -> None:
    """Removes a folder in a folder, with all that is in it; nothing where there is none."""
    files, base = open_file_system(folder)
    path = str(PurePosixPath(base) / name)
    if files.get_file_info(path).type == FileType.Directory:
        files.delete_dir(path)


def list_names(files: FileSystem, folder: PurePosixPath, suffix: str) -> list[str]:
    """The names of the files in a folder, in order; those that begin with a dot are not whole."""
    infos = files.get_file_info(FileSelector(str(folder), allow_not_found=True))
    return sorted(
        info.base_name
        for info in infos
        if info.type == FileType.File
        and info.base_name.endswith(suffix)
        and not info.base_name.startswith(".")
    )
