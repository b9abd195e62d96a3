"""Who meets whom: each scenario says its tables, its actors and what its consumers promise."""

from __future__ import annotations

from interleavings.scenarios import operators, schema, spark, streams, transactions, watching
from interleavings.scenarios.base import Scenario

ALL: dict[str, Scenario] = {
    each.name: each
    for each in (
        *watching.SCENARIOS,
        *spark.SCENARIOS,
        *schema.SCENARIOS,
        *streams.SCENARIOS,
        *transactions.SCENARIOS,
        *operators.SCENARIOS,
    )
}
"""Every scenario by its name."""
