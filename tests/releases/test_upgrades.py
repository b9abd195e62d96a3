"""What an earlier release has left goes on under this one: nothing is lost, nothing repeated."""

from __future__ import annotations

import tarfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from fixtures.commands import run_command
from fixtures.server import spawn
from fixtures.watcher_threads import ChangeCollector, run_without_error
from google.cloud import spanner
from google.cloud.spanner_v1.database import Database

from emulator.engine import clock
from emulator.server import start
from watcher import Change, Watcher

FOLDER = Path(__file__).parent
RELEASES = sorted(path.name.removesuffix(".tar.xz") for path in FOLDER.glob("*.tar.xz"))
ADDRESS = "spanner://projects/project/instances/instance/databases/music"
TABLES = ("Singers", "Albums")
NANOS_PER_MINUTE = 60_000_000_000
UNDELIVERED = Counter((table, key, "second") for table in TABLES for key in range(5, 13))
"""What was written when all consumers of the release had ended."""


@dataclass(frozen=True, slots=True)
class Left:
    """What a release has left: a database, which is served, and copies of its tables."""

    database: Database
    lake: Path
    parquet: Path


@pytest.fixture(params=RELEASES)
def unpacked(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder of what a release has left."""
    with tarfile.open(FOLDER / f"{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.fixture
def left(unpacked: Path) -> Iterator[Left]:
    with spawn(unpacked / "data") as server, serve(server.address) as database:
        yield Left(database, unpacked / "lake", unpacked / "parquet")


@pytest.fixture
def left_today(unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """The database on the day that it was left: a change stream keeps its records for some days."""
    written_ns = (unpacked / "data/registry.json").stat().st_mtime_ns
    since_ns = time.time_ns() - written_ns - NANOS_PER_MINUTE
    monkeypatch.setattr(clock, "BEGAN_NS", clock.BEGAN_NS - since_ns)
    server = start(data_dir=unpacked / "data")
    with serve(server.address) as database:
        yield database
    server.stop()


@contextmanager
def serve(address: str) -> Iterator[Database]:
    """The database of a server, which is that of all clients meanwhile."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SPANNER_EMULATOR_HOST", address)
        client = spanner.Client(project="project", disable_builtin_metrics=True)
        yield client.instance("instance").database("music")


def make_watcher(consumer: str, **more: Any) -> Watcher:
    known: dict[str, Any] = {
        "database": ADDRESS,
        "tables": TABLES,
        "interval": "20ms",
        "consumer": consumer,
    }
    return Watcher(**known | more)


def describe(changes: Sequence[Change]) -> Counter[tuple[str, object, object]]:
    """How often each change is there: its table, its first key column, and its name or title."""
    columns = {"Singers": "LastName", "Albums": "Title"}
    return Counter(
        (change.table, change.key["SingerId"], (change.new_values or {})[columns[change.table]])
        for change in changes
    )


@pytest.mark.usefixtures("left")
def test_a_consumer_goes_on_where_it_ended() -> None:
    delivered: list[Change] = []
    watcher = make_watcher("plain")
    watcher.on_change(delivered.append)
    watcher.run_once()
    assert describe(delivered) == UNDELIVERED


@pytest.mark.usefixtures("left_today")
def test_a_consumer_of_a_change_stream_goes_on_where_it_ended() -> None:
    delivered: list[Change] = []
    stream = {"capture": "change-stream", "stream": {"name": "Everything"}}
    watcher = make_watcher("streamed", **stream)
    watcher.on_change(delivered.append)
    watcher.run_once()
    assert describe(delivered) == UNDELIVERED
    watcher.run_once()
    assert len(delivered) == UNDELIVERED.total()


@pytest.mark.usefixtures("left")
def test_a_shared_consumer_goes_on_in_all_its_parts() -> None:
    delivered = ChangeCollector()
    watcher = make_watcher("shared", parts=2)
    watcher.on_change(delivered)
    with run_without_error(watcher):
        delivered.wait(UNDELIVERED.total())
    assert describe(delivered.changes) == UNDELIVERED


def test_a_copy_goes_on_and_is_proved_equal(left: Left) -> None:
    copied = ("-t", "Singers", "-t", "Albums", "--consumer", "copy", "--to", f"delta:{left.lake}")
    done = run_command("replicate", "-d", ADDRESS, *copied, "--once")
    assert done.returncode == 0, done.stderr
    assert "Albums 8 rows merged, Singers 8 rows merged" in done.stdout
    proof = run_command("verify", "-d", ADDRESS, "--to", f"delta:{left.lake}")
    assert proof.returncode == 0, proof.stdout
    rows = DeltaTable(left.lake / "Singers").to_pyarrow_table(columns=["SingerId", "LastName"])
    expected = {key: "first" if key < 5 else "second" for key in range(13)}
    assert dict(zip(*(column.to_pylist() for column in rows.columns), strict=True)) == expected


@pytest.mark.spark
def test_a_checkpoint_of_spark_goes_on_and_its_copy_in_parquet_is_proved_equal(left: Left) -> None:
    to = f"parquet:{left.parquet}"
    copied = ("-t", "Singers", "-t", "Albums", "--consumer", "spark-copy", "--to", to)
    batches = list_batches(left.parquet)
    done = run_command("replicate", "-d", ADDRESS, "--engine", "spark", *copied, "--once")
    assert done.returncode == 0, done.stderr
    assert "Albums 8 rows merged, Singers 8 rows merged" in done.stdout
    assert list_batches(left.parquet) > batches
    proof = run_command("verify", "-d", ADDRESS, "--to", to)
    assert proof.returncode == 0, proof.stdout


def list_batches(folder: Path) -> set[str]:
    """The batches that a checkpoint knows as done."""
    return {path.name for path in folder.rglob("commits/*") if path.name.isdigit()}


def test_rows_that_all_have_delivered_leave_the_index(left: Left) -> None:
    """By the positions that the release has saved: those of the last write stay."""
    done = run_command("clear", "-d", ADDRESS, "-t", "Singers")
    assert done.returncode == 0, done.stderr
    with left.database.snapshot() as snapshot:
        query = "SELECT SingerId FROM Singers WHERE LastModified IS NOT NULL"
        assert sorted(row[0] for row in snapshot.execute_sql(query)) == [*range(5, 13)]
