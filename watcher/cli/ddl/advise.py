"""``ddl advise``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from spanner_schema.model.advice import WRITES_A_SPLIT, advise
from watcher.cli.options import JsonOption
from watcher.cli.output import CONSOLE, print_json


def command(
    nodes: Annotated[int, typer.Option(min=1, metavar="NUMBER", help="Nodes of the instance.")],
    peak_writes: Annotated[
        float,
        typer.Option(
            min=0, metavar="NUMBER", help="Rows written to the table each second, at peak."
        ),
    ],
    json_output: JsonOption = False,
) -> None:
    """Recommend a number of shards, and show the trade-off."""
    advice = advise(nodes, peak_writes)
    if json_output:
        print_json(asdict(advice))
        return
    CONSOLE.print(f"use {advice.shards} shards (--shards {advice.shards})")
    CONSOLE.print(
        f"  the writes need {advice.for_writes} ({peak_writes:,.0f} a second, {WRITES_A_SPLIT:,} in"
        f" each shard); the nodes need {advice.for_nodes}, one for each"
    )
    CONSOLE.print(
        f"  each shard receives {advice.writes_a_shard:,.0f} index entries a second;"
        f" each poll seeks {advice.seeks_a_poll} times"
    )
    if advice.warning:
        CONSOLE.print(f"  {advice.warning}", style="yellow")
