"""The scenarios, by name."""

from __future__ import annotations

from benchmarks.scenario import Scenario
from benchmarks.scenarios import (
    backlog,
    captures,
    connector,
    debezium,
    decode,
    distance,
    first_rows,
    forms,
    index,
    java,
    latency,
    memory,
    micro_batches,
    published,
    replica,
    scale_instances,
    scale_partitions,
    scale_rows,
    scale_tables,
    server,
    sinks,
    snapshot,
    spark,
    sustained,
    sweeps,
    tasks,
    values,
)
from watcher.model.errors import ConfigurationError
from watcher.settings.fields import unknown_option

ALL = (
    *(
        each.SCENARIO
        for each in (
            sustained,
            backlog,
            latency,
            distance,
            published,
            captures,
            index,
            java,
            debezium,
        )
    ),
    *sweeps.SCENARIOS,
    *(
        each.SCENARIO
        for each in (
            spark,
            snapshot,
            first_rows,
            micro_batches,
            tasks,
            memory,
            connector,
            replica,
            decode,
            values,
            forms,
            sinks,
            server,
        )
    ),
    *(each.SCENARIO for each in (scale_tables, scale_partitions, scale_rows, scale_instances)),
)
SCENARIOS: dict[str, Scenario] = {each.name: each for each in ALL}


def find_scenario(name: str) -> Scenario:
    """One of them. Raises ConfigurationError with the nearest name."""
    if name not in SCENARIOS:
        hint = str(unknown_option(name, SCENARIOS)).partition("; ")[2]
        raise ConfigurationError(f"unknown scenario '{name}'; {hint}")
    return SCENARIOS[name]
