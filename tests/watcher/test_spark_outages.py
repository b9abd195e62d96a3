"""The reader of a Spark query while the server is gone; its classes without a Spark."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.consumers import open_reader
from fixtures.server import connect, end_left_running, spawn
from fixtures.singers import SINGERS, address_of, make_watchable
from google.cloud.spanner_v1.database import Database

from emulator.process import ServerProcess
from watcher.model.errors import UnavailableError
from watcher.runners.spark.spark_versions import ReadAllAvailable
from watcher.runners.spark.streaming import ChangesReader

SECONDS_MAX = 60
BEGINS, ENDS = "does not answer; retrying", r"answers again after \d+\.\d s"


class World:
    """A server that can be killed and started again, with a watchable table."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server: ServerProcess = spawn(folder / "data")
        self.database = self._database()
        self.database.create().result(60)
        make_watchable(self.database)

    def _database(self) -> Database:
        instance = connect(self.server.address)
        database: Database = instance.database("spark", ddl_statements=[SINGERS])
        return database

    def reader(self, **more: str) -> ChangesReader:
        address = address_of(self.database)
        names = {"project": address.project, "instance": address.instance, "database": "spark"}
        given = {"table": "Singers", "startingTimestamp": "1970-01-02T00:00:00Z", "consumer": "c"}
        return open_reader(names | given | more)

    def restart(self) -> None:
        port = int(self.server.address.rsplit(":", maxsplit=1)[-1])
        self.server = spawn(self.folder / "data", port)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    new_world = World(tmp_path)
    with new_world.database.batch() as batch:
        batch.insert("Singers", ("SingerId", "LastName"), [(1, "x")])
    yield new_world
    end_left_running()
    if new_world.server.running:
        new_world.server.kill()


def count_logged(caplog: pytest.LogCaptureFixture, pattern: str) -> int:
    return sum(1 for record in caplog.records if re.search(pattern, record.getMessage()))


def test_a_query_outlives_an_outage_and_says_when_it_begins_and_ends(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "watcher")
    reader = world.reader()
    start = reader.initialOffset()
    first = reader.latestOffset(start, ReadAllAvailable())
    (part,) = reader.partitions(start, first)
    world.server.kill()

    def bring_back() -> None:
        until = time.monotonic() + SECONDS_MAX
        while not count_logged(caplog, BEGINS) and time.monotonic() < until:
            time.sleep(0.05)
        world.restart()

    helper = threading.Thread(target=bring_back)
    helper.start()
    rows = sum(batch.num_rows for batch in reader.read(part))
    helper.join(SECONDS_MAX)
    reader.commit(first)
    assert rows == 1
    assert reader.latestOffset(first, ReadAllAvailable()) is not None
    reader.stop()
    assert (count_logged(caplog, BEGINS), count_logged(caplog, ENDS)) == (1, 1)


def test_a_query_fails_when_an_outage_is_longer_than_it_may_be(world: World) -> None:
    reader = world.reader(outageSeconds="1")
    start = reader.initialOffset()
    first = reader.latestOffset(start, ReadAllAvailable())
    (part,) = reader.partitions(start, first)
    world.server.kill()
    with pytest.raises(UnavailableError, match="has not answered for 1 s"):
        list(reader.read(part))
    with pytest.raises(UnavailableError, match="has not answered for 1 s"):
        reader.latestOffset(first, ReadAllAvailable())
    with pytest.raises(UnavailableError, match="has not answered for 1 s"):
        reader.commit(first)
