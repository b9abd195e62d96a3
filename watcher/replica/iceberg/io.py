"""How files of Iceberg are read and written: as safe as the commit that names them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import cast

from pyarrow.fs import FileSelector, FileSystem, FileType
from pyiceberg.io import InputFile, OutputFile, OutputStream
from pyiceberg.io.pyarrow import PyArrowFileIO

from watcher.process.private_files import sync_folder
from watcher.replica.stores.object_stores import SCHEMES
from watcher.replica.stores.stored_files import open_file_system

NAME = f"{__name__}.SafeFileIO"
"""As the property ``py-io-impl`` of a catalog names it."""
PROPERTIES = {"s3": "s3.", "gs": "gcs.", "az": "adls.", "ab": "adls."}
OWN_PROPERTIES = {scheme: PROPERTIES[scheme[:2]] for scheme in SCHEMES}
"""How pyiceberg's properties of the client of a store begin, by the scheme of an address."""


class SafeStream(BufferedWriter):
    """A new file, whose content is safe once it is closed."""

    def __init__(self, path: Path, overwrite: bool) -> None:
        super().__init__(FileIO(path, "wb" if overwrite else "xb"))
        self._path = path

    def close(self) -> None:
        """Closes it; again, nothing happens."""
        if self.closed:
            return
        try:
            self.flush()
            os.fsync(self.fileno())
        finally:
            super().close()
        sync_folder(self._path)


class SafeOutput(OutputFile):
    """A file that is to be written by a ``SafeStream``."""

    def __init__(self, output: OutputFile, path: Path) -> None:
        super().__init__(output.location)
        self._output = output
        self._path = path

    def __len__(self) -> int:
        return len(self._output)

    def exists(self) -> bool:
        """As of an ``OutputFile``."""
        return self._output.exists()

    def to_input_file(self) -> InputFile:
        """As of an ``OutputFile``."""
        return self._output.to_input_file()

    def create(self, overwrite: bool = False) -> OutputStream:
        """As of an ``OutputFile``. Whoever may read the table may read it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        return cast("OutputStream", SafeStream(self._path, overwrite))


class SafeFileIO(PyArrowFileIO):
    """pyiceberg's files, but for those that are written in a folder of this machine, and those of
    an object store whose client is ours: it has the variables, the retries and the conditions that
    the manifest has. Where the catalog has properties of a store, such as ``s3.endpoint``, or hands
    out credentials, pyiceberg's own client takes them."""

    def new_output(self, location: str) -> OutputFile:  # type: ignore[override]
        """As of a ``FileIO``, which promises no more than this."""
        output = super().new_output(location)
        return SafeOutput(output, path) if (path := find_local(location)) else output

    def list_files(self, folder: str) -> Iterator[tuple[str, float]]:
        """The files in a folder and when they were written, in seconds; none where it is not
        there."""
        scheme, netloc, path = self.parse_location(folder, self.properties)
        selector = FileSelector(path, allow_not_found=True)
        for info in self.fs_by_scheme(scheme, netloc).get_file_info(selector):
            if info.type == FileType.File:
                yield f"{folder}/{info.base_name}", info.mtime_ns / 1e9

    def _initialize_fs(self, scheme: str, netloc: str | None = None) -> FileSystem:
        """Of pyiceberg: the file system of a scheme."""
        own = scheme in OWN_PROPERTIES and not any(
            name.startswith(OWN_PROPERTIES[scheme]) for name in self.properties
        )
        if own and netloc:
            return open_file_system(f"{scheme}://{netloc}")[0]
        return super()._initialize_fs(scheme, netloc)


def find_local(location: str) -> Path | None:
    """The path of a file of this machine."""
    scheme, _, path = PyArrowFileIO.parse_location(location)
    return Path(path) if scheme == "file" else None
