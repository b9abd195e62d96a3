"""What a demo run is made of: one value, the same for every process of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from spanner_schema.model.schema import Dialect
from watcher.spanner.address import DatabaseAddress

ADDRESS = DatabaseAddress("demo-project", "demo-instance", "demo")
TABLE = "Singers"
CONSUMER = "demo"

SINGERS = """\
CREATE TABLE Singers (
  SingerId INT64,
  FirstName STRING(200),
  LastName STRING(200),
  BirthDate DATE,
  Picture BYTES(MAX),
) PRIMARY KEY (SingerId)"""
SINGERS_POSTGRESQL = """\
CREATE TABLE "Singers" (
  "SingerId" bigint,
  "FirstName" varchar(200),
  "LastName" varchar(200),
  "BirthDate" date,
  "Picture" bytea,
  PRIMARY KEY ("SingerId")
)"""
TABLES = {Dialect.GOOGLESQL: SINGERS, Dialect.POSTGRESQL: SINGERS_POSTGRESQL}
"""An ordinary table, as a user has it in each dialect: nothing in it is made for watching."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """What a user chooses. Sizes are in rows, rates per second, times in seconds."""

    rows: int = 10_000
    mutations_per_second: int = 1_000
    write_seconds: int = 30
    shards: int = 16
    shard_groups: int = 4
    trigger_seconds: float = 0.0
    clear_every_seconds: float = 5.0
    driver_kills: int = 0
    seed: int = 1
    to: str = "parquet"
    """``parquet``: every change in files. ``delta``: a replica, compared by ``verify``."""
    dialect: Dialect = Dialect.GOOGLESQL


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSettings(DemoOptions):
    """The options, and where this run has its files and its embedded server (host:port; empty where
    ``database`` is in an instance of the user's)."""

    directory: Path
    server: str
    database: str = str(ADDRESS)

    @property
    def address(self) -> DatabaseAddress:
        """Where the database is."""
        return DatabaseAddress.parse(self.database)

    @property
    def writer_log(self) -> Path:
        """Every acknowledged write, a JSON line a commit: the ground truth."""
        return self.directory / "writer.jsonl"

    @property
    def sink(self) -> Path:
        """The Parquet files."""
        return self.directory / "parquet"

    @property
    def lake(self) -> Path:
        """The replica."""
        return self.directory / "lake"

    @property
    def cuts_log(self) -> Path:
        """What the replica reports: a JSON line a cut."""
        return self.directory / "cuts.jsonl"

    @property
    def checkpoint(self) -> Path:
        """Spark's checkpoint."""
        return self.directory / "checkpoint"

    @property
    def drain_request(self) -> Path:
        """Exists once the Spark query is to deliver what is left and stop."""
        return self.directory / "drain"

    @property
    def data(self) -> Path:
        """The embedded server's data directory."""
        return self.directory / "spanner"

    def log(self, process: str) -> Path:
        """Where a process of the demo writes what it has to say."""
        return self.directory / f"{process}.log"

    @property
    def file(self) -> Path:
        """Where ``save`` writes."""
        return self.directory / "settings.json"

    def save(self) -> Path:
        """Writes the settings where the other processes read them."""
        values = asdict(self) | {"directory": str(self.directory), "dialect": self.dialect.value}
        self.file.write_text(json.dumps(values, indent=1))
        return self.file

    @classmethod
    def load(cls, path: Path) -> DemoSettings:
        """Reads what ``save`` wrote."""
        values = json.loads(path.read_text())
        directory, dialect = Path(values["directory"]), Dialect(values["dialect"])
        return cls(**(values | {"directory": directory, "dialect": dialect}))
