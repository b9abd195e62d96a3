"""Beyond one machine: which write rate an index on (shard, commit timestamp) carries, by a model.

What is assumed, and where it comes from:

- A node writes 3,500 rows of 1 KB a second or reads 22,500 (Spanner: Performance overview, regional
  with SSD; linear in nodes). Reads and writes share it. A healthy node is 65 % busy at most
  (Spanner: recommended maximum for high-priority CPU, regional).
- The table's own writes are spread over its key evenly: they can be divided among all servers.
- Timestamps grow, so a shard's new entries all go to its last split, which one server holds. A tail
  cannot be divided. An index entry (and the removal of the old one) costs ``index_cost`` of a row.
- Load-based splitting halves a split that is too hot every ``split_seconds``; servers even out.
- A poll seeks once a shard and reads ``slice_rows`` a second in each slice (measured on the
  embedded server by ``bench run backlog``).
- With several tables a poll first asks which have changed: a seek for each shard of each table, 50
  tables in a query, nine queries side by side. The write rate is that of all tables together.
- A watcher reads the partitions of a change stream one after another, Spark side by side.

It says nothing of lock contention, of hot keys in the table itself, or of multi-region latencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf

from pydantic import BaseModel, ConfigDict, Field

from benchmarks.pages.charts import Chart, Line
from watcher.captures.poll_tables import AHEAD, TABLES_PER_QUERY

SHARDS_MAX = 10_000
NODES_MAX = 100_000


class Assumptions(BaseModel):
    """The constants, per node unless said otherwise; rates a second."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    writes: float = Field(3_500, gt=0)
    reads: float = Field(22_500, gt=0)
    busy: float = Field(0.65, gt=0, le=1)
    index_cost: float = Field(0.5, gt=0)
    split_seconds: float = Field(60, gt=0)
    slice_rows: float = Field(50_000, gt=0)
    seek_seconds: float = Field(0.005, gt=0)
    dollars_an_hour: float = Field(0.90, ge=0)


@dataclass(frozen=True, slots=True)
class Setup:
    """Tables under load. ``slices`` are read side by side; times in seconds."""

    nodes: int
    writes: float
    shards: int
    interval: float = 1.0
    slices: int = 16
    tables: int = 1

    @property
    def seeks(self) -> float:
        """Seeks a second, whether or not anything changes."""
        return self.shards * self.tables / self.interval


@dataclass(frozen=True, slots=True)
class Forecast:
    """What becomes of a setup. ``warm_up_seconds`` is how long splitting takes from one split.

    ``carried`` is the write rate that the instance takes with the index; ``tail_busy`` how busy the
    server of the busiest tail is with it, ``total_busy`` how busy all are.
    """

    setup: Setup
    carried: float
    limit: str
    tail_busy: float
    total_busy: float
    poll_rows: float
    poll_seconds: float
    staleness: float
    warm_up_seconds: float
    dollars_a_day: float

    @property
    def enough(self) -> bool:
        """True when the wished rate is carried, and polls end before the next begins."""
        return self.carried >= self.setup.writes and self.poll_seconds <= self.setup.interval


def forecast(setup: Setup, assumptions: Assumptions) -> Forecast:
    """Splits and servers once they are even, and the polls on them."""
    rate, limit = find_capacity(setup, assumptions)
    share = min(setup.writes, rate)
    tail = share * assumptions.index_cost / setup.shards / assumptions.writes
    polling = (share + setup.seeks) / assumptions.reads / setup.nodes
    total = share * (1 + assumptions.index_cost) / assumptions.writes / setup.nodes + polling
    rows = share * setup.interval
    seconds = estimate_poll(setup, rows, assumptions)
    return Forecast(
        setup=setup,
        carried=rate,
        limit=limit,
        tail_busy=tail * tails_a_server(setup),
        total_busy=total,
        poll_rows=rows,
        poll_seconds=seconds,
        staleness=setup.interval / 2 + seconds,
        warm_up_seconds=estimate_warm_up(setup, assumptions),
        dollars_a_day=setup.nodes * assumptions.dollars_an_hour * 24,
    )


