"""A run: the workload, the system under test, where its files are; the same in every process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from benchmarks.load.workload import Workload
from spanner_schema.model.schema import Dialect
from watcher.tables.values import TableSpec

SystemName = Literal["watcher", "spark", "java", "debezium"]
PEERS: frozenset[SystemName] = frozenset(("java", "debezium"))
"""Programs of others, to compare with: what they lose is measured, and no failure."""
CaptureName = Literal["poll", "change-stream", "push"]
"""The index is polled; windows of a change stream are read; queries of one are kept open."""

SinkName = Literal["foreach-batch", "parquet"]
StorageName = Literal["memory", "disk"]
IndexName = Literal["none", "plain", "null-filtered", "no-shard", "forced"]
TIMESTAMP_COLUMN, SHARD_COLUMN, PROCESSED_COLUMN = "LastModified", "ShardId", "Processed"
PREFIX = "Bench"
"""The names of all tables that benchmarks make begin with it."""


class Preparation(BaseModel):
    """How the tables are made watchable. ``storing`` keeps the payload in the index, too.

    ``index``: ``forced`` is what ``ddl apply`` makes and the watcher names in its queries; with
    ``null-filtered`` and ``plain`` the database may choose such an index by itself, with ``none``
    it has none; ``no-shard`` is a forced one on the timestamp alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    shards: Annotated[int, Field(ge=1, le=1_000)] = 16
    strategy: Literal["automatic", "processed"] = "automatic"
    storing: bool = False
    index: IndexName = "forced"
    dialect: Dialect = Dialect.GOOGLESQL

    @model_validator(mode="after")
    def _possible(self) -> Preparation:
        if self.dialect is Dialect.POSTGRESQL and self.index != "forced":
            raise ValueError("databases of the PostgreSQL dialect have index = forced")
        if self.storing and self.index != "forced":
            raise ValueError(f"storing needs index = forced, not {self.index}")
        return self

    @property
    def spec(self) -> TableSpec | None:
        """What the watcher must be told; None where it finds everything in the schema."""
        if self.index == "forced":
            return None
        if self.index == "no-shard":
            return TableSpec(timestamp_column=TIMESTAMP_COLUMN, shard="none")
        return TableSpec(timestamp_column=TIMESTAMP_COLUMN, shard_column=SHARD_COLUMN)


class Consumer(BaseModel):
    """What delivers, and how. Times in seconds; ``clear_every`` 0 is never.

    ``capture``: ``poll`` (the index), ``change-stream`` (its windows) or ``push`` (queries of a
    change stream that stay open). Change streams deliver every version of a row, polling the newest
    of each window; each is checked for just that. With a change stream there is no index.

    For Spark ``interval`` is the trigger (0: back to back), ``shard_groups`` the partitions of a
    micro-batch, and ``sink`` where rows go. ``watchers`` are processes that share the tables among
    them; with ``parts`` they share one consumer of all tables, which has that many parts.
    ``max_rows`` is the size of a window, of a poll (Java) or of a micro-batch (Spark) at most.
    ``with_query_after`` is the Java watcher's setFallbackToWithQuerySeconds, here with its default:
    so far behind, it asks for each shard apart. ``refresh`` is how often our watcher looks at the
    schema, and saves the positions of tables, while nothing changes; ``lease`` is how long it holds
    its name without renewal.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: SystemName = "watcher"
    capture: CaptureName = "poll"
    interval: Annotated[float, Field(ge=0)] = 1.0
    max_rows: Annotated[int, Field(ge=1)] = 100_000
    shard_groups: Annotated[int, Field(ge=1)] = 1
    clear_every: Annotated[float, Field(ge=0)] = 0.0
    watchers: Annotated[int, Field(ge=1)] = 1
    parts: Annotated[int, Field(ge=0)] = 0
    sink: SinkName = "foreach-batch"
    with_query_after: Annotated[int, Field(ge=0)] = 60
    refresh: Annotated[float, Field(gt=0)] = 3_600.0
    lease: Annotated[float, Field(ge=1)] = 15.0

    @model_validator(mode="after")
    def _possible(self) -> Consumer:
        if self.streams and self.clear_every:
            raise ValueError("a change stream has no index to clear: set clear_every to 0")
        if self.streams and self.system == "java":
            raise ValueError("the Java watcher polls: set capture to poll")
        if not self.streams and self.system == "debezium":
            raise ValueError("Debezium reads a change stream: set capture to push")
        if self.parts and (self.streams or self.system != "watcher"):
            raise ValueError("only a watcher that polls has parts: set parts to 0")
        if self.system == "spark" and (self.capture == "push" or self.clear_every):
            raise ValueError(
                "Spark reads windows and does not clear: set capture to poll or"
                " change-stream, and clear_every to 0"
            )
        return self

    @property
    def streams(self) -> bool:
        """True where changes come from a change stream."""
        return self.capture != "poll"


class Disturbance(BaseModel):
    """What goes wrong on purpose; it shows that the harness sees it.

    The embedded server stands still for ``stall`` seconds, ``after`` seconds into the load. The
    watcher's callback drops or doubles one row in ``drop`` or ``duplicate`` (0: none), and is late
    by ``late`` seconds. What the consumers send and get takes ``round_trip`` seconds more, both
    ways together.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    after: Annotated[float, Field(ge=0)] = 0.0
    stall: Annotated[float, Field(ge=0)] = 0.0
    drop: Annotated[int, Field(ge=0)] = 0
    duplicate: Annotated[int, Field(ge=0)] = 0
    late: Annotated[float, Field(ge=0)] = 0.0
    round_trip: Annotated[float, Field(ge=0, le=10)] = 0.0


