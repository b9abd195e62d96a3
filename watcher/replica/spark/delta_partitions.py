"""Values that no partition of Delta can have, refused while Spark writes them: rows are not read
twice for that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import quote

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from watcher.replica.delta.partition_values import (
    FOLDER_BYTES_MAX,
    TAKEN_FOR_NULL,
    refuse_long,
    refuse_taken,
)
from watcher.replica.merge_sql import SPARK


def check_values(rows: DataFrame, names: Sequence[str], path: str) -> DataFrame:
    """The same rows; to read one fails if a partition cannot have its value."""
    texts = {name for name, type_ in rows.dtypes if type_ == "string"}
    for name in names:
        if name in texts:
            value = f.col(SPARK.quote(name))
            taken = f.raise_error(f.lit(str(refuse_taken(name, path))))
            long = f.raise_error(f.lit(str(refuse_long(names, path))))
            room = FOLDER_BYTES_MAX - len(f"{quote(name, safe='')}=/")
            checked = f.when(value.isin(*TAKEN_FOR_NULL), taken)
            checked = checked.when(f.octet_length(f.url_encode(value)) > room, long)
            rows = rows.withColumn(name, checked.otherwise(value))
    return rows


@contextmanager
def explain_values(names: Sequence[str], path: str) -> Iterator[None]:
    """Raises the ReplicaError of a value that was refused, in the place of Spark's."""
    try:
        yield
    except PySparkException as error:
        for refusal in (refuse_long(names, path), *(refuse_taken(name, path) for name in names)):
            if str(refusal) in str(error):
                raise refusal from error
        raise
