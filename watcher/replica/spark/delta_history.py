"""The commits of a Delta table as Spark lists them, and which of them are those of a consumer."""

from __future__ import annotations

import json
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession

from watcher.replica.delta.log import METADATA as MARK

NO_TABLE = frozenset(
    {"DELTA_TABLE_ONLY_OPERATION", "DELTA_MISSING_DELTA_TABLE", "DELTA_PATH_DOES_NOT_EXIST"}
)
MORE_COMMITS = 10
"""How many commits of others may follow a write before it is looked up."""
LIMITS = (20, 1000)
"""How many commits are looked at for the newest one of this consumer; compactions are others'."""


class DeltaHistory:
    """Of one table, whose ``name`` is quoted."""

    def __init__(self, spark: SparkSession, name: str, consumer: str) -> None:
        self._spark = spark
        self._name = name
        self._consumer = consumer

    def has_own_commits(self, after: int, before: int) -> bool:
        """Whether there are commits of this consumer between two versions."""
        if before - after < 2:
            return False
        commits = self.read(before - after + MORE_COMMITS)
        return any(after < each["version"] < before and self._read_end(each) for each in commits)

    def count_written(self, version: int) -> int:
        """The rows that a commit has written."""
        for commit in self.read(MORE_COMMITS):
            if commit["version"] == version:
                return int((commit["operationMetrics"] or {}).get("numOutputRows", 0))
        return 0

    def find_end(self, version: int) -> int:
        """The end of this consumer's newest commit; 0 if it is not among the newest commits."""
        for limit in LIMITS:
            for commit in self.read(limit):
                if end := self._read_end(commit):
                    return end
            if limit > version:
                break
        return 0

    def _read_end(self, commit: Row) -> int:
        """The end that a commit carries; 0 for one that is not this consumer's."""
        try:
            values: Any = json.loads(commit["userMetadata"] or "{}")[MARK]
        except (ValueError, KeyError, TypeError):
            return 0
        return int(values["end"]) if values.get("consumer") == self._consumer else 0

    def read(self, limit: int) -> list[Row]:
        """The newest commits, the latest first; none where there is no table."""
        try:
            return self._spark.sql(f"DESCRIBE HISTORY {self._name} LIMIT {limit}").collect()
        except AnalysisException as error:
            if error.getCondition() in NO_TABLE:
                return []
            raise
