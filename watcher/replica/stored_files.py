"""Files of a replica, on this machine or in an object store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import pyarrow as pa
from pyarrow.dataset import (
    Dataset,
    ParquetFileFormat,
    ParquetFragmentScanOptions,
    ParquetReadOptions,
)
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from watcher.errors import ConfigurationError
from watcher.private_files import make_folder, replace_file

BATCH_ROWS = 16_384
SHARED_MODE = 0o666
"""Before the umask, as the engines have it that write the rows. The folder of a replica is made for
its owner alone; who lets others in lets them read all of it."""
READ_OPTIONS = ParquetReadOptions(coerce_int96_timestamp_unit="us")
"""Spark writes INT96, which Arrow reads as nanoseconds otherwise: those of 64 bits end in 2262."""
PARQUET_FORMAT = ParquetFileFormat(read_options=READ_OPTIONS)
READ_BY_PIECES = ParquetFragmentScanOptions(use_buffered_stream=True, pre_buffer=False)


def open_file_system(folder: str) -> tuple[FileSystem, str]:
    """The file system of a folder, and its path there. Raises ConfigurationError."""
    if "://" not in folder:
        return LocalFileSystem(), str(PurePosixPath(folder))
    if "@" in folder.split("://", 1)[1].split("/", 1)[0]:
        raise ConfigurationError(
            "a folder must not have a user or a password in its address, which is shown and stored:"
            " set the variables of the object store's client, such as AWS_SECRET_ACCESS_KEY"
        )
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
    if isinstance(files, LocalFileSystem):
        make_folder(Path(folder))
        replace_file(Path(folder / name), content, SHARED_MODE)
        return
    files.create_dir(str(folder), recursive=True)
    with files.open_output_stream(str(folder / name)) as stream:  # shown when it is whole
        stream.write(content)


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
