"""One database: a SQLite file, a schema, and the transactions over them. Thread-safe, no gRPC."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import apsw

from emulator.engine.catalogs import Catalogs
from emulator.engine.change_streams.mutable import churn_mutable, is_mutable
from emulator.engine.change_streams.partitions import StreamPartition, churn
from emulator.engine.change_streams.reading import ChangeReader
from emulator.engine.clock import Clock
from emulator.engine.commit_queue import CommitQueue
from emulator.engine.maintenance import Maintenance
from emulator.engine.partitioned import PartitionedDmlTransaction
from emulator.engine.privileges import Rights
from emulator.engine.query_stats import QueryStats
from emulator.engine.read_only import ReadOnlyTransaction, Surroundings
from emulator.engine.read_write import ReadWriteTransaction
from emulator.engine.restores import begin_anew, list_policy_drops, rewind
from emulator.engine.schema_changes import change_schema, replay_statements
from emulator.engine.schema_rules.options import retention_seconds
from emulator.engine.schema_rules.placements import InstancePartitions
from emulator.engine.sequences import CREATE_SEQUENCES
from emulator.engine.snapshots import READ_STATE, Snapshots
from emulator.engine.state import SchemaState
from emulator.engine.table_sizes import list_sizes
from emulator.engine.timeline import Timeline
from emulator.engine.versions import SchemaVersions
from emulator.engine.writer import DatabaseWriter
from emulator.errors import SpannerError, failed_precondition
from emulator.storage.archives import CREATE_ARCHIVES, load_archives
from emulator.storage.change_streams import CREATE_TABLES as CREATE_STREAM_TABLES
from emulator.storage.change_streams import add_placements
from emulator.storage.horizon import CREATE_HORIZON, load_horizon
from emulator.storage.integrity import CREATE_REFERENCES
from emulator.storage.layout import table_layouts
from emulator.storage.migration import refresh_indexes
from emulator.storage.sqlite import Storage, run
from emulator.storage.statements import (
    create_statements,
    date_back_statements,
    load_statements,
)
from emulator.values.requests import (
    PLAIN_ORIGIN,
    BoundKind,
    Committed,
    Mutation,
    TimestampBound,
    TransactionOrigin,
)
from emulator.wrong import Wrong, is_wrong
from spanner_schema.model.schema import Dialect, Schema
from spanner_schema.syntax.render import render_schema

CHURN_WAIT_SECONDS = 5.0
CLOSE_WAIT_SECONDS = 1.0
"""A transaction whose client is silent does not keep a database from closing."""
FUTURE_MICROS_MAX = 3_600 * 1_000_000
WRONG_AHEAD_MICROS = 2_000_000


def ignore(_index: int, _commit_timestamp_micros: int) -> None:
    """Ignores that a statement is done."""


class Database:
    """Opens or creates the database of a file; ``path`` None keeps it in memory."""

    def __init__(
        self,
        name: str,
        path: Path | None,
        clock: Clock,
        *,
        dialect: Dialect = Dialect.GOOGLESQL,
        query_stats: QueryStats | None = None,
        instance_partitions: InstancePartitions = tuple,
        versions_kept: Callable[[], int | None] = lambda: None,
        fill: Callable[[Path], None] | None = None,
    ) -> None:
        """``versions_kept``: for how many microseconds at most; None: as the option says. ``fill``
        writes the file first: ``frozen`` of another database gives it."""
        self.name = name
        self._versions_kept = versions_kept
        self._clock = clock
        self._instance_partitions = instance_partitions
        self._storage = Storage.temporary() if path is None else Storage(path, durable=True)
        if fill is not None:
            fill(self._storage.path)
        self._ddl_lock = threading.Lock()
        self.query_stats = query_stats or QueryStats()
        self._timeline = Timeline(clock)
        self._writer = DatabaseWriter(self._storage, clock, self._timeline)
        self._queue = CommitQueue(self._writer)
        last_commit, version = prepare_file(self._writer.connection, clock.now())
        self._timeline.restart(last_commit)
        self._cleared_to = load_horizon(self._writer.connection)
        self._load_schemas(dialect, version)
        self._writer.sequences.load(self.schema)
        self._writer.capture.load()
        state_at = self._writer.versions.state_at
        self._snapshots = Snapshots(self._storage, self._state, state_at)
        self._around = Surroundings(
            self._snapshots,
            self._timeline,
            self._state,
            state_at,
            self.oldest_readable,
            self.query_stats,
            Catalogs(name.rpartition("/")[2]),
        )
        self.change_streams = ChangeReader(
            self._storage,
            clock,
            self._timeline,
            lambda: self.schema,
            self._writer.capture.signals,
        )
        self.query_stats.list_sizes = lambda: list_sizes(self._storage, self.schema)
        self._maintenance = Maintenance(self._writer, self.oldest_readable)
        self._maintenance.start()

    @property
    def clock(self) -> Clock:
        """The time of the server."""
        return self._clock

    @property
    def schema(self) -> Schema:
        """The schema now; an immutable value."""
        return self._writer.state.schema

    def rights(self, role: str) -> Rights | None:
        """The privileges of a role as they are now; None without a role, which may do everything.

        Raises PERMISSION_DENIED for a role that does not exist.
        """
        return self._writer.state.rights(role) if role else None

    def update_ddl(
        self,
        texts: Sequence[str],
        on_done: Callable[[int, int], None] = ignore,
        descriptors: bytes = b"",
    ) -> None:
        """Executes statements one after another; those before a failing one take effect.

        ``on_done`` is called after each with its index and its commit timestamp in microseconds.
        ``descriptors`` is the FileDescriptorSet of a proto bundle.
        """
        with self._ddl_lock:
            for index, text in enumerate(texts):
                micros = change_schema(self._writer, text, descriptors, self._instance_partitions)
                on_done(index, micros)

    def end_creation(self) -> None:
        """The schema of CREATE DATABASE holds before it, too: an earlier read finds no rows, but it
        finds the tables (as the Go client's tests ask of Spanner)."""
        with self._ddl_lock, self._writer.turn.taken(CHURN_WAIT_SECONDS):
            date_back_statements(self._writer.connection)
            self._writer.versions.date_back(self._writer.state)

    def without_commits(self) -> AbstractContextManager[None]:
        """No commit takes place while it lasts. Raises ABORTED when one takes too long."""
        return self._writer.turn.taken(CHURN_WAIT_SECONDS)

    def frozen(self) -> AbstractContextManager[Callable[[Path], None]]:
        """What writes the database as it is now to a file; commits go on."""
        return self._storage.frozen()

    def strong_timestamp(self) -> int:
        """A timestamp that sees every commit before, and none that begins from now on."""
        return self._timeline.strong()

    def rewind(self, at: int) -> None:
        """Takes the rows of a backup's file back to what a read at this timestamp finds."""
        with self.without_commits():
            rewind(self._writer, at)

    def begin_anew(self) -> None:
        """Makes a copy another database: no versions from before, change streams that begin now, no
        row deletion policies."""
        self.update_ddl(list_policy_drops(self.schema))
        with self._ddl_lock, self.without_commits():
            self._cleared_to = max(self._cleared_to, begin_anew(self._writer))

    def proto_descriptors(self) -> bytes:
        """The FileDescriptorSet of the database's proto bundle; empty without one."""
        return self.schema.proto_descriptors

    def ddl(self) -> list[str]:
        """Statements that create the same schema again."""
        return render_schema(self.schema, self.name.rpartition("/")[2])

    def read_only(self, bound: TimestampBound) -> ReadOnlyTransaction:
        """A read-only transaction; returns when its timestamp can be read."""
        return ReadOnlyTransaction(self._around, self._read_timestamp(bound))

    def read_write(
        self, age: int | None = None, *, optimistic: bool = False, strict_pending: bool = False
    ) -> ReadWriteTransaction:
        """A read-write transaction; it locks nothing before its first read or DML.

        A retry takes the ``age`` of the transaction that was aborted, so that it wins some day.
        """
        return ReadWriteTransaction(
            self._around,
            self._queue,
            self._writer,
            age,
            optimistic=optimistic,
            strict_pending=strict_pending,
        )

    def partitioned_dml(
        self, origin: TransactionOrigin = PLAIN_ORIGIN
    ) -> PartitionedDmlTransaction:
        """Runs one idempotent statement part by part."""
        return PartitionedDmlTransaction(self._storage, self._writer, origin)

    def write(
        self, mutations: Sequence[Mutation], origin: TransactionOrigin = PLAIN_ORIGIN
    ) -> Committed:
        """Commits mutations alone."""
        return self._queue.write(mutations, origin)

    def churn_streams(self, choice: random.Random) -> None:
        """Splits, merges or moves partitions of every change stream, once."""
        writer = self._writer
        if not self.schema.change_streams:
            return
        ended: list[StreamPartition] = []

        def work(micros: int) -> None:
            for stream in writer.state.schema.change_streams:
                move = churn_mutable if is_mutable(stream) else churn
                ended.extend(move(writer.connection, stream.name.casefold(), micros, choice))
            writer.capture.touch(ended)

        writer.turn.acquire(CHURN_WAIT_SECONDS)
        try:
            writer.commit_alone(work)
        finally:
            writer.capture.load()
            writer.turn.release()

    def oldest_readable(self) -> int:
        """The earliest timestamp, in Unix microseconds, at which a read is possible."""
        kept = self._versions_kept()
        retention = retention_seconds(self.schema.options) * 1_000_000 if kept is None else kept
        earliest = self._clock.wall() - retention
        back = earliest < self._cleared_to and is_wrong(Wrong.RETENTION_NOT_BACK)
        self._cleared_to = earliest if back else max(self._cleared_to, earliest)
        return self._cleared_to

    def sweep(self) -> int:
        """Removes old versions and expired rows now; returns the number of rows."""
        self._snapshots.expire()
        return self._maintenance.sweep()

    def close(self) -> None:
        """Ends the database's threads and connections; a database in memory is lost.

        The turn is taken and never given back: nobody writes through a connection that is closed.
        """
        with suppress(SpannerError):
            self._writer.turn.acquire(CLOSE_WAIT_SECONDS)
        self._writer.capture.signals.close()
        self._maintenance.stop()
        self._snapshots.expire(everything=True)
        self._writer.abandon()
        self._writer.connection.close()
        self._storage.close()

    def drop(self) -> None:
        """Closes the database and deletes its file."""
        self.close()
        self._storage.remove()

    def _load_schemas(self, dialect: Dialect, version: int) -> None:
        """The schemas of the file, by its own statements; the tables are in line with the last."""
        connection = self._writer.connection
        versions = replay_statements(load_statements(connection), dialect)
        newest = versions[-1]
        laid = table_layouts(newest.schema, {})
        refresh_indexes(connection, laid)
        self._writer.versions = SchemaVersions(versions, load_archives(connection))
        self._writer.state = SchemaState(version, newest.schema, laid, newest.since)
        self._writer.versions.forget(self.oldest_readable(), ())

    def _state(self) -> SchemaState:
        return self._writer.state

    def _read_timestamp(self, bound: TimestampBound) -> int:
        """The timestamp of a bound; waits for one in the future."""
        early = is_wrong(Wrong.STRONG_READ_BOUND)
        strong = self._timeline.strong() + (WRONG_AHEAD_MICROS if early else 0)
        if bound.kind is BoundKind.STRONG or bound.kind is BoundKind.MAX_STALENESS:
            return strong
        if bound.kind is BoundKind.MIN_READ_TIMESTAMP and bound.micros <= strong:
            return strong
        micros = bound.micros
        if bound.kind is BoundKind.EXACT_STALENESS:
            micros = self._clock.wall() - bound.micros
        if micros - self._clock.wall() > FUTURE_MICROS_MAX:
            raise failed_precondition("The read timestamp is more than one hour in the future.")
        if not early:
            self._timeline.wait_until_readable(micros)
        return micros


def prepare_file(connection: apsw.Connection, now: int) -> tuple[int, int]:
    """Creates the server's own tables in a new file; last commit and schema version."""
    run(
        connection,
        "BEGIN IMMEDIATE",
        'CREATE TABLE IF NOT EXISTS "$state" '
        "(last_commit INTEGER NOT NULL, schema_version INTEGER NOT NULL)",
        CREATE_REFERENCES,
        CREATE_SEQUENCES,
        CREATE_ARCHIVES,
        CREATE_HORIZON,
        *CREATE_STREAM_TABLES,
    )
    add_placements(connection)
    create_statements(connection)
    connection.execute(
        'INSERT INTO "$state" SELECT ?, 0 WHERE NOT EXISTS (SELECT 1 FROM "$state")', (now,)
    )
    run(connection, "COMMIT")
    row = connection.execute(READ_STATE).fetchone()
    if row is None:
        raise failed_precondition(
            "The database file is damaged: its table $state is empty. Restore or delete the file."
        )
    return int(row[0]), int(row[1])
