"""One embedded server and one database, used for many schedules."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import grpc
from fixtures.dialects import create_in, translate_ddl
from fixtures.singers import make_watchable
from google.cloud import spanner
from google.cloud.spanner_v1.database import Database

import watcher.spanner.database
from ddl.migration.apply import read_schema
from emulator.engine.database import Database as Engine
from emulator.engine.maintenance import Maintenance
from interleavings.gate import Gate
from interleavings.in_process import ADDRESS, EmbeddedServer, InProcessChannel
from interleavings.scheduler import current_unit
from interleavings.virtual_clock import VirtualClock
from interleavings.virtual_time import end_transactions
from spanner_schema.model.schema import Dialect
from watcher.consumers.positions import SpannerPositions
from watcher.spanner.address import EMULATOR_HOST, DatabaseAddress
from watcher.spanner.bounded_client import BoundedDatabase
from watcher.tables.values import WatchedTable

NUMBERS = itertools.count()
"""The product keeps clients by the names of their databases: no two worlds have the same."""
PROJECT, INSTANCE = "test-project", "test-instance"
ENGINE_SCHEDULES = 400
"""After so many schedules the database is made anew: it keeps every version of every row."""
COLLECTED_SCHEDULES = 20
"""After so many schedules memory is collected, and never within one."""


class Inline(Executor):
    """Runs work at once, in the thread that submits it: a DDL operation is done when it returns."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


class World:
    """An embedded server and a database with a schema; each actor has its own ``database``."""

    def __init__(
        self,
        statements: Sequence[str],
        watchable: Sequence[str],
        shards: int = 2,
        dialect: Dialect = Dialect.GOOGLESQL,
    ) -> None:
        self.dialect = dialect
        self.clock = VirtualClock()
        self.gate = Gate()
        self.server = EmbeddedServer(self.clock.micros)
        self.address = DatabaseAddress(PROJECT, INSTANCE, f"explored-{next(NUMBERS)}")
        self.watched: dict[str, WatchedTable] = {}
        self.watchable = tuple(watchable)
        self._databases: dict[str, Database] = {}
        self._client: spanner.Client | None = None
        self._uses = 0
        self._dirty = False
        with self.serve():
            self._create(statements, watchable, shards)

    @contextlib.contextmanager
    def serve(self) -> Iterator[None]:
        """While it lasts, clients reach this server."""
        host = os.environ.get(EMULATOR_HOST)
        os.environ[EMULATOR_HOST] = ADDRESS
        replaced: list[tuple[Any, str, Any]] = [
            (grpc, "insecure_channel", self._channel),
            (watcher.spanner.database, "open_client", lambda _address, checked=False: self.client),
            (watcher.spanner.database, "BoundedDatabase", self._known_database),
            (watcher.spanner.database, "check_database", lambda _database, _address: None),
            # Its thread would take the turn to write in the machine's time, which no schedule sees.
            (Maintenance, "start", lambda _maintenance: None),
        ]
        before = [(owner, name, getattr(owner, name)) for owner, name, _ in replaced]
        randomness = random.getstate()
        for owner, name, value in replaced:
            setattr(owner, name, value)
        try:
            yield
        finally:
            random.setstate(randomness)
            for owner, name, value in before:
                setattr(owner, name, value)
            os.environ.pop(EMULATOR_HOST)
            if host is not None:
                os.environ[EMULATOR_HOST] = host

    def _channel(self, *_target: object, **_options: object) -> grpc.Channel:
        return grpc.intercept_channel(InProcessChannel(self.server), self.gate)

    @property
    def client(self) -> spanner.Client:
        """The real client."""
        if self._client is None:
            self._client = spanner.Client(project=PROJECT, disable_builtin_metrics=True)
        return self._client

    def database(self, actor: str = "") -> Database:
        """A client's database, one for each actor: the product's own class."""
        if actor not in self._databases:
            instance = self.client.instance(INSTANCE)
            database = BoundedDatabase(self.address.database, instance)
            if self.dialect is Dialect.POSTGRESQL:
                translate_ddl(database)
            self._databases[actor] = database
        return self._databases[actor]

    def _known_database(self, _name: str, _instance: object, _role: str | None) -> Database:
        """In place of a new database object: the one of the actor."""
        unit = current_unit()
        return self.database(unit.actor if unit is not None else "")

    def _create(self, statements: Sequence[str], watchable: Sequence[str], shards: int) -> None:
        config = f"projects/{PROJECT}/instanceConfigs/emulator-config"
        instance = self.client.instance(INSTANCE, configuration_name=config, node_count=1)
        instance.create().result(10)
        create_in(self.dialect, instance, self.address.database, statements)
        hosted = self.server.registry.databases[self.address.path]
        hosted.ddl_queue.shutdown()
        hosted.ddl_queue = Inline()  # type: ignore[assignment]
        database = self.database()
        SpannerPositions(database).create()
        for table in watchable:
            # The names of GoogleSQL in each dialect: scenarios change the schema by them.
            names = {"timestamp_column": "LastModified", "shard_column": "ShardId"}
            index = f"{table}ByShardAndTime"
            make_watchable(database, table, shards=shards, index=index, **names)
        database.reload()
        self._statements = list(database.ddl_statements)
        self.tables = [table.name for table in read_schema(database).tables]

    @property
    def engine(self) -> Engine:
        """The database as the server has it; another one after ``reset``."""
        return self.server.registry.databases[self.address.path].engine

    def reset(self, seed: str, schema_changes: bool) -> None:
        """Empties every table; recreates the database when its schema may have changed."""
        self.end_transactions()
        self.clock.next_hour()
        random.seed(seed)
        self._uses += 1
        if self._uses % COLLECTED_SCHEDULES == 0:
            gc.collect()
        hosted = self.server.registry.databases[self.address.path]
        if schema_changes or self._uses % ENGINE_SCHEDULES == 0:
            hosted.engine.drop()
            clock = self.server.registry.clock
            hosted.engine = Engine(self.address.path, None, clock, dialect=self.dialect)
            hosted.engine.update_ddl(self._statements)
            hosted.mutations = type(hosted.mutations)()
            return
        with self.database().batch() as batch:
            for table in self.tables:
                batch.delete(table, spanner.KeySet(all_=True))

    def end_transactions(self) -> None:
        """Rolls back the transactions of units that were stopped."""
        end_transactions(self.engine._writer.locks)

    def close(self) -> None:
        """Ends the server."""
        self.server.close()
