"""``ddl advise``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ddl.advice import WRITES_A_SPLIT, advise
from watcher.cli.common import JsonOption
from watcher.cli.output import CONSOLE, print_json


def command(
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of the instance.")],
    peak_writes: Annotated[
        float, typer.Option(min=0, help="Rows written a second to the table, at its peak.")
    ],
    json_output: JsonOption = False,
) -> None:
    """Say how many shards to take, with the trade-off in numbers."""
    found = advise(nodes, peak_writes)
    if json_output:
        print_json(asdict(found))
        return
    CONSOLE.print(f"take [bold]{found.shards}[/] shards (--shards {found.shards})")
    CONSOLE.print(
        f"  for the writes: {found.for_writes} ({peak_writes:,.0f} a second, {WRITES_A_SPLIT:,} a"
        f" shard); for the nodes: {found.for_nodes}, so that each can take part"
    )
    CONSOLE.print(
        f"  each shard takes {found.writes_a_shard:,.0f} index entries a second;"
        f" each poll seeks {found.seeks_a_poll} times"
    )
    if found.warning:
        CONSOLE.print(f"  [yellow]{found.warning}[/]")