def tails_a_server(setup: Setup) -> int:
    """How many tails the fullest server has once they are even."""
    return ceil(setup.shards / setup.nodes)


def find_capacity(setup: Setup, assumptions: Assumptions) -> tuple[float, str]:
    """The write rate, and what it is limited by."""
    room = assumptions.writes * assumptions.busy
    seeks = setup.seeks * assumptions.writes / assumptions.reads
    all_nodes = (setup.nodes * room - seeks) / (
        1 + assumptions.index_cost + assumptions.writes / assumptions.reads
    )
    tails = room * setup.shards / assumptions.index_cost / tails_a_server(setup)
    return max(0.0, min(all_nodes, tails)), "nodes" if all_nodes <= tails else "tails"


def estimate_poll(setup: Setup, rows: float, assumptions: Assumptions) -> float:
    """How long a poll takes: its slowest slice."""
    slices = min(setup.slices, setup.shards)
    seeks = ceil(setup.shards / slices)
    looks = ceil((count_look_queries(setup.tables) - 1) / (1 + AHEAD))
    return (seeks + looks) * assumptions.seek_seconds + rows / slices / assumptions.slice_rows


def count_look_queries(tables: int) -> int:
    """The queries that say which tables have changed: one for fifty tables."""
    return ceil(tables / TABLES_PER_QUERY)


def estimate_stream_window(partitions: int, readers: int, assumptions: Assumptions) -> float:
    """How long the queries of a window of a change stream take: one for each partition that is
    there in the window, ``readers`` side by side, and one for all of them first."""
    return (1 + ceil(partitions / readers)) * assumptions.seek_seconds


def estimate_warm_up(setup: Setup, assumptions: Assumptions) -> float:
    """Seconds until no split is too hot, from one split of the table and one of the index: those
    that are halve at every step, until a split of the index is the tail of a single shard."""
    room = assumptions.writes * assumptions.busy
    table, index, divided, seconds = setup.writes, setup.writes * assumptions.index_cost, 1, 0.0
    while table > room or index > room:
        if index > room and divided >= setup.shards:
            return inf
        table = table / 2 if table > room else table
        if index > room:
            divided = min(divided * 2, setup.shards)
            index = setup.writes * assumptions.index_cost / divided
        seconds += assumptions.split_seconds
    return seconds


def find_fewest_shards(
    nodes: int, writes: float, interval: float, assumptions: Assumptions, tables: int = 1
) -> int | None:
    """The least number of shards that carries a rate; None when the nodes do not."""
    for shards in range(1, SHARDS_MAX + 1):
        setup = Setup(nodes, writes, shards, interval, tables=tables)
        if find_capacity(setup, assumptions)[0] >= writes:
            return shards
    return None


def find_fewest_nodes(
    writes: float, interval: float, assumptions: Assumptions, tables: int = 1
) -> int | None:
    """The least number of nodes that carries a rate with a shard for each of them; None when every
    node would be busy with looking at so many tables so often."""
    for nodes in range(1, NODES_MAX + 1):
        setup = Setup(nodes, writes, nodes, interval, tables=tables)
        if find_capacity(setup, assumptions)[0] >= writes:
            return nodes
    return None


def chart(nodes: int, counts: tuple[int, ...], assumptions: Assumptions) -> Chart:
    """Carried rates by shards, for some numbers of nodes around one."""
    lines = [
        Line(
            label=f"{size} nodes",
            points=tuple(
                (float(n), find_capacity(Setup(size, 0, n), assumptions)[0]) for n in counts
            ),
        )
        for size in sorted({max(1, nodes // 4), max(1, nodes // 2), nodes, nodes * 2})
    ]
    return Chart(
        title="write rate that the index carries",
        x="shards",
        y="rows a second",
        lines=tuple(lines),
        log_x=True,
    )
