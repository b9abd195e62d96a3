"""How many shards to use: the trade-off in numbers, from nodes and peak writes.

A split of Spanner is served by one node at a time. The documented guidance for one node (regional)
is about 3,500 writes/s of 1 KB rows; an index entry is a write of its own, so an index on a growing
timestamp with one shard carries about the writes of one split. Each shard is a seek of every poll.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from spanner_schema.model.errors import PlanError

WRITES_A_SPLIT = 2_000
"""Index entries a second for one growing end of an index: well below the 3,500 writes/s that
Spanner documents for a node, because polls read at the same end."""
SHARDS_MAX = 100
"""More shards than this make polls expensive: each is a seek."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The recommended ``shards``, and what follows from them."""

    shards: int
    for_writes: int
    for_nodes: int
    writes_a_shard: float
    seeks_a_poll: int
    warning: str = ""


def advise(nodes: int, peak_writes: float) -> Advice:
    """Enough shards for the writes, and at least one a node so that every node can take part.

    Raises PlanError for numbers out of range.
    """
    if nodes < 1 or peak_writes < 0:
        raise PlanError(
            f"invalid numbers: {nodes} nodes and {peak_writes:g} peak writes; use at least 1 and 0"
        )
    for_writes = max(1, math.ceil(peak_writes / WRITES_A_SPLIT))
    needed = max(for_writes, nodes)
    shards = min(needed, SHARDS_MAX)
    warning = ""
    if needed > shards:
        warning = (
            f"the writes need {needed} shards, and each poll seeks once in every shard: use a"
            f" change stream, or {SHARDS_MAX} shards and fewer polls"
        )
    return Advice(shards, for_writes, nodes, peak_writes / shards, shards, warning)
