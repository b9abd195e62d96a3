"""Files of a replica, on this machine or in an object store."""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pyarrow as pa
from pyarrow.dataset import (
    Dataset,
    ParquetFileFormat,
    ParquetFragmentScanOptions,
    ParquetReadOptions,
)
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem, PyFileSystem

from watcher.model.errors import ConfigurationError, ReplicaError, StoreUnavailableError
from watcher.process.private_files import (
    FULL,
    make_folder,
    replace_file,
    sync_folder,
    write_new,
)
from watcher.replica.stores.object_stores import (
    ObjectFiles,
    is_object_store,
    names_account,
    open_bucket,
)

BATCH_ROWS = 16_384
SHARED_MODE = 0o666
"""Before the umask, as the engines have it that write the rows. The folder of a replica is made for
its owner alone; who lets others in lets them read all of it."""
READ_OPTIONS = ParquetReadOptions(coerce_int96_timestamp_unit="us")
"""Spark writes INT96, which Arrow reads as nanoseconds otherwise: those of 64 bits end in 2262."""
PARQUET_FORMAT = ParquetFileFormat(read_options=READ_OPTIONS)
READ_BY_PIECES = ParquetFragmentScanOptions(use_buffered_stream=True, pre_buffer=False)
READ_BY_GROUPS = ParquetFragmentScanOptions(use_buffered_stream=False, pre_buffer=True)
"""Where each piece is a request: those of a row group are joined."""


def open_file_system(folder: str) -> tuple[FileSystem, str]:
    """The file system of a folder, and its path there. Raises ConfigurationError."""
    if "://" not in folder:
        return LocalFileSystem(), str(PurePosixPath(folder))
    if "@" in folder.split("://", 1)[1].split("/", 1)[0] and not names_account(folder):
        raise ConfigurationError(
            "a folder must not have a user or a password in its address, which is shown and stored:"
            " set the variables of the object store's client, such as AWS_SECRET_ACCESS_KEY"
        )
    if is_object_store(folder):
        bucket, path = open_bucket(folder)
        return PyFileSystem(bucket), path
    try:
        files, path = FileSystem.from_uri(folder)
    except pa.ArrowInvalid as error:
        raise ConfigurationError(f"cannot open the folder {folder}: {error}") from error
    return files, path


def find_bucket(files: FileSystem) -> ObjectFiles | None:
    """The bucket that a file system is, if it is one."""
    return files.handler if isinstance(files, PyFileSystem) else None


DAMAGE = (ValueError, EOFError, LookupError, TypeError, AttributeError, ArithmeticError)
"""What readers of JSON, Parquet and Avro raise for a file that was cut off or overwritten."""
LOAD_ADVICE = "remove the folder of its copy, and 'replicate' loads it again"
AWAY = (*FULL, errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EREMOTEIO)
"""Errors of the system that may go away by themselves, or once somebody has made room."""
OS_ERROR = re.compile(r"\(os error (\d+)\)")
"""How delta-rs writes an error of the system."""
STORE_ERROR = re.compile(r"Generic \w+ error|AWS Error|google::cloud::Status|Azure")
"""How delta-rs and Arrow begin what they say of an object store, after retries of their own."""
DENIED = re.compile(
    r"denied|forbidden|unauthenticated|unauthorized|credential|NoSuchBucket|ContainerNotFound"
    r"|bucket does not exist",
    re.IGNORECASE,
)
"""What does not go away by itself."""


def is_store_away(error: Exception) -> bool:
    """Whether the error of a disk or an object store may go away."""
    text = str(error)
    number = error.errno if isinstance(error, OSError) else None
    if number is None and (written := OS_ERROR.search(text)) is not None:
        number = int(written[1])
    if number is not None:
        return number in AWAY
    return STORE_ERROR.search(text) is not None and DENIED.search(text) is None


def explain_store_error(path: str, error: Exception) -> ReplicaError:
    """What delta-rs or Arrow could not do with a folder or a file: StoreUnavailableError for what
    may go away, ReplicaError for all else. Raise it from the error."""
    if is_store_away(error):
        return StoreUnavailableError(f"the store of {path} is full or does not answer: {error}")
    return ReplicaError(f"cannot read or write {path}: {error}")


