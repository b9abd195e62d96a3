"""The limits of micro-batches, in the names of ``pyspark.sql.streaming.datasource``: a module that
Spark has from 4.2 on."""

from __future__ import annotations

from dataclasses import dataclass


class ReadLimit:
    """How much a micro-batch may hold."""


@dataclass(frozen=True)
class ReadAllAvailable(ReadLimit):
    """Everything that is there."""


@dataclass(frozen=True)
class ReadMaxRows(ReadLimit):
    """About so many rows."""

    max_rows: int


class SupportsTriggerAvailableNow:
    """A reader that fixes its end when a query begins; these versions of Spark ask none to."""
