"""The topics that a sink writes to, and how many partitions each has."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from watcher.settings.destinations import KafkaDestination
from watcher.sinks.kafka_errors import BEING_MADE, judge
from watcher.sinks.kafka_troubles import KafkaTroubles

if TYPE_CHECKING:
    from confluent_kafka import Producer

ANSWER_SECONDS_MAX = 10.0
"""How long brokers may take to say which topics there are."""
CREATION_SECONDS_MAX = 5.0
"""How long brokers may take to make a topic that they make by themselves."""
LOOK_AGAIN_SECONDS = 0.2


class KafkaTopics:
    """Those of the tables that were written to so far."""

    def __init__(self, destination: KafkaDestination, troubles: KafkaTroubles) -> None:
        self._destination = destination
        self._troubles = troubles
        self._of_table: dict[str, str] = {}
        self._partitions: dict[str, int] = {}

    @property
    def partitions(self) -> Mapping[str, int]:
        """How many partitions each topic has."""
        return self._partitions

    def find(self, producer: Producer, table: str) -> str:
        """The topic of a table. Raises DeliveryError for one that does not exist."""
        if table not in self._of_table:
            topic = self._destination.name_topic(table)
            if topic not in self._partitions:
                self._partitions[topic] = self._count_partitions(producer, topic)
            self._of_table[table] = topic
        return self._of_table[table]

    def _count_partitions(self, producer: Producer, topic: str) -> int:
        """Brokers may make a topic because it is asked for."""
        deadline = time.monotonic() + CREATION_SECONDS_MAX
        while True:
            with self._troubles.explain(topic):
                answer = producer.list_topics(topic, timeout=ANSWER_SECONDS_MAX)
            error, partitions = answer.topics[topic].error, answer.topics[topic].partitions
            if error is None:
                return len(partitions)
            if judge(error) not in BEING_MADE or time.monotonic() >= deadline:
                raise self._troubles.convert(error, topic)
            producer.poll(LOOK_AGAIN_SECONDS)
