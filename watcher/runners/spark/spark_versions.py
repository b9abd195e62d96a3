"""What the installed Spark can do, by feature: nothing else in the product asks for its number.

Spark 4.0 has neither filters nor limits for Python sources, 4.1 has filters, 4.2 has both.
"""

from __future__ import annotations

from inspect import signature

import pyspark
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceStreamReader

from watcher.model.errors import ConfigurationError

PLANS_FROM_START = "start" in signature(DataSourceStreamReader.latestOffset).parameters
"""Spark says where a batch starts and what its limit is when it asks for the end, and that a query
runs with ``Trigger.AvailableNow``."""
PUSHES_FILTERS = hasattr(datasource, "Filter")
"""Spark offers the filters of a batch read to the source."""

if PLANS_FROM_START:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
else:
    from watcher.runners.spark.read_limits import (  # type: ignore[assignment]  # the same names
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )


class ReadEverything(ReadLimit):
    """All that is there, whatever the limits of the options are."""


__all__ = [
    "PLANS_FROM_START",
    "PUSHES_FILTERS",
    "ReadAllAvailable",
    "ReadEverything",
    "ReadLimit",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
    "check_filters",
]


def check_filters() -> None:
    """Raises ConfigurationError where Spark keeps filters to itself."""
    if not PUSHES_FILTERS:
        raise ConfigurationError(
            f"'pushFilters' needs Spark 4.1 or newer, and this is Spark {pyspark.__version__}:"
            " leave it out, then Spark evaluates the filters itself"
        )
