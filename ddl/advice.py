"""How many shards: the trade-off in numbers, from nodes and the peak of writes.

A split of Spanner is served by one node at a time. The documented guidance for one node (regional)
is about 3,500 writes/s of 1 KB rows; an index entry is a write of its own, so an index on a growing
timestamp with one shard carries about the writes of one split. Each shard is a seek of every poll.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ddl.errors import PlanError

WRITES_A_SPLIT = 2_000
"""Index entries a second that one growing end of an index is trusted with; well below the 3,500
writes/s that Spanner names for a node, because a poll reads at the same end."""
SHARDS_MAX = 100
"""More shards than this make polls dear: each is a seek."""


@dataclass(frozen=True, slots=True)
class Advice:
    """``shards`` to take, and what it means."""

    shards: int
    for_writes: int
    for_nodes: int
    writes_a_shard: float
    seeks_a_poll: int
    warning: str = ""


def advise(nodes: int, peak_writes: float) -> Advice:
    """Enough shards for the writes, and at least one a node so that every node can take part.

    Raises PlanError for numbers that mean nothing.
    """
    if nodes < 1 or peak_writes < 0:
        raise PlanError("nodes must be at least 1 and peak writes at least 0")
    for_writes = max(1, math.ceil(peak_writes / WRITES_A_SPLIT))
    wanted = max(for_writes, nodes)
    shards = min(wanted, SHARDS_MAX)
    warning = ""
    if wanted > shards:
        warning = (
            f"{wanted} shards would be needed, more than {SHARDS_MAX}: each poll seeks once a"
            " shard; watch with a change stream, or poll less often"
        )
    return Advice(shards, for_writes, nodes, peak_writes / shards, shards, warning)
