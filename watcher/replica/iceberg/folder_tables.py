"""The tables of a replica in Iceberg that Spark has written, as Iceberg's Hadoop catalog has them:
each in its folder. The next file of metadata belongs to whoever makes it first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath

import pyarrow as pa
from pyarrow.fs import LocalFileSystem
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.typedef import Identifier

from watcher.model.errors import ReplicaError
from watcher.replica.iceberg.catalog import HADOOP_MARK, load_table
from watcher.replica.iceberg.io import SafeFileIO
from watcher.replica.iceberg.names import name_copy
from watcher.replica.layout import PLAIN, Layout
from watcher.replica.stores.stored_files import create_new, write_whole

METADATA = "metadata"
METADATA_FILE = re.compile(r"v(\d+)(?:\.gz)?\.metadata\.json")


class FolderCatalog(NoopCatalog):
    """pyiceberg's catalog of the tables in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        super().__init__("folder")
        self._folder = folder

    def load_table(self, identifier: str | Identifier) -> Table:
        """As of a ``Catalog``. Raises NoSuchTableError."""
        name = identifier if isinstance(identifier, str) else identifier[-1]
        there = find_metadata(self._folder / name / METADATA)
        if not there:
            raise NoSuchTableError(f"there is no table {name} in {self._folder}")
        location, io = str(there[max(there)]), SafeFileIO()
        metadata = FromInputFile.table_metadata(io.new_input(location))
        return Table((name,), metadata, location, io, self)

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        """As of a ``Catalog``. Raises CommitFailedException where somebody else was faster."""
        current = self.load_table(table.name())
        for requirement in requirements:
            requirement.validate(current.metadata)
        before = Path(current.metadata_location)
        metadata = update_table_metadata(
            current.metadata, updates, metadata_location=current.metadata_location
        )
        number = 1 + max(find_metadata(before.parent))
        name = f"v{number}.{METADATA}.json"
        content = metadata.model_dump_json(exclude_none=True).encode()
        if not create_new(str(before.parent), name, content):
            raise CommitFailedException(f"{before.parent / name} is there already")
        point_to(before.parent, number)
        location = str(before.parent / name)
        return CommitTableResponse(metadata=metadata, metadata_location=location)


class FolderTables:
    """The ``TableCatalog`` of a replica that Spark has written."""

    namespace = ()

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder).resolve()

    @property
    def place(self) -> str:
        """As ``TableCatalog.place``."""
        return str(self._folder)

    @cached_property
    def catalog(self) -> FolderCatalog:
        """As ``TableCatalog.catalog``."""
        return FolderCatalog(self._folder)

    def locate(self, table: str) -> str:
        """As ``TableCatalog.locate``."""
        return str(self._folder / name_copy(table))

    def load(self, table: str) -> Table | None:
        """As ``TableCatalog.load``."""
        return load_table(self, table)

    def create(self, table: str, schema: pa.Schema, layout: Layout = PLAIN) -> Table:  # noqa: ARG002 (Spark does)
        """As ``TableCatalog.create``. Raises ReplicaError: Spark makes tables."""
        raise ReplicaError(f"{self.locate(table)} is not an Iceberg table any more")


def find_metadata(folder: Path) -> Mapping[int, Path]:
    """The files of metadata of a table, by their numbers."""
    found = ((METADATA_FILE.fullmatch(path.name), path) for path in folder.glob("v*"))
    return {int(name[1]): path for name, path in found if name is not None}


def point_to(folder: Path, number: int) -> None:
    """Says which file of metadata is the newest one: a hint, from which readers go on. Hadoop keeps
    a checksum beside it, of what was there before."""
    (folder / f".{HADOOP_MARK}.crc").unlink(missing_ok=True)
    write_whole(LocalFileSystem(), PurePosixPath(folder), HADOOP_MARK, str(number).encode())