@contextmanager
def explain_store(path: str) -> Iterator[None]:
    """As ``explain_store_error``, for all errors of the system but that of a file that is not
    there."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise explain_store_error(path, error) from error


@contextmanager
def explain_copy(path: str) -> Iterator[None]:
    """As ``explain_store``, for a copy, all of whose files have to be there."""
    try:
        with explain_store(path):
            yield
    except FileNotFoundError as error:
        raise explain_store_error(path, error) from error


@contextmanager
def explain_damage(path: str) -> Iterator[None]:
    """What a reader says of a damaged file of a copy, as ReplicaError. Nothing but reading is done
    meanwhile."""
    try:
        yield
    except DAMAGE as error:
        raise ReplicaError(
            f"{path} is damaged ({type(error).__name__}: {error}): restore it from a backup, or"
            f" {LOAD_ADVICE}"
        ) from error


def scan_dataset(dataset: Dataset, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of Parquet files. Without limits Arrow reads ahead as fast as it can: a table would
    be in memory before a slower reader has seen its first rows. Raises ReplicaError for a damaged
    file."""
    files = getattr(dataset, "filesystem", None)
    by_pieces = files is None or isinstance(files, LocalFileSystem)
    with explain_damage("a file of the copy"):  # the error names it
        yield from dataset.to_batches(
            columns=list(names),
            batch_size=BATCH_ROWS,
            batch_readahead=1,
            fragment_readahead=1,
            fragment_scan_options=READ_BY_PIECES if by_pieces else READ_BY_GROUPS,
            use_threads=False,
        )


def write_whole(files: FileSystem, folder: PurePosixPath, name: str, content: bytes) -> None:
    """Writes a file, whole or not at all; one of the same name is replaced."""
    if isinstance(files, LocalFileSystem):
        make_folder(Path(folder))
        replace_file(Path(folder / name), content, SHARED_MODE)
        return
    with explain_store(str(folder / name)):
        if (bucket := find_bucket(files)) is not None:
            bucket.put(str(folder / name), content)
            return
        files.create_dir(str(folder), recursive=True)
        with files.open_output_stream(str(folder / name)) as stream:
            stream.write(content)


def create_new(folder: str, name: str, content: bytes) -> bool:
    """Writes a file into a folder or one in it, whole, unless there is one of the name. Returns
    whether it was written: of two that do so at once one has done it. In an object store this is a
    conditional put. Raises ConfigurationError for a store that cannot do that."""
    files, base = open_file_system(folder)
    if isinstance(files, LocalFileSystem):
        return create_local(Path(base) / name, content)
    bucket = find_bucket(files)
    if bucket is None:
        raise ConfigurationError(f"{folder} is in a store without conditional puts: use another")
    with explain_store(f"{folder}/{name}"):
        return bucket.create(f"{base}/{name}", content)


def replace_known(folder: str, name: str, before: bytes, content: bytes) -> bool:
    """Replaces a file whose content is known. Returns whether it has the new content now: in an
    object store, of two that do so at once, one has done it."""
    files, base = open_file_system(folder)
    bucket = find_bucket(files)
    if bucket is not None:
        with explain_store(f"{folder}/{name}"):
            return bucket.replace(f"{base}/{name}", before, content)
    write_whole(files, PurePosixPath(base), name, content)
    return True


def create_local(path: Path, content: bytes) -> bool:
    """The same of a file on this machine."""
    make_folder(path.parent)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        write_new(draft, content, path, SHARED_MODE)
        os.link(draft, path)
        sync_folder(path)
    except FileExistsError:
        return False
    except OSError as error:
        raise explain_store_error(str(path), error) from error
    finally:
        draft.unlink(missing_ok=True)
    return True


def read_whole(files: FileSystem, path: str) -> str:
    """The text of a file. Raises FileNotFoundError where there is none. What is no UTF-8 in a
    damaged one is in it as U+FFFD: whoever parses it says so."""
    with explain_store(path), files.open_input_stream(path) as stream:
        content: bytes = stream.read()
    return content.decode(errors="replace")


def remove_folder(folder: str, name: str) -> None:
    """Removes a folder in a folder, with all that is in it; nothing where there is none."""
    files, base = open_file_system(folder)
    path = str(PurePosixPath(base) / name)
    if files.get_file_info(path).type == FileType.Directory:
        files.delete_dir(path)


def list_names(files: FileSystem, folder: PurePosixPath, suffix: str) -> list[str]:
    """The names of the files in a folder, in order; those that begin with a dot are not whole."""
    with explain_store(str(folder)):
        infos = files.get_file_info(FileSelector(str(folder), allow_not_found=True))
    return sorted(
        info.base_name
        for info in infos
        if info.type == FileType.File
        and info.base_name.endswith(suffix)
        and not info.base_name.startswith(".")
    )
