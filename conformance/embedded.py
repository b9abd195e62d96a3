"""The embedded Spanner of a run: killed and restarted, troubled, its schema changed."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from google.cloud import spanner
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.instance import Instance

from conformance.schema_changes import EXTRA, SchemaChange, make_or_take_back
from conformance.writers import fresh_database
from emulator.faults import Faults
from emulator.process import ServerProcess, spawn
from spanner_schema.model.schema import Dialect
from watcher.spanner.address import DatabaseAddress

VARIABLE = "SPANNER_EMULATOR_HOST"
PROJECT = "test-project"
INSTANCE = "test-instance"
DDL_SECONDS_MAX = 60.0


@contextmanager
def restored_address() -> Iterator[None]:
    """The environment names the same server after the block as before it."""
    before = os.environ.get(VARIABLE)
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before


class EmbeddedSpanner:
    """A server with its data in a folder, and the name of one database. The environment names it,
    so that every client of this process and of those that it starts finds it. Partitions change
    every ``churn_seconds``, as ``seed`` chooses; 0 is never."""

    def __init__(
        self,
        folder: Path,
        name: str,
        churn_seconds: float,
        spawn: Callable[[Path, int, float, Faults], ServerProcess] = spawn,
        dialect: Dialect = Dialect.GOOGLESQL,
        seed: int = 0,
    ) -> None:
        self.name = name
        self._dialect = dialect
        self._folder = folder
        self._churn = churn_seconds
        self._seed = seed
        self._spawn = spawn
        self._server = spawn(folder, 0, 0.0, self._churning)
        os.environ[VARIABLE] = self.host
        self.instance = self._create_instance()

    @property
    def host(self) -> str:
        """Host and port, the same after a restart."""
        return self._server.address

    @property
    def address(self) -> DatabaseAddress:
        """Where the database is."""
        return DatabaseAddress(PROJECT, INSTANCE, self.name)

    @property
    def _churning(self) -> Faults:
        """Partitions that change, and no faults."""
        return Faults(change_stream_churn_seconds=self._churn, seed=self._seed)

    def create(self, statements: Sequence[str]) -> Database:
        """Creates the database."""
        database: Database = self.instance.database(self.name, ddl_statements=list(statements))
        database.create().result(DDL_SECONDS_MAX)
        return database

    def connect(self) -> Database:
        """A client of its own: a session that the server has lost is not kept."""
        return fresh_database(self.address)

    def restart(self) -> None:
        """kill -9; it comes back with what was committed."""
        port = int(self.host.rsplit(":", maxsplit=1)[-1])
        self._server.kill()
        self._server = self._spawn(self._folder, port, 0.0, self._churning)

    def trouble(self, choice: random.Random, seed: int) -> None:
        """Faults until ``quiet``."""
        self._server.set_faults(
            Faults(
                aborted_commit_probability=choice.choice([0, 0.2, 0.5]),
                commit_unknown_probability=choice.choice([0, 0.1]),
                unavailable_after_rows=choice.choice([0, 3, 20]),
                latency_seconds=choice.choice([0, 0, 0.01]),
                lost_sessions=choice.choice([0, 0, 3]),
                change_stream_churn_seconds=self._churn,
                seed=seed,
            )
        )

    def quiet(self) -> None:
        """No faults but those of partitions."""
        self._server.set_faults(self._churning)

    def end_churn(self) -> None:
        """From now on partitions stay as they are; no faults."""
        self._churn = 0.0
        self.quiet()

    def change_schema(self, change: SchemaChange = EXTRA) -> str | None:
        """Makes a change, or takes it back where it was made; the statement, or None where the
        server does not answer or refuses it."""
        return make_or_take_back(self.connect, change, self._dialect, DDL_SECONDS_MAX)

    def close(self) -> None:
        """Ends the server."""
        if self._server.running:
            self._server.kill()

    def _create_instance(self) -> Instance:
        client = spanner.Client(project=PROJECT, disable_builtin_metrics=True)
        config = f"{client.project_name}/instanceConfigs/emulator-config"
        instance: Instance = client.instance(INSTANCE, configuration_name=config, node_count=1)
        if not instance.exists():
            instance.create().result(DDL_SECONDS_MAX)
        return instance
