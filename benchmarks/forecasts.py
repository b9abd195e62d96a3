"""What ``bench model`` shows: a table, JSON, a page with a plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, astuple, fields

from rich.console import Console
from rich.table import Table

from benchmarks.call_costs import CallCosts
from benchmarks.model import Assumptions, Forecast
from watcher.model.errors import ConfigurationError
from watcher.settings.fields import unknown_option


def parse_assumptions(settings: Sequence[str]) -> dict[str, float]:
    """KEY=VALUE texts. Raises ConfigurationError."""
    values = {}
    for text in settings:
        name, _, value = text.partition("=")
        if name not in Assumptions.model_fields:
            raise unknown_option(name, Assumptions.model_fields)
        try:
            values[name] = float(value)
        except ValueError as error:
            raise ConfigurationError(f"invalid assumption '{text}': use KEY=NUMBER") from error
    return values


def convert_to_json(
    fewest: int | None, forecasts: Sequence[Forecast], idle: CallCosts, busy: CallCosts
) -> dict[str, object]:
    """For machines; a time without end is null. ``calls_an_hour``: of one consumer."""
    rows = [asdict(each) | {"enough": each.enough} for each in forecasts]
    for row in rows:
        if math.isinf(row["warm_up_seconds"]):
            row["warm_up_seconds"] = None
    calls = {
        name: {key: round(value) for key, value in asdict(costs).items()}
        | {"all": round(costs.calls)}
        for name, costs in (("idle", idle), ("busy", busy))
    }
    return {"fewest_shards": fewest, "forecasts": rows, "calls_an_hour": calls}


def print_model(
    console: Console, fewest: int | None, nodes: int | None, forecasts: Sequence[Forecast]
) -> None:
    """For people. ``nodes`` would be enough; None where no number of them is."""
    setup = forecasts[0].setup
    asked = f"{setup.nodes} nodes, {setup.writes:,.0f} rows a second"
    if fewest is None and nodes is None:
        console.print(f"{asked}: no number of shards or nodes is enough; use a longer interval")
    elif fewest is None:
        console.print(f"{asked}: no number of shards is enough; use {nodes} nodes")
    else:
        console.print(f"{asked}: at least {fewest} shards")
    table = Table()
    titles = ("carries/s", "limit", "tail", "all", "poll s", "stale s", "splits in s")
    for title in ("shards", *titles):
        table.add_column(title, justify="right", no_wrap=True)
    for each in forecasts:
        warm = each.warm_up_seconds
        table.add_row(
            f"{each.setup.shards:,}",
            f"{each.carried:,.0f}",
            each.limit,
            f"{each.tail_busy:.0%}",
            f"{each.total_busy:.0%}",
            f"{each.poll_seconds:.2f}",
            f"{each.staleness:.2f}",
            "never" if math.isinf(warm) else f"{warm:,.0f}",
        )
    console.print(table)
    console.print(
        "tail: load of the server with the busiest tail; all: load of all servers. "
        f"{setup.nodes} nodes cost ${forecasts[0].dollars_a_day:,.0f} a day."
    )


def print_calls(console: Console, idle: CallCosts, busy: CallCosts) -> None:
    """For people: the calls of a consumer while nothing changes, and while everything does."""
    table = Table(title="calls of one consumer an hour")
    for title in ("", *(each.name for each in fields(CallCosts)), "all"):
        table.add_column(title, justify="right", no_wrap=True)
    for name, costs in (("idle", idle), ("busy", busy)):
        table.add_row(name, *(f"{each:,.0f}" for each in (*astuple(costs), costs.calls)))
    console.print(table)
    console.print("seeks: places of indexes at which looks begin to read; they are no calls.")
