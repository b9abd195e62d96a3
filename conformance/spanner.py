"""What a run needs of a Spanner, its own or a foreign one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

from google.cloud.spanner_v1.database import Database

from conformance.schema_changes import EXTRA, SchemaChange
from watcher.spanner.address import DatabaseAddress


class RunSpanner(Protocol):
    """A server with the database of a run."""

    @property
    def address(self) -> DatabaseAddress:
        """Where the database is."""

    def create(self, statements: Sequence[str]) -> Database:
        """Creates the database."""

    def connect(self) -> Database:
        """A client whose sessions live."""

    def change_schema(self, change: SchemaChange = EXTRA) -> str | None:
        """Makes a change, or takes it back where it was made; the statement, or None where the
        server does not answer or refuses it."""

    def restart(self) -> None:
        """kill -9; it comes back with what was committed."""

    def trouble(self, choice: random.Random, seed: int, /) -> None:
        """Faults until ``quiet``."""

    def quiet(self) -> None:
        """No faults but those of partitions."""

    def end_churn(self) -> None:
        """From now on partitions stay as they are; no faults."""

    def close(self) -> None:
        """Removes what the run has made."""
