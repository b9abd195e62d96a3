"""Instances that share a consumer: they divide its parts, and again when one joins, leaves, freezes
or dies. Each part is judged as a consumer of its own."""

from __future__ import annotations

import threading
import time

from google.cloud.spanner_v1 import KeySet

from interleavings.actors import SHORT_SECONDS, Run
from interleavings.judges import Expectation
from interleavings.scenarios.base import Variant
from interleavings.scenarios.watching import TAKEN_OVER
from watcher.tables.parts import list_parts

PARTS = list_parts(2)
KEYS = range(1, 21)
CHANGED = KEYS[:12]
"""The others are written once, before anybody has joined."""
STAY_SECONDS = SHORT_SECONDS * 1.5
"""An instance that joins while another is there gets its share within this time."""


def join_for(run: Run, seconds: float, **options: object) -> None:
    """An instance of consumer A: joins, delivers its parts, and leaves after a while."""
    chosen: dict[str, object] = {
        "tables": ["*"],
        "start": "earliest",
        "parts": len(PARTS),
        "lease": SHORT_SECONDS,
        "interval": 2.0,
        "clearing": {"every": 2.0},
    }
    watcher = run.watcher("a", **(chosen | options))

    def leave() -> None:
        time.sleep(seconds)
        watcher.stop()

    threading.Thread(target=leave, daemon=True).start()
    watcher.run()


def join(run: Run) -> None:
    """Joins for a while."""
    join_for(run, STAY_SECONDS)


def join_late(run: Run) -> None:
    """Joins when another instance holds every part."""
    run.pass_time(SHORT_SECONDS / 2)
    join_for(run, STAY_SECONDS)


def read_shards(run: Run) -> dict[int, int]:
    """The shards of all rows, by key."""
    with run.database.snapshot() as snapshot:
        return dict(snapshot.read("Rows", ("Id", "ShardId"), KeySet(all_=True)))


def begin_with_both_parts(run: Run) -> None:
    """Rows are there in every part, which nobody has delivered."""
    run.write(*(("Rows", key, f"{key}.0") for key in KEYS))
    shards = read_shards(run)
    for key, shard in shards.items():
        part = PARTS[shard % len(PARTS)]
        run.record.part_of["Rows", (key,)] = part.name_consumer("a")
    assert len(set(run.record.part_of.values())) == len(PARTS), shards


def write_in_both_parts(run: Run) -> None:
    """Transactions with rows of both parts, seconds apart."""
    for version in (1, 2, 3):
        run.write(*(("Rows", key, f"{key}.{version}") for key in CHANGED if key % 3 != version % 3))
        run.pass_time(SHORT_SECONDS / 2)


def deliver_the_rest(run: Run) -> None:
    """In the end one instance takes over what the others left."""
    join_for(run, SHORT_SECONDS * 4)


SHARED = Variant(
    "shared",
    {"W": write_in_both_parts, "A": join, "B": join_late},
    tuple(Expectation(part.name_consumer("a")) for part in PARTS),
    prelude=begin_with_both_parts,
    finale=deliver_the_rest,
    crashes={"A": 1},
    allowed=TAKEN_OVER,
)
