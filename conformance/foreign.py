"""A Spanner that runs already: the database of a run in one of its instances, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Sequence

from google.api_core.exceptions import AlreadyExists
from google.cloud.spanner_v1.database import Database

from conformance.recording import RunFailedError
from conformance.schema_changes import EXTRA, SchemaChange, make_or_take_back
from conformance.writers import fresh_database
from spanner_schema.model.schema import Dialect
from watcher.model.errors import ConfigurationError
from watcher.spanner.address import DatabaseAddress

DDL_SECONDS_MAX = 600.0
"""Spanner takes minutes for a schema change now and then."""


class ForeignSpanner:
    """The database that ``address`` names, which must not be there yet, and is dropped at the end.
    The server itself is nobody's to strike."""

    def __init__(self, address: DatabaseAddress) -> None:
        self.address = address
        self._database = fresh_database(address)
        self._created = False

    def create(self, statements: Sequence[str]) -> Database:
        """Creates the database. Raises ConfigurationError where it is there already."""
        if self._database.exists():
            raise ConfigurationError(
                f"the database {self.address.path} exists: name one that does not, which is created"
                " for the run and dropped after it"
            )
        instance = self._database._instance
        created: Database = instance.database(
            self.address.database, ddl_statements=list(statements)
        )
        self._created = True  # also if the answer is lost
        try:
            created.create().result(DDL_SECONDS_MAX)
        except AlreadyExists:
            self._created = False  # somebody was faster
            raise
        return created

    def connect(self) -> Database:
        """The one client of the run: nobody takes its sessions away."""
        return self._database

    def change_schema(self, change: SchemaChange = EXTRA) -> str | None:
        """As ``EmbeddedSpanner.change_schema``."""
        return make_or_take_back(self.connect, change, Dialect.GOOGLESQL, DDL_SECONDS_MAX)

    def restart(self) -> None:
        """Raises RunFailedError."""
        raise RunFailedError("only an embedded Spanner can be killed")

    def trouble(self, _choice: random.Random, _seed: int, /) -> None:
        """Raises RunFailedError."""
        raise RunFailedError("only an embedded Spanner takes faults")

    def quiet(self) -> None:
        """There are no faults."""

    def end_churn(self) -> None:
        """Its partitions change as Spanner decides."""

    def close(self) -> None:
        """Drops the database."""
        if self._created and self._database.exists():
            self._database.drop()
