"""One partition of Kafka and the network before it, as ``KafkaSink`` sees them through the client:
a request may be given up, and arrive late.

As brokers and librdkafka do (INTRODUCTION.md of librdkafka, "Idempotent Producer"): a producer that
gives a request up raises its epoch, and a broker refuses a request of an earlier epoch than the one
that it has seen of the same producer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from interleavings.scheduler import current_scheduler, current_unit
from watcher.envelopes import make_envelope
from watcher.settings.destinations import KafkaDestination
from watcher.sinks.kafka import KafkaSink

LOST_MAX = 1
"""So many requests are given up; further ones arrive."""

Report = Callable[[Any, object], None]


class TimedOut:
    """The client's error of a message that was given up."""

    def name(self) -> str:
        return "_MSG_TIMED_OUT"

    def str(self) -> str:
        return "Local: Message timed out"

    def fatal(self) -> bool:
        return False

    retriable = txn_requires_abort = fatal


@dataclass(frozen=True, slots=True)
class Request:
    """Values on their way, of a producer in an epoch."""

    producer: int
    epoch: int
    values: tuple[bytes | None, ...]


@dataclass
class Partition:
    """``log`` is what readers see; ``network`` is what has not arrived."""

    log: list[bytes | None] = field(default_factory=list)
    network: list[Request] = field(default_factory=list)
    lost: int = 0
    epochs: dict[int, int] = field(default_factory=dict)
    producers: Iterator[int] = field(default_factory=itertools.count)

    def arrive(self) -> None:
        """The request that has been on its way for the longest time arrives."""
        if self.network:
            self.append(self.network.pop(0))

    def append(self, request: Request) -> None:
        """What the broker does with a request."""
        if request.epoch >= self.epochs.get(request.producer, 0):
            self.epochs[request.producer] = request.epoch
            self.log += request.values


class ModelProducer:
    """The client's producer."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._id, self._epoch = next(partition.producers), 0
        self._queue: list[tuple[bytes | None, Report]] = []

    def __len__(self) -> int:
        return len(self._queue)

    def list_topics(self, topic: str, timeout: float) -> Any:
        found = SimpleNamespace(error=None, partitions={0: None})
        return SimpleNamespace(topics={topic: found})

    def produce(
        self,
        _topic: str,
        value: bytes | None,
        _key: bytes | None,
        _partition: int,
        on_delivery: Report,
        headers: object,
    ) -> None:
        self._queue.append((value, on_delivery))

    def poll(self, _seconds: float) -> int:
        return 0

    def purge(self, **_what: bool) -> None:
        self._queue.clear()

    def flush(self, _seconds: float) -> int:
        """Sends a request, and waits for it while others go on; then gives it up."""
        if not self._queue:
            return 0
        queue, self._queue = self._queue, []
        request = Request(self._id, self._epoch, tuple(value for value, _ in queue))
        partition = self._partition
        partition.network.append(request)
        if current_unit() is not None:
            current_scheduler().gate("a request is on its way")
        if any(each is request for each in partition.network) and self._give_up(request):
            for _, report in queue:
                report(TimedOut(), None)
        return 0

    def _give_up(self, request: Request) -> bool:
        """Or has it arrive by another connection, when enough were given up."""
        partition = self._partition
        if partition.lost >= LOST_MAX:
            partition.network = [each for each in partition.network if each is not request]
            partition.append(request)
            return False
        partition.lost += 1
        self._epoch += 1
        return True


class ModelKafkaSink(KafkaSink):
    """The sink, over the model of the client."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        client = SimpleNamespace(KafkaException=ConnectionError)
        load = "watcher.sinks.kafka.load_confluent_kafka"
        with patch(load, return_value=client):
            super().__init__(KafkaDestination(("model",), "all"), make_envelope("plain"))

    def _make_producer(self) -> Any:
        return ModelProducer(self._partition)
