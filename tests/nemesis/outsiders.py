"""Somebody else who writes into copies, with the library of their format."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError
from fixtures.iceberg_histories import open_table
from fixtures.replicas import read_delta
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.expressions import AlwaysTrue
from sqlalchemy.exc import OperationalError

from watcher.replica.cuts.cut import DELTA
from watcher.replica.formats import ICEBERG
from watcher.replica.iceberg.namespaces import SQLITE_FILE


class NoCopyError(Exception):
    """There is no copy of the table."""


class RefusedError(Exception):
    """The replicator was faster, and nothing was done."""


class Outsider(Protocol):
    """Of one format. ``compacts``: whether the library compacts, restores and removes files."""

    compacts: bool

    def do(self, act: str, lake: str, table: str, version: float) -> None:
        """Compacts a copy (``compact``), removes what is not current (``vacuum``), appends a row
        again (``append``), removes all rows (``delete``), or goes back to a version, from 0 to 1
        for the newest (``restore``). Raises NoCopyError, RefusedError."""
        ...


class DeltaOutsider:
    """delta-rs."""

    compacts = True

    def do(self, act: str, lake: str, table: str, version: float) -> None:
        """As ``Outsider.do``."""
        try:
            self._act(act, DeltaTable(f"{lake}/{table}"), version)
        except TableNotFoundError as error:
            raise NoCopyError from error
        except DeltaError as error:
            raise RefusedError from error

    def _act(self, act: str, copy: DeltaTable, version: float) -> None:
        match act:
            case "compact":
                copy.optimize.compact()
            case "vacuum":
                copy.vacuum(0, False, False)
            case "append":
                write_deltalake(copy, read_delta(copy).slice(0, 1), mode="append")
            case "delete":
                copy.delete()
            case "restore":
                copy.restore(round(copy.version() * version))


class IcebergOutsider:
    """pyiceberg, which appends and deletes."""

    compacts = False

    def do(self, act: str, lake: str, table: str, version: float) -> None:
        """As ``Outsider.do``."""
        if not (Path(lake) / SQLITE_FILE).exists():
            raise NoCopyError
        try:
            copy = open_table(lake, table)
            if act == "append":
                copy.append(copy.scan(limit=1).to_arrow())
            else:
                copy.delete(AlwaysTrue())
        except NoSuchTableError as error:
            raise NoCopyError from error
        # A file of the version may be gone, and SQLite's catalog be locked for long.
        except (CommitFailedException, FileNotFoundError, OperationalError) as error:
            raise RefusedError from error


OUTSIDERS: dict[str, Outsider] = {DELTA: DeltaOutsider(), ICEBERG: IcebergOutsider()}
