"""What to do about an error of Kafka's client, for the watcher and in words for its operator."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from watcher.model.errors import DeliveryError, SinkUnavailableError, WatcherError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

GOES_AWAY = frozenset(
    {
        "BROKER_NOT_AVAILABLE",
        "CONCURRENT_TRANSACTIONS",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "KAFKA_STORAGE_ERROR",
        "LEADER_NOT_AVAILABLE",
        "NETWORK_EXCEPTION",
        "NOT_COORDINATOR",
        "NOT_ENOUGH_REPLICAS",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "NOT_LEADER_FOR_PARTITION",
        "REQUEST_TIMED_OUT",
        "_ALL_BROKERS_DOWN",
        "_MSG_TIMED_OUT",
        "_PURGE_INFLIGHT",
        "_PURGE_QUEUE",
        "_RESOLVE",
        "_TIMED_OUT",
        "_TIMED_OUT_QUEUE",
        "_TRANSPORT",
        "_WAIT_COORD",
    }
)
REFUSED = frozenset(
    {
        "INVALID_MSG",
        "INVALID_MSG_SIZE",
        "INVALID_RECORD",
        "INVALID_TIMESTAMP",
        "MSG_SIZE_TOO_LARGE",
        "POLICY_VIOLATION",
        "RECORD_LIST_TOO_LARGE",
    }
)
FENCED = frozenset({"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "_FENCED"})
MISSING = frozenset(
    {"UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID", "_UNKNOWN_PARTITION", "_UNKNOWN_TOPIC"}
)
ADVICE = {
    "MSG_SIZE_TOO_LARGE": "raise message.max.bytes in [delivery.kafka.properties], and"
    " max.message.bytes of the topic, or exclude the column",
    "TOPIC_AUTHORIZATION_FAILED": "allow the principal to DESCRIBE and WRITE the topic",
    "CLUSTER_AUTHORIZATION_FAILED": "allow the principal IDEMPOTENT_WRITE on the cluster",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "allow the principal to DESCRIBE and WRITE the"
    " transactional id",
}
"""What to do, by the name of an error."""


class Verdict(StrEnum):
    """What to do about an error."""

    RETRY = "retry"
    """It may go away: deliver the window again."""
    REFUSED = "refused"
    """This message will be refused again."""
    FENCED = "fenced"
    """Another producer has taken the transactional id over."""
    MISSING = "missing"
    """The topic does not exist."""
    STOP = "stop"
    """Somebody has to fix something."""


BEING_MADE = (Verdict.MISSING, Verdict.RETRY)
"""What brokers say of a topic while they make it."""


def judge(error: KafkaError) -> Verdict:
    """What to do about an error. One that is not known stops: it is neither skipped nor tried for
    ever."""
    name = error.name()
    if name in FENCED:
        return Verdict.FENCED
    if name in MISSING:
        return Verdict.MISSING
    if name in REFUSED:
        return Verdict.REFUSED
    # A new producer, which fences this one, goes on after what ends a transactional one.
    lost = error.fatal() or error.txn_requires_abort()
    return Verdict.RETRY if name in GOES_AWAY or error.retriable() or lost else Verdict.STOP


def describe(error: KafkaError) -> str:
    """An error in Kafka's words, its name, and what to do about it."""
    advice = ADVICE.get(error.name())
    return f"{error.str()} ({error.name()}){f': {advice}' if advice else ''}"


def convert_error(
    error: KafkaError, queue: str, topic: str = "", transactional_id: str | None = None
) -> WatcherError:
    """An error in words that say where it happened and what to do: SinkUnavailableError for what
    may go away, else DeliveryError. ``transactional_id`` is None where there are no
    transactions."""
    verdict = judge(error)
    if error.fatal() and transactional_id is None:
        return DeliveryError(
            f"the producer of {queue} has failed for good ({describe(error)}), and brokers would"
            " not refuse what it has sent behind newer messages of another: restart the watcher, or"
            " set delivery.kafka.transactional = true, with which they do"
        )
    if verdict is Verdict.RETRY or (verdict is Verdict.FENCED and transactional_id is None):
        return SinkUnavailableError(f"{queue} did not acknowledge everything: {describe(error)}")
    if verdict is Verdict.FENCED:
        return DeliveryError(
            f"another producer has taken over the transactional id '{transactional_id}' on {queue}:"
            " run one watcher at a time with this consumer, or set delivery.kafka.transactional_id"
        )
    if verdict is Verdict.MISSING:
        return DeliveryError(
            f"{queue} has no topic '{topic}': create it and restart, or change the topic in"
            " delivery.to"
        )
    where = f"topic '{topic}' of {queue}" if topic else queue
    return DeliveryError(f"{where}: {describe(error)}")
