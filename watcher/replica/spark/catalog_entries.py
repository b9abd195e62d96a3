"""Copies in Delta as tables of a schema of Spark's catalog, for people who read them by a name.

The tables are external ones: the catalog has the folder of each copy, which stays what it is.
"""

from __future__ import annotations

import re

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from watcher.model.errors import ConfigurationError, ReplicaError
from watcher.replica.merge_sql import SPARK
from watcher.replica.spark.frames import first_line, render_text

SCHEMA = re.compile(r"[\w-]+\.[\w-]+")
"""A catalog and a schema of it, as Unity's conventions name them."""


def check_schema(spark: SparkSession, schema: str) -> None:
    """Raises ConfigurationError unless a text names a schema that is there."""
    if SCHEMA.fullmatch(schema) is None:
        raise ConfigurationError(
            f"invalid catalog_schema = '{schema}': write CATALOG.SCHEMA, such as"
            " spark_catalog.music"
        )
    name = quote_name(schema)
    if not spark.catalog.databaseExists(name):
        raise ConfigurationError(f"there is no schema {schema}: CREATE SCHEMA {name}")


def quote_name(schema: str, *table: str) -> str:
    """The name of a schema, or of a table of it, in SQL."""
    return ".".join(map(SPARK.quote, (*schema.split("."), *table)))


class CatalogEntry:
    """The table of a ``schema`` that a copy is to be. ``copy`` names the copy by its ``path``."""

    def __init__(self, spark: SparkSession, schema: str, table: str, copy: str, path: str) -> None:
        self._spark = spark
        self._name = quote_name(schema, table)
        self._copy = copy
        self._path = path
        self._is_made = False

    def check(self) -> None:
        """Raises ConfigurationError where the name is that of another table."""
        if self._is_made or not self._spark.catalog.tableExists(self._name):
            return
        there = self._read_id(self._name)
        # Of a copy that was removed, the entry is there, and its folder is empty.
        if there is not None and there != self._read_id(self._copy):
            raise ConfigurationError(self._explain_other())

    def make(self) -> None:
        """Makes the table, unless it is there. The copy has been written. Raises ReplicaError."""
        if self._is_made:
            return
        made = f"CREATE TABLE IF NOT EXISTS {self._name} USING delta LOCATION"
        try:
            self._spark.sql(f"{made} {render_text(self._path)}")
        except PySparkException as error:
            raise ReplicaError(
                f"cannot register {self._path} as {self._name}: {first_line(error)}"
            ) from error
        if self._read_id(self._name) != self._read_id(self._copy):
            raise ReplicaError(self._explain_other())
        self._is_made = True

    def _read_id(self, name: str) -> str | None:
        """The ID that Delta has given a table, empty for a table of another format; None where
        there is no table."""
        try:
            (detail,) = self._spark.sql(f"DESCRIBE DETAIL {name}").collect()
        except AnalysisException:
            return None
        return detail["id"] or ""

    def _explain_other(self) -> str:
        return (
            f"{self._name} is another table than the copy in {self._path}: register copies in"
            " another schema, or drop that table"
        )