class RunPlan(BaseModel):
    """What one run does. ``backlog`` rows have changed before the system starts, in commits of
    ``backlog_mutations``; with ``write`` off there is nothing but them. With ``count_scans`` the
    embedded server counts what every query scans, which slows it a little, not a sample. Before the
    load there are ``idle`` seconds in which nothing changes, measured by themselves. With
    ``storage=disk`` the embedded server keeps the database in a temporary directory (``TMPDIR``),
    else in memory where there is room."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    workload: Workload = Workload()
    preparation: Preparation = Preparation()
    consumer: Consumer = Consumer()
    disturbance: Disturbance = Disturbance()
    backlog: Annotated[int, Field(ge=0)] = 0
    backlog_mutations: Annotated[int, Field(ge=1, le=10_000)] = 10_000
    write: bool = True
    idle: Annotated[float, Field(ge=0)] = 0.0
    storage: StorageName = "memory"
    count_scans: bool = False

    @model_validator(mode="after")
    def _one_table(self) -> RunPlan:
        if self.consumer.system == "spark" and self.workload.tables > 1:
            raise ValueError("Spark is measured with one table: set tables to 1")
        return self


class Run(RunPlan):
    """A plan in place. ``database`` is a full resource name, ``emulator`` its host:port or None.

    Consumers start at ``since`` (an RFC 3339 timestamp): the tables were filled before it.
    """

    database: str
    emulator: str | None
    distant: str | None = None
    """Where the consumers reach the emulator, if not at its own address."""
    folder: Path
    since: str = ""

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables; a record's ``table`` is the index in this list."""
        return tuple(f"{PREFIX}Load{number}" for number in range(self.workload.tables))

    def tables_of(self, watcher: int) -> tuple[str, ...]:
        """The tables of one of the watchers: all of them, where they share a consumer."""
        if self.consumer.parts:
            return self.tables
        return self.tables[watcher :: self.consumer.watchers]

    @property
    def resets_processed(self) -> bool:
        """True where writers must say that a row is not processed yet."""
        return self.preparation.strategy == "processed" and not self.consumer.streams

    def stream_of(self, watcher: int) -> str:
        """The change stream of one of the watchers."""
        return f"{PREFIX}Stream{watcher}"

    @property
    def positions_table(self) -> str:
        """Where the watcher keeps its positions."""
        return f"{PREFIX}Positions"

    @property
    def file(self) -> Path:
        """Where ``save`` writes."""
        return self.folder / "run.json"

    @property
    def begin(self) -> Path:
        """Holds the moment (microseconds) at which the schedule begins; exists once it is known."""
        return self.folder / "begin"

    @property
    def drain(self) -> Path:
        """Exists once the system is to deliver what there is, and end."""
        return self.folder / "drain"

    def ready(self, process: str) -> Path:
        """Exists once a process waits for ``begin``, or delivers: then it holds since when."""
        return self.folder / f"{process}.ready"

    def log(self, process: str) -> Path:
        """What a process prints."""
        return self.folder / f"{process}.log"

    def records(self, kind: str, process: str) -> Path:
        """The records of one kind (written, delivered, windows, attempts) of one process."""
        return self.folder / f"{process}.{kind}"

    def all_records(self, kind: str) -> list[Path]:
        """The records of one kind of all processes."""
        return sorted(self.folder.glob(f"*.{kind}"))

    def save(self) -> Path:
        """Writes it where the other processes read it."""
        self.file.write_text(self.model_dump_json(indent=1))
        return self.file

    @classmethod
    def load(cls, path: str, consumes: bool = False) -> Run:
        """Reads what ``save`` wrote, and points the clients of this process, which may be a
        consumer, at the database."""
        run = cls.model_validate_json(Path(path).read_text())
        run.enter(run.distant if consumes else None)
        return run

    def enter(self, address: str | None = None) -> None:
        """Points the clients of this process at the database, or at another address of it."""
        os.environ.pop("SPANNER_EMULATOR_HOST", None)
        where = address or self.emulator
        if where is not None:
            os.environ["SPANNER_EMULATOR_HOST"] = where
