"""Spark's schemas as Arrow's, whatever the version of Spark."""

from __future__ import annotations

from inspect import signature

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

NAMES_TIME_ZONE = "timezone" in signature(to_arrow_schema).parameters
"""Timestamps are in UTC only if that is said."""


def convert_to_arrow_schema(schema: StructType) -> pa.Schema:
    """A schema with timestamps in UTC."""
    return to_arrow_schema(schema, timezone="UTC") if NAMES_TIME_ZONE else to_arrow_schema(schema)
