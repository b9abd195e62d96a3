"""Who meets whom. A scenario is a question; its variants are ways to ask it, each with its tables,
its actors and what its consumers promise."""

from __future__ import annotations

from interleavings.scenarios import (
    fenced,
    moves,
    operators,
    queues,
    schema,
    sharing,
    spark,
    streams,
    transactions,
    watching,
)
from interleavings.scenarios.base import Variant

SCENARIOS: dict[str, tuple[Variant, ...]] = {
    # A consumer starts while another delivers and clears.
    "start": (watching.BACKFILL, watching.LATEST, watching.OPERATOR, transactions.TRANSACTIONS),
    # Instances of one consumer replace each other, freeze, wait for their turn, or share it.
    "instances": (
        watching.TAKEOVER,
        watching.TAKEOVER_BACKFILL,
        watching.FROZEN,
        watching.FROZEN_BACKFILL,
        watching.STANDBY,
        watching.CUT,
        transactions.TRANSACTIONS_TAKEOVER,
        sharing.SHARED,
    ),
    # Instances that are replaced in the middle of each kind of write and of delivery.
    "fences": (
        fenced.CLEARING_TAKEOVER,
        fenced.CUT_TAKEOVER,
        fenced.FROZEN_BATCHES,
        fenced.FROZEN_TRANSACTIONS,
        fenced.FROZEN_PAGES,
        fenced.DROPPED_TABLE,
    ),
    # A consumer is divided, merged, renamed, unregistered; instances freeze, and tables come.
    "moves": (
        moves.MERGE,
        moves.DIVIDE,
        moves.OTHER_PARTS,
        moves.FORGET,
        moves.SHARED_NEW_TABLE,
        moves.MERGED_NEW_TABLE,
        moves.MERGE_MISSING,
        moves.RENAME,
    ),
    # What operators do, and the ways of clearing.
    "operators": (operators.PAUSED, operators.BY_INDEX, operators.TIME_SHARDS),
    # Tables, columns, indexes and shards change under a watcher.
    "schema": (
        schema.NEW_TABLE,
        schema.NEW_TABLE_BETWEEN_RUNS,
        schema.ADD_COLUMN,
        schema.RESHARD,
        operators.INDEX_AGAIN,
        operators.COLUMNS,
    ),
    # Spark queries that start, start earlier, are stopped, killed and replaced.
    "spark": (
        spark.EARLIEST,
        spark.EARLIER,
        spark.STOPPED,
        transactions.SPARK_CUT,
        transactions.SPARK_TAKEOVER,
        transactions.SPARK_REPLACED,
    ),
    "spark-schema": (schema.SPARK_RESHARD, schema.SPARK_NEW_TABLE, operators.SPARK_COLUMNS),
    # A queue whose network delivers late.
    "queues": (queues.LATE_REQUEST,),
    # The other capture.
    "change-stream": (
        streams.STREAM_LATEST,
        streams.STREAM_TAKEOVER,
        streams.STREAM_NEW_TABLE,
        streams.STREAM_SCHEMA,
        streams.STREAM_TO_POLL,
        streams.SPARK_STREAM_NEW_TABLE,
    ),
}
"""The variants of every scenario."""

VARIANTS: dict[str, Variant] = {each.name: each for some in SCENARIOS.values() for each in some}
"""Every variant by its name."""


def variants_of(name: str) -> tuple[Variant, ...]:
    """The variants of a scenario, or the one with this name. Raises KeyError."""
    return SCENARIOS[name] if name in SCENARIOS else (VARIANTS[name],)
