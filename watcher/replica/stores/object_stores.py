"""Buckets of an object store, as a file system of Arrow.

The client is the one of delta-rs (``object_store``): one set of variables serves both, and an
object is shown when it is whole. A file is one PUT, or, if it is large, one upload in parts;
nothing is renamed. Arrow's own client of S3 has other variables, no conditional PUT, and uploads
each file in parts.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystemHandler, FileType

from watcher.model.errors import ConfigurationError
from watcher.process.extras import require_extras

SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss")
ACCOUNT = re.compile(r"abfss?://[a-z0-9$][a-z0-9-]+@[a-z0-9]+(\.[a-z0-9-]+)+(/.*)?", re.DOTALL)
"""``abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX``, as Spark and Hadoop name Azure's."""
ENDPOINTS = {
    "AWS_ENDPOINT_URL": "AWS_ALLOW_HTTP",
    "AZURE_STORAGE_ENDPOINT": "AZURE_ALLOW_HTTP",
    "GOOGLE_BASE_URL": "GOOGLE_ALLOW_HTTP",
}
"""Which variable lets the client of an endpoint go without TLS."""
VARIABLES = ("AWS_", "AZURE_", "GOOGLE_")
"""How the variables begin that the clients of stores read."""
TRUE = ("1", "true", "on", "yes", "y")
REQUESTS_AT_ONCE = 8
HELD_BYTES = 8 << 20
"""A file that is written piece by piece is in memory up to here, then in a temporary file."""
LISTINGS_MAX = 10
CUT_LISTING = "list response body"
"""What the client says of a listing whose connection ended in the middle."""
Listed = TypeVar("Listed")


def is_object_store(folder: str) -> bool:
    """Whether a folder is in an object store whose client is this one."""
    scheme, colon, _ = folder.partition("://")
    return bool(colon) and scheme in SCHEMES


def names_account(folder: str) -> bool:
    """Whether an address is a container's with its account: what is before the ``@`` is no user."""
    return ACCOUNT.fullmatch(folder) is not None


def open_bucket(folder: str) -> tuple[ObjectFiles, str]:
    """The bucket of a folder, and the folder's path, which begins with the bucket. Raises
    ConfigurationError."""
    scheme, _, path = folder.partition("://")
    bucket = path.split("/", 1)[0]
    check_endpoints()
    require_extras("stores")
    settings = [(n, v) for n, v in os.environ.items() if n.startswith(VARIABLES)]
    return connect(f"{scheme}://{bucket}", tuple(sorted(settings))), path.strip("/")


def check_endpoints() -> None:
    """Raises ConfigurationError for an endpoint without TLS that is not allowed: the client would
    try again and again."""
    for endpoint, allow in ENDPOINTS.items():
        plain = os.environ.get(endpoint, "").startswith("http://")
        if plain and os.environ.get(allow, "").lower() not in TRUE:
            raise ConfigurationError(
                f"{endpoint}={os.environ[endpoint]} is without TLS: set {allow}=true to allow that,"
                " or use https://"
            )


@lru_cache(maxsize=16)
def connect(address: str, settings: tuple[tuple[str, str], ...]) -> ObjectFiles:  # noqa: ARG001
    """A bucket's client, with its connections; the same for the same settings, which it reads from
    the environment itself."""
    errors = import_module("obstore.exceptions")
    try:
        store = import_module("obstore.store").from_url(address)
    except (errors.BaseError, ValueError) as error:
        raise ConfigurationError(f"cannot open {address}: {shorten(error)}") from error
    return ObjectFiles(address, store)


def shorten(error: Exception) -> str:
    """What the client says, without the structure of its error."""
    return str(error).split("\n\nDebug source:", 1)[0].strip()


@contextmanager
def as_system_error(path: str) -> Iterator[None]:
    """The client's errors as OSError; FileNotFoundError stays."""
    errors = import_module("obstore.exceptions")
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} is not there: {shorten(error)}") from error
    except errors.BaseError as error:
        raise OSError(shorten(error)) from error


def list_whole(path: str, read: Callable[[], Listed]) -> Listed:
    """A listing, read again where the connection ended in the middle of it: of all that is only
    read the client repeats everything but this. Errors are OSError."""
    for _ in range(LISTINGS_MAX - 1):
        try:
            with as_system_error(path):
                return read()
        except OSError as error:
            if CUT_LISTING not in str(error):
                raise
    with as_system_error(path):
        return read()


