"""How files of Iceberg are written on this machine: as safe as the commit that names them."""

from __future__ import annotations

import os
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import cast

from pyiceberg.io import InputFile, OutputFile, OutputStream
from pyiceberg.io.pyarrow import PyArrowFileIO

from watcher.process.private_files import sync_folder

NAME = f"{__name__}.SafeFileIO"
"""As the property ``py-io-impl`` of a catalog names it."""


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

    def __init__(self, output: OutputFile) -> None:
        super().__init__(output.location)
        self._output = output

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
        path = Path(self.location)
        path.parent.mkdir(parents=True, exist_ok=True)
        return cast("OutputStream", SafeStream(path, overwrite))


class SafeFileIO(PyArrowFileIO):
    """pyiceberg's files, but for those that are written in a folder of this machine."""

    def new_output(self, location: str) -> OutputFile:  # type: ignore[override]
        """As of a ``FileIO``, which promises no more than this."""
        output = super().new_output(location)
        return output if "://" in location else SafeOutput(output)
