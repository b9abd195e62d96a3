"""Where the tables of a replica in Iceberg are that this process writes: in a namespace of a
catalog, or in that of a SQLite file in the replica's folder."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import Table

from watcher.model.errors import ConfigurationError, ReplicaError
from watcher.process.private_files import make_folder
from watcher.replica.iceberg.catalog_errors import explain_catalog
from watcher.replica.iceberg.io import NAME as FILES
from watcher.replica.iceberg.names import name_copy
from watcher.replica.iceberg.namespaces import FILE as TIE_FILE
from watcher.replica.iceberg.namespaces import SQLITE_FILE as FILE
from watcher.replica.iceberg.namespaces import Namespace, NamespacePlace, is_there
from watcher.replica.iceberg.partitions import FILE_SIZE, build_order, build_spec
from watcher.replica.iceberg.schemas import build_schema
from watcher.replica.layout import PLAIN, Layout
from watcher.replica.stores.places import is_namespace
from watcher.replica.stores.stored_files import explain_damage

NAME, NAMESPACE = "spanner_watcher", "replica"
"""How other engines call the catalog in a folder, and the namespace of the copies in it."""
HADOOP_MARK = "version-hint.text"
PROPERTIES = {
    "format-version": "2",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "write.metadata.previous-versions-max": "10",
}


class TableCatalog(Protocol):
    """The tables of one replica. Nothing is made before a table is."""

    @property
    def place(self) -> str:
        """Where it is, for people."""
        ...

    @property
    def catalog(self) -> Catalog:
        """What has them."""
        ...

    @property
    def namespace(self) -> tuple[str, ...]:
        """The namespace in which they are."""
        ...

    def locate(self, table: str) -> str:
        """The folder of the copy of a table."""
        ...

    def load(self, table: str) -> Table | None:
        """The copy of a table as it is now; None where there is none, or its folder was removed.
        Raises ReplicaError where Spark has written it, without this catalog."""
        ...

    def create(self, table: str, schema: pa.Schema, layout: Layout = PLAIN) -> Table:
        """An empty copy, unless there is one."""
        ...


def load_table(catalog: TableCatalog, table: str) -> Table | None:
    """As ``TableCatalog.load``."""
    with explain_catalog(catalog.place), explain_damage(f"the metadata of {catalog.locate(table)}"):
        try:
            return catalog.catalog.load_table((*catalog.namespace, name_copy(table)))
        except (NoSuchTableError, NoSuchNamespaceError, FileNotFoundError):
            return None


def create_table(catalog: TableCatalog, table: str, schema: pa.Schema, layout: Layout) -> Table:
    """As ``TableCatalog.create``, in a namespace that is there."""
    name, location = (*catalog.namespace, name_copy(table)), catalog.locate(table)
    with explain_catalog(catalog.place):
        if catalog.load(table) is None:
            with suppress(NoSuchTableError):
                catalog.catalog.drop_table(name)
        with suppress(TableAlreadyExistsError):
            fields = build_schema(schema)
            catalog.catalog.create_table(
                name,
                fields,
                location=location,
                partition_spec=build_spec(layout, fields),
                sort_order=build_order(layout, fields),
                properties=PROPERTIES | {FILE_SIZE: str(layout.file_bytes)},
            )
        return catalog.catalog.load_table(name)


class ReplicaCatalog:
    """The ``TableCatalog`` in a folder of this machine."""

    namespace = (NAMESPACE,)

    def __init__(self, folder: str) -> None:
        """Raises ConfigurationError for a folder that is not on this machine."""
        if "://" in folder:
            raise ConfigurationError(
                f"the catalog of {folder} would be a SQLite file, which an object store cannot"
                " have: write iceberg:CATALOG.NAMESPACE, or use a folder of this machine, delta:,"
                " or engine = 'spark'"
            )
        self._folder = Path(folder).resolve()

    @property
    def place(self) -> str:
        """As ``TableCatalog.place``."""
        return str(self._folder / FILE)

    def locate(self, table: str) -> str:
        """As ``TableCatalog.locate``."""
        return str(self._folder / name_copy(table))

    def load(self, table: str) -> Table | None:
        """As ``TableCatalog.load``."""
        if not has_catalog(str(self._folder)):
            self._refuse_others(table)
            return None
        return load_table(self, table)

    def create(self, table: str, schema: pa.Schema, layout: Layout = PLAIN) -> Table:
        """As ``TableCatalog.create``."""
        self._refuse_others(table)
        make_folder(self._folder)
        with explain_catalog(self.place), suppress(NamespaceAlreadyExistsError):
            self.catalog.create_namespace(NAMESPACE)
        return create_table(self, table, schema, layout)

    @cached_property
    def catalog(self) -> Catalog:
        """As ``TableCatalog.catalog``."""
        return SqlCatalog(NAME, **{"uri": f"sqlite:///{self.place}", "py-io-impl": FILES})

    def _refuse_others(self, table: str) -> None:
        if (Path(self.locate(table)) / "metadata" / HADOOP_MARK).exists():
            raise ReplicaError(
                f"{self.locate(table)} was written by Spark, without the catalog"
                f" {self.place}: go on with engine = 'spark', or use another folder"
            )
        if is_there(str(self._folder), TIE_FILE):
            raise ReplicaError(
                f"{self._folder} is the folder of a namespace, as its {TIE_FILE} says: write"
                " iceberg:CATALOG.NAMESPACE, or use another folder"
            )


class NamespaceTables:
    """The ``TableCatalog`` in a namespace, which is tied to its folder."""

    def __init__(self, place: NamespacePlace) -> None:
        self._of = Namespace(place)
        self.place = str(place)
        self.namespace = place.namespace

    @property
    def catalog(self) -> Catalog:
        """As ``TableCatalog.catalog``."""
        return self._of.catalog

    def locate(self, table: str) -> str:
        """As ``TableCatalog.locate``."""
        return f"{self._of.folder}/{name_copy(table)}"

    def load(self, table: str) -> Table | None:
        """As ``TableCatalog.load``."""
        return load_table(self, table)

    def create(self, table: str, schema: pa.Schema, layout: Layout = PLAIN) -> Table:
        """As ``TableCatalog.create``."""
        self._of.tie()
        return create_table(self, table, schema, layout)


def has_catalog(folder: str) -> bool:
    """Whether a replica was written by this process, and not by Spark."""
    return "://" not in folder and (Path(folder) / FILE).exists()


def open_catalog(place: str) -> TableCatalog:
    """The tables of a replica, to write them: in a namespace, or in a folder."""
    if is_namespace(place):
        return NamespaceTables(NamespacePlace.parse(place))
    return ReplicaCatalog(place)