class ObjectFiles(FileSystemHandler):  # type: ignore[misc]  # Arrow has no annotations
    """The objects of one bucket; paths begin with its name. A folder is the beginning of names: it
    is there when an object is in it."""

    def __init__(self, address: str, store: Any) -> None:
        self._address = address
        self._store = store
        self._errors = import_module("obstore.exceptions")

    def put(self, path: str, content: bytes) -> None:
        """Writes an object, whole or not at all."""
        with self._writing(path):
            self._store.put(to_key(path), content, use_multipart=False)

    def create(self, path: str, content: bytes) -> bool:
        """The same unless there is one. Returns whether it was written: of several that do so at
        once, one has done it. After a lost answer it may have been written all the same."""
        try:
            with self._writing(path):
                self._store.put(to_key(path), content, mode="create")
        except FileExistsError:
            return False
        return True

    def replace(self, path: str, before: bytes, content: bytes) -> bool:
        """The same if the object is still what it was ``before``. Returns whether it is now."""
        with self._writing(path):
            there = self._store.get(to_key(path))
            state, found = describe_state(there.meta), bytes(there.bytes())
        if found != before:
            return found == content
        try:
            with self._writing(path):
                self._store.put(to_key(path), content, mode=state)
        except FileExistsError:
            return bytes(self.open_input_stream(path).read()) == content
        return True

    @contextmanager
    def _writing(self, path: str) -> Iterator[None]:
        """FileExistsError: the condition of a PUT does not hold. A bucket that is not there is no
        file that is not there."""
        try:
            with as_system_error(path):
                yield
        except FileNotFoundError as error:
            raise OSError(str(error)) from error
        except OSError as error:
            unmet = (self._errors.AlreadyExistsError, self._errors.PreconditionError)
            if isinstance(error.__cause__, unmet):
                raise FileExistsError(str(error)) from error
            raise

    # As FileSystemHandler.

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectFiles) and other._address == self._address

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._address)

    def get_type_name(self) -> str:
        return "object store"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[FileInfo]:
        if len(paths) == 1:
            return [self._describe(paths[0])]
        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as threads:
            return list(threads.map(self._describe, paths))

    def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
        base, bucket = to_key(selector.base_dir), selector.base_dir.split("/", 1)[0]
        folders: Sequence[str] = ()
        if selector.recursive:
            objects = self._list_objects(selector.base_dir)
        else:
            listed = list_whole(selector.base_dir, lambda: self._store.list_with_delimiter(base))
            objects, folders = listed["objects"], listed["common_prefixes"]
        if not (objects or folders or selector.allow_not_found):
            raise FileNotFoundError(f"{selector.base_dir} is not there")
        files = [describe(f"{bucket}/{each['path']}", each) for each in objects]
        return files + [FileInfo(f"{bucket}/{each}", FileType.Directory) for each in folders]

    def _list_objects(self, path: str) -> list[Any]:
        """All objects in a folder, and in those below."""
        return list_whole(
            path, lambda: [each for part in self._store.list(to_key(path)) for each in part]
        )

    def create_dir(self, path: str, recursive: bool) -> None:
        """There is nothing to make."""

    def delete_dir(self, path: str) -> None:
        self.delete_dir_contents(path, missing_dir_ok=True)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        keys = [each["path"] for each in self._list_objects(path)]
        if keys:
            with as_system_error(path):
                self._store.delete(keys)
        if not (keys or missing_dir_ok):
            raise FileNotFoundError(f"{path} is not there")

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError("a whole bucket is not emptied here")

    def delete_file(self, path: str) -> None:
        with as_system_error(path):
            self._store.delete(to_key(path))

    def move(self, src: str, dest: str) -> None:
        raise NotImplementedError("an object store does not rename")

    def copy_file(self, src: str, dest: str) -> None:
        with self._writing(dest):
            self._store.copy(to_key(src), to_key(dest))

    def open_input_stream(self, path: str) -> pa.NativeFile:
        with as_system_error(path):
            return pa.BufferReader(bytes(self._store.get(to_key(path)).bytes()))

    def open_input_file(self, path: str) -> pa.NativeFile:
        with as_system_error(path):
            size = self._store.head(to_key(path))["size"]
        return pa.PythonFile(ReadObject(self._store, path, size), mode="r")

    def open_output_stream(self, path: str, metadata: object) -> pa.NativeFile:  # noqa: ARG002
        return pa.PythonFile(NewObject(self, path), mode="w")

    def open_append_stream(self, path: str, metadata: object) -> pa.NativeFile:
        raise NotImplementedError("an object is written whole")

    def upload(self, path: str, file: Any) -> None:
        """Writes an object from a file, in parts if it is large."""
        with self._writing(path):
            self._store.put(to_key(path), file)

    def _describe(self, path: str) -> FileInfo:
        try:
            with as_system_error(path):
                return describe(path, self._store.head(to_key(path)))
        except FileNotFoundError:
            inside = list_whole(path, lambda: any(self._store.list(to_key(path), chunk_size=1)))
            return FileInfo(path, FileType.Directory if inside else FileType.NotFound)


class ReadObject(io.RawIOBase):
    """An object that is read by ranges, as Arrow asks for them."""

    def __init__(self, store: Any, path: str, size: int) -> None:
        self._store = store
        self._path = path
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}
        self._position = starts[whence] + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        left = max(self._size - self._position, 0)
        length = left if size is None or size < 0 else min(size, left)
        if not length:
            return b""
        with as_system_error(self._path):
            found = self._store.get_range(to_key(self._path), start=self._position, length=length)
        self._position += length
        return bytes(found)


class NewObject(io.RawIOBase):
    """An object that is written piece by piece, and is there when it is closed."""

    def __init__(self, files: ObjectFiles, path: str) -> None:
        self._files = files
        self._path = path
        self._pieces = tempfile.SpooledTemporaryFile(HELD_BYTES)  # noqa: SIM115 (closed below)

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._pieces.tell()

    def write(self, content: Any) -> int:
        return self._pieces.write(content)

    def close(self) -> None:
        if self.closed:
            return
        try:
            self._pieces.seek(0)
            self._files.upload(self._path, self._pieces)
        finally:
            self._pieces.close()
            super().close()


def to_key(path: str) -> str:
    """The name of an object in its bucket."""
    return path.partition("/")[2].rstrip("/")


def describe_state(meta: Any) -> dict[str, str]:
    """What a PUT may be made conditional on: the ETag, in Google's store the generation."""
    return {name: meta[name] for name in ("e_tag", "version") if meta[name] is not None}


def describe(path: str, found: Any) -> FileInfo:
    """An object as Arrow describes files."""
    micros = round(found["last_modified"].timestamp() * 1_000_000)
    return FileInfo(path, FileType.File, size=found["size"], mtime_ns=micros * 1_000)
