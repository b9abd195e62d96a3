"""The catalog of a replica in Iceberg that this process writes: a SQLite file in its folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import Table
from sqlalchemy.exc import SQLAlchemyError

from watcher.model.errors import ConfigurationError, ReplicaError
from watcher.process.private_files import make_folder
from watcher.replica.iceberg.io import NAME as FILES
from watcher.replica.iceberg.names import name_copy
from watcher.replica.iceberg.schemas import build_schema

FILE = "_catalog.db"
NAME, NAMESPACE = "spanner_watcher", "replica"
"""How other engines call the catalog, and the namespace of the copies in it."""
HADOOP_MARK = "version-hint.text"
PROPERTIES = {
    "format-version": "2",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "write.metadata.previous-versions-max": "10",
}


class ReplicaCatalog:
    """The tables of one replica. Nothing is made before a table is."""

    def __init__(self, folder: str) -> None:
        """Raises ConfigurationError for a folder that is not on this machine."""
        if "://" in folder:
            raise ConfigurationError(
                f"the catalog of {folder} would be a SQLite file, which an object store cannot"
                " have: use a folder of this machine, delta:, or engine = 'spark'"
            )
        self._folder = Path(folder).resolve()

    def locate(self, table: str) -> Path:
        """The folder of the copy of a table."""
        return self._folder / name_copy(table)

    def load(self, table: str) -> Table | None:
        """The copy of a table as it is now; None where there is none, or its folder was removed.
        Raises ReplicaError where Spark has written it, without this catalog."""
        if not has_catalog(str(self._folder)):
            self._refuse_hadoop(table)
            return None
        with self._explain():
            try:
                return self._catalog.load_table((NAMESPACE, name_copy(table)))
            except (NoSuchTableError, FileNotFoundError):
                return None

    def create(self, table: str, schema: pa.Schema) -> Table:
        """An empty copy, unless there is one."""
        self._refuse_hadoop(table)
        make_folder(self._folder)
        with self._explain():
            with suppress(NamespaceAlreadyExistsError):
                self._catalog.create_namespace(NAMESPACE)
            name = (NAMESPACE, name_copy(table))
            if self.load(table) is None:
                with suppress(NoSuchTableError):
                    self._catalog.drop_table(name)
            with suppress(TableAlreadyExistsError):
                self._catalog.create_table(
                    name,
                    build_schema(schema),
                    location=str(self.locate(table)),
                    properties=PROPERTIES,
                )
            return self._catalog.load_table(name)

    @cached_property
    def _catalog(self) -> SqlCatalog:
        address = f"sqlite:///{self._folder / FILE}"
        return SqlCatalog(NAME, **{"uri": address, "py-io-impl": FILES})

    def _refuse_hadoop(self, table: str) -> None:
        if (self.locate(table) / "metadata" / HADOOP_MARK).exists():
            raise ReplicaError(
                f"{self.locate(table)} was written by Spark, without the catalog"
                f" {self._folder / FILE}: go on with engine = 'spark', or use another folder"
            )

    @contextmanager
    def _explain(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            place = self._folder / FILE
            raise ReplicaError(f"cannot read or write the catalog {place}: {error}") from error


def has_catalog(folder: str) -> bool:
    """Whether a replica was written by this process, and not by Spark."""
    return "://" not in folder and (Path(folder) / FILE).exists()
