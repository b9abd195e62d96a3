"""``bench model``, which needs no extra but for a plot."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import typer

from watcher.cli.output import CONSOLE
from watcher.process.extras import require_extras
from watcher.process.terminal.loading import to_run
from watcher.process.terminal.values import to_file

if to_run(__name__):
    from benchmarks.call_costs import Consumption, count_calls
    from benchmarks.forecasts import convert_to_json, parse_assumptions, print_calls, print_model
    from benchmarks.model import (
        Assumptions,
        Setup,
        chart,
        find_fewest_nodes,
        find_fewest_shards,
        forecast,
    )

COUNTS = (1, 4, 16, 64, 128, 256, 512, 1024)


def command(
    nodes: Annotated[
        int, typer.Option(min=1, metavar="NUMBER", help="Nodes of the instance.")
    ] = 100,
    writes: Annotated[
        float, typer.Option(min=1, metavar="NUMBER", help="Rows written per second.")
    ] = 100_000,
    shards: Annotated[
        list[int] | None,
        typer.Option(min=1, metavar="NUMBER", help="Shard counts to compare; repeatable."),
    ] = None,
    tables: Annotated[
        int, typer.Option(min=1, metavar="NUMBER", help="Tables that share the write rate.")
    ] = 1,
    interval: Annotated[
        float, typer.Option(min=0.01, metavar="SECONDS", help="Seconds between polls.")
    ] = 1.0,
    capture: Annotated[
        Literal["poll", "change-stream", "push"],
        typer.Option(
            metavar="CAPTURE", help="How the consumer finds changes: poll, change-stream or push."
        ),
    ] = "poll",
    partitions: Annotated[
        int, typer.Option(min=1, metavar="NUMBER", help="Partitions of the change stream.")
    ] = 1,
    idle_interval: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="The consumer's idle_interval.")
    ] = 0.0,
    refresh: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="The consumer's refresh.")
    ] = 10.0,
    lease: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="The consumer's lease.")
    ] = 15.0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="An assumption; repeatable."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(callback=to_file, metavar="FILE", help="Write the plot as an HTML page."),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Model an instance that is too large to measure.

    Shows how many shards a write rate needs, and how many calls of Spanner a consumer makes in an
    hour: idle, and while every table changes between two polls. What is assumed is in
    benchmarks/model.py, benchmarks/call_costs.py and docs/benchmarks.md. Exits with 1 if no number
    of shards carries the rate.
    """
    assumptions = Assumptions.model_validate(parse_assumptions(settings or ()))
    fewest = find_fewest_shards(nodes, writes, interval, assumptions, tables)
    counts = tuple(shards or COUNTS)
    forecasts = [
        forecast(Setup(nodes, writes, count, interval, tables=tables), assumptions)
        for count in counts
    ]
    consumption = Consumption(
        capture=capture,
        tables=tables,
        shards=(shards or [fewest or 1])[0],
        partitions=partitions,
        interval=interval,
        idle_interval=idle_interval,
        refresh=refresh,
        lease=lease,
    )
    idle, busy = count_calls(consumption), count_calls(replace(consumption, changing=tables))
    if json_output:
        CONSOLE.print_json(json.dumps(convert_to_json(fewest, forecasts, idle, busy), default=str))
    else:
        print_model(
            CONSOLE, fewest, find_fewest_nodes(writes, interval, assumptions, tables), forecasts
        )
        print_calls(CONSOLE, idle, busy)
    if out is not None:
        require_extras("bench")
        page = import_module("benchmarks.pages.elements").render_page(
            chart(nodes, counts, assumptions)
        )
        out.write_text(page)
    raise typer.Exit(0 if fewest is not None else 1)
