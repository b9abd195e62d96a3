"""From changes to rows: the newest version of every key."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from watcher.captures import COMMIT_TIMESTAMP_COLUMN
from watcher.errors import ConfigurationError

ENVELOPE_KEY = ("table", "key")
ROW = "_newest"


def newest_per_key(
    df: DataFrame, keys: Sequence[str] = (), order: Sequence[str] = (COMMIT_TIMESTAMP_COLUMN,)
) -> DataFrame:
    """One row a key: the one with the highest ``order``. A NULL there is older than everything.

    ``keys`` are the columns of the primary key; of envelope rows, table and key when none are
    named. The columns are those of ``df``. Raises ConfigurationError for a stream: give it to
    ``foreachBatch``, whose batches can be asked.
    """
    chosen = tuple(keys) or (ENVELOPE_KEY if set(ENVELOPE_KEY) <= set(df.columns) else ())
    missing = [name for name in (*chosen, *order) if name not in df.columns]
    if not chosen or missing:
        wrong = f"there is no column {missing[0]}" if missing else "no key columns were named"
        raise ConfigurationError(f"{wrong}; the columns are: {', '.join(df.columns)}")
    if df.isStreaming:
        raise ConfigurationError(
            "the newest row of a key is not known while a stream runs: call newest_per_key inside"
            " of foreachBatch, and merge what it gives into the sink"
        )
    # max_by leaves out rows whose order is NULL; a struct that holds a NULL is none.
    newest = f.max_by(f.struct("*"), f.struct(*(f.col(f"`{name}`") for name in order))).alias(ROW)
    return df.groupBy(*(f.col(f"`{name}`") for name in chosen)).agg(newest).select(f"{ROW}.*")
