"""From changes to rows: the newest version of every key."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from watcher.captures import COMMIT_TIMESTAMP_COLUMN
from watcher.model.errors import ConfigurationError
from watcher.replica.merge_sql import SPARK

ENVELOPE_KEY = ("table", "key")
SEQUENCE_COLUMN = "_record_sequence"
"""Change streams: the order of a transaction's changes."""
NEWEST = "$newest"


def newest_per_key(df: DataFrame, keys: Sequence[str] = ()) -> DataFrame:
    """One row a key: the one with the highest commit timestamp. NULL is older than everything.

    ``keys`` are the columns of the primary key; of envelope rows, table and key when none are
    named. The columns are those of ``df``. Raises ConfigurationError for a stream: give it to
    ``foreachBatch``, whose batches can be asked.
    """
    chosen = tuple(keys) or (ENVELOPE_KEY if set(ENVELOPE_KEY) <= set(df.columns) else ())
    missing = [name for name in (*chosen, COMMIT_TIMESTAMP_COLUMN) if name not in df.columns]
    if not chosen or missing:
        wrong = f"column {missing[0]} does not exist" if missing else "no key columns were named"
        raise ConfigurationError(f"{wrong}; the columns are: {', '.join(df.columns)}")
    if df.isStreaming:
        raise ConfigurationError(
            "the newest row of a key is not known while a stream runs: call newest_per_key inside"
            " foreachBatch, and merge its result into the sink"
        )
    order = [n for n in (COMMIT_TIMESTAMP_COLUMN, SEQUENCE_COLUMN) if n in df.columns]
    return select_newest(df, chosen, order)


def select_newest(df: DataFrame, keys: Sequence[str], order: Sequence[str]) -> DataFrame:
    """One row a key: the one with the highest values in ``order``."""
    by, among = ([f.col(SPARK.quote(name)) for name in names] for names in (keys, order))
    # max_by leaves out rows whose order is NULL; a struct that holds a NULL is none.
    newest = f.max_by(f.struct("*"), f.struct(*among)).alias(NEWEST)
    return df.groupBy(*by).agg(newest).select(f"{SPARK.quote(NEWEST)}.*")
