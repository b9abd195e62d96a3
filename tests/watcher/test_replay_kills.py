"""Dead letters that are delivered again by a process which is killed on the way: none is lost, none
is forgotten, whichever way changes come and go."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fixtures.browser import wait_until
from fixtures.commands import run_command
from fixtures.consumers import consumers_of
from fixtures.kafka import MockCluster, read_records
from fixtures.pace import allow
from fixtures.postgres_databases import CreatePostgres
from fixtures.queue_records import account_changes
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, make_watchable
from fixtures.warm_python import WARM_PYTHON
from google.api_core.exceptions import GoogleAPICallError
from google.cloud.spanner_v1.database import Database

from watcher.process.failpoints import VARIABLE
from watcher.sinks.dead_letters import append_dead_letter, read_dead_letters
from watcher.tables.parts import list_parts

JOB = """
import json, sys
from watcher import Watcher
from watcher.sinks.queues import open_queue
settings, taken = json.loads(sys.argv[1]), sys.argv[2]
watcher = Watcher(**settings)
def take(change):
    with open(taken, "a") as file:
        print(change.id, file=file)
if "to" in settings["delivery"]:
    watcher.deliver_to(open_queue(watcher.config))
else:
    watcher.on_change(take)
watcher.run()
"""
KILLED = ["before-lines-are-replaced", "after-lines-are-replaced"]
"""When all was delivered and no letter has left the file; when they have left it, and the command
of the operator is still there."""
GOOGLESQL = (SINGERS, "CREATE CHANGE STREAM S FOR Singers")
POSTGRESQL = ("CREATE TABLE t (id bigint PRIMARY KEY)", "CREATE CHANGE STREAM s FOR t")


@dataclass(frozen=True)
class Way:
    """How changes come, and whether they go to Kafka or to a callback."""

    settings: Mapping[str, Any]
    kafka: bool = False
    postgresql: bool = False
    names: tuple[str, ...] = ("me",)
    """What the database knows the consumer by."""


STREAMED = {"capture": "change-stream", "stream": {"name": "S"}, "standby": True}
PUSHED = STREAMED | {"stream": {"name": "S", "push": True}}
SHARED = {"tables": ["Singers"], "parts": 2}
PARTS = tuple(part.name_consumer("me") for part in list_parts(2))
WAYS = {
    "callback": Way(STREAMED),
    "kafka": Way(STREAMED, kafka=True),
    "pushed": Way(PUSHED),
    "pushed to kafka": Way(PUSHED, kafka=True),
    "shared": Way(SHARED, names=PARTS),
    "shared to kafka": Way(SHARED, kafka=True, names=PARTS),
    "postgresql": Way(STREAMED | {"stream": {"name": "s"}}, kafka=True, postgresql=True),
}


class Replayed:
    """A consumer with dead letters, whose processes a test kills."""

    def __init__(
        self, way: Way, database: Database, folder: Path, cluster: MockCluster | None
    ) -> None:
        self.way, self.database, self.cluster = way, database, cluster
        self.letters, self.taken = folder / "dead.jsonl", folder / "taken"
        delivery = {"then": "skip", "dead_letters": str(self.letters)}
        if cluster is not None:
            delivery["to"] = f"kafka://{cluster.address}/letters"
        self.settings = {
            "database": str(address_of(database)),
            "consumer": "me",
            "interval": "20ms",
            "lease": "1s",
            "delivery": delivery,
            **way.settings,
        }
        for change in account_changes(3):
            append_dead_letter(self.letters, change, "no")
        self.known = self.read_letters()

    def read_letters(self) -> list[object]:
        return [letter["id"] for letter in read_dead_letters(self.letters)]

    def read_taken(self) -> list[str]:
        if self.cluster is None:
            return self.taken.read_text().split() if self.taken.exists() else []
        return [each.headers["id"].decode() for each in read_records(self.cluster, "letters")]

    def is_known(self) -> bool:
        """Whether every part runs, so that an operator can ask it."""
        found = consumers_of(self.database)
        try:
            return all(found.status(name) is not None for name in self.way.names)
        except GoogleAPICallError:
            return False  # its tables are not there yet

    def is_asked(self) -> bool:
        """Whether a command of an operator waits."""
        found = consumers_of(self.database)
        return any(found.command(name) is not None for name in self.way.names)

    @contextmanager
    def run(self, failpoint: str = "") -> Iterator[subprocess.Popen[bytes]]:
        process = subprocess.Popen(
            [*WARM_PYTHON, "-c", JOB, json.dumps(self.settings), str(self.taken)],
            env=os.environ | {VARIABLE: failpoint},
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(allow(30))


@pytest.fixture(params=WAYS)
def replayed(
    request: pytest.FixtureRequest,
    create_database: CreateDatabase,
    create_postgres: CreatePostgres,
    tmp_path: Path,
) -> Replayed:
    way = WAYS[request.param]
    database = create_postgres(*POSTGRESQL) if way.postgresql else create_database(*GOOGLESQL)
    if "parts" in way.settings:
        make_watchable(database, "Singers", shards=4)
    cluster = request.getfixturevalue("cluster") if way.kafka else None
    if cluster is not None:
        cluster.create_topic("letters")
    return Replayed(way, database, tmp_path, cluster)


@pytest.mark.parametrize("failpoint", KILLED)
def test_a_kill_loses_no_letter_and_forgets_none(replayed: Replayed, failpoint: str) -> None:
    with replayed.run(failpoint) as process:
        wait_until(replayed.is_known, "the consumer runs")
        done = run_command("ctl", "replay", "me", "-d", replayed.settings["database"])
        assert done.returncode == 0, done.stderr
        assert process.wait(allow(60)) != 0, "it is killed"
    kept = replayed.known if failpoint == KILLED[0] else []
    assert (replayed.read_letters(), set(replayed.read_taken())) == (kept, set(replayed.known))
    with replayed.run():
        wait_until(lambda: replayed.read_letters() == [], "the letters leave the file")
        wait_until(lambda: not replayed.is_asked(), "the command is done")
    assert set(replayed.read_taken()) == set(replayed.known)
