"""A queue that a watcher writes to, and a network that delivers late."""

from __future__ import annotations

import json

from conformance.truth import live_rows
from interleavings.actors import Run
from interleavings.kafka_model import ModelKafkaSink, Partition
from interleavings.scenarios.base import Variant, begin_with_rows, write_rows
from interleavings.scheduler import current_scheduler

WINDOWS = 4
ARRIVALS = 2
LOOKS = 20


def begin_with_topic(run: Run) -> None:
    """A topic of one partition, and a sink, which lasts as long as its instance."""
    begin_with_rows(run)
    partition = Partition()
    run.kept |= {"partition": partition, "sink": ModelKafkaSink(partition)}


def deliver_to_topic(run: Run, windows: int = WINDOWS) -> None:
    """Consumer A, again and again, by one instance."""
    watcher = run.watcher("a", tables=["*"], start="earliest")
    watcher.deliver_to(run.kept["sink"])
    for _ in range(windows):
        watcher.run_once()


def write_after_a_loss(run: Run) -> None:
    """Rows get newer versions when a request with older ones was given up."""
    for _ in range(LOOKS):
        if run.kept["partition"].lost:
            break
        current_scheduler().gate("nothing was given up yet")
    write_rows(run)


def deliver_late(run: Run) -> None:
    """The network delivers what it has, sooner or later."""
    for _ in range(ARRIVALS):
        current_scheduler().gate("the network delivers")
        run.kept["partition"].arrive()


def end_with_the_newest(run: Run) -> None:
    """Everything is delivered, and what was given up arrives after it: each row still ends with its
    newest version."""
    deliver_to_topic(run, 1)
    partition = run.kept["partition"]
    while partition.network:
        partition.arrive()
    values = [json.loads(value) for value in partition.log]
    last = {(each["table"], tuple(each["key"].values())): each["values"] for each in values}
    history = run.record.truth.history()
    newest = max(states[-1].at for states in history.values())
    for row, state in live_rows(history, newest).items():
        version = last.get(row, {}).get("Version")
        if version != state.version:
            run.record.problems.append(
                f"the topic ends with version {version} of {row}, and the row has {state.version}"
            )


LATE_REQUEST = Variant(
    "late-request",
    {"W": write_after_a_loss, "A": deliver_to_topic, "N": deliver_late},
    (),
    prelude=begin_with_topic,
    finale=end_with_the_newest,
)
